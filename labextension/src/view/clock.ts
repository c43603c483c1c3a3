/** What time it is for the kernel, whose clock may be another than the page's, and what shows how time goes by. */

import { duration } from "./amounts";
import { h } from "./dom";

/** Seconds by which the kernel's clock is ahead of the page's. */
let ahead = 0;

/** In seconds since the epoch. */
export function now(): number {
  return Date.now() / 1000 + ahead;
}

/** Takes the kernel's time, where it is known. */
export function setNow(time?: number): void {
  if (time !== undefined) {
    ahead = time - Date.now() / 1000;
  }
}

/** How long something took; or, while the run goes on, has taken until now, which is then kept up to date. */
export function drawTime(
  started: number | null | undefined,
  ended: number | null | undefined,
  isLive: boolean,
): Node[] {
  const isGoingOn = isLive && started != null && ended == null;
  const text = duration(started, isGoingOn ? now() : ended);
  const element = h("span", { class: "time" }, text);
  if (isGoingOn) {
    element.dataset.since = String(started);
  }
  return text ? [element] : [];
}

/** Keeps the times in `root` up to date, of what goes on; returns what ends that. */
export function startClock(root: ParentNode): () => void {
  const timer = setInterval(() => {
    for (const element of root.querySelectorAll<HTMLElement>("[data-since]")) {
      element.textContent = duration(Number(element.dataset.since), now());
    }
  }, 1000);
  return () => clearInterval(timer);
}
