/** Data as what they are: a tree, a table where they are one, or plain text. Nothing here knows of runs. */

import { details, h } from "./dom";
import { LINE, oneLine } from "./text";

/** So many items of a list, or rows of a table, are shown; text that is longer than this is not looked into. */
const MOST_ITEMS = 200;
const MOST_COLUMNS = 20;
const MOST_TEXT = 1_000_000;
/** A part whose JSON is so long is open, unless it fits in a line. */
const LONG = 600;

type Flat = Record<string, string | number | boolean | null>;

/** What a function said: data as a tree or a table, other text as it stands. */
export function drawText(text: string): HTMLElement {
  const value = parsed(text);
  if (value === undefined) {
    // Lines that are laid out as a table are not wrapped.
    return h("pre", /\S {2,}\S|\t|\|/.test(text.slice(0, 2000)) ? { class: "wide" } : {}, text);
  }
  return isTable(value) ? drawTable(value) : h("div", { class: "tree" }, drawValue(value));
}

/** A value, under its name where it has one; what is in it is folded where it is large. */
export function drawValue(value: unknown, name = ""): Node {
  const label = name ? [h("code", { class: "name" }, `${name}: `)] : [];
  if (value === null || typeof value !== "object") {
    return h("div", {}, ...label, drawScalar(value));
  }
  const entries: [string, unknown][] = Object.entries(value);
  const written = JSON.stringify(value);
  if (!entries.length) {
    return h("div", {}, ...label, h("code", {}, written));
  }
  const size = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  const items = () => entries.slice(0, MOST_ITEMS).map(([name, item]) => h("li", {}, drawValue(item, name)));
  return details(
    "value",
    [...label, h("code", {}, `${size} `), h("code", { class: "brief" }, oneLine(written))],
    () => [h("ul", {}, ...items(), ...left(entries.length))],
    written.length > LINE && written.length < LONG,
  );
}

function drawScalar(value: unknown): HTMLElement {
  const kind = typeof value === "string" ? "string" : typeof value === "number" ? "number" : "literal";
  return h("code", { class: `hljs-${kind}` }, JSON.stringify(value));
}

function drawTable(rows: Flat[]): HTMLElement {
  const columns = columnsOf(rows);
  const cell = (value: Flat[string] | undefined) =>
    h("td", typeof value === "number" ? { align: "right" } : {}, value === undefined ? "" : String(value));
  const table = h(
    "table",
    {},
    h("thead", {}, h("tr", {}, ...columns.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, ...rows.slice(0, MOST_ITEMS).map((row) => h("tr", {}, ...columns.map((name) => cell(row[name]))))),
  );
  return h("div", { class: "table" }, table, ...left(rows.length));
}

function left(count: number): HTMLElement[] {
  return count > MOST_ITEMS ? [h("p", { class: "note" }, `… ${(count - MOST_ITEMS).toLocaleString("en")} more`)] : [];
}

/** A list of at least two records that have much the same fields, and nothing in these that has parts of its own. */
function isTable(value: unknown): value is Flat[] {
  if (!Array.isArray(value) || value.length < 2 || !value.every(isFlat)) {
    return false;
  }
  const columns = columnsOf(value).length;
  return columns > 0 && columns <= MOST_COLUMNS && value.every((row) => Object.keys(row).length * 2 >= columns);
}

function isFlat(value: unknown): value is Flat {
  const isRecord = typeof value === "object" && value !== null && !Array.isArray(value);
  return isRecord && Object.values(value).every((item) => item === null || typeof item !== "object");
}

function columnsOf(rows: Flat[]): string[] {
  return [...new Set(rows.flatMap((row) => Object.keys(row)))];
}

/** The list or the object that `text` is, in JSON. */
function parsed(text: string): object | undefined {
  // A number of so many digits would come out as another.
  if (!/^\s*[[{]/.test(text) || text.length > MOST_TEXT || /\d{16}/.test(text)) {
    return undefined;
  }
  try {
    const value = JSON.parse(text);
    JSON.stringify(value);
    return value;
  } catch {
    // It is something else, or nested too deeply to be written.
    return undefined;
  }
}
