/** What a run is doing just now, in words. */

import type { CallStep, Run, ToolCall } from "./record";
import { oneLine } from "./text";

export function activity(run: Run): string {
  const step = run.steps.at(-1);
  switch (step?.kind) {
    case "retry":
      return "waiting to ask the model again";
    case "assistant": {
      const last = step.message.content.at(-1);
      if (!last || step.ended) {
        return "waiting for the model";
      }
      return last.kind === "thinking" ? "the model is reasoning" : "the model is answering";
    }
    case "call":
      if (step.state === "waiting") {
        return `waiting for your approval of ${oneLine(step.call.name)}`;
      }
      if (step.state === "running") {
        const child = nestedUnderWay(run, step);
        return child ? `in ${oneLine(step.call.name)}: ${activity(child)}` : `running ${oneLine(step.call.name)}`;
      }
  }
  return "waiting for the model";
}

/** The function that is running, the innermost one. */
export function functionUnderWay(run: Run): string | null {
  const step = run.steps.at(-1);
  if (step?.kind !== "call" || step.state !== "running") {
    return null;
  }
  const child = nestedUnderWay(run, step);
  return (child && functionUnderWay(child)) ?? oneLine(step.call.name);
}

/** The runs that a call has opened. Its id may be any word, also one that JavaScript has a meaning for. */
export function nestedIn(run: Run, { call }: CallStep): Run[] {
  return Object.hasOwn(run.children, call.id) ? (run.children[call.id] ?? []) : [];
}

function nestedUnderWay(run: Run, step: CallStep): Run | undefined {
  return nestedIn(run, step)
    .filter((child) => child.stop_reason === null)
    .at(-1);
}

/** The calls that wait for a person's yes, in the run and in those nested in it; each with a key of its own. */
export function waitingCalls(run: Run): { key: string; name: string; call: ToolCall }[] {
  const step = run.steps.at(-1);
  if (step?.kind !== "call") {
    return [];
  }
  const { call, state, started } = step;
  if (state === "waiting") {
    return [{ key: `${run.run_id} ${call.id} ${started}`, name: call.name, call }];
  }
  return nestedIn(run, step)
    .filter(({ stop_reason }) => stop_reason === null)
    .flatMap(waitingCalls);
}
