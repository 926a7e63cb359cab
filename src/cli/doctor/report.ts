import { basename } from 'node:path';
import { groupedBy } from '../../drm/bytes';
import type { Output } from '../../terminal/output';
import { count, csvRow, shown, someNames } from '../../terminal/text';
import type { Check, Section } from './finding';
import type { PackagerUser } from './rights';
import type { SidecarState } from './sidecar';

interface Head {
  readonly packager: string;
  readonly user: PackagerUser;
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

/** All applications are one block, as are key folders with the same checks: a shared check is shown once. */
export function renderReport(
  { packager, user }: Head,
  sections: readonly Section[],
  { style }: Pick<Output, 'style'>,
): string {
  const head = [`packager   ${packager}`, `runs as    ${user.identity.name} (${user.because})`];
  const groups = groupedBy(sections, (section) => {
    const { kind, subject, checks } = section;
    const same = kind === 'key_folder' ? checks.map((check) => keyOf(section, check)).join() : subject;
    return kind === 'application' ? kind : `${kind} ${same}`;
  });
  const blocks = [...groups.values()].map((group) => blockOf(group, style).join('\n'));
  const { warnings, faults } = summaryOf(sections);
  const end = faults > 0 ? style('red', count(faults, 'fault')) : style('green', 'No fault');
  return `${[head.map(shown).join('\n'), ...blocks, `${end}, ${count(warnings, 'warning')}.`].join('\n\n')}\n`;
}

function blockOf(group: readonly Section[], style: Output['style']): string[] {
  const [first] = group;
  if (!first) return [];
  const isOne = group.length === 1;
  const notes = groupedBy(group, (section) => (isOne ? section.note : inGeneral(section, section.note)));
  const all = group.flatMap((section) => section.checks.map((check) => ({ section, check })));
  const rank = ({ check }: (typeof all)[number]) => RANKS.indexOf(check.severity);
  if (!isOne) all.sort((one, other) => rank(one) - rank(other));
  const merged = groupedBy(all, ({ section, check }) => (isOne ? check : keyOf(section, check)));
  const title = style(
    'bold',
    isOne ? shown(first.subject) : count(group.length, first.kind.replace('_', ' ')),
  );
  const isFolder = !isOne && first.kind === 'key_folder';
  const [note = ''] = notes.keys();
  const below = isFolder
    ? group.map(({ subject }) => `  ${shown(subject)}`)
    : [...notes].map(([each, same]) => `  ${shown(each)}: ${someNames(same.map(({ subject }) => subject))}`);
  const head = isFolder || notes.size > 1 ? [title, ...below] : [`${title}  ${style('dim', shown(note))}`];
  const lines = [...merged.values()].flatMap((same) => {
    const [one] = same;
    if (!one) return [];
    const { severity, description, todo, xml } =
      same.length > 1 ? generalised(one.section, one.check) : one.check;
    const subjects = same.map(({ section }) => section.subject);
    const commands = new Set(same.flatMap(({ check }) => check.command ?? []));
    const [label, colour] = LABELS[severity];
    const number = `${subjects.length} of ${group.length}`;
    const isShared = subjects.length === group.length;
    const part = isShared || severity !== 'ok' ? '' : ` (${number})`;
    const more = [...(xml?.split('\n') ?? []), ...commands];
    return [
      `  ${style(colour, label.padEnd(7))}  ${shown(description)}${part}`,
      ...(isShared || severity === 'ok' ? [] : [`${INDENT}in ${number}: ${someNames(subjects)}`]),
      ...(todo === undefined ? [] : [`${INDENT}to do: ${shown(todo)}${more.length === 0 ? '' : ':'}`]),
      ...more.map((text) => `${INDENT}  ${shown(text)}`),
    ];
  });
  return [...head, ...lines];
}

/** The same for equal checks of two sections with other names of applications or paths of folders. */
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
    user: { ...user.identity, because: user.because },
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
