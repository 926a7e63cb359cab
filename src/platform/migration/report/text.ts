import { shown } from '../../../terminal/text';
import { CONTRACT } from '../mapping/sentences';
import type { Note, V2Call, Verdict } from '../migrate-call';
import { asClientLine, asCurl, type Client } from '../render';
import type { Entry, Report } from './collect';

/** How calls are shown. */
export interface Shown {
  readonly client: Client;
  /** Where v2 is. */
  readonly address: string;
}

/** What each verdict says of a call, and of several. */
export const VERDICTS: Readonly<Record<Verdict, readonly [one: string, several: string]>> = {
  ready: ['can be migrated as it is', 'can be migrated as they are'],
  by_hand: ['needs work by hand', 'need work by hand'],
  unsupported: ['has no counterpart in v2', 'have no counterpart in v2'],
  unknown: ['is not known', 'are not known'],
};

/** What holds for every call, and is said once. */
export const FOR_ALL: readonly string[] = [
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

/** The notes of a call for a person: with how its answer changes, without those that every call has. */
export function ownNotes(entry: Entry): readonly Note[] {
  const { answers } = entry.migration;
  const sentence = answers.map(({ v1, v2 }) => `${v1} is ${v2 ?? 'removed'}`).join(', ');
  const changed = { kind: 'changed', field: 'answer', sentence, byHand: false } as const;
  const notes = notesOf(entry).filter((note) => !FOR_ALL.includes(note.sentence));
  return answers.length > 0 ? [...notes, changed] : notes;
}

/** A call as commands. */
export function commandsOf(call: V2Call, { client, address }: Shown) {
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

export const number = (value: number) => value.toLocaleString('en-US');

/** Where a call stands, as `a.js:1, b.py:3`. */
export function placesOf({ places, morePlaces }: Entry): string {
  const known = places.map(({ file, line }) => (line === undefined ? file : `${file}:${line}`));
  return [...known, ...(morePlaces > 0 ? [`and ${number(morePlaces)} more`] : [])].join(', ');
}

/** The report for a terminal, a block for each call. */
export function* textReport(report: Report, how: Shown): Generator<string> {
  for (const entry of report.entries) yield `${block(entry, how)}\n`;
  for (const { name, leftOut } of report.inputs)
    for (const what of leftOut) yield `${shown(name)}: ${what}\n`;
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

/** The report for programs. */
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
