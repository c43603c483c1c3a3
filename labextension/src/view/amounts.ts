/** Times and numbers as a person reads them. */

import type { Run, Usage } from "./record";

/** From one time to another, in seconds since the epoch; empty where either is not known. */
export function duration(started?: number | null, ended?: number | null): string {
  if (started == null || ended == null) {
    return "";
  }
  const milliseconds = Math.round((ended - started) * 1000);
  if (milliseconds < 1000) {
    return `${milliseconds} ms`;
  }
  if (milliseconds < 9950) {
    return `${(milliseconds / 1000).toFixed(1)} s`;
  }
  const seconds = Math.round(milliseconds / 1000);
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
  return read + written ? `${read.toLocaleString("en")} tokens in, ${written.toLocaleString("en")} out` : "";
}

function usagesOf(run: Run): Usage[] {
  const own = run.steps.flatMap((step) => (step.kind === "assistant" ? (step.message.usage ?? []) : []));
  return [...own, ...Object.values(run.children).flat().flatMap(usagesOf)];
}

function sum(numbers: number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
