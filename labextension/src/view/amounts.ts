/** Times and numbers as a person reads them. */

import type { Run, Step } from "./record";

/** From one time to another, in seconds since the epoch; empty where either is not known. */
export function duration(started?: number | null, ended?: number | null): string {
  if (started == null || ended == null) {
    return "";
  }
  const exactly = Math.max(ended - started, 0);
  if (exactly < 9.95) {
    return `${exactly.toFixed(1)} s`;
  }
  const seconds = Math.round(exactly);
  const minutes = Math.floor(seconds / 60);
  if (minutes < 1) {
    return `${seconds} s`;
  }
  return minutes < 60 ? `${minutes} min ${seconds % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** What a run and those nested in it took and gave; empty where nobody counted. */
export function tokens(run: Run): string {
  const { read, written } = totalsOf(run);
  return read + written ? `${over(run)}${short(read)} tokens in, ${short(written)} out` : "";
}

/** What a run and those nested in it cost, as far as prices are known; empty where none is. */
export function cost(run: Run): string {
  const { dollars } = totalsOf(run);
  if (!dollars) {
    return "";
  }
  return dollars < 0.01 ? "less than $0.01" : `${over(run)}$${dollars.toFixed(2)}`;
}

/** Of a run that the file does not have whole, what is left can be summed up. */
function over(run: Run): string {
  return isShortened(run) ? "over " : "";
}

function isShortened(run: Run): boolean {
  return Boolean(run.left_out?.length) || Object.values(run.children).flat().some(isShortened);
}

/** How many calls failed in `runs` and in those nested in them, in words; empty where none did. */
export function failures(runs: Run[]): string {
  const failed = runs.reduce((count, run) => count + totalsOf(run).failed, 0);
  return failed ? `${failed} ${failed === 1 ? "call" : "calls"} failed` : "";
}

interface Totals {
  read: number;
  written: number;
  dollars: number;
  failed: number;
}

const NOTHING: Totals = { read: 0, written: 0, dollars: 0, failed: 0 };

/** The totals of the first steps of a run, which do not change any more; of all of it and its nested ones once it ended. */
const summed = new WeakMap<Run, { steps: number; totals: Totals }>();

function totalsOf(run: Run): Totals {
  let { steps, totals } = summed.get(run) ?? { steps: 0, totals: NOTHING };
  if (steps === Number.POSITIVE_INFINITY) {
    return totals;
  }
  for (; steps < run.steps.length - 1; steps++) {
    totals = sum(totals, totalsOfStep(run.steps[steps] as Step));
  }
  summed.set(run, { steps, totals });
  for (const part of [
    ...run.steps.slice(steps).map(totalsOfStep),
    ...Object.values(run.children).flat().map(totalsOf),
  ]) {
    totals = sum(totals, part);
  }
  if (run.stop_reason !== null) {
    summed.set(run, { steps: Number.POSITIVE_INFINITY, totals });
  }
  return totals;
}

function totalsOfStep(step: Step): Totals {
  const usage = step.kind === "assistant" ? step.message.usage : undefined;
  return {
    read: usage ? usage.input + usage.cache_read + usage.cache_write : 0,
    written: usage?.output ?? 0,
    dollars: (step.kind === "assistant" && step.cost) || 0,
    failed: step.kind === "call" && step.state === "error" ? 1 : 0,
  };
}

function sum(a: Totals, b: Totals): Totals {
  return {
    read: a.read + b.read,
    written: a.written + b.written,
    dollars: a.dollars + b.dollars,
    failed: a.failed + b.failed,
  };
}

/** As 950, 9.5k or 1.2M. */
function short(count: number): string {
  const written = count.toLocaleString("en", { notation: "compact", maximumFractionDigits: count < 100_000 ? 1 : 0 });
  return written.replace("K", "k");
}
