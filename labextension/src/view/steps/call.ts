/** One call of a function: its arguments, what it wrote, the runs nested in it, and its result. */

import { drawApproved } from "../approval";
import { drawBlock, drawOutput, pretty } from "../blocks";
import { drawTime } from "../clock";
import { copyable } from "../copy";
import { details, h } from "../dom";
import { setOpen } from "../fold";
import type { CallStep, InputBlock, Output } from "../record";
import { LINE, oneLine } from "../text";
import { drawText, drawValue } from "../values";

const STATE: Record<CallStep["state"], [mark: string, word: string]> = {
  running: ["●", "running"],
  waiting: ["?", "waits for approval"],
  ok: ["✓", "done"],
  error: ["✗", "failed"],
  skipped: ["↷", "skipped"],
  not_run: ["–", "not run"],
  interrupted: ["■", "interrupted"],
};
/** What has come to its end as it should takes a line, unless it is a picture. */
const FOLDED: readonly CallStep["state"][] = ["ok", "skipped", "not_run"];

/** `nested` draws the runs in it, and `failed` says what went wrong there; `approval` is asked while it waits. */
export function drawCall(
  step: CallStep,
  nested: () => Node[],
  approval: () => Node[],
  failed: string,
  isLive: boolean,
): HTMLElement {
  const { call, output, result, state } = step;
  const [mark, word] = STATE[state];
  const signature = `(${argumentsOf(step)})`;
  const isWholeInLine = !signature.includes("\n") && signature.length <= LINE && call.raw_arguments === null;
  const summary = [
    h("span", { class: "mark", role: "img", "aria-label": word, title: word }, mark),
    h(
      "span",
      { class: isWholeInLine ? "signature whole" : "signature" },
      h("code", {}, oneLine(call.name)),
      h("span", { class: "brief" }, oneLine(signature)),
    ),
    " ",
    h("span", { class: "brief result" }, oneLine(resultOf(step), 2 * LINE)),
    " ",
    // The mark says it to everybody where all went well.
    ...(state === "ok" ? [] : [h("span", { class: "state", "aria-hidden": "true" }, word)]),
    ...(state === "ok" && failed ? [h("span", { class: "state" }, `${failed} in it`)] : []),
    " ",
    ...drawDuration(step, isLive),
  ];
  const body = () => [
    // What a person says yes to is seen in full.
    ...(isWholeInLine && state !== "waiting" ? [] : [part("Arguments", drawArguments(step))]),
    ...(state === "waiting" ? approval() : []),
    ...drawApproved(step),
    ...(output.length ? [part("Output", ...output.map((item) => drawOutput(item, call.name)))] : []),
    ...nested(),
    ...(result
      ? [part(state === "error" ? "Error" : "Result", ...result.content.map((block) => drawResult(block, step)))]
      : []),
    ...drawTraceback(step),
  ];
  const element = details("call", summary, body, !FOLDED.includes(state) || isPicture(step));
  element.dataset.state = state;
  element.dataset.key = call.id;
  return element;
}

function drawArguments({ call, state }: CallStep): HTMLElement {
  if (call.raw_arguments !== null) {
    return h("pre", {}, call.raw_arguments);
  }
  const isWhole = state === "waiting";
  const named = Object.entries(call.arguments).flatMap(([name, value]) => [
    h("dt", {}, h("code", {}, name)),
    h("dd", {}, typeof value === "string" || isWhole ? drawWhole(value, isWhole) : drawValue(value)),
  ]);
  return named.length ? h("dl", { class: "arguments" }, ...named) : h("p", { class: "note" }, "none");
}

function drawWhole(value: unknown, isWhole: boolean): HTMLElement {
  const element = h("pre", {}, pretty(value));
  for (const middle of isWhole ? element.querySelectorAll("details") : []) {
    setOpen(middle, true);
  }
  return element;
}

function drawResult(block: InputBlock, { call }: CallStep): Node {
  return block.kind === "text" ? copyable(drawText(block.text), () => block.text) : drawBlock(block, call.name);
}

function drawTraceback({ result }: CallStep): Node[] {
  const traceback = result?.details?.traceback;
  return traceback ? [details("server", [h("span", {}, "Traceback")], () => [h("pre", {}, traceback)])] : [];
}

/** What did not run took no time. */
function drawDuration({ started, ended, state }: CallStep, isLive: boolean): Node[] {
  return state === "skipped" || state === "not_run" ? [] : drawTime(started, ended, isLive);
}

function argumentsOf({ call }: CallStep): string {
  const named = Object.entries(call.arguments).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return call.raw_arguments ?? named.join(", ");
}

function resultOf({ result }: CallStep): string {
  return result?.content.map((block) => (block.kind === "text" ? block.text : "[image]")).join(" ") ?? "";
}

function isPicture({ result, output }: CallStep): boolean {
  return Boolean(result?.content.some(({ kind }) => kind === "image")) || output.some(drawsImage);
}

function drawsImage(output: Output): boolean {
  return "data" in output && Object.keys(output.data).some((type) => type.startsWith("image/"));
}

function part(name: string, ...body: Node[]): HTMLElement {
  const label = h("span", { class: "label" }, name);
  return h("div", { class: "part", role: "group", "aria-label": name }, label, h("div", { class: "body" }, ...body));
}
