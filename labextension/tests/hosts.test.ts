import { type INotebookTracker, NotebookModel } from "@jupyterlab/notebook";
import { type IRenderMime, RenderMimeRegistry } from "@jupyterlab/rendermime";
import { Signal } from "@lumino/signaling";
import { Widget } from "@lumino/widgets";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { mimePlugin } from "../src/mime";
import { reattachPlugin } from "../src/reattach";
import { type Runs, runsPlugin } from "../src/runs";
import type { Run } from "../src/view/record";
import { run } from "./fixtures";
import { FakeKernel } from "./kernel";

// JupyterLab's packages ask for these when they are imported, and jsdom has none.
vi.hoisted(() => {
  vi.stubGlobal("DragEvent", MouseEvent);
  vi.stubGlobal("matchMedia", () => new EventTarget());
  vi.stubGlobal("IntersectionObserver", class {});
  vi.stubGlobal("ResizeObserver", class {});
});

const MIME_TYPE = "application/vnd.op-jupyter.run+json";
const LIVE = { [MIME_TYPE]: { live: { run_id: "run-1", seq: 0 } } };
const STARTED: Run = { ...run("everything"), steps: [], rounds: 0, stop_reason: null, error: null, undelivered: [] };
const FINISHED = {
  data: { [MIME_TYPE]: run("everything"), "text/plain": "" },
  metadata: { [MIME_TYPE]: { run_id: "run-1" } },
};

let kernel: FakeKernel;

beforeEach(() => {
  kernel = new FakeKernel();
  kernel.answer = ({ type }) =>
    type === "snapshot" ? { ok: true, seq: 1, run: { ...STARTED, rounds: 7 } } : { ok: true };
});

async function settled(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve));
}

function rounds(node: HTMLElement): number | undefined {
  return node.shadowRoot?.querySelectorAll(".round:not(.call .round)").length;
}

