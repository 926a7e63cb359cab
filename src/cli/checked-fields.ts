import type { z } from 'zod';
import { nearest } from '../http/nearest';
import type { FileFault, ReadText } from './yaml-text';

/** A fault, and the path of the value that has it. */
export interface PlacedFault extends FileFault {
  readonly path: readonly PropertyKey[];
}

/**
 * Checks what a file says against a schema: the value, or every fault with its line. No fault quotes a value.
 * @param fieldsAt the names that are known at a path, for the nearest one of a misspelt name.
 */
export function checkFields<Output>(
  schema: z.ZodType<Output>,
  { value, lineOf }: Pick<ReadText, 'value' | 'lineOf'>,
  fieldsAt: (path: readonly PropertyKey[]) => readonly string[],
): { readonly value: Output } | { readonly faults: PlacedFault[] } {
  const result = schema.safeParse(value);
  if (result.success) return { value: result.data };
  const faults = result.error.issues.flatMap((issue): PlacedFault[] => {
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((name) => ({
        path: issue.path,
        line: lineOf([...issue.path, name], 'name'),
        description: unknownField(issue.path, name, fieldsAt(issue.path)),
      }));
    }
    const name = fieldName(issue.path);
    const message = isMissing(value, issue.path) ? 'is missing' : issue.message;
    const description = name ? `${name} ${message}` : `the file ${message}`;
    return [{ path: issue.path, line: lineOf(issue.path), description }];
  });
  return { faults };
}

function unknownField(path: readonly PropertyKey[], name: string, known: readonly string[]): string {
  const here = fieldName(path);
  const place = here ? ` of ${here}` : '';
  const shown = shownName(name, known);
  if (shown !== undefined) return `${shown.name} is not a field${place}; did you mean ${shown.near}?`;
  const colon = name.includes(':') ? ' (is a blank missing after a colon?)' : '';
  return `a name here is not a field${place}${colon}; the fields are ${known.join(', ')}`;
}

/** As long as a field's name is, and shorter than 16 bytes are in base64. */
const LONGEST_NAME = 20;

/**
 * A stranger's name and the known one that it most likely means. A name that is like none isn't shown: it may be key
 * material that slipped to where a name belongs.
 */
export function shownName(
  name: string,
  known: readonly string[],
): { readonly name: string; readonly near: string } | undefined {
  if (!/^[\w.-]+$/.test(name) || name.split('.').some((part) => part.length > LONGEST_NAME)) return undefined;
  const near = nearest(name, known);
  return near === undefined ? undefined : { name, near };
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
