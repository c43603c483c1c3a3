/**
 * The line to a run in a kernel, also while that kernel is busy: comms that the page opens on a subshell of its own.
 *
 * With messages made by hand, since JupyterLab's own comms wait for `kernel.info`, which a busy kernel does not give
 * to a page that was reloaded; and so JupyterLab's setting for comms on subshells does not matter here. Over a
 * connection of its own, since on the page's they would wait 3 s behind what JupyterLab asks such a kernel.
 */

import type { Kernel, KernelMessage } from "@jupyterlab/services";
import type { Run } from "./view/record";
import type { Batch, Link, Listener, Snapshot, Transport } from "./view/transport";

/** What is used of the page's connection to a kernel. */
export type KernelConnection = Pick<
  Kernel.IKernelConnection,
  "clone" | "disposed" | "interrupt" | "isDisposed" | "status" | "statusChanged"
>;

/** The finished run as an output. */
export interface Bundle {
  data: Record<string, unknown>;
  metadata: Record<string, unknown>;
}

type Ack = { type: "ack"; id: string; ok: boolean; reason?: string; state?: string; seq?: number; run?: Run };
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
  #connection: Kernel.IKernelConnection;
  #onEnd: (bundle: Bundle) => void;
  #listener: Listener | undefined;
  #subshell: string | null = null;
  /** Says which process of the kernel has the run. */
  #session: string | undefined;
  #control = "";
  #patches = "";
  /** The subshell, or `null` where there was none in time. */
  #created: Promise<string | null> = Promise.resolve(null);
  /** Settles when the last message on the shell is handled. */
  #handled: Promise<unknown> = Promise.resolve();
  #hungUp: Promise<void> | undefined;
  #signs: ReturnType<typeof setInterval> | undefined;
  #hasStarted = false;
  #isDisposed = false;
  /** What waits for an answer, by the id of the request. */
  #answers = new Map<string, (answer: Ack) => void>();

  /** With `null` for the run that goes on in the kernel, whichever that is. `onEnd` gets the finished run, more than once until `finish` is called. */
  constructor(kernel: KernelConnection, runId: string | null, onEnd: (bundle: Bundle) => void) {
    this.#kernel = kernel;
    this.#connection = kernel.clone();
    this.runId = runId;
    this.#onEnd = onEnd;
  }

  connect(listener: Listener): void {
    this.#listener = listener;
    this.#connection.iopubMessage.connect(this.#onMessage, this);
    this.#connection.connectionStatusChanged.connect(this.#onConnection, this);
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

  async approve(runId: string, callId: string, allow: boolean): Promise<void> {
    await this.#request({ type: "approve", run_id: runId, call_id: callId, allow });
  }

  async snapshot(): Promise<Snapshot> {
    const { seq, run } = await this.#request({ type: "snapshot" });
    return { seq, run } as Snapshot;
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
    this.#connection.iopubMessage.disconnect(this.#onMessage, this);
    this.#connection.connectionStatusChanged.disconnect(this.#onConnection, this);
    this.#kernel.statusChanged.disconnect(this.#onStatus, this);
    this.#kernel.disposed.disconnect(this.#onKernelDisposed, this);
    this.#rejectAll(UNKNOWN);
    this.#hangUp();
  };

  // ---------------------------------------------------------------- to the kernel

  async #start(): Promise<void> {
    const subshell = this.#createSubshell();
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

  #createSubshell(): Promise<string | null> {
    const request = this.#message("control", "create_subshell_request", {});
    return new Promise((resolve) => {
      this.#connection.sendControlMessage(request as KernelMessage.ICreateSubshellRequestMsg, true).onReply = (
        reply,
      ) => {
        const { subshell_id } = reply.content as { subshell_id?: string };
        resolve(subshell_id ?? null);
      };
    });
  }

  #hangUp(): void {
    this.#hungUp ??= this.#close()
      .catch(() => undefined)
      .finally(() => this.#connection.dispose());
  }

  /** Takes back what the kernel keeps for this line, while it is the kernel that keeps it. */
  async #close(): Promise<void> {
    if (this.link.state === "gone") {
      return;
    }
    for (const id of [this.#patches, this.#control].filter(Boolean)) {
      this.#post("comm_close", { comm_id: id, data: {} });
    }
    // A subshell that is deleted with messages left complains in the output of whichever cell runs next.
    await this.#handled;
    await this.#deleteSubshell(this.#subshell ?? (await this.#created));
  }

  async #deleteSubshell(subshell: string | null): Promise<void> {
    if (subshell !== null && this.#canSend) {
      const request = this.#message("control", "delete_subshell_request", { subshell_id: subshell });
      await this.#connection.sendControlMessage(request as KernelMessage.IDeleteSubshellRequestMsg, true).done;
    }
  }

  #open(subshell: string | null): void {
    if (this.#isDisposed || this.link.state === "gone") {
      return;
    }
    this.#subshell = subshell;
    if (this.link.state === "live") {
      this.#setLink({ state: "connecting" });
    }
    this.#control = this.#openComm("op_jupyter.control");
  }

  #openComm(target: string): string {
    const id = newId();
    this.#post("comm_open", { comm_id: id, target_name: target, data: { run_id: this.runId } });
    return id;
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
      this.#post("comm_msg", { comm_id: this.#control, data: { ...request, id } });
    });
  }

  #post(type: "comm_open" | "comm_msg" | "comm_close", content: object): void {
    if (this.#canSend) {
      const message = this.#message("shell", type, content, this.#subshell);
      this.#handled = this.#connection.sendShellMessage(message as KernelMessage.IShellMessage).done;
    }
  }

  get #canSend(): boolean {
    const { isDisposed, status } = this.#connection;
    return !isDisposed && status !== "dead" && !this.#kernel.isDisposed && this.#kernel.status !== "dead";
  }

  #message(channel: "shell" | "control", type: string, content: object, subshell: string | null = null): unknown {
    const header = {
      date: new Date().toISOString(),
      msg_id: newId(),
      msg_type: type,
      session: this.#connection.clientId,
      subshell_id: subshell,
      username: this.#connection.username,
      version: "5.3",
    };
    return { buffers: [], channel, content, header, metadata: {}, parent_header: {} };
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
      void this.#deleteSubshell(subshell).catch(() => undefined);
    }
    if (message.known) {
      this.runId ??= message.run_id ?? null;
      this.cellId = message.cell_id;
      this.isOver = message.over ?? false;
      this.#patches = this.#openComm("op_jupyter.patches");
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
    const isConnected = this.#connection.connectionStatus === "connected";
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

/** Not `crypto.randomUUID`, which a page has only over HTTPS. */
function newId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
