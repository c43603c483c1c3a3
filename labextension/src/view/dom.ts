/** Elements are made here, and nowhere from HTML: whatever a model or a function says becomes text. */

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

export function details(className: string, summary: (Node | string)[], ...body: Node[]): HTMLDetailsElement {
  return h("details", { class: className }, h("summary", {}, ...summary), ...body);
}

/** An image from base64, of either alphabet: Python writes the one for URLs, which a data URL does not take. */
export function image(mimeType: string, base64: string, alt: string): HTMLImageElement {
  const data = base64.replaceAll("-", "+").replaceAll("_", "/").replaceAll("\n", "");
  return h("img", { src: `data:${mimeType};base64,${data}`, alt });
}
