import { createHash, timingSafeEqual } from 'node:crypto';

/** A parameter of a call, as it means and as it was written. */
export interface Parameter {
  readonly name: string;
  readonly value: string;
  /** The name as it stood in the query or the form, percent-encoded in the client's way. */
  readonly writtenName: string;
  readonly writtenValue: string;
}

/**
 * Reads a query or a form (application/x-www-form-urlencoded), in its order. Undefined when a part of it is not UTF-8
 * behind its percent-encoding.
 */
export function readParameters(text: string): readonly Parameter[] | undefined {
  try {
    return text
      .split('&')
      .filter((pair) => pair !== '')
      .map((pair) => {
        const end = pair.indexOf('=');
        const [writtenName, writtenValue] =
          end < 0 ? ([pair, ''] as const) : ([pair.slice(0, end), pair.slice(end + 1)] as const);
        return { name: decode(writtenName), value: decode(writtenValue), writtenName, writtenValue };
      });
  } catch (thrown) {
    if (thrown instanceof URIError) return undefined;
    throw thrown;
  }
}

function decode(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '));
}

/** Percent-encoding of OAuth Core 1.0, section 5.1: everything but letters, digits and `-._~`. */
export function encode(text: string): string {
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
 * The strings that released clients sign in its place. Where a client sends exactly what it signs, the sent form is better than
 * any rule on its encoding.
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
  yield plain.map(([name, value], at) => `${separator(plain, at)}${name}=${value}`).join('');
}

function separator(pairs: readonly Pair[], at: number): string {
  return at === 0 || pairs[at]?.[0] === pairs[at - 1]?.[0] ? '' : '&';
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
