/** A run, round by round, and how it ended. A nested run is drawn like any other. */

import { nestedIn } from "./activity";
import { failures } from "./amounts";
import { details, h } from "./dom";
import { drawHead, headline } from "./head";
import { morph } from "./morph";
import type { CallStep, Run, Step } from "./record";
import { drawRounds, findRound, growRounds, leftOut, sayLeftOut } from "./rounds";
import { drawAssistant } from "./steps/assistant";
import { drawCall } from "./steps/call";
import { drawRetry } from "./steps/retry";
import { drawUserMessage } from "./steps/user";

/** What is drawn only while a person can reach into the run. */
export interface Live {
  /** Asks whether the call may run. */
  drawApproval(run: Run, step: CallStep): Node[];
  /** Nobody knows any more how the run stands. */
  readonly isGone: boolean;
}

/** A nested run of more rounds is a line once it has ended; so is a shorter one that is not the only one in its call. */
const LONG = 10;

export function drawRun(run: Run, live?: Live, label = "Agent run"): HTMLElement {
  const element = h("article", { class: "run", "aria-label": label });
  if (run.run_id) {
    element.dataset.run = run.run_id;
  }
  element.append(
    drawHead(run, isGoingOn(live)),
    ...drawRounds(run, (round) => drawRound(run, round, live)),
    drawEnding(run, live),
  );
  return element;
}

/** Brings what is on the page up to date with `run`, of which only the steps numbered in `changed` have changed. */
export function redrawRun(element: Element, run: Run, changed: Iterable<number>, live?: Live): void {
  growRounds(element, run, (round) => drawRound(run, round, live));
  for (const index of changed) {
    redrawStep(element, run, index, live);
  }
  morph(element.firstElementChild as Element, drawHead(run, isGoingOn(live)));
  morph(element.lastElementChild as Element, drawEnding(run, live));
}

function isGoingOn(live?: Live): boolean {
  return live !== undefined && !live.isGone;
}

function redrawStep(element: Element, run: Run, index: number, live?: Live): void {
  const round = findRound(element, (run.steps[index] as Step).round);
  if (!round) {
    return;
  }
  const drawn = drawStep(run, index, live);
  const old = findStep(element, run, index);
  if (old?.tagName === drawn.tagName) {
    morph(old, drawn);
  } else if (old) {
    old.replaceWith(drawn);
  } else {
    round.append(drawn);
  }
}

/** A step, if it is on the page. */
export function findStep(element: Element, run: Run, index: number): Element | undefined {
  const round = findRound(element, run.steps[index]?.round ?? 0);
  return [...(round?.children ?? [])].find((step) => step instanceof HTMLElement && step.dataset.step === `${index}`);
}

function drawRound(run: Run, round: number, live?: Live): HTMLElement {
  const steps = stepsOf(run, round).map((index) => drawStep(run, index, live));
  const gone = leftOut(run, round, round);
  const isGone = gone !== undefined && !steps.length;
  const element = h(
    "section",
    { class: "round", role: "group", "aria-label": `Round ${round}` },
    h("span", { class: "gutter", "aria-hidden": "true" }, isGone ? "" : String(round)),
    ...steps,
    ...(gone?.[1] === round ? [h("p", { class: "note" }, sayLeftOut(gone))] : []),
  );
  element.dataset.round = String(round);
  element.hidden = isGone && gone[1] !== round;
  return element;
}

/** The numbers of the steps of a round, which stand together. */
function stepsOf({ steps }: Run, round: number): number[] {
  let end = steps.length;
  while (end > 0 && (steps[end - 1] as Step).round > round) {
    end--;
  }
  let start = end;
  while (start > 0 && steps[start - 1]?.round === round) {
    start--;
  }
  return Array.from({ length: end - start }, (_, index) => start + index);
}

function drawStep(run: Run, index: number, live?: Live): HTMLElement {
  const element = drawAny(run, run.steps[index] as Step, live);
  element.dataset.step = String(index);
  return element;
}

function drawAny(run: Run, step: Step, live?: Live): HTMLElement {
  switch (step.kind) {
    case "user":
      return drawUserMessage(step.message);
    case "assistant":
      return drawAssistant(step, callsOf(run, step.round));
    case "call":
      return drawCall(
        step,
        () => drawNested(run, step, live),
        () => live?.drawApproval(run, step) ?? [],
        failures(nestedIn(run, step)),
        isGoingOn(live),
      );
    case "retry":
      return drawRetry(step);
  }
}

function callsOf(run: Run, round: number): Set<string> {
  const steps = stepsOf(run, round).map((index) => run.steps[index] as Step);
  return new Set(steps.flatMap((step) => (step.kind === "call" ? [step.call.id] : [])));
}

function drawNested(run: Run, step: CallStep, live?: Live): Node[] {
  const children = nestedIn(run, step);
  return children.map((child) => {
    const draw = () => drawRun(child, live, `Run nested in ${step.call.name}`);
    if (child.stop_reason === null || (children.length === 1 && child.rounds <= LONG)) {
      return draw();
    }
    const element = details("past nested", headline(child), () => [draw()]);
    element.dataset.key = child.run_id ?? "";
    return element;
  });
}

function drawEnding(run: Run, live?: Live): HTMLElement {
  const element = h("div", { class: "ending" });
  // While the run can be steered, the box tells what became of each message.
  if (!live || run.stop_reason !== null) {
    element.append(
      ...run.queued.map((message) => drawUserMessage(message, "queued")),
      ...run.undelivered.map((message) => drawUserMessage(message, "not delivered")),
    );
  }
  if (run.stop_reason === "max_iterations") {
    element.append(h("p", { class: "note" }, `Ended after ${run.rounds} rounds, the most that this run may take.`));
  } else if (run.stop_reason === "aborted") {
    element.append(h("p", { class: "note" }, "Stopped."));
  } else if (run.stop_reason === null && !live) {
    element.append(h("p", { class: "note" }, "The run had not ended when this was saved."));
  }
  if (run.error) {
    element.append(h("p", { class: "error" }, run.error));
  }
  return element;
}
