/** A run that goes on in a kernel: one line to it, for all views of it on the page and for all who ask how it stands. */

import { type ISignal, Signal } from "@lumino/signaling";
import type { Notebook } from "./cells";
import type { KernelConnection } from "./kernel_messages";
import { replaceOutput, runIn } from "./outputs";
import { type Bundle, KernelTransport } from "./transport";
import type { View } from "./view/mount";
import type { Run } from "./view/record";
import { Store } from "./view/store";
import type { Batch, Link, Listener, Snapshot, Transport } from "./view/transport";

export const NOTHING_YET: Run = {
  tools: [],
  steps: [],
  rounds: 0,
  stop_reason: null,
  error: null,
  queued: [],
  undelivered: [],
  children: {},
};

/** Milliseconds before a snapshot that did not come is asked for again. */
const RETRY = 1000;

export class LiveRun {
  readonly notebook: Notebook;
  /** How it ended, where it has and that is known. */
  finished: Run | undefined;
  /** Why nothing more comes of it, where it was lost. */
  lost: string | undefined;
  /** Whether the kernel has ever said that it goes on. */
  hasBeenOn = false;
  /** Whether somebody on this page has asked it to stop. */
  isStopping = false;
  #transport: KernelTransport;
  #listeners = new Set<Listener>();
  #changed = new Signal<this, void>(this);
  #store = new Store(NOTHING_YET);
  #isRefreshing = false;
  #asked: Promise<Snapshot> | undefined;
  #view: View | undefined;
  #wantsFocus = false;
  #isDisposed = false;

  /** With `null` for the run that goes on in the kernel, whichever that is. */
  constructor(notebook: Notebook, kernel: KernelConnection, runId: string | null) {
    this.notebook = notebook;
    this.#transport = new KernelTransport(kernel, runId, (bundle) => this.#onEnd(bundle));
  }

  connect(): void {
    this.#transport.connect({
      onLink: (link) => this.#onLink(link),
      onBatches: (batches) => this.#onBatches(batches),
    });
  }

  /** Emitted whenever anything here has changed. */
  get changed(): ISignal<this, void> {
    return this.#changed;
  }

  get runId(): string | null {
    return this.#transport.runId;
  }

  /** Its cell, as the kernel says. */
  get cellId(): string | undefined {
    return this.#transport.cellId;
  }

  get link(): Link {
    return this.#transport.link;
  }

  /** Whether it had ended in the kernel before the page came to know it. */
  get wasOver(): boolean {
    return this.#transport.isOver;
  }

  get isOn(): boolean {
    const { state } = this.link;
    // Where the kernel hears nothing, it is the output that says that the run goes on.
    const isTaken = this.hasBeenOn || (state === "late" && this.runId !== null);
    return isTaken && !this.finished && this.lost === undefined && !this.#isDisposed;
  }

  /** The record, as far as it is known here. */
  get run(): Run {
    return this.#store.run;
  }

  /** The line as one view sees it; to dispose of it leaves that of the others. */
  line(): Transport {
    const transport = this.#transport;
    let own: Listener | undefined;
    return {
      get link() {
        return transport.link;
      },
      connect: (listener) => {
        own = listener;
        this.#listeners.add(listener);
        listener.onLink(transport.link);
      },
      steer: (text) => transport.steer(text),
      stop: () => this.stop(),
      approve: (runId, callId, allow) => transport.approve(runId, callId, allow),
      snapshot: () => this.#snapshot(),
      dispose: () => own && this.#listeners.delete(own),
    };
  }

  /** The view in which it is steered. */
  set view(view: View | undefined) {
    this.#view = view;
    if (view && this.#wantsFocus) {
      this.focusBox();
    }
  }

  get view(): View | undefined {
    return this.#view;
  }

  /** Puts the cursor into the steer box, as soon as there is one. */
  focusBox(): void {
    this.#wantsFocus = !this.#view;
    this.#view?.focusBox();
  }

  async stop(): Promise<void> {
    this.isStopping = true;
    this.#changed.emit();
    try {
      await this.#transport.stop();
    } catch (error) {
      this.isStopping = false;
      this.#changed.emit();
      throw error;
    }
  }

  /** The finished run is in the notebook. */
  finish(run: Run): void {
    if (!this.finished) {
      this.finished = run;
      // The kernel sends the finished run until a page has it.
      this.#transport.finish();
      this.#changed.emit();
    }
  }

  dispose(): void {
    this.#isDisposed = true;
    this.#transport.dispose();
    this.#listeners.clear();
    Signal.clearData(this);
  }

  #onEnd(bundle: Bundle): void {
    // Here and not only where it is drawn, since outputs that are folded are not drawn.
    replaceOutput(this.notebook, this.runId as string, bundle);
    this.finish(runIn(bundle));
  }

  #onLink(link: Link): void {
    this.hasBeenOn ||= link.state === "live" && !this.wasOver;
    this.lost = link.state === "gone" ? link.reason : undefined;
    // What was sent before the line stood, or while it was down, is missing.
    this.#store.lose();
    for (const listener of this.#listeners) {
      listener.onLink(link);
    }
    this.#changed.emit();
    void this.#refresh();
  }

  #onBatches(batches: Batch[]): void {
    for (const listener of this.#listeners) {
      // Each keeps what it gets, and changes it.
      listener.onBatches(structuredClone(batches));
    }
    this.#store.receive(batches);
    this.#changed.emit();
    void this.#refresh();
  }

  async #refresh(): Promise<void> {
    if (this.#isRefreshing) {
      return;
    }
    this.#isRefreshing = true;
    while (this.#store.isLost && this.link.state === "live" && !this.finished) {
      try {
        this.#store.reset(await this.#snapshot());
        this.#changed.emit();
      } catch {
        await new Promise((resolve) => setTimeout(resolve, RETRY));
      }
    }
    this.#isRefreshing = false;
  }

  /** One for all who ask at the same time; each gets a copy of its own. */
  async #snapshot(): Promise<Snapshot> {
    this.#asked ??= this.#transport.snapshot().finally(() => {
      this.#asked = undefined;
    });
    return structuredClone(await this.#asked);
  }
}
