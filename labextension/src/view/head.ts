/** A run in one line: how it stands, how far it is, which model it asks, what it took. */

import { cost, duration, failures, tokens } from "./amounts";
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

/** What a nested run says that has ended and is folded: what it was asked, and how that went. */
export function headline(run: Run): Node[] {
  const [mark, outcome] = stateOf(run, false);
  const asked = run.steps.find((step) => step.kind === "user");
  const text = asked?.message.content.map((block) => (block.kind === "text" ? block.text : "")).join(" ") ?? "";
  const facts = [outcome, roundsOf(run), failures([run]), duration(run.started, run.ended)].filter(Boolean);
  return [
    h("span", { class: "mark", "aria-hidden": "true" }, mark),
    h("span", { class: "asked" }, oneLine(text)),
    h("span", { class: "note" }, facts.join(" · ")),
  ];
}

function stateOf(run: Run, isLive: boolean): [mark: string, outcome: string] {
  return run.stop_reason ? ENDED[run.stop_reason] : isLive ? ["●", "Running"] : ["–", "Not ended"];
}

function roundsOf({ rounds, stop_reason }: Run): string {
  return stop_reason ? `${rounds} ${rounds === 1 ? "round" : "rounds"}` : rounds ? `round ${rounds}` : "";
}

export function drawHead(run: Run, isLive: boolean): HTMLElement {
  const [mark, outcome] = stateOf(run, isLive);
  const facts = [
    roundsOf(run),
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
    for (const fold of [...(run?.querySelectorAll(isOpen ? FOLDS : `${FOLDS}, .past`) ?? [])].filter(isFold)) {
      if (fold.open !== isOpen && (isOpen || !asks(fold))) {
        setOpen(fold, isOpen);
      }
    }
  });
  return element;
}

/** Whether a person's yes is waited for in it. */
function asks(fold: Element): boolean {
  const waiting = '[data-state="waiting"]';
  return fold.matches(waiting) || fold.querySelector(waiting) !== null;
}
