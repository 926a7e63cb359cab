import { basename } from 'node:path';
import type { Output } from '../../terminal/output';
import { count, csvRow, shown, someNames } from '../../terminal/text';
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
  error: ['FAULT', 'red'],
  warning: ['warning', 'yellow'],
  ok: ['ok', 'green'],
} as const;
const RANKS = Object.keys(LABELS);
const INDENT = ' '.repeat(11);

/**
 * The checklist for a person: a block for each section, a line for each check, and below it what to do. All applications
 * are one block, and so are key folders with the same checks: a check that they share is shown once.
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
  const groups = new Map<string, Section[]>();
  for (const section of sections) {
    const { kind, subject, checks } = section;
    const same = kind === 'key_folder' ? checks.map((check) => keyOf(section, check)).join() : subject;
    const key = kind === 'application' ? kind : `${kind} ${same}`;
    groups.set(key, [...(groups.get(key) ?? []), section]);
  }
  const blocks = [...groups.values()].map((group) => blockOf(group, style).join('\n'));
  const { warnings, faults } = summaryOf(sections);
  const end = faults > 0 ? style('red', count(faults, 'fault')) : style('green', 'No fault');
  return `${[head.map(shown).join('\n'), ...blocks, `${end}, ${count(warnings, 'warning')}.`].join('\n\n')}\n`;
}

interface MergedCheck {
  readonly check: Check;
  readonly subjects: readonly string[];
  readonly commands: readonly string[];
}

function blockOf(group: readonly Section[], style: Output['style']): string[] {
  const [first] = group;
  if (!first) return [];
  if (group.length === 1) {
    const checks = first.checks.map((check) => ({ check, subjects: [''], commands: [check.command ?? ''] }));
    return [
      `${style('bold', shown(first.subject))}  ${style('dim', shown(first.note))}`,
      ...checks.flatMap((check) => linesOf(check, 1, style)),
    ];
  }
  const merged = new Map<string, MergedCheck>();
  const notes = new Map<string, string[]>();
  for (const section of group) {
    const note = inGeneral(section, section.note);
    notes.set(note, [...(notes.get(note) ?? []), section.subject]);
    for (const check of section.checks) {
      const key = keyOf(section, check);
      const { subjects = [], commands = [] } = merged.get(key) ?? {};
      merged.set(key, {
        check: subjects.length > 0 ? generalised(section, check) : check,
        subjects: [...subjects, section.subject],
        commands: [...commands, check.command ?? ''],
      });
    }
  }
  const checks = [...merged.values()].toSorted((one, other) => rankOf(one) - rankOf(other));
  const title = style('bold', count(group.length, first.kind.replace('_', ' ')));
  const named = [...notes].map(([note, names]) => `  ${shown(note)}: ${someNames(names)}`);
  const [note = ''] = notes.keys();
  const heads =
    first.kind === 'key_folder'
      ? [title, ...group.map(({ subject }) => `  ${shown(subject)}`)]
      : notes.size === 1
        ? [`${title}  ${style('dim', shown(note))}`]
        : [title, ...named];
  return [...heads, ...checks.flatMap((check) => linesOf(check, group.length, style))];
}

function rankOf({ check }: MergedCheck): number {
  return RANKS.indexOf(check.severity);
}

function linesOf({ check, subjects, commands }: MergedCheck, all: number, style: Output['style']): string[] {
  const { severity, description, todo, xml } = check;
  const [label, colour] = LABELS[severity];
  const number = `${subjects.length} of ${all}`;
  const isShared = subjects.length === all;
  const lines = [
    `  ${style(colour, label.padEnd(7))}  ${shown(description)}${isShared || severity !== 'ok' ? '' : ` (${number})`}`,
  ];
  if (!isShared && severity !== 'ok') lines.push(`${INDENT}in ${number}: ${someNames(subjects)}`);
  const more = [...(xml?.split('\n') ?? []), ...new Set(commands.filter(Boolean))];
  if (todo !== undefined) lines.push(`${INDENT}to do: ${shown(todo)}${more.length === 0 ? '' : ':'}`);
  return [...lines, ...more.map((text) => `${INDENT}  ${shown(text)}`)];
}

/** What makes checks of two sections the same, whatever the name of the application or the path of the folder. */
function keyOf(section: Section, check: Check): string {
  return JSON.stringify({ ...generalised(section, check), command: undefined });
}

function generalised(section: Section, check: Check): Check {
  const { description, todo } = check;
  return {
    ...check,
    description: inGeneral(section, description),
    todo: todo && inGeneral(section, todo),
  };
}

/** A text with NAME for the name of the application, or with FOLDER for the path of the key folder. */
function inGeneral({ kind, subject }: Section, text: string): string {
  if (kind === 'key_folder')
    // Stream ids may begin with the folder's own name.
    return text.replaceAll(subject, 'FOLDER').replaceAll(` ${basename(subject)}/`, ' NAME/');
  // Only as a whole part of a path.
  return text
    .split(/(?<=\/)|(?=[/\s,()])/)
    .map((part, index, parts) => (part === subject && parts[index - 1]?.endsWith('/') ? 'NAME' : part))
    .join('');
}

function fieldsOf({ severity, code, description, ...more }: Check) {
  return { severity: severity === 'error' ? 'fault' : severity, code, message: description, ...more };
}

export function reportDocument({ packager, user, sidecar }: Head, sections: readonly Section[]): unknown {
  return {
    packager,
    user: user ? { ...user.identity, because: user.because } : null,
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
