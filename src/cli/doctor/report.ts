import { basename } from 'node:path';
import type { Output } from '../../terminal/output';
import { count, csvRow, shown } from '../../terminal/text';
import type { Check, Section } from './finding';
import type { PackagerUser } from './rights';
import type { SidecarState } from './sidecar';

interface Head {
  readonly packager: string;
  readonly user: PackagerUser | undefined;
  readonly sidecar: SidecarState;
}

export function summaryOf(sections: readonly Section[]): Record<'ok' | 'warnings' | 'faults', number> {
  const checks = sections.flatMap((section) => section.checks);
  const number = (wanted: Check['severity']) => checks.filter(({ severity }) => severity === wanted).length;
  return { ok: number('ok'), warnings: number('warning'), faults: number('error') };
}

const LABELS = {
  ok: ['ok', 'green'],
  warning: ['warning', 'yellow'],
  error: ['FAULT', 'red'],
} as const;
const INDENT = ' '.repeat(11);

/**
 * The checklist for a person: a block for each section, a line for each check, and below it what to do. Checks that
 * several applications or key folders share are shown once, with the names.
 */
export function renderReport(
  { packager, user }: Head,
  sections: readonly Section[],
  { style }: Pick<Output, 'style'>,
): string {
  const head = [
    `packager   ${packager}`,
    ...(user ? [`runs as    ${user.identity.name} (${user.because})`] : []),
  ];
  const merged = mergeSections(sections);
  const blocks = merged.map((section) =>
    [...headOf(section, style), ...section.checks.map((check) => linesOf(check, section, style))].join('\n'),
  );
  const { warnings, faults } = summaryOf(sections);
  const different = merged
    .flatMap(({ checks }) => checks)
    .filter(({ check }) => check.severity === 'error').length;
  const same = different < faults ? ` (${different} different)` : '';
  const end = faults > 0 ? style('red', `${count(faults, 'fault')}${same}`) : style('green', 'No fault');
  return `${[head.map(shown).join('\n'), ...blocks, `${end}, ${count(warnings, 'warning')}.`].join('\n\n')}\n`;
}

function headOf({ kind, subjects, notes }: MergedSection, style: Output['style']): string[] {
  const [subject = ''] = subjects;
  const [note = ''] = notes.keys();
  if (subjects.length === 1) return [`${style('bold', shown(subject))}  ${style('dim', shown(note))}`];
  const what = style('bold', count(subjects.length, kind.replace('_', ' ')));
  if (kind === 'key_folder') return [what, ...subjects.map((path) => `  ${shown(path)}`)];
  if (notes.size === 1) return [`${what}  ${style('dim', shown(note))}`];
  return [what, ...[...notes].flatMap(([one, names]) => wrapped('  ', `${one}: `, names))];
}

function linesOf(
  { check, subjects, commands }: MergedCheck,
  { kind, subjects: all }: MergedSection,
  style: Output['style'],
): string {
  const { severity, description, todo, xml } = check;
  const [label, colour] = LABELS[severity];
  const isShared = kind === 'application' && all.length > 1;
  const isOk = severity === 'ok';
  const where = isShared && isOk ? ` (${whereOk(subjects, all)})` : '';
  const lines = [`  ${style(colour, label.padEnd(7))}  ${shown(description)}${where}`];
  if (isShared && !isOk) lines.push(...whereFaulty(subjects, all));
  const more = [...(xml?.split('\n') ?? []), ...commands];
  if (todo !== undefined) lines.push(`${INDENT}to do: ${shown(todo)}${more.length === 0 ? '' : ':'}`);
  for (const text of more) lines.push(`${INDENT}  ${shown(text)}`);
  return lines.join('\n');
}

const FEW = 4;

function whereOk(subjects: readonly string[], all: readonly string[]): string {
  if (subjects.length === all.length) return allOf(all);
  const number = `${subjects.length} of ${all.length}`;
  return subjects.length <= FEW ? `${number}: ${subjects.map(shown).join(', ')}` : number;
}

