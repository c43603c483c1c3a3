/** The view's copy of a run, kept up to date by numbered changes. Pure: it draws and sends nothing. */

import type { Output, Run } from "./record";
import type { Batch, Op, Snapshot } from "./transport";

export class Store {
  run: Run;
  /** The number of the last change that is in `run`, or `null` while only a snapshot can tell. */
  #seq: number | null = null;
  #kept: Batch[] = [];
  #runs = new Map<string, Run>();

  constructor(run: Run) {
    this.run = run;
  }

  /** Whether a snapshot is needed; until it is there, batches are kept. */
  get isLost(): boolean {
    return this.#seq === null;
  }

  /** Something may have been missed. */
  lose(): void {
    this.#seq = null;
  }

  reset({ seq, run }: Snapshot): void {
    this.#seq = seq;
    this.#runs.clear();
    this.#place(run, null, null);
    this.receive([]);
  }

  /** Takes batches in any order and any number of times, and returns the changes that they made. */
  receive(batches: Batch[]): Op[] {
    this.#kept.push(...batches);
    this.#kept.sort((a, b) => a.first - b.first);
    const made: Op[] = [];
    while (this.#seq !== null && this.#kept[0]) {
      const batch = this.#kept[0];
      if (batch.last > this.#seq) {
        if (batch.first !== this.#seq + 1 || !batch.ops.every((op) => this.#apply(op))) {
          this.lose();
          break;
        }
        this.#seq = batch.last;
        made.push(...batch.ops);
      }
      this.#kept.shift();
    }
    return made;
  }

  /** The run that a change belongs to. */
  find(runId: string): Run | undefined {
    return this.#runs.get(runId);
  }

  /** Whether `op` fits what is there. */
  #apply(op: Op): boolean {
    if (op.op === "run") {
      return this.#place(op.run, op.parent_id, op.call_id);
    }
    const run = this.#runs.get(op.run_id);
    if (!run) {
      return false;
    }
    if (op.op === "set") {
      Object.assign(run, op.fields);
      return true;
    }
    if (op.op === "step") {
      const fits = op.index <= run.steps.length;
      run.steps[op.index] = op.step;
      return fits;
    }
    const step = run.steps[op.index];
    if (op.op === "output") {
      if (step?.kind === "call") {
        write(step.output, op.output);
      }
      return step?.kind === "call";
    }
    const block = step?.kind === "assistant" ? step.message.content[op.block] : undefined;
    switch (block?.kind) {
      case "text":
        block.text += op.text;
        return true;
      case "thinking":
        block.thinking += op.text;
        return true;
      case "tool_call":
        block.raw_arguments = (block.raw_arguments ?? "") + op.text;
        return true;
      default:
        return false;
    }
  }

  #place(run: Run, parentId: string | null, callId: string | null): boolean {
    const parent = parentId === null ? null : this.#runs.get(parentId);
    if (parent === undefined) {
      return false;
    }
    if (parent) {
      const siblings = parent.children[callId ?? ""] ?? [];
      parent.children[callId ?? ""] = [...siblings, run];
    } else {
      this.run = run;
    }
    this.#index(run);
    return true;
  }

  #index(run: Run): void {
    this.#runs.set(run.run_id ?? "", run);
    Object.values(run.children)
      .flat()
      .forEach((child) => {
        this.#index(child);
      });
  }
}

/** As the kernel does: what goes on in one stream is one output, however often a function writes. */
function write(outputs: Output[], output: Output): void {
  const last = outputs.at(-1);
  if (last?.output_type === "stream" && output.output_type === "stream" && last.name === output.name) {
    outputs[outputs.length - 1] = { ...last, text: [last.text, output.text].flat().join("") };
  } else {
    outputs.push(output);
  }
}
