import { createHash } from 'node:crypto';

/** Name and value; a name may be there several times. */
export type V1Pairs = readonly (readonly [name: string, value: string])[];

const UNRESERVED = new Set(Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~'));

/** RFC 3986 byte by byte, with nothing of what the emulator uses. */
export function percentEncode(text: string): string {
  return [...Buffer.from(text, 'utf8')]
    .map((byte) =>
      UNRESERVED.has(byte)
        ? String.fromCharCode(byte)
        : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`,
    )
    .join('');
}

/** The documented signature: SHA-1 over the encoded, sorted parameters and the secret. */
export function v1Signature(pairs: V1Pairs, secret: string): string {
  const encoded = pairs.map(([name, value]) => [percentEncode(name), percentEncode(value)] as const);
  const sorted = encoded.sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return sha1(sorted.map((pair) => pair.join('=')).join('&') + secret);
}

export function sha1(text: string): string {
  return createHash('sha1').update(text).digest('hex');
}

/** Pairs as a query or a form. */
export function queryOf(pairs: V1Pairs): string {
  return pairs.map(([name, value]) => `${percentEncode(name)}=${percentEncode(value)}`).join('&');
}

let lastNonce = 10_000_000;

/** 2030-01-01, the time of a test's emulator. */
export const START = 1_893_456_000;

export interface V1Credentials {
  readonly api_key?: string;
  readonly secret?: string;
  readonly api_timestamp?: string;
  readonly api_nonce?: string;
}

/** The parameters of a call with those of the protocol and the signature; a nonce is used once. */
export function signedPairs(
  parameters: V1Pairs | Readonly<Record<string, string>> = [],
  { secret = 'demo-api-secret-0123456789', ...given }: V1Credentials = {},
): V1Pairs {
  lastNonce += 1;
  const own = isPairs(parameters) ? parameters : Object.entries(parameters);
  const protocol = {
    api_key: 'demosite',
    api_timestamp: String(START),
    api_nonce: String(lastNonce),
    ...given,
  };
  const pairs: V1Pairs = [...own, ...Object.entries(protocol)];
  return [...pairs, ['api_signature', v1Signature(pairs, secret)]];
}

function isPairs(parameters: V1Pairs | Readonly<Record<string, string>>): parameters is V1Pairs {
  return Array.isArray(parameters);
}

/** The path of a signed GET. */
export function signedPath(
  path: string,
  parameters?: V1Pairs | Readonly<Record<string, string>>,
  credentials?: V1Credentials,
): string {
  return `${path}?${queryOf(signedPairs(parameters, credentials))}`;
}
