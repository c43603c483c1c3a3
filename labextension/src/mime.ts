/** JupyterLab and Notebook 7 as a host: draws the run that stands in an output, with a kernel or without. */

import type { JupyterFrontEndPlugin } from "@jupyterlab/application";
import { type IRenderMime, IRenderMimeRegistry } from "@jupyterlab/rendermime";
import { Widget } from "@lumino/widgets";
import { mount } from "./view/mount";
import type { Run } from "./view/record";

const MIME_TYPE = "application/vnd.op-jupyter.run+json";
/** Before the widget's own renderer, which is at -10. */
const RANK = -20;

class RunRenderer extends Widget implements IRenderMime.IRenderer {
  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    mount(this.node, model.data[MIME_TYPE] as unknown as Run);
  }
}

export const mimePlugin: JupyterFrontEndPlugin<void> = {
  id: "op_jupyter:mime",
  description: "Renders the runs of agent cells.",
  autoStart: true,
  requires: [IRenderMimeRegistry],
  activate: (_app, registry: IRenderMimeRegistry) => {
    // Safe, since the view makes text of whatever a model says: an untrusted notebook shows its runs too.
    registry.addFactory({ safe: true, mimeTypes: [MIME_TYPE], createRenderer: () => new RunRenderer() }, RANK);
  },
};
