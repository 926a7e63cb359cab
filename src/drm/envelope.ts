import { createCipheriv, createDecipheriv, createHash, timingSafeEqual } from 'node:crypto';
import { type Checked, refused } from './bytes';
import type { Problem } from './finding';

/**
 * The key provider's encrypted answer: `<blob>|<hash>`. The blob is base64 of AES-128-ECB (PKCS#7) under the first
 * 16 characters of the client's shared secret; the hash is lower-case hex SHA-1 over shared secret + client + blob.
 * The form is the provider's, weak as it is; it is trusted no further than its hash.
 */
interface EnvelopeSecret {
  readonly client: string;
  readonly sharedSecret: string;
}

/** Encrypts a text into an envelope. @throws RangeError when the shared secret has fewer than 16 bytes to make a key of. */
export function sealEnvelope(text: string, secret: EnvelopeSecret): string {
  const key = encryptionKey(secret);
  if (!key) throw new RangeError('The shared secret is shorter than 16 bytes');
  const cipher = createCipheriv('aes-128-ecb', key, null);
  const blob = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]).toString('base64');
  return `${blob}|${hashOf(blob, secret)}`;
}

/** Checks an envelope's hash, and only when it holds, decrypts it. A fault continues the name of its sender. */
export function openEnvelope(envelope: string, secret: EnvelopeSecret): Checked<string> {
  const key = encryptionKey(secret);
  const short = 'returned an envelope, but the shared secret of this client is too short to open it';
  if (!key) return refused('secret_too_short', short);
  const [, blob, hash] = /^([A-Za-z0-9+/]+={0,2})\|([0-9a-fA-F]{40})$/.exec(envelope) ?? [];
  if (blob === undefined || hash === undefined)
    return refused('malformed', 'returned an envelope without the form base64|hash');
  const expected = Buffer.from(hashOf(blob, secret));
  if (!timingSafeEqual(expected, Buffer.from(hash.toLowerCase())))
    return refused(
      'hash_mismatch',
      'returned an envelope whose hash is wrong: it was changed, or encrypted with another shared secret',
    );
  try {
    const decipher = createDecipheriv('aes-128-ecb', key, null);
    const bytes = Buffer.concat([decipher.update(blob, 'base64'), decipher.final()]);
    return { ok: true, value: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes) };
  } catch {
    return refused('undecryptable', 'returned an envelope that does not decrypt');
  }
}

function encryptionKey({ sharedSecret }: EnvelopeSecret): Buffer | undefined {
  const key = Buffer.from(sharedSecret.slice(0, 16), 'utf8').subarray(0, 16);
  return key.length === 16 ? key : undefined;
}

function hashOf(blob: string, { client, sharedSecret }: EnvelopeSecret): string {
  return createHash('sha1').update(`${sharedSecret}${client}${blob}`, 'utf8').digest('hex');
}

export interface TextRule {
  readonly pattern: RegExp;
  readonly problem: Problem;
}

/** The id of a client or a content at the configuration service and the key provider. It becomes a part of a path. */
export const PROVIDER_ID: TextRule = {
  pattern: /^(?!\.{1,2}$)[A-Za-z0-9_.-]{1,200}$/,
  problem: {
    code: 'wrong_value',
    description: 'must be 1 to 200 letters, digits and _ - . (and not a dot or two alone)',
  },
};

/** A client's key at both. It travels in a header. */
export const CLIENT_API_KEY: TextRule = {
  pattern: /^[\x21-\x7e]{1,1000}$/,
  problem: {
    code: 'wrong_value',
    description: 'must be 1 to 1000 characters of printable ASCII without spaces',
  },
};
