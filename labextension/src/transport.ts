/** The line to a run in a kernel, as the view sees it: where it stands, what is asked and answered, what comes. */

import type { KernelMessage } from "@jupyterlab/services";
import { type KernelConnection, KernelMessages, newId } from "./kernel_messages";
import type { Run } from "./view/record";
import type { Answer, Batch, Link, Listener, Snapshot, Transport } from "./view/transport";

/** The finished run as an output. */
export interface Bundle {
  data: Record<string, unknown>;
  metadata: Record<string, unknown>;
}

type Ack = {
  type: "ack";
  id: string;
  ok: boolean;
  reason?: string;
  state?: string;
  seq?: number;
  run?: Run;
  time?: number;
};
type Opened = {
  type: "open";
  known: boolean;
  left_subshells: string[];
  run_id?: string;
  cell_id?: string;
  over?: boolean;
};
type FromControl = Opened | Ack;
type FromPatches = { batches: Batch[] } | { ended: true; bundle: Bundle };

/** Milliseconds: a kernel without subshells does not answer the request for one, and a busy machine answers late. */
const SUBSHELL_TIMEOUT = 3000;
const ANSWER_TIMEOUT = 5000;
/** Milliseconds between two signs of life: the kernel does not wait for an approval that nobody is there to give. */
const SIGN_OF_LIFE = 60_000;

const LATE = "This kernel takes no messages while a cell runs: they will arrive when the cell ends.";
const UNKNOWN = "This run is no longer going on.";
const RESTARTED = "The kernel was restarted: this run is gone.";
const LOST = "The kernel is gone, and this run with it.";

export class KernelTransport implements Transport {
  link: Link = { state: "connecting" };
  runId: string | null;
  /** The cell of the run, as the kernel says, and whether the run has ended. */
  cellId: string | undefined;
  isOver = false;
  #kernel: KernelConnection;
  #messages: KernelMessages;
  #onEnd: (bundle: Bundle) => void;
  #listener: Listener | undefined;
  /** Says which process of the kernel has the run. */
  #session: string | undefined;
  #control = "";
  #patches = "";
  /** The subshell, or `null` where there was none in time. */
  #created: Promise<string | null> = Promise.resolve(null);
  #hungUp: Promise<void> | undefined;
  #signs: ReturnType<typeof setInterval> | undefined;
  #hasStarted = false;
  #isDisposed = false;
  /** What waits for an answer, by the id of the request. */
  #answers = new Map<string, (answer: Ack) => void>();

  /** With `null` for the run that goes on in the kernel, whichever that is. `onEnd` gets the finished run, more than once until `finish` is called. */
  constructor(kernel: KernelConnection, runId: string | null, onEnd: (bundle: Bundle) => void) {
    this.#kernel = kernel;
    this.#messages = new KernelMessages(kernel);
    this.runId = runId;
    this.#onEnd = onEnd;
  }

  connect(listener: Listener): void {
    this.#listener = listener;
    this.#messages.connection.iopubMessage.connect(this.#onMessage, this);
    this.#messages.connection.connectionStatusChanged.connect(this.#onConnection, this);
    this.#kernel.statusChanged.connect(this.#onStatus, this);
    this.#kernel.disposed.connect(this.#onKernelDisposed, this);
    globalThis.addEventListener("pagehide", this.dispose);
    this.#onConnection();
  }

  async steer(text: string): Promise<"queued" | "undelivered"> {
    const { state } = await this.#request({ type: "steer", text });
    return state === "queued" ? "queued" : "undelivered";
  }

  async stop(): Promise<void> {
    if (this.link.state === "live") {
      await this.#request({ type: "stop" });
    } else {
      await this.#kernel.interrupt();
    }
  }

  async approve(runId: string, callId: string, answer: Answer): Promise<void> {
    await this.#request({ type: "approve", run_id: runId, call_id: callId, allow: answer });
  }

  async snapshot(): Promise<Snapshot> {
    const { seq, run, time } = await this.#request({ type: "snapshot" });
    return { seq, run, time } as Snapshot;
  }

  /** Tells the kernel that the finished run is here, and closes the line. */
  finish(): void {
    this.#request({ type: "final" }).catch(() => undefined);
    this.dispose();
  }