function whereFaulty(subjects: readonly string[], all: readonly string[]): string[] {
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

/** Names after a prefix, separated by commas, on as many lines as they need. */
function wrapped(indent: string, prefix: string, names: readonly string[]): string[] {
  const lines: string[] = [];
  let line = `${indent}${shown(prefix)}`;
  names.forEach((name, index) => {
    const word = `${shown(name)}${index < names.length - 1 ? ', ' : ''}`;
    if (line.length + word.trimEnd().length > WIDTH && index > 0) {
      lines.push(line.trimEnd());
      line = `${indent}  `;
    }
    line += word;
  });
  return [...lines, line];
}

function fieldsOf({ severity, code, description, ...more }: Check) {
  return { severity: severity === 'error' ? 'fault' : severity, code, message: description, ...more };
}

export function reportDocument({ packager, user, sidecar }: Head, sections: readonly Section[]): unknown {
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
    sections: sections.map(({ checks, ...section }) => ({ ...section, findings: checks.map(fieldsOf) })),
    summary: summaryOf(sections),
  };
}

const HEADER = ['kind', 'subject', 'severity', 'code', 'message', 'todo', 'xml', 'command'];

export function reportRows(sections: readonly Section[]): string {
  const rows = sections.flatMap(({ kind, subject, checks }) =>
    checks
      .map(fieldsOf)
      .map(({ severity, code, message, todo = '', xml = '', command = '' }) =>
        csvRow([kind, subject, severity, code, message, todo, xml, command]),
      ),
  );
  return [csvRow(HEADER), ...rows].join('');
}

interface MergedCheck {
  readonly check: Check;
  readonly subjects: readonly string[];
  readonly commands: readonly string[];
}

interface MergedSection {
  readonly kind: Section['kind'];
  readonly subjects: readonly string[];
  readonly notes: ReadonlyMap<string, readonly string[]>;
  readonly checks: readonly MergedCheck[];
}

/**
 * Merges all applications into one section, and key folders with the same checks. Checks are the same when they differ
 * only in the name of the application, or the path of the folder.
 */
function mergeSections(sections: readonly Section[]): MergedSection[] {
  const groups = new Map<string, Section[]>();
  for (const section of sections) {
    const { kind, subject, checks } = section;
    const same = JSON.stringify(checks.map((check) => keyOf(section, check)));
    const key = kind === 'application' ? kind : `${kind} ${kind === 'key_folder' ? same : subject}`;
    groups.set(key, [...(groups.get(key) ?? []), section]);
  }
  return [...groups.values()].map(mergeGroup);
}

const RANKS = { error: 0, warning: 1, ok: 2 } as const;

function mergeGroup(group: readonly Section[]): MergedSection {
  const isAlone = group.length === 1;
  const merged = new Map<string, MergedCheck>();
  const notes = new Map<string, string[]>();
  for (const section of group) {
    const { subject, checks } = section;
    const note = isAlone ? section.note : inGeneral(section, section.note);
    notes.set(note, [...(notes.get(note) ?? []), subject]);
    for (const check of checks) {
      const key = keyOf(section, check);
      const former = merged.get(key);
      merged.set(key, {
        check: former ? generalised(section, check) : check,
        subjects: [...(former?.subjects ?? []), subject],
        commands: [...new Set([...(former?.commands ?? []), ...(check.command ? [check.command] : [])])],
      });
    }
  }
  const all = [...merged.values()];
  return {
    kind: group[0]?.kind ?? 'application',
    subjects: group.map(({ subject }) => subject),
    notes,
    checks: isAlone
      ? all
      : all.toSorted((one, other) => RANKS[one.check.severity] - RANKS[other.check.severity]),
  };
}

/** What makes two checks the same; each command is shown. */
function keyOf(section: Section, check: Check): string {
  const { command, ...rest } = generalised(section, check);
  return JSON.stringify(rest);
}

function generalised(section: Section, check: Check): Check {
  const { description, todo } = check;
  return {
    ...check,
    description: inGeneral(section, description),
    ...(todo !== undefined && { todo: inGeneral(section, todo) }),
  };
}

/** A text with NAME for the name of the application, or with FOLDER for the path of the key folder. */
function inGeneral({ kind, subject }: Section, text: string): string {
  if (kind === 'key_folder')
    // Stream ids may begin with the folder's own name.
    return text.replaceAll(subject, 'FOLDER').replaceAll(` ${basename(subject)}/`, ' NAME/');
  if (kind !== 'application') return text;
  // Only as a whole part of a path.
  return text
    .split(/(?<=\/)|(?=[/\s,()])/)
    .map((part, index, parts) => (part === subject && parts[index - 1]?.endsWith('/') ? 'NAME' : part))
    .join('');
}
