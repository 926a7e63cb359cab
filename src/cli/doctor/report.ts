import { count, type Output, shown } from '../output';
import type { Examined } from './examine';
import type { Finding, Section, Severity } from './finding';

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

/** The checklist for a person: a block a section, a line a finding, and under it what to do. */
export function renderReport(
  { packager, user }: Examined,
  sections: readonly Section[],
  { style }: Pick<Output, 'style'>,
): string {
  const head = [
    `packager   ${packager}`,
    ...(user ? [`runs as    ${user.identity.name} (${user.because})`] : []),
  ];
  const blocks = sections.map(({ subject, note, findings }) =>
    [
      `${style('bold', shown(subject))}  ${style('dim', shown(note))}`,
      ...findings.map((finding) => line(finding, style)),
    ].join('\n'),
  );
  const { warnings, faults } = summaryOf(sections);
  const end = faults > 0 ? style('red', count(faults, 'fault')) : style('green', 'No fault');
  return `${[head.map(shown).join('\n'), ...blocks, `${end}, ${count(warnings, 'warning')}.`].join('\n\n')}\n`;
}

function line({ severity, message, todo, xml, command }: Finding, style: Output['style']): string {
  const [label, colour] = LABELS[severity];
  const lines = [`  ${style(colour, label.padEnd(7))}  ${shown(message)}`];
  const more = [...(xml?.split('\n') ?? []), ...(command === undefined ? [] : [command])];
  if (todo !== undefined) lines.push(`${INDENT}to do: ${shown(todo)}${more.length === 0 ? '' : ':'}`);
  for (const text of more) lines.push(`${INDENT}  ${shown(text)}`);
  return lines.join('\n');
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
