import { type Html, html } from '../../http/html';
import { shown } from '../../terminal/text';
import { isAuthentication, shownValue } from './mapping/fields';
import { findRoute, shownRoute } from './mapping/routes';
import { CONTRACT } from './mapping/sentences';
import { type Migration, migrateCall, type Note, type V2Call, type Verdict } from './migrate-call';
import type { V1Parameters } from './parameters';
import type { FoundCall } from './read-calls/found-call';
import { asClientLine, asCurl, type Client } from './render';

interface Group {
  readonly call: FoundCall;
  count: number;
  /** Their places; at most so many are kept. */
  readonly places: { readonly file: string; readonly line: number }[];
  morePlaces: number;
  incomplete: boolean;
}

type Entry = Readonly<Omit<Group, 'call'>> & { readonly migration: Migration };

interface InputSummary {
  readonly name: string;
  readonly kind: string;
  readonly calls: number;
  readonly lines?: number;
  readonly leftOut: readonly string[];
}

export type Report = ReturnType<Collector['report']>;

const MAX_ENTRIES = 10_000;
const MAX_PLACES = 100;
const MAX_PARAMETERS = 200;
const MAX_VALUES = 100;
const MAX_VALUE = 2000;

/** Counts calls by their form, in bounded memory. */
export class Collector {
  readonly #groups = new Map<string, Group>();
  readonly #inputs: InputSummary[] = [];
  #uncounted = 0;
  #calls = 0;
  #callsBefore = 0;

  get calls(): number {
    return this.#calls - this.#callsBefore;
  }

  /** Calls with the same values are one entry. */
  add(call: FoundCall, file?: string): void {
    const values = Object.entries(call.parameters).filter(([name]) => !isAuthentication(name));
    values.sort(([one], [other]) => (one < other ? -1 : 1));
    this.#count(call, values.length === 0 ? '' : JSON.stringify(values), file);
  }

  /** Adds a call of many; those with the same route and names of parameters are one entry, with the first's values. */
  addForm(call: FoundCall): void {
    this.#count(call, Object.keys(call.parameters).sort().join('&'));
  }

  #count(given: FoundCall, form: string, file?: string): void {
    this.#calls += 1;
    // Ids in unknown paths would make each call a form of its own.
    const isKnown = findRoute(given.route) !== undefined;
    const call = isKnown ? given : { ...given, route: shownRoute(given.route), parameters: {} };
    const key = isKnown ? `${call.route} ${form}` : call.route;
    let group = this.#groups.get(key);
    if (!group && this.#groups.size >= MAX_ENTRIES) {
      this.#uncounted += 1;
      return;
    }
    if (!group) {
      const parameters = kept(call.parameters);
      group = { call: { ...call, parameters }, count: 0, places: [], morePlaces: 0, incomplete: false };
      this.#groups.set(key, group);
    }
    group.count += 1;
    if (call.incomplete) group.incomplete = true;
    if (file === undefined || call.line === undefined) return;
    if (group.places.length < MAX_PLACES) group.places.push({ file, line: call.line });
    else group.morePlaces += 1;
  }

  /** Ends the present input, which has all calls since the last one. */
  addInput(input: Omit<InputSummary, 'calls'>): void {
    const { name, kind, ...rest } = input;
    this.#inputs.push({ name, kind, calls: this.calls, ...rest });
    this.#callsBefore = this.#calls;
  }

  report(site: string | undefined) {
    const entries = [...this.#groups.values()].map(({ call, ...rest }): Entry => {
      const migration = migrateCall(call, site);
      // A call that may have more than is known of it is not ready as it is shown.
      const isByHand = rest.incomplete && migration.verdict === 'ready';
      return { migration: isByHand ? { ...migration, verdict: 'by_hand' } : migration, ...rest };
    });
    entries.sort((one, other) => other.count - one.count);
    const totals: Record<Verdict, number> = { ready: 0, by_hand: 0, unsupported: 0, unknown: 0 };
    for (const { migration, count } of entries) totals[migration.verdict] += count;
    return {
      entries,
      calls: this.#calls,
      totals,
      /** Calls of further forms than are kept apart; nothing else is known of them. */
      uncounted: this.#uncounted,
      inputs: this.#inputs,
    };
  }
}

