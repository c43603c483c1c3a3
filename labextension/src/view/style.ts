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
  --quiet: var(--jp-content-font-color2, color-mix(in srgb, var(--ink) 70%, transparent));
  --bad: color-mix(in srgb, var(--jp-error-color1, light-dark(#b3261e, #f2b8b5)) 85%, var(--ink));
}
.head { color: var(--quiet); display: flex; flex-wrap: wrap; font-size: 0.85em; gap: 0 0.5em; }
.head > * + :not(.outcome)::before { content: "· "; content: "· " / ""; }
.head > span { overflow-wrap: anywhere; }
.head > .time { font-size: inherit; }
.outcome, .head > .mark { color: var(--ink); }
.outcome { font-weight: 600; }
.run { container-type: inline-size; display: flex; flex-direction: column; gap: 0.4em; min-width: 0; }
/* Round numbers and who speaks stand in front. */
.round, .user { display: grid; gap: 0.3em 0.8em; grid-template-columns: 1.9em minmax(0, 1fr); }
.round > *, .user > .said { grid-column: 2; min-width: 0; }
.round > .user, .ending > .user { grid-column: 1 / -1; }
.round > .gutter, .user > .gutter { grid-column: 1; text-align: end; }
/* The number stands beside what the model does. */
.round > .user { order: -1; }
.gutter, .note, .label, .time { color: var(--quiet); font-size: 0.85em; font-variant-numeric: tabular-nums; }
.gutter, .label { line-height: 1.77; }
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
.table :is(th, td) { border-block-end: 1px solid var(--line); padding: 0.15em 0.9em; vertical-align: top; }
.table :is(th, td):first-child { padding-inline-start: 0.2em; }
.table th:not([align]) { text-align: start; }
.table th { font-weight: 600; }
.table td { font-variant-numeric: tabular-nums; }
.table tr:last-child > td { border: 0; }
.assistant, .ending { display: flex; flex-direction: column; gap: 0.5em; }
.more > summary { color: var(--quiet); font-family: var(--jp-content-font-family, system-ui, sans-serif); }
.said { display: flex; flex-wrap: wrap; gap: 0 0.75em; justify-content: space-between; }
.said > :not(.note) { min-width: 0; }
.user .gutter { color: var(--jp-brand-color1, LinkText); font-weight: 600; }
.brief, .signature { font-family: var(--jp-code-font-family, ui-monospace, monospace); font-size: 0.92em; }
.brief, .prompt > summary { color: var(--quiet); }
.signature > code { color: var(--ink); font-size: 1em; font-weight: 600; }
.signature > .brief { font-size: 1em; }

/* One line for a fold: a sign, what it is, how it came out. */
:is(.call, .thinking, .server, .prompt, .past) > summary { display: flex; gap: 0.5em; list-style: none; min-width: 0; }
:is(.call, .thinking, .server, .prompt, .past) > summary > * { flex: none; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
:is(.thinking, .server) > summary > .brief, .prompt > summary > span { flex: 0 1 auto; }
:is(.call, .thinking, .server, .prompt, .past) > summary::after {
  color: var(--quiet); content: "▸"; content: "▸" / ""; align-self: start; flex: none; margin-inline-start: auto;
}
:is(.call, .thinking, .server, .prompt, .past)[open] > summary::after { content: "▾"; content: "▾" / ""; }
:is(.thinking, .server, .value)[open] > summary > .brief { display: none; }
.prompt[open] > summary > span { visibility: hidden; }
.prompt[open] > summary + * { margin-block-start: -1.5em; margin-inline-end: 1em; }
.thinking > summary, .thinking > .text { color: var(--quiet); }
.thinking > summary > .brief { font: inherit; font-style: italic; }
.past > summary { align-items: baseline; margin-inline-start: 2.7em; }
.nested > summary { margin-inline-start: 0; }
.nested > summary > .asked { flex: 0 1 auto; }
.past > .round { margin-block-start: 0.4em; }
.folding { display: flex; gap: 0.4em; margin-inline-start: auto; }
.head > .folding::before { content: none; }
/* Those of the whole run do it for the runs in it too. */
.run .run > .head > .folding { display: none; }
.fold { border-color: transparent; color: var(--quiet); padding: 0 0.2em; text-decoration: underline; }
.call > summary {
  align-items: baseline; display: grid; gap: 0 0.6em; grid-template-columns: 1em minmax(0, 5fr) minmax(0, 6fr) auto 4em 1em;
}
.call > summary > .mark { text-align: center; }
.call > summary > .time { text-align: end; }
.call > summary > .state { grid-column: 4; }
.call > summary > .time { grid-column: 5; }
.call > summary::after { grid-column: 6; }
.state { color: var(--quiet); font-size: 0.85em; }
.call[open] > summary > .result { display: none; }
.call[open] > summary > .signature { grid-column: 2 / 4; }
.call[open] > summary > .whole { overflow-wrap: anywhere; white-space: normal; }
.call[open] { border-inline-start: 2px solid var(--line); margin-inline-start: -0.6em; padding-inline-start: calc(0.6em - 2px); }
.call[open][data-state="error"] { border-color: var(--bad); }
.call[open][data-state="running"] { border-color: var(--jp-brand-color1, LinkText); }
.call[open][data-state="waiting"] { border-color: var(--jp-warn-color1, #b26a00); }
.call > :not(summary) { margin: 0.3em 0 0.3em 1.5em; }
.part { display: grid; gap: 0 0.6em; grid-template-columns: 5.5em minmax(0, 1fr); }
.part > .body { display: flex; flex-direction: column; gap: 0.3em; min-width: 0; }
.call > .run { border-inline-start: 2px solid var(--line); padding-inline-start: 0.6em; font-size: 0.97em; }
.arguments { display: grid; gap: 0.15em 0.75em; grid-template-columns: auto minmax(0, 1fr); margin: 0; }
.arguments > dt { color: var(--quiet); }
.arguments > dd { margin: 0; min-width: 0; }
.name { color: var(--quiet); }
.value > summary::marker { color: var(--quiet); }
.value > ul { list-style: none; margin: 0; padding-inline-start: 1.2em; }
.copyable { min-width: 0; position: relative; }
.copy { background: var(--jp-layout-color1, Field); font-size: 0.8em; inset-block-start: 0.3em; inset-inline-end: 0.3em; opacity: 0; position: absolute; }
.copyable:hover > .copy, .copy:focus-visible { opacity: 1; }
@media (hover: none) { .copy { opacity: 1; } }
@container (max-width: 32em) {
  .call > summary { grid-template-columns: 1em minmax(0, 1fr) auto auto 1em; }
  .call > summary > .result { grid-column: 2 / -1; grid-row: 2; }
  .call[open] > summary > .signature { grid-column: 2; }
  .call > summary > .state { grid-column: 3; }
  .call > summary > .time { grid-column: 4; }
  .call > summary::after { grid-column: 5; }
  .part { grid-template-columns: minmax(0, 1fr); }
}

.assistant > .copyable > .text { color: var(--quiet); }
/* What was said last is the answer, once nothing follows it. */
.round:nth-last-child(2) > .assistant:last-child:not(:has(> .note)) > .copyable > .text { color: inherit; }
:host > .run > .round:nth-last-child(2) > .assistant:last-child:not(:has(> .note)) > .copyable > .text {
  background: color-mix(in srgb, var(--jp-brand-color1, LinkText) 6%, transparent); border-radius: 4px;
  font-size: 1.08em; padding: 0.6em 0.9em;
}
.error, [data-outcome="error"] > .mark, [data-state="error"] > summary :is(.mark, .state) { color: var(--bad); }
.stderr { border-inline-start: 3px solid var(--bad); }
.note, .error { margin: 0; }
.ending > :not(.user) { margin-inline-start: 2.7em; }
@media (prefers-reduced-motion: no-preference) {
  [data-state="running"] > summary > .mark, [data-outcome="running"] > .mark { animation: going 1.6s ease-in-out infinite; }
  @keyframes going { 50% { opacity: 0.65; } }
}
.assistant:empty, .ending:empty, .sent:empty, .error:empty, [hidden] { display: none !important; }
.controls {
  display: flex; flex-direction: column; gap: 0.4em; margin-top: 0.75em; padding-top: 0.5em;
  border-top: 1px solid var(--line);
}
.row { align-items: center; display: flex; flex-wrap: wrap; gap: 0.5em; }
.call[data-state="waiting"] pre { max-height: none; }
pre.wide { overflow-wrap: normal; white-space: pre; }
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
.hljs-string { --hue: var(--jp-mirror-editor-string-color, #c0504d); }
code:is(.hljs-string, .hljs-number, .hljs-literal) { color: color-mix(in srgb, var(--hue) 75%, var(--ink)); }
.hljs-number, .hljs-attr, .hljs-title { --hue: var(--jp-mirror-editor-def-color, #4a7fd6); }
/* An editor's colours are made for its own background. */
pre span { color: color-mix(in srgb, var(--hue, var(--ink)) 75%, var(--ink)); }
.hljs-comment, .hljs-meta { color: color-mix(in srgb, var(--ink) 80%, transparent); font-style: italic; }
.hljs-subst, .hljs-params { --hue: var(--ink); }
pre.note { color: inherit; font-size: 0.92em; }
img { display: block; max-height: 24em; max-width: 100%; object-fit: contain; object-position: left; }
${PERSON_STYLE}`;
