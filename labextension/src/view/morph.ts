/** Makes what is on the page look like what was drawn anew, and touches nothing else: the reader's place is kept. */

import { adoptText } from "./copy";
import { isFold, settle } from "./fold";

export function morph(old: Element, drawn: Element): void {
  if (isFold(old) && isFold(drawn)) {
    settle(old, drawn);
  }
  adoptText(old, drawn);
  morphAttributes(old, drawn);
  let next = old.firstChild;
  for (const child of [...drawn.childNodes]) {
    const match = findMatch(next, child);
    if (!match) {
      old.insertBefore(child, next);
      continue;
    }
    // What was left out in the drawing stood before its match.
    while (next !== match) {
      next = removed(next as ChildNode);
    }
    next = match.nextSibling;
    if (match instanceof Element) {
      morph(match, child as Element);
    } else {
      morphText(match as Text, child as Text);
    }
  }
  while (next) {
    next = removed(next);
  }
}

function removed(node: ChildNode): ChildNode | null {
  const next = node.nextSibling;
  node.remove();
  return next;
}

function findMatch(from: ChildNode | null, drawn: ChildNode): ChildNode | null {
  for (let node = from; node; node = node.nextSibling) {
    if (isSame(node, drawn)) {
      return node;
    }
  }
  return null;
}

/** Whether both show the same thing, in two states of it. */
function isSame(a: ChildNode, b: ChildNode): boolean {
  if (!(a instanceof Element && b instanceof Element)) {
    return a.nodeType === b.nodeType;
  }
  return ["class", "aria-label", "data-key"].every((name) => a.getAttribute(name) === b.getAttribute(name))
    ? a.tagName === b.tagName
    : false;
}

function morphAttributes(old: Element, drawn: Element): void {
  for (const { name } of [...old.attributes]) {
    if (!drawn.hasAttribute(name)) {
      old.removeAttribute(name);
    }
  }
  for (const { name, value } of drawn.attributes) {
    if (old.getAttribute(name) !== value) {
      old.setAttribute(name, value);
    }
  }
}

/** Text that has grown keeps its node and what is selected in it. */
function morphText(old: Text, drawn: Text): void {
  if (drawn.data.startsWith(old.data)) {
    if (drawn.length > old.length) {
      old.appendData(drawn.data.slice(old.length));
    }
  } else {
    old.data = drawn.data;
  }
}
