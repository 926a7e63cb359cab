import type { StreamId } from '../../../api/stream-id';
import { createSemaphore } from '../../../http/semaphore';
import type {
  EngineError,
  KeyRange,
  Moment,
  StoredValue,
  Watch,
  WatchEnd,
  WatchedEvent,
} from '../engine/engine';
import type { FleetParts } from '../fleet';
import type { Ledger } from '../ledger/ledger';
import type { Apply, Origin } from './apply';
import type { Versions } from './seal';

interface ReplicationOptions extends Pick<FleetParts, 'engine' | 'keys' | 'seal' | 'isTaken'> {
  readonly apply: Apply;
  readonly ledger: Pick<Ledger, 'get' | 'records'>;
  readonly versions: Pick<Versions, 'see'>;
  readonly ranges: readonly KeyRange[];
  readonly onFleetChanged: () => void;
  readonly onHeartbeat: (at: Moment) => void;
  readonly onLost: (cause: EngineError) => void;
  /** Called when a change was applied that a client waits for. */
  readonly onAwaited: () => void;
}

export type Replication = ReturnType<typeof createReplication>;

/** Entries of one answer, which has some 200 KB: more, and many would stay in memory until the next full collection. */
const PAGE = 128;
/** Files that are written together share the syncs of the ledger and of the folder. */
const MAX_UNDER_WAY = 128;

export function createReplication(options: ReplicationOptions) {
  const { engine, keys, seal, apply, ledger, ranges, isTaken } = options;
  const underWay = createSemaphore(MAX_UNDER_WAY);
  const absent = new Set<StreamId>();
  const missingSecrets = new Map<StreamId, string>();
  const formerSecrets = new Set<StreamId>();
  let applied: number[] = [];
  let since: Moment = { cluster: '', term: 0, revision: 0 };

  /** Returns whether a client waits for the entry. */
  const applyStored = async ({ key, value, revision }: StoredValue, origin: Origin): Promise<boolean> => {
    const streamId = keys.streamOf(key);
    if (streamId === undefined) return false;
    absent.delete(streamId);
    missingSecrets.delete(streamId);
    formerSecrets.delete(streamId);
    const sealed = seal();
    const entry = sealed.open(key, value, streamId);
    using _place = await underWay.enter();
    if (!entry) {
      const secret = sealed.missingSecret(value);
      if (secret !== undefined) missingSecrets.set(streamId, secret);
      await apply.withoutEntry(streamId, 'unreadable');
      return false;
    }
    if (!sealed.isCurrent(value)) formerSecrets.add(streamId);
    options.versions.see(entry.version);
    await apply.entry(entry, revision, origin);
    return entry.awaited;
  };

  /** An absent key deletes nothing: the file stays until a tombstone comes. */
  const applyAbsence = async (key: string): Promise<boolean> => {
    const streamId = keys.streamOf(key);
    if (streamId === undefined) return false;
    missingSecrets.delete(streamId);
    formerSecrets.delete(streamId);
    if (ledger.get(streamId)) absent.add(streamId);
    await apply.withoutEntry(streamId, undefined);
    return false;
  };

  const levelRange = async (range: KeyRange, begun: Moment | undefined, seen: Set<StreamId>) => {
    let at = begun;
    let written: Promise<unknown> = Promise.resolve();
    let page = engine.list(range, { limit: PAGE, ...(at && { revision: at.revision }) });
    for (;;) {
      const { at: pageAt, values, more } = await page;
      at ??= pageAt;
      const after = values.at(-1)?.key;
      const isLast = !more || after === undefined;
      // The next page comes while this one is written.
      if (!isLast) page = engine.list({ ...range, after }, { limit: PAGE, revision: at.revision });
      page.catch(() => undefined);
      for (const { key } of values) {
        const streamId = keys.streamOf(key);
        if (streamId !== undefined) seen.add(streamId);
      }
      const writing = Promise.all(values.map((found) => applyStored(found, 'level')));
      // No more than two pages are in memory.
      await written;
      written = writing;
      if (isLast) break;
    }
    await written;
    return at;
  };

  return {
    /** The revision up to which each range is applied; empty before all were. */
    get applied(): readonly number[] {
      return applied;
    },
    /** Streams of the ledger that the engine has nothing of, not even a tombstone. */
    absent,
    /** Ids of secrets that this packager does not have, by the streams whose entries they seal. */
    missingSecrets,
    /** Streams whose entries are sealed with another secret of this packager than the first. */
    formerSecrets,
    /** Applies everything that the engine has. @throws EngineError */
    async level(): Promise<void> {
      const seen = new Set<StreamId>();
      let begun: Moment | undefined;
      for (const range of ranges) begun = await levelRange(range, begun, seen);
      since = begun ?? since;
      applied = ranges.map(() => since.revision);
      absent.clear();
      for (const former of [missingSecrets, formerSecrets, apply.lacks])
        for (const streamId of former.keys()) if (!seen.has(streamId)) former.delete(streamId);
      for (const [streamId] of ledger.records())
        if (isTaken(streamId) && !seen.has(streamId)) absent.add(streamId);
    },
    /** Applies each change after the level. Resolves when everything has to be read again, or at the signal. */
    follow: (signal: AbortSignal) =>
      new Promise<void>((resolve) => {
        const watches: Watch[] = [];
        /** Ranges that are not followed at present: a right to one alone may be missing. */
        const lost = new Set<KeyRange>();
        const end = () => {
          for (const watch of watches.splice(0)) watch.close();
          signal.removeEventListener('abort', end);
          resolve();
        };
        signal.addEventListener('abort', end);
        const onEnd = (why: WatchEnd) => {
          // Revisions of another history mean nothing in this one.
          if (why === 'restored') applied = [];
          end();
        };
        const begun = { from: since.revision + 1, since, onEnd };
        for (const [index, range] of ranges.entries()) {
          const onHeartbeat = (at: Moment) => {
            lost.delete(range);
            if (lost.size === 0) options.onHeartbeat(at);
          };
          const onLost = (cause: EngineError) => {
            lost.add(range);
            options.onLost(cause);
          };
          const onEvents = async (events: readonly WatchedEvent[], at: Moment) => {
            const awaited = await Promise.all(
              events.map(({ key, value, revision }) =>
                value ? applyStored({ key, value, revision }, 'watched') : applyAbsence(key),
              ),
            );
            if (watches.length === 0) return;
            applied = applied.with(index, events.at(-1)?.revision ?? 0);
            onHeartbeat(at);
            if (awaited.includes(true)) options.onAwaited();
          };
          watches.push(engine.watch(range, { ...begun, onEvents, onHeartbeat, onLost }));
        }
        // This key changes when the engine is emptied or the fleet is resealed.
        const onEvents = async () => options.onFleetChanged();
        watches.push(engine.watch({ prefix: keys.fleet }, { ...begun, onEvents }));
        if (signal.aborted) end();
      }),
    /** Resolves when no entry is being applied. None can be afterwards. */
    async idle(): Promise<void> {
      for (let place = 0; place < MAX_UNDER_WAY; place += 1) await underWay.enter();
    },
    /** Applies the engine's present entries of some streams. @throws EngineError */
    async reapply(streams: readonly StreamId[]): Promise<void> {
      const { values } = await engine.read(streams.map(keys.entry));
      await Promise.all(values.map((found) => found && applyStored(found, 'reread')));
    },
  };
}
