/** JupyterLab and Notebook 7 as a host: draws the run that stands in an output, with a kernel or without. */

import type { JupyterFrontEndPlugin } from "@jupyterlab/application";
import { INotebookTracker, type NotebookPanel } from "@jupyterlab/notebook";
import { type IRenderMime, IRenderMimeRegistry } from "@jupyterlab/rendermime";
import { Widget } from "@lumino/widgets";
import { liveRunId, MIME_TYPE, replaceOutput, runIn } from "./outputs";
import { type Bundle, KernelTransport } from "./transport";
import { mount, type View } from "./view/mount";
import type { Run } from "./view/record";

/** Before the widget's own renderer, which is at -10. */
const RANK = -20;

class RunRenderer extends Widget implements IRenderMime.IRenderer {
  #tracker: INotebookTracker | null;
  #view: View | undefined;
  #run: Run | undefined;
  /** The run that goes on, while it is shown. */
  #runId: string | undefined;
  #panel: NotebookPanel | undefined;
  #transport: KernelTransport | undefined;

  constructor(tracker: INotebookTracker | null) {
    super();
    this.#tracker = tracker;
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
      // The kernel sends the finished run until one of its views has it.
      this.#transport?.finish();
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
    if (this.#runId === undefined || !this.isAttached || this.#panel) {
      return;
    }
    this.#panel = this.#tracker?.find((panel) => panel.node.contains(this.node));
    this.#panel?.sessionContext.kernelChanged.connect(this.#onKernel, this);
    this.#onKernel();
  }

  #onKernel(): void {
    const panel = this.#panel;
    const kernel = panel?.sessionContext.session?.kernel;
    const runId = this.#runId;
    // A second kernel knows nothing of the run.
    if (!kernel || !panel || !this.#run || runId === undefined || this.#transport) {
      return;
    }
    const transport = new KernelTransport(kernel, runId, (bundle) => {
      replaceOutput(panel, runId, bundle);
      transport.finish();
    });
    this.#transport = transport;
    this.#view = mount(this.node, this.#run, transport);
  }

  #disconnect(): void {
    this.#transport?.dispose();
    this.#transport = undefined;
    this.#panel?.sessionContext.kernelChanged.disconnect(this.#onKernel, this);
    this.#panel = undefined;
  }
}

export const mimePlugin: JupyterFrontEndPlugin<void> = {
  id: "op_jupyter:mime",
  description: "Renders the runs of agent cells.",
  autoStart: true,
  requires: [IRenderMimeRegistry],
  optional: [INotebookTracker],
  activate: (_app, registry: IRenderMimeRegistry, tracker: INotebookTracker | null) => {
    const createRenderer = () => new RunRenderer(tracker);
    // Safe, since the view makes text of whatever a model says: an untrusted notebook shows its runs too.
    registry.addFactory({ safe: true, mimeTypes: [MIME_TYPE], createRenderer }, RANK);
  },
};
