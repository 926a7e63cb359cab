import type { HttpError } from '../../http/errors';
import { etagOf } from '../../http/etag';
import { nearest, printable } from '../../http/faults';
import { apiError } from '../errors';

/** When a change is made, in view of the present file. */
export interface Conditions {
  /** The value of `If-Match` (RFC 9110 § 13.1.1). */
  readonly ifMatch?: string | undefined;
  /** The value of `If-None-Match` (RFC 9110 § 13.1.2). */
  readonly ifNoneMatch?: string | undefined;
  /** A file that already has these bytes is not written. */
  readonly skipUnchanged?: boolean;
  /** Nothing is written. */
  readonly dryRun?: boolean;
}

/** Reads the conditions in the headers of a request that changes something. @throws HttpError 400. */
export function conditionsIn(headers: {
  readonly 'if-match'?: string | undefined;
  readonly 'if-none-match'?: string | undefined;
}): Pick<Conditions, 'ifMatch' | 'ifNoneMatch'> {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = headers;
  refuseOtherThanTags('If-Match', ifMatch);
  refuseOtherThanTags('If-None-Match', ifNoneMatch);
  return { ifMatch, ifNoneMatch };
}

const TAGS = /^\s*(?:\*|(?:W\/)?"[\x21\x23-\x7e]*"(?:\s*,\s*(?:W\/)?"[\x21\x23-\x7e]*")*)\s*$/;

function refuseOtherThanTags(name: string, value: string | undefined): void {
  if (value === undefined || TAGS.test(value)) return;
  const description = `${name} must be * or entity tags in their quotes, as they came: ${name}: "…". Nothing was changed.`;
  throw apiError('invalid_header', description);
}

/** Checks the entity tags of a change against the present file. @throws HttpError 412. */
export function requireMatch({ ifMatch, ifNoneMatch }: Conditions, present: Buffer | undefined): void {
  if (ifMatch !== undefined && !matches(ifMatch, present)) throw failed(whyNoMatch(ifMatch, present));
  if (ifNoneMatch !== undefined && matchesWeakly(ifNoneMatch, present)) {
    throw failed('The key file is there already, and If-None-Match does not allow changing it.');
  }
}

/** Whether a write that is allowed changes nothing: a dry run, or a file that already has these bytes. */
export function isLeftAlone(
  { dryRun, skipUnchanged }: Conditions,
  present: Buffer | undefined,
  bytes: Buffer,
): boolean {
  return dryRun === true || (skipUnchanged === true && present?.equals(bytes) === true);
}

function whyNoMatch(ifMatch: string, present: Buffer | undefined): string {
  if (!present)
    return 'This stream has no key file (any more), but If-Match asks for one. Leave If-Match out to create it.';
  if (matchesWeakly(ifMatch, present))
    return 'If-Match accepts only strong entity tags: send the ETag as it came, without W/.';
  return 'The key file has changed since: it is not the one that If-Match names. GET it, look, and send its new ETag.';
}

/** Whether `If-None-Match` names what has an entity tag, by the weak comparison that reads have. */
export function isNamed(header: string, etag: string): boolean {
  return names(header.replaceAll('W/', ''), etag);
}

function matchesWeakly(header: string, present: Buffer | undefined): boolean {
  return present !== undefined && isNamed(header, etagOf(present));
}

function matches(header: string, present: Buffer | undefined): boolean {
  return present !== undefined && names(header, etagOf(present));
}

function names(header: string, etag: string): boolean {
  const tags = header.split(',').map((tag) => tag.trim());
  return header.trim() === '*' || tags.includes(etag);
}

function failed(description: string): HttpError {
  return apiError('precondition_failed', description);
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

/** Describes the first parameter that a request does not know. */
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
