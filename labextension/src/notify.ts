/** Tells a person who looks elsewhere that a run has ended, or that it waits for a yes. */

import type { JupyterFrontEndPlugin } from "@jupyterlab/application";
import { Notification } from "@jupyterlab/apputils";
import type { LiveRun } from "./live_run";
import { IRuns, type Runs } from "./runs";
import { goTo, isSeen } from "./sight";
import { waitingCalls } from "./view/activity";
import type { Run } from "./view/record";
import { oneLine } from "./view/text";

export const notifyPlugin: JupyterFrontEndPlugin<void> = {
  id: "op_jupyter:notify",
  description: "Notifies when a run that nobody watches ends or asks.",
  autoStart: true,
  requires: [IRuns],
  activate: (app, runs: Runs) => {
    /** The notifications of what was asked, or nothing where it was seen, by run and call. */
    const asked = new Map<LiveRun, Map<string, string | undefined>>();
    const ended = new WeakSet<LiveRun>();

    const tell = (run: LiveRun, type: Notification.TypeOptions, text: string) => {
      const actions = [{ label: "Show", caption: "Go to its cell", callback: () => void goTo(app, runs, run) }];
      return Notification.emit(text, type, { actions, autoClose: false });
    };

    runs.changed.connect((_, run) => {
      const before = asked.get(run) ?? new Map<string, string | undefined>();
      const calls = run.isOn ? waitingCalls(run.run) : [];
      const now = new Map<string, string | undefined>();
      for (const { key, name } of calls) {
        const isKnown = before.has(key) || isSeen(runs, run, "end");
        const text = `The agent in ${nameOf(run)} waits for your approval of ${oneLine(name)}.`;
        now.set(key, isKnown ? before.get(key) : tell(run, "warning", text));
      }
      for (const [key, id] of before) {
        if (id !== undefined && !now.has(key)) {
          Notification.dismiss(id);
        }
      }
      if (now.size) {
        asked.set(run, now);
      } else {
        asked.delete(run);
      }

      const ending = ended.has(run) ? undefined : endingOf(run);
      if (ending) {
        ended.add(run);
        if (!isSeen(runs, run)) {
          tell(run, ...ending);
        }
      }
    });
  },
};

type Ending = [type: Notification.TypeOptions, text: string];

function endingOf(run: LiveRun): Ending | undefined {
  const agent = `The agent in ${nameOf(run)}`;
  if (run.finished) {
    // Who has stopped it here knows; who has just loaded the page had left it.
    return run.isStopping || run.wasOver ? undefined : howItEnded(agent, run.finished);
  }
  return run.lost === undefined || !run.hasBeenOn ? undefined : ["error", `${agent} has not ended: ${run.lost}`];
}

function howItEnded(agent: string, { stop_reason, error, rounds }: Run): Ending {
  switch (stop_reason) {
    case "error":
      return ["error", `${agent} has failed: ${oneLine(error ?? "the reason is not known.")}`];
    case "aborted":
      return ["info", `${agent} was stopped.`];
    case "length":
      return ["warning", `${agent} was cut off: the answer is as long as the model may make it.`];
    case "max_iterations":
      return ["warning", `${agent} has ended after ${rounds} rounds, the most that it may take.`];
    default:
      return ["success", `${agent} is done.`];
  }
}

function nameOf({ notebook }: LiveRun): string {
  return notebook.localPath.split("/").at(-1) as string;
}
