/** A run in one line: how it stands, how far it is, which model it asks, what it took. */

import { cost, tokens } from "./amounts";
import { drawTime } from "./clock";
import { h } from "./dom";
import type { Run } from "./record";
import { oneLine } from "./text";

const ENDED: Record<NonNullable<Run["stop_reason"]>, [mark: string, outcome: string]> = {
  stop: ["✓", "Done"],
  tool_use: ["✓", "Done"],
  length: ["–", "Cut off"],
  max_iterations: ["–", "Ended at its cap"],
  aborted: ["■", "Stopped"],
  error: ["✗", "Failed"],
};

export function drawHead(run: Run, isLive: boolean): HTMLElement {
  const [mark, outcome] = run.stop_reason ? ENDED[run.stop_reason] : isLive ? ["●", "Running"] : ["–", "Not ended"];
  const facts = [
    run.stop_reason ? `${run.rounds} ${run.rounds === 1 ? "round" : "rounds"}` : run.rounds && `round ${run.rounds}`,
    run.model && oneLine(run.model),
    ...drawTime(run.started, run.ended, isLive),
    tokens(run),
    cost(run),
  ];
  const element = h(
    "header",
    { class: "head" },
    h("span", { class: "mark", "aria-hidden": "true" }, mark),
    h("span", { class: "outcome" }, outcome),
    ...facts.filter(Boolean).map((fact) => (fact instanceof Node ? fact : h("span", {}, String(fact)))),
  );
  element.dataset.outcome = run.stop_reason ?? "running";
  return element;
}
