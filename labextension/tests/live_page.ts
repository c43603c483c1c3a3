/** A live view on a page, and what a kernel tells it; set up anew for each test of a file that imports this. */

import { afterEach, beforeEach, vi } from "vitest";
import { mount, type View } from "../src/view/mount";
import type { AssistantStep, CallStep, Run, Step, UserMessage } from "../src/view/record";
import type { Link, Listener, Op, Transport } from "../src/view/transport";
import { run } from "./fixtures";

export let el: HTMLElement;
export let view: View;
export let root: ShadowRoot;
let listener: Listener;
let seq: number;
/** What the kernel has. */
export let record: Run;
export const transport = {
  link: { state: "connecting" } as Link,
  connect: vi.fn((to: Listener) => {
    listener = to;
  }),
  steer: vi.fn<Transport["steer"]>(),
  stop: vi.fn<Transport["stop"]>(),
  approve: vi.fn<Transport["approve"]>(),
  snapshot: vi.fn<Transport["snapshot"]>(),
  dispose: vi.fn(),
};

beforeEach(async () => {
  vi.clearAllMocks();
  record = { ...run("everything"), run_id: "root", stop_reason: null, error: null, undelivered: [] };
  record.steps = record.steps.filter((step) => step.kind !== "user" || step.message.source !== "steering");
  seq = 0;
  transport.snapshot.mockImplementation(async () => structuredClone({ seq, run: record }));
  el = document.body.appendChild(document.createElement("div"));
  remount();
  await link({ state: "live" });
});

afterEach(() => {
  view.dispose();
  el.remove();
});

export async function link(to: Link): Promise<void> {
  transport.link = to;
  listener.onLink(to);
  await settled();
}

export async function settled(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve));
}

export function send(...ops: Op[]): void {
  listener.onBatches([{ first: seq + 1, last: seq + ops.length, ops: structuredClone(ops) }]);
  seq += ops.length;
}

export function find<E extends HTMLElement>(selector: string): E {
  const found = root.querySelector<E>(selector);
  if (!found) {
    throw new Error(`Nothing is ${selector}`);
  }
  return found;
}

export function call(id: string, fields: Partial<CallStep> = {}): CallStep {
  const made = { kind: "tool_call" as const, id, name: `do_${id}`, arguments: { path: "x" }, raw_arguments: null };
  return { kind: "call", round: record.rounds, call: made, state: "running", output: [], result: null, ...fields };
}

export function reply(text: string): AssistantStep {
  const content = [{ kind: "text" as const, text }];
  return { kind: "assistant", round: record.rounds, message: { kind: "assistant", content, stop_reason: "stop" } };
}

export function step(step: Step, index = record.steps.length): Op {
  return { op: "step", run_id: "root", index, step };
}

export function steering(text: string): UserMessage {
  return { kind: "user", content: [{ kind: "text", text }], source: "steering" };
}

export const status = () => find(".status").textContent;
export const sent = () => [...root.querySelectorAll(".sent li")].map((item) => item.textContent);
export const box = () => find<HTMLTextAreaElement>("textarea");

export function type(text: string, key: KeyboardEventInit = { key: "Enter" }): KeyboardEvent {
  box().value = text;
  const event = new KeyboardEvent("keydown", { ...key, bubbles: true, composed: true, cancelable: true });
  box().dispatchEvent(event);
  return event;
}

/** The same view on the same page, before its line stands. */
export function remount(): void {
  view?.dispose();
  transport.link = { state: "connecting" };
  view = mount(el, { ...record, steps: [], rounds: 0 }, transport);
  root = el.shadowRoot as ShadowRoot;
}

/** As many changes as that never arrive. */
export function miss(changes: number): void {
  seq += changes;
}
