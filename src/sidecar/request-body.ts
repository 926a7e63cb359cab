import { MAX_BODY_BYTES } from '../api/key-file-request';
import { MAX_CPIX_BYTES } from '../drm/cpix/read';
import { createReadJson } from '../http/body';
import type { HttpError } from '../http/errors';
import { apiError } from './errors';

/** In JSON, a line feed or a quote of a document takes two bytes. */
const MAX_JSON_BYTES = MAX_BODY_BYTES + 2 * MAX_CPIX_BYTES;

/** The media types of bodies that are CPIX documents; the last two are the same (RFC 7303 § 9.2). */
export const CPIX_TYPES = ['application/cpix+xml', 'application/xml', 'text/xml'];

/**
 * Makes what reads a body of the key-file API as JSON. It may have `MAX_BODY_BYTES`, to which the text of a CPIX document
 * in it does not count.
 * @throws HttpError 400, 413, 415.
 */
export function createReadRequest(): ReturnType<typeof createReadJson> {
  return createReadJson(MAX_BODY_BYTES, {
    limit: MAX_JSON_BYTES,
    verify: refuseLargeParts,
    tooLarge: () => tooLarge(`${inKib(MAX_BODY_BYTES)}, or ${inKib(MAX_JSON_BYTES)} with a CPIX document`),
  });
}

export function inKib(bytes: number): string {
  return `${bytes / 1024} KiB`;
}

/** The refusal of a body; `limits` are what the route accepts. */
export function tooLarge(limits: string): HttpError {
  return apiError('body_too_large', `The body is larger than this route accepts: ${limits}.`);
}

/** @throws HttpError 413. */
function refuseLargeParts(body: Buffer): void {
  const document = measureDocument(body);
  if (body.length - document.bytes > MAX_BODY_BYTES) throw tooLarge(inKib(MAX_BODY_BYTES));
  if (document.characters > MAX_CPIX_BYTES) throw tooLarge(`${inKib(MAX_CPIX_BYTES)} for a CPIX document`);
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSING_BRACKET = 0x5d;
const SMALL_U = 0x75;
const BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;

const NAME = '"cpix"';

/**
 * How long the text of a document is in a JSON object: the bytes that it takes there, and those of its characters. It is
 * told without parsing, which takes long for what is no document: half a megabyte of `{},{},{},`. Where there are several
 * the last one counts, as when it is parsed.
 */
function measureDocument(body: Buffer): { readonly bytes: number; readonly characters: number } {
  let found = { bytes: 0, characters: 0 };
  let depth = 0;
  /** The last byte of the object's own structure. */
  let last = 0;
  let isDocument = false;
  for (let at = 0; at < body.length; at += 1) {
    const byte = body[at] ?? 0;
    if (byte === QUOTE) {
      const end = endOfText(body, at);
      if (depth === 1 && last === COLON && isDocument) {
        found = { bytes: end.at - at - 1, characters: end.characters };
      } else if (depth === 1 && last !== COLON) {
        isDocument = body.toString('latin1', at, Math.min(end.at + 1, at + 10)) === NAME;
      }
      at = end.at;
    } else if (byte === BRACE || byte === BRACKET) {
      depth += 1;
      if (depth === 1) last = byte;
    } else if (byte === CLOSING_BRACE || byte === CLOSING_BRACKET) depth -= 1;
    else if (depth === 1 && (byte === COLON || byte === COMMA)) last = byte;
  }
  return found;
}

/** Where the quote is that ends a text, and how many bytes its characters have, those of an escape as one. */
function endOfText(body: Buffer, start: number): { readonly at: number; readonly characters: number } {
  let escaped = 0;
  for (let at = start + 1; at < body.length; at += 1) {
    const byte = body[at];
    if (byte === QUOTE) return { at, characters: at - start - 1 - escaped };
    if (byte !== BACKSLASH) continue;
    at += 1;
    escaped += body[at] === SMALL_U ? 5 : 1;
  }
  return { at: body.length, characters: body.length - start - 1 - escaped };
}
