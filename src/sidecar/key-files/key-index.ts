import { hash } from 'node:crypto';
import type { Finding } from '../../drm/finding';
import { decodeKeys, type keysIn } from '../../drm/key-file';
import { type ApiKey, mayRead } from '../access/api-key';

/** What tells the keys of one key file from others. */
export interface IndexedKeys {
  readonly id: Tag;
  readonly key: Tag;
}

/** 64 bits, as two numbers: a BigInt would be an object of its own in each comparison. */
interface Tag {
  readonly low: number;
  readonly high: number;
}

/** Takes a key id and a content key of 16 bytes each. Of the id, which is no secret, they are mixed; of the key a digest is. */
export function indexedKeys(keyId: Buffer, contentKey: Buffer): IndexedKeys {
  const digest = hash('sha256', contentKey, 'buffer');
  return {
    id: {
      low: (Math.imul(keyId.readUInt32LE(0), MIX) + keyId.readUInt32LE(4)) >>> 0,
      high: (Math.imul(keyId.readUInt32LE(8), MIX) + keyId.readUInt32LE(12)) >>> 0,
    },
    key: { low: digest.readUInt32LE(0), high: digest.readUInt32LE(4) },
  };
}

const MIX = 0x9e3779b1;

/** Other streams whose key files don't go together with a stream's. */
interface KeyConflicts {
  /** They have the same key id and another content key: a player that has one of the keys shows black for the other. */
  readonly otherKeys: Streams;
  /** They have the same content key under another key id. */
  readonly otherIds: Streams;
}

interface Streams {
  readonly count: number;
  /** The first of them. */
  readonly names: readonly string[];
}

/**
 * Which keys the key files of a folder have, to find those that contradict each other. Of a content key it holds eight
 * bytes of a digest. A file costs some 80 bytes, whatever the number of files.
 */
export interface KeyIndex {
  /** Takes the keys of a stream's key file; undefined: it has none, or is gone. */
  set(streamId: string, keys: IndexedKeys | undefined): void;
  /** What contradicts these keys, were they the stream's. */
  conflicts(streamId: string, keys: IndexedKeys): KeyConflicts;
  /** How many key files have keys, and the bytes that all this takes. */
  size(): { readonly files: number; readonly bytes: number };
}

const MAX_NAMES = 3;
/** Of so many files with the same key, the latest are looked at: a folder may have one key for all. */
const MAX_STEPS = 10_000;
const FIRST_CAPACITY = 1024;
/** Beyond so many bytes of names that are gone, names are copied together. */
const MIN_GARBAGE = 64 * 1024;
const NONE = -1;

/**
 * Records by three hash tables with chains, in typed arrays: as objects, a million files would take several hundred
 * megabytes.
 */
