import { describe, expect, test } from "vitest";
import type { AssistantStep, CallStep, Run } from "../src/view/record";
import { Store } from "../src/view/store";
import type { Batch, Op, Snapshot } from "../src/view/transport";

/** Small and seeded, so that a failure can be repeated. */
function randomNumbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function emptyRun(run_id: string): Run {
  return {
    run_id,
    tools: [],
    steps: [],
    rounds: 0,
    stop_reason: null,
    error: null,
    queued: [],
    undelivered: [],
    children: {},
  };
}

function call(id: string): CallStep {
  const made = { kind: "tool_call" as const, id, name: "f", arguments: {}, raw_arguments: null };
  return { kind: "call", round: 1, call: made, state: "running", output: [], result: null };
}

function reply(): AssistantStep {
  const content: AssistantStep["message"]["content"] = [
    { kind: "text", text: "" },
    { kind: "thinking", thinking: "", redacted: false },
    { kind: "tool_call", id: "c", name: "f", arguments: {}, raw_arguments: null },
  ];
  return { kind: "assistant", round: 1, message: { kind: "assistant", content, stop_reason: "stop" } };
}

/** What a kernel does: a run that changes, the numbered batches, and a snapshot after each of them. */
function history(random: (below: number) => number): { batches: Batch[]; snapshots: Snapshot[] } {
  const root = emptyRun("root");
  const runs = [root];
  const batches: Batch[] = [];
  const snapshots = [{ seq: 0, run: structuredClone(root) }];
  let seq = 0;
  for (let count = 0; count < 20; count++) {
    const ops = Array.from({ length: 1 + random(4) }, () => change(runs, random));
    batches.push(structuredClone({ first: seq + 1, last: seq + ops.length, ops }));
    seq += ops.length;
    snapshots.push({ seq, run: structuredClone(root) });
  }
  return { batches, snapshots };
}

/** Changes one of `runs`, written out anew and not with the code under test, and says how. */
function change(runs: Run[], random: (below: number) => number): Op {
  const run = runs[random(runs.length)] as Run;
  const run_id = run.run_id as string;
  const index = random(run.steps.length + 1);
  const step = run.steps[index];
  const text = "abc".slice(random(3));
  if (!step) {
    const made = random(2) ? call(`call-${random(3)}`) : reply();
    run.steps.push(made);
    return structuredClone({ op: "step", run_id, index, step: made });
  }
  if (step.kind === "assistant") {
    const block = random(3);
    const grown = step.message.content[block];
    if (grown?.kind === "text") {
      grown.text += text;
    } else if (grown?.kind === "thinking") {
      grown.thinking += text;
    } else if (grown?.kind === "tool_call") {
      grown.raw_arguments = `${grown.raw_arguments ?? ""}${text}`;
    }
    return { op: "append", run_id, index, block, text };
  }
  const { call: made, output } = step as CallStep;
  switch (random(3)) {
    case 0: {
      const name = ["stdout", "stderr"][random(2)] as string;
      const last = output.at(-1);
      if (last?.output_type === "stream" && last.name === name) {
        last.text += text;
      } else {
        output.push({ output_type: "stream", name, text });
      }
      return { op: "output", run_id, index, output: { output_type: "stream", name, text } };
    }
    case 1: {
      run.rounds++;
      return { op: "set", run_id, fields: { rounds: run.rounds } };
    }
    default: {
      const child = emptyRun(`run-${runs.length}`);
      runs.push(child);
      run.children[made.id] = [...(run.children[made.id] ?? []), child];
      return {
        op: "run",
        run_id: `run-${runs.length - 1}`,
        parent_id: run_id,
        call_id: made.id,
        run: structuredClone(child),
      };
    }
  }
}

function storeAt(snapshot: Snapshot | undefined): Store {
  const store = new Store(emptyRun("root"));
  store.reset(structuredClone(snapshot as Snapshot));
  return store;
}

describe.each(Array.from({ length: 50 }, (_, seed) => seed))("a run that changes at random (%i)", (seed) => {
  test("batches make of the first snapshot the last one", () => {
    const { batches, snapshots } = history(randomNumbers(seed));
    const store = storeAt(snapshots[0]);

    for (const batch of batches) {
      expect(store.receive([structuredClone(batch)])).toHaveLength(batch.ops.length);
    }
    expect(store.run).toEqual(snapshots.at(-1)?.run);
  });

  test("whatever is lost, repeated, early or late, it ends as the kernel has it", () => {
    const random = randomNumbers(seed);
    const { batches, snapshots } = history(random);
    const store = new Store(emptyRun("root"));

    batches.forEach((batch, now) => {
      const before = batches[random(now + 1)] as Batch;
      const arriving = [[batch], [batch, before], [before], []][random(4)] as Batch[];
      store.receive(structuredClone(arriving));
      if (store.isLost && random(2)) {
        // The kernel may be ahead of what has arrived, or may have been asked a while ago.
        store.reset(structuredClone(snapshots[random(now + 2)] as Snapshot));
      }
      expect(snapshots.map(({ run }) => run)).toContainEqual(store.run);
    });
    store.receive(structuredClone(batches.slice(-1)));
    if (store.isLost) {
      store.reset(structuredClone(snapshots.at(-1) as Snapshot));
    }
    expect(store.run).toEqual(snapshots.at(-1)?.run);
    expect(store.isLost).toBe(false);
  });
});

test("batches that come before the first snapshot are kept, and those that it holds are left out", () => {
  const { batches, snapshots } = history(randomNumbers(1));
  const store = new Store(emptyRun("root"));

  expect(store.receive(structuredClone(batches))).toEqual([]);
  expect(store.isLost).toBe(true);
  store.reset(structuredClone(snapshots[10] as Snapshot));
  expect(store.run).toEqual(snapshots.at(-1)?.run);
});

test("batches that come in the wrong order are put right", () => {
  const { batches, snapshots } = history(randomNumbers(3));
  const store = new Store(emptyRun("root"));

  store.receive(structuredClone(batches).reverse());
  store.reset(structuredClone(snapshots[0] as Snapshot));

  expect(store.isLost).toBe(false);
  expect(store.run).toEqual(snapshots.at(-1)?.run);
});

test("a change that fits nothing asks for a snapshot", () => {
  const store = storeAt({ seq: 0, run: emptyRun("root") });

  store.receive([{ first: 1, last: 1, ops: [{ op: "set", run_id: "nobody", fields: {} }] }]);

  expect(store.isLost).toBe(true);
});

test("it says which changes were made", () => {
  const { batches, snapshots } = history(randomNumbers(2));
  const store = storeAt(snapshots[5]);

  const made = store.receive(structuredClone(batches.slice(0, 7)));

  expect(made.length).toBe(batches.slice(5, 7).flatMap(({ ops }) => ops).length);
});
