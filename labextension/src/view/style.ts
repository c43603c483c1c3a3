/** The style of the view. Outside of Jupyter the browser's own colours stand in, which follow a dark theme too. */

import { PERSON_STYLE } from "./person_style";

export const STYLE = `
:host {
  display: block;
  color: var(--ink);
  font-family: var(--jp-content-font-family, system-ui, sans-serif);
  font-size: var(--jp-content-font-size1, 14px);
  line-height: 1.5;
  --ink: var(--jp-content-font-color1, CanvasText);
  --line: var(--jp-border-color2, color-mix(in srgb, currentcolor 25%, transparent));
  --shade: var(--jp-layout-color2, color-mix(in srgb, currentcolor 6%, transparent));
  --quiet: var(--jp-content-font-color2, color-mix(in srgb, currentcolor 70%, transparent));
  --bad: color-mix(in srgb, var(--jp-error-color1, light-dark(#b3261e, #f2b8b5)) 85%, var(--ink));
}
.head { color: var(--quiet); display: flex; flex-wrap: wrap; font-size: 0.85em; gap: 0 0.5em; }
.head > * + :not(.outcome)::before { content: "· "; content: "· " / ""; }
.head > span { overflow-wrap: anywhere; }
.outcome { color: var(--ink); font-weight: 600; }
.mark { display: inline-block; margin-inline-end: 0.35em; min-width: 1em; text-align: center; }
.head > .mark { margin-inline-end: 0; }
.run { display: flex; flex-direction: column; gap: 0.75em; }
.round { display: flex; flex-direction: column; gap: 0.5em; min-width: 0; }
.round-name, .speaker, .note, .state, .time { color: var(--quiet); font-size: 0.85em; }
.speaker { display: block; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; }
.text, .brief, code { unicode-bidi: isolate; }
.text[data-as] { display: flex; flex-direction: column; gap: 0.6em; min-width: 0; white-space: normal; }
.text[data-as] > *, .text li > *, .text blockquote > * { margin-block: 0; }
.text :is(p, h1, h2, h3, h4, h5, h6, th, td) { white-space: pre-line; }
.text :is(h1, h2, h3, h4, h5, h6) { font-size: 1.05em; line-height: 1.3; margin-block-start: 0.3em; }
.text h1 { font-size: 1.35em; }
.text h2 { font-size: 1.2em; }
.text :is(ul, ol) { padding-inline-start: 1.6em; }
.text li > p + *, .text blockquote > * + * { margin-block-start: 0.4em; }
.text blockquote { border-inline-start: 3px solid var(--line); margin-inline: 0; padding-inline-start: 0.75em; }
.text hr { border: 0; border-top: 1px solid var(--line); width: 100%; }
.text a { color: var(--jp-content-link-color, LinkText); }
.text :not(pre) > code { background: var(--shade); border-radius: 3px; padding: 0.05em 0.3em; }
.table { overflow-x: auto; }
.table table { border-collapse: collapse; font-size: 0.95em; overflow-wrap: break-word; }
.table :is(th, td) { border: 1px solid var(--line); padding: 0.2em 0.6em; vertical-align: top; }
.table th:not([align]) { text-align: start; }
.table th { background: var(--shade); }
.assistant, .ending { display: flex; flex-direction: column; gap: 0.5em; }
.more > summary { color: var(--quiet); font-family: var(--jp-content-font-family, system-ui, sans-serif); }
.user { border-inline-start: 3px solid var(--jp-brand-color1, Highlight); padding-inline-start: 0.6em; }
.call, .thinking, .server { border: 1px solid var(--line); border-radius: 4px; padding: 0.3em 0.6em; }
.brief { font-family: var(--jp-code-font-family, ui-monospace, monospace); font-size: 0.92em; overflow-wrap: anywhere; }
.call, .thinking, .server { font-size: 0.95em; }
.call:not([open]), .thinking:not([open]), .server:not([open]) { border-color: transparent; padding: 0; }
.result { color: var(--quiet); }
.assistant > .text { color: var(--quiet); }
/* What was said last is the answer, once nothing follows it. */
.round:nth-last-child(2) > .assistant:last-child > .text { color: inherit; }
:host > .run > .round:nth-last-child(2) > .assistant:last-child > .text { font-size: 1.08em; margin-top: 0.25em; }
.call[open] > summary .result { display: none; }
.call[open] > summary { margin-bottom: 0.4em; }
.call > .run { border-inline-start: 2px solid var(--line); margin: 0.5em 0; padding-inline-start: 0.75em; }
.part { margin-top: 0.4em; }
.error, [data-outcome="error"] > .mark, [data-state="error"] > summary :is(.mark, .state) { color: var(--bad); }
.stderr { border-inline-start: 3px solid var(--bad); }
.note, .error { margin: 0; }
.assistant:empty, .ending:empty, .sent:empty, .error:empty, [hidden] { display: none !important; }
.controls {
  display: flex; flex-direction: column; gap: 0.4em; margin-top: 0.75em; padding-top: 0.5em;
  border-top: 1px solid var(--line);
}
.row { align-items: center; display: flex; flex-wrap: wrap; gap: 0.5em; }
.approval { margin-top: 0.4em; }
.call[data-state="waiting"] pre { max-height: none; }
.status { color: var(--quiet); flex: 1; margin: 0; min-width: 12em; }
.sent { list-style: none; margin: 0; padding: 0; }
button, textarea {
  background: var(--jp-layout-color1, Field); border: 1px solid var(--line); border-radius: 4px; color: inherit;
  font: inherit; padding: 0.2em 0.7em;
}
button { cursor: pointer; }
button:disabled { cursor: default; }
button:disabled, textarea:read-only { opacity: 0.6; }
textarea { box-sizing: border-box; field-sizing: content; flex: 1; max-height: 12em; min-width: 12em; resize: vertical; }
button:focus-visible, textarea:focus-visible { outline: 2px solid var(--jp-brand-color1, Highlight); outline-offset: -2px; }
textarea::placeholder { color: var(--quiet); opacity: 1; }
summary { cursor: pointer; overflow-wrap: anywhere; }
summary:focus-visible { outline: 2px solid var(--jp-brand-color1, Highlight); outline-offset: 2px; }
pre, code { font-family: var(--jp-code-font-family, ui-monospace, monospace); font-size: 0.92em; }
pre {
  background: var(--shade); margin: 0; max-height: 24em; overflow: auto; padding: 0.4em 0.6em;
  overflow-wrap: anywhere; white-space: pre-wrap;
}
.hljs-keyword, .hljs-literal, .hljs-built_in { --hue: var(--jp-mirror-editor-keyword-color, #2e8b57); }
.hljs-string, .hljs-regexp { --hue: var(--jp-mirror-editor-string-color, #c0504d); }
.hljs-number, .hljs-attr, .hljs-title { --hue: var(--jp-mirror-editor-def-color, #4a7fd6); }
/* An editor's colours are made for its own background. */
pre span { color: color-mix(in srgb, var(--hue, var(--ink)) 45%, var(--ink)); }
.hljs-comment, .hljs-meta { color: color-mix(in srgb, var(--ink) 80%, transparent); font-style: italic; }
.hljs-subst, .hljs-params { --hue: var(--ink); }
pre.note { color: inherit; font-size: 0.92em; }
img { display: block; height: auto; max-width: 100%; }
${PERSON_STYLE}`;
