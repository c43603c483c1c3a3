/** What a person does to a run that goes on: stop it, speak to it, allow its calls. And what it is doing just now. */

import { activity, functionUnderWay } from "./activity";
import { Announcer } from "./announcer";
import { Approvals } from "./approval";
import { button, h } from "./dom";
import { Messages } from "./messages";
import type { CallStep, Run } from "./record";
import type { Live } from "./run";
import { SteerBox } from "./steer_box";
import type { Transport } from "./transport";

export class Controls implements Live {
  #transport: Transport;
  #redraw: () => void;
  #run: Run | undefined;
  #ended = false;
  #wasLive = false;
  #isStopping = false;
  #announcer = new Announcer();
  #approvals: Approvals;
  #messages: Messages;
  #status = h("p", { class: "status", id: "status", tabindex: "-1" });
  #problem = h("p", { class: "error", role: "alert" });
  #stop = button("stop", "Stop", () => this.#stopRun());
  #box = new SteerBox((text) => this.#steer(text));
  #footer: HTMLElement;
  readonly element: HTMLElement;

  /** `redraw` draws the run again. */
  constructor(transport: Transport, redraw: () => void) {
    this.#transport = transport;
    this.#redraw = redraw;
    this.#approvals = new Approvals(transport, redraw, (error) => this.#fail(error));
    const takeBack = (text: string) => this.#box.takeBack(text);
    this.#messages = new Messages(transport, takeBack, () => this.#run && this.update(this.#run));
    this.#footer = h(
      "footer",
      { class: "controls", role: "group", "aria-label": "Control of the run" },
      h("div", { class: "row" }, this.#status, this.#stop),
      this.#messages.element,
      this.#box.element,
      this.#problem,
    );
    this.#footer.addEventListener("keydown", (event) => this.#onKey(event));
    this.#status.addEventListener("blur", () => this.#ended && setTimeout(() => this.#run && this.update(this.#run)));
    // The end is heard when there is nothing more to see here.
    this.element = h("div", {}, this.#footer, this.#announcer.element);
  }

  get isGone(): boolean {
    return this.#transport.link.state === "gone";
  }

  update(run: Run): void {
    this.#run = run;
    const { link } = this.#transport;
    this.#wasLive ||= link.state === "live";
    const ended = this.#ended || run.stop_reason !== null;
    const focused = this.#focused();
    const doing = this.#doing(run, ended);
    if (this.#status.textContent !== doing) {
      this.#status.textContent = doing;
    }
    // Before there is a line, an interrupt might come when the run is over, and hit what the kernel does next.
    this.#stop.disabled = this.#isStopping || !["live", "late"].includes(link.state);
    this.#box.canSend = !ended && link.state === "live";
    const news = this.#messages.update(run, ended);
    if (news) {
      this.#announcer.say(news);
    }
    this.#announcer.update(run, doing);
    const isOver = ended || (link.state === "gone" && !this.#wasLive);
    // What was typed and not sent is not lost.
    this.#stop.hidden = isOver;
    this.#box.element.hidden = isOver && this.#box.isEmpty;
    this.#footer.hidden = ended && this.#box.isEmpty && this.#messages.isEmpty && !focused;
    if (focused?.matches("[hidden] *, [hidden], :disabled")) {
      // Out on the page, what is typed next would be a shortcut of the notebook.
      this.#status.focus({ preventScroll: true });
    }
  }

  /** The run is over, and the transport with it. */
  end(): void {
    this.#ended = true;
    if (this.#run) {
      this.update(this.#run);
    }
    this.#announcer.dispose();
  }

  drawApproval(run: Run, step: CallStep): Node[] {
    return this.#approvals.draw(run, step, this.#run);
  }

  #doing(run: Run, ended: boolean): string {
    const { link } = this.#transport;
    if (ended) {
      return "The run has ended.";
    }
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

  /** What has the focus here. */
  #focused(): Element | undefined {
    const { activeElement } = this.element.getRootNode() as Partial<ShadowRoot>;
    return activeElement && this.#footer.contains(activeElement) ? activeElement : undefined;
  }

  #onKey(event: KeyboardEvent): void {
    // The notebook around has shortcuts of its own.
    event.stopPropagation();
    if (event.key === "Escape" && !event.isComposing && event.keyCode !== 229) {
      const { host } = this.element.getRootNode() as Partial<ShadowRoot>;
      (event.target as HTMLElement).blur();
      host?.closest<HTMLElement>("[tabindex]")?.focus({ preventScroll: true });
    }
  }

  #steer(text: string): void {
    if (this.#run) {
      this.#problem.textContent = "";
      void this.#messages.send(text, this.#run);
    }
  }

  async #stopRun(): Promise<void> {
    this.#isStopping = true;
    this.#problem.textContent = "";
    this.#redraw();
    try {
      await this.#transport.stop();
    } catch (error) {
      this.#isStopping = false;
      // That it has ended is what was wanted.
      if (!this.#ended) {
        this.#fail(error);
      }
      this.#redraw();
    }
  }

  #fail(error: unknown): void {
    this.#problem.textContent = error instanceof Error ? error.message : String(error);
  }
}
