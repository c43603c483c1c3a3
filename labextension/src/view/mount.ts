/** The one way into the view, whatever the host. */

import { h } from "./dom";
import { mountLive } from "./live";
import { morph } from "./morph";
import type { Run } from "./record";
import { drawRun } from "./run";
import { STYLE } from "./style";
import type { Transport } from "./transport";

export interface View {
  /** Shows `run` as it is, from now on without the transport. */
  update(run: Run): void;
  /** Puts the cursor where a person writes to the run, where that can be steered. */
  focusBox(): void;
  /** Draws nothing more. */
  dispose(): void;
}

/** Draws `run` in `el`, in place of what was drawn there before; with a transport it is live and can be steered. */
export function mount(el: HTMLElement, run: Run, transport?: Transport): View {
  // Before there is a root, which would hide what the host says of a record that cannot be drawn.
  const element = drawRun(run);
  const root = el.shadowRoot ?? attachRoot(el);
  root.replaceChildren(h("style", {}, STYLE), element);
  const live = transport && mountLive(root, element, run, transport);
  return {
    update(run) {
      live?.end();
      morph(element, drawRun(run));
    },
    focusBox() {
      root.querySelector("textarea")?.focus();
    },
    dispose() {
      live?.end();
    },
  };
}

function attachRoot(el: HTMLElement): ShadowRoot {
  const root = el.attachShadow({ mode: "open" });
  // Jupyter's shortcuts come before any key arrives here: Shift+Enter in the box would run the cell again, and Enter
  // on a button edit it. A click leaves them on, and so do Alt and Shift, with which ours begin.
  const suppress = (isOurs: boolean) => {
    const focused = root.activeElement;
    const isTyped = focused?.matches("textarea, :focus-visible") ?? false;
    el.toggleAttribute("data-lm-suppress-shortcuts", isTyped && !isOurs);
  };
  root.addEventListener("focusin", () => suppress(false));
  root.addEventListener("focusout", () => el.removeAttribute("data-lm-suppress-shortcuts"));
  for (const kind of ["keydown", "keyup"] as const) {
    el.addEventListener(kind, ({ altKey, shiftKey }) => suppress(altKey && shiftKey), { capture: true });
  }
  return root;
}
