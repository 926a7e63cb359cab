import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto';
import * as z from 'zod';
import type { StreamId } from '../../../api/stream-id';
import { parseJson } from '../../../drm/bytes';
import type { ChangedBy } from '../../storage/key-file-store';

export interface Entry {
  readonly streamId: StreamId;
  /** Unguessable, so that a change whose answer was lost is recognised. */
  readonly id: string;
  /**
   * Milliseconds since 1970, or more: higher than every version that the change's sidecar had seen. A version
   * that replaces an entry which could not be opened is a day ahead: that entry's clock may have been ahead.
   */
  readonly version: number;
  /** undefined: the key file was deleted. */
  readonly bytes: Buffer | undefined;
  /** Milliseconds since 1970, by the clock of the sidecar that made the change. */
  readonly at: number;
  readonly by: ChangedBy;
  /** The packager whose sidecar took the request. */
  readonly from: string;
  /** A client waits for all packagers to have it: they report at once. */
  readonly awaited: boolean;
  /** Comes from an import: unlike a client's file, it replaces none made by hand. */
  readonly isFound: boolean;
}

export type Versions = ReturnType<typeof createVersions>;

export function createVersions(clock: () => Date) {
  let highest = 0;
  return {
    get highest() {
      return highest;
    },
    see(version: number) {
      highest = Math.max(highest, version);
    },
    /** Higher than all that were seen, and at least `aheadMs` ahead of the clock. */
    next(aheadMs = 0) {
      highest = Math.max(highest + 1, clock().getTime() + aheadMs);
      return highest;
    },
  };
}

/**
 * The first byte of a sealed text; then come the id of the secret (4 bytes), nonce (12), ciphertext and tag (16).
 * Sidecars of several releases read the same engine, so another format gets another byte.
 */
const FORMAT = 1;
const ID_BYTES = 4;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const NONCE_AT = 1 + ID_BYTES;
const TEXT_AT = NONCE_AT + NONCE_BYTES;
const LEAST_BYTES = TEXT_AT + TAG_BYTES;

const CIPHER = 'aes-256-gcm';
/** Changes with the format alone: all sidecars of a fleet derive the same keys from a secret. */
const SALT = 'packager-drm-api fleet 1';

/** The kind is part of the additional data, so that one can't replace the other. */
const ENTRY = 1;
const TEXT = 2;
type Kind = typeof ENTRY | typeof TEXT;

interface Key {
  /** Big-endian. Reveals nothing of the secret: HKDF derives it as it does the key, for another purpose. */
  readonly id: number;
  readonly key: KeyObject;
}

export type Seal = ReturnType<typeof createSeal>;

/**
 * AES-256-GCM (NIST SP 800-38D) under keys from HKDF-SHA256 (RFC 5869): the first secret seals, all open. The
 * engine's key is additional data: a text moved to another key can't be opened. Nonces are random, so a
 * secret is good for 2^32 changes. @throws RangeError without a secret.
 */