/** The parameters without their signature, cut to a size that can be kept. */
function kept(parameters: V1Parameters): V1Parameters {
  const result: Record<string, string[]> = Object.create(null);
  for (const [name, value] of Object.entries(parameters).slice(0, MAX_PARAMETERS))
    result[name.slice(0, MAX_VALUE)] = [value]
      .flat()
      .slice(-MAX_VALUES)
      .map((text) => {
        const short = text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}…` : text;
        return shownValue(name, short);
      });
  return result;
}

interface Shown {
  readonly client: Client;
  readonly address: string;
}

const VERDICTS: Readonly<Record<Verdict, readonly [one: string, several: string]>> = {
  ready: ['can be migrated as it is', 'can be migrated as they are'],
  by_hand: ['needs work by hand', 'need work by hand'],
  unsupported: ['has no counterpart in v2', 'have no counterpart in v2'],
  unknown: ['is not known', 'are not known'],
};

const FOR_ALL: readonly string[] = [
  CONTRACT.bearer,
  CONTRACT.clients,
  `${CONTRACT.v1Error} ${CONTRACT.v2Error}`,
];

const INCOMPLETE =
  'Further parameters may be there that could not be read here, such as those of a form or of a variable.';

function notesOf({ migration, incomplete }: Entry): readonly Note[] {
  const beware = { kind: 'beware', sentence: INCOMPLETE, byHand: true } as const;
  return [...migration.notes, ...(incomplete ? [beware] : [])];
}

function ownNotes(entry: Entry): readonly Note[] {
  const { answers } = entry.migration;
  const sentence = answers.map(({ v1, v2 }) => `${v1} is ${v2 ?? 'removed'}`).join(', ');
  const changed = { kind: 'changed', field: 'answer', sentence, byHand: false } as const;
  const notes = notesOf(entry).filter((note) => !FOR_ALL.includes(note.sentence));
  return answers.length > 0 ? [...notes, changed] : notes;
}

function commandsOf(call: V2Call, { client, address }: Shown) {
  return { curl: asCurl(call, address), client: asClientLine(call, client) };
}

/** `3 calls of v1: 1 can be migrated as it is, 2 need work by hand.` */
export function summary({ calls, totals, uncounted }: Report): string {
  const parts = Object.entries(VERDICTS).flatMap(([verdict, [one, several]]) => {
    const total = totals[verdict as Verdict];
    return total > 0 ? [`${number(total)} ${total === 1 ? one : several}`] : [];
  });
  if (uncounted > 0) parts.push(`${number(uncounted)} of further forms`);
  const found = `${number(calls)} ${calls === 1 ? 'call' : 'calls'} of v1`;
  return parts.length === 0 ? 'No call of v1 was found.' : `${found}: ${parts.join(', ')}.`;
}

const number = (value: number) => value.toLocaleString('en-US');

function placesOf({ places, morePlaces }: Entry): string {
  const known = places.map(({ file, line }) => `${file}:${line}`);
  return [...known, ...(morePlaces > 0 ? [`and ${number(morePlaces)} more`] : [])].join(', ');
}

export function* textReport(report: Report, how: Shown): Generator<string> {
  for (const entry of report.entries) yield `${block(entry, how)}\n`;
  for (const { name, leftOut } of report.inputs)
    for (const part of leftOut) yield `${shown(name)}: ${part}\n`;
  if (report.entries.some(({ migration }) => migration.calls.length > 0))
    yield `For every call:\n${FOR_ALL.map((sentence) => `  ${sentence}\n`).join('')}\n`;
  yield `${summary(report)}\n`;
}

function block(entry: Entry, how: Shown): string {
  const { migration, count } = entry;
  const times = count > 1 ? ` (${number(count)} calls)` : '';
  const lines = [`${shown(migration.route)}${times} ${VERDICTS[migration.verdict][0]}`];
  const places = placesOf(entry);
  if (places !== '') lines.push(`  ${shown(places)}`);
  for (const call of migration.calls) {
    const { curl, client } = commandsOf(call, how);
    lines.push('', ...(call.purpose === undefined ? [] : [`  # ${call.purpose}`]));
    lines.push(...[curl, client].map((text) => text.replaceAll(/^/gm, '  ')));
  }
  const notes = ownNotes(entry).map(({ kind, field, sentence, byHand }) => {
    const about = field === undefined ? '' : `${field}: `;
    return `  ${byHand ? '!' : '-'} ${kind}: ${about}${sentence}`;
  });
  return [...lines, '', ...notes, ''].join('\n');
}

export function jsonReport({ entries, ...report }: Report, how: Shown) {
  return { ...report, entries: entries.map((entry) => jsonEntry(entry, how)) };
}

function jsonEntry(entry: Entry, how: Shown) {
  const { migration, count, places, morePlaces } = entry;
  const { route, verdict, calls, answers } = migration;
  const notes = notesOf(entry).map(({ byHand, ...note }) => ({ ...note, by_hand: byHand }));
  const shownCalls = calls.map((call) => ({ ...call, ...commandsOf(call, how) }));
  return { route, verdict, count, places, more_places: morePlaces, answers, calls: shownCalls, notes };
}

/** The report as a page without scripts and other files. */
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
<body><main>
<h1>Migration of Management API v1 to v2</h1>
<p>${summary(report)}</p>
${leftOut.length > 0 && html`<ul>${leftOut.map((what) => html`<li>${what}</li>`)}</ul>`}
<table>
<thead><tr><th>v1</th><th>Calls</th><th>v2</th><th>Migration</th></tr></thead>
<tbody>
${entries.map((entry, index) => row(entry, index))}
</tbody>
</table>
<h2>For every call</h2>
<ul>${FOR_ALL.map((sentence) => html`<li>${sentence}</li>`)}</ul>
${entries.map((entry, index) => section(entry, index, how))}
</main></body>
</html>
`}`;
}

// Without quotes and angle brackets, which would be escaped.
const STYLE = `body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1b1f24;background:#fff;overflow-wrap:anywhere}
a{color:inherit}table{border-collapse:collapse;width:100%}th,td{border-bottom:1px solid #d0d7de;padding:.4rem .6rem;text-align:left;vertical-align:top}
pre{background:#f2f4f7;padding:.6rem;white-space:pre-wrap}td:first-child{min-width:17rem}td:nth-child(2){white-space:nowrap}td:last-child{min-width:11rem}
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
