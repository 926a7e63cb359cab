/** Blocks of code: dark in both schemes, so that requests and answers stand out from what is said of them. */
export const STYLE_CODE = `
.examples { --code: #e3e6e3; --code-muted: #9aa5a3; --code-ground: #15201f; --code-head: #1e2b2a; --code-line: #2e3d3b; }
.examples details { border: 1px solid var(--code-line); border-bottom-width: 0; background: var(--code-ground); }
.examples details:first-of-type { border-radius: 10px 10px 0 0; }
.examples details:last-of-type { border-radius: 0 0 10px 10px; border-bottom-width: 1px; }
.examples summary { display: flex; align-items: center; gap: 0.625rem; padding: 0.625rem 1rem; color: var(--code); font-size: 0.9375rem; font-weight: 600; list-style: none; }
.examples summary::-webkit-details-marker { display: none; }
.examples summary::before { content: ''; flex: none; width: 0.4375rem; height: 0.4375rem; border: solid var(--code-muted); border-width: 0 2px 2px 0; transform: rotate(-45deg); }
.examples [open] > summary::before { transform: rotate(45deg); }
.examples summary:hover { background: var(--code-head); }
.examples summary:focus-visible, .code pre:focus-visible { outline-color: #6ed3c8; outline-offset: -3px; }
.code { margin: 0; background: var(--code-ground); color: var(--code); overflow: hidden; }
.examples > .code { border: 1px solid var(--code-line); }
.examples > .code:first-of-type { border-radius: 10px 10px 0 0; }
.examples > .code:last-of-type { border-radius: 0 0 10px 10px; }
.examples > .code:only-of-type { border-radius: 10px; }
.examples > .code + .code { border-top-width: 0; }
.code figcaption, .empty-answer { padding: 0.375rem 1rem; margin: 0; max-width: none; background: var(--code-head); color: var(--code-muted); font-size: 0.8125rem; }
.empty-answer { border: 1px solid var(--code-line); border-radius: 0 0 10px 10px; }
.examples details .empty-answer { border-width: 0; border-radius: 0; }
.code pre { margin: 0; padding: 0.875rem 1rem; overflow-x: auto; font-size: 0.8125rem; line-height: 1.6; tab-size: 2; }
.code code { font-size: inherit; overflow-wrap: normal; }
.examples .aside { margin: 1rem 0 0; color: var(--muted); font-size: 0.875rem; }
.t-key { color: #7fd6cc; }
.t-string { color: #e9c98d; }
.t-number { color: #c9b0f5; }
.t-word { color: #f0a592; }
.t-added { color: #97dd9f; }
.t-removed { color: #ff9f96; }
@media print {
  .examples { --code: #000; --code-muted: #444; --code-ground: #fff; --code-head: #fff; --code-line: #bbb; }
  .code pre { white-space: pre-wrap; overflow-wrap: anywhere; }
  .code span { color: inherit; }
}
`;
