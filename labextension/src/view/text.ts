/** What others wrote, as text that a person may safely look at: nothing in it acts unseen. */

/** So many characters stand in one line. */
export const LINE = 80;

/** The beginning of `text`, in one line of at most so many characters; the style may cut it shorter. */
export function oneLine(text: string, most = LINE): string {
  const line = visible(text.slice(0, 1000)).replace(/\s+/g, " ").trim();
  return line.length > most ? `${line.slice(0, wholeUpTo(line, most - 1))}…` : line;
}

/** Control characters, those that turn the direction of text, and those that nobody sees, but for what joins emoji. */
const UNSEEN =
  /[^\P{Cc}\n\t]|\p{Bidi_Control}|[\u00ad\u115f\u1160\u180e\u200b\u2028\u2029\u2060-\u2064\u3164\ufeff\uffa0\u{e0000}-\u{e007f}]/gu;

/** `text` with what is unseen written as in Python. */
export function visible(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(UNSEEN, (character) => {
    const code = character.codePointAt(0)?.toString(16) ?? "";
    const [sign, width] = code.length > 4 ? ["U", 8] : code.length > 2 || code >= "a0" ? ["u", 4] : ["x", 2];
    return `\\${sign}${code.padStart(width as number, "0")}`;
  });
}

/** `end`, or one less where that would cut a character in two. */
export function wholeUpTo(text: string, end: number): number {
  return /[\udc00-\udfff]/.test(text.charAt(end)) ? end - 1 : end;
}
