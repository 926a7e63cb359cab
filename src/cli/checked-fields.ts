import type { z } from 'zod';
import { nearest } from '../kernel/nearest';
import { printable } from '../kernel/parse';
import type { FileFault, ReadText } from './yaml-text';

/**
 * Checks what a file says against a schema: the value, or every fault with its line. No fault quotes a value.
 * @param fieldsAt the names that are known at a path, for the nearest one of a misspelt name.
 */
export function checkFields<Output>(
  schema: z.ZodType<Output>,
  { value, lineOf }: Pick<ReadText, 'value' | 'lineOf'>,
  fieldsAt: (path: readonly PropertyKey[]) => readonly string[],
): { readonly value: Output } | { readonly faults: FileFault[] } {
  const result = schema.safeParse(value);
  if (result.success) return { value: result.data };
  const faults = result.error.issues.flatMap((issue): FileFault[] => {
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((name) => ({
        line: lineOf([...issue.path, name], 'name'),
        description: unknownField(issue.path, name, fieldsAt(issue.path)),
      }));
    }
    const name = fieldName(issue.path);
    const message = isMissing(value, issue.path) ? 'is missing' : issue.message;
    return [{ line: lineOf(issue.path), description: name ? `${name} ${message}` : `the file ${message}` }];
  });
  return { faults };
}

function unknownField(path: readonly PropertyKey[], name: string, known: readonly string[]): string {
  const near = nearest(name, known);
  const here = fieldName(path);
  const place = here ? ` of ${here}` : '';
  const hint = near ? `; did you mean ${near}?` : `; the fields are ${known.join(', ')}`;
  return `${printable(name)} is not a field${place}${hint}`;
}

/** The field as a person names it: the place in a list is said by the line. */
function fieldName(path: readonly PropertyKey[]): string {
  return path.filter((part) => typeof part === 'string').join('.');
}

function isMissing(value: unknown, path: readonly PropertyKey[]): boolean {
  let found = value;
  for (const name of path) {
    if (typeof found !== 'object' || found === null) return false;
    found = Reflect.get(found, name);
  }
  return path.length > 0 && found === undefined;
}
