/** One call of a function: its arguments, what it wrote, the runs nested in it, and its result. */

import { duration } from "../amounts";
import { drawApproved } from "../approval";
import { drawBlock, drawOutput, pretty } from "../blocks";
import { details, h } from "../dom";
import type { CallStep } from "../record";
import { oneLine } from "../text";

const STATE: Record<CallStep["state"], [mark: string, word: string]> = {
  running: ["●", "running"],
  waiting: ["?", "waits for approval"],
  ok: ["✓", "done"],
  error: ["✗", "failed"],
  skipped: ["–", "skipped"],
  not_run: ["–", "not run"],
  interrupted: ["■", "interrupted"],
};
/** What has come to its end as it should takes a line. */
const FOLDED: readonly CallStep["state"][] = ["ok", "skipped", "not_run"];

/** `approval` is what a person is asked while the call waits for it. */
export function drawCall(step: CallStep, nested: Node[], approval: Node[]): HTMLElement {
  const { call, output, result, state } = step;
  const [mark, word] = STATE[state];
  const element = details(
    "call",
    [
      h("span", { class: "mark", role: "img", "aria-label": word, title: word }, mark),
      h("code", {}, oneLine(call.name)),
      h("span", { class: "brief" }, `(${oneLine(argumentsOf(step))}) `),
      // The mark says it to everybody where all went well.
      ...(state === "ok" ? [] : [h("span", { class: "state", "aria-hidden": "true" }, word)]),
      h("span", { class: "brief result" }, ` ${oneLine(resultOf(step))}`),
      ...drawDuration(step),
    ],
    part("Arguments", h("pre", {}, call.raw_arguments ?? pretty(call.arguments))),
  );
  element.dataset.state = state;
  element.dataset.key = call.id;
  element.open = !FOLDED.includes(state);
  if (state === "waiting") {
    // What a person says yes to is seen in full.
    for (const fold of element.querySelectorAll<HTMLDetailsElement>(".more")) {
      fold.open = true;
    }
    element.append(...approval);
  }
  element.append(...drawApproved(step));
  if (output.length) {
    element.append(part("Output", ...output.map((item) => drawOutput(item, call.name))));
  }
  element.append(...nested);
  if (result) {
    // A table keeps its columns.
    const blocks = result.content.map((block) =>
      block.kind === "text" ? h("pre", {}, block.text) : drawBlock(block, call.name),
    );
    element.append(part("Result", ...blocks));
  }
  return element;
}

/** What did not run took no time. */
function drawDuration({ started, ended, state }: CallStep): Node[] {
  const took = state === "skipped" || state === "not_run" ? "" : duration(started, ended);
  return took ? [h("span", { class: "time" }, ` ${took}`)] : [];
}

function argumentsOf({ call }: CallStep): string {
  const named = Object.entries(call.arguments).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return call.raw_arguments ?? named.join(", ");
}

function resultOf({ result }: CallStep): string {
  return result?.content.map((block) => (block.kind === "text" ? block.text : "[image]")).join(" ") ?? "";
}

function part(name: string, ...body: Node[]): HTMLElement {
  return h("div", { class: "part", role: "group", "aria-label": name }, h("span", { class: "speaker" }, name), ...body);
}
