import type { CheckField } from '../drm/check/report';
import type { Finding } from '../drm/finding';
import type { Output } from '../terminal/output';
import { columns, count, shown } from '../terminal/text';

export function showFields(out: Output, fields: readonly CheckField[]): void {
  const rows = fields.map(({ name, value, note }) => [
    `  ${shown(name)}`,
    shown(value),
    note ? out.style('dim', shown(note)) : '',
  ]);
  out.write(columns(rows));
}

export function findingText(out: Output, { severity, description }: Finding): string {
  const style = severity === 'error' ? 'red' : 'yellow';
  return `${out.style(style, `${severity}:`)} ${shown(description)}`;
}

export function showFindings(out: Output, findings: readonly Finding[]): void {
  for (const finding of findings) out.write(`${findingText(out, finding)}\n`);
}

export function severitySummary(findings: readonly Pick<Finding, 'severity'>[]) {
  const errors = findings.filter(({ severity }) => severity === 'error').length;
  const warnings = findings.length - errors;
  const text =
    findings.length === 0 ? 'no faults' : `${count(errors, 'error')}, ${count(warnings, 'warning')}`;
  const style = errors > 0 ? 'red' : warnings > 0 ? 'yellow' : 'green';
  return { text, style } as const;
}
