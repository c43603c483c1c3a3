import { expect, test, vi } from "vitest";
import { mount } from "../src/view/mount";
import type { Run } from "../src/view/record";
import { run } from "./fixtures";
import { call, find, link, miss, record, remount, reply, root, send, status, step, transport, view } from "./live_page";

test("a run that goes on is never said to be a saved one", () => {
  expect(root.textContent).not.toContain("saved");
  remount();
  expect(root.textContent).not.toContain("saved");
});

test("what was missed before the view was there comes with a snapshot", () => {
  expect(root.querySelectorAll(".round:not(.call .round)")).toHaveLength(record.rounds);
});

test("text that streams in grows in the same node, and no other step is touched", () => {
  send(step(reply("One ")));
  const node = find(`[data-step="${record.steps.length}"] .text p`).firstChild as Text;
  const others = [...root.querySelectorAll("[data-step]")].filter((element) => !element.contains(node));
  const changes = new MutationObserver(() => undefined);
  for (const element of others) {
    changes.observe(element, { subtree: true, childList: true, characterData: true, attributes: true });
  }

  send({ op: "append", run_id: "root", index: record.steps.length, block: 0, text: "two" });

  expect(node.isConnected && node.data).toBe("One two");
  expect(changes.takeRecords()).toEqual([]);
});

test("text that streams in until it is very long stays whole, stays open once opened, and its end is seen", () => {
  send(step(reply("x".repeat(15_000))));
  const said = find(`[data-step="${record.steps.length}"] .text`);
  const grow = (text: string) => send({ op: "append", run_id: "root", index: record.steps.length, block: 0, text });

  grow("y".repeat(15_000));
  said.querySelector("summary")?.click();
  grow(`${"z".repeat(15_000)} end`);

  expect(said.querySelector("details")?.open).toBe(true);
  expect(said.lastChild?.textContent).toMatch(/^z{9996} end$/);
  said.querySelector("summary")?.remove();
  expect(said.textContent).toBe(`${"x".repeat(15_000)}${"y".repeat(15_000)}${"z".repeat(15_000)} end`);
});

test("a call, what it prints, the run nested in it and its result appear one after another", () => {
  send(step(call("a")));
  expect(status()).toBe("Running do_a.");
  const card = find('[data-key="a"]');
  send({
    op: "output",
    run_id: "root",
    index: record.steps.length,
    output: { output_type: "stream", name: "stdout", text: "hi" },
  });
  const child: Run = { ...record, run_id: "child", steps: [], children: {}, rounds: 0, queued: [] };
  send({ op: "run", run_id: "child", parent_id: "root", call_id: "a", run: child });
  send({ op: "set", run_id: "child", fields: { rounds: 1 } });
  send({ op: "step", run_id: "child", index: 0, step: { ...call("b"), round: 1 } });

  expect(card.querySelector('[aria-label="Output"]')?.textContent).toContain("hi");
  expect(card.querySelector('[aria-label="Run nested in do_a"] .call')?.textContent).toContain("do_b");
  expect(status()).toBe("In do_a: running do_b.");
});

test("what a person has opened or closed stays that way, whatever happens to the call", () => {
  send(step(call("a")));
  const card = find<HTMLDetailsElement>('[data-key="a"]');
  card.querySelector("summary")?.click();
  expect(card.open).toBe(false);
  const done = find<HTMLDetailsElement>('.call[data-state="ok"]');
  done.querySelector("summary")?.click();

  send(step(call("a", { state: "error" })));
  view.update({ ...record, steps: [...record.steps, call("a", { state: "interrupted" })] });

  expect(card.isConnected).toBe(true);
  expect(card.dataset.state).toBe("interrupted");
  expect(card.open).toBe(false);
  expect(done.isConnected && done.open).toBe(true);
});

test("a call that nobody has touched closes once it is done", () => {
  send(step(call("a")));
  expect(find<HTMLDetailsElement>('[data-key="a"]').open).toBe(true);
  send(step(call("a", { state: "ok" })));
  expect(find<HTMLDetailsElement>('[data-key="a"]').open).toBe(false);
});

test("a lost patch is made good by a snapshot, also when that fails at first", async () => {
  record.steps.push(call("a"), call("b"));
  transport.snapshot.mockRejectedValueOnce(new Error("No answer."));
  vi.useFakeTimers();
  miss(7);
  send(step(call("c")));
  expect(root.textContent).not.toContain("do_b");

  await vi.advanceTimersByTimeAsync(1000);
  vi.useRealTimers();
  expect(root.textContent).toContain("do_b");
});

test("at the end it is as the saved view is, and the controls are gone", () => {
  const finished = run("everything");
  send(step(call("a")));

  view.update(finished);

  const saved = document.createElement("div");
  mount(saved, finished);
  expect(find("article").outerHTML).toBe(saved.shadowRoot?.querySelector("article")?.outerHTML);
  expect(find(".controls").hidden).toBe(true);
});

test("after the line was down the whole run is asked for, since patches may have been lost", async () => {
  record.rounds += 1;
  await link({ state: "connecting" });
  await link({ state: "live" });

  expect(root.querySelectorAll(".round:not(.call .round)")).toHaveLength(record.rounds);
});

test("the head tells the round as it is, and how the run ended as soon as it has", () => {
  const head = () => [...find("header").children].map((part) => part.textContent).slice(0, 3);
  expect(head()).toEqual(["●", "Running", "round 3"]);

  send({ op: "set", run_id: "root", fields: { rounds: 4 } });
  expect(head()).toEqual(["●", "Running", "round 4"]);
  send({ op: "set", run_id: "root", fields: { stop_reason: "stop" } });
  expect(head()).toEqual(["✓", "Done", "4 rounds"]);
});
