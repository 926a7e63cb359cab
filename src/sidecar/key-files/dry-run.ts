import type { LineChange } from '../../api/answers';
import { isSecretLine, type KeyFileLine, MASK, parseKeyFile } from '../../drm/key-file';
import { nearest, printable } from '../../http/faults';
import { apiError } from '../errors';

/** Compares the file that would be written with the present one, line by line. Secret values are masked. */
export function lineChanges(next: string, present: Buffer | undefined): LineChange[] {
  const before = new Map(linesOf(present?.toString('utf8') ?? '').map(({ name, value }) => [name, value]));
  const after = linesOf(next);
  const kept = after.map(({ name, value }): LineChange => {
    const former = before.get(name);
    before.delete(name);
    if (former === undefined) return { name, value: shown(name, value), change: 'added' };
    if (former === value) return { name, value: shown(name, value), change: 'same' };
    return { name, value: shown(name, value), change: 'changed', former: shown(name, former) };
  });
  const removed = [...before].map(
    ([name, value]): LineChange => ({ name, value: shown(name, value), change: 'removed' }),
  );
  return [...kept, ...removed];
}

/** The same as text: `+` for what comes, `-` for what goes, two spaces before what stays. */
export function renderLineChanges(changes: readonly LineChange[]): string {
  const line = (mark: string, name: string, value: string) => `${mark} ${name}: ${value}\n`;
  return changes
    .map(({ name, value, change, former }) => {
      if (change === 'same') return line(' ', name, value);
      if (change === 'removed') return line('-', name, value);
      return (former === undefined ? '' : line('-', name, former)) + line('+', name, value);
    })
    .join('');
}

/**
 * Reads `?dryrun=` of a request that writes. A value that is neither true nor false is refused, and so is every
 * parameter but the others that the request knows: it might be a misspelt dry run, which would write.
 */
export function isDryRun(query: Readonly<Record<string, unknown>>, ...others: readonly string[]): boolean {
  refuseQuery(query, 'dryrun', ...others);
  return isSwitchedOn(query, 'dryrun');
}

/** Reads `?keepunknown=` of a request that imports a key file: whether lines with unknown names are kept. */
export function isKeepUnknown(query: Readonly<Record<string, unknown>>): boolean {
  return isSwitchedOn(query, 'keepunknown');
}

function isSwitchedOn(query: Readonly<Record<string, unknown>>, name: string): boolean {
  const value = query[name];
  if (value === undefined || value === 'false') return false;
  if (value === 'true') return true;
  throw apiError('invalid_query', `${name} must be true or false. Nothing was written.`);
}

/** Refuses parameters that a request which changes something does not know. */
export function refuseQuery(query: Readonly<Record<string, unknown>>, ...known: readonly string[]): void {
  const unknown = unknownParameter(query, known);
  if (unknown !== undefined) throw apiError('invalid_query', `${unknown} Nothing was changed.`);
}

/** What is to be said of the first parameter that a request does not know. */
export function unknownParameter(
  query: Readonly<Record<string, unknown>>,
  known: readonly string[],
): string | undefined {
  const unknown = Object.keys(query).find((name) => !known.includes(name));
  if (unknown === undefined) return undefined;
  const near = nearest(unknown, known);
  const hint = near === undefined ? '' : ` Did you mean ${near}?`;
  return `${printable(unknown)} is not a parameter of this request.${hint}`;
}

function linesOf(text: string): readonly KeyFileLine[] {
  return parseKeyFile(text).lines;
}

function shown(name: string, value: string): string {
  return isSecretLine(name) ? MASK : value;
}