export function createSeal(secrets: readonly string[], random: (bytes: number) => Buffer) {
  const keys = secrets.map(keyOf);
  const [current] = keys;
  if (!current) throw new RangeError('A seal needs a secret');
  const idOf = (value: Buffer) =>
    value.length >= LEAST_BYTES && value[0] === FORMAT ? value.readUInt32BE(1) : undefined;

  const close = (kind: Kind, key: string, plain: readonly Buffer[]): Buffer => {
    const head = Buffer.allocUnsafe(NONCE_AT);
    head[0] = FORMAT;
    head.writeUInt32BE(current.id, 1);
    const nonce = random(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, current.key, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(additionalData(kind, key));
    const sealed = plain.map((bytes) => cipher.update(bytes));
    cipher.final();
    return Buffer.concat([head, nonce, ...sealed, cipher.getAuthTag()]);
  };

  const open = (kind: Kind, key: string, value: Buffer): Buffer | undefined => {
    const id = idOf(value);
    for (const { key: cipherKey } of keys.filter((each) => each.id === id)) {
      const plain = decipher(cipherKey, additionalData(kind, key), value);
      if (plain) return plain;
    }
    return undefined;
  };

  return {
    seal: (key: string, entry: Entry) => close(ENTRY, key, plainOf(entry)),
    /** `streamId` is from the key. Undefined: another secret or another key sealed it, or it is damaged. */
    open(key: string, value: Buffer, streamId: StreamId): Entry | undefined {
      const plain = open(ENTRY, key, value);
      return plain && entryOf(plain, streamId);
    },
    /** For a small text that is no entry: the description of the fleet. */
    sealText: (key: string, text: string) => close(TEXT, key, [Buffer.from(text)]),
    openText: (key: string, value: Buffer) => open(TEXT, key, value)?.toString(),
    isCurrent: (value: Buffer) => idOf(value) === current.id,
    /** The id of the secret that sealed it, 8 hexadecimal digits, if that is missing here. */
    missingSecret(value: Buffer): string | undefined {
      const id = idOf(value);
      if (id === undefined || keys.some((each) => each.id === id)) return undefined;
      return id.toString(16).padStart(8, '0');
    },
  };
}

function keyOf(secret: string): Key {
  const derive = (purpose: string, bytes: number) =>
    Buffer.from(hkdfSync('sha256', secret, SALT, purpose, bytes));
  return { id: derive('key id', ID_BYTES).readUInt32BE(), key: createSecretKey(derive('aes-256-gcm', 32)) };
}

function additionalData(kind: Kind, key: string): Buffer {
  const bytes = Buffer.allocUnsafe(2 + Buffer.byteLength(key));
  bytes[0] = FORMAT;
  bytes[1] = kind;
  bytes.write(key, 2);
  return bytes;
}

function decipher(key: KeyObject, additional: Buffer, value: Buffer): Buffer | undefined {
  const nonce = value.subarray(NONCE_AT, TEXT_AT);
  const opening = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  opening.setAAD(additional);
  opening.setAuthTag(value.subarray(-TAG_BYTES));
  const plain = opening.update(value.subarray(TEXT_AT, -TAG_BYTES));
  try {
    opening.final();
    return plain;
  } catch {
    return undefined;
  }
}

const whole = z.int().min(0);
const flag = z.union([z.literal(0), z.literal(1)]).transform((value) => value === 1);

/**
 * The change's id, version and time, API key, address, request id, packager, flags (1: awaited, 2: found, added up),
 * and whether there is a file. Additions of later releases at the end are ignored.
 */
const header = z.tuple(
  [z.string().min(1), whole, whole, z.string(), z.string(), z.string(), z.string(), whole.max(3), flag],
  z.unknown(),
);

const AWAITED = 1;
const FOUND = 2;
const LENGTH_BYTES = 2;

/** The length of the header (big-endian), the header as JSON, the file. */
function plainOf({ id, version, at, by, from, awaited, isFound, bytes }: Entry): readonly Buffer[] {
  const fields: z.input<typeof header> = [
    id,
    version,
    at,
    by.key,
    by.address,
    by.requestId,
    from,
    (awaited ? AWAITED : 0) + (isFound ? FOUND : 0),
    bytes ? 1 : 0,
  ];
  const json = JSON.stringify(fields);
  const start = Buffer.allocUnsafe(LENGTH_BYTES + Buffer.byteLength(json));
  start.writeUInt16BE(start.length - LENGTH_BYTES);
  start.write(json, LENGTH_BYTES);
  return bytes ? [start, bytes] : [start];
}

function entryOf(plain: Buffer, streamId: StreamId): Entry | undefined {
  if (plain.length < LENGTH_BYTES) return undefined;
  const bytesAt = LENGTH_BYTES + plain.readUInt16BE();
  if (bytesAt > plain.length) return undefined;
  const read = header.safeParse(parseJson(plain.toString('utf8', LENGTH_BYTES, bytesAt)));
  if (!read.success) return undefined;
  const [id, version, at, key, address, requestId, from, how, hasFile] = read.data;
  if (!hasFile && bytesAt < plain.length) return undefined;
  const bytes = hasFile ? plain.subarray(bytesAt) : undefined;
  const by = { key, address, requestId };
  const awaited = (how & AWAITED) !== 0;
  const isFound = (how & FOUND) !== 0;
  return { streamId, id, version, bytes, at, by, from, awaited, isFound };
}
