import { expect, test, vi } from "vitest";
import { run } from "./fixtures";
import {
  box,
  call,
  el,
  find,
  link,
  record,
  remount,
  root,
  send,
  sent,
  settled,
  status,
  steering,
  step,
  transport,
  type,
  view,
} from "./live_page";

test("what is being typed, its caret and the focus survive every change", async () => {
  box().focus();
  box().value = "half a sen";
  box().setSelectionRange(4, 5);

  send(step(call("a")));
  await link({ state: "live" });

  expect(root.activeElement).toBe(box());
  expect([box().value, box().selectionStart, box().selectionEnd]).toEqual(["half a sen", 4, 5]);
});

test("Enter sends, Shift+Enter and an input method's Enter do not, and the notebook around sees no key", async () => {
  transport.steer.mockResolvedValue("queued");
  const heard = vi.fn();
  document.addEventListener("keydown", heard);

  type("first", { key: "Enter", shiftKey: true });
  type("first", { key: "Enter", isComposing: true });
  expect(transport.steer).not.toHaveBeenCalled();
  const event = type("first");
  type("  ");

  expect(transport.steer.mock.calls).toEqual([["first"]]);
  expect(event.defaultPrevented).toBe(true);
  expect(heard).not.toHaveBeenCalled();
  document.removeEventListener("keydown", heard);
});

test("the notebook's shortcuts are off in the box, and only there", () => {
  box().focus();
  expect(el.hasAttribute("data-lm-suppress-shortcuts")).toBe(true);
  box().blur();
  expect(el.hasAttribute("data-lm-suppress-shortcuts")).toBe(false);
});

test("Escape leaves the box, to the cell around where there is one", () => {
  el.remove();
  const cell = document.body.appendChild(document.createElement("div"));
  cell.tabIndex = -1;
  cell.append(el);
  box().focus();

  type("draft", { key: "Escape" });

  expect(document.activeElement).toBe(cell);
  expect(box().value).toBe("draft");
  cell.replaceWith(el);
});

test("a message is shown as queued, and then in which round it was delivered", async () => {
  let answer: (state: "queued") => void = () => undefined;
  transport.steer.mockReturnValue(
    new Promise((resolve) => {
      answer = resolve;
    }),
  );
  type("Use the other file");
  expect(sent()).toEqual(["Use the other file sending"]);
  expect(box().value).toBe("");
  answer("queued");
  await settled();
  expect(sent()).toEqual(["Use the other file queued"]);

  send({ op: "set", run_id: "root", fields: { queued: [steering("Use the other file")] } });
  expect(sent()).toEqual(["Use the other file queued"]);
  send({ op: "set", run_id: "root", fields: { queued: [], rounds: record.rounds + 1 } });
  send(step({ kind: "user", round: record.rounds + 1, message: steering("Use the other file") }));
  expect(sent()).toEqual([`Use the other file delivered in round ${record.rounds + 1}`]);
});

test("the same text sent twice is two messages", async () => {
  transport.steer.mockResolvedValue("queued");
  type("go on");
  type("go on");
  await settled();
  send({ op: "set", run_id: "root", fields: { queued: [steering("go on")] } });

  expect(sent()).toEqual(["go on queued", "go on queued"]);
});

test("a message that does not arrive says so and why, and is still there when the run is over", async () => {
  transport.steer.mockRejectedValue(new Error("The kernel did not answer within 5 s."));
  type("hello");
  await settled();
  expect(sent()).toEqual(["hello not delivered: The kernel did not answer within 5 s. Take back"]);

  send({ op: "set", run_id: "root", fields: { stop_reason: "stop" } });
  expect(find(".controls").hidden).toBe(false);
  expect(sent()).toEqual(["hello not delivered: The kernel did not answer within 5 s."]);
});

test("Stop says what it waits for", async () => {
  send(step(call("a")));
  transport.stop.mockResolvedValue();

  find("button.stop").click();

  expect(status()).toBe("Stopping: waiting for do_a to return.");
  expect(find<HTMLButtonElement>("button.stop").disabled).toBe(true);
});

