import type { StreamId } from '../../../api/stream-id';
import { createSemaphore } from '../../../http/semaphore';
import type {
  Engine,
  EngineError,
  KeyRange,
  Moment,
  StoredValue,
  Watch,
  WatchEnd,
  WatchedEvent,
} from '../engine/engine';
import type { EntryResult } from '../fleet';
import type { Places } from '../places';
import type { Applied, Apply } from './apply';
import type { Entry, Seal } from './entry';

interface FollowOptions {
  readonly engine: Engine;
  readonly places: Places;
  readonly seal: () => Seal;
  readonly apply: Apply;
  /** The ranges of the entries that this packager takes. */
  readonly ranges: readonly KeyRange[];
  /** Whether an entry was made, and applied, by this very process: what comes back of it needs no second look. */
  readonly isOwn: (entry: Entry) => boolean;
  /** Hears what became of each entry. `isNews`: it came while the packager was level. */
  readonly onApplied: (entry: Entry, applied: Applied, isNews: boolean) => void;
  readonly onResult: (result: EntryResult) => void;
  /** Hears of every version that is seen. */
  readonly onVersion: (version: number) => void;
  /** Hears of a stream whose entry is no longer in the engine, and of one that is (again). */
  readonly onPresence: (streamId: StreamId, isThere: boolean) => void;
  /** Hears that the description of the fleet has changed. */
  readonly onFleetChanged: () => void;
  readonly onPulse: (at: Moment) => void;
  readonly onLost: (cause: EngineError) => void;
  /** Hears that something was applied, and whether somebody waits for it. */
  readonly onProgress: (isAwaited: boolean) => void;
}

/** Brings this packager level with the fleet, and keeps it so. */
export interface Follow {
  /** The revisions up to which each range is applied; empty before all were. */
  readonly applied: readonly number[];
  /** Takes all that the engine has, and answers the streams that it has something of. @throws EngineError */
  level(): Promise<ReadonlySet<StreamId>>;
  /** Follows the changes after the level; resolves when it has to begin anew. `signal` ends it. */
  changes(signal: AbortSignal): Promise<void>;
  /** Takes what the engine has of some streams once more. @throws EngineError */
  again(streams: readonly StreamId[]): Promise<void>;
}

/** How an entry came to be looked at. */
type How = 'level' | 'news' | 'again';

/** Entries of one answer: a megabyte or two. */
const PAGE = 500;
/** How many files are written at a time: they share the syncs of the ledger and of the folder. */
const MAX_UNDER_WAY = 128;

export function createFollow(options: FollowOptions): Follow {
  const { engine, places, seal, apply, ranges, onApplied, onResult, onVersion, onPresence, onProgress } =
    options;
  const underWay = createSemaphore(MAX_UNDER_WAY);
  let applied: number[] = [];
  /** Of the last level. */
  let since: Moment = { cluster: '', term: 0, revision: 0 };

  /** Takes an entry as the engine holds it; undefined for a key that is none. */
  const take = async ({ key, value, revision }: StoredValue, how: How): Promise<boolean> => {
    const streamId = places.streamOf(key);
    if (streamId === undefined) return false;
    onPresence(streamId, true);
    const opened = seal().open(key, value, streamId);
    const leave = await underWay.enter();
    try {
      if (!opened.ok) {
        await apply.without(streamId, 'unreadable');
        onResult('unreadable');
        return false;
      }
      const { entry } = opened;
      onVersion(entry.version);
      if (options.isOwn(entry)) {
        await apply.entry(entry, revision, 'returned');
        return entry.awaited;
      }
      const done = await apply.entry(entry, revision, how === 'again' ? 'reread' : 'told');
      onResult(done.result);
      onApplied(entry, done, how === 'news');
      return entry.awaited;
    } finally {
      leave();
    }
  };

  /** Answers whether somebody waits for one of them. */
  const takeEvents = async (events: readonly WatchedEvent[]): Promise<boolean> => {
    const awaited = await Promise.all(
      events.map(async ({ key, value, revision }) => {
        if (value) return take({ key, value, revision }, 'news');
        // What is absent deletes nothing: the file stays until the fleet says otherwise.
        const streamId = places.streamOf(key);
        if (streamId !== undefined) {
          onPresence(streamId, false);
          await apply.without(streamId, undefined);
        }
        return false;
      }),
    );
    return awaited.includes(true);
  };

  return {
    get applied() {
      return applied;
    },
    async level() {
      const seen = new Set<StreamId>();
      let begun: Moment | undefined;
      let written: Promise<unknown> = Promise.resolve();
      for (const range of ranges) {
        let page = engine.list(range, { limit: PAGE, ...(begun && { revision: begun.revision }) });
        for (;;) {
          const { at, values, more } = await page;
          begun ??= at;
          const { revision } = begun;
          const after = values.at(-1)?.key;
          const isLast = !more || after === undefined;
          // The next page comes while this one is written.
          if (!isLast) page = engine.list({ ...range, after }, { limit: PAGE, revision });
          page.catch(() => undefined);
          for (const { key } of values) {
            const streamId = places.streamOf(key);
            if (streamId !== undefined) seen.add(streamId);
          }
          const writing = Promise.all(values.map((found) => take(found, 'level')));
          // No file waits for the last one of the page before, and no more than two pages are in memory.
          await written;
          written = writing;
          if (isLast) break;
        }
      }
      await written;
      since = begun ?? since;
      applied = ranges.map(() => begun?.revision ?? 0);
      onProgress(false);
      return seen;
    },
    changes: (signal) =>
      new Promise((resolve) => {
        const watches: Watch[] = [];
        let isOver = false;
        const end = () => {
          isOver = true;
          for (const watch of watches) watch.close();
          signal.removeEventListener('abort', end);
          resolve();
        };
        signal.addEventListener('abort', end);
        const { onPulse, onLost } = options;
        const onEnd = ({ kind }: WatchEnd) => {
          // Revisions of another history say nothing of this one.
          if (kind === 'restored') applied = [];
          end();
        };
        const begun = { from: Math.min(...applied) + 1, since, onEnd };
        for (const [index, range] of ranges.entries()) {
          const onEvents = async (events: readonly WatchedEvent[], at: Moment) => {
            const isAwaited = await takeEvents(events);
            if (isOver) return;
            applied = applied.with(index, Math.max(applied[index] ?? 0, events.at(-1)?.revision ?? 0));
            onPulse(at);
            onProgress(isAwaited);
          };
          watches.push(engine.watch(range, { ...begun, onEvents, onPulse, onLost }));
        }
        // Who empties the engine, or seals it anew, changes this too.
        const onEvents = async () => options.onFleetChanged();
        watches.push(engine.watch({ prefix: places.fleet }, { ...begun, onEvents }));
        if (signal.aborted) end();
      }),
    async again(streams) {
      const { values } = await engine.read(streams.map(places.entry));
      await Promise.all(values.map((found) => found && take(found, 'again')));
      onProgress(false);
    },
  };
}
