import { beforeEach, expect, test, vi } from "vitest";
import { mount } from "../src/view/mount";
import type { CallStep, Run, Step } from "../src/view/record";
import type { Batch, Op, Transport } from "../src/view/transport";
import { run } from "./fixtures";

let el: HTMLElement;

beforeEach(() => {
  el = document.createElement("div");
  document.body.replaceChildren(el);
});

const empty: Run = { ...run("everything"), steps: [], children: {}, rounds: 0, stop_reason: null, error: null };

function call(round: number, fields: Partial<CallStep> = {}): Step {
  const made = { kind: "tool_call" as const, id: `c${round}`, name: `f${round}`, arguments: {}, raw_arguments: null };
  return { kind: "call", round, call: made, state: "ok", output: [], result: null, ...fields };
}

function long(rounds: number): Run {
  return {
    ...empty,
    rounds,
    steps: Array.from({ length: rounds }, (_, index) => call(index + 1)),
    stop_reason: "stop",
  };
}

function shown(): string[] {
  const labels = [...(el.shadowRoot?.querySelector(".run")?.children ?? [])].map(
    (child) => child.getAttribute("aria-label") ?? child.querySelector("summary")?.textContent,
  );
  return labels.filter((label) => label !== undefined) as string[];
}

/** A run that goes on, and what the kernel sends of it. */
function live(start: Run): (...ops: Op[]) => void {
  let last = 0;
  let receive: (batches: Batch[]) => void = () => undefined;
  const transport = {
    link: { state: "live" },
    connect: (view) => {
      receive = view.onBatches;
      view.onLink(transport.link);
    },
    snapshot: async () => ({ seq: 0, run: structuredClone(start) }),
  } as Transport;
  mount(el, start, transport);
  return (...ops) => {
    last++;
    receive([{ first: last, last, ops }]);
  };
}

test("of a thousand rounds the last ones are drawn, and the others are a line for each 25", () => {
  const begun = performance.now();
  mount(el, long(1000));

  expect(performance.now() - begun).toBeLessThan(1000);
  expect(shown()[0]).toBe("Rounds 1 to 25 25 calls");
  expect(shown().slice(38)).toEqual([
    "Rounds 951 to 975 25 calls",
    ...Array.from({ length: 25 }, (_, n) => `Round ${976 + n}`),
  ]);
  expect(el.shadowRoot?.querySelectorAll(".call")).toHaveLength(25);
});

test("a run of up to 49 rounds is drawn whole", () => {
  mount(el, long(49));

  expect(shown()).toHaveLength(49);
});

test("the line of past rounds says what of theirs failed, and what the person said; a click shows them", () => {
  const record = long(60);
  record.steps[3] = call(4, { state: "error" });
  const said = {
    kind: "user" as const,
    source: "steering" as const,
    content: [{ kind: "text" as const, text: "Hurry" }],
  };
  record.steps.splice(2, 0, { kind: "user", round: 3, message: said });
  mount(el, record);

  expect(shown()[0]).toBe("Rounds 1 to 25 25 calls, 1 failed, a message of yours");
  el.shadowRoot?.querySelector<HTMLElement>(".past > summary")?.click();
  const past = el.shadowRoot?.querySelector(".past");
  expect(past?.querySelectorAll(".round")).toHaveLength(25);
  expect(past?.querySelectorAll(".call")).toHaveLength(25);
  expect(past?.textContent).toContain("Hurry");
});

test("rounds are gathered while the run goes on, and the page does not grow with it", async () => {
  const send = live(empty);
  await vi.waitFor(() => expect(shown()).toEqual([]));
  for (let round = 1; round <= 80; round++) {
    const index = round - 1;
    send(
      { op: "set", run_id: empty.run_id ?? "", fields: { rounds: round } },
      { op: "step", run_id: empty.run_id ?? "", index, step: call(round, { state: "running" }) },
    );
    send({ op: "step", run_id: empty.run_id ?? "", index, step: call(round) });
  }

  const grown = shown();
  mount(el, { ...long(80), stop_reason: null });
  expect(grown).toEqual(shown());
  expect(grown).toHaveLength(2 + 30);
});

