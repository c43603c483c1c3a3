/**
 * What a model says, as Markdown. The same dialect as the static HTML's: CommonMark with tables, no HTML, no images.
 *
 * The one place where HTML becomes elements: what the parser wrote goes through the sanitiser, and only that.
 */

import DOMPurify from "dompurify";
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import sql from "highlight.js/lib/languages/sql";
import yaml from "highlight.js/lib/languages/yaml";
import MarkdownIt from "markdown-it";
import { copyable } from "./copy";
import { h, LONGEST } from "./dom";
import type { TextContent } from "./record";
import { visible } from "./text";

for (const [name, language] of Object.entries({ bash, json, python, sql, yaml })) {
  hljs.registerLanguage(name, language);
}

const parser = new MarkdownIt("commonmark", { html: false, highlight }).enable("table").disable("image");
parser.validateLink = (url) => LINK.test(url);

const LINK = /^(?:https?|mailto):/i;
const TAGS = "a blockquote br code em h1 h2 h3 h4 h5 h6 hr li ol p pre span strong table tbody td th thead tr ul";

for (const cell of ["th_open", "td_open"]) {
  parser.renderer.rules[cell] = (tokens, index, options, _env, renderer) => {
    const token = tokens[index];
    const style = token?.attrGet("style");
    if (style) {
      // Styles do not come through.
      token?.attrSet("align", String(style).replace("text-align:", ""));
    }
    return renderer.renderToken(tokens, index, options);
  };
}

/** What was made of a block, while its text is still that. */
const made = new WeakMap<TextContent, { text: string; fragment: DocumentFragment }>();

/** Text that is too long to read in one go stays as it is, folded. */
export function drawMarkdown(block: TextContent): HTMLElement {
  const { text } = block;
  if (text.length > LONGEST) {
    return h("div", { class: "text" }, text);
  }
  let known = made.get(block);
  if (known?.text !== text) {
    known = { text, fragment: parsed(text) };
    made.set(block, known);
  }
  const element = h("div", { class: "text", "data-as": "markdown" }, known.fragment.cloneNode(true));
  for (const code of element.querySelectorAll("pre")) {
    const place = document.createTextNode("");
    code.replaceWith(place);
    place.replaceWith(copyable(code, () => code.textContent));
  }
  return element;
}

function parsed(text: string): DocumentFragment {
  const fragment = DOMPurify.sanitize(parser.render(visible(text)), {
    ALLOWED_TAGS: TAGS.split(" "),
    ALLOWED_ATTR: ["align", "class", "href", "start"],
    ALLOWED_URI_REGEXP: LINK,
    ADD_URI_SAFE_ATTR: ["align", "start"],
    ALLOW_ARIA_ATTR: false,
    ALLOW_DATA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
  // An entity may stand for what must be seen.
  const texts = document.createTreeWalker(fragment, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode as Text;
    node.data = visible(node.data);
  }
  for (const link of fragment.querySelectorAll("a")) {
    link.target = "_blank";
    link.rel = "noopener noreferrer";
  }
  for (const table of fragment.querySelectorAll("table")) {
    const wide = h("div", { class: "table" });
    table.replaceWith(wide);
    wide.append(table);
  }
  return fragment;
}

function highlight(code: string, language: string): string {
  return hljs.getLanguage(language) ? hljs.highlight(code, { language, ignoreIllegals: true }).value : "";
}
