/**
 * Messages to a kernel that may be busy: on a subshell, over a connection of its own. What they say is not known here.
 *
 * Made by hand, since JupyterLab's own comms wait for `kernel.info`, which a busy kernel does not give to a page that
 * was reloaded; and so JupyterLab's setting for comms on subshells does not matter here. Over a connection of its own,
 * since on the page's they would wait 3 s behind what JupyterLab asks such a kernel.
 */

import type { Kernel, KernelMessage } from "@jupyterlab/services";

/** What is used of the page's connection to a kernel. */
export type KernelConnection = Pick<
  Kernel.IKernelConnection,
  "clone" | "disposed" | "interrupt" | "isDisposed" | "status" | "statusChanged"
>;

export class KernelMessages {
  readonly connection: Kernel.IKernelConnection;
  /** Where the comms are; `null` is the main shell. */
  subshell: string | null = null;
  /** Settles when the last message on the shell is handled. */
  handled: Promise<unknown> = Promise.resolve();
  #kernel: KernelConnection;

  constructor(kernel: KernelConnection) {
    this.#kernel = kernel;
    this.connection = kernel.clone();
  }

  /** The id of a new subshell, or `null` from a kernel that says it has none; others never answer. */
  createSubshell(): Promise<string | null> {
    const request = this.#message("control", "create_subshell_request", {});
    return new Promise((resolve) => {
      this.connection.sendControlMessage(request as KernelMessage.ICreateSubshellRequestMsg, true).onReply = (
        reply,
      ) => {
        const { subshell_id } = reply.content as { subshell_id?: string };
        resolve(subshell_id ?? null);
      };
    });
  }

  async deleteSubshell(subshell: string | null): Promise<void> {
    if (subshell !== null && this.#canSend) {
      const request = this.#message("control", "delete_subshell_request", { subshell_id: subshell });
      await this.connection.sendControlMessage(request as KernelMessage.IDeleteSubshellRequestMsg, true).done;
    }
  }

  /** The id of the comm. */
  openComm(target: string, data: object): string {
    const id = newId();
    this.post("comm_open", { comm_id: id, target_name: target, data });
    return id;
  }

  post(type: "comm_open" | "comm_msg" | "comm_close", content: object): void {
    if (this.#canSend) {
      const message = this.#message("shell", type, content, this.subshell);
      this.handled = this.connection.sendShellMessage(message as KernelMessage.IShellMessage).done;
    }
  }

  get #canSend(): boolean {
    const { isDisposed, status } = this.connection;
    return !isDisposed && status !== "dead" && !this.#kernel.isDisposed && this.#kernel.status !== "dead";
  }

  #message(channel: "shell" | "control", type: string, content: object, subshell: string | null = null): unknown {
    const header = {
      date: new Date().toISOString(),
      msg_id: newId(),
      msg_type: type,
      session: this.connection.clientId,
      subshell_id: subshell,
      username: this.connection.username,
      version: "5.3",
    };
    return { buffers: [], channel, content, header, metadata: {}, parent_header: {} };
  }
}

/** Not `crypto.randomUUID`, which a page has only over HTTPS. */
export function newId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
