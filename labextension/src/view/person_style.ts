/** The style of what a person does to a run, and what holds for everybody who reads one: focus, size, colours, motion. */

export const PERSON_STYLE = `
.only-heard { block-size: 1px; clip-path: inset(50%); margin-block-start: -1px; overflow: hidden; overflow-wrap: anywhere; }
.sent { display: flex; flex-direction: column; gap: 0.2em; }
.sent > li { align-items: baseline; display: flex; flex-wrap: wrap; gap: 0 0.75em; }
.sent .text { flex: 0 1 auto; min-width: 0; }
.writing { align-items: end; }
.writing > textarea { field-sizing: content; max-height: 40vh; min-height: 2.1em; min-width: min(12em, 100%); resize: none; }
.approval { display: flex; flex-direction: column; gap: 0.4em; }
.question { font-weight: 600; margin: 0; overflow-wrap: anywhere; }
/* A heading that the model has only begun. */
:is(h1, h2, h3, h4, h5, h6):empty { display: none; }
button, summary { min-height: 24px; min-width: 24px; }
button { padding-inline: 0.7em; }
button[aria-disabled="true"] { cursor: default; opacity: 0.6; }
:is(button, textarea, summary, a, [tabindex]):focus-visible { outline: 2px solid var(--jp-brand-color1, Highlight); outline-offset: 2px; }
@media (forced-colors: active) {
  button:disabled, button[aria-disabled="true"] { color: GrayText; opacity: 1; }
  textarea:read-only { opacity: 1; }
  :is(button, textarea, summary, a, [tabindex]):focus-visible { outline-color: Highlight; }
}
@media (prefers-reduced-motion: reduce) {
  * { animation: none !important; scroll-behavior: auto !important; transition: none !important; }
}
`;
