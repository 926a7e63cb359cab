import { basename } from 'node:path';
import type { Output } from '../../terminal/output';
import { count, shown } from '../../terminal/text';
import { csvRow } from '../output';
import type { Examined } from './doctor';
import type { Finding, Section, Severity } from './finding';

interface Summary {
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
  fleet: 'fleet',
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

/** Names after a beginning, separated by commas, on as many lines as they need. */
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

/** What stands for the name of an application, or of a key folder, in what is said of several. */
const ANY_NAME = 'NAME';
/** The same for the path of a key folder. */
const ANY_FOLDER = 'FOLDER';

/** A finding that several sections have, told once. */
interface MergedFinding {
  readonly finding: Finding;
  /** The subjects of the sections that have it. */
  readonly subjects: readonly string[];
  /** The command of each of them; one that is the same for several stands there once. */
  readonly commands: readonly string[];
}

/** Sections of one kind in which the same is told once. */
interface MergedSection {
  readonly kind: Section['kind'];
  readonly subjects: readonly string[];
  /** What the notes of the sections say, each with the subjects that it is said of. */
  readonly notes: readonly { readonly note: string; readonly subjects: readonly string[] }[];
  readonly findings: readonly MergedFinding[];
}

/**
 * Tells once what sections have in common: that of all applications in one section, and that of key folders of which
 * the same is to be said. Findings are the same when they differ by the name of the application, or the path of the
 * folder, alone.
 */
function mergeSections(sections: readonly Section[]): MergedSection[] {
  const groups = new Map<string, Section[]>();
  for (const section of sections) {
    const key = groupOf(section);
    groups.set(key, [...(groups.get(key) ?? []), section]);
  }
  return [...groups.values()].map(mergeGroup);
}

function groupOf(section: Section): string {
  const { kind, subject } = section;
  if (kind === 'application') return kind;
  if (kind !== 'key_folder') return `${kind} ${subject}`;
  return `${kind} ${JSON.stringify(section.findings.map((finding) => keyOf(section, finding)))}`;
}

function mergeGroup(group: readonly Section[]): MergedSection {
  const [first] = group;
  const isAlone = group.length === 1;
  const findings = new Map<string, MergedFinding>();
  const notes = new Map<string, string[]>();
  for (const section of group) {
    const { subject } = section;
    const note = isAlone ? section.note : inGeneral(section, section.note);
    notes.set(note, [...(notes.get(note) ?? []), subject]);
    for (const finding of section.findings) {
      const key = keyOf(section, finding);
      const former = findings.get(key);
      const { command } = finding;
      findings.set(key, {
        // One that nobody else has is told in its own words.
        finding: former ? generalised(section, finding) : finding,
        subjects: [...(former?.subjects ?? []), subject],
        commands: [...new Set([...(former?.commands ?? []), ...(command === undefined ? [] : [command])])],
      });
    }
  }
  const all = [...findings.values()];
  return {
    kind: first?.kind ?? 'application',
    subjects: group.map(({ subject }) => subject),
    notes: [...notes].map(([note, subjects]) => ({ note, subjects })),
    findings: isAlone ? all : all.toSorted((one, other) => rank(one) - rank(other)),
  };
}

const RANKS: Readonly<Record<Severity, number>> = { fault: 0, warning: 1, ok: 2 };

function rank({ finding }: MergedFinding): number {
  return RANKS[finding.severity];
}

/** What makes two findings the same; the command that corrects each is shown for each. */
function keyOf(section: Section, finding: Finding): string {
  const { severity, code, message, todo, xml } = generalised(section, finding);
  return JSON.stringify([severity, code, message, todo, xml]);
}

function generalised(section: Section, finding: Finding): Finding {
  const { message, todo } = finding;
  return {
    ...finding,
    message: inGeneral(section, message),
    ...(todo !== undefined && { todo: inGeneral(section, todo) }),
  };
}

function inGeneral({ kind, subject }: Section, text: string): string {
  if (kind === 'key_folder') {
    // Stream ids may begin with the folder's own name.
    return text.replaceAll(subject, ANY_FOLDER).replaceAll(` ${basename(subject)}/`, ` ${ANY_NAME}/`);
  }
  if (kind !== 'application') return text;
  // A part of a path, whole.
  return text
    .split(/(?<=\/)|(?=[/\s,()])/)
    .map((part, index, parts) => (part === subject && parts[index - 1]?.endsWith('/') ? ANY_NAME : part))
    .join('');
}
