import { isUtf8 } from 'node:buffer';
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Request } from 'express';
import typeIs from 'type-is';
import { parseJson } from '../../../drm/bytes';
import type { V1Parameters } from '../../migration/parameters';
import { flattened } from '../../migration/read-calls/found-call';
import { v1Error } from './errors';

export interface V1Call {
  readonly siteId: string;
  readonly parameters: V1Parameters;
  readonly request: Request;
}

/**
 * Reads the query and the body, which is a form or, from some clients, a JSON object that isn't signed.
 * @throws HttpError ParameterEncodingError, CallInvalid, ParameterInvalid.
 */
export function readCall(request: Pick<Request, 'originalUrl' | 'headers'> & { body?: unknown }) {
  const query = readParameters(queryOf(request.originalUrl));
  const { form, json } = readBody(request);
  // One released client sends the signed set twice, in the query and as a form; another repeats a part of it.
  const isRepeated = ({ name, value }: Parameter) =>
    query.some((sent) => sent.name === name && sent.value === value);
  const signed = [...query, ...form.filter((parameter) => !isRepeated(parameter))];
  /** All by name, without those of the protocol. Without a prototype, as the names are the caller's. */
  const parameters: Record<string, string[]> = Object.create(null);
  for (const { name, value } of [...signed, ...json]) {
    if (name.startsWith('api_')) continue;
    parameters[name] ??= [];
    parameters[name].push(value);
  }
  return { signed, parameters };
}

