/** The line to a run where a page reaches no kernel but has the widget's model: changes come, and nothing can be sent. */

import type { AnyModel } from "@anywidget/types";
import type { Bundle } from "./transport";
import type { Run } from "./view/record";
import type { Batch, Link, Listener, Snapshot, Transport } from "./view/transport";

/** What the kernel keeps in the widget. */
export interface State {
  run: Run;
  live: { run_id: string; seq: number };
}

type FromKernel = { batches: Batch[] } | { ended: true; bundle: Bundle };

export class ModelTransport implements Transport {
  readonly link: Link = {
    state: "watching",
    reason: "This front end sends no messages while a cell runs; the notebook's own interrupt button stops the run.",
  };
  #model: AnyModel<State>;
  #onEnd: (bundle: Bundle) => void;
  #listener: Listener | undefined;

  constructor(model: AnyModel<State>, onEnd: (bundle: Bundle) => void) {
    this.#model = model;
    this.#onEnd = onEnd;
  }

  connect(listener: Listener): void {
    this.#listener = listener;
    this.#model.on("msg:custom", this.#onMessage);
    this.#model.on("change:live", this.#onSnapshot);
    this.#onSnapshot();
  }

  steer = cannotSend;
  stop = cannotSend;
  approve = cannotSend;

  async snapshot(): Promise<Snapshot> {
    return { run: this.#model.get("run"), seq: this.#model.get("live").seq };
  }

  dispose = (): void => {
    this.#model.off("msg:custom", this.#onMessage);
    this.#model.off("change:live", this.#onSnapshot);
  };

  finish = this.dispose;

  #onSnapshot = (): void => this.#listener?.onLink(this.link);

  #onMessage = (message: FromKernel): void => {
    if ("batches" in message) {
      this.#listener?.onBatches(message.batches);
    } else {
      this.#onEnd(message.bundle);
    }
  };
}

async function cannotSend(): Promise<never> {
  throw new Error("This front end sends no messages.");
}
