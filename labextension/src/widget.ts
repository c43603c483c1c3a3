/** Any front end that knows anywidget as a host: draws the run that goes on, over the kernel where the page reaches it. */

import type { AnyModel, Render } from "@anywidget/types";
import type { KernelConnection } from "./kernel_messages";
import { ModelTransport, type State } from "./model_transport";
import { runIn } from "./outputs";
import { type Bundle, KernelTransport } from "./transport";
import { mount } from "./view/mount";

const render: Render<State> = ({ model, el }) => {
  const finish = (bundle: Bundle) => {
    view.update(runIn(bundle));
    transport.finish();
  };
  const kernel = kernelOf(model);
  const transport = kernel
    ? new KernelTransport(kernel, model.get("live").run_id, finish)
    : new ModelTransport(model, finish);
  const view = mount(el, model.get("run"), transport);
  return () => {
    view.dispose();
    transport.dispose();
  };
};

/** JupyterLab's widget manager has its kernel; others may not. */
function kernelOf(model: AnyModel<State>): KernelConnection | undefined {
  return (model.widget_manager as { kernel?: KernelConnection | null }).kernel ?? undefined;
}

export default { render };
