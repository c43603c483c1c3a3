/** A button that puts text into the clipboard, where the page may use that. */

import { button, h } from "./dom";

/** Milliseconds for which the button says what it has done. */
const SAID = 2000;

/** `element` with a button that copies what `text` returns. */
export function copyable(element: HTMLElement, text: () => string): HTMLElement {
  return h("div", { class: "copyable" }, element, ...(navigator.clipboard ? [copyButton(text)] : []));
}

function copyButton(text: () => string): HTMLButtonElement {
  const element = button("copy", "Copy", async () => {
    const said = await navigator.clipboard.writeText(text()).then(
      () => "Copied",
      () => "Not copied",
    );
    element.textContent = said;
    setTimeout(() => {
      element.textContent = "Copy";
    }, SAID);
  });
  element.setAttribute("aria-live", "polite");
  return element;
}
