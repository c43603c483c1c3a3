/** A page that is reloaded, or a second one, while a run goes on that the notebook's file does not hold yet. */

import type { JupyterFrontEndPlugin } from "@jupyterlab/application";
import type { ISessionContext } from "@jupyterlab/apputils";
import type { IOutput } from "@jupyterlab/nbformat";
import { INotebookTracker, type NotebookPanel } from "@jupyterlab/notebook";
import { codeCells, isAgentCell } from "./cells";
import type { KernelConnection } from "./kernel_messages";
import { type LiveRun, NOTHING_YET } from "./live_run";
import { type Metadata, MIME_TYPE, runIdOf } from "./outputs";
import { IRuns, type Runs } from "./runs";

export const reattachPlugin: JupyterFrontEndPlugin<void> = {
  id: "op_jupyter:reattach",
  description: "Shows a run that goes on in the kernel, also where the notebook's file does not hold it yet.",
  autoStart: true,
  requires: [INotebookTracker, IRuns],
  activate: (_app, tracker: INotebookTracker, runs: Runs) => {
    tracker.forEach((panel) => void reattach(panel, runs));
    tracker.widgetAdded.connect((_, panel) => void reattach(panel, runs));
  },
};

async function reattach({ context }: NotebookPanel, runs: Runs): Promise<void> {
  await context.ready;
  if (codeCells(context).some((cell) => isAgentCell(cell.sharedModel.source))) {
    runs.ask(context, await kernelOf(context.sessionContext), showRun);
  }
}

function kernelOf(context: ISessionContext): Promise<KernelConnection> {
  return new Promise((resolve) => {
    const check = () => {
      const kernel = context.session?.kernel;
      if (kernel) {
        context.kernelChanged.disconnect(check);
        resolve(kernel);
      }
    };
    context.kernelChanged.connect(check);
    check();
  });
}

/** Gives the cell of the run an output, in which the run then draws itself; nothing makes room for one that has ended. */
function showRun({ notebook, runId, cellId, wasOver }: LiveRun): void {
  const { outputs } = codeCells(notebook).find(({ id }) => id === cellId) ?? {};
  const isShown = outputs?.toJSON().some(({ metadata }) => runIdOf((metadata ?? {}) as Metadata) === runId);
  if (outputs && !isShown && !(wasOver && outputs.length)) {
    const live = { [MIME_TYPE]: { live: { run_id: runId, seq: 0 } } };
    outputs.clear();
    outputs.add({
      output_type: "display_data",
      data: { [MIME_TYPE]: NOTHING_YET },
      metadata: live,
    } as unknown as IOutput);
  }
}
