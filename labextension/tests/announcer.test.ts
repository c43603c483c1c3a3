import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { call, find, link, record, reply, root, send, settled, step, transport, type } from "./live_page";

const heard = () => [...root.querySelectorAll("[aria-live] p")].map((line) => line.textContent);
const urgent = () => find(".only-heard [role=alert]").textContent;
const set = (fields: object) => send({ op: "set", run_id: "root", fields });

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date", "setTimeout", "clearTimeout"] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Lets what has been said before be long ago. */
function pause(): void {
  vi.advanceTimersByTime(10_000);
  find("[aria-live]").replaceChildren();
}

test("of a hundred calls in a second the last is heard, and of a text that streams in nothing new", () => {
  pause();
  for (let index = 0; index < 100; index++) {
    vi.advanceTimersByTime(10);
    send(step(call(`c${index}`)));
  }
  vi.advanceTimersByTime(4000);
  expect(heard().length).toBeLessThanOrEqual(2);
  expect(heard().at(-1)).toBe(`Round ${record.rounds}. Running do_c99.`);

  pause();
  send(step(reply("The")));
  expect(heard()).toEqual([`Round ${record.rounds}. The model is answering.`]);
  pause();
  const index = record.steps.length;
  for (const text of [" gaps", " are", " few."]) {
    send({ op: "append", run_id: "root", index, block: 0, text });
    vi.advanceTimersByTime(5000);
    expect(heard()).toEqual([]);
  }
});

test("the answer is heard once, when it is whole, without the signs of Markdown", () => {
  send(step(reply("The **gaps** are in\n- cancelled flights")));
  pause();
  set({ stop_reason: "stop" });
  set({ ended: 1 });
  expect(heard()).toEqual(["The run is done. The answer: The gaps are in - cancelled flights"]);
});

test("a question is heard at once, and once", async () => {
  send(step(call("a", { state: "waiting" })));
  expect(urgent()).toBe('do_a waits for your approval: {"path":"x"}');
  find(".only-heard [role=alert]").replaceChildren();
  await Promise.resolve();
  send({ op: "set", run_id: "root", fields: { queued: [] } });
  expect(urgent()).toBe("");
});

test("an error is heard at once", () => {
  set({ stop_reason: "error", error: "The key is wrong." });
  expect(urgent()).toBe("The run failed: The key is wrong.");
});

test("what becomes of a message is heard, and not what became of earlier ones", async () => {
  vi.useRealTimers();
  transport.steer.mockRejectedValueOnce(new Error("No answer.")).mockResolvedValue("queued");
  type("first");
  await settled();
  expect(heard().at(-1)).toBe("Your message: not delivered: No answer.");
  find("[aria-live]").replaceChildren();
  type("second");
  await settled();
  expect(heard()).toEqual(["Your message: queued"]);
  await link({ state: "live" });
  expect(heard()).toEqual(["Your message: queued"]);
});
