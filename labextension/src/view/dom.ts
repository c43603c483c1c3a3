/** Elements are made here, and not from HTML: whatever a model or a function says becomes text. */

import { makeFold } from "./fold";
import { visible, wholeUpTo } from "./text";

/** So many characters are shown at once: a browser takes half a second to lay out a million. The rest is a click away. */
export const LONGEST = 20_000;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, value);
  }
  element.append(...children.flatMap((child) => (typeof child === "string" ? shown(child) : child)));
  return element;
}

/** A fold; `body` makes what is in it when it is opened. */
export function details(
  className: string,
  summary: (Node | string)[],
  body: () => Node[],
  isOpen = false,
): HTMLDetailsElement {
  const element = h("details", { class: className }, h("summary", {}, ...summary));
  makeFold(element, body, isOpen);
  return element;
}

export function button(className: string, label: string, onClick: () => void): HTMLButtonElement {
  const element = h("button", { type: "button", class: className }, label);
  element.addEventListener("click", onClick);
  return element;
}

/** An image from base64, of either alphabet: Python writes the one for URLs, which a data URL does not take. */
export function image(mimeType: string, base64: string, alt: string): HTMLImageElement {
  const data = base64.replaceAll("-", "+").replaceAll("_", "/").replaceAll("\n", "");
  return h("img", { src: `data:${mimeType};base64,${data}`, alt });
}

/** `text` whole, its middle folded away where it is very long. */
function shown(text: string): (string | Node)[] {
  if (text.length <= LONGEST) {
    return [visible(text)];
  }
  const head = wholeUpTo(text, LONGEST / 2);
  const tail = wholeUpTo(text, text.length - LONGEST / 2);
  const summary = `… ${(tail - head).toLocaleString("en")} more characters …`;
  const middle = details("more", [summary], () => [document.createTextNode(visible(text.slice(head, tail)))]);
  return [visible(text.slice(0, head)), middle, visible(text.slice(tail))];
}