test("a fold holds nothing until it is opened, and what is in it follows the run", async () => {
  const output = (text: string) => ({ output_type: "stream" as const, name: "stdout", text });
  const send = live({ ...empty, rounds: 1, steps: [call(1, { output: [output("one")] })] });
  await vi.waitFor(() => expect(el.shadowRoot?.querySelector(".call")).not.toBeNull());
  const card = el.shadowRoot?.querySelector(".call") as HTMLDetailsElement;
  expect(card.childElementCount).toBe(1);

  card.querySelector("summary")?.click();
  expect(card.textContent).toContain("one");
  send({ op: "output", run_id: empty.run_id ?? "", index: 0, output: output("two") });
  expect(card.textContent).toContain("two");

  card.querySelector("summary")?.click();
  expect(card.childElementCount).toBe(1);
  send({ op: "output", run_id: empty.run_id ?? "", index: 0, output: output("three") });
  expect(card.childElementCount).toBe(1);
  card.querySelector("summary")?.click();
  expect(card.textContent).toContain("three");
});

test("all calls are opened and closed with one click", () => {
  mount(el, long(3));
  const press = (name: string) =>
    [...(el.shadowRoot?.querySelectorAll("button") ?? [])].find(({ textContent }) => textContent === name)?.click();
  const open = () => el.shadowRoot?.querySelectorAll(".call[open]").length;

  press("Expand all");
  expect(open()).toBe(3);
  press("Collapse all");
  expect(open()).toBe(0);
});

test("what a function writes in pieces is one output", async () => {
  const output = (text: string, name = "stdout") => ({ output_type: "stream" as const, name, text });
  const send = live({ ...empty, rounds: 1, steps: [call(1, { state: "running" })] });
  await vi.waitFor(() => expect(el.shadowRoot?.querySelector(".call")).not.toBeNull());
  for (const written of [output("."), output("."), output("!", "stderr"), output(".")]) {
    send({ op: "output", run_id: empty.run_id ?? "", index: 0, output: written });
  }

  const written = [...(el.shadowRoot?.querySelectorAll('[aria-label="Output"] pre') ?? [])];
  expect(written.map(({ textContent }) => textContent)).toEqual(["..", "!", "."]);
});

test("rounds are not gathered under the hands of somebody whose focus is in them", async () => {
  const send = live({ ...long(49), stop_reason: null });
  await vi.waitFor(() => expect(shown()).toHaveLength(49));
  const card = el.shadowRoot?.querySelector<HTMLElement>(".call > summary");
  card?.focus();
  const round = (number: number) =>
    send(
      { op: "set", run_id: empty.run_id ?? "", fields: { rounds: number } },
      { op: "step", run_id: empty.run_id ?? "", index: number - 1, step: call(number) },
    );

  round(50);
  expect(shown()).toHaveLength(50);
  card?.blur();
  round(51);
  expect(shown()).toHaveLength(1 + 26);
});

test("what goes on stays open when all is closed", () => {
  mount(el, { ...long(2), steps: [call(1, { state: "error" }), call(2, { state: "waiting" })], stop_reason: null });
  [...(el.shadowRoot?.querySelectorAll("button") ?? [])]
    .find(({ textContent }) => textContent === "Collapse all")
    ?.click();

  const cards = [...(el.shadowRoot?.querySelectorAll<HTMLDetailsElement>(".call") ?? [])];
  expect(cards.map(({ open }) => open)).toEqual([false, true]);
});

const child = (id: string, rounds: number, fields: Partial<Run> = {}): Run => ({
  ...long(rounds),
  run_id: id,
  ...fields,
});
const visible = () => [...(el.shadowRoot?.querySelectorAll("summary, .round") ?? [])].length;

test("a call whose nested runs had failures says so in its line, and so does the line of past rounds", () => {
  const record = long(60);
  const failing = child("n", 3);
  failing.steps[1] = call(2, { state: "error" });
  record.children = { c2: [failing], c50: [structuredClone(failing)] };
  mount(el, record);

  expect(shown()[0]).toBe("Rounds 1 to 25 25 calls, 1 call failed in nested runs");
  const line = el.shadowRoot?.querySelector('[data-key="c50"] > summary');
  expect(line?.textContent).toContain("1 call failed in it");
  expect(el.shadowRoot?.querySelector('[data-key="c49"] > summary')?.textContent).not.toContain("failed");
});

