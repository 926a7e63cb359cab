import { takes } from '../../../api/fleet';
import type { StreamId } from '../../../api/stream-id';
import { describeThrown } from '../../../http/errors';
import type { Log } from '../../../http/log';
import { type Engine, EngineError, type KeyRange, type Watch, type WatchedEvent } from '../engine/engine';
import type { AwaitedChange } from '../fleet';
import { followed, type Places } from '../places';
import {
  type KeptReport,
  listRange,
  ofPackager,
  type Registration,
  readRegistration,
  readReport,
} from './roll';
import { isCut } from './who-has';

export interface AwaitingOptions {
  readonly engine: Engine;
  readonly places: Places;
  readonly log: Log;
  readonly pace: AwaitingPace;
}

/** In ms. */
export interface AwaitingPace {
  /** How long the watch stays when nobody waits any more: the next one may come soon. */
  readonly lingerMs: number;
  /** How soon the engine is asked again that failed. */
  readonly relistMs: number;
}

/** Those who wait until packagers have what they changed. They share one watch. */
export interface Awaiting {
  /** @see Fleet.waitFor @throws EngineError when it never came to know who the packagers are. */
  waitFor(changes: readonly AwaitedChange[], seconds: number): Promise<readonly string[]>;
  close(): void;
}

/** What somebody waits for, asked by packager. */
interface Goal {
  /** The revisions that a packager must have of what it follows; 0: it is of no stream there. */
  revisionsFor(streams: readonly string[] | undefined): readonly number[];
  has(streamId: string): boolean;
  readonly streams: ReadonlyMap<string, number>;
}

interface Waiter {
  readonly goal: Goal;
  /** The packagers that have it not yet; undefined: they are not known. */
  pending: Set<string> | undefined;
  /** Ends the wait, as it stands. */
  finish(): void;
}

/** A report, with what is asked of it often. */
interface Heard extends KeptReport {
  readonly names: ReadonlySet<string>;
  readonly isCut: boolean;
}

/** The packagers, from when they were listed until the watch ends. */
interface Session {
  readonly registrations: Map<string, Registration>;
  readonly reports: Map<string, Heard>;
  watches: readonly Watch[];
  /** Whether it may have missed something that was changed before now. */
  isLost: boolean;
}

