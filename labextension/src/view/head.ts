/** A run in one line: how it stands, how far it is, which model it asks, what it took. */

import { cost, tokens } from "./amounts";
import { drawTime } from "./clock";
import { button, h } from "./dom";
import { isFold, setOpen } from "./fold";
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

/** What is opened and closed with one click; not the rounds that are long past, of which there may be a thousand. */
const FOLDS = ".call, .thinking, .server";
/** What goes on, and what is asked, stays open. */
const GOES_ON = ":is([data-state=running], [data-state=waiting])";

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
  if (run.steps.some(({ kind }) => kind === "call")) {
    element.append(h("span", { class: "folding" }, foldAll("Collapse all", false), foldAll("Expand all", true)));
  }
  return element;
}

function foldAll(label: string, isOpen: boolean): HTMLElement {
  const element = button("fold", label, () => {
    const run = element.closest(".run");
    for (const fold of [...(run?.querySelectorAll(FOLDS) ?? [])].filter(isFold)) {
      if (fold.open !== isOpen && (isOpen || !fold.matches(GOES_ON))) {
        setOpen(fold, isOpen);
      }
    }
  });
  return element;
}
