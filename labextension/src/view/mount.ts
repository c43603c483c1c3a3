/** The one way into the view, whatever the host. */

import { h } from "./dom";
import type { Run } from "./record";
import { drawRun } from "./run";
import { STYLE } from "./style";

/** Draws `run` in `el`, in place of what was drawn there before. */
export function mount(el: HTMLElement, run: Run): void {
  const root = el.shadowRoot ?? el.attachShadow({ mode: "open" });
  root.replaceChildren(h("style", {}, STYLE), drawRun(run));
}
