/** Keeps what is drawn up to date with a run that goes on, step by step. */

import { nestedIn, waitingCalls } from "./activity";
import { setNow, startClock } from "./clock";
import { Controls } from "./controls";
import { isFold, setOpen } from "./fold";
import { follow } from "./follow";
import { morph } from "./morph";
import type { Run, Step } from "./record";
import { drawRun, findStep, redrawRun } from "./run";
import { Store } from "./store";
import type { Op, Transport } from "./transport";

/** Milliseconds before a snapshot that did not come is asked for again. */
const RETRY = 1000;

export function mountLive(root: ShadowRoot, element: Element, run: Run, transport: Transport): { end(): void } {
  const store = new Store(run);
  const controls = new Controls(transport, redraw);
  let ended = false;
  let refreshing = false;
  /** The calls that wait, and were shown. */
  let shown: string[] = [];

  function redraw(): void {
    if (!ended) {
      inPlace(() => morph(element, drawRun(store.run, controls)));
    }
  }

  /** Opens what hides a call that has begun to wait for a person's yes; who closes it again is let. */
  function showWaiting(): void {
    const waiting = waitingCalls(store.run).map(({ key }) => key);
    if (waiting.some((key) => !shown.includes(key))) {
      openTo(element, store.run);
    }
    shown = waiting;
  }

  function redrawChanged(ops: Op[]): void {
    inPlace(() => {
      for (const [run, steps] of changedSteps(store, ops)) {
        const place = [...root.querySelectorAll<HTMLElement>(".run")].find(({ dataset }) => dataset.run === run.run_id);
        if (place) {
          redrawRun(place, run, steps, controls);
        }
      }
    });
  }

  /** Brings the page up to date by `draw`, and leaves the reader at their place. */
  function inPlace(draw: () => void): void {
    follow(controls.element, () => {
      keepFocus(root, draw);
      showWaiting();
      controls.update(store.run);
    });
  }

  async function refresh(): Promise<void> {
    if (refreshing) {
      return;
    }
    refreshing = true;
    while (!ended && store.isLost && ["live", "watching"].includes(transport.link.state)) {
      try {
        const snapshot = await transport.snapshot();
        setNow(snapshot.time);
        store.reset(snapshot);
        redraw();
      } catch {
        // Asked for again below.
      }
      if (store.isLost) {
        await new Promise((resolve) => setTimeout(resolve, RETRY));
      }
    }
    refreshing = false;
  }

  const stopClock = startClock(root);
  root.append(controls.element);
  redraw();
  transport.connect({
    onLink() {
      // What was sent before the line stood, or while it was down, is missing.
      store.lose();
      redraw();
      void refresh();
    },
    onBatches(batches) {
      if (!ended) {
        redrawChanged(store.receive(batches));
        void refresh();
      }
    },
  });

  return {
    end() {
      ended = true;
      stopClock();
      controls.end();
    },
  };
}

/** The steps that `ops` have changed, of each run. A new run changes the call that it stands in. */
function changedSteps(store: Store, ops: Op[]): Map<Run, Set<number>> {
  const changed = new Map<Run, Set<number>>();
  const stepsOf = (run: Run) => changed.get(run) ?? (changed.set(run, new Set()).get(run) as Set<number>);
  for (const op of ops) {
    const run = store.find(op.op === "run" ? (op.parent_id ?? op.run_id) : op.run_id) as Run;
    const steps = stepsOf(run);
    if (op.op === "run") {
      addLast(steps, run, (step) => step.kind === "call" && step.call.id === op.call_id);
    } else if (op.op !== "set") {
      steps.add(op.index);
    }
    if (op.op === "step" && op.step.kind === "call") {
      // The reply shows a call until that has a step of its own.
      const { round } = op.step;
      addLast(steps, run, (step) => step.kind === "assistant" && step.round === round);
    }
  }
  return changed;
}

function addLast(steps: Set<number>, run: Run, isMeant: (step: Step) => boolean): void {
  for (let index = run.steps.length - 1; index >= 0; index--) {
    if (isMeant(run.steps[index] as Step)) {
      steps.add(index);
      return;
    }
  }
}

/** Opens the calls that lead to what goes on, in the run and in those nested in it. */
function openTo(element: Element, run: Run): void {
  const fold = findStep(element, run, run.steps.length - 1);
  const step = run.steps.at(-1);
  if (!fold || !isFold(fold) || step?.kind !== "call") {
    return;
  }
  if (!fold.open) {
    setOpen(fold, true);
  }
  for (const child of nestedIn(run, step)) {
    const nested = [...fold.children].find((one) => one instanceof HTMLElement && one.dataset.run === child.run_id);
    if (nested && child.stop_reason === null) {
      openTo(nested, child);
    }
  }
}

/** When what has the focus goes away, the call that it stood in gets it. */
function keepFocus(root: ShadowRoot, draw: () => void): void {
  const focused = root.activeElement;
  const call = focused?.closest(".call");
  draw();
  if (focused && !focused.isConnected) {
    call?.querySelector("summary")?.focus({ preventScroll: true });
  }
}
