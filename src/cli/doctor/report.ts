import { csvRow } from '../csv-text';
import { count, type Output, shown } from '../output';
import type { Examined } from './examine';
import type { Section, Severity } from './finding';
import { type MergedFinding, type MergedSection, mergeSections } from './merge-sections';

export interface Summary {
  readonly ok: number;
  readonly warnings: number;
  readonly faults: number;
}

export function summaryOf(sections: readonly Section[]): Summary {
  const number = (severity: Severity) =>
    sections.flatMap(({ findings }) => findings).filter((finding) => finding.severity === severity).length;
  return { ok: number('ok'), warnings: number('warning'), faults: number('fault') };
}

const LABELS = {
  ok: ['ok', 'green'],
  warning: ['warning', 'yellow'],
  fault: ['FAULT', 'red'],
} as const;
const INDENT = ' '.repeat(11);

/**
 * The checklist for a person: a block a section, a line a finding, and under it what to do. What several applications
 * or key folders have in common is told once, with their names.
 */
export function renderReport(
  { packager, user }: Examined,
  sections: readonly Section[],
  { style }: Pick<Output, 'style'>,
): string {
  const head = [
    `packager   ${packager}`,
    ...(user ? [`runs as    ${user.identity.name} (${user.because})`] : []),
  ];
  const merged = mergeSections(sections);
  const blocks = merged.map((section) =>
    [...headOf(section, style), ...section.findings.map((found) => line(found, section, style))].join('\n'),
  );
  const { warnings, faults } = summaryOf(sections);
  const different = merged
    .flatMap(({ findings }) => findings)
    .filter(({ finding }) => finding.severity === 'fault').length;
  const same = different < faults ? ` (${different} different)` : '';
  const end = faults > 0 ? style('red', `${count(faults, 'fault')}${same}`) : style('green', 'No fault');
  return `${[head.map(shown).join('\n'), ...blocks, `${end}, ${count(warnings, 'warning')}.`].join('\n\n')}\n`;
}

const NOUNS: Readonly<Record<Section['kind'], string>> = {
  application: 'application',
  key_folder: 'key folder',
  sidecar: 'sidecar',
  streams: 'stream',
};

function headOf({ kind, subjects, notes }: MergedSection, style: Output['style']): string[] {
  const [subject = ''] = subjects;
  const [{ note } = { note: '' }] = notes;
  if (subjects.length === 1) return [`${style('bold', shown(subject))}  ${style('dim', shown(note))}`];
  const what = style('bold', count(subjects.length, NOUNS[kind]));
  if (kind === 'key_folder') return [what, ...subjects.map((path) => `  ${shown(path)}`)];
  if (notes.length === 1) return [`${what}  ${style('dim', shown(note))}`];
  return [what, ...notes.flatMap((one) => wrapped('  ', `${one.note}: `, one.subjects))];
}

function line(
  { finding, subjects, commands }: MergedFinding,
  { kind, subjects: all }: MergedSection,
  style: Output['style'],
): string {
  const { severity, message, todo, xml } = finding;
  const [label, colour] = LABELS[severity];
  const isShared = kind === 'application' && all.length > 1;
  const isWell = severity === 'ok';
  const where = isShared && isWell ? ` (${whereItIsWell(subjects, all)})` : '';
  const lines = [`  ${style(colour, label.padEnd(7))}  ${shown(message)}${where}`];
  if (isShared && !isWell) lines.push(...whereItIsNot(subjects, all));
  const more = [...(xml?.split('\n') ?? []), ...commands];
  if (todo !== undefined) lines.push(`${INDENT}to do: ${shown(todo)}${more.length === 0 ? '' : ':'}`);
  for (const text of more) lines.push(`${INDENT}  ${shown(text)}`);
  return lines.join('\n');
}

/** As many names as are told of what is well, or of what is left out. */
const FEW = 4;

function whereItIsWell(subjects: readonly string[], all: readonly string[]): string {
  if (subjects.length === all.length) return allOf(all);
  const number = `${subjects.length} of ${all.length}`;
  return subjects.length <= FEW ? `${number}: ${subjects.map(shown).join(', ')}` : number;
}

function whereItIsNot(subjects: readonly string[], all: readonly string[]): string[] {
  if (subjects.length === all.length) return [`${INDENT}in ${allOf(all)}`];
  const others = all.filter((subject) => !subjects.includes(subject));
  const number = `in ${subjects.length} of ${all.length}`;
  return others.length <= FEW && subjects.length > FEW
    ? wrapped(INDENT, `${number}, all but `, others)
    : wrapped(INDENT, `${number}: `, subjects);
}

function allOf(all: readonly string[]): string {
  return all.length === 2 ? 'both' : `all ${all.length}`;
}

const WIDTH = 110;

/** Names after a beginning, divided by commas, on as many lines as they need. */
function wrapped(indent: string, beginning: string, names: readonly string[]): string[] {
  const lines: string[] = [];
  let line = `${indent}${shown(beginning)}`;
  names.forEach((name, index) => {
    const word = `${shown(name)}${index < names.length - 1 ? ', ' : ''}`;
    if (line.length + word.trimEnd().length > WIDTH && line.trim() !== '' && index > 0) {
      lines.push(line.trimEnd());
      line = `${indent}  `;
    }
    line += word;
  });
  return [...lines, line];
}

/** The same for programs. */
export function reportDocument({ packager, user, sidecar }: Examined, sections: readonly Section[]): unknown {
  return {
    packager,
    user: user
      ? { name: user.identity.name, uid: user.identity.uid, gids: user.identity.gids, because: user.because }
      : null,
    sidecar: {
      address: sidecar.address ?? null,
      ready: sidecar.notReady === undefined ? null : sidecar.notReady.length === 0,
      keyfiles: sidecar.listed?.length ?? null,
    },
    sections,
    summary: summaryOf(sections),
  };
}

const HEADER = ['kind', 'subject', 'severity', 'code', 'message', 'todo', 'xml', 'command'];

/** The same for a spreadsheet: a row for each finding. */
export function reportRows(sections: readonly Section[]): string {
  const rows = sections.flatMap(({ kind, subject, findings }) =>
    findings.map(({ severity, code, message, todo = '', xml = '', command = '' }) =>
      csvRow([kind, subject, severity, code, message, todo, xml, command]),
    ),
  );
  return [csvRow(HEADER), ...rows].join('');
}