  /** Closes the line, and takes back what the kernel keeps for it. An arrow, since it listens to the page. */
  dispose = (): void => {
    if (this.#isDisposed) {
      return;
    }
    this.#isDisposed = true;
    clearInterval(this.#signs);
    globalThis.removeEventListener("pagehide", this.dispose);
    this.#messages.connection.iopubMessage.disconnect(this.#onMessage, this);
    this.#messages.connection.connectionStatusChanged.disconnect(this.#onConnection, this);
    this.#kernel.statusChanged.disconnect(this.#onStatus, this);
    this.#kernel.disposed.disconnect(this.#onKernelDisposed, this);
    this.#rejectAll(UNKNOWN);
    this.#hangUp();
  };

  // ---------------------------------------------------------------- to the kernel

  async #start(): Promise<void> {
    const subshell = this.#messages.createSubshell();
    const timeout = new Promise<null>((resolve) => setTimeout(resolve, SUBSHELL_TIMEOUT, null));
    this.#created = Promise.race([subshell, timeout]);
    if ((await this.#created) === null) {
      this.#setLink({ state: "late", reason: LATE });
      this.#open(null);
    }
    const created = await subshell;
    if (created !== null) {
      this.#open(created);
    }
  }

  #hangUp(): void {
    this.#hungUp ??= this.#close()
      .catch(() => undefined)
      .finally(() => this.#messages.connection.dispose());
  }

  /** Takes back what the kernel keeps for this line, while it is the kernel that keeps it. */
  async #close(): Promise<void> {
    if (this.link.state === "gone") {
      return;
    }
    for (const id of [this.#patches, this.#control].filter(Boolean)) {
      this.#messages.post("comm_close", { comm_id: id, data: {} });
    }
    // A subshell that is deleted with messages left complains in the output of whichever cell runs next.
    await this.#messages.handled;
    await this.#messages.deleteSubshell(this.#messages.subshell ?? (await this.#created));
  }

  #open(subshell: string | null): void {
    if (this.#isDisposed || this.link.state === "gone") {
      return;
    }
    this.#messages.subshell = subshell;
    if (this.link.state === "live") {
      this.#setLink({ state: "connecting" });
    }
    this.#control = this.#messages.openComm("op_jupyter.control", { run_id: this.runId });
  }

  #request(request: Record<string, string | boolean>): Promise<Ack> {
    const { link } = this;
    return new Promise((resolve, reject) => {
      if (link.state !== "live" || this.#isDisposed) {
        reject(new Error("reason" in link ? link.reason : "The kernel is not connected yet."));
        return;
      }
      const id = newId();
      const settle = (answer: Ack) => {
        clearTimeout(timer);
        this.#answers.delete(id);
        if (answer.ok) {
          resolve(answer);
        } else {
          reject(new Error(answer.reason ?? "The kernel did not say why."));
        }
      };
      const noAnswer: Ack = { type: "ack", id, ok: false, reason: "The kernel did not answer within 5 s." };
      const timer = setTimeout(settle, ANSWER_TIMEOUT, noAnswer);
      this.#answers.set(id, settle);
      this.#messages.post("comm_msg", { comm_id: this.#control, data: { ...request, id } });
    });
  }

  // ---------------------------------------------------------------- from the kernel

  #onMessage(_: unknown, message: KernelMessage.IIOPubMessage): void {
    const { comm_id, data } = message.content as { comm_id?: string; data?: unknown };
    const { msg_type, session } = message.header;
    if (msg_type === "status" && this.#session !== undefined && session !== this.#session) {
      // Restarted from another page, which this one is not told.
      this.#lose(RESTARTED);
    } else if (comm_id === this.#control && msg_type === "comm_close") {
      // The kernel does not know the target, as one that was started anew and has not loaded us.
      this.#control = "";
      this.#hangUp();
      this.#lose(UNKNOWN);
    } else if (comm_id === this.#control && msg_type === "comm_msg") {
      this.#session = session;
      this.#onControl(data as FromControl);
    } else if (comm_id === this.#patches && msg_type === "comm_msg") {
      this.#onPatches(data as FromPatches);
    }
  }

  #onControl(message: FromControl): void {
    if (message.type === "ack") {
      this.#answers.get(message.id)?.(message);
      return;
    }
    for (const subshell of message.left_subshells) {
      void this.#messages.deleteSubshell(subshell).catch(() => undefined);
    }
    if (message.known) {
      this.runId ??= message.run_id ?? null;
      this.cellId = message.cell_id;
      this.isOver = message.over ?? false;
      this.#patches = this.#messages.openComm("op_jupyter.patches", { run_id: this.runId });
      clearInterval(this.#signs);
      this.#signs = setInterval(() => void this.#request({ type: "here" }).catch(() => undefined), SIGN_OF_LIFE);
      this.#setLink({ state: "live" });
    } else {
      this.#hangUp();
      this.#lose(UNKNOWN);
    }
  }

  #onPatches(message: FromPatches): void {
    if ("batches" in message) {
      this.#listener?.onBatches(message.batches);
    } else {
      this.#onEnd(message.bundle);
    }
  }

  #onStatus(): void {
    const { status } = this.#kernel;
    if (status === "restarting" || status === "autorestarting") {
      this.#lose(RESTARTED);
    } else if (status === "dead" || status === "terminating") {
      this.#onKernelDisposed();
    }
  }

  #onKernelDisposed(): void {
    this.#lose(LOST);
    this.#hangUp();
  }

  #onConnection(): void {
    const isConnected = this.#messages.connection.connectionStatus === "connected";
    if (isConnected && !this.#hasStarted) {
      this.#hasStarted = true;
      void this.#start();
    } else if (this.link.state === "live" && isConnected) {
      // Something may have been missed meanwhile.
      this.#setLink({ state: "live" });
    }
  }

  #lose(reason: string): void {
    if (this.link.state !== "gone") {
      this.#setLink({ state: "gone", reason });
      this.#rejectAll(reason);
    }
  }

  #rejectAll(reason: string): void {
    for (const [id, settle] of this.#answers) {
      settle({ type: "ack", id, ok: false, reason });
    }
  }

  #setLink(link: Link): void {
    if (!this.#isDisposed && this.link.state !== "gone") {
      this.link = link;
      this.#listener?.onLink(link);
    }
  }
}
