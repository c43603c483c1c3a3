/** A run, round by round, and how it ended. A nested run is drawn like any other. */

import { h } from "./dom";
import { drawHead } from "./head";
import { morph } from "./morph";
import type { CallStep, Run, Step } from "./record";
import { drawAssistant } from "./steps/assistant";
import { drawCall } from "./steps/call";
import { drawRetry } from "./steps/retry";
import { drawUserMessage } from "./steps/user";

/** What is drawn only while a person can reach into the run. */
export interface Live {
  /** Asks whether the call may run. */
  drawApproval(run: Run, step: CallStep): Node[];
}

export function drawRun(run: Run, live?: Live, label = "Agent run"): HTMLElement {
  const element = h("article", { class: "run", "aria-label": label });
  if (run.run_id) {
    element.dataset.run = run.run_id;
  }
  const rounds = Array.from({ length: run.rounds }, (_, index) => drawRound(index + 1));
  run.steps.forEach((step, index) => {
    rounds[step.round - 1]?.append(drawStep(run, index, live));
  });
  element.append(drawHead(run, live !== undefined), ...rounds, drawEnding(run, live));
  return element;
}

/** Brings what is on the page up to date with `run`, of which only the steps numbered in `changed` have changed. */
export function redrawRun(element: Element, run: Run, changed: Iterable<number>, live?: Live): void {
  const head = element.firstElementChild as Element;
  const ending = element.lastElementChild as Element;
  const drawn = element.childElementCount - 2;
  for (let round = drawn + 1; round <= run.rounds; round++) {
    ending.before(drawRound(round));
  }
  for (const index of changed) {
    redrawStep(element, run, index, live);
  }
  morph(head, drawHead(run, live !== undefined));
  morph(ending, drawEnding(run, live));
}

function redrawStep(element: Element, run: Run, index: number, live?: Live): void {
  const drawn = drawStep(run, index, live);
  // The first child is the head.
  const round = element.children[(run.steps[index] as Step).round];
  const old = [...(round?.children ?? [])].find(
    (step) => step instanceof HTMLElement && step.dataset.step === `${index}`,
  );
  if (old?.tagName === drawn.tagName) {
    morph(old, drawn);
  } else if (old) {
    old.replaceWith(drawn);
  } else {
    round?.append(drawn);
  }
}

function drawRound(round: number): HTMLElement {
  const name = `Round ${round}`;
  return h("section", { class: "round", role: "group", "aria-label": name }, h("span", { class: "round-name" }, name));
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
      return drawCall(step, nestedRuns(run, step, live), live?.drawApproval(run, step) ?? []);
    case "retry":
      return drawRetry(step);
  }
}

function callsOf(run: Run, round: number): Set<string> {
  return new Set(run.steps.flatMap((step) => (step.kind === "call" && step.round === round ? [step.call.id] : [])));
}

function nestedRuns(run: Run, { call }: CallStep, live?: Live): Node[] {
  return (run.children[call.id] ?? []).map((child) => drawRun(child, live, `Run nested in ${call.name}`));
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
