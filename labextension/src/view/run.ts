/** A run, round by round, and how it ended. A nested run is drawn like any other. */

import { h } from "./dom";
import type { Run, Step } from "./record";
import { drawAssistant } from "./steps/assistant";
import { drawCall } from "./steps/call";
import { drawRetry } from "./steps/retry";
import { drawUserMessage } from "./steps/user";

export function drawRun(run: Run, label = "Agent run"): HTMLElement {
  const element = h("article", { class: "run", "aria-label": label });
  for (let round = 1; round <= run.rounds; round++) {
    const steps = run.steps.filter((step) => step.round === round);
    const name = `Round ${round}`;
    const section = h("section", { class: "round", "aria-label": name }, h("span", { class: "round-name" }, name));
    section.append(...steps.map((step) => drawStep(step, steps, run)));
    element.append(section);
  }
  element.append(...ending(run));
  return element;
}

function drawStep(step: Step, round: Step[], run: Run): Node {
  switch (step.kind) {
    case "user":
      return drawUserMessage(step.message);
    case "assistant":
      return drawAssistant(step, new Set(round.flatMap((step) => (step.kind === "call" ? [step.call.id] : []))));
    case "call":
      return drawCall(step, nestedRuns(run, step.call.id, step.call.name));
    case "retry":
      return drawRetry(step);
  }
}

function nestedRuns(run: Run, callId: string, callName: string): Node[] {
  return (run.children[callId] ?? []).map((child) => drawRun(child, `Run nested in ${callName}`));
}

function ending(run: Run): Node[] {
  const lines: Node[] = [
    ...run.queued.map((message) => drawUserMessage(message, "queued")),
    ...run.undelivered.map((message) => drawUserMessage(message, "not delivered")),
  ];
  if (run.stop_reason === "max_iterations") {
    lines.push(h("p", { class: "note" }, `Ended after ${run.rounds} rounds, the most that this run may take.`));
  } else if (run.stop_reason === "aborted") {
    lines.push(h("p", { class: "note" }, "Stopped."));
  }
  if (run.error) {
    lines.push(h("p", { class: "error" }, run.error));
  }
  return lines;
}