export function queryOf(url: string): string {
  const start = url.indexOf('?');
  return start < 0 ? '' : url.slice(start + 1).replace(/#.*$/s, '');
}

function readBody(request: Pick<Request, 'headers'> & { body?: unknown }): {
  readonly form: readonly Parameter[];
  readonly json: readonly Pick<Parameter, 'name' | 'value'>[];
} {
  const { body } = request;
  const type = request.headers['content-type'] ?? '';
  const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0);
  const text = bytes.toString('utf8').replace(/^\ufeff/, '');
  if (text.trim() === '') return { form: [], json: [] };
  if (typeIs.is(type, ['multipart/form-data'])) {
    const message = 'Send parameters in the query, or as application/x-www-form-urlencoded or JSON.';
    throw v1Error('CallInvalid', message);
  }
  if (!isUtf8(bytes)) throw v1Error('ParameterEncodingError', 'The body is not UTF-8. Send it as UTF-8.');
  // Released clients declare JSON as text/plain, or not at all, and curl as a form. No parameter starts with a brace.
  if (!/^\s*\{/.test(text)) return { form: readParameters(text.trim(), 'The form'), json: [] };
  const parsed = parseJson(text);
  if (parsed === undefined) throw v1Error('CallInvalid', 'The body is not valid JSON. Send one JSON object.');
  const refuse = (name: string) => {
    throw v1Error('ParameterInvalid', `${name} is nested too deeply.`);
  };
  return { form: [], json: flattened(parsed, refuse).map(([name, value]) => ({ name, value })) };
}

const HOUR_S = 3600;
const MAX_AGE_S = 27 * HOUR_S;
const REMEMBERED_S = 48 * HOUR_S;
/** How many signatures are remembered at most; the oldest is forgotten first. */
const MAX_REMEMBERED = 100_000;
/** How far in the future a timestamp may be: no further, so that no signature outlives the memory of it. */
const MAX_AHEAD_S = REMEMBERED_S - MAX_AGE_S;

const MAX_SHOWN = 1000;

/** Valid signatures, each with the second in which it is forgotten: no timestamp is valid for longer. Oldest first. */
export type Signatures = Map<string, number>;

/** Remembers a signature; false when it is remembered already. @param now in seconds. */
function remember(signatures: Signatures, signature: string, now: number): boolean {
  for (const [old, end] of signatures) {
    if (end >= now) break;
    signatures.delete(old);
  }
  if (signatures.has(signature)) return false;
  signatures.set(signature, now + REMEMBERED_S);
  const [oldest = ''] = signatures.keys();
  if (signatures.size > MAX_REMEMBERED) signatures.delete(oldest);
  return true;
}

interface Verifier {
  /** The secret of the site whose id is the key; undefined for a key that is none. */
  readonly secretOf: (apiKey: string) => string | undefined;
  readonly signatures: Signatures;
  /** Real time. */
  readonly now: Date;
}

/**
 * Authenticates the caller, and returns the id of the site. Only valid signatures are remembered, so a caller without
 * a secret can't fill the memory.
 * @throws HttpError for the first fault.
 */
export function authenticate(
  parameters: readonly Parameter[],
  { secretOf, signatures, now }: Verifier,
): string {
  const apiKey = only(parameters, 'api_key', 'ApiKey', "Send the site's id as api_key.");
  const written = only(parameters, 'api_timestamp', 'Timestamp', 'Send the time in seconds since 1970.');
  const nonce = only(parameters, 'api_nonce', 'Nonce', 'Send a random number of 8 digits.');
  const signature = only(parameters, 'api_signature', 'Signature', 'Send the SHA-1 of all parameters.');
  const secret = secretOf(apiKey);
  if (secret === undefined) throw v1Error('ApiKeyInvalid', 'There is no site whose id is this api_key.');
  const nowS = Math.floor(now.getTime() / 1000);
  checkTimestamp(written, nowS);
  // Released clients send 8 digits, 9, or a random number without the zeros before it.
  if (!/^\d{1,10}$/.test(nonce)) {
    throw v1Error('NonceInvalid', 'api_nonce must be a random number of 8 digits (1 to 10 are accepted).');
  }
  const signed = parameters.filter(({ name }) => name !== 'api_signature');
  if (!isSignature(signature, signed, secret)) {
    const text = stringToSign(signed);
    const shown = text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}…`;
    const message = `api_signature is not the SHA-1 of the parameters and the API secret. The string to sign, before the secret, is: ${shown}`;
    throw v1Error('SignatureInvalid', message);
  }
  if (!remember(signatures, signature.toLowerCase(), nowS)) {
    const message = 'This signature was used before. Sign each call again, with another api_nonce.';
    throw v1Error('SignatureInvalid', message);
  }
  return apiKey;
}

/** The one value of a parameter; the signed set that is sent twice has been taken once before. */
function only(
  parameters: readonly Parameter[],
  name: string,
  kind: 'ApiKey' | 'Timestamp' | 'Nonce' | 'Signature',
  advice: string,
): string {
  const values = parameters.flatMap((parameter) => (parameter.name === name ? [parameter.value] : []));
  const [value] = values;
  if (value === undefined || value === '') {
    const fault = value === undefined ? 'missing' : 'empty';
    throw v1Error(`${kind}Missing`, `${name} is ${fault}. ${advice}`);
  }
  if (values.length > 1) throw v1Error(`${kind}Invalid`, `${name} is given more than once.`);
  return value;
}

function checkTimestamp(written: string, now: number): void {
  const clock = `this machine's clock says ${now}`;
  const fail = (code: 'TimestampInvalid' | 'TimestampExpired', fault: string) => {
    throw v1Error(code, `api_timestamp ${fault}: ${clock}.`);
  };
  if (!/^\d{1,12}$/.test(written)) fail('TimestampInvalid', 'must be whole seconds since 1970, in digits');
  const timestamp = Number(written);
  if (timestamp < now - MAX_AGE_S) fail('TimestampExpired', `is older than ${MAX_AGE_S / HOUR_S} hours`);
  if (timestamp > now + MAX_AHEAD_S)
    fail('TimestampInvalid', `is more than ${MAX_AHEAD_S / HOUR_S} hours in the future`);
}

export interface Parameter {
  readonly name: string;
  readonly value: string;
  /** The name as it was in the query or the form, percent-encoded in the client's way. */
  readonly writtenName: string;
  readonly writtenValue: string;
}

/** Reads a query or form, in order. @throws HttpError ParameterEncodingError if it does not encode UTF-8. */
export function readParameters(text: string, what = 'The query'): readonly Parameter[] {
  try {
    return text.split('&').flatMap((pair) => {
      const [writtenName = '', ...rest] = pair.split('=');
      const writtenValue = rest.join('=');
      if (pair === '') return [];
      return { name: decode(writtenName), value: decode(writtenValue), writtenName, writtenValue };
    });
  } catch (thrown) {
    if (!(thrown instanceof URIError)) throw thrown;
    throw v1Error('ParameterEncodingError', `${what} is not UTF-8, percent-encoded once.`);
  }
}

function decode(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '));
}

/** Percent-encoding of OAuth Core 1.0, section 5.1: everything but letters, digits and `-._~`. */
function encode(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

type Pair = readonly [name: string, value: string];

/** The documented string to sign: encoded, sorted by encoded name, those of one name in their order. */
export function stringToSign(parameters: readonly Pick<Parameter, 'name' | 'value'>[]): string {
  return joined(sorted(parameters.map(({ name, value }) => [encode(name), encode(value)])));
}

/**
 * The strings that released clients sign in its place. For a client that sends exactly the string it signs,
 * the sent form is better than any rule on its encoding.
 */
function* otherStrings(parameters: readonly Parameter[]): Generator<string> {
  const asSent = parameters.map(({ writtenName, writtenValue }): Pair => [writtenName, writtenValue]);
  // Sorted by a locale's rules, as `custom.a` before `custom.B`.
  yield joined(asSent);
  // Names that are not encoded.
  yield joined(sorted(asSent));
  // With `!'()*` left as they are, of which some are encoded on their way.
  yield joined(
    sorted(parameters.map(({ name, value }) => [encodeURIComponent(name), encodeURIComponent(value)])),
  );
  // Names that are not encoded before signing, but on sending.
  yield joined(sorted(parameters.map(({ name, value }) => [name, encode(value)])));
  // Nothing encoded.
  const plain = sorted(parameters.map(({ name, value }): Pair => [name, value]));
  yield joined(plain);
  // The same client puts nothing between the values of a repeated name.
  const separator = (at: number) => (at === 0 || plain[at]?.[0] === plain[at - 1]?.[0] ? '' : '&');
  yield plain.map(([name, value], at) => `${separator(at)}${name}=${value}`).join('');
}

function sorted(pairs: readonly Pair[]): readonly Pair[] {
  return pairs.toSorted(([a], [b]) => (a < b ? -1 : Number(a > b)));
}

function joined(pairs: readonly Pair[]): string {
  return pairs.map(([name, value]) => `${name}=${value}`).join('&');
}

/** The signature of parameters: SHA-1 in hex over the string to sign and the secret behind it. */
export function signatureOf(
  parameters: readonly Pick<Parameter, 'name' | 'value'>[],
  secret: string,
): string {
  return sha1(stringToSign(parameters) + secret).toString('hex');
}

/** Whether a signature is that of the parameters, in the documented form or in one that released clients use. */
export function isSignature(signature: string, parameters: readonly Parameter[], secret: string): boolean {
  if (!/^[0-9a-f]{40}$/i.test(signature)) return false;
  const given = Buffer.from(signature, 'hex');
  if (timingSafeEqual(sha1(stringToSign(parameters) + secret), given)) return true;
  for (const text of otherStrings(parameters)) {
    if (timingSafeEqual(sha1(text + secret), given)) return true;
  }
  return false;
}

function sha1(text: string): Buffer {
  return createHash('sha1').update(text, 'utf8').digest();
}