test("a Stop that fails says why, and can be tried again", async () => {
  transport.stop.mockRejectedValue(new Error("No answer."));

  find("button.stop").click();
  await settled();

  expect(find("[role=alert]").textContent).toBe("No answer.");
  expect(find<HTMLButtonElement>("button.stop").disabled).toBe(false);
});

test("a call that waits shows its arguments in full, and is approved or denied once", async () => {
  transport.approve.mockResolvedValue();
  send(step(call("a", { state: "waiting" })));
  expect(status()).toBe("Waiting for your approval of do_a.");
  const card = find<HTMLDetailsElement>('[data-key="a"]');
  expect(card.open).toBe(true);
  expect(card.textContent).toContain("Argumentspathx");

  find(".approve").focus();
  find(".approve").click();
  find(".deny").click();

  expect(transport.approve.mock.calls).toEqual([["root", "a", true]]);
  expect(card.textContent).toContain("Approved.");
  send(step(call("a", { state: "running" })));
  expect(card.querySelector("button")).toBeNull();
  expect(root.activeElement).toBe(card.querySelector("summary"));
});

test("always is given for the call and what it means stands beside the button", async () => {
  transport.approve.mockResolvedValue();
  send(step(call("a", { state: "waiting" })));
  const always = find(".always");
  expect(always.textContent).toBe("Always for this run");
  expect(root.getElementById(always.getAttribute("aria-describedby") ?? "")?.textContent).toBe(
    "Always: this call and every later call of do_a in this run, and in the runs nested in it, without asking again.",
  );

  always.click();
  expect(transport.approve.mock.calls).toEqual([["root", "a", "always"]]);

  send(step(call("a", { state: "ok", approval: "always" })));
  send(step(call("b", { state: "ok", approval: "earlier" }), record.steps.length + 1));
  for (const key of ["a", "b"]) {
    find(`[data-key="${key}"] > summary`).click();
  }
  expect(find('[data-key="a"]').textContent).toContain("Approved by you, with all later calls of do_a in this run.");
  expect(find('[data-key="b"]').textContent).toContain("Not asked: you had approved all calls of do_b in this run.");
});

test("an approval that does not arrive can be given again", async () => {
  transport.approve.mockRejectedValueOnce(new Error("No answer."));
  send(step(call("a", { state: "waiting" })));
  find(".deny").click();
  await settled();

  expect(find("[role=alert]").textContent).toBe("No answer.");
  expect(find<HTMLButtonElement>(".deny").disabled).toBe(false);
});

test("where nothing can be delivered, the box says so before anyone types; Stop still works while the run goes on", async () => {
  await link({ state: "late", reason: "Messages will arrive when the cell ends." });
  expect(status()).toBe("Messages will arrive when the cell ends.");
  expect(box().readOnly).toBe(true);
  expect(root.getElementById(box().getAttribute("aria-describedby") ?? "")?.textContent).toBe(status());
  expect(find<HTMLButtonElement>("button.stop").disabled).toBe(false);

  await link({ state: "gone", reason: "The kernel was restarted: this run is gone." });
  expect(status()).toBe("The kernel was restarted: this run is gone.");
  expect(find<HTMLButtonElement>("button.stop").disabled).toBe(true);
});

test("an unknown run has no buttons, and says that it is no longer going on", async () => {
  remount();
  await link({ state: "gone", reason: "This run is no longer going on." });

  expect(status()).toBe("This run is no longer going on.");
  expect(find("button.stop").hidden && find("textarea").parentElement?.hidden).toBe(true);
});

test("a draft that was not sent when the run ended is kept", () => {
  box().value = "half a sen";
  view.update(run("everything"));

  expect(find(".controls").hidden).toBe(false);
  expect(box().value).toBe("half a sen");
  expect(status()).toBe("The run has ended.");
});
