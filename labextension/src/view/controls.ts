/** What a person does to a run that goes on: stop it, speak to it, allow its calls. And what it is doing just now. */

import { activity, functionUnderWay } from "./activity";
import { button, h } from "./dom";
import { morph } from "./morph";
import type { CallStep, Run, UserMessage } from "./record";
import type { Live } from "./run";
import type { Transport } from "./transport";

/** A message that the record does not hold yet. */
interface Pending {
  text: string;
  /** How many messages with this text there are once the record holds it. */
  count: number;
  note: string;
}

export class Controls implements Live {
  readonly element = h("footer", { class: "controls", role: "group", "aria-label": "Control of the run" });
  #transport: Transport;
  #redraw: () => void;
  #run: Run | undefined;
  #ended = false;
  #wasLive = false;
  #isStopping = false;
  #pending: Pending[] = [];
  /** What was answered, by call. */
  #answers = new Map<string, boolean>();
  #status = h("p", { class: "status", role: "status", id: "status" });
  #problem = h("p", { class: "error", role: "alert" });
  #stop = button("stop", "Stop", () => this.#stopRun());
  #box = h("textarea", {
    rows: "1",
    "aria-label": "Message to the agent",
    "aria-describedby": "status",
    placeholder: "Say something to the agent while it runs",
    title: "Enter sends, Shift+Enter starts a new line, Escape leaves",
  });
  #send = button("send", "Send", () => this.#steer());
  #boxRow = h("div", { class: "row" }, this.#box, this.#send);
  #sent = drawList([]);

  /** `redraw` draws the run again. */
  constructor(transport: Transport, redraw: () => void) {
    this.#transport = transport;
    this.#redraw = redraw;
    this.#box.addEventListener("keydown", (event) => this.#onKey(event));
    this.element.append(h("div", { class: "row" }, this.#status, this.#stop), this.#boxRow, this.#sent, this.#problem);
  }

  update(run: Run): void {
    this.#run = run;
    const { link } = this.#transport;
    this.#wasLive ||= link.state === "live";
    const ended = this.#ended || run.stop_reason !== null;
    const cannotSend = ended || link.state !== "live";
    setText(this.#status, ended ? "The run has ended." : this.#doing(run));
    // Before there is a line, an interrupt might come when the run is over, and hit what the kernel does next.
    this.#stop.disabled = this.#isStopping || !["live", "late"].includes(link.state);
    this.#box.readOnly = cannotSend;
    this.#box.setAttribute("aria-disabled", String(cannotSend));
    this.#send.disabled = cannotSend;
    morph(this.#sent, drawList(this.#messages(run, ended)));
    const isOver = ended || (link.state === "gone" && !this.#wasLive);
    // What was typed and not sent is not lost.
    const isEmpty = !this.#box.value && !this.#pending.length;
    this.#stop.hidden = isOver;
    this.#boxRow.hidden = isOver && !this.#box.value;
    this.element.hidden = ended && isEmpty;
  }

  /** The run is over, and the transport with it. */
  end(): void {
    this.#ended = true;
    if (this.#run) {
      this.update(this.#run);
    }
  }

  drawApproval(run: Run, step: CallStep): Node[] {
    const key = `${run.run_id} ${step.call.id} ${step.started}`;
    const answer = this.#answers.get(key);
    const answerWith = async (allow: boolean) => {
      this.#answers.set(key, allow);
      this.#redraw();
      try {
        await this.#transport.approve(run.run_id ?? "", step.call.id, allow);
      } catch (error) {
        this.#answers.delete(key);
        this.#fail(error);
        this.#redraw();
      }
    };
    const buttons = [
      button("approve", "Approve", () => void answerWith(true)),
      button("deny", "Deny", () => void answerWith(false)),
    ];
    for (const element of buttons) {
      element.toggleAttribute("disabled", answer !== undefined || this.#transport.link.state !== "live");
    }
    const note = answer === undefined ? "May this call run?" : answer ? "Approved." : "Denied.";
    return [h("div", { class: "row approval" }, h("span", {}, note), ...buttons)];
  }

  #doing(run: Run): string {
    const { link } = this.#transport;
    if ("reason" in link) {
      return link.reason;
    }
    if (this.#isStopping) {
      const name = functionUnderWay(run);
      return name ? `Stopping: waiting for ${name} to return.` : "Stopping.";
    }
    const doing = activity(run);
    return `${doing.charAt(0).toUpperCase()}${doing.slice(1)}.`;
  }

  #messages(run: Run, ended: boolean): Node[] {
    this.#pending = this.#pending.filter(({ text, count }) => countOf(run, text) < count);
    const pending = this.#pending.map(({ text, note }) => drawMessage(text, note));
    if (ended) {
      return pending;
    }
    return [
      ...run.steps.flatMap((step) =>
        step.kind === "user" && step.message.source === "steering"
          ? [drawMessage(textOf(step.message), `delivered in round ${step.round}`)]
          : [],
      ),
      ...run.queued.map((message) => drawMessage(textOf(message), "queued")),
      ...run.undelivered.map((message) => drawMessage(textOf(message), "not delivered")),
      ...pending,
    ];
  }

  #onKey(event: KeyboardEvent): void {
    // The notebook around has shortcuts of its own.
    event.stopPropagation();
    if (event.key === "Escape") {
      const { host } = this.element.getRootNode() as Partial<ShadowRoot>;
      this.#box.blur();
      host?.closest<HTMLElement>("[tabindex]")?.focus({ preventScroll: true });
    } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      this.#steer();
    }
  }

  async #steer(): Promise<void> {
    const text = this.#box.value.trim();
    if (!text || !this.#run || this.#box.readOnly) {
      return;
    }
    const before = countOf(this.#run, text) + this.#pending.filter((one) => one.text === text).length;
    const message: Pending = { text, count: before + 1, note: "sending" };
    this.#pending.push(message);
    this.#box.value = "";
    setText(this.#problem, "");
    this.update(this.#run);
    try {
      message.note = (await this.#transport.steer(text)) === "queued" ? "queued" : "not delivered";
    } catch (error) {
      message.note = `not delivered: ${reasonOf(error)}`;
    }
    this.update(this.#run);
  }

  async #stopRun(): Promise<void> {
    this.#isStopping = true;
    setText(this.#problem, "");
    this.#redraw();
    try {
      await this.#transport.stop();
    } catch (error) {
      this.#isStopping = false;
      this.#fail(error);
      this.#redraw();
    }
  }

  #fail(error: unknown): void {
    setText(this.#problem, reasonOf(error));
  }
}

function drawList(messages: Node[]): HTMLElement {
  return h("ul", { class: "sent", "aria-label": "Messages to the agent", "aria-live": "polite" }, ...messages);
}

function drawMessage(text: string, note: string): HTMLElement {
  return h("li", {}, h("span", { class: "text" }, text), " ", h("span", { class: "note" }, note));
}

function textOf(message: UserMessage): string {
  return message.content.map((block) => (block.kind === "text" ? block.text : "")).join("");
}

/** How many messages of the person with this text the record holds. */
function countOf(run: Run, text: string): number {
  const messages = [...run.steps.flatMap((step) => (step.kind === "user" ? [step.message] : []))];
  return [...messages, ...run.queued, ...run.undelivered].filter((message) => textOf(message) === text).length;
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Only where it differs: a screen reader reads out what is set. */
function setText(element: Element, text: string): void {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}
