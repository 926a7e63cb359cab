import { checkValues } from '../cross-check';
import type { PartsContext, PartValues } from './part-values';
import type { Report } from './report';

/** Checks values against each other. */
export function checkTogether(report: Report, values: PartValues, context: PartsContext): void {
  const findings = checkValues(values, context);
  // Then what looks like the key id is the key, and must not be shown.
  if (values.keyId && findings.some(({ code }) => code === 'key_and_key_id_swapped'))
    report.secrets.add(values.keyId.toString('base64'));
  for (const found of findings) report.fault({ ...found, description: `${found.description}.` });
}
