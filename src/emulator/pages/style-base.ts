/** Colours, type and the frame of the dashboard's pages. The colours are those of the pages that describe the sidecar's API. */
export const STYLE_BASE = `
:root {
  color-scheme: light dark;
  --ground: #fbfaf8;
  --surface: #ffffff;
  --sunken: #f2f0ec;
  --line: #e3e0d9;
  --line-strong: #85827a;
  --text: #1a1c1e;
  --muted: #5b5f63;
  --accent: #0b5f5a;
  --accent-text: #ffffff;
  --accent-soft: #e0f0ee;
  --good: #1d6635;
  --good-soft: #e0f2e4;
  --wait: #7a4a00;
  --wait-soft: #fbecd3;
  --bad: #a1221d;
  --bad-soft: #fbe4e2;
  --special: #5b31b8;
  --special-soft: #eee7fc;
  --calm-soft: #eeebe5;
  --shadow: 0 1px 2px rgb(40 36 24 / 5%), 0 2px 8px rgb(40 36 24 / 4%);
  --mono: ui-monospace, 'SF Mono', 'Cascadia Mono', 'Segoe UI Mono', 'Liberation Mono', Menlo, monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #121516;
    --surface: #181c1d;
    --sunken: #202526;
    --line: #2c3233;
    --line-strong: #737c7c;
    --text: #e5e8e6;
    --muted: #a3abab;
    --accent: #6ed3c8;
    --accent-text: #0c1f1d;
    --accent-soft: #16322f;
    --good: #8bdba0;
    --good-soft: #17321f;
    --wait: #f2c27a;
    --wait-soft: #3a2a10;
    --bad: #ff9d95;
    --bad-soft: #431d1b;
    --special: #c3a9ff;
    --special-soft: #2b2050;
    --calm-soft: #2a3031;
    --shadow: none;
  }
}
*, *::before, *::after { box-sizing: border-box; }
body {
  margin: 0;
  min-height: 100vh;
  display: grid;
  grid-template-columns: 15rem minmax(0, 1fr);
  background: var(--ground);
  color: var(--text);
  font: 400 1rem/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif;
  -webkit-text-size-adjust: 100%;
}
h1, h2 { line-height: 1.25; letter-spacing: -0.01em; overflow-wrap: anywhere; unicode-bidi: isolate; }
h1 { margin: 0; font-size: 1.625rem; font-weight: 650; }
h2 { margin: 0 0 0.75rem; font-size: 1.0625rem; font-weight: 650; }
p { margin: 0 0 0.75rem; }
a { color: var(--accent); text-underline-offset: 0.2em; text-decoration-thickness: 1px; }
code, pre { font-family: var(--mono); font-size: 0.875em; }
code { overflow-wrap: anywhere; }
.address { white-space: nowrap; }
.address wbr { white-space: normal; }
td, dd, li { unicode-bidi: isolate; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
main:focus { outline: none; }

.side { border-right: 1px solid var(--line); background: var(--surface); }
.side > div { position: sticky; top: 0; height: 100vh; padding: 1.25rem 1rem; display: flex; flex-direction: column; gap: 1.5rem; overflow-y: auto; }
.brand { display: flex; align-items: center; gap: 0.625rem; color: inherit; text-decoration: none; font-weight: 650; letter-spacing: -0.02em; padding: 0.25rem 0 0.25rem 0.5rem; white-space: nowrap; }
.brand .muted { font-weight: 450; }
.side ul { list-style: none; margin: 0; padding: 0; display: grid; gap: 0.125rem; }
.side li a { display: block; padding: 0.5rem 0.75rem; border-radius: 8px; color: var(--muted); text-decoration: none; font-weight: 500; }
.side li a:hover { background: var(--sunken); color: var(--text); }
.side li a[aria-current] { background: var(--accent-soft); color: var(--accent); font-weight: 600; }
.note { margin: auto 0 0; padding: 0 0.75rem; font-size: 0.8125rem; color: var(--muted); }

main { container-type: inline-size; padding: 2rem clamp(1rem, 3vw, 2.5rem) 4rem; max-width: 72rem; width: 100%; }
main > section, main > [data-live], main > .message { margin-block: 0 1.5rem; }
.above { margin: 0 0 0.25rem; font-size: 0.9375rem; }
.above a { display: inline-block; padding: 0.125rem 0; text-decoration: none; }
.above a:hover { text-decoration: underline; }
.title { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: 0.5rem 1.5rem; margin-bottom: 1.25rem; }
.title h1 { max-width: 100%; }
.title-2 { display: flex; flex-wrap: wrap; align-items: baseline; justify-content: space-between; gap: 0 1.5rem; margin-bottom: 0.75rem; }
.title-2 h2 { margin: 0; }
.title-2 a { display: inline-block; padding: 0.125rem 0; font-size: 0.9375rem; }
.intro { max-width: 44rem; margin-top: -0.75rem; margin-bottom: 1.25rem; color: var(--muted); }

.skip { position: absolute; left: 0.5rem; top: -4rem; z-index: 1; padding: 0.5rem 1rem; background: var(--surface); border-radius: 8px; }
.skip:focus { top: 0.5rem; }
.unseen { position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.muted { color: var(--muted); }

@media (max-width: 52rem) {
  body { grid-template-columns: minmax(0, 1fr); grid-template-rows: auto 1fr; }
  .side { border-right: 0; border-bottom: 1px solid var(--line); }
  .side > div { position: static; height: auto; gap: 0.75rem; padding: 0.75rem 1rem; }
  .side ul { grid-template-columns: repeat(3, auto); justify-content: space-between; }
  .side li a { padding: 0.5rem; text-align: center; font-size: 0.9375rem; }
  .note { display: none; }
  main { padding-top: 1.25rem; }
  .title { margin-bottom: 1rem; }
  .intro { margin-top: -0.375rem; }
}
@media (prefers-reduced-motion: no-preference) {
  a, .button { transition: background-color 0.12s, color 0.12s, border-color 0.12s; }
}
`;
