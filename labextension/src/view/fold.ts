/** What can be opened and closed. What is in it is made when it is opened: closed, it costs a line. */

/** What makes the body of a fold. */
const bodies = new WeakMap<Element, () => Node[]>();
/** A person has opened or closed these: then they stay that way. */
const touched = new WeakSet<Element>();

/** Makes a fold of `element`, which holds its summary and nothing else. */
export function makeFold(element: HTMLDetailsElement, body: () => Node[], isOpen: boolean): void {
  bodies.set(element, body);
  // Not on "toggle", which comes late, and which the page itself fires too.
  element.firstElementChild?.addEventListener("click", (event) => {
    event.preventDefault();
    setOpen(element, !element.open);
  });
  if (isOpen) {
    fill(element);
  }
}

export function isFold(element: Element): element is HTMLDetailsElement {
  return bodies.has(element);
}

/** Opens or closes a fold, which then stays that way. */
export function setOpen(element: HTMLDetailsElement, isOpen: boolean): void {
  touched.add(element);
  if (isOpen) {
    fill(element);
  } else {
    element.open = false;
    clear(element);
  }
}

/** Brings `drawn` to where a person left `old`, of which it is a later state. */
export function settle(old: HTMLDetailsElement, drawn: HTMLDetailsElement): void {
  bodies.set(old, bodies.get(drawn) as () => Node[]);
  if (!touched.has(old) || old.open === drawn.open) {
    return;
  }
  if (old.open) {
    fill(drawn);
  } else {
    drawn.open = false;
    clear(drawn);
  }
}

function fill(element: HTMLDetailsElement): void {
  clear(element);
  element.append(...(bodies.get(element)?.() ?? []));
  element.open = true;
}

function clear(element: HTMLDetailsElement): void {
  while (element.childNodes.length > 1) {
    element.lastChild?.remove();
  }
}
