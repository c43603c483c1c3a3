/** A button that puts text into the clipboard, where the page may use that. */

import { button, h } from "./dom";

/** Milliseconds for which the button says what it has done. */
const SAID = 2000;

/** `element` with a button that copies what `text` returns. */
export function copyable(element: HTMLElement, text: () => string): HTMLElement {
  return h("div", { class: "copyable" }, element, ...(navigator.clipboard ? [copyButton(text)] : []));
}

/** What each button copies. */
const texts = new WeakMap<Element, () => string>();

/** Lets the button `old` copy what `drawn` would, of which it is an earlier state. */
export function adoptText(old: Element, drawn: Element): void {
  const text = texts.get(drawn);
  if (text) {
    texts.set(old, text);
  }
}

function copyButton(text: () => string): HTMLButtonElement {
  const element = button("copy", "Copy", async () => {
    const said = await navigator.clipboard.writeText(texts.get(element)?.() ?? "").then(
      () => "Copied",
      () => "Not copied",
    );
    element.textContent = said;
    setTimeout(() => {
      element.textContent = "Copy";
    }, SAID);
  });
  element.setAttribute("aria-live", "polite");
  texts.set(element, text);
  return element;
}
