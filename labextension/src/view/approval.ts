/** How a person is asked whether a call may run, and what is shown of the answer. */

import { button, h } from "./dom";
import type { CallStep, Run } from "./record";
import { oneLine } from "./text";
import type { Answer, Transport } from "./transport";

export class Approvals {
  #transport: Transport;
  #redraw: () => void;
  #fail: (error: unknown) => void;
  /** What was answered, by call. */
  #answers = new Map<string, Answer>();

  /** `redraw` draws the run again; `fail` says why an answer did not arrive. */
  constructor(transport: Transport, redraw: () => void, fail: (error: unknown) => void) {
    this.#transport = transport;
    this.#redraw = redraw;
    this.#fail = fail;
  }

  /** The question, and its answers; `root` is the run that a nested one belongs to. */
  draw(run: Run, step: CallStep, root: Run | undefined): Node[] {
    const answer = this.#answers.get(keyOf(run, step));
    const name = oneLine(step.call.name);
    const which = root && root.run_id !== run.run_id ? "this nested run" : "this run";
    const give = (given: Answer) => void this.#give(run, step, given);
    const buttons = [
      button("approve", "Approve", () => give(true)),
      button("deny", "Deny", () => give(false)),
      button("always", `Always for ${which}`, () => give("always")),
    ];
    for (const element of buttons) {
      element.disabled = this.#transport.link.state !== "live";
      // A button that is disabled loses the focus, and a person their place.
      element.setAttribute("aria-disabled", String(answer !== undefined));
    }
    const meaning = `always-${step.call.id}`;
    buttons[2]?.setAttribute("aria-describedby", meaning);
    const always = `Always: this call and every later call of ${name} in ${which}, and in the runs nested in it, without asking again.`;
    const question = answer === undefined ? `May this call of ${name} run?` : SAID[String(answer) as keyof typeof SAID];
    return [
      h(
        "div",
        { class: "approval", role: "group", "aria-label": `Approval of ${name}` },
        h("p", { class: "question" }, question),
        h("div", { class: "row" }, ...buttons),
        h("p", { class: "note", id: meaning }, always),
      ),
    ];
  }

  async #give(run: Run, step: CallStep, answer: Answer): Promise<void> {
    const key = keyOf(run, step);
    if (this.#answers.has(key)) {
      return;
    }
    this.#answers.set(key, answer);
    this.#redraw();
    try {
      await this.#transport.approve(run.run_id ?? "", step.call.id, answer);
    } catch (error) {
      this.#answers.delete(key);
      this.#fail(error);
      this.#redraw();
    }
  }
}

const SAID = { true: "Approved.", false: "Denied.", always: "Approved, with the later calls." } as const;

/** How a call came to be allowed or refused. */
export function drawApproved({ approval, call }: CallStep): Node[] {
  const calls = `calls of ${oneLine(call.name)} in this run`;
  switch (approval) {
    case "approved":
      return [h("p", { class: "note" }, "Approved by you.")];
    case "always":
      return [h("p", { class: "note" }, `Approved by you, with all later ${calls}.`)];
    case "earlier":
      return [h("p", { class: "note" }, `Not asked: you had approved all ${calls}.`)];
    case "denied":
      return [h("p", { class: "note" }, "Denied by you.")];
    default:
      return [];
  }
}

function keyOf(run: Run, step: CallStep): string {
  return `${run.run_id} ${step.call.id} ${step.started}`;
}
