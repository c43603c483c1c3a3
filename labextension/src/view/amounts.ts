/** Times and numbers as a person reads them. */

import type { Run, Usage } from "./record";

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
  const usages = usagesOf(run);
  const read = sum(usages.map(({ input, cache_read, cache_write }) => input + cache_read + cache_write));
  const written = sum(usages.map(({ output }) => output));
  return read + written ? `${short(read)} tokens in, ${short(written)} out` : "";
}

function usagesOf(run: Run): Usage[] {
  const own = run.steps.flatMap((step) => (step.kind === "assistant" ? (step.message.usage ?? []) : []));
  return [...own, ...Object.values(run.children).flat().flatMap(usagesOf)];
}

function sum(numbers: number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/** What a run and those nested in it cost, as far as prices are known; empty where none is. */
export function cost(run: Run): string {
  const dollars = sum(costsOf(run));
  if (!dollars) {
    return "";
  }
  return dollars < 0.01 ? "less than $0.01" : `$${dollars.toFixed(2)}`;
}

function costsOf(run: Run): number[] {
  const own = run.steps.flatMap((step) => (step.kind === "assistant" ? (step.cost ?? []) : []));
  return [...own, ...Object.values(run.children).flat().flatMap(costsOf)];
}

/** As 950, 9.5k or 1.2M. */
function short(count: number): string {
  const written = count.toLocaleString("en", { notation: "compact", maximumFractionDigits: count < 100_000 ? 1 : 0 });
  return written.replace("K", "k");
}