export function createAwaiting({ engine, places, log, pace }: AwaitingOptions): Awaiting {
  const waiters = new Set<Waiter>();
  let session: Session | undefined;
  let isOpening = false;
  let isClosed = false;
  let fault: unknown;
  let timer: NodeJS.Timeout | undefined;

  const lacks = ({ registrations, reports }: Session, name: string, goal: Goal): boolean => {
    const registration = registrations.get(name);
    if (!registration) return false;
    const { id, streams } = registration;
    const revisions = goal.revisionsFor(streams);
    if (revisions.every((revision) => revision === 0)) return false;
    const found = reports.get(name);
    const report = found && ofPackager(id, found);
    if (!report || report.isCut) return true;
    if (revisions.some((revision, index) => revision > (report.applied[index] ?? 0))) return true;
    const isLacked = (streamId: string) =>
      report.names.has(streamId) && goal.has(streamId) && takes(streams, streamId);
    const fewer = report.names.size < goal.streams.size ? report.names : goal.streams.keys();
    return [...fewer].some(isLacked);
  };

  const look = (current: Session, waiter: Waiter) => {
    waiter.pending = new Set(
      [...current.registrations.keys()].filter((name) => lacks(current, name, waiter.goal)),
    );
    if (waiter.pending.size === 0) waiter.finish();
  };

  const lookAt = (current: Session, names: Iterable<string>) => {
    for (const name of new Set(names)) {
      for (const waiter of waiters) {
        if (lacks(current, name, waiter.goal)) waiter.pending?.add(name);
        else waiter.pending?.delete(name);
        if (waiter.pending?.size === 0) waiter.finish();
      }
    }
  };

  const end = (): void => {
    for (const watch of session?.watches ?? []) watch.close();
    session = undefined;
  };

  /** Takes what a range holds, or what has changed of it. */
  const noteRegistration = (current: Session, name: string, { value }: Pick<WatchedEvent, 'value'>) => {
    if (value === undefined) current.registrations.delete(name);
    else current.registrations.set(name, readRegistration(value));
  };
  const noteReport = (
    current: Session,
    name: string,
    { value, revision }: Pick<WatchedEvent, 'value' | 'revision'>,
  ) => {
    if (value === undefined) {
      current.reports.delete(name);
      return;
    }
    const report = readReport({ value, revision });
    current.reports.set(name, {
      ...report,
      names: new Set(Object.keys(report.lacks)),
      isCut: isCut(report),
    });
  };

  const follow = (current: Session, range: KeyRange, from: number, note: typeof noteReport): Watch =>
    engine.watch(range, {
      from,
      async onEvents(events) {
        current.isLost = false;
        for (const event of events) note(current, places.nameOf(event.key), event);
        if (current === session)
          lookAt(
            current,
            events.map(({ key }) => places.nameOf(key)),
          );
      },
      onPulse() {
        current.isLost = false;
      },
      onLost() {
        current.isLost = true;
      },
      onEnd() {
        if (current !== session) return;
        end();
        openLater();
      },
    });

  const open = async (): Promise<void> => {
    const current: Session = { registrations: new Map(), reports: new Map(), watches: [], isLost: false };
    const [registered, reported] = await Promise.all([
      listRange(engine, places.packagers),
      listRange(engine, places.reports),
    ]);
    if (isClosed || waiters.size === 0) return;
    for (const stored of registered.values) noteRegistration(current, places.nameOf(stored.key), stored);
    for (const stored of reported.values) noteReport(current, places.nameOf(stored.key), stored);
    session = current;
    current.watches = [
      follow(current, places.packagers, registered.next, noteRegistration),
      follow(current, places.reports, reported.next, noteReport),
    ];
    for (const waiter of waiters) look(current, waiter);
  };

  const openSoon = (): void => {
    clearTimeout(timer);
    if (isOpening || session || isClosed || waiters.size === 0) return;
    isOpening = true;
    open()
      .then(
        () => {
          fault = undefined;
          return 0;
        },
        (thrown: unknown) => {
          if (fault === undefined)
            log.warn('the reports of the packagers can not be read', { cause: describeThrown(thrown) });
          fault = thrown;
          return pace.relistMs;
        },
      )
      .then((ms) => {
        isOpening = false;
        if (ms > 0) openLater();
        else openSoon();
      });
  };
  const openLater = (): void => {
    clearTimeout(timer);
    if (!isClosed && waiters.size > 0) timer = setTimeout(openSoon, pace.relistMs).unref();
  };

  const leave = (waiter: Waiter) => {
    waiters.delete(waiter);
    if (waiters.size > 0 || isClosed) return;
    clearTimeout(timer);
    timer = setTimeout(end, pace.lingerMs).unref();
  };

  return {
    waitFor(changes, seconds) {
      if (changes.length === 0) return Promise.resolve([]);
      return new Promise((resolve, reject) => {
        const finish = () => {
          if (!waiters.has(waiter)) return;
          clearTimeout(deadline);
          leave(waiter);
          if (waiter.pending) resolve([...waiter.pending].sort());
          else reject(fault ?? new EngineError('unavailable', 'the packagers could not be listed in time'));
        };
        const waiter: Waiter = { goal: goalOf(changes), pending: undefined, finish };
        const deadline = setTimeout(finish, seconds * 1000);
        waiters.add(waiter);
        clearTimeout(timer);
        if (session?.isLost) end();
        if (session) look(session, waiter);
        else openSoon();
      });
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
      end();
      for (const waiter of [...waiters]) waiter.finish();
    },
  };
}

/** Changes by what packagers take: those that take the same share the answer. */
function goalOf(changes: readonly AwaitedChange[]): Goal {
  const streams = new Map<StreamId, number>();
  for (const { streamId, revision } of changes)
    streams.set(streamId, Math.max(streams.get(streamId) ?? 0, revision));
  const sorted = [...streams].sort(([one], [other]) => (one < other ? -1 : 1));
  const known = new Map<string, readonly number[]>();
  const highest = (beginning: string): number => {
    let revision = 0;
    for (let index = firstFrom(sorted, beginning); index < sorted.length; index += 1) {
      const [streamId = '', of = 0] = sorted[index] ?? [];
      if (!streamId.startsWith(beginning)) break;
      revision = Math.max(revision, of);
    }
    return revision;
  };
  return {
    streams,
    has: (streamId) => (streams as ReadonlyMap<string, number>).has(streamId),
    revisionsFor(streams) {
      const name = JSON.stringify(streams);
      const revisions = known.get(name) ?? followed(streams).map(highest);
      known.set(name, revisions);
      return revisions;
    },
  };
}

/** The index of the first stream, in the order of code units, that is not before a text. */
function firstFrom(sorted: readonly (readonly [string, number])[], text: string): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle]?.[0] ?? '') < text) low = middle + 1;
    else high = middle;
  }
  return low;
}
