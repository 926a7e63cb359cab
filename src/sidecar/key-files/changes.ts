import { hash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { groupNameFindings, type StreamId } from '../../api/stream-id';
import { decodeBase64Block, etagOf, formatUuid } from '../../drm/bytes';
import { summariseKeyFile } from '../../drm/check/key-file-text';
import type { Finding } from '../../drm/finding';
import { decodeKeys, isSameKeyFile, keyFileLines, keysIn, renderKeyFile } from '../../drm/key-file';
import { describeThrown } from '../../http/errors';
import type { Log } from '../../http/log';
import type { Provisioned } from '../../provider/provision';
import { type ApiKey, mayRead } from '../api-key';
import { apiError } from '../errors';
import { notHereFindings } from '../fleet/wait';
import { describeKeyFile, listStreamIds } from '../listing/folder';
import type { Audit } from '../observe/audit';
import {
  type Change,
  type ChangedBy,
  type Conditions,
  isWriteSkipped,
  type KeyFileStore,
} from '../storage/key-file-store';

export interface Actor {
  readonly apiKey: ApiKey;
  readonly by: ChangedBy;
}

interface ChangeOptions extends Conditions {
  readonly awaited?: boolean;
}

export type PutOutcome = Awaited<ReturnType<KeyFileChanges['put']>>;

export type KeyFileChanges = ReturnType<typeof createKeyFileChanges>;

interface ChangesContext {
  readonly store: KeyFileStore;
  readonly audit: Audit;
  readonly log: Log;
  readonly index: KeyIndex;
}

/** Audits each change. The caller has checked the rights of the actor. */
export function createKeyFileChanges({ store, index, audit, log }: ChangesContext) {
  /** Returns the key file as written, or as it would be, and the former one; `fleet` only when a fleet has the change. */
  const put = async (
    streamId: StreamId,
    { keyFile, source, warnings: found }: Provisioned,
    { apiKey, by }: Actor,
    { awaited = false, ...conditions }: ChangeOptions = {},
  ) => {
    const bytes: Buffer = Buffer.from(renderKeyFile(keyFileLines(keyFile)), 'utf8');
    if (bytes.length > MAX_KEY_FILE_BYTES) {
      const description = `The key file would have ${bytes.length} bytes; the limit is ${MAX_KEY_FILE_BYTES}. Look for a value that is too long.`;
      throw apiError('invalid_body', description);
    }
    const change = await store.write(streamId, bytes, conditions, { by, awaited });
    const { former } = change;
    const { dryRun, skipUnchanged } = conditions;
    const isSame = former !== undefined && isSameKeyFile(former, bytes);
    const result = isSame ? 'unchanged' : former ? 'changed' : 'created';
    const isKept = skipUnchanged && isSame;
    const warnings = [
      ...found,
      ...groupNameFindings(streamId),
      ...keyConflictFindings(index, streamId, keyFile.cenc && indexedKeysIn(keyFile.cenc), apiKey),
      ...storageFindings(streamId, change, by),
    ];
    if (!dryRun) {
      for (const { code, description } of isKept ? [] : warnings) {
        const fields = { requestId: by.requestId, streamId, code, description };
        log.warn('key file written with a warning', fields);
      }
      const newKeyId = uuidOf(keyFile.cenc?.keyId);
      const oldKeyId = isSame ? newKeyId : keyIdOf(former);
      audit({ action: 'put', ...by, streamId, result, oldKeyId, newKeyId, ...(source && { source }) });
    }
    const fleet = dryRun ? undefined : change.fleet;
    return { bytes, former, etag: etagOf(isKept ? former : bytes), result, warnings, fleet } as const;
  };

  const storageFindings = (
    streamId: StreamId,
    { notSynced, fleet }: Change,
    { requestId }: ChangedBy,
  ): Finding[] => {
    const report = (message: string, cause: unknown) =>
      log.error(message, { requestId, streamId, cause: describeThrown(cause) });
    if (notSynced) report('key-file folder not synced', notSynced.cause);
    if (fleet?.notHere) report('a change of the fleet could not be made here', fleet.notHere);
    return [...(notSynced ? [NOT_DURABLE] : []), ...(fleet ? notHereFindings(fleet) : [])];
  };

  return {
    put,
    /** Returns the removed bytes; undefined: there was no key file. */
    async remove(streamId: StreamId, { by }: Actor, { awaited = false, ...conditions }: ChangeOptions = {}) {
      const change = await store.remove(streamId, conditions, { by, awaited });
      const { former: bytes, fleet } = change;
      const keyIds = { oldKeyId: keyIdOf(bytes), newKeyId: undefined };
      if (bytes) audit({ action: 'delete', ...by, streamId, result: 'deleted', ...keyIds });
      return { bytes, warnings: storageFindings(streamId, change, by), fleet };
    },
  };
}

const NOT_DURABLE: Finding = {
  severity: 'warning',
  code: 'not_durable',
  description:
    'the change is made, but the key-file folder could not be synced: a power cut may undo it. Check the disk, and send the request again',
};

/** A key file has one or two KiB; a far larger one is a mistake, and could not be read back. */
export const MAX_KEY_FILE_BYTES = 64 * 1024;

export function keyIdOf(bytes: Buffer | undefined): string | undefined {
  return bytes && uuidOf(keysIn(bytes.toString('latin1')).keyId);
}

function uuidOf(keyId: string | undefined): string | undefined {
  const bytes = decodeBase64Block(keyId ?? '');
  return bytes.ok ? formatUuid(bytes.value) : undefined;
}

/** A digest in place of the content key: the index keeps no key. */
export interface IndexedKeys {
  readonly id: string;
  readonly digest: string;
}

/** Takes a key id and a content key of 16 bytes each. */
export function indexedKeys(keyId: Buffer, contentKey: Buffer): IndexedKeys {
  const digest = hash('sha256', contentKey, 'buffer').subarray(0, 8);
  return { id: keyId.toString('base64'), digest: digest.toString('base64') };
}

export function indexedKeysIn(keys: ReturnType<typeof keysIn>): IndexedKeys | undefined {
  const decoded = decodeKeys(keys);
  return decoded && indexedKeys(decoded.keyId, decoded.contentKey);
}

function indexedKeysOf(bytes: Buffer): IndexedKeys | undefined {
  return indexedKeysIn(keysIn(bytes.toString('latin1')));
}

interface KeyPair extends IndexedKeys {
  /** The latest come last. */
  readonly streams: string[];
}

export type KeyIndex = ReturnType<typeof createKeyIndex>;

/** Finds key files that contradict each other. `read` returns the present key file; without it, none is read again. */
export function createKeyIndex(read?: (streamId: string) => Buffer | undefined) {
  const all = new Map<string, KeyPair>();
  /** By key id and by digest. Streams with the same keys are one pair: there may be very many. */
  const pairsWith = new Map<string, KeyPair[]>();
  const forget = (streamId: string, pair: KeyPair) => {
    all.delete(streamId);
    pair.streams.splice(pair.streams.indexOf(streamId), 1);
    if (pair.streams.length > 0) return;
    for (const value of [pair.id, pair.digest]) {
      const others = pairsWith.get(value)?.filter((other) => other !== pair) ?? [];
      if (others.length > 0) pairsWith.set(value, others);
      else pairsWith.delete(value);
    }
  };
  const add = (streamId: string, { id, digest }: IndexedKeys): KeyPair => {
    const known = pairsWith.get(id)?.find((pair) => pair.digest === digest);
    known?.streams.push(streamId);
    if (known) return known;
    // Most pairs have one stream: a list that is made with it is smaller than one that it is added to.
    const pair = { id, digest, streams: [streamId] };
    for (const value of [id, digest]) {
      const others = pairsWith.get(value);
      if (others) others.push(pair);
      else pairsWith.set(value, [pair]);
    }
    return pair;
  };
  const differing = (streamId: string, value: string, { id, digest }: IndexedKeys): string[] =>
    (pairsWith.get(value) ?? [])
      .filter((pair) => pair.id !== id || pair.digest !== digest)
      .flatMap(({ streams }) => streams.filter((other) => other !== streamId));
  const set = (streamId: string, keys: IndexedKeys | undefined): void => {
    const former = all.get(streamId);
    if (former && former.id === keys?.id && former.digest === keys.digest) return;
    if (former) forget(streamId, former);
    if (keys) all.set(streamId, add(streamId, keys));
  };
  /** Another program may have removed or changed it. */
  const refresh = (streamId: string): void => {
    if (!read) return;
    try {
      const bytes = read(streamId);
      set(streamId, bytes && indexedKeysOf(bytes));
    } catch {
      // An unreadable file counts as unchanged.
    }
  };
  return {
    /** Takes the keys of a stream's key file; undefined: it has none, or is gone. */
    set,
    /**
     * Streams with this key id and another content key, where players that have one of the keys show black
     * for the other, or with this content key and another key id. The latest come last.
     */
    conflicts(streamId: string, keys: IndexedKeys) {
      const found = () => ({
        otherKeys: differing(streamId, keys.id, keys),
        otherIds: differing(streamId, keys.digest, keys),
      });
      // Only those that are named: many would take too long.
      for (const others of Object.values(found())) others.slice(-MAX_NAMES).forEach(refresh);
      return found();
    },
    size: () => all.size,
  };
}

/** The key file is written anyway. Only key files in reach of the API key are named. */
export function keyConflictFindings(
  index: KeyIndex,
  streamId: string,
  keys: IndexedKeys | undefined,
  asking: ApiKey,
): Finding[] {
  if (!keys) return [];
  const { otherKeys, otherIds } = index.conflicts(streamId, keys);
  const [ofKeys, ofIds] = [keyFilesText(otherKeys, asking), keyFilesText(otherIds, asking)];
  const findings = {
    key_id_reused:
      ofKeys &&
      `cenc.keyid is the key id of another content key in ${ofKeys}: players that have one of the keys show black for the other; give each content key its own id`,
    content_key_reused:
      ofIds &&
      `cenc.contentkey has another key id in ${ofIds}; check whether the same key is intended, and then use one id for it`,
  };
  return Object.entries(findings).flatMap(([code, description]) =>
    description ? [{ severity: 'warning', code, description }] : [],
  );
}

const MAX_NAMES = 3;

function keyFilesText(streamIds: readonly string[], asking: ApiKey): string | undefined {
  const count = streamIds.length;
  if (count === 0) return undefined;
  const s = count === 1 ? '' : 's';
  const latest = streamIds.slice(-MAX_NAMES).reverse();
  const names = latest.filter((name) => mayRead(asking, name));
  if (names.length === 0) return `${count} other key file${s}`;
  const more = count - names.length;
  return `the key file${s} of ${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

/** A key file with both counts as `error`. */
export interface FaultyKeyFiles extends Readonly<Record<'error' | 'warning', number>> {}

/** As many files take a millisecond or two. */
const FILES_PER_TURN = 20;
const REST_MS = 10;
/** Slower than at the start: a look takes a fifth of the time of a write. */
const WRITTEN_REST_MS = 200;

/** Counts the key files with faults, and keeps the key index up to date. */
export function createSurvey(folder: string, log: Log, index: KeyIndex) {
  const faulty = new Map<StreamId, keyof FaultyKeyFiles>();
  const waiting = new Set<StreamId>();
  let running: Promise<void> | undefined;
  let isComplete = false;
  let isClosed = false;

  /** Reads and notes in one turn: notes of later changes are newer. */
  const surveyFile = (streamId: StreamId) => {
    const described = describeKeyFile(folder, streamId, (text) => {
      index.set(streamId, indexedKeysIn(keysIn(text)));
      return summariseKeyFile(text);
    });
    const { faults = [] } = described ?? {};
    faulty.delete(streamId);
    if (faults.length > 0)
      faulty.set(streamId, faults.some(({ severity }) => severity === 'error') ? 'error' : 'warning');
  };

  const surveyWaiting = async (): Promise<void> => {
    try {
      while (waiting.size > 0 && !isClosed) {
        await pause(isComplete ? WRITTEN_REST_MS : REST_MS, undefined, { ref: false });
        let count = 0;
        for (const streamId of waiting) {
          waiting.delete(streamId);
          surveyFile(streamId);
          count += 1;
          if (count === FILES_PER_TURN) break;
        }
      }
    } finally {
      running = undefined;
    }
  };

  /** One run serves all: several would read more than their share. */
  const surveySoon = (): Promise<void> => {
    running ??= Promise.resolve().then(surveyWaiting);
    return running;
  };

  const failed = (thrown: unknown) =>
    log.warn('key files cannot be surveyed', { cause: describeThrown(thrown) });

  const runAll = async (): Promise<void> => {
    for (const streamId of await listStreamIds(folder)) waiting.add(streamId);
    await surveySoon();
    isComplete = !isClosed;
  };

  return {
    /** Undefined until the files of the start are read. Written files are counted a little later. */
    counts(): FaultyKeyFiles | undefined {
      if (!isComplete) return undefined;
      const counts = { error: 0, warning: 0 };
      for (const severity of faulty.values()) counts[severity] += 1;
      return counts;
    },
    /** `changed` is called with how many key files there are more. */
    follow: (store: KeyFileStore, changed: (more: number) => void = () => undefined): KeyFileStore => ({
      ...store,
      async write(streamId, bytes, conditions = {}, context) {
        const change = await store.write(streamId, bytes, conditions, context);
        if (isWriteSkipped(conditions, change.former, bytes)) return change;
        if (!change.former) changed(1);
        index.set(streamId, indexedKeysOf(bytes));
        waiting.add(streamId);
        if (!running) surveySoon().catch(failed);
        return change;
      },
      async remove(streamId, conditions, context) {
        const change = await store.remove(streamId, conditions, context);
        if (change.former) changed(-1);
        waiting.delete(streamId);
        faulty.delete(streamId);
        index.set(streamId, undefined);
        return change;
      },
    }),
    /** Reads all key files in the background, at most 2,000 a second. Never rejects. */
    run: () => runAll().catch(failed),
    close(): void {
      isClosed = true;
    },
  };
}
