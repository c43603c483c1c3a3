/** One call of a function: its arguments, what it wrote, the runs nested in it, and its result. */

import { drawBlock, drawOutput, pretty } from "../blocks";
import { details, h } from "../dom";
import type { CallStep } from "../record";
import { oneLine } from "../text";

const STATE: Record<CallStep["state"], string> = {
  running: "running",
  waiting: "waits for approval",
  ok: "done",
  error: "failed",
  skipped: "skipped",
  not_run: "not run",
  interrupted: "interrupted",
};

/** `approval` is what a person is asked while the call waits for it. */
export function drawCall(step: CallStep, nested: Node[], approval: Node[]): HTMLElement {
  const { call, output, result, state } = step;
  const element = details(
    "call",
    [
      h("code", {}, oneLine(call.name)),
      h("span", { class: "brief" }, `(${oneLine(argumentsOf(step))}) `),
      h("span", { class: "state" }, STATE[state]),
      h("span", { class: "brief result" }, ` ${oneLine(resultOf(step))}`),
    ],
    part("Arguments", h("pre", {}, call.raw_arguments ?? pretty(call.arguments))),
  );
  element.dataset.state = state;
  element.dataset.key = call.id;
  element.open = nested.length > 0 || (state !== "ok" && state !== "skipped");
  if (state === "waiting") {
    // What a person says yes to is seen in full.
    for (const fold of element.querySelectorAll<HTMLDetailsElement>(".more")) {
      fold.open = true;
    }
    element.append(...approval);
  }
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
