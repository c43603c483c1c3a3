/** What the person said: the prompt, or a message typed while the run was on. */

import { drawBlock } from "../blocks";
import { details, h } from "../dom";
import type { InputBlock, UserMessage } from "../record";
import { LINE, oneLine } from "../text";

const WHEN: Record<UserMessage["source"], string> = { user: "", steering: "while it ran", follow_up: "follow-up" };

/** `note` says what became of the message, where it did not reach the model. */
export function drawUserMessage(message: UserMessage, note = ""): HTMLElement {
  const about = [WHEN[message.source], note].filter(Boolean).join(", ");
  const said = drawSaid(message);
  return h(
    "div",
    { class: "user" },
    h("span", { class: "gutter" }, "You"),
    h("div", { class: "said" }, ...said, ...(about ? [h("span", { class: "note" }, about)] : [])),
  );
}

function drawSaid({ content, source }: UserMessage): Node[] {
  const whole = () => content.map((block) => drawBlock(block, "you"));
  const text = content.map(textOf).join(" ");
  // The question stands in the cell above.
  return source === "user" && (text.length > LINE || text.includes("\n"))
    ? [details("prompt", [h("span", {}, oneLine(text, 2 * LINE))], whole)]
    : whole();
}

function textOf(block: InputBlock): string {
  return block.kind === "text" ? block.text : "[image]";
}
