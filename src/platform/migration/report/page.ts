import { type Html, html } from '../../../http/html';
import type { Entry, Report } from './collect';
import { commandsOf, FOR_ALL, number, ownNotes, placesOf, type Shown, summary, VERDICTS } from './text';

/** The report as a page that needs nothing else: no script, and no file beside it. */
export function htmlReport(report: Report, how: Shown): string {
  const { entries, inputs } = report;
  const leftOut = inputs.flatMap(({ name, leftOut: all }) => all.map((what) => `${name}: ${what}`));
  return `${html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Migration of Management API v1 to v2</title>
<style>${STYLE}</style>
</head>
<body>
<h1>Migration of Management API v1 to v2</h1>
<p>${summary(report)}</p>
${leftOut.length > 0 && html`<ul>${leftOut.map((what) => html`<li>${what}</li>`)}</ul>`}
<table>
<thead><tr><th>v1</th><th>Calls</th><th>v2</th><th></th></tr></thead>
<tbody>
${entries.map((entry, index) => row(entry, index))}
</tbody>
</table>
<h2>For every call</h2>
<ul>${FOR_ALL.map((sentence) => html`<li>${sentence}</li>`)}</ul>
${entries.map((entry, index) => section(entry, index, how))}
</body>
</html>
`}`;
}

// Without quotes and angle brackets, which would be escaped.
const STYLE = `body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1b1f24;background:#fff;overflow-wrap:anywhere}
a{color:inherit}table{border-collapse:collapse;width:100%}th,td{border-bottom:1px solid #d0d7de;padding:.4rem .6rem;text-align:left;vertical-align:top}
pre{background:#f2f4f7;padding:.6rem;white-space:pre-wrap}td:first-child{min-width:17rem}td:last-child{min-width:11rem}
.by_hand,.unknown,.unsupported{color:#9a3412;font-weight:600}.ready{color:#14622d}
@media (max-width:50rem){thead{display:none}tr{display:block;border-bottom:1px solid #d0d7de;padding:.4rem 0}td,td:first-child{display:block;border:0;padding:0;min-width:0}td::before{content:attr(data-label)}}
@media (prefers-color-scheme:dark){body{color:#e6edf3;background:#12161b}pre{background:#1e242c}th,td,tr{border-color:#3a424c}.by_hand,.unknown,.unsupported{color:#fdba74}.ready{color:#7ee2a0}}`;

function row({ migration: { route, verdict, calls }, count }: Entry, index: number): Html {
  return html`<tr>
<td><a href="#call-${index + 1}"><code>${route}</code></a></td>
<td data-label="Calls: ">${number(count)}</td>
<td>${calls.map(({ method, path }) => html`<div><code>${method} ${path}</code></div>`)}</td>
<td class="${verdict}">${VERDICTS[verdict][0]}</td>
</tr>
`;
}

function section(entry: Entry, index: number, how: Shown): Html {
  const { route, verdict, calls } = entry.migration;
  const places = placesOf(entry);
  return html`<section id="call-${index + 1}">
<h2><code>${route}</code></h2>
<p class="${verdict}">This call ${VERDICTS[verdict][0]}.</p>
${places !== '' && html`<p>${places}</p>`}
${calls.map((call) => {
  const { curl, client } = commandsOf(call, how);
  return html`${call.purpose !== undefined && html`<p>${call.purpose}</p>`}
<pre>${curl}</pre>
<pre>${client}</pre>
`;
})}
<ul>
${ownNotes(entry).map(
  ({ kind, field, sentence, byHand }) =>
    html`<li class="${byHand ? 'by_hand' : ''}">${kind}: ${field !== undefined && html`<code>${field}</code>: `}${sentence}</li>
`,
)}</ul>
</section>
`;
}
