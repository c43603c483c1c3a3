import { expect, test, vi } from "vitest";
import { copyable } from "../src/view/copy";
import { h } from "../src/view/dom";
import { morph } from "../src/view/morph";
import { drawText, drawValue } from "../src/view/values";

const rows = (element: Element) =>
  [...element.querySelectorAll("tr")].map((row) => [...row.children].map((cell) => cell.textContent));

test("a list of records is a table, with what a record lacks left empty", () => {
  const table = drawText('[{"city": "Oslo", "sold": 7}, {"city": "<b>", "sold": null, "open": true}]');

  expect(rows(table)).toEqual([
    ["city", "sold", "open"],
    ["Oslo", "7", ""],
    ["<b>", "null", "true"],
  ]);
  expect(table.querySelector("td[align=right]")?.textContent).toBe("7");
});

test.each([
  ["a single record", '[{"a": 1}]'],
  ["records that have nothing in common", '[{"a": 1}, {"b": 1}, {"c": 1}]'],
  ["records with parts", '[{"a": [1]}, {"a": [2]}]'],
  ["an object", '{"a": {"b": 1}}'],
  ["a list", "[1, 2]"],
])("%s is a tree", (_, json) => {
  const tree = drawText(json);

  expect(tree.querySelector("table")).toBeNull();
  expect(tree.matches(".tree")).toBe(true);
});

test("what is not JSON stands as it is", () => {
  for (const text of ["[WARN] no", "{not json", "12", '"text"', "null", "DataFrame, 2 rows\n   a  b\n0  1  2"]) {
    expect(drawText(text).outerHTML).toMatch(/^<pre/);
    expect(drawText(text).textContent).toBe(text);
  }
});

test("a tree names each part, and one that is larger than a line is opened, unless it is long", () => {
  const tree = drawValue({ name: "NOAA", days: [{ date: "2013-02-08", wind: 31, text: "x".repeat(60) }] });
  document.body.replaceChildren(tree);

  const folds = [...document.querySelectorAll("details")];
  expect(folds.every(({ open }) => open)).toBe(true);
  expect(document.body.textContent).toContain('name: "NOAA"');
  expect(document.body.textContent).toContain("wind: 31");
  expect((drawValue({ long: "x".repeat(1000) }) as HTMLDetailsElement).open).toBe(false);
});

test("of a thousand items two hundred are shown, and that the others are there is said", () => {
  const many = Array.from({ length: 1000 }, (_, index) => ({ index, square: index * index }));

  const table = drawText(JSON.stringify(many));

  expect(rows(table)).toHaveLength(201);
  expect(table.textContent).toContain("… 800 more");
});

test("the button copies the text as it was, and says that it has", async () => {
  const writeText = vi.fn(() => Promise.resolve());
  vi.stubGlobal("navigator", { clipboard: { writeText } });

  const button = copyable(h("pre", {}, "shown"), () => "\u202emeant").querySelector("button");
  button?.click();

  await vi.waitFor(() => expect(button?.textContent).toBe("Copied"));
  expect(writeText).toHaveBeenCalledWith("\u202emeant");
  vi.unstubAllGlobals();
});

test("a button that stays copies what is there now", async () => {
  const writeText = vi.fn(() => Promise.resolve());
  vi.stubGlobal("navigator", { clipboard: { writeText } });
  const old = copyable(h("pre", {}, "half"), () => "half");

  morph(
    old,
    copyable(h("pre", {}, "whole"), () => "whole"),
  );
  old.querySelector("button")?.click();

  expect(writeText).toHaveBeenCalledWith("whole");
  vi.unstubAllGlobals();
});

test("a number that would come out as another stands as it is", () => {
  expect(drawText('{"id": 12345678901234567890}').textContent).toBe('{"id": 12345678901234567890}');
});

test("where a page may not use the clipboard there is no button", () => {
  expect(copyable(h("pre", {}, "shown"), () => "").querySelector("button")).toBeNull();
});
