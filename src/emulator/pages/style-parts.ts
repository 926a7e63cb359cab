/** Tables, forms, pills and the other parts of the dashboard's pages. */
export const STYLE_PARTS = `
.card, table, .empty { background: var(--surface); border: 1px solid var(--line); border-radius: 12px; box-shadow: var(--shadow); }
.card { padding: 1.25rem 1.5rem; }
.card > :last-child, .card > [data-live] > :last-child { margin-bottom: 0; }
.card-current { border-left: 4px solid var(--accent); }
.empty { padding: 2rem 1.5rem; text-align: center; color: var(--muted); border-style: dashed; box-shadow: none; }
.empty p { margin: 0; }
.message { padding: 0.75rem 1rem; border-radius: 10px; border: 1px solid; }
.message-good { background: var(--good-soft); color: var(--good); }
.message-bad { background: var(--bad-soft); color: var(--bad); margin-bottom: 1rem; }
.message-bad p { margin: 0; font-weight: 600; }
.message-bad ul { margin: 0.25rem 0 0; padding-left: 1.25rem; overflow-wrap: anywhere; }

.tiles { list-style: none; margin: 0; padding: 0; display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); grid-auto-rows: 1fr; gap: 0.75rem; }
.tiles li { display: grid; }
.tile { display: block; padding: 1rem 1.25rem; background: var(--surface); border: 1px solid var(--line); border-radius: 12px; box-shadow: var(--shadow); color: var(--muted); text-decoration: none; }
.tile:hover { border-color: var(--accent); }
.tile b { display: block; font-size: 1.75rem; line-height: 1.2; font-weight: 650; color: var(--text); font-variant-numeric: tabular-nums; }

.first { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: 0.75rem 2rem; margin-top: 1.5rem; }
.first > div { flex: 1 1 20rem; }
.first h2 { margin-bottom: 0.25rem; }
.first p { margin: 0; color: var(--muted); max-width: 40rem; }

table { width: 100%; border-collapse: separate; border-spacing: 0; font-size: 0.9375rem; }
th { text-align: left; font-size: 0.8125rem; font-weight: 600; color: var(--muted); padding: 0.75rem 0.75rem 0.625rem; white-space: nowrap; }
td { padding: 0.75rem; border-top: 1px solid var(--line); vertical-align: top; }
td code { overflow-wrap: normal; }
td:first-child > div, td .copyable { min-width: 9.5rem; overflow-wrap: anywhere; }
td .copyable code:not(.address) { overflow-wrap: anywhere; }
td .long { display: block; }
td .actions:has(> :nth-child(2)) { min-width: 13rem; }
th:first-child, td:first-child { padding-left: 1.5rem; }
th:last-child, td:last-child { padding-right: 1.5rem; }
.name { display: block; width: fit-content; padding-block: 0.0625rem; font-weight: 600; overflow-wrap: anywhere; }
.sub a { display: inline-block; padding: 0.1875rem 0; }
.sub { display: block; font-size: 0.8125rem; color: var(--muted); }
time { font-variant-numeric: tabular-nums; white-space: nowrap; }
td time span { display: block; color: var(--muted); font-size: 0.8125rem; }
.sub time span { display: inline; }

.facts { margin: 0 0 0.75rem; display: grid; gap: 0; }
.facts > div { display: grid; grid-template-columns: minmax(8rem, 12rem) minmax(0, 1fr); gap: 0.25rem 1rem; padding: 0.5rem 0; border-top: 1px solid var(--line); align-items: baseline; }
.facts > div:first-child { border-top: 0; }
dt { color: var(--muted); font-size: 0.9375rem; }
dd { margin: 0; overflow-wrap: anywhere; min-width: 0; }
.tags, .plain { list-style: none; margin: 0; padding: 0; }
.tags { display: flex; flex-wrap: wrap; gap: 0.375rem; }
.tags li { padding: 0.0625rem 0.5rem; border-radius: 6px; background: var(--calm-soft); font-size: 0.875rem; overflow-wrap: anywhere; }

.pill { display: inline-flex; align-items: center; gap: 0.375rem; padding: 0.125rem 0.625rem 0.125rem 0.5rem; border-radius: 999px; font-size: 0.8125rem; font-weight: 600; line-height: 1.45; white-space: nowrap; background: var(--calm-soft); color: var(--muted); }
.pill::before { content: ''; width: 0.5rem; height: 0.5rem; border-radius: 50%; background: currentColor; flex: none; }
.pill-good { background: var(--good-soft); color: var(--good); }
.pill-wait { background: var(--wait-soft); color: var(--wait); }
.pill-bad { background: var(--bad-soft); color: var(--bad); }
.pill-special { background: var(--special-soft); color: var(--special); }

.actions { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center; }
.actions form:not(.confirm-form) { margin: 0; }
.button { display: inline-block; font: inherit; font-weight: 550; line-height: 1.4; padding: 0.5rem 1rem; border-radius: 8px; border: 1px solid var(--line-strong); background: var(--surface); color: var(--text); text-decoration: none; cursor: pointer; white-space: nowrap; }
.button:hover { background: var(--sunken); }
.button-small { padding: 0.25rem 0.75rem; font-size: 0.875rem; }
.button-main { background: var(--accent); border-color: var(--accent); color: var(--accent-text); }
.button-main:hover { background: color-mix(in srgb, var(--accent) 88%, var(--text)); }
.button-bad { color: var(--bad); border-color: var(--bad); }
.button-bad-main, .button-bad-main:hover { background: var(--bad); border-color: var(--bad); color: var(--surface); }

details > summary { cursor: pointer; width: fit-content; max-width: 100%; min-height: 1.5rem; list-style: none; }
details > summary::-webkit-details-marker { display: none; }
.link { display: inline-block; color: var(--accent); text-decoration: underline; text-decoration-thickness: 1px; text-underline-offset: 0.2em; }
.dots { letter-spacing: 0.08em; color: var(--muted); }
details[open] > summary .closed, details:not([open]) > summary .opened { display: none; }
.secret[open] > summary { margin-bottom: 0.25rem; }
.confirm-form { margin-top: 0.5rem; max-width: 22rem; padding: 0.75rem; border: 1px solid var(--bad); border-radius: 8px; background: var(--bad-soft); }
.confirm-form p { margin: 0 0 0.5rem; font-size: 0.875rem; }
.actions .confirm[open] { flex-basis: 100%; }

.copyable { display: inline-flex; flex-wrap: wrap; align-items: center; gap: 0.25rem 0.625rem; }
.copyable code { min-width: 0; }
.copy { display: none; padding: 0.1875rem 0.625rem; font-size: 0.8125rem; border-color: var(--line); color: var(--muted); }
.js .copy { display: inline-block; }
.copied, .copied:hover { color: var(--good); border-color: var(--good); background: var(--good-soft); }
.lines { position: relative; margin: 0.5rem 0 0.75rem; }
.lines pre { margin: 0; padding: 0.875rem 1rem; background: var(--sunken); border: 1px solid var(--line); border-radius: 8px; white-space: pre-wrap; overflow-wrap: anywhere; }
.lines .copy { position: absolute; top: 0.5rem; right: 0.5rem; background: var(--surface); }
.js .lines pre { padding-right: 4.5rem; }

.form > p { margin: 1.25rem 0 0; }
.fields { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 19rem), 1fr)); gap: 1rem 1.5rem; align-items: start; }
.field { border: 0; margin: 0; padding: 0; min-width: 0; }
.field label, .field legend { font-weight: 550; font-size: 0.9375rem; padding: 0; }
.field > label { display: block; margin-bottom: 0.25rem; }
fieldset.field { grid-column: 1 / -1; }
.field input:not([type=checkbox]), .field select { width: 100%; font: inherit; color: inherit; padding: 0.5rem 0.75rem; border: 1px solid var(--line-strong); border-radius: 8px; background-color: var(--surface); min-height: 2.625rem; }
.boxes { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 13rem), 1fr)); gap: 0.125rem 1rem; margin-top: 0.375rem; }
.field .box { display: flex; align-items: center; gap: 0.5rem; font-weight: 400; padding: 0.25rem 0; overflow-wrap: anywhere; }
.box input { width: 1.5rem; height: 1.5rem; margin: 0; accent-color: var(--accent); flex: none; }
select { appearance: none; text-overflow: ellipsis; background: conic-gradient(from -45deg at 50% 100%, var(--muted) 90deg, transparent 0) right 0.875rem top 54% / 0.5rem 0.25rem no-repeat, var(--surface); }
.hint { margin: 0.25rem 0 0; font-size: 0.8125rem; color: var(--muted); }
.search { display: flex; flex-wrap: wrap; gap: 0.5rem; margin-bottom: 0.5rem; }
.search input { flex: 1 1 16rem; min-width: 0; max-width: 28rem; }
.search select { flex: 0 1 auto; min-width: 0; max-width: 100%; width: auto; }
.search input, .search select { font: inherit; font-size: 0.9375rem; color: inherit; padding: 0.375rem 0.75rem; border: 1px solid var(--line-strong); border-radius: 8px; background-color: var(--surface); min-height: 2.5rem; }
.search select, .field select { padding-right: 2rem; }
.search ::placeholder { color: var(--muted); opacity: 1; }
.search .button { padding-block: 0.375rem; }
.js .search .button { display: none; }
.found { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 0.75rem; margin: 0 0 0.5rem; font-size: 0.875rem; color: var(--muted); }
.found a, .empty a { display: inline-block; padding: 0.125rem 0; }
.pager { display: flex; flex-wrap: wrap; align-items: center; justify-content: center; gap: 1rem; margin-top: 1rem; color: var(--muted); font-size: 0.9375rem; }

@container (max-width: 44rem) {
  table, tbody, tr, td { display: block; }
  table { background: none; border: 0; box-shadow: none; }
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  td > div, td:first-child > div, td code:not(.address), td .copyable, td .long, td .actions:has(> :nth-child(2)) { min-width: 0; overflow-wrap: anywhere; }
  tr { background: var(--surface); border: 1px solid var(--line); border-radius: 12px; box-shadow: var(--shadow); padding: 0.75rem 1rem; }
  tr + tr { margin-top: 0.75rem; }
  td, td:first-child, td:last-child { display: grid; grid-template-columns: 6.5rem minmax(0, 1fr); gap: 0.75rem; padding: 0.375rem 0; border: 0; align-items: baseline; }
  td:first-child { grid-template-columns: minmax(0, 1fr); padding-top: 0; }
  td:first-child::before { display: none; }
  td::before { content: attr(data-label); color: var(--muted); font-size: 0.8125rem; font-weight: 600; }
  td time span { display: inline; }
  .card { padding: 1rem; }
  .copyable code { font-size: 0.8125rem; }
  .plain b { display: block; }
  .plain li + li { margin-top: 0.375rem; }
  .facts > div { grid-template-columns: minmax(0, 1fr); gap: 0; }
  .button-small:not(.copy) { padding: 0.4375rem 0.875rem; }
  .search input { flex-basis: 100%; max-width: none; }
  .search select { flex: 1 1 8rem; }
  .js .lines pre { padding-right: 1rem; padding-top: 2.75rem; }
}
`;
