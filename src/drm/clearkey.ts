import { type Checked, refused } from './bytes';

/** A key of a ClearKey license; both are 16 bytes, the key id big endian. */
export interface ClearKey {
  readonly keyId: Uint8Array;
  readonly key: Uint8Array;
}

/** The license of W3C Encrypted Media Extensions § 9.1.4: a JSON Web Key Set, base64url without padding. */
export function clearKeyLicense(keys: readonly ClearKey[]): {
  keys: { kty: 'oct'; k: string; kid: string }[];
  type: 'temporary';
} {
  return {
    keys: keys.map(({ keyId, key }) => ({ kty: 'oct', k: base64url(key), kid: base64url(keyId) })),
    type: 'temporary',
  };
}

/** Reads a key id of a ClearKey license request: base64url without padding, 16 bytes. */
export function parseClearKeyId(text: string): Checked<Buffer> {
  const value = Buffer.from(text, 'base64url');
  if (text === '' || base64url(value) !== text)
    return refused('not_base64url', 'is not base64url without padding');
  if (value.length === 16) return { ok: true, value };
  return refused('wrong_length', `decodes to ${value.length} bytes; a key id has 16`);
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64url');
}
