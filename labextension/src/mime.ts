/** JupyterLab and Notebook 7 as a host: draws the run that stands in an output, with a kernel or without. */

import type { JupyterFrontEndPlugin } from "@jupyterlab/application";
import { type IRenderMime, IRenderMimeRegistry } from "@jupyterlab/rendermime";
import { Widget } from "@lumino/widgets";
import type { Notebook } from "./cells";
import type { LiveRun } from "./live_run";
import { liveRunId, MIME_TYPE, runIn } from "./outputs";
import { IRuns, type Runs } from "./runs";
import type { Bundle } from "./transport";
import { mount, type View } from "./view/mount";
import type { Run } from "./view/record";
import type { Transport } from "./view/transport";

/** Before the widget's own renderer, which is at -10. */
const RANK = -20;

class RunRenderer extends Widget implements IRenderMime.IRenderer {
  #runs: Runs | null;
  #view: View | undefined;
  #run: Run | undefined;
  /** The run that goes on, while it is shown. */
  #runId: string | undefined;
  #notebook: Notebook | undefined;
  #live: LiveRun | undefined;
  #line: Transport | undefined;

  constructor(runs: Runs | null) {
    super();
    this.#runs = runs;
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const runId = liveRunId(model.metadata);
    if (runId !== undefined && runId === this.#runId) {
      // What is drawn is further than the output.
      return;
    }
    this.#run = runIn(model as Bundle);
    this.#runId = runId;
    if (this.#view && runId === undefined) {
      this.#view.update(this.#run);
      this.#disconnect();
    } else {
      this.#disconnect();
      this.#view?.dispose();
      this.#view = mount(this.node, this.#run);
      this.#connect();
    }
  }

  protected override onAfterAttach(): void {
    this.#connect();
  }

  override dispose(): void {
    this.#view?.dispose();
    this.#disconnect();
    super.dispose();
  }

  /** Goes live once the output is on the page and its notebook has a kernel. */
  #connect(): void {
    if (this.#runId === undefined || !this.isAttached || this.#notebook) {
      return;
    }
    this.#notebook = this.#runs?.panelAround(this.node)?.context;
    this.#notebook?.sessionContext.kernelChanged.connect(this.#onKernel, this);
    this.#onKernel();
  }

  #onKernel(): void {
    // A second kernel knows nothing of the run.
    if (!this.#notebook || !this.#run || this.#runId === undefined || this.#line) {
      return;
    }
    this.#live = this.#runs?.join(this.#notebook, this.#runId);
    if (this.#live) {
      this.#line = this.#live.line();
      this.#view = mount(this.node, this.#run, this.#line);
      this.#live.view = this.#view;
    }
  }

  #disconnect(): void {
    if (this.#live && this.#live.view === this.#view) {
      this.#live.view = undefined;
    }
    this.#live = undefined;
    this.#line?.dispose();
    this.#line = undefined;
    this.#notebook?.sessionContext.kernelChanged.disconnect(this.#onKernel, this);
    this.#notebook = undefined;
  }
}

export const mimePlugin: JupyterFrontEndPlugin<void> = {
  id: "op_jupyter:mime",
  description: "Renders the runs of agent cells.",
  autoStart: true,
  requires: [IRenderMimeRegistry],
  optional: [IRuns],
  activate: (_app, registry: IRenderMimeRegistry, runs: Runs | null) => {
    const createRenderer = () => new RunRenderer(runs);
    // Safe, since the view makes text of whatever a model says: an untrusted notebook shows its runs too.
    registry.addFactory({ safe: true, mimeTypes: [MIME_TYPE], createRenderer }, RANK);
  },
};
