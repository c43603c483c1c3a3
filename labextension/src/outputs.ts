/** Where a run stands in a notebook, and how it is put there. */

import type { ICodeCellModel } from "@jupyterlab/cells";
import type { IOutput } from "@jupyterlab/nbformat";
import type { NotebookPanel } from "@jupyterlab/notebook";
import type { Bundle } from "./transport";

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

/** Puts the finished run in place of the output that showed it live, where that still does. */
export function replaceOutput(panel: NotebookPanel, runId: string, { data, metadata }: Bundle): void {
  for (const { outputs } of codeCells(panel)) {
    for (let index = 0; index < outputs.length; index++) {
      if (liveRunId(outputs.get(index).metadata) === runId) {
        outputs.set(index, { output_type: "display_data", data, metadata } as IOutput);
      }
    }
  }
}

export function codeCells(panel: NotebookPanel): ICodeCellModel[] {
  return [...(panel.content.model?.cells ?? [])].filter((cell): cell is ICodeCellModel => cell.type === "code");
}
