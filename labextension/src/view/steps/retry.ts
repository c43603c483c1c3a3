/** A request that failed before any output, and was sent again. */

import { h } from "../dom";
import type { RetryStep } from "../record";

export function drawRetry(step: RetryStep): HTMLElement {
  return h("p", { class: "note" }, `Attempt ${step.attempt} failed, next in ${step.delay} s: ${step.reason}`);
}
