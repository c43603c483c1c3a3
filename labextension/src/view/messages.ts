/** What a person has said to a run that goes on, and what became of each message. */

import { button, h } from "./dom";
import { morph } from "./morph";
import type { Run, UserMessage } from "./record";
import { oneLine } from "./text";
import type { Transport } from "./transport";

/** A message that the record does not hold yet. */
interface Pending {
  text: string;
  /** How many messages with this text there are once the record holds it. */
  count: number;
  note: string;
  hasFailed: boolean;
}

const TOO_LATE = "not delivered: the run was over before the model was asked again";

export class Messages {
  readonly element = drawList([]);
  #transport: Transport;
  #takeBack: (text: string) => void;
  #changed: () => void;
  #pending: Pending[] = [];
  #shown: string[] | undefined;

  /** `takeBack` gets the text of a message that did not arrive; `changed` is called when one gets another state. */
  constructor(transport: Transport, takeBack: (text: string) => void, changed: () => void) {
    this.#transport = transport;
    this.#takeBack = takeBack;
    this.#changed = changed;
  }

  get isEmpty(): boolean {
    return !this.#pending.length;
  }

  async send(text: string, run: Run): Promise<void> {
    this.#pending = this.#pending.filter((one) => !(one.hasFailed && one.text === text));
    const before = countOf(run, text) + this.#pending.filter((one) => one.text === text).length;
    const message: Pending = { text, count: before + 1, note: "sending", hasFailed: false };
    this.#pending.push(message);
    this.#changed();
    try {
      message.hasFailed = (await this.#transport.steer(text)) === "undelivered";
      message.note = message.hasFailed ? TOO_LATE : "queued";
    } catch (error) {
      message.hasFailed = true;
      message.note = `not delivered: ${error instanceof Error ? error.message : error}`;
    }
    this.#changed();
  }

  /** Shows the messages of a run, and returns the last change of a state in words. */
  update(run: Run, ended: boolean): string | undefined {
    this.#pending = this.#pending.filter(({ text, count }) => countOf(run, text) < count);
    const before = this.#shown;
    const pending = this.#pending.map((message) => this.#drawPending(message, ended));
    // A run that has ended shows by itself what it got, and what it did not.
    morph(this.element, drawList([...(ended ? [] : drawn(run)), ...pending]));
    this.#shown = [...this.element.children].map((item) => item.textContent ?? "");
    const changed = [...this.element.children].filter((item) => !before?.includes(item.textContent ?? "")).at(-1);
    const note = changed?.querySelector(".note")?.textContent;
    return before && note && note !== "sending" ? `Your message: ${note}` : undefined;
  }

  #drawPending(message: Pending, ended: boolean): HTMLElement {
    const element = drawMessage(message.text, message.note);
    if (message.hasFailed && !ended) {
      const back = button("back", "Take back", () => {
        this.#pending = this.#pending.filter((one) => one !== message);
        this.#changed();
        this.#takeBack(message.text);
      });
      back.setAttribute("aria-label", `Take back: ${oneLine(message.text)}`);
      element.append(" ", back);
    }
    return element;
  }
}

function drawn(run: Run): HTMLElement[] {
  return [
    ...run.steps.flatMap((step) =>
      step.kind === "user" && step.message.source === "steering"
        ? [drawMessage(textOf(step.message), `delivered in round ${step.round}`)]
        : [],
    ),
    ...run.undelivered.map((message) => drawMessage(textOf(message), TOO_LATE)),
    ...run.queued.map((message) => drawMessage(textOf(message), "queued")),
  ];
}

function drawMessage(text: string, note: string): HTMLElement {
  return h("li", {}, h("span", { class: "text" }, text), " ", h("span", { class: "note" }, note));
}

function drawList(items: Node[]): HTMLElement {
  return h("ul", { class: "sent", "aria-label": "Messages to the agent" }, ...items);
}

function textOf(message: UserMessage): string {
  return message.content.map((block) => (block.kind === "text" ? block.text : "")).join("");
}

/** How many messages of the person with this text the record holds. */
function countOf(run: Run, text: string): number {
  const messages = [...run.steps.flatMap((step) => (step.kind === "user" ? [step.message] : []))];
  return [...messages, ...run.queued, ...run.undelivered].filter((message) => textOf(message) === text).length;
}