describe("in JupyterLab", () => {
  const registry = new RenderMimeRegistry();
  let page: Widget;
  let model: NotebookModel;
  /** The notebook on the page, as far as it is asked. */
  let panel: Record<string, unknown>;
  let kernelChanged: Signal<unknown, unknown>;
  let tracker: INotebookTracker;
  let runs: Runs;
  let session: { kernel: FakeKernel | null };

  beforeEach(async () => {
    page = new Widget();
    model = new NotebookModel();
    model.sharedModel.fromJSON({
      cells: [
        { id: "cell-1", cell_type: "code", source: "%%agent\nhello", outputs: [], metadata: {}, execution_count: null },
      ],
      metadata: {},
      nbformat: 4,
      nbformat_minor: 5,
    });
    session = { kernel };
    kernelChanged = new Signal({});
    const sessionContext = { session, kernelChanged };
    const context = { model, ready: Promise.resolve(), sessionContext };
    panel = { node: page.node, context, disposed: page.disposed };
    Widget.attach(page, document.body);
    const panels = () => (page.isDisposed ? [] : [panel]);
    tracker = {
      find: (isWanted: (of: unknown) => boolean) => panels().find(isWanted),
      forEach: (act: (on: unknown) => void) => panels().forEach(act),
      widgetAdded: new Signal({}),
    } as unknown as INotebookTracker;
    runs = await runsPlugin.activate({} as never, tracker);
    await mimePlugin.activate({} as never, registry, runs);
  });

  afterEach(() => page.dispose());

  function outputs() {
    const [cell] = model.cells;
    return (
      cell as unknown as {
        outputs: { add(value: unknown): void; set(index: number, value: unknown): void; toJSON(): unknown[] };
      }
    ).outputs;
  }

  function created(data: Record<string, unknown>, metadata = {}): [IRenderMime.IRenderer, IRenderMime.IMimeModel] {
    const made = registry.createModel({ data: data as never, metadata });
    expect(registry.preferredMimeType(made.data, "ensure")).toBe(MIME_TYPE);
    return [registry.createRenderer(MIME_TYPE), made];
  }

  async function shownLive(): Promise<IRenderMime.IRenderer> {
    outputs().add({ output_type: "display_data", data: { [MIME_TYPE]: STARTED }, metadata: LIVE });
    const [renderer, model] = created({ [MIME_TYPE]: STARTED }, LIVE);
    await renderer.renderModel(model);
    Widget.attach(renderer, page.node);
    await settled();
    return renderer;
  }

  test("a saved run is drawn, also in a notebook that is not trusted, and asks no kernel", async () => {
    const [renderer, model] = created({ "text/plain": "", [MIME_TYPE]: run("everything") });

    await renderer.renderModel(model);
    Widget.attach(renderer, page.node);

    expect(renderer.node.shadowRoot?.textContent).toContain("load_sales");
    expect(kernel.sent).toEqual([]);
  });

  test("a run that goes on is live once it is on the page", async () => {
    const renderer = await shownLive();

    expect(rounds(renderer.node)).toBe(7);
    kernel.say("patches", {
      batches: [{ first: 2, last: 2, ops: [{ op: "set", run_id: "run-1", fields: { rounds: 8 } }] }],
    });
    expect(rounds(renderer.node)).toBe(8);
  });

  test("all that ask at once of a run are answered by one snapshot over one line", async () => {
    const [first, second] = [await shownLive(), await shownLive()];

    expect([first, second].map(({ node }) => rounds(node))).toEqual([7, 7]);
    expect(kernel.running.size).toBe(1);
    // Of each there is one that shows it, and the first is asked for by what tells how the run stands, too.
    expect(kernel.requests.filter(({ type }) => type === "snapshot")).toHaveLength(2);
    kernel.say("patches", {
      batches: [{ first: 2, last: 2, ops: [{ op: "set", run_id: "run-1", fields: { rounds: 8 } }] }],
    });
    second.dispose();
    kernel.say("patches", {
      batches: [{ first: 3, last: 3, ops: [{ op: "set", run_id: "run-1", fields: { rounds: 9 } }] }],
    });
    expect([first, second].map(({ node }) => rounds(node))).toEqual([9, 8]);
  });

  test("a kernel that comes after the output is asked then", async () => {
    session.kernel = null;
    const renderer = await shownLive();
    expect(rounds(renderer.node)).toBe(0);
    expect(renderer.node.shadowRoot?.querySelector("button")).toBeNull();

    session.kernel = kernel;
    kernelChanged.emit({});
    await settled();
    expect(rounds(renderer.node)).toBe(7);
  });

  test("the same output again, as when the notebook is trusted, changes nothing", async () => {
    const renderer = await shownLive();

    await renderer.renderModel(created({ [MIME_TYPE]: STARTED }, LIVE)[1]);

    expect(rounds(renderer.node)).toBe(7);
    expect(kernel.running.size).toBe(1);
  });

  test("when the output is replaced by the finished run the kernel is told, and the line is closed", async () => {
    const renderer = await shownLive();

    outputs().set(0, { output_type: "display_data", ...FINISHED });
    await renderer.renderModel(created(FINISHED.data, FINISHED.metadata)[1]);
    await settled();

    expect(renderer.node.shadowRoot?.textContent).toContain("load_sales");
    expect(renderer.node.shadowRoot?.querySelector<HTMLElement>(".controls")?.hidden).toBe(true);
    expect(kernel.requests.at(-1)).toMatchObject({ type: "final" });
    expect(kernel.running.size).toBe(0);
  });

  test("on a page that was reloaded the finished run is written into the notebook", async () => {
    await shownLive();

    kernel.say("patches", { ended: true, bundle: FINISHED });
    kernel.say("patches", { ended: true, bundle: FINISHED });
    await settled();

    expect(outputs().toJSON()).toEqual([{ output_type: "display_data", ...FINISHED }]);
    expect(JSON.stringify(model.sharedModel.cells[0]?.toJSON())).toContain("load_sales");
    expect(kernel.requests.map(({ type }) => type)).toContain("final");
  });

  test("a notebook that is closed leaves no subshell, and does not say that it has the finished run", async () => {
    await shownLive();

    page.dispose();
    await settled();

    expect(kernel.running.size).toBe(0);
    expect(kernel.requests.map(({ type }) => type)).not.toContain("final");
  });

  describe("a run that the file does not hold", () => {
    async function opened(): Promise<void> {
      await reattachPlugin.activate({} as never, tracker, runs);
      await settled();
    }

    test("gets its output in its cell, in place of what an earlier run left there", async () => {
      outputs().add({ output_type: "display_data", ...FINISHED, metadata: { [MIME_TYPE]: { run_id: "run-0" } } });

      await opened();

      expect(outputs().toJSON()).toMatchObject([{ metadata: LIVE }]);
    });

    test("is written into the notebook when it ends, also where no output is drawn", async () => {
      await opened();

      kernel.say("patches", { ended: true, bundle: FINISHED });
      await settled();

      expect(outputs().toJSON()).toEqual([{ output_type: "display_data", ...FINISHED }]);
      expect(kernel.requests.at(-1)).toMatchObject({ type: "final" });
      expect(kernel.running.size).toBe(0);
    });

    test("is not waited for when the notebook is closed", async () => {
      await opened();

      page.dispose();
      await settled();

      expect(kernel.running.size).toBe(0);
    });

    test("is left alone where it is shown already", async () => {
      await shownLive();
      const before = outputs().toJSON();

      await opened();

      expect(outputs().toJSON()).toEqual(before);
    });

    test("is not looked for in a notebook without agent cells", async () => {
      model.sharedModel.getCell(0).setSource("1 + 1");

      await opened();

      expect(kernel.sent).toEqual([]);
    });
  });
});
