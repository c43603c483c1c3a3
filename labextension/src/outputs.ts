/** Where a run stands in a notebook, and how it is put there. */

import type { IOutput } from "@jupyterlab/nbformat";
import { codeCells, type Notebook } from "./cells";
import type { Bundle } from "./transport";
import type { AssistantMessage, RetryStep, Run, Step, ToolResultMessage } from "./view/record";

export const MIME_TYPE = "application/vnd.op-jupyter.run+json";

export type Metadata = Record<string, unknown>;

/** The id of the run that goes on in an output with this metadata. */
export function liveRunId(metadata: Metadata): string | undefined {
  return ours(metadata)?.live?.run_id;
}

/** The id of the run that an output with this metadata shows, going on or finished. */
export function runIdOf(metadata: Metadata): string | undefined {
  return liveRunId(metadata) ?? ours(metadata)?.run_id;
}

function ours(metadata: Metadata): { run_id?: string; live?: { run_id: string } } | undefined {
  return metadata[MIME_TYPE] as ReturnType<typeof ours>;
}

/** What is not the same at every replay of a run, where the run has it. */
interface Varying {
  run_id?: string;
  model?: string;
  started?: number | null;
  ended?: number | null;
  /** The retries, with the places that they had among all steps. */
  retries?: (RetryStep & { index: number })[];
  steps?: {
    started?: number;
    ended?: number | null;
    time?: number;
    cost?: number | null;
    usage?: AssistantMessage["usage"];
    details?: ToolResultMessage["details"];
  }[];
  children?: Record<string, Varying[]>;
}

/** The run in an output: its data, and in their places the times, model, tokens and retries from its metadata. */
export function runIn({ data, metadata }: Readonly<Bundle>): Run {
  return whole(data[MIME_TYPE] as Run, (metadata[MIME_TYPE] ?? {}) as Varying);
}

function whole(run: Run, { run_id, model, started, ended, retries, steps, children }: Varying): Run {
  const known = Object.entries({ run_id, model, started, ended }).filter(([, value]) => value !== undefined);
  const nested = Object.entries(run.children).map(([id, runs]) => [
    id,
    runs.map((child, index) => whole(child, children?.[id]?.[index] ?? {})),
  ]);
  const all = run.steps.map((step, index) => wholeStep(step, steps?.[index] ?? {}));
  for (const { index, ...retry } of retries ?? []) {
    all.splice(index, 0, retry);
  }
  return { ...run, ...Object.fromEntries(known), steps: all, children: Object.fromEntries(nested) };
}

function wholeStep(step: Step, { usage, details, ...times }: NonNullable<Varying["steps"]>[number]): Step {
  const timed = { ...times, ...step };
  if (timed.kind === "call" && timed.result && details) {
    return { ...timed, result: { ...timed.result, details } };
  }
  return timed.kind === "assistant" && usage ? { ...timed, message: { ...timed.message, usage } } : timed;
}

/** Puts the finished run in place of the output that showed it live, where that still does. */
export function replaceOutput(notebook: Notebook, runId: string, { data, metadata }: Bundle): void {
  for (const { outputs } of codeCells(notebook)) {
    for (let index = 0; index < outputs.length; index++) {
      if (liveRunId(outputs.get(index).metadata) === runId) {
        outputs.set(index, { output_type: "display_data", data, metadata } as IOutput);
      }
    }
  }
}
