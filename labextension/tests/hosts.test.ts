import { RenderMimeRegistry } from "@jupyterlab/rendermime";
import { expect, test, vi } from "vitest";
import { mimePlugin } from "../src/mime";
import widget from "../src/widget";
import { run } from "./fixtures";

// JupyterLab's packages ask for these when they are imported, and jsdom has neither.
vi.hoisted(() => {
  vi.stubGlobal("DragEvent", MouseEvent);
  vi.stubGlobal("matchMedia", () => new EventTarget());
});

const MIME_TYPE = "application/vnd.op-jupyter.run+json";

test("JupyterLab draws a saved run, also in a notebook that is not trusted", async () => {
  const registry = new RenderMimeRegistry();
  await mimePlugin.activate({} as never, registry);
  const model = registry.createModel({ data: { "text/plain": "", [MIME_TYPE]: run("everything") as never } });

  expect(registry.preferredMimeType(model.data, "ensure")).toBe(MIME_TYPE);
  const renderer = registry.createRenderer(MIME_TYPE);
  await renderer.renderModel(model);
  expect(renderer.node.shadowRoot?.textContent).toContain("load_sales");
});

test("an anywidget draws the run it holds, and draws again when that changes", async () => {
  const el = document.createElement("div");
  const state = { run: run("everything") };
  const on = vi.fn();
  const model = { get: () => state.run, on, off: vi.fn() };

  const close = await widget.render({ model, el } as never);
  expect(el.shadowRoot?.textContent).toContain("load_sales");
  state.run = { ...state.run, error: "Something else" };
  on.mock.lastCall?.[1]();
  expect(el.shadowRoot?.textContent).toContain("Something else");
  (close as () => void)();
  expect(model.off).toHaveBeenCalled();
});
