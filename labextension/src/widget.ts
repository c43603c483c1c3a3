/** Any front end that knows anywidget as a host: draws the run that the widget's model holds. */

import type { Render } from "@anywidget/types";
import { mount } from "./view/mount";
import type { Run } from "./view/record";

const render: Render<{ run: Run }> = ({ model, el }) => {
  const draw = () => mount(el, model.get("run"));
  model.on("change:run", draw);
  draw();
  return () => model.off("change:run", draw);
};

export default { render };
