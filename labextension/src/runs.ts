/** The runs that go on in the notebooks of this page: each is found here, and once. What is drawn of them is not known. */

import type { JupyterFrontEndPlugin } from "@jupyterlab/application";
import { INotebookTracker, type NotebookPanel } from "@jupyterlab/notebook";
import type { IOutputModel } from "@jupyterlab/rendermime";
import { Token } from "@lumino/coreutils";
import { type ISignal, Signal } from "@lumino/signaling";
import { codeCells, forEachCodeCell, type Notebook } from "./cells";
import type { KernelConnection } from "./kernel_messages";
import { LiveRun } from "./live_run";
import { liveRunId, runIdOf, runIn } from "./outputs";

export const IRuns = new Token<Runs>("op_jupyter:IRuns", "The runs of agent cells that go on in the notebooks.");

export const runsPlugin: JupyterFrontEndPlugin<Runs> = {
  id: "op_jupyter:runs",
  description: "Knows the runs that go on in the notebooks.",
  autoStart: true,
  provides: IRuns,
  requires: [INotebookTracker],
  activate: (_app, tracker: INotebookTracker) => new Runs(tracker),
};

export class Runs {
  #tracker: INotebookTracker;
  #runs = new Set<LiveRun>();
  #changed = new Signal<this, LiveRun>(this);

  constructor(tracker: INotebookTracker) {
    this.#tracker = tracker;
    tracker.forEach((panel) => void this.#watch(panel));
    tracker.widgetAdded.connect((_, panel) => void this.#watch(panel));
  }

  /** Emitted with a run whenever it has changed. */
  get changed(): ISignal<this, LiveRun> {
    return this.#changed;
  }

  /** The runs that go on, the latest last. */
  get goingOn(): LiveRun[] {
    return [...this.#runs].filter(({ isOn }) => isOn);
  }

  /** The run that goes on in this notebook. */
  in(panel: NotebookPanel | null): LiveRun | undefined {
    return this.goingOn.filter((run) => run.notebook === panel?.context).at(-1);
  }

  /** The notebook on the page that this element stands in. */
  panelAround(node: HTMLElement): NotebookPanel | undefined {
    return this.#tracker.find((panel) => panel.node.contains(node));
  }

  /** All views of the notebook that the run is in, the one that was used last first. */
  panelsOf(run: LiveRun): NotebookPanel[] {
    const panels = this.#tracker.filter((panel) => panel.context === run.notebook);
    return panels.sort((a, b) => Number(b === this.#tracker.currentWidget) - Number(a === this.#tracker.currentWidget));
  }

  /** The run of this id, which the kernel is asked for when it is not known yet; none where there is no kernel. */
  join(notebook: Notebook, runId: string): LiveRun | undefined {
    const kernel = notebook.sessionContext.session?.kernel;
    return this.#find(notebook, runId) ?? (kernel ? this.#add(notebook, kernel, runId) : undefined);
  }

  /** The run that goes on in this kernel, if any; `onFound` is told of it where it was not known. */
  ask(notebook: Notebook, kernel: KernelConnection, onFound: (run: LiveRun) => void): void {
    const run = this.#add(notebook, kernel, null);
    const onChanged = () => {
      if (run.link.state === "live") {
        run.changed.disconnect(onChanged);
        if (this.#find(notebook, run.runId) === run) {
          onFound(run);
        } else {
          this.#drop(run);
        }
      } else if (run.lost !== undefined) {
        this.#drop(run);
      }
    };
    run.changed.connect(onChanged);
  }

  #find(notebook: Notebook, runId: string | null): LiveRun | undefined {
    return [...this.#runs].find((run) => run.notebook === notebook && run.runId === runId);
  }

  #add(notebook: Notebook, kernel: KernelConnection, runId: string | null): LiveRun {
    const run = new LiveRun(notebook, kernel, runId);
    this.#runs.add(run);
    run.changed.connect(() => {
      this.#changed.emit(run);
      if (run.finished) {
        this.#drop(run);
      }
    });
    run.connect();
    return run;
  }

  #drop(run: LiveRun): void {
    this.#runs.delete(run);
    run.dispose();
    this.#changed.emit(run);
  }

  async #watch(panel: NotebookPanel): Promise<void> {
    const notebook = panel.context;
    panel.disposed.connect(() => this.#leave(notebook));
    await notebook.ready;
    forEachCodeCell(notebook, ({ outputs }) => {
      this.#look(notebook, allOf(outputs));
      outputs.changed.connect((_, { newValues }) => this.#look(notebook, newValues));
    });
    notebook.sessionContext.kernelChanged.connect(() => {
      for (const { outputs } of codeCells(notebook)) {
        this.#look(notebook, allOf(outputs));
      }
    });
  }

  /** Outputs are where a run of this page begins and ends, drawn or not. */
  #look(notebook: Notebook, outputs: IOutputModel[]): void {
    for (const output of outputs) {
      const live = liveRunId(output.metadata);
      if (live !== undefined) {
        this.join(notebook, live);
      } else {
        const shown = runIdOf(output.metadata);
        (shown === undefined ? undefined : this.#find(notebook, shown))?.finish(runIn(output));
      }
    }
  }

  /** A view of the notebook is closed. */
  #leave(notebook: Notebook): void {
    if (!this.#tracker.find((panel) => panel.context === notebook && !panel.isDisposed)) {
      for (const run of this.#runs) {
        if (run.notebook === notebook) {
          this.#drop(run);
        }
      }
    }
  }
}

function allOf(outputs: { length: number; get(index: number): IOutputModel }): IOutputModel[] {
  return Array.from({ length: outputs.length }, (_, index) => outputs.get(index));
}