export function createKeyIndex(): KeyIndex {
  let capacity = FIRST_CAPACITY;
  let table = createTable(capacity);
  let names = Buffer.alloc(capacity * 32);
  let namesEnd = 0;
  let garbage = 0;
  /** Records are used from the front; freed ones are chained by `nextByName`. */
  let used = 0;
  let free = NONE;
  let files = 0;

  const slotOf = (low: number): number => low & (capacity - 1);
  const nameOf = (record: number): string => {
    const at = table.nameAt[record] ?? 0;
    return names.toString('latin1', at, at + (table.nameLength[record] ?? 0));
  };

  const findByName = (streamId: string): number => {
    for (
      let at = table.byName[slotOf(tagOfName(streamId))] ?? NONE;
      at !== NONE;
      at = table.nextByName[at] ?? NONE
    ) {
      if (nameOf(at) === streamId) return at;
    }
    return NONE;
  };

  const link = (record: number, heads: Int32Array, next: Int32Array, low: number) => {
    const slot = slotOf(low);
    next[record] = heads[slot] ?? NONE;
    heads[slot] = record;
  };

  const unlink = (record: number, heads: Int32Array, next: Int32Array, low: number) => {
    const slot = slotOf(low);
    if (heads[slot] === record) {
      heads[slot] = next[record] ?? NONE;
      return;
    }
    for (let at = heads[slot] ?? NONE; at !== NONE; at = next[at] ?? NONE) {
      if (next[at] !== record) continue;
      next[at] = next[record] ?? NONE;
      return;
    }
  };

  const nameTag = (record: number): number => tagOfName(nameOf(record));
  const linkAll = (record: number) => {
    link(record, table.byName, table.nextByName, nameTag(record));
    link(record, table.byKeyId, table.nextByKeyId, lowOf(table.keyId, record));
    link(record, table.byKey, table.nextByKey, lowOf(table.key, record));
  };

  /** Doubles the tables. Freed records are left behind. */
  const grow = () => {
    const former = table;
    capacity *= 2;
    table = createTable(capacity);
    let record = 0;
    for (let at = 0; at < used; at += 1) {
      if (former.nameLength[at] === 0) continue;
      table.nameAt[record] = former.nameAt[at] ?? 0;
      table.nameLength[record] = former.nameLength[at] ?? 0;
      copyTag(former.keyId, at, table.keyId, record);
      copyTag(former.key, at, table.key, record);
      record += 1;
    }
    used = record;
    free = NONE;
    for (let at = 0; at < used; at += 1) linkAll(at);
  };

  /** Makes room for a name, by copying those still in use together. */
  const makeNameRoom = (length: number) => {
    if (namesEnd + length <= names.length) return;
    const worthIt = garbage > MIN_GARBAGE && garbage > namesEnd / 4;
    const next = Buffer.alloc(worthIt ? names.length : names.length * 2);
    let end = 0;
    for (let at = 0; at < used; at += 1) {
      const size = table.nameLength[at] ?? 0;
      const from = table.nameAt[at] ?? 0;
      if (size === 0) continue;
      names.copy(next, end, from, from + size);
      table.nameAt[at] = end;
      end += size;
    }
    names = next;
    namesEnd = end;
    garbage = 0;
  };

  const remove = (record: number) => {
    unlink(record, table.byName, table.nextByName, nameTag(record));
    unlink(record, table.byKeyId, table.nextByKeyId, lowOf(table.keyId, record));
    unlink(record, table.byKey, table.nextByKey, lowOf(table.key, record));
    garbage += table.nameLength[record] ?? 0;
    table.nameLength[record] = 0;
    table.nextByName[record] = free;
    free = record;
    files -= 1;
  };

  const add = (streamId: string, { id, key }: IndexedKeys) => {
    if (free === NONE && used === capacity) grow();
    const bytes = Buffer.from(streamId, 'latin1');
    makeNameRoom(bytes.length);
    let record = used;
    if (free === NONE) used += 1;
    else {
      record = free;
      free = table.nextByName[record] ?? NONE;
    }
    bytes.copy(names, namesEnd);
    table.nameAt[record] = namesEnd;
    table.nameLength[record] = bytes.length;
    namesEnd += bytes.length;
    setTag(table.keyId, record, id);
    setTag(table.key, record, key);
    linkAll(record);
    files += 1;
  };

  /** The streams of a chain that have one tag and not the other. */
  const collect = (
    streamId: string,
    [heads, next]: readonly [Int32Array, Int32Array],
    [withs, same]: readonly [Uint32Array, Tag],
    [withouts, other]: readonly [Uint32Array, Tag],
  ): Streams => {
    let count = 0;
    let steps = 0;
    const found: string[] = [];
    for (
      let at = heads[slotOf(same.low)] ?? NONE;
      at !== NONE && steps < MAX_STEPS;
      at = next[at] ?? NONE, steps += 1
    ) {
      // Most have the same keys: all the streams of a folder may have one.
      if (isTag(withouts, at, other) || !isTag(withs, at, same) || nameOf(at) === streamId) continue;
      count += 1;
      if (found.length < MAX_NAMES) found.push(nameOf(at));
    }
    return { count, names: found };
  };

  return {
    set(streamId, keys) {
      const present = findByName(streamId);
      if (present !== NONE) {
        if (keys && isTag(table.keyId, present, keys.id) && isTag(table.key, present, keys.key)) return;
        remove(present);
      }
      if (keys) add(streamId, keys);
    },
    conflicts(streamId, { id, key }) {
      const ofId = [table.keyId, id] as const;
      const ofKey = [table.key, key] as const;
      return {
        otherKeys: collect(streamId, [table.byKeyId, table.nextByKeyId], ofId, ofKey),
        otherIds: collect(streamId, [table.byKey, table.nextByKey], ofKey, ofId),
      };
    },
    size: () => ({ files, bytes: names.length + bytesOf(table) }),
  };
}

