/** What a person does to the run that goes on, from anywhere: steer it, stop it, go to it. The keys are in the schema. */

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { ICommandPalette, Notification } from "@jupyterlab/apputils";
import { INotebookTracker } from "@jupyterlab/notebook";
import type { LiveRun } from "./live_run";
import { IRuns, type Runs } from "./runs";
import { goTo, show } from "./sight";

export const STEER = "op-jupyter:steer";
export const STOP = "op-jupyter:stop";
export const JUMP = "op-jupyter:jump";

export const commandsPlugin: JupyterFrontEndPlugin<void> = {
  // The name of the schema, too.
  id: "op_jupyter:commands",
  description: "Commands to steer, stop and find the agent that runs.",
  autoStart: true,
  requires: [INotebookTracker, IRuns],
  optional: [ICommandPalette],
  activate: (app, tracker: INotebookTracker, runs: Runs, palette: ICommandPalette | null) => {
    const here = () => runs.in(tracker.currentWidget);
    const hereOrElsewhere = () => here() ?? runs.goingOn.at(-1);
    const add = (
      id: string,
      label: string,
      caption: string,
      find: typeof here,
      act: (run: LiveRun) => Promise<void>,
    ) => {
      const isEnabled = () => find() !== undefined;
      const execute = async () => {
        const run = find();
        await (run && act(run));
      };
      const describedBy = { args: { type: "object", properties: {} } } as const;
      app.commands.addCommand(id, { label, caption, isEnabled, execute, describedBy });
      palette?.addItem({ command: id, category: "Agent" });
    };
    add(STEER, "Steer the Running Agent", "Write to the agent that runs in this notebook", here, (run) =>
      steer(app, runs, run),
    );
    add(STOP, "Stop the Running Agent", "Stop the agent that runs in this notebook", here, stop);
    add(JUMP, "Go to the Running Agent", "Show the cell in which an agent runs", hereOrElsewhere, (run) =>
      goTo(app, runs, run),
    );

    let enabled = "";
    const update = () => {
      const now = [here(), hereOrElsewhere()].map(Boolean).join();
      if (now !== enabled) {
        enabled = now;
        app.commands.notifyCommandChanged();
      }
    };
    runs.changed.connect(update);
    tracker.currentChanged.connect(update);
  },
};

async function steer(app: JupyterFrontEnd, runs: Runs, run: LiveRun): Promise<void> {
  const cell = await show(app, runs, run);
  if (cell) {
    cell.outputHidden = false;
    run.focusBox();
  }
}

async function stop(run: LiveRun): Promise<void> {
  try {
    await run.stop();
  } catch (error) {
    Notification.error(`The agent was not stopped: ${error instanceof Error ? error.message : error}`);
  }
}
