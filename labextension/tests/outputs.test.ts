import { expect, test } from "vitest";
import { MIME_TYPE, runIn } from "../src/outputs";
import { run } from "./fixtures";

test("times, model and tokens stand in an output's metadata, and come back into the run and those nested in it", () => {
  const data = run("everything");
  data.steps = data.steps.slice(1, 2);
  const metadata = { run_id: "r", model: "m", started: 1, ended: 2, steps: [], children: { call_3: [{ model: "n" }] } };
  delete data.model;

  const whole = runIn({ data: { [MIME_TYPE]: data }, metadata: { [MIME_TYPE]: metadata } });

  expect(whole).toMatchObject({ run_id: "r", model: "m", started: 1, ended: 2, steps: data.steps });
  expect(whole.children.call_3?.[0]?.model).toBe("n");
});

test("each step gets its own, and nothing that a reply is made of is taken from there", () => {
  const steps = run("everything").steps.filter(({ kind }) => kind !== "retry");
  const usage = { input: 1, output: 2, cache_read: 3, cache_write: 4, reasoning: 0 };
  const varying = steps.map(({ kind }, index) => (kind === "assistant" ? { usage, ended: index, kind: "call" } : {}));
  const data = { ...run("everything"), steps: steps.map(({ ...step }) => ({ ...step, ended: undefined })) };
  const bundle = {
    data: { [MIME_TYPE]: JSON.parse(JSON.stringify(data)) },
    metadata: { [MIME_TYPE]: { steps: varying } },
  };

  const whole = runIn(bundle);

  expect(whole.steps.map(({ kind }) => kind)).toEqual(steps.map(({ kind }) => kind));
  whole.steps.forEach((step, index) => {
    if (step.kind === "assistant") {
      expect(step).toMatchObject({ ended: index, message: { usage } });
    }
  });
});

test("retries stand where they stood, in nested runs too", () => {
  const whole = run("everything");
  const retry = whole.steps[1];
  const without = { ...whole, steps: whole.steps.filter(({ kind }) => kind !== "retry") };
  const kept = [
    { index: 1, ...retry },
    { index: 3, ...retry, attempt: 2 },
  ];
  const data = { ...without, children: { call_3: [without] } };
  const metadata = { retries: kept, children: { call_3: [{ retries: kept.slice(0, 1) }] } };

  const found = runIn({ data: { [MIME_TYPE]: data }, metadata: { [MIME_TYPE]: metadata } });

  expect(retry?.kind).toBe("retry");
  expect(found.steps).toEqual([...whole.steps.slice(0, 3), { ...retry, attempt: 2 }, ...whole.steps.slice(3)]);
  expect(found.children.call_3?.[0]?.steps).toEqual(whole.steps);
});

test("an output without metadata has the run that its data are", () => {
  expect(runIn({ data: { [MIME_TYPE]: run("everything") }, metadata: {} })).toEqual(run("everything"));
});
