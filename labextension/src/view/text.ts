/** What others wrote, as text that a person may safely look at: nothing in it acts unseen, and it never takes long to draw. */

import { details } from "./dom";

/** So many characters are shown at once: a browser takes half a second to lay out a million. The rest is a click away. */
const LONGEST = 20_000;

/** `text` whole, its middle folded away where it is very long. */
export function shown(text: string): (string | Node)[] {
  if (text.length <= LONGEST) {
    return [visible(text)];
  }
  const head = wholeUpTo(text, LONGEST / 2);
  const tail = wholeUpTo(text, text.length - LONGEST / 2);
  const summary = `… ${(tail - head).toLocaleString("en")} more characters …`;
  const middle = details("more", [summary], document.createTextNode(visible(text.slice(head, tail))));
  return [visible(text.slice(0, head)), middle, visible(text.slice(tail))];
}

/** The beginning of `text`, in one line. */
export function oneLine(text: string): string {
  const line = visible(text.slice(0, 1000)).replace(/\s+/g, " ").trim();
  return line.length > 80 ? `${line.slice(0, wholeUpTo(line, 79))}…` : line;
}

/** Control characters, and those that turn the direction of text, are written as in Python. */
function visible(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(/[^\P{Cc}\n\t]|\p{Bidi_Control}/gu, (character) => {
    const code = character.charCodeAt(0).toString(16);
    return code.length > 2 ? `\\u${code.padStart(4, "0")}` : `\\x${code.padStart(2, "0")}`;
  });
}

/** `end`, or one less where that would cut a character in two. */
function wholeUpTo(text: string, end: number): number {
  return /[\udc00-\udfff]/.test(text.charAt(end)) ? end - 1 : end;
}