test("a long nested run that has ended, and each of several, is a line in its call until it is opened", () => {
  const record = long(3);
  const long40 = child("one", 40);
  const message = {
    kind: "user" as const,
    source: "user" as const,
    content: [{ kind: "text" as const, text: "Count to 40" }],
  };
  long40.steps.unshift({ kind: "user", round: 1, message });
  record.children = { c1: [long40], c2: [child("two", 2), child("three", 2)], c3: [child("four", 2)] };
  mount(el, record);
  for (const summary of el.shadowRoot?.querySelectorAll<HTMLElement>(".call > summary") ?? []) {
    summary.click();
  }

  const nested = (key: string) => el.shadowRoot?.querySelectorAll(`[data-key="${key}"] .run .round`).length;
  expect([nested("c1"), nested("c2"), nested("c3")]).toEqual([0, 0, 2]);
  const line = el.shadowRoot?.querySelector<HTMLElement>('[data-key="c1"] .nested > summary');
  expect(line?.textContent).toMatch(/^✓Count to 40Done · 40 rounds/);
  line?.click();
  expect(nested("c1")).toBe(40);
});

test("expanding all does not draw a thousand rounds", () => {
  const record = long(49);
  record.children = Object.fromEntries(record.steps.map((_, n) => [`c${n + 1}`, [child(`n${n}`, 49)]]));
  mount(el, record);
  const before = visible();
  [...(el.shadowRoot?.querySelectorAll("button") ?? [])]
    .find(({ textContent }) => textContent === "Expand all")
    ?.click();

  expect(el.shadowRoot?.querySelectorAll(".call[open]")).toHaveLength(49);
  // A line for each nested run.
  expect(visible()).toBe(before + 49);
});

test("a call that waits for a person is shown in whatever was closed, and can be closed again", async () => {
  const waits = call(1, { state: "waiting", started: 1 });
  const inner = child("inner", 1, { steps: [call(1, { state: "running" })], stop_reason: null });
  const running = { ...long(1), steps: [call(1, { state: "running" })], children: { c1: [inner] }, stop_reason: null };
  const send = live({ ...empty, ...running, run_id: "outer" });
  await vi.waitFor(() => expect(el.shadowRoot?.querySelector(".call .call")).not.toBeNull());
  const press = (selector: string) => el.shadowRoot?.querySelector<HTMLElement>(selector)?.click();
  press(".call > summary");
  expect(el.shadowRoot?.querySelector(".call .call")).toBeNull();

  send({ op: "step", run_id: "inner", index: 0, step: waits });
  expect(el.shadowRoot?.querySelector(".call .call .approval")).not.toBeNull();
  const collapse = [...(el.shadowRoot?.querySelectorAll("button") ?? [])].find((b) => b.textContent === "Collapse all");
  collapse?.click();
  expect(el.shadowRoot?.querySelector(".call .call .approval")).not.toBeNull();

  press(".call > summary");
  send({ op: "set", run_id: "inner", fields: { rounds: 1 } });
  expect(el.shadowRoot?.querySelector(".call .call")).toBeNull();
});

test("what a patch costs does not grow with the runs that were nested before", async () => {
  const record = { ...long(2), steps: [call(1), call(2, { state: "running" })], stop_reason: null, run_id: "outer" };
  let read = 0;
  const counted = child("n", 3);
  const steps = () => {
    read++;
    return [];
  };
  Object.defineProperty(counted, "steps", { enumerable: true, get: steps });
  const send = live({ ...record, children: {} });
  await vi.waitFor(() => expect(el.shadowRoot?.querySelector(".call")).not.toBeNull());
  send({ op: "run", run_id: "n", parent_id: "outer", call_id: "c1", run: counted });
  expect(read).toBeGreaterThan(0);
  read = 0;
  for (let rounds = 3; rounds < 20; rounds++) {
    send({ op: "set", run_id: "outer", fields: { rounds } });
  }
  expect(read).toBe(0);
});
