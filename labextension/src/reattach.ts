/** A page that is reloaded, or a second one, while a run goes on that the notebook's file does not hold yet. */

import type { JupyterFrontEndPlugin } from "@jupyterlab/application";
import type { ISessionContext } from "@jupyterlab/apputils";
import type { IOutput } from "@jupyterlab/nbformat";
import { INotebookTracker, type NotebookPanel } from "@jupyterlab/notebook";
import type { KernelConnection } from "./kernel_messages";
import { codeCells, type Metadata, MIME_TYPE, replaceOutput, runIdOf } from "./outputs";
import { KernelTransport } from "./transport";
import type { Run } from "./view/record";

const NOTHING_YET: Run = {
  tools: [],
  steps: [],
  rounds: 0,
  stop_reason: null,
  error: null,
  queued: [],
  undelivered: [],
  children: {},
};

export const reattachPlugin: JupyterFrontEndPlugin<void> = {
  id: "op_jupyter:reattach",
  description: "Shows a run that goes on in the kernel, also where the notebook's file does not hold it yet.",
  autoStart: true,
  requires: [INotebookTracker],
  activate: (_app, tracker: INotebookTracker) => {
    tracker.forEach((panel) => void reattach(panel));
    tracker.widgetAdded.connect((_, panel) => void reattach(panel));
  },
};

async function reattach(panel: NotebookPanel): Promise<void> {
  await panel.context.ready;
  if (!codeCells(panel).some((cell) => /^\s*%%agent\b/.test(cell.sharedModel.source))) {
    return;
  }
  const transport = new KernelTransport(await kernelOf(panel.sessionContext), null, (bundle) => {
    // Here and not only where it is drawn, since outputs that are folded are not drawn.
    replaceOutput(panel, transport.runId as string, bundle);
    transport.finish();
  });
  transport.connect({
    onLink({ state }) {
      if (state === "live") {
        showRun(panel, transport);
      } else if (state === "gone") {
        transport.dispose();
      }
    },
    onBatches: () => undefined,
  });
  panel.disposed.connect(transport.dispose);
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
function showRun(panel: NotebookPanel, { runId, cellId, isOver }: KernelTransport): void {
  const { outputs } = codeCells(panel).find(({ id }) => id === cellId) ?? {};
  const isShown = outputs?.toJSON().some(({ metadata }) => runIdOf((metadata ?? {}) as Metadata) === runId);
  if (outputs && !isShown && !(isOver && outputs.length)) {
    const live = { [MIME_TYPE]: { live: { run_id: runId, seq: 0 } } };
    outputs.clear();
    outputs.add({
      output_type: "display_data",
      data: { [MIME_TYPE]: NOTHING_YET },
      metadata: live,
    } as unknown as IOutput);
  }
}
