/** The item of the status bar that says what the agent is doing; a click goes there. */

import type { JupyterFrontEndPlugin } from "@jupyterlab/application";
import { INotebookTracker } from "@jupyterlab/notebook";
import { IStatusBar } from "@jupyterlab/statusbar";
import { type ISignal, Signal } from "@lumino/signaling";
import { Widget } from "@lumino/widgets";
import { JUMP } from "./commands";
import type { LiveRun } from "./live_run";
import { IRuns, type Runs } from "./runs";
import { activity } from "./view/activity";

export const statusPlugin: JupyterFrontEndPlugin<void> = {
  id: "op_jupyter:status",
  description: "Says in the status bar what the agent is doing.",
  autoStart: true,
  requires: [INotebookTracker, IRuns],
  // Notebook 7 has none.
  optional: [IStatusBar],
  activate: (app, tracker: INotebookTracker, runs: Runs, statusBar: IStatusBar | null) => {
    const item = new StatusItem(() => void app.commands.execute(JUMP));
    const update = () => item.say(describe(runs.in(tracker.currentWidget), runs.goingOn));
    runs.changed.connect(update);
    tracker.currentChanged.connect(update);
    statusBar?.registerStatusItem("op_jupyter:status", {
      item,
      align: "left",
      rank: 10,
      isActive: () => item.isActive,
      activeStateChanged: item.activeStateChanged,
    });
  },
};

/** What is said while `all` these runs go on, one of them `here`. */
export function describe(here: LiveRun | undefined, all: LiveRun[]): string {
  const notebooks = new Set(all.map(({ notebook }) => notebook)).size;
  const others = notebooks - 1;
  if (here) {
    const more = others ? ` (and in ${others === 1 ? "another notebook" : `${others} other notebooks`})` : "";
    return `Agent: ${doing(here)}${more}`;
  }
  return notebooks ? `Agent: running in ${notebooks === 1 ? "another notebook" : `${notebooks} other notebooks`}` : "";
}

function doing({ run, link, isStopping }: LiveRun): string {
  if (isStopping) {
    return "stopping";
  }
  if (link.state === "late") {
    return "running";
  }
  return `${run.rounds ? `round ${run.rounds}, ` : ""}${activity(run)}`;
}

class StatusItem extends Widget {
  #button = document.createElement("button");
  #activeStateChanged = new Signal<this, void>(this);

  constructor(onClick: () => void) {
    super();
    this.addClass("op-jupyter-status");
    this.addClass("jp-mod-highlighted");
    this.#button.className = "jp-StatusBar-TextItem";
    Object.assign(this.#button.style, {
      background: "none",
      border: "none",
      cursor: "pointer",
      maxWidth: "60ch",
      overflow: "hidden",
      padding: "0",
      textOverflow: "ellipsis",
    });
    this.#button.addEventListener("click", onClick);
    this.node.append(this.#button);
  }

  get isActive(): boolean {
    return this.#button.textContent !== "";
  }

  get activeStateChanged(): ISignal<this, void> {
    return this.#activeStateChanged;
  }

  say(text: string): void {
    if (text !== this.#button.textContent) {
      const wasActive = this.isActive;
      this.#button.textContent = text;
      this.#button.title = `${text}\nClick to go there`;
      this.#button.setAttribute("aria-label", `${text}. Go to its cell.`);
      if (wasActive !== this.isActive) {
        this.#activeStateChanged.emit();
      }
    }
  }
}
