import { hash } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { StreamId } from '../../api/stream-id';
import { summariseKeyFile } from '../../drm/check/key-file-text';
import type { Finding } from '../../drm/finding';
import { decodeKeys, keysIn } from '../../drm/key-file';
import { describeThrown } from '../../http/errors';
import type { Log } from '../../http/log';
import { type ApiKey, mayRead } from '../access/api-key';
import { describeKeyFile, listStreamIds, type Summarise } from '../listing/folder';
import { isLeftAlone, type KeyFileStore } from '../storage/key-file-store';

/** How many key files have an error, and how many have warnings alone. */
export interface FaultyKeyFiles extends Readonly<Record<'error' | 'warning', number>> {}

/** As many files take a millisecond or two. */
const FILES_AT_A_STRETCH = 20;
const REST_MS = 10;
/** Written files are looked at later, and slowly: a look takes a fifth of the time of a write. */
const WRITTEN_REST_MS = 50;

/** Counts the key files that have faults, and keeps the key index up to date with the files of the start and with removals. */
export function createSurvey(folder: string, log: Log, index: KeyIndex) {
  const faulty = new Map<StreamId, keyof FaultyKeyFiles>();
  const written = new Set<StreamId>();
  let isLooking = false;
  let isComplete = false;
  let isClosed = false;

  /** Read and noted in one turn: what a change notes later is newer. */
  const look = (streamId: StreamId, summarise: Summarise = summariseKeyFile) => {
    const entry = describeKeyFile(folder, streamId, summarise);
    if (!entry) return;
    faulty.delete(streamId);
    const { faults } = entry;
    if (faults.length > 0)
      faulty.set(streamId, faults.some(({ severity }) => severity === 'error') ? 'error' : 'warning');
  };

  /** The index knows the keys of what is written here, but not of what was there at the start. */
  const summariseAndIndex: Summarise = (text, streamId) => {
    index.set(streamId, indexedKeysIn(keysIn(text)));
    return summariseKeyFile(text);
  };

  const runAll = async (): Promise<void> => {
    for (const [count, streamId] of (await listStreamIds(folder)).entries()) {
      if (isClosed) return;
      look(streamId, summariseAndIndex);
      if (count % FILES_AT_A_STRETCH === 0) await wait(REST_MS, undefined, { ref: false });
    }
    isComplete = true;
  };

  const lookAtWritten = async (): Promise<void> => {
    isLooking = true;
    while (written.size > 0 && !isClosed) {
      await wait(WRITTEN_REST_MS, undefined, { ref: false });
      for (const streamId of [...written].slice(0, FILES_AT_A_STRETCH)) {
        written.delete(streamId);
        look(streamId);
      }
    }
    isLooking = false;
  };

  const failed = (thrown: unknown) => {
    isLooking = false;
    log.warn('key files cannot be surveyed', { cause: describeThrown(thrown) });
  };

  return {
    /** Undefined until the files that were there at the start are read. What was written is counted a little later. */
    counts(): FaultyKeyFiles | undefined {
      if (!isComplete) return undefined;
      const counts = { error: 0, warning: 0 };
      for (const severity of faulty.values()) counts[severity] += 1;
      return counts;
    },
    /** The same store, whose changes are followed. */
    follow: (store: KeyFileStore): KeyFileStore => ({
      ...store,
      async write(streamId, bytes, conditions = {}, context) {
        const change = await store.write(streamId, bytes, conditions, context);
        if (isLeftAlone(conditions, change.former, bytes)) return change;
        written.add(streamId);
        if (!isLooking) lookAtWritten().catch(failed);
        return change;
      },
      async remove(streamId, conditions, context) {
        const change = await store.remove(streamId, conditions, context);
        written.delete(streamId);
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

/** A key id, and a digest of its content key: the key itself is not kept. */
export interface IndexedKeys {
  readonly id: string;
  readonly digest: string;
}

/** Takes a key id and a content key of 16 bytes each. */
export function indexedKeys(keyId: Buffer, contentKey: Buffer): IndexedKeys {
  const digest = hash('sha256', contentKey, 'buffer').subarray(0, 8);
  return { id: keyId.toString('base64'), digest: digest.toString('base64') };
}

/** The keys as the index takes them, if both are there and well formed. */
export function indexedKeysIn(keys: ReturnType<typeof keysIn>): IndexedKeys | undefined {
  const decoded = decodeKeys(keys);
  return decoded && indexedKeys(decoded.keyId, decoded.contentKey);
}

/** Other streams whose key files contradict a stream's. */
interface KeyConflicts {
  /** The same key id and another content key: a player that has one of the keys shows black for the other. */
  readonly otherKeys: Streams;
  /** The same content key under another key id. */
  readonly otherIds: Streams;
}

interface Streams {
  readonly count: number;
  /** The latest of them. */
  readonly names: readonly string[];
}

export type KeyIndex = ReturnType<typeof createKeyIndex>;

const MAX_NAMES = 3;

/** The keys of all key files of a folder, to find those that contradict each other. */
export function createKeyIndex() {
  const all = new Map<string, IndexedKeys>();
  return {
    /** Takes the keys of a stream's key file; undefined: it has none, or is gone. */
    set(streamId: string, keys: IndexedKeys | undefined): void {
      const former = all.get(streamId);
      if (former && former.id === keys?.id && former.digest === keys.digest) return;
      // The latest ones come last.
      all.delete(streamId);
      if (keys) all.set(streamId, keys);
    },
    /** The streams that would contradict a stream with these keys. */
    conflicts(streamId: string, { id, digest }: IndexedKeys): KeyConflicts {
      const otherKeys: string[] = [];
      const otherIds: string[] = [];
      for (const [other, keys] of all) {
        if (other === streamId || (keys.id === id) === (keys.digest === digest)) continue;
        (keys.id === id ? otherKeys : otherIds).push(other);
      }
      return { otherKeys: latestOf(otherKeys), otherIds: latestOf(otherIds) };
    },
    /** How many key files have keys. */
    size: () => all.size,
  };
}

function latestOf(names: readonly string[]): Streams {
  return { count: names.length, names: names.slice(-MAX_NAMES).reverse() };
}

/**
 * Warnings about a key file's keys in view of the other key files, which do not keep it from being written. Of the
 * others, those are named that the API key reaches.
 */
export function keyConflictFindings(
  index: KeyIndex,
  streamId: string,
  keys: IndexedKeys | undefined,
  asking: ApiKey,
): Finding[] {
  if (!keys) return [];
  const { otherKeys, otherIds } = index.conflicts(streamId, keys);
  return [
    ...conflictFinding(
      'key_id_reused',
      otherKeys,
      asking,
      (who) =>
        `cenc.keyid is the key id of another content key in ${who}: players that have one of the keys show black for the other; give each content key its own id`,
    ),
    ...conflictFinding(
      'content_key_reused',
      otherIds,
      asking,
      (who) =>
        `cenc.contentkey has another key id in ${who}; check whether the same key is intended, and then use one id for it`,
    ),
  ];
}

function conflictFinding(
  code: string,
  { count, names: all }: Streams,
  asking: ApiKey,
  describe: (who: string) => string,
): Finding[] {
  if (count === 0) return [];
  const names = all.filter((name) => mayRead(asking, name));
  const more = count - names.length;
  const others = `${count} other key file${count === 1 ? '' : 's'}`;
  const named = `the key file${count === 1 ? '' : 's'} of ${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  return [{ severity: 'warning', code, description: describe(names.length === 0 ? others : named) }];
}
