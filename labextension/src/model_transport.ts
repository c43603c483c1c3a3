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

const INTERRUPT = "the notebook's own interrupt button stops the run";

export class ModelTransport implements Transport {
  readonly link: Link = {
    state: "late",
    reason: `This front end sends no messages while a cell runs; ${INTERRUPT}.`,
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

  async steer(): Promise<"undelivered"> {
    return "undelivered";
  }

  async stop(): Promise<void> {
    throw new Error(`Here ${INTERRUPT}.`);
  }

  async approve(): Promise<void> {
    throw new Error("Here the notebook asks for an answer in a line of input.");
  }

  async snapshot(): Promise<Snapshot> {
    return { run: this.#model.get("run"), seq: this.#model.get("live").seq };
  }

  async received(): Promise<void> {}

  dispose = (): void => {
    this.#model.off("msg:custom", this.#onMessage);
    this.#model.off("change:live", this.#onSnapshot);
  };

  #onSnapshot = (): void => this.#listener?.onLink(this.link);

  #onMessage = (message: FromKernel): void => {
    if ("batches" in message) {
      this.#listener?.onBatches(message.batches);
    } else {
      this.#onEnd(message.bundle);
    }
  };
}
