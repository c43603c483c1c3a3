/**
 * The line to a run in a kernel, also while that kernel is busy: comms that the page opens on a subshell of its own.
 *
 * With messages made by hand, since JupyterLab's own comms wait for `kernel.info`, which a busy kernel does not give
 * to a page that was reloaded; and so JupyterLab's setting for comms on subshells does not matter here.
 */

import type { Kernel, KernelMessage } from "@jupyterlab/services";
import type { Run } from "./view/record";
import type { Batch, Link, Listener, Snapshot, Transport } from "./view/transport";

/** What is used of a kernel connection. */
export type KernelConnection = Pick<
  Kernel.IKernelConnection,
  | "clientId"
  | "username"
  | "connectionStatus"
  | "connectionStatusChanged"
  | "disposed"
  | "interrupt"
  | "iopubMessage"
  | "isDisposed"
  | "sendControlMessage"
  | "sendShellMessage"
  | "status"
  | "statusChanged"
>;

/** The finished run as an output. */
export interface Bundle {
  data: Record<string, unknown>;
  metadata: Record<string, unknown>;
}

type Ack = { type: "ack"; id: string; ok: boolean; reason?: string; state?: string; seq?: number; run?: Run };
type Opened = { type: "open"; known: boolean; run_id?: string; cell_id?: string };
type FromControl = Opened | Ack;
type FromPatches = { batches: Batch[] } | { ended: true; bundle: Bundle };

/** Milliseconds: a kernel without subshells does not answer the request for one. */
const SUBSHELL_TIMEOUT = 1000;
const ANSWER_TIMEOUT = 5000;

const LATE = "This kernel takes no messages while a cell runs: they will arrive when the cell ends.";
const UNKNOWN = "This run is no longer going on.";
const RESTARTED = "The kernel was restarted: this run is gone.";
const LOST = "The kernel is gone, and this run with it.";

export class KernelTransport implements Transport {
  link: Link = { state: "connecting" };
  runId: string | null;
  /** The cell that the run goes on in, as the kernel says. */
  cellId: string | undefined;
  #kernel: KernelConnection;
  #onEnd: (bundle: Bundle) => void;
  #listener: Listener | undefined;
  #subshell: string | null = null;
  #control = "";
  #patches = "";
  #hasStarted = false;
  #isDisposed = false;
  /** What waits for an answer, by the id of the request. */
  #answers = new Map<string, (answer: Ack) => void>();

  /** With `null` for the run that goes on in the kernel, whichever that is. `onEnd` gets the finished run, more than once until `received` is called. */
  constructor(kernel: KernelConnection, runId: string | null, onEnd: (bundle: Bundle) => void) {
    this.#kernel = kernel;
    this.runId = runId;
    this.#onEnd = onEnd;
  }

  connect(listener: Listener): void {
    this.#listener = listener;
    this.#kernel.iopubMessage.connect(this.#onMessage, this);
    this.#kernel.statusChanged.connect(this.#onStatus, this);
    this.#kernel.connectionStatusChanged.connect(this.#onConnection, this);
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

  /** Tells the kernel that the finished run is here. */
  async received(): Promise<void> {
    await this.#request({ type: "final" });
  }

  /** Closes the line, and takes back what the kernel keeps for it. An arrow, since it listens to the page. */
  dispose = (): void => {
    if (this.#isDisposed) {
      return;
    }
    this.#isDisposed = true;
    globalThis.removeEventListener("pagehide", this.dispose);
    this.#kernel.iopubMessage.disconnect(this.#onMessage, this);
    this.#kernel.statusChanged.disconnect(this.#onStatus, this);
    this.#kernel.connectionStatusChanged.disconnect(this.#onConnection, this);
    this.#kernel.disposed.disconnect(this.#onKernelDisposed, this);
    this.#rejectAll(UNKNOWN);
    if (this.link.state !== "gone") {
      for (const id of [this.#patches, this.#control].filter(Boolean)) {
        this.#post("comm_close", { comm_id: id, data: {} });
      }
    }
    this.#deleteSubshell();
  };

  // ---------------------------------------------------------------- to the kernel

  async #start(): Promise<void> {
    const subshell = this.#createSubshell();
    const timeout = new Promise<null>((resolve) => setTimeout(resolve, SUBSHELL_TIMEOUT, null));
    if ((await Promise.race([subshell, timeout])) === null) {
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
      this.#kernel.sendControlMessage(request as KernelMessage.ICreateSubshellRequestMsg, true).onReply = (reply) => {
        const { subshell_id } = reply.content as { subshell_id?: string };
        resolve(subshell_id ?? null);
      };
    });
  }

  #deleteSubshell(): void {
    if (this.#subshell !== null && this.#canSend) {
      const content = { subshell_id: this.#subshell };
      const request = this.#message("control", "delete_subshell_request", content);
      this.#kernel.sendControlMessage(request as KernelMessage.IDeleteSubshellRequestMsg);
    }
    this.#subshell = null;
  }

  #open(subshell: string | null): void {
    this.#subshell = subshell;
    if (this.#isDisposed || this.link.state === "gone") {
      this.#deleteSubshell();
      return;
    }
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
      this.#kernel.sendShellMessage(message as KernelMessage.IShellMessage);
    }
  }

  get #canSend(): boolean {
    return !this.#kernel.isDisposed && this.#kernel.status !== "dead";
  }

  #message(channel: "shell" | "control", type: string, content: object, subshell: string | null = null): unknown {
    const header = {
      date: new Date().toISOString(),
      msg_id: newId(),
      msg_type: type,
      session: this.#kernel.clientId,
      subshell_id: subshell,
      username: this.#kernel.username,
      version: "5.3",
    };
    return { buffers: [], channel, content, header, metadata: {}, parent_header: {} };
  }

  // ---------------------------------------------------------------- from the kernel

  #onMessage(_: unknown, message: KernelMessage.IIOPubMessage): void {
    const { comm_id, data } = message.content as { comm_id?: string; data?: unknown };
    if (comm_id === this.#control && message.header.msg_type === "comm_close") {
      // The kernel does not know the target, as one that was started anew and has not loaded us.
      this.#lose(UNKNOWN);
    } else if (comm_id === this.#control && message.header.msg_type === "comm_msg") {
      this.#onControl(data as FromControl);
    } else if (comm_id === this.#patches && message.header.msg_type === "comm_msg") {
      this.#onPatches(data as FromPatches);
    }
  }

  #onControl(message: FromControl): void {
    if (message.type === "ack") {
      this.#answers.get(message.id)?.(message);
    } else if (message.known) {
      this.runId ??= message.run_id ?? null;
      this.cellId = message.cell_id;
      this.#patches = this.#openComm("op_jupyter.patches");
      this.#setLink({ state: "live" });
    } else {
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
      this.#subshell = null;
      this.#lose(RESTARTED);
    } else if (status === "dead" || status === "terminating") {
      this.#lose(LOST);
    }
  }

  #onKernelDisposed(): void {
    this.#lose(LOST);
  }

  #onConnection(): void {
    const isConnected = this.#kernel.connectionStatus === "connected";
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
      this.#deleteSubshell();
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
