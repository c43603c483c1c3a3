/** What a screen reader says while a run goes on: what is worth hearing, and once. */

import { waitingCalls } from "./activity";
import { h } from "./dom";
import type { Run, ToolCall } from "./record";
import { oneLine, wholeUpTo } from "./text";

/** Milliseconds from one report of what goes on to the next. */
const PAUSE = 4000;
/** Milliseconds after which a line has been taken up. */
const HEARD = 10_000;
/** So much of an answer is read out: the rest is on the page. */
const LONGEST_ANSWER = 1000;

export class Announcer {
  // Not role="status", which has all of it read anew for each line.
  #polite = h("div", { "aria-live": "polite" });
  #urgent = h("div", { role: "alert" });
  readonly element = h("div", { class: "only-heard" }, this.#polite, this.#urgent);
  #asked = new Set<string>();
  #last = "";
  #lastTime = 0;
  #next: string | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #ended: boolean | undefined;

  /** `doing` is what goes on just now, in a sentence. */
  update(run: Run, doing: string): void {
    for (const { key, call } of waitingCalls(run)) {
      if (!this.#asked.has(key)) {
        this.#asked.add(key);
        this.#interrupt(question(call));
      }
    }
    const ended = run.stop_reason !== null;
    if (ended && this.#ended === false) {
      this.#end(run);
    } else if (!ended) {
      this.#report(`Round ${Math.max(1, run.rounds)}. ${doing}`);
    }
    this.#ended = ended;
  }

  /** Says how things stand, but not more often than somebody can listen. */
  #report(text: string): void {
    if (text === this.#last) {
      this.#next = undefined;
      return;
    }
    this.#next = text;
    const wait = this.#lastTime + PAUSE - Date.now();
    if (wait <= 0) {
      this.#sayNext();
    } else {
      this.#timer ??= setTimeout(() => this.#sayNext(), wait);
    }
  }

  /** Says what a person has brought about, at once. */
  say(text: string): void {
    const line = h("p", {}, text);
    this.#polite.append(line);
    // Who reads on by cursor does not find it a second time.
    setTimeout(() => line.remove(), HEARD);
  }

  dispose(): void {
    clearTimeout(this.#timer);
  }

  #sayNext(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#next !== undefined) {
      this.#last = this.#next;
      this.#lastTime = Date.now();
      this.#next = undefined;
      this.say(this.#last);
    }
  }

  #interrupt(text: string): void {
    this.#urgent.replaceChildren(h("p", {}, text));
  }

  #end(run: Run): void {
    this.dispose();
    if (run.undelivered.length) {
      this.say(`${run.undelivered.length} of your messages did not reach the agent.`);
    }
    if (run.stop_reason === "error") {
      this.#interrupt(`The run failed: ${run.error ?? ""}`);
    } else if (run.stop_reason === "aborted") {
      this.say("The run was stopped.");
    } else {
      const text = answerOf(run);
      const end = run.stop_reason === "max_iterations" ? "The run ended at its cap." : "The run is done.";
      this.say(text ? `${end} The answer: ${text}` : end);
    }
  }
}

function question(call: ToolCall): string {
  return `${oneLine(call.name)} waits for your approval: ${oneLine(JSON.stringify(call.arguments))}`;
}

/** The last reply, without the signs of Markdown. */
function answerOf(run: Run): string {
  const reply = run.steps.filter((step) => step.kind === "assistant").at(-1);
  const text = (reply?.message.content ?? []).map((block) => (block.kind === "text" ? block.text : "")).join(" ");
  const plain = text
    .replace(/[*_`#|>]+/g, " ")
    .replace(/\s+/g, " ")
    .trim();
  return plain.length > LONGEST_ANSWER ? `${plain.slice(0, wholeUpTo(plain, LONGEST_ANSWER))} …` : plain;
}
