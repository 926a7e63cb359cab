import { shown } from '../../../terminal/text';
import type { Entry, Report } from './collect';
import {
  answersText,
  clientLineOf,
  curlOf,
  FOR_ALL,
  INCOMPLETE,
  number,
  ownNotes,
  placesOf,
  type Shown,
  summary,
  VERDICTS,
} from './wording';

/** The report for a terminal, a block for each call. */
export function* textReport(report: Report, how: Shown): Generator<string> {
  for (const entry of report.entries) yield `${block(entry, how)}\n`;
  for (const { name, leftOut } of report.inputs)
    for (const what of leftOut) yield `${shown(name)}: ${what}\n`;
  if (report.entries.some(({ migration }) => migration.calls.length > 0)) {
    yield 'For every call:\n';
    for (const sentence of FOR_ALL) yield `  ${sentence}\n`;
    yield '\n';
  }
  yield `${summary(report)}\n`;
}

function block(entry: Entry, how: Shown): string {
  const { migration, count, incomplete } = entry;
  const times = count > 1 ? ` (${number(count)} calls)` : '';
  const lines = [`${shown(migration.route)}${times} ${VERDICTS[migration.verdict]}`];
  const places = placesOf(entry);
  if (places !== '') lines.push(`  ${shown(places)}`);
  for (const call of migration.calls) {
    lines.push('');
    if (call.purpose !== undefined) lines.push(`  # ${call.purpose}`);
    lines.push(indented(curlOf(call, how)), indented(clientLineOf(call, how)));
  }
  const notes = ownNotes(entry).map(({ kind, field, sentence, byHand }) => {
    const about = field === undefined ? '' : `${field}: `;
    return `  ${byHand ? '!' : '-'} ${kind}: ${about}${sentence}`;
  });
  const answers = answersText(entry);
  if (answers !== undefined) notes.push(`  - changed: answer: ${answers}`);
  if (incomplete) notes.push(`  ! beware: ${INCOMPLETE}`);
  return [...lines, '', ...notes, ''].join('\n');
}

const indented = (text: string) => text.replaceAll(/^/gm, '  ');
