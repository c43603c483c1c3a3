/** The box in which a person writes to a run that goes on, and what was sent from it before. */

import { button, h } from "./dom";

/** What was sent in each notebook of the page, in order, whichever run it was for. */
const sentIn = new WeakMap<Node, string[]>();

export class SteerBox {
  #send: (text: string) => void;
  #box = h("textarea", {
    rows: "1",
    "aria-label": "Message to the agent",
    "aria-describedby": "status",
    placeholder: "Say something to the agent while it runs",
    title: "Enter sends, Shift+Enter starts a new line, the arrow keys bring back what was sent, Escape leaves",
  });
  #button = button("send", "Send", () => this.#submit());
  readonly element = h("div", { class: "row writing" }, this.#box, this.#button);
  /** While a person goes through what was sent: all of it and the draft, with what has been changed, and the place. */
  #browsed: { lines: string[]; at: number } | undefined;

  constructor(send: (text: string) => void) {
    this.#send = send;
    this.#box.addEventListener("keydown", (event) => this.#onKey(event));
    this.#box.addEventListener("input", () => this.#fit());
  }

  /** Whether there is something that was not sent. */
  get isEmpty(): boolean {
    return !this.#box.value;
  }

  /** Without an end to write to, what was written can still be read and copied. */
  set canSend(canSend: boolean) {
    this.#box.readOnly = !canSend;
    this.#box.setAttribute("aria-disabled", String(!canSend));
    this.#button.disabled = !canSend;
  }

  /** Puts `text` before what is being written, and the cursor after it. */
  takeBack(text: string): void {
    this.#write([text, this.#box.value].filter(Boolean).join("\n"), text.length);
    this.#box.focus();
  }

  #onKey(event: KeyboardEvent): void {
    // Safari ends an input method's work before the key that does it.
    if (event.isComposing || event.keyCode === 229) {
      return;
    }
    const isPlain = !(event.shiftKey || event.ctrlKey || event.altKey || event.metaKey);
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.#submit();
    } else if (event.key === "ArrowUp" && isPlain) {
      this.#browse(-1);
    } else if (event.key === "ArrowDown" && isPlain) {
      this.#browse(1);
    }
  }

  #submit(): void {
    const text = this.#box.value.trim();
    if (!text || this.#box.readOnly) {
      return;
    }
    const sent = this.#sent();
    if (sent.at(-1) !== text) {
      sent.push(text);
    }
    this.#browsed = undefined;
    this.#write("");
    this.#send(text);
  }

  /** Goes to another text, unless the key has moved the cursor to another line. */
  #browse(by: 1 | -1): void {
    const { selectionStart: start, selectionEnd: end, value } = this.#box;
    // Which lines there are, where a long one is wrapped, only the browser knows.
    setTimeout(() => {
      const at = this.#box.selectionStart;
      const isAtEnd = at === (by < 0 ? 0 : value.length);
      if (this.#box.readOnly || start !== end || this.#box.value !== value || (at !== start && !isAtEnd)) {
        return;
      }
      const { lines, at: from } = this.#browsed ?? { lines: [...this.#sent(), value], at: this.#sent().length };
      const text = lines[from + by];
      if (text !== undefined) {
        lines[from] = value;
        this.#browsed = { lines, at: from + by };
        this.#write(text);
      }
    });
  }

  #write(text: string, caret = text.length): void {
    this.#box.value = text;
    this.#box.setSelectionRange(caret, caret);
    this.#fit();
  }

  /** For browsers that do not know `field-sizing`. */
  #fit(): void {
    this.#box.rows = this.#box.value.split("\n").length;
  }

  #sent(): string[] {
    const root = this.element.getRootNode();
    const place = (root instanceof ShadowRoot && root.host.closest(".jp-Notebook")) || document;
    const sent = sentIn.get(place) ?? [];
    sentIn.set(place, sent);
    return sent;
  }
}
