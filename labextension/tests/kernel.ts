/** A kernel connection, and at its other end a kernel as far as comms and subshells go, message by message. */

import { Signal } from "@lumino/signaling";
import type { KernelConnection } from "../src/kernel_messages";

interface Message {
  channel: string;
  header: { msg_type: string; subshell_id: string | null };
  content: { comm_id?: string; target_name?: string; subshell_id?: string; data?: Record<string, unknown> };
}

export class FakeKernel {
  readonly clientId = "page";
  readonly username = "";
  readonly statusChanged = new Signal<this, string>(this);
  readonly connectionStatusChanged = new Signal<this, string>(this);
  readonly iopubMessage = new Signal<this, unknown>(this);
  readonly disposed = new Signal<this, void>(this);
  status = "busy";
  connectionStatus = "connected";
  isDisposed = false;
  interrupts = 0;

  /** What the kernel does about a request for a subshell. */
  subshells: "created" | "refused" | "not answered" = "created";
  /** The subshells that there are. */
  readonly running = new Set<string>();
  /** Whether messages without a subshell are handled, too: not while a cell runs. */
  isIdle = false;
  isLoaded = true;
  /** The process of the kernel, as each message says. */
  session = "process-1";
  /** Subshells of views that are gone. */
  left: string[] = [];
  /** The run that goes on. */
  runId = "run-1";
  /** What a request is answered with, or nothing. */
  answer: (request: Record<string, unknown>) => Record<string, unknown> | undefined = () => ({ ok: true });
  readonly sent: Message[] = [];
  #comms = new Map<string, string>();

  get connection(): KernelConnection {
    return this as unknown as KernelConnection;
  }

  /** The connections of their own that are open. */
  connections = 0;

  clone(): this {
    this.connections++;
    return this;
  }

  dispose(): void {
    this.connections--;
  }

  /** The requests that came on the control comm. */
  get requests(): Record<string, unknown>[] {
    return this.sent.flatMap(({ header, content }) => (header.msg_type === "comm_msg" ? [content.data ?? {}] : []));
  }

  sendControlMessage(message: Message): { onReply: (reply: unknown) => void; done: Promise<void> } {
    const future: ReturnType<typeof this.sendControlMessage> = { onReply: () => undefined, done: Promise.resolve() };
    this.sent.push(message);
    if (message.header.msg_type === "delete_subshell_request") {
      this.running.delete(message.content.subshell_id as string);
    } else if (this.subshells !== "not answered") {
      queueMicrotask(() => {
        const id = `subshell-${this.sent.length}`;
        const isCreated = this.subshells === "created";
        if (isCreated) {
          this.running.add(id);
        }
        future.onReply({ content: isCreated ? { status: "ok", subshell_id: id } : { status: "error" } });
      });
    }
    return future;
  }

  sendShellMessage(message: Message): { done: Promise<void> } {
    this.sent.push(message);
    const { subshell_id } = message.header;
    if (this.isIdle || (subshell_id && this.running.has(subshell_id))) {
      return { done: Promise.resolve().then(() => this.#handle(message)) };
    }
    return { done: new Promise(() => undefined) };
  }

  async interrupt(): Promise<void> {
    this.interrupts++;
  }

  /** The kernel says `data` to every comm of that target. */
  say(target: "control" | "patches", data: Record<string, unknown>): void {
    for (const [id, name] of this.#comms) {
      if (name === `op_jupyter.${target}`) {
        this.#publish("comm_msg", id, data);
      }
    }
  }

  become(status: string): void {
    this.status = status;
    this.statusChanged.emit(status);
  }

  connect(status: string): void {
    this.connectionStatus = status;
    this.connectionStatusChanged.emit(status);
  }

  #handle({ header, content }: Message): void {
    const id = content.comm_id as string;
    if (header.msg_type === "comm_open" && !this.isLoaded) {
      this.#publish("comm_close", id, {});
    } else if (header.msg_type === "comm_open") {
      this.#comms.set(id, content.target_name as string);
      if (content.target_name === "op_jupyter.control") {
        const known = [this.runId, null].includes(content.data?.run_id as string | null);
        this.#publish("comm_msg", id, {
          type: "open",
          known,
          left_subshells: this.left,
          run_id: this.runId,
          cell_id: "cell-1",
        });
      }
    } else if (header.msg_type === "comm_close") {
      this.#comms.delete(id);
    } else if (this.#comms.get(id) === "op_jupyter.control") {
      const answer = this.answer(content.data ?? {});
      if (answer) {
        this.#publish("comm_msg", id, { type: "ack", id: content.data?.id, ...answer });
      }
    }
  }

  #publish(type: string, id: string, data: Record<string, unknown>): void {
    const header = { msg_type: type, session: this.session };
    this.iopubMessage.emit({ header, content: { comm_id: id, data: structuredClone(data) } });
  }
}
