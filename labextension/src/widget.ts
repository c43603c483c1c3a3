/** Any front end that knows anywidget as a host: draws the run that the widget's model holds, live where it has a kernel. */

import type { AnyModel, Render } from "@anywidget/types";
import { MIME_TYPE } from "./outputs";
import { type KernelConnection, KernelTransport } from "./transport";
import { mount } from "./view/mount";
import type { Run } from "./view/record";

interface State {
  run: Run;
  live: { run_id: string; seq: number } | null;
}

const render: Render<State> = ({ model, el }) => {
  const live = model.get("live");
  const kernel = kernelOf(model);
  const transport =
    live && kernel && new KernelTransport(kernel, live.run_id, ({ data }) => finish(data[MIME_TYPE] as Run));
  const view = mount(el, model.get("run"), transport ?? undefined);
  const finish = (run: Run) => {
    view.update(run);
    transport
      ?.received()
      .catch(() => undefined)
      .finally(transport.dispose);
  };
  const draw = () => {
    const run = model.get("run");
    if (!transport || run.stop_reason !== null) {
      finish(run);
    }
  };
  model.on("change:run", draw);
  return () => {
    model.off("change:run", draw);
    view.dispose();
    transport?.dispose();
  };
};

/** JupyterLab's widget manager has its kernel; others may not. */
function kernelOf(model: AnyModel<State>): KernelConnection | undefined {
  return (model.widget_manager as { kernel?: KernelConnection | null }).kernel ?? undefined;
}

export default { render };
