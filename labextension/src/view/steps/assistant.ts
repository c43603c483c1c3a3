/** What the model said. Its calls have steps of their own, except for those that it is still writing. */

import { drawBlock, pretty } from "../blocks";
import { copyable } from "../copy";
import { h } from "../dom";
import { drawMarkdown } from "../markdown";
import type { AssistantStep } from "../record";

export function drawAssistant(step: AssistantStep, calls: ReadonlySet<string>): HTMLElement {
  const element = h("div", { class: "assistant" });
  for (const block of step.message.content) {
    if (block.kind !== "tool_call") {
      element.append(
        block.kind === "text" ? copyable(drawMarkdown(block), () => block.text) : drawBlock(block, "the model"),
      );
    } else if (!calls.has(block.id)) {
      const next = calls.size ? "Then: " : "";
      const written = `${next}${block.name} ${block.raw_arguments ?? pretty(block.arguments)}`;
      element.append(h("pre", { class: "note" }, written));
    }
  }
  if (step.message.stop_reason === "length") {
    element.append(h("p", { class: "note" }, "The reply was cut off: it reached the length limit."));
  }
  return element;
}
