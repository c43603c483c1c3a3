import DOMPurify from "dompurify";
import { expect, test, vi } from "vitest";
import { drawMarkdown } from "../src/view/markdown";
import { drawAssistant } from "../src/view/steps/assistant";

function drawn(text: string): HTMLElement {
  return drawMarkdown({ kind: "text", text });
}

test("headings, lists, emphasis and tables of a model are drawn as such", () => {
  const said = drawn("# Sales\n\n7. seventh\n\n- **best**: December\n\n| month | total |\n|---|--:|\n| May | 7 |");

  expect(said.querySelector("h1")?.textContent).toBe("Sales");
  expect(said.querySelector("ol")?.start).toBe(7);
  expect(said.querySelector("li strong")?.textContent).toBe("best");
  expect([...said.querySelectorAll(".table > table td")].map((cell) => cell.textContent)).toEqual(["May", "7"]);
  expect(said.querySelectorAll("[align=right]")).toHaveLength(2);
});

test("code of a language that is known is highlighted, also while its fence is still open, and any other is not", () => {
  const code = 'def f():\n    return "<b>"\n';

  const known = drawn(`\`\`\`python\n${code}`).querySelector("pre");
  expect(known?.textContent).toBe(code);
  expect(known?.querySelector(".hljs-keyword")?.textContent).toBe("def");

  const unknown = drawn(`\`\`\`brainfuck\n${code}\`\`\``).querySelector("pre");
  expect(unknown?.textContent).toBe(code);
  expect(unknown?.querySelector("span, b")).toBeNull();
});

test("a link leads to another tab, to the web or a mail, and nowhere else", () => {
  const said = drawn(
    "[web](https://a.example/) [mail](mailto:a@b.example) <https://c.example/> [script](javascript:alert(1)) " +
      "[entity](java&#115;cript:alert(1)) [data](data:text/html,x) [file](file:///etc/passwd) [here](/lab?reset) [top](#top)",
  );

  const links = [...said.querySelectorAll("a")];
  expect(links.map((link) => link.getAttribute("href"))).toEqual([
    "https://a.example/",
    "mailto:a@b.example",
    "https://c.example/",
  ]);
  for (const link of links) {
    expect(link.target).toBe("_blank");
    expect(link.relList.contains("noopener")).toBe(true);
  }
  expect(said.textContent).toContain("[script](javascript:alert(1))");
});

test("an image of another host is not asked for: its place is a link", () => {
  const said = drawn("![pixel](https://evil.example/d.png) ![inline](data:image/png;base64,AAAA)");

  expect(said.querySelector("img")).toBeNull();
  expect(said.querySelector("a")?.href).toBe("https://evil.example/d.png");
});

test("HTML is text, in a line, as a block, and in what is highlighted", () => {
  const evil = '<img src=x onerror="alert(1)"><script>alert(1)</script>';
  const said = drawn(
    `${evil}\n\nIn ${evil}\n\n\`${evil}\`\n\n\`\`\`python\n${evil}\n\`\`\`\n\n\`\`\`${evil}\nx\n\`\`\``,
  );

  expect(said.textContent?.split(evil)).toHaveLength(5);
  expect(said.querySelector("img, script, [onerror]")).toBeNull();
});

test("what turns the direction of text is seen also where it is written as an entity", () => {
  expect(drawn("a&#x202e;b[c](https://d.example/&#x202e;)").textContent).toBe("a\\u202ebc\n");
});

test("what is too long to read in one go stays as it was written", () => {
  const said = drawn(`**a** ${"x".repeat(20_000)}`);

  expect(said.querySelector("strong")).toBeNull();
  expect(said.textContent).toContain("**a** xxx");
});

test("of a reply that streams in only the block that has grown is parsed again, once a change", () => {
  const content = [
    { kind: "text" as const, text: "a **b**" },
    { kind: "text" as const, text: "c" },
  ];
  const message = { kind: "assistant" as const, content, stop_reason: "stop" as const };
  const draw = () => drawAssistant({ kind: "assistant", round: 1, message }, new Set());
  const parse = vi.spyOn(DOMPurify, "sanitize");
  draw();
  expect(parse).toHaveBeenCalledTimes(2);

  for (const block of content.slice(1)) {
    block.text += " _d_";
  }
  const element = draw();
  draw();

  expect(parse).toHaveBeenCalledTimes(3);
  expect(element.textContent).toBe("a b\nc d\n");
});
