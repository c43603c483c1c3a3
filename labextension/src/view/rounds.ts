/** The rounds of a run: the last ones stand in the open, those long past are gathered in folds. */

import { failures } from "./amounts";
import { details, h } from "./dom";
import type { Run, Step } from "./record";

/** So many rounds are gathered in one fold. */
const GATHERED = 25;
/** At least so many, the last ones, are not. */
const LATEST = 25;

/** Draws a round, counted from 1, with all its steps. */
export type DrawRound = (round: number) => HTMLElement;

export function drawRounds(run: Run, draw: DrawRound): HTMLElement[] {
  const past = pastOf(run);
  const folds = Array.from({ length: past / GATHERED }, (_, index) => drawPast(run, index * GATHERED + 1, draw));
  return [...folds, ...drawFrom(past + 1, run.rounds, draw)];
}

/** Brings the rounds in `element` to their number in `run`: draws what is new, and gathers what is long past. */
export function growRounds(element: Element, run: Run, draw: DrawRound): void {
  const ending = element.lastElementChild as Element;
  const open = [...element.children].filter((child): child is HTMLElement => child.matches(".round"));
  ending.before(...drawFrom(numberOf(open.at(-1)) + 1, run.rounds, draw));
  while (open.length && numberOf(open[0]) <= pastOf(run)) {
    const gathered = open.splice(0, GATHERED);
    if (gathered.some(isHeld) || (!isInSight(ending) && gathered.some(isInSight))) {
      // Not under the hands and eyes of whoever is there; later, then.
      return;
    }
    gathered[0]?.before(drawPast(run, numberOf(gathered[0]), draw));
    for (const round of gathered) {
      round.remove();
    }
  }
}

/** A round, if it is on the page. */
export function findRound(element: Element, round: number): Element | null {
  const places = [...element.children].flatMap((child) => (child.matches(".past") ? [...child.children] : child));
  return places.find((place) => place instanceof HTMLElement && numberOf(place) === round) ?? null;
}

/** The rounds that the file does not have, and among which these are. */
export function leftOut({ left_out }: Run, first: number, last: number): [first: number, last: number] | undefined {
  return left_out?.find(([begin, end]) => begin <= first && last <= end);
}

export function sayLeftOut([first, last]: [first: number, last: number]): string {
  const rounds = first === last ? `Round ${first} was` : `Rounds ${first} to ${last} were`;
  return `${rounds} left out of the notebook file.`;
}

/** How many rounds are gathered, the first ones. */
function pastOf({ rounds }: Run): number {
  return Math.max(Math.floor((rounds - LATEST) / GATHERED), 0) * GATHERED;
}

function drawFrom(first: number, last: number, draw: DrawRound): HTMLElement[] {
  return Array.from({ length: Math.max(last - first + 1, 0) }, (_, index) => draw(first + index));
}

function drawPast(run: Run, first: number, draw: DrawRound): HTMLDetailsElement {
  const last = first + GATHERED - 1;
  const steps = run.steps.filter(({ round }) => round >= first && round <= last);
  const isGone = !steps.length && leftOut(run, first, last);
  const held = h("span", { class: "note" }, isGone ? "left out of the notebook file" : heldBy(run, steps));
  const summary = [h("span", {}, `Rounds ${first} to ${last}`), " ", held];
  const element = details("past", summary, () => drawFrom(first, last, draw));
  element.dataset.key = `rounds ${first}`;
  return element;
}

/** What a reader may look for in those steps. */
function heldBy({ children }: Run, steps: Step[]): string {
  const calls = steps.filter((step) => step.kind === "call");
  const failed = calls.filter(({ state }) => state === "error").length;
  const messages = steps.filter((step) => step.kind === "user" && step.message.source !== "user").length;
  const counted = [`${calls.length} ${calls.length === 1 ? "call" : "calls"}`];
  if (failed) {
    counted.push(`${failed} failed`);
  }
  const inNested = failures(calls.flatMap(({ call }) => children[call.id] ?? []));
  if (inNested) {
    counted.push(`${inNested} in nested runs`);
  }
  if (messages) {
    counted.push(messages === 1 ? "a message of yours" : `${messages} messages of yours`);
  }
  return counted.join(", ");
}

function numberOf(round: HTMLElement | undefined): number {
  return Number(round?.dataset.round ?? 0);
}

/** Whether the focus, or what somebody has marked, is in `element`. */
function isHeld(element: Element): boolean {
  const root = element.getRootNode() as ShadowRoot | Document;
  const selection = document.getSelection();
  return element.contains(root.activeElement) || (selection?.type === "Range" && selection.containsNode(element, true));
}

function isInSight(element: Element): boolean {
  const { top, bottom } = element.getBoundingClientRect();
  return bottom > 0 && top < window.innerHeight && bottom > top;
}
