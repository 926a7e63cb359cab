import { statSync } from 'node:fs';
import type { StreamId } from '../../api/stream-id';
import { summariseKeyFile } from '../../drm/check/key-file-text';
import type { Finding } from '../../drm/finding';
import { keysIn } from '../../drm/key-file';
import type { HttpError } from '../../http/errors';
import type { Log } from '../../http/log';
import { type ApiKey, mayRead } from '../access/api-key';
import { apiError } from '../errors';
import { toStorageError } from '../storage/key-file-store';
import { describeKeyFile, type KeyFileEntry, type Summarise } from './entry';
import { searchesFor } from './search';
import { type Walk, walk } from './walk';

export interface ListingsOptions {
  /** The key-file folder, absolute. */
  readonly folder: string;
  /** Throws when the folder can't be used: an empty mount point must not pass for an empty list. */
  readonly checkFolder: () => void;
  /** What contradicts a key file's keys in the other key files. */
  readonly conflictsOf: (streamId: StreamId, keys: ReturnType<typeof keysIn>, asking: ApiKey) => Finding[];
  readonly log: Log;
  /** A new, unguessable UUID: it names a listing. */
  readonly newId: () => string;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

export interface Page {
  readonly entries: readonly KeyFileEntry[];
  /** What the next page is asked for with; undefined after the last one. */
  readonly cursor: string | undefined;
}

/**
 * The listings that clients are in the midst of. Each page goes on where the one before it ended, in the folders' own
 * order; a key file that is there from the first page to the last is on one of them, once.
 */
export interface Listings {
  /** Opens a listing of the streams that begin with `prefix` and that the key reaches, and answers its first page. */
  first(key: ApiKey, prefix: string, limit: number): Promise<Page>;
  /**
   * The page that a cursor asks for. The last one can be asked for again, for a client that lost the answer.
   * @throws HttpError 410 when there is no such listing any more, 400 when it has another prefix.
   */
  next(key: ApiKey, cursor: string, prefix: string | undefined, limit: number): Promise<Page>;
  /** Closes all of them. */
  close(): void;
}

interface Listing {
  readonly id: string;
  readonly key: ApiKey;
  readonly prefix: string;
  readonly walk: Walk;
  /** The number of the last page, from 1, and the page. */
  number: number;
  page: Promise<Page>;
  usedAt: number;
  /** An ended listing holds no folder open; it is kept for its last page. */
  state: 'open' | 'ended' | 'closed';
}

const MAX_LISTINGS = 32;
/** So that one client can't end the lists of all others. */
const MAX_OF_A_KEY = 8;
const IDLE_MS = 5 * 60_000;
const LOOK_MS = 30_000;

export function createListings({
  folder,
  checkFolder,
  conflictsOf,
  log,
  newId,
  now,
}: ListingsOptions): Listings {
  const collect = createCollect(folder, now);
  const summariseFor =
    (key: ApiKey): Summarise =>
    (text, streamId) => {
      const summary = summariseKeyFile(text);
      const conflicts = conflictsOf(streamId, keysIn(text), key);
      return conflicts.length === 0 ? summary : { ...summary, faults: [...summary.faults, ...conflicts] };
    };
  // In the order of their last use.
  const listings = new Map<string, Listing>();
  let watch: NodeJS.Timeout | undefined;

  const close = (listing: Listing) => {
    listing.state = 'closed';
    listing.walk.return();
    listings.delete(listing.id);
    if (listings.size === 0) clearInterval(watch);
  };

  const closeIdle = () => {
    for (const listing of listings.values()) if (now() - listing.usedAt >= IDLE_MS) close(listing);
  };

  const closeOne = (candidates: readonly Listing[]) => {
    const dispensable = candidates.find(({ state }) => state === 'ended') ?? candidates[0];
    if (dispensable) close(dispensable);
  };

  const add = (listing: Listing) => {
    const all = [...listings.values()];
    const own = all.filter(({ key }) => key.name === listing.key.name);
    if (own.length >= MAX_OF_A_KEY) closeOne(own);
    else if (all.length >= MAX_LISTINGS) closeOne(all);
    if (listings.size === 0) watch = setInterval(closeIdle, LOOK_MS).unref();
    listings.set(listing.id, listing);
  };

  const makePage = async (listing: Listing, number: number, limit: number): Promise<Page> => {
    if (listing.state !== 'open') throw apiError('cursor_expired');
    try {
      const { walk, key } = listing;
      const isWanted = (streamId: StreamId) => mayRead(key, streamId);
      const { entries, ended } = await collect(walk, limit, isWanted, summariseFor(key));
      // The walk of a listing that was closed meanwhile ends like one that has seen everything.
      if (isClosed(listing)) throw apiError('cursor_expired');
      if (!ended) return { entries, cursor: `${listing.id}.${number + 1}` };
      listing.state = 'ended';
      // Nobody holds a cursor of a listing that ends with its first page.
      if (number === 1) close(listing);
      return { entries, cursor: undefined };
    } catch (thrown) {
      close(listing);
      throw toStorageError('read', thrown);
    }
  };

  const turnPage = (listing: Listing, limit: number): Promise<Page> => {
    const number = listing.number + 1;
    listing.number = number;
    listing.page = listing.page.then(() => makePage(listing, number, limit));
    return listing.page;
  };

  return {
    first(key, prefix, limit) {
      checkFolder();
      closeIdle();
      const onUnreadable = (subFolder: string, code: string) =>
        log.warn('a sub-folder of the key files cannot be listed', { subFolder, code });
      const listing: Listing = {
        id: newId(),
        key,
        prefix,
        walk: walk(folder, searchesFor(prefix, key.streams), onUnreadable),
        number: 0,
        page: Promise.resolve({ entries: [], cursor: undefined }),
        usedAt: now(),
        state: 'open',
      };
      add(listing);
      return turnPage(listing, limit);
    },
    next(key, cursor, prefix, limit) {
      closeIdle();
      const [, id = '', number = ''] = /^([^.]+)\.(\d{1,9})$/.exec(cursor) ?? [];
      const listing = listings.get(id);
      if (!listing || !isOf(listing.key, key)) throw apiError('cursor_expired');
      if (prefix !== undefined && prefix !== listing.prefix) throw anotherPrefix();
      const pages = Number(number) - listing.number;
      if (pages !== 0 && (pages !== 1 || listing.state !== 'open')) throw apiError('cursor_expired');
      listing.usedAt = now();
      listings.delete(id);
      listings.set(id, listing);
      return pages === 0 ? listing.page : turnPage(listing, limit);
    },
    close() {
      for (const listing of listings.values()) close(listing);
    },
  };
}

function isClosed({ state }: Listing): boolean {
  return state === 'closed';
}

/** A listing is its key's alone, and not even that one's once its reach has changed. */
function isOf(opener: ApiKey, key: ApiKey): boolean {
  return JSON.stringify([opener.name, opener.streams]) === JSON.stringify([key.name, key.streams]);
}

function anotherPrefix(): HttpError {
  const description =
    'prefix: is not the one that this cursor began with; leave it out, or start again without cursor.';
  return apiError('invalid_query', description);
}

/** Goes on with a walk until so many key files are described, or enough entries were looked at; `ended`: it is over. */
type Collect = (
  walk: Walk,
  limit: number,
  isWanted: (streamId: StreamId) => boolean,
  summarise: Summarise,
) => Promise<{ readonly entries: readonly KeyFileEntry[]; readonly ended: boolean }>;

/** How many folder entries a page looks at before it is answered with what was found, few or none. */
const MAX_LOOKED_AT = 20_000;
/** How long a page is worked on before others have their turn. */
const SLICE_MS = 4;

/**
 * Makes pages of the key files under `folder`. Files are read at once, as for a GET (`read-file.ts` says why), but in
 * slices: however many pages are under way, each turn of the event loop holds one slice at most. `now` answers
 * monotonic milliseconds.
 */
export function createCollect(folder: string, now: () => number): Collect {
  let turn: Promise<void> = Promise.resolve();
  const nextTurn = () => {
    turn = turn.then(() => new Promise((resolve) => setImmediate(resolve)));
    return turn;
  };

  return async (walk, limit, isWanted, summarise) => {
    const entries: KeyFileEntry[] = [];
    let ended = false;
    await nextTurn();
    let since = now();
    for (let lookedAt = 0; entries.length < limit && lookedAt < MAX_LOOKED_AT; lookedAt += 1) {
      if (now() - since >= SLICE_MS) {
        await nextTurn();
        since = now();
      }
      const { done, value: streamId } = walk.next();
      if (done) {
        ended = true;
        break;
      }
      if (streamId === undefined || !isWanted(streamId)) continue;
      const entry = describeKeyFile(folder, streamId, summarise);
      if (entry) entries.push(entry);
    }
    // A folder that has vanished must not pass for one without key files.
    statSync(`${folder}/.`);
    return { entries, ended };
  };
}
