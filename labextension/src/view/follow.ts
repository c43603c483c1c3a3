/** Keeps the end of a run in sight while it grows, and lets the page rest under the hands of whoever reads elsewhere. */

/** Draws, and scrolls by what the end of `element` was moved, where that was in sight. */
export function follow(element: Element, draw: () => void): void {
  const scroller = scrollerOf(element);
  const before = element.getBoundingClientRect().bottom;
  const isFollowed = scroller && isInSight(before, scroller) && !isReading(element);
  draw();
  if (isFollowed) {
    scroller.scrollTop += Math.max(element.getBoundingClientRect().bottom - before, 0);
  }
}

function isInSight(y: number, scroller: Element): boolean {
  const { top, bottom } = scroller.getBoundingClientRect();
  return y > Math.max(top, 0) && y <= Math.min(bottom, window.innerHeight) + 1;
}

/** Whether somebody has marked text in the run, or writes elsewhere. */
function isReading(element: Element): boolean {
  const root = element.getRootNode() as ShadowRoot;
  const active = document.activeElement;
  const writesElsewhere = active !== root.host && active?.matches("input, textarea, [contenteditable=true]");
  return Boolean(writesElsewhere || document.getSelection()?.type === "Range");
}

/** What scrolls when `element` grows. */
function scrollerOf(element: Element): Element | null {
  for (let parent = parentOf(element); parent; parent = parentOf(parent)) {
    if (parent.scrollHeight > parent.clientHeight && /auto|scroll/.test(getComputedStyle(parent).overflowY)) {
      return parent;
    }
  }
  return document.scrollingElement;
}

function parentOf(element: Element): Element | null {
  return element.parentElement ?? (element.getRootNode() as Partial<ShadowRoot>).host ?? null;
}
