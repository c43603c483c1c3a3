import { describe, expect, test, vi } from "vitest";
import type { Run } from "../src/view/record";
import widget from "../src/widget";
import { run } from "./fixtures";
import { FakeKernel } from "./kernel";

const STARTED: Run = { ...run("everything"), steps: [], rounds: 0, stop_reason: null, error: null, undelivered: [] };
const FINISHED = { data: { "application/vnd.op-jupyter.run+json": run("everything") }, metadata: {} };
const IN_ROUND = (rounds: number) => ({ op: "set", run_id: "run-1", fields: { rounds } });

/** A widget's model, and the page that it is drawn in. */
class Page {
  readonly el = document.createElement("div");
  readonly #state: Record<string, unknown> = { run: structuredClone(STARTED), live: { run_id: "run-1", seq: 0 } };
  readonly listeners = new Map<string, (value?: unknown) => void>();
  close: () => void = () => undefined;

  async render(widget_manager: object): Promise<void> {
    const model = {
      widget_manager,
      get: (name: string) => this.#state[name],
      on: (name: string, listener: () => void) => this.listeners.set(name, listener),
      off: (name: string) => this.listeners.delete(name),
    };
    this.close = (await widget.render({ model, el: this.el } as never)) as () => void;
    await settled();
  }

  async say(message: object): Promise<void> {
    this.listeners.get("msg:custom")?.(message);
    await settled();
  }

  async set(state: Record<string, unknown>): Promise<void> {
    Object.assign(this.#state, state);
    this.listeners.get("change:live")?.();
    await settled();
  }

  get text(): string {
    return this.el.shadowRoot?.textContent ?? "";
  }

  get rounds(): number {
    return this.el.shadowRoot?.querySelectorAll(".round:not(.call .round)").length ?? 0;
  }
}

async function settled(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve));
}

describe("with the kernel of the widget manager", () => {
  test("a run is live, and ends", async () => {
    const kernel = new FakeKernel();
    kernel.answer = ({ type }) =>
      type === "snapshot" ? { ok: true, seq: 1, run: { ...STARTED, rounds: 7 } } : { ok: true };
    const page = new Page();
    await page.render({ kernel });
    expect(page.rounds).toBe(7);

    kernel.say("patches", { ended: true, bundle: FINISHED });
    await settled();
    expect(page.text).toContain("load_sales");
    expect(kernel.requests.at(-1)).toMatchObject({ type: "final" });
    expect(kernel.running.size).toBe(0);
  });
});

describe("without a kernel", () => {
  test("the changes that the model is sent are drawn, and then the end", async () => {
    const page = new Page();
    await page.render({});
    await page.say({ batches: [{ first: 1, last: 1, ops: [IN_ROUND(2)] }] });
    expect(page.rounds).toBe(2);

    await page.say({ ended: true, bundle: FINISHED });
    expect(page.text).toContain("load_sales");
    expect(page.listeners.size).toBe(0);
  });

  test("changes that were missed are in the record that the kernel puts into the model", async () => {
    const page = new Page();
    await page.render({});
    await page.say({ batches: [{ first: 3, last: 3, ops: [IN_ROUND(3)] }] });
    expect(page.rounds).toBe(0);

    await page.set({ run: { ...STARTED, rounds: 2 }, live: { run_id: "run-1", seq: 2 } });
    await vi.waitFor(() => expect(page.rounds).toBe(3), 3000);
  });

  test("the box says before anyone types that nothing can be sent, and how to stop the run", async () => {
    const page = new Page();
    await page.render({});
    expect(page.text).toContain("This front end sends no messages while a cell runs");
    expect(page.el.shadowRoot?.querySelector("textarea")?.readOnly).toBe(true);

    expect(page.el.shadowRoot?.querySelector<HTMLButtonElement>(".stop")?.disabled).toBe(true);
    expect(page.text).toContain("the notebook's own interrupt button stops the run");
  });

  test("a view that is closed listens no longer", async () => {
    const page = new Page();
    await page.render({});
    page.close();
    expect(page.listeners.size).toBe(0);
  });
});
