/** How each block of a message, and each output of a function, is drawn. */

import { details, h, image } from "./dom";
import type { Block, MultilineText, Output, ToolCall } from "./record";
import { LINE, oneLine } from "./text";
import { drawText, drawValue } from "./values";

export function drawBlock(block: Exclude<Block, ToolCall>, speaker: string): Node {
  switch (block.kind) {
    case "text":
      return h("div", { class: "text" }, block.text);
    case "thinking":
      if (block.redacted) return h("p", { class: "note" }, "The model's reasoning was sent encrypted.");
      // Some models sign their reasoning and say nothing of it.
      if (!block.thinking.trim()) return document.createTextNode("");
      return details(
        "thinking",
        [h("span", {}, "Reasoning"), h("span", { class: "brief" }, oneLine(block.thinking, 2 * LINE))],
        () => [h("div", { class: "text" }, block.thinking)],
      );
    case "image":
      return image(block.mime_type, block.data, `Image from ${speaker}`);
    case "server":
      return details(
        "server",
        [h("code", {}, oneLine(block.name)), h("span", { class: "brief" }, "run by the provider")],
        () => [drawValue(block.data)],
      );
  }
}

export function drawOutput(output: Output, speaker: string): Node {
  switch (output.output_type) {
    case "stream":
      return h("pre", { class: output.name }, joined(output.text));
    case "error":
      return h("pre", { class: "stderr" }, `${output.ename}: ${output.evalue}`);
    case "display_data":
    case "execute_result":
      return drawData(output.data, speaker);
  }
}

function drawData(data: Record<string, unknown>, speaker: string): Node {
  const type = ["image/png", "image/jpeg", "image/gif", "image/webp"].find((type) => type in data);
  return type
    ? image(type, joined(data[type] as MultilineText), `Figure from ${speaker}`)
    : drawText(joined((data["text/plain"] ?? "(no text)") as MultilineText));
}

export function pretty(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

function joined(text: MultilineText): string {
  return typeof text === "string" ? text : text.join("");
}
