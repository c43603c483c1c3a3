import { expect, test } from "vitest";
import { run } from "./fixtures";
import {
  box,
  call,
  el,
  find,
  link,
  remount,
  root,
  send,
  sent,
  settled,
  step,
  transport,
  type,
  view,
} from "./live_page";

async function press(key: string, init: KeyboardEventInit = {}): Promise<void> {
  type(box().value, { key, ...init });
  await settled();
}

test("the arrow keys bring back what was sent, also in an earlier run of the page, and then what was being typed", async () => {
  transport.steer.mockResolvedValue("queued");
  type("first");
  type("second\nof two lines");
  type("second\nof two lines");
  remount();
  await link({ state: "live" });
  box().value = "half a sen";

  await press("ArrowUp");
  expect(box().value).toBe("second\nof two lines");
  await press("ArrowUp");
  expect(box().value).toBe("first");
  box().value = "first, changed";
  await press("ArrowDown");
  await press("ArrowDown");
  expect(box().value).toBe("half a sen");
  await press("ArrowDown");
  expect(box().value).toBe("half a sen");
  await press("ArrowUp");
  await press("ArrowUp");
  expect(box().value).toBe("first, changed");
});

test("an arrow key that moves the cursor to another line, selects, or belongs to an input method does only that", async () => {
  transport.steer.mockResolvedValue("queued");
  type("sent before");
  box().value = "two\nlines";

  box().setSelectionRange(6, 6);
  type(box().value, { key: "ArrowUp" });
  box().setSelectionRange(2, 2);
  await settled();
  expect(box().value).toBe("two\nlines");
  await press("ArrowUp", { shiftKey: true });
  await press("ArrowUp", { isComposing: true });
  expect(box().value).toBe("two\nlines");
});

test("what a notebook was told is not brought back in another", async () => {
  transport.steer.mockResolvedValue("queued");
  type("for the first");
  const other = document.body.appendChild(document.createElement("div"));
  other.className = "jp-Notebook";
  other.append(el);
  await press("ArrowUp");
  expect(box().value).toBe("");
  document.body.append(el);
  other.remove();
});

test("the box has a line for each line of the text, where a browser does not see to that", () => {
  box().value = "one\ntwo\nthree";
  box().dispatchEvent(new Event("input"));
  expect(box().rows).toBe(3);
});

test("the keys of an input method send nothing and leave nothing", () => {
  box().focus();
  type("文", { key: "Escape", isComposing: true });
  type("文", { key: "Enter", keyCode: 229 } as KeyboardEventInit);
  expect(root.activeElement).toBe(box());
  expect(transport.steer).not.toHaveBeenCalled();
});

test("a message that was not delivered is taken back into the box, before what is being typed", async () => {
  transport.steer.mockRejectedValueOnce(new Error("No answer."));
  type("only 2013");
  await settled();
  box().value = "and only JFK";

  find('[aria-label="Take back: only 2013"]').click();

  expect(box().value).toBe("only 2013\nand only JFK");
  expect(root.activeElement).toBe(box());
  expect(sent()).toEqual([]);
});

test("a message that was not delivered and is sent again stands there once", async () => {
  transport.steer.mockRejectedValueOnce(new Error("No answer.")).mockResolvedValue("queued");
  type("only 2013");
  await settled();
  await press("ArrowUp");
  type(box().value);
  await settled();
  expect(sent()).toEqual(["only 2013 queued"]);
});

test("a run that ends keeps the keys of somebody who types from the notebook, until they leave", async () => {
  box().focus();
  send({ op: "set", run_id: "root", fields: { stop_reason: "stop" } });
  view.update(run("everything"));

  expect(root.activeElement?.textContent).toBe("The run has ended.");
  expect(find(".controls").hidden).toBe(false);
  (root.activeElement as HTMLElement).blur();
  await settled();
  expect(find(".controls").hidden).toBe(true);
});

test("a Stop by keyboard keeps the place", () => {
  send(step(call("a")));
  transport.stop.mockResolvedValue();
  find("button.stop").focus();
  find("button.stop").click();
  expect(root.activeElement?.textContent).toBe("Stopping: waiting for do_a to return.");
});
