/** What others wrote, as text that a person may safely look at: nothing in it acts unseen. */

/** So many characters stand in one line. */
export const LINE = 80;

/** The beginning of `text`, in one line of at most so many characters; the style may cut it shorter. */
export function oneLine(text: string, most = LINE): string {
  const line = visible(text.slice(0, 1000)).replace(/\s+/g, " ").trim();
  return line.length > most ? `${line.slice(0, wholeUpTo(line, most - 1))}…` : line;
}

/** Control characters, and those that turn the direction of text, are written as in Python. */
export function visible(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(/[^\P{Cc}\n\t]|\p{Bidi_Control}/gu, (character) => {
    const code = character.charCodeAt(0).toString(16);
    return code.length > 2 ? `\\u${code.padStart(4, "0")}` : `\\x${code.padStart(2, "0")}`;
  });
}

/** `end`, or one less where that would cut a character in two. */
export function wholeUpTo(text: string, end: number): number {
  return /[\udc00-\udfff]/.test(text.charAt(end)) ? end - 1 : end;
}
