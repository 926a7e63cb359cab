import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto';
import type { ProviderContent } from '../../api/read-key-file-request';

/** The addresses of the upstreams that answered: what one platform said is nothing to another. */
export interface CacheScope {
  readonly configServiceUrl: string;
  readonly keyProviderUrl: string;
}

/** What an entry was made of. */
export interface OpenedEntry {
  readonly time: Date;
  readonly text: string;
}

const MAGIC = Buffer.from('PDRMAPI1', 'latin1');
const SALT_BYTES = 16;
const TAG_BYTES = 16;
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TIME_AT = MAGIC.length;
const SALT_AT = TIME_AT + 8;
const TAG_AT = SALT_AT + SALT_BYTES;
const TEXT_AT = TAG_AT + TAG_BYTES;

/**
 * The file name of a content's entry: an HMAC-SHA-256 under a key derived from the client's API key, in hex. Who has the
 * folder alone can't tell which client or content it is of, and another API key leads to another name.
 */
export function entryName(scope: CacheScope, { client, clientApiKey, contentId }: ProviderContent): string {
  const key = derive(clientApiKey, Buffer.alloc(0), 'packager-drm-api provider cache: name', KEY_BYTES);
  const named = JSON.stringify([scope.configServiceUrl, scope.keyProviderUrl, client, contentId]);
  return `${createHmac('sha256', key).update(named).digest('hex')}${EXTENSION}`;
}

const EXTENSION = '.sealed';

/** Whether a file name is that of an entry. */
export function isEntryName(name: string): boolean {
  return /^[0-9a-f]{64}\.sealed$/.test(name);
}

/**
 * Seals a text with AES-256-GCM under a key that HKDF-SHA-256 (RFC 5869) derives from the client's API key. `saltId` is a
 * UUID that was never used before: key and nonce are used once.
 */
export function sealEntry(
  name: string,
  { clientApiKey }: ProviderContent,
  saltId: string,
  { time, text }: OpenedEntry,
): Buffer {
  const head = Buffer.alloc(TAG_AT);
  MAGIC.copy(head);
  head.writeBigUInt64BE(BigInt(time.getTime()), TIME_AT);
  Buffer.from(saltId.replaceAll('-', ''), 'hex').copy(head, SALT_AT);
  const { key, nonce } = keyOf(clientApiKey, head);
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.concat([head, Buffer.from(name, 'latin1')]));
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([head, cipher.getAuthTag(), sealed]);
}

/** Opens an entry; undefined when it was changed, cut off, renamed, or is none. */
export function openEntry(
  name: string,
  { clientApiKey }: ProviderContent,
  bytes: Buffer,
): OpenedEntry | undefined {
  const time = entryTime(bytes);
  if (!time) return undefined;
  const head = bytes.subarray(0, TAG_AT);
  const { key, nonce } = keyOf(clientApiKey, head);
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.concat([head, Buffer.from(name, 'latin1')]));
  decipher.setAuthTag(bytes.subarray(TAG_AT, TEXT_AT));
  try {
    const text = Buffer.concat([decipher.update(bytes.subarray(TEXT_AT)), decipher.final()]).toString('utf8');
    return { time, text };
  } catch {
    return undefined;
  }
}

/** When an entry says that it was made; undefined when it is none. Only `openEntry` tells whether that is true. */
export function entryTime(bytes: Buffer): Date | undefined {
  if (bytes.length < TEXT_AT || !bytes.subarray(0, TIME_AT).equals(MAGIC)) return undefined;
  return new Date(Number(bytes.readBigUInt64BE(TIME_AT)));
}

function keyOf(clientApiKey: string, head: Buffer): { key: Buffer; nonce: Buffer } {
  const salt = head.subarray(SALT_AT, TAG_AT);
  const info = 'packager-drm-api provider cache: entry';
  const derived = derive(clientApiKey, salt, info, KEY_BYTES + NONCE_BYTES);
  return { key: derived.subarray(0, KEY_BYTES), nonce: derived.subarray(KEY_BYTES) };
}

function derive(secret: string, salt: Buffer, info: string, bytes: number): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, salt, info, bytes));
}
