import { groupedBy } from '../drm/bytes';
import type { CheckedInput } from '../drm/check/check';
import { type Finding, isError, sentenceOf } from '../drm/finding';

/** The placeholder of the subject of a sentence, so that one cause in several files is reported once. */
export const THIS = '\u0001';
/** The same for a second file in it. */
export const OTHER = '\u0002';

/** A finding on files of a stream, whose description has THIS and OTHER for them. */
export interface StreamFinding extends Finding {
  /** The evidence in whole sentences; that of the first file is reported. */
  readonly evidence?: string | undefined;
  readonly names: { readonly [THIS]: string; readonly [OTHER]?: string | undefined };
}

/** Adds a full stop where the description has none. */
export function streamFinding(
  severity: Finding['severity'],
  code: string,
  name: string,
  description: string,
  { evidence, other }: { readonly evidence?: string | undefined; readonly other?: string | undefined } = {},
): StreamFinding {
  const names = { [THIS]: name, [OTHER]: other };
  return { severity, code, description: sentenceOf({ description }), evidence, names };
}

export function ownFindings(
  name: string,
  { faults }: CheckedInput['result'],
  isLeftOut: (code: string) => boolean,
): StreamFinding[] {
  return faults
    .filter(({ code }) => !isLeftOut(code))
    .map((finding) => {
      const description = `In ${THIS}: ${finding.description}`;
      return { ...finding, description, names: { [THIS]: name } };
    });
}

const MAX_NAMED = 4;

/** The findings of a report: equal ones on several files are one. Errors come first. */
export function mergeFindings(findings: readonly StreamFinding[]): Finding[] {
  const groups = groupedBy(findings, ({ severity, code, field, description }) =>
    [severity, code, field, description].join('\n'),
  );
  const merged = [...groups.values()].map(mergeGroup);
  return [...merged.filter(isError), ...merged.filter((finding) => !isError(finding))];
}

function mergeGroup(group: readonly StreamFinding[]): Finding {
  const [first, ...others] = group as [StreamFinding, ...StreamFinding[]];
  const named = new Set(Object.values(first.names));
  const more = new Set(
    others.flatMap(({ names }) => Object.values(names)).filter((name) => name && !named.has(name)),
  );
  const also = more.size > 0 ? ` The same is true of ${listed([...more].map(String))}.` : '';
  const description = first.description
    .replaceAll(THIS, () => first.names[THIS])
    .replaceAll(OTHER, () => first.names[OTHER] ?? '');
  return {
    severity: first.severity,
    code: first.code,
    ...(first.field !== undefined && { field: first.field }),
    description: description + also + (first.evidence ? ` In ${first.names[THIS]}: ${first.evidence}` : ''),
  };
}

/** `a`, `a and b`, `a, b, c and 4 more`. */
export function listed(names: readonly string[]): string {
  const more = `${names.length - MAX_NAMED + 1} more`;
  const shown = names.length > MAX_NAMED ? [...names.slice(0, MAX_NAMED - 1), more] : names;
  const last = shown.at(-1) ?? '';
  return shown.length < 2 ? last : `${shown.slice(0, -1).join(', ')} and ${last}`;
}
