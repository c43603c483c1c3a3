/** What the person said: the prompt, or a message typed while the run was on. */

import { drawBlock } from "../blocks";
import { h } from "../dom";
import type { UserMessage } from "../record";

const SPEAKER: Record<UserMessage["source"], string> = {
  user: "You",
  steering: "You, while it ran",
  follow_up: "Follow-up",
};

export function drawUserMessage(message: UserMessage, note = ""): HTMLElement {
  const speaker = SPEAKER[message.source];
  return h(
    "div",
    { class: "user" },
    h("span", { class: "speaker" }, note ? `${speaker} (${note})` : speaker),
    ...message.content.map((block) => drawBlock(block, "you")),
  );
}
