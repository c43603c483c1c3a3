/// <reference types="vite/client" />
/** The runs that pytest and vitest share, by name. */

import type { Run } from "../src/view/record";

const files = import.meta.glob<Run>("../../tests/fixtures/runs/*.json", { eager: true, import: "default" });

export const runs: Record<string, Run> = Object.fromEntries(
  Object.entries(files).map(([path, run]) => [path.replace(/.*\/|\.json$/g, ""), run]),
);

export function run(name: string): Run {
  const found = runs[name];
  if (!found) {
    throw new Error(`There is no fixture named ${name}`);
  }
  return structuredClone(found);
}
