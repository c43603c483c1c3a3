/** The view and the static HTML, which Python makes, say the same of a run: both are held to one table. */

import { expect, test } from "vitest";
import words from "../../tests/fixtures/words.json";
import { mount } from "../src/view/mount";
import type { CallStep, Run } from "../src/view/record";
import { run } from "./fixtures";

function drawn(run: Run): ShadowRoot {
  const el = document.createElement("div");
  mount(el, run);
  return el.shadowRoot as ShadowRoot;
}

test.each(Object.entries(words.calls))("a call that is %s has the mark and the word of the table", (state, said) => {
  const step = run("everything").steps.find((step) => step.kind === "call") as CallStep;
  const steps = [{ ...step, state: state as CallStep["state"] }];

  const mark = drawn({ ...run("everything"), steps }).querySelector(".round > .call > summary .mark");

  expect([mark?.textContent, mark?.getAttribute("aria-label")]).toEqual(said);
});

test.each(Object.entries(words.runs))(
  "a run that ended with '%s' has the mark and the word of the table",
  (end, said) => {
    const stop_reason = (end || null) as Run["stop_reason"];

    const head = drawn({ ...run("everything"), stop_reason }).querySelector(".run > .head");

    expect([...(head?.children ?? [])].slice(0, 2).map(({ textContent }) => textContent)).toEqual(said);
  },
);

test("rounds that the file does not have are one line, in their place", () => {
  const whole = run("everything");
  const left_out: Run["left_out"] = [[2, 2]];
  const steps = whole.steps.filter(({ round }) => round !== 2);

  const rounds = [
    ...drawn({ ...whole, steps, left_out }).querySelectorAll<HTMLElement>(".run > .round:not(.call .round)"),
  ];

  expect(rounds.map(({ hidden }) => hidden)).toEqual([false, false, false]);
  expect(rounds[1]?.textContent).toBe("Round 2 was left out of the notebook file.");

  const many = drawn({
    ...whole,
    steps: steps.map((step) => ({ ...step, round: step.round === 3 ? 9 : 1 })),
    rounds: 9,
    left_out: [[2, 8]],
  });
  const shown = [...many.querySelectorAll<HTMLElement>(".run > .round:not(.call .round)")].filter(
    ({ hidden }) => !hidden,
  );
  expect(shown.map(({ textContent }) => textContent?.slice(0, 40))[1]).toBe("Rounds 2 to 8 were left out of the noteb");
  expect(shown).toHaveLength(3);
});
