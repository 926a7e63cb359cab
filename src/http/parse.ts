import type { z } from 'zod';
import { nearest, type Problem, printable } from './faults';

/** Nobody mends more than this at once, and a body of nonsense must not make a far larger answer. */
const MAX_PROBLEMS = 50;

type Parsed<T> = { ok: true; value: T } | { ok: false; problems: Problem[] };

/**
 * Parses a request body and reports every problem at once, each with the path of its field.
 * A description never quotes a value: a body may hold secrets. An unknown field is named with the nearest known one.
 */
export function parseBody<Output>(
  schema: z.ZodType<Output>,
  body: unknown,
  knownFields: readonly string[],
): Parsed<Output> {
  const result = schema.safeParse(body);
  if (result.success) return { ok: true, value: result.data };
  const problems = result.error.issues.flatMap((issue) => problemsOf(issue, knownFields, body));
  return { ok: false, problems: problems.slice(0, MAX_PROBLEMS) };
}

function problemsOf(issue: z.core.$ZodIssue, knownFields: readonly string[], body: unknown): Problem[] {
  if (issue.code === 'unrecognized_keys') {
    const here = issue.path.length === 0 ? '' : `${issue.path.join('.')}.`;
    const siblings = knownFields
      .filter((name) => name.startsWith(here) && !name.slice(here.length).includes('.'))
      .map((name) => name.slice(here.length));
    return issue.keys.slice(0, MAX_PROBLEMS).map((key) => ({
      code: 'unknown_field',
      description: unknownField(here, key, siblings, knownFields),
    }));
  }
  const field = issue.path.join('.');
  const message = isMissing(body, issue.path) ? 'is missing' : issue.message;
  return [{ code: 'invalid_body', description: field ? `${field}: ${message}` : message }];
}

/** Whether a body leaves the field at a path out: saying of which type it must be would only puzzle. */
function isMissing(body: unknown, path: readonly PropertyKey[]): boolean {
  let value = body;
  for (const name of path) {
    if (typeof value !== 'object' || value === null) return false;
    value = Reflect.get(value, name);
  }
  return path.length > 0 && value === undefined;
}

function unknownField(
  here: string,
  key: string,
  siblings: readonly string[],
  all: readonly string[],
): string {
  const name = printable(`${here}${key}`);
  const near = nearest(key, siblings);
  if (near) return `${name} is not a field of this request. Did you mean ${here}${near}?`;
  const elsewhere = all.find((known) => known.split('.').at(-1) === key);
  if (elsewhere) return `${name} is not a field of this request. Did you mean ${elsewhere}?`;
  const place = here ? here.slice(0, -1) : 'the body';
  return `${name} is not a field of this request. Fields of ${place}: ${siblings.join(', ')}.`;
}

export { printable } from './faults';
