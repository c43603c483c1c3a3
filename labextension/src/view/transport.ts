/** The line between a view and the run that it shows, as the view sees it. Types only: the host brings the line. */

import type { Output, Run, Step } from "./record";

/** A change of the record; `run_id` names a run anywhere in the tree. */
export type Op =
  | { op: "run"; run_id: string; parent_id: string | null; call_id: string | null; run: Run }
  | { op: "step"; run_id: string; index: number; step: Step }
  | { op: "append"; run_id: string; index: number; block: number; text: string }
  | { op: "output"; run_id: string; index: number; output: Output }
  | { op: "set"; run_id: string; fields: Partial<Run> };

/** Changes number `first` to `last`, together. */
export interface Batch {
  first: number;
  last: number;
  ops: Op[];
}

/** The whole record, with the number of the last change that is in it. */
export interface Snapshot {
  seq: number;
  run: Run;
  /** What time it is for the kernel, in seconds since the epoch, where it says so. */
  time?: number;
}

/** `late`: messages arrive when the cell ends. `watching`: none can be sent. `gone`: nothing comes, either. */
export type Link = { state: "connecting" | "live" } | { state: "late" | "watching" | "gone"; reason: string };

export interface Listener {
  onLink(link: Link): void;
  onBatches(batches: Batch[]): void;
}

/** Whether a call may run; `always`: the later ones of its function in this run, too, without asking again. */
export type Answer = boolean | "always";

/** Every request is answered, or rejected with an error that says why not. */
export interface Transport {
  readonly link: Link;
  connect(listener: Listener): void;
  steer(text: string): Promise<"queued" | "undelivered">;
  stop(): Promise<void>;
  approve(runId: string, callId: string, answer: Answer): Promise<void>;
  snapshot(): Promise<Snapshot>;
  dispose(): void;
}