function lowOf(tags: Uint32Array, record: number): number {
  return tags[2 * record] ?? 0;
}

function isTag(tags: Uint32Array, record: number, { low, high }: Tag): boolean {
  return tags[2 * record] === low && tags[2 * record + 1] === high;
}

function setTag(tags: Uint32Array, record: number, { low, high }: Tag): void {
  tags[2 * record] = low;
  tags[2 * record + 1] = high;
}

function copyTag(from: Uint32Array, at: number, to: Uint32Array, record: number): void {
  setTag(to, record, { low: from[2 * at] ?? 0, high: from[2 * at + 1] ?? 0 });
}

/** FNV-1a, 32 bits: names that fall together cost a comparison. */
function tagOfName(name: string): number {
  let tag = 0x811c9dc5;
  for (let at = 0; at < name.length; at += 1) tag = Math.imul(tag ^ name.charCodeAt(at), 0x01000193);
  return tag >>> 0;
}

type Table = ReturnType<typeof createTable>;

function createTable(capacity: number) {
  const chains = () => new Int32Array(capacity).fill(NONE);
  return {
    nameAt: new Uint32Array(capacity),
    /** 0: the record is free. */
    nameLength: new Uint8Array(capacity),
    /** Tags, each low before high. */
    keyId: new Uint32Array(2 * capacity),
    key: new Uint32Array(2 * capacity),
    byName: chains(),
    byKeyId: chains(),
    byKey: chains(),
    nextByName: chains(),
    nextByKeyId: chains(),
    nextByKey: chains(),
  };
}

function bytesOf(table: Table): number {
  return Object.values(table).reduce((sum, { byteLength }) => sum + byteLength, 0);
}

/** The keys as the index takes them, if both are there and well formed. */
export function indexedKeysIn(keys: ReturnType<typeof keysIn>): IndexedKeys | undefined {
  const decoded = decodeKeys(keys);
  return decoded && indexedKeys(decoded.keyId, decoded.contentKey);
}

/**
 * What is odd about a key file's keys in view of the other key files: it is written, and said. Of the others, those are
 * named that the API key reaches.
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
    ...found(
      'key_id_reused',
      visible(otherKeys, asking),
      (who) =>
        `cenc.keyid is that of another content key in ${who}: players that have one of the keys show black for the other; give each content key an id of its own`,
    ),
    ...found(
      'content_key_reused',
      visible(otherIds, asking),
      (who) =>
        `cenc.contentkey has another key id in ${who}; check whether the same key was meant, and then use one id for it`,
    ),
  ];
}

function visible({ count, names }: Streams, asking: ApiKey): Streams {
  return { count, names: names.filter((name) => mayRead(asking, name)) };
}

function found(code: string, { count, names }: Streams, describe: (who: string) => string): Finding[] {
  if (count === 0) return [];
  const more = count - names.length;
  const others = `${count} other key file${count === 1 ? '' : 's'}`;
  const named = `the key file${count === 1 ? '' : 's'} of ${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  const who = names.length === 0 ? others : named;
  return [{ severity: 'warning', code, description: describe(who) }];
}
