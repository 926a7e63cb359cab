/**
 * A fault of a value, a request or a file. `description` says what to do, and never quotes a value. It is a
 * whole sentence, but that of a single value (`Checked`) continues its name: `sentenceOf` completes it.
 */
export interface Problem<Code extends string = string> {
  /** Stable, in snake_case; programs read it. */
  readonly code: Code;
  readonly field?: string;
  /** Of a text: the line that it is about, from 1. */
  readonly line?: number | undefined;
  readonly description: string;
}

/** A fault of readable key material. A `warning` may be intended: published key files have it and play. */
export interface Finding extends Problem {
  readonly severity: 'error' | 'warning';
}

/** The subject of a finding: a field by its name, or another as a sentence begins with it. */
export type Subject = string | { readonly called: string };

/** A description as a whole sentence about `subject`, the name of a field, `The file` or `Line 3`. */
export function sentenceOf({ description }: Pick<Problem, 'description'>, subject?: string): string {
  const text = subject === undefined ? description : `${subject} ${description}`;
  return /[.?]$/.test(text) ? text : `${text}.`;
}

/** `description` continues the name of its subject, without a full stop. */
export function finding(
  severity: Finding['severity'],
  code: string,
  subject: Subject,
  description: string,
): Finding {
  const isField = typeof subject === 'string';
  return {
    severity,
    code,
    ...(isField && { field: subject }),
    description: sentenceOf({ description }, isField ? subject : subject.called),
  };
}

export function error(code: string, subject: Subject, description: string): Finding {
  return finding('error', code, subject, description);
}

export function warning(code: string, subject: Subject, description: string): Finding {
  return finding('warning', code, subject, description);
}

export function isError({ severity }: Finding): boolean {
  return severity === 'error';
}

export function problemsOf(findings: readonly Problem[]): Problem[] {
  return findings.map(({ code, description }) => ({ code, description }));
}
