import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto';
import { opendir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import * as z from 'zod';
import type { ProviderContent } from '../api/read-key-file-request';
import type { CpixChoice } from '../drm/cpix/choose';
import type { KeyFile } from '../drm/key-file';
import { describeThrown } from '../http/errors';
import type { Log } from '../http/log';
import { HEADERS_VARIABLE, type ReadProviderHeaders } from '../provider/provider-headers';
import type { KeptAnswer } from '../provider/provision';
import type { ProviderProtocol } from '../provider/upstream';
import type { DurableWriter } from './storage/durable-file';
import { queueByName } from './storage/key-file-store';
import { readSmallFile } from './storage/open-file';

/** `missed`: nothing was kept, or it was too old. `not_kept`: the folder could not be written, or there is no secret. */
export const CACHE_EVENTS = ['kept', 'not_kept', 'used', 'missed', 'damaged'] as const;
export type CacheEvent = (typeof CACHE_EVENTS)[number];

interface ProviderCacheOptions {
  readonly folder: string;
  readonly maxAgeMs: number;
  readonly scope: CacheScope;
  readonly writer: DurableWriter;
  readonly log: Log;
  readonly clock: () => Date;
  /** Unguessable: it salts the keys of entries. */
  readonly newId: () => string;
  /** Must not throw. */
  readonly observe: (event: CacheEvent) => void;
  readonly mostEntries?: number;
}

/** As many as a batch has streams; some 10 MB. */
const MAX_ENTRIES = 10_000;
/** Answers that wait for a slow disk. */
const MAX_WAITING = 1000;
const MODE = 0o600;
const LOOK_MS = 60 * 60_000;
const CLOSE_MS = 2000;

const text = z.string();

const keptValues = z.strictObject({
  cenc: z.strictObject({ keyId: text, contentKey: text }).exactOptional(),
  widevine: z.strictObject({ psshData: text }).exactOptional(),
  playready: z.strictObject({ licenseUrl: text, checksum: text }).exactOptional(),
  fairplay: z.strictObject({ licenseUrl: text, key: text, iv: text }).exactOptional(),
  aes: z.strictObject({ url: text, key: text }).exactOptional(),
});

export function createProviderCache(options: ProviderCacheOptions) {
  const { folder, maxAgeMs, scope, writer, log, clock, newId, observe, mostEntries = MAX_ENTRIES } = options;
  const queue = queueByName();
  /** By name: when the entry was written, the oldest first. */
  let entries = new Map<string, number>();
  let failing = false;
  let hasWarned = false;
  const waiting = new Set<Promise<void>>();

  /** A time in the future comes from a clock that was wrong. */
  const isTooOld = (time: number) => Math.abs(clock().getTime() - time) > maxAgeMs;

  const remove = async (name: string): Promise<void> => {
    entries.delete(name);
    try {
      await writer.remove(join(folder, name));
    } catch (thrown) {
      fail(thrown);
    }
  };

  const fail = (thrown: unknown) => {
    if (!failing)
      log.error('the provider cache cannot be written', { folder, cause: describeThrown(thrown) });
    failing = true;
  };

  const removeSurplus = async (): Promise<void> => {
    for (const [name, time] of entries) {
      if (entries.size <= mostEntries && !isTooOld(time)) return;
      // In the turn of its name: an entry that is being kept again stays.
      await queue(name, async () => {
        if (entries.get(name) === time) await remove(name);
      });
    }
  };

  /** Undefined: there is no secret to seal the entry with. */
  const entryOf = (content: ProviderContent) => {
    const secret = secretOf(scope, content);
    if (secret !== undefined) return { name: entryName(scope, content, secret), secret };
    if (!hasWarned) log.warn(NO_SECRET, { folder });
    hasWarned = true;
    return undefined;
  };

  const write = async (name: string, secret: string, text: string): Promise<void> => {
    await queue(name, async () => {
      try {
        const time = clock();
        const bytes = sealEntry(name, secret, newId(), { time, text });
        const notSynced = await writer.write(join(folder, name), bytes, MODE);
        entries.delete(name);
        entries.set(name, time.getTime());
        if (notSynced) throw notSynced.cause;
        observe('kept');
        if (failing) log.warn('the provider cache is written again', { folder });
        failing = false;
      } catch (thrown) {
        observe('not_kept');
        fail(thrown);
      }
    });
    await removeSurplus();
  };

  const removeDamaged = async (name: string): Promise<void> => {
    log.warn('a damaged entry of the provider cache is removed', { folder, name });
    await remove(name);
  };

  const readEntries = async (): Promise<[name: string, time: number][]> => {
    const found: [string, number][] = [];
    for await (const { name } of await opendir(folder)) {
      if (!ENTRY_NAME.test(name)) continue;
      const file = readSmallFile(join(folder, name));
      const time = file?.kind === 'file' ? entryTime(file.bytes) : undefined;
      if (time) found.push([name, time.getTime()]);
      else if (file) await removeDamaged(name);
    }
    return found;
  };

  const read = async (name: string, secret: string): Promise<KeptAnswer | 'missed' | 'damaged'> => {
    const found = readSmallFile(join(folder, name));
    if (!found) return 'missed';
    const opened = found.kind === 'file' ? openEntry(name, secret, found.bytes) : undefined;
    const kept = opened && keptValues.safeParse(JSON.parse(opened.text));
    if (!opened || !kept?.success) {
      await removeDamaged(name);
      return 'damaged';
    }
    const { time } = opened;
    if (isTooOld(time.getTime())) {
      await remove(name);
      return 'missed';
    }
    return { keyFile: kept.data, time, ageMs: Math.max(0, clock().getTime() - time.getTime()) };
  };

  return {
    keep(content: ProviderContent, { cenc, widevine, playready, fairplay, aes }: KeyFile): void {
      const entry = entryOf(content);
      if (!entry || waiting.size >= MAX_WAITING) {
        observe('not_kept');
        return;
      }
      // Without `cmaf`, which each request says for itself.
      const text = JSON.stringify({ cenc, widevine, playready, fairplay, aes });
      const writing = write(entry.name, entry.secret, text).finally(() => waiting.delete(writing));
      waiting.add(writing);
    },
    async find(content: ProviderContent): Promise<KeptAnswer | undefined> {
      const entry = entryOf(content);
      if (!entry) {
        observe('missed');
        return undefined;
      }
      const { name, secret } = entry;
      const found = await queue(name, () => read(name, secret)).catch((thrown: unknown) => {
        log.warn('the provider cache cannot be read', { folder, cause: describeThrown(thrown) });
        return 'missed' as const;
      });
      if (typeof found === 'object') return found;
      observe(found);
      return undefined;
    },
    used(time: Date, requestId: string): void {
      observe('used');
      log.warn('keys taken from the provider cache', { requestId, since: time.toISOString() });
    },
    /** Reads the folder and removes old and surplus entries, then every hour. */
    async open(): Promise<void> {
      setInterval(() => void removeSurplus(), LOOK_MS).unref();
      await writer.sweep(folder, 0);
      const found = await readEntries().catch((thrown: unknown) => {
        log.error('the provider cache cannot be read', { folder, cause: describeThrown(thrown) });
        return [];
      });
      const older = found.filter(([name]) => !entries.has(name)).sort(([, one], [, other]) => one - other);
      entries = new Map([...older, ...entries]);
      await removeSurplus();
    },
    /** Waits two seconds at most for running writes: a network file system may hang. */
    async close(): Promise<void> {
      await Promise.race([Promise.all(waiting), wait(CLOSE_MS, undefined, { ref: false })]);
    },
  };
}

/** Answers of another platform are not used. */
interface CacheScope {
  readonly configServiceUrl: string | undefined;
  readonly keyProviderUrl: string;
  readonly keyProviderProtocol?: ProviderProtocol | undefined;
  readonly providerHeaders?: ReadProviderHeaders | undefined;
}

const NO_SECRET = `the provider cache keeps no answers to requests without clientApiKey, because it has no secret to encrypt them with. Name a file of headers in ${HEADERS_VARIABLE} with a credential of at least 16 characters, or give clientApiKey`;

/** A shorter header is not a secret of this service. */
const CREDENTIAL = /\S{16}/;

/**
 * The client's API key. By other protocols than `json` also this service's headers for the provider: their
 * holder could ask it for the same keys. Undefined: none of them is a secret.
 */
function secretOf(
  { keyProviderProtocol = 'json', providerHeaders }: CacheScope,
  { clientApiKey }: ProviderContent,
): string | undefined {
  if (keyProviderProtocol === 'json') return clientApiKey;
  const headers = Object.entries(providerHeaders?.() ?? {});
  if (clientApiKey === undefined && !headers.some(([, value]) => CREDENTIAL.test(value))) return undefined;
  return JSON.stringify([clientApiKey ?? null, headers]);
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

/** An HMAC-SHA-256 under a key of the secret, in hex: a copy of the folder doesn't show whose entry it is. */
function entryName(scope: CacheScope, content: ProviderContent, secret: string): string {
  const key = derive(secret, Buffer.alloc(0), 'packager-drm-api provider cache: name', KEY_BYTES);
  const { configServiceUrl, keyProviderUrl, keyProviderProtocol = 'json' } = scope;
  const { client = null, contentId, choice, playReadyUrl = null, aes } = content;
  const ofAll = [configServiceUrl ?? null, keyProviderUrl, client, contentId];
  const ofJson = aes ? ['aes', nameOf(choice)] : [];
  const own = keyProviderProtocol === 'json' ? ofJson : [keyProviderProtocol, playReadyUrl, nameOf(choice)];
  const named = JSON.stringify([...ofAll, ...own]);
  return `${createHmac('sha256', key).update(named).digest('hex')}.sealed`;
}

function nameOf({ keyId, track, period, systems }: CpixChoice = {}) {
  return [keyId?.toString('hex') ?? null, track ?? null, period ?? null, systems?.toSorted() ?? null];
}

const ENTRY_NAME = /^[0-9a-f]{64}\.sealed$/;

/** AES-256-GCM, HKDF-SHA-256 (RFC 5869). `saltId` is a UUID never used before, and so are key and nonce. */
function sealEntry(
  name: string,
  secret: string,
  saltId: string,
  { time, text }: { time: Date; text: string },
): Buffer {
  const head = Buffer.alloc(TAG_AT);
  MAGIC.copy(head);
  head.writeBigUInt64BE(BigInt(time.getTime()), TIME_AT);
  Buffer.from(saltId.replaceAll('-', ''), 'hex').copy(head, SALT_AT);
  const { key, nonce } = keyOf(secret, head);
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.concat([head, Buffer.from(name, 'latin1')]));
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([head, cipher.getAuthTag(), sealed]);
}

/** Undefined: the entry was changed, cut off or renamed, or is none. */
function openEntry(name: string, secret: string, bytes: Buffer) {
  const time = entryTime(bytes);
  if (!time) return undefined;
  const head = bytes.subarray(0, TAG_AT);
  const { key, nonce } = keyOf(secret, head);
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

/** Undefined: the bytes are no entry. Only `openEntry` proves the time. */
function entryTime(bytes: Buffer): Date | undefined {
  if (bytes.length < TEXT_AT || !bytes.subarray(0, TIME_AT).equals(MAGIC)) return undefined;
  const time = new Date(Number(bytes.readBigUInt64BE(TIME_AT)));
  return Number.isNaN(time.getTime()) ? undefined : time;
}

function keyOf(secret: string, head: Buffer): { key: Buffer; nonce: Buffer } {
  const salt = head.subarray(SALT_AT, TAG_AT);
  const info = 'packager-drm-api provider cache: entry';
  const derived = derive(secret, salt, info, KEY_BYTES + NONCE_BYTES);
  return { key: derived.subarray(0, KEY_BYTES), nonce: derived.subarray(KEY_BYTES) };
}

function derive(secret: string, salt: Buffer, info: string, bytes: number): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, salt, info, bytes));
}
