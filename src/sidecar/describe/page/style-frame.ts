/** Colours, type and the frame of the page. */
export const STYLE_FRAME = `
:root {
  color-scheme: light dark;
  --ground: #fbfaf8;
  --surface: #ffffff;
  --sunken: #f2f0ec;
  --line: #e3e0d9;
  --text: #1a1c1e;
  --muted: #5b5f63;
  --accent: #0b5f5a;
  --accent-soft: #e0f0ee;
  --get: #0b5f5a;
  --get-soft: #dcefed;
  --post: #7a4a00;
  --post-soft: #fbecd3;
  --delete: #a1221d;
  --delete-soft: #fbe4e2;
  --good: #1d6635;
  --good-soft: #e0f2e4;
  --mono: ui-monospace, 'SF Mono', 'Cascadia Mono', 'Segoe UI Mono', 'Liberation Mono', Menlo, monospace;
  --gap: clamp(1.25rem, 3vw, 3rem);
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --ground: #121516;
    --surface: #181c1d;
    --sunken: #202526;
    --line: #2c3233;
    --text: #e5e8e6;
    --muted: #a3abab;
    --accent: #6ed3c8;
    --accent-soft: #16322f;
    --get: #7adcd1;
    --get-soft: #14342f;
    --post: #f2c27a;
    --post-soft: #3a2a10;
    --delete: #ff9d95;
    --delete-soft: #431d1b;
    --good: #8bdba0;
    --good-soft: #17321f;
  }
}
*, *::before, *::after { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0;
  display: grid;
  grid-template-columns: 17.5rem minmax(0, 1fr);
  background: var(--ground);
  color: var(--text);
  font: 400 1rem/1.6 system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif;
}
p { margin: 0 0 0.75rem; max-width: 44rem; }
a { color: var(--accent); text-underline-offset: 0.2em; text-decoration-thickness: 1px; }
code, pre { font-family: var(--mono); }
code { font-size: 0.875em; overflow-wrap: anywhere; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
main:focus { outline: none; }

.side { border-right: 1px solid var(--line); background: var(--surface); }
.side > div { position: sticky; top: 0; max-height: 100vh; overflow-y: auto; padding: 1.5rem 1rem 2rem; }
.brand { display: flex; align-items: center; gap: 0.625rem; margin: 0 0 1.25rem; padding-left: 0.5rem; }
.brand a { color: inherit; text-decoration: none; font-weight: 680; letter-spacing: -0.02em; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav p { margin: 1.25rem 0 0.25rem; padding-left: 0.5rem; font-size: 0.875rem; font-weight: 650; }
nav p a { color: inherit; text-decoration: none; }
nav p a:hover { text-decoration: underline; }
nav li a { display: flex; align-items: baseline; gap: 0.5rem; padding: 0.3125rem 0.5rem; border-radius: 6px; color: var(--muted); text-decoration: none; font-size: 0.9375rem; line-height: 1.35; }
nav li a:hover { background: var(--sunken); color: var(--text); }
nav .method { flex: none; width: 3.25rem; text-align: center; }
.narrow, .to-top { display: none; }

main { width: 100%; max-width: 96rem; padding-bottom: 6rem; }
h1, h2, h3, h4, h5 { line-height: 1.2; letter-spacing: -0.015em; margin: 0; }
h1 { font-size: clamp(2rem, 4.5vw, 3rem); font-weight: 720; letter-spacing: -0.035em; line-height: 1.08; margin-bottom: 1.25rem; max-width: 18ch; text-wrap: balance; }
h2 { font-size: 1.625rem; font-weight: 700; letter-spacing: -0.025em; }
h3 { font-size: 1.3125rem; font-weight: 680; }
h3 a { color: inherit; text-decoration: none; }
h3 a:hover { text-decoration: underline; }
h4 { margin: 2rem 0 0.625rem; font-size: 1rem; font-weight: 680; }
h5 { margin: 0 0 0.375rem; font-size: 1rem; font-weight: 650; }
.start h2 { margin: 2rem 0 0.625rem; font-size: 1.125rem; }

.start, .operation { display: grid; grid-template-columns: minmax(0, 1fr); gap: 1.5rem var(--gap); padding: 3rem var(--gap); }
.group { border-top: 1px solid var(--line); }
.group-head { padding: 3rem var(--gap) 0; }
.group-head h2 { margin-bottom: 0.5rem; }
.group-head p { color: var(--muted); margin: 0; }
.alone { padding: 1.25rem var(--gap) 3rem; max-width: 64rem; }
.operation + .operation { border-top: 1px solid var(--line); }
.kicker { margin-bottom: 0.5rem; color: var(--accent); font-weight: 600; }
@media (min-width: 80rem) {
  .start, .operation { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); }
  .examples { position: sticky; top: 1.5rem; align-self: start; max-height: calc(100vh - 3rem); overflow-y: auto; border-radius: 10px; }
}

.skip { position: absolute; left: 0.5rem; top: -4rem; z-index: 2; padding: 0.5rem 1rem; background: var(--surface); border-radius: 8px; }
.skip:focus { top: 0.5rem; }
.unseen { position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
`;
