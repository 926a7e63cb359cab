import type { HttpError } from '../../http/errors';
import { etagOf } from '../../http/etag';
import { apiError } from '../errors';

/** What a change asks of the present file, undefined when there is none. @throws HttpError 412 when it isn't so. */
export type Precondition = (present: Buffer | undefined) => void;

/** Reads `If-Match` and `If-None-Match` of a request that changes something (RFC 9110 § 13.1). @throws HttpError 400. */
export function preconditionOf(headers: {
  readonly 'if-match'?: string | undefined;
  readonly 'if-none-match'?: string | undefined;
}): Precondition | undefined {
  const match = headers['if-match'];
  const noneMatch = headers['if-none-match'];
  if (match === undefined && noneMatch === undefined) return undefined;
  if (match !== undefined) refuseOtherThanTags('If-Match', match);
  if (noneMatch !== undefined) refuseOtherThanTags('If-None-Match', noneMatch);
  return (present) => {
    if (match !== undefined && !matches(match, present)) throw failed(whyNoMatch(match, present));
    if (noneMatch !== undefined && matchesWeakly(noneMatch, present)) {
      throw failed('The key file is there already, and If-None-Match does not allow changing it.');
    }
  };
}

function whyNoMatch(match: string, present: Buffer | undefined): string {
  if (!present)
    return 'This stream has no key file (any more), but If-Match asks for one. Leave If-Match out to create it.';
  if (matchesWeakly(match, present))
    return 'If-Match accepts only strong entity tags: send the ETag as it came, without W/.';
  return 'The key file has changed since: it is not the one that If-Match names. GET it, look, and send its new ETag.';
}

const TAGS = /^\s*(?:\*|(?:W\/)?"[\x21\x23-\x7e]*"(?:\s*,\s*(?:W\/)?"[\x21\x23-\x7e]*")*)\s*$/;

function refuseOtherThanTags(name: string, value: string): void {
  if (TAGS.test(value)) return;
  const description = `${name} must be * or entity tags in their quotes, as they came: ${name}: "…". Nothing was changed.`;
  throw apiError('invalid_header', description);
}

/** Whether a GET's `If-None-Match` names the file: its answer is then 304. Weak comparison, as for every read. */
export function isUnchanged(ifNoneMatch: string | undefined, etag: string): boolean {
  return ifNoneMatch !== undefined && names(withoutWeak(ifNoneMatch), etag);
}

function matchesWeakly(header: string, present: Buffer | undefined): boolean {
  return matches(withoutWeak(header), present);
}

function matches(header: string, present: Buffer | undefined): boolean {
  return present !== undefined && names(header, etagOf(present));
}

function withoutWeak(header: string): string {
  return header.replaceAll('W/', '');
}

function names(header: string, etag: string): boolean {
  if (header.trim() === '*') return true;
  return header
    .split(',')
    .map((tag) => tag.trim())
    .includes(etag);
}

function failed(description: string): HttpError {
  return apiError('precondition_failed', description);
}
