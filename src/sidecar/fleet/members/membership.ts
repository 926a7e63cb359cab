import { setMaxListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { isWithinPrefixes } from '../../../api/stream-id';
import { cached } from '../../../http/cached';
import { describeThrown } from '../../../http/errors';
import { queueByName } from '../../storage/key-file-store';
import { type Change, EngineError, type Lease, type StoredValue } from '../engine/engine';
import type { AwaitedChange, FleetParts } from '../fleet';
import {
  heartbeatValue,
  lackOf,
  listPackagers,
  MAX_ROUNDS,
  type Packager,
  type Report,
  readHeartbeat,
  readRegistration,
  registrationValue,
  reportText,
  reportValue,
  retire,
} from './packagers';

export type Membership = ReturnType<typeof createMembership>;

type Parts = Pick<FleetParts, 'engine' | 'keys' | 'name' | 'streams' | 'version' | 'log' | 'clock' | 'now'>;

export interface MembershipOptions extends Parts {
  /** Of its folder, `LedgerHead.id`. */
  readonly id: () => string;
  readonly report: () => Report;
  /** Rejects when the engine holds another fleet, whose clients would wait for this packager. */
  readonly admit: () => Promise<unknown>;
  readonly onNameTaken: (isTaken: boolean) => void;
  readonly pace?: Partial<Pace>;
}

type Pace = typeof PACE;

const PACE = {
  /** How long a packager counts as live after its last heartbeat. */
  leaseSeconds: 15,
  heartbeatMs: 4000,
  /** How soon a taken name is requested again, also after a failure of the engine. */
  retryMs: 5000,
  /** How often the stored name and registration are checked. */
  checkMs: 30_000,
  closeMs: 1000,
  reportMs: 5000,
  /** How long a report that a client waits for collects further changes. */
  gatherMs: 5,
  reportRetryMs: 1000,
  /** Between two reads of the reports while a client waits. */
  pollMs: [3, 250] as readonly [first: number, longest: number],
};

export function createMembership(options: MembershipOptions) {
  const { engine, keys } = options;
  const pace = { ...PACE, ...options.pace };
  const lease = createNameLease({ ...options, pace }, () => reporter.renew());
  const reporter = createReporter({ ...options, pace }, lease);
  let ignored = 0;
  const list = () =>
    listPackagers(engine, keys, (count) => {
      if (ignored === 0 && count > 0) options.log.warn('ignored an invalid name of a packager', { count });
      ignored = count;
    });
  const waiter = createWaiter(list, pace);
  return {
    join: lease.join,
    /** Writes the report within milliseconds, not in up to five seconds. */
    reportSoon: reporter.reportSoon,
    /** By name. @throws EngineError */
    list,
    /** Keys that the last list passed over, because they have no valid name of a packager. */
    get ignored() {
      return ignored;
    },
    waitFor: waiter.waitFor,
    /** Removes a packager that does not run. @throws HttpError 404, 409. @throws EngineError */
    retire: (name: string) => retire(engine, keys, name),
    close() {
      reporter.close();
      waiter.close();
      return lease.close();
    },
  };
}

type PacedOptions = Omit<MembershipOptions, 'pace'> & { readonly pace: Pace };
type NameLease = ReturnType<typeof createNameLease>;

/** Holds a name by a lease that the heartbeat renews. `onHeld`: the name was taken, or a check found it held. */
function createNameLease(options: PacedOptions, onHeld: () => void) {
  const { engine, keys, name, streams, version, log, clock, pace } = options;
  const [liveKey, registrationKey, reportKey] = [keys.live(name), keys.packager(name), keys.report(name)];
  const queue = queueByName();
  let lease: Lease | undefined;
  let held: number | undefined;
  /** The revision at which this process last took the name, also after it lost it. */
  let lastHeld: number | undefined;
  /** The leases that may hold the name for this process. */
  const asked = new Set<string>();
  let isTaken = false;
  let isFaulty = false;
  let isClosed = false;
  let sinceCheckMs = 0;
  let timer: NodeJS.Timeout | undefined;

  const setTaken = (taken: boolean, why?: string) => {
    if (taken === isTaken) return;
    isTaken = taken;
    if (taken) log.warn('another sidecar runs under the name of this packager', { name, why });
    else log.info('the name of this packager is free again', { name });
    options.onNameTaken(taken);
  };

  /** Undefined: the name is free, or this folder's sidecar had it before its restart. */
  const otherHolder = (stored: StoredValue | undefined): string | undefined => {
    if (!stored) return undefined;
    const heartbeat = readHeartbeat(stored.value);
    if (heartbeat.id !== options.id()) return 'it has another key-file folder';
    // A restored engine has an older heartbeat of this process than the last.
    const isCopy = lastHeld !== undefined && stored.revision > lastHeld && !asked.has(heartbeat.lease);
    return isCopy ? 'its key-file folder is a copy of the one here' : undefined;
  };

  const missingChanges = async (values: readonly (StoredValue | undefined)[]): Promise<readonly Change[]> => {
    const [live, registered, reported] = values;
    const changes: Change[] = [];
    if (!live || live.revision !== held || lease === undefined || readHeartbeat(live.value).lease !== lease) {
      await options.admit();
      lease ??= await engine.grant(pace.leaseSeconds);
      asked.add(lease);
      const value = heartbeatValue(options.id(), lease);
      changes.push({ key: liveKey, expected: live?.revision ?? 0, value, lease });
    }
    const former = registered && readRegistration(registered.value);
    const since = former?.id === options.id() ? former.since : clock().getTime();
    const wanted = { id: options.id(), streams, since, version };
    // A report has a revision for each range of the former selection: with the new one it would be wrong.
    if (former && reported && !isDeepStrictEqual(former.streams, streams))
      changes.push({ key: reportKey, expected: reported.revision, value: undefined });
    if (!former || !isDeepStrictEqual(former, wanted)) {
      const value = registrationValue(wanted);
      changes.push({ key: registrationKey, expected: registered?.revision ?? 0, value });
    }
    return changes;
  };

  /** False: another sidecar has the name. @throws EngineError */
  const claimName = async (): Promise<boolean> => {
    for (let round = 0; round < MAX_ROUNDS && !isClosed; round += 1) {
      const { values } = await engine.read([liveKey, registrationKey, reportKey]);
      const other = otherHolder(values[0]);
      if (other !== undefined) {
        held = undefined;
        lease = undefined;
        setTaken(true, other);
        return false;
      }
      const changes = await missingChanges(values);
      if (changes.length === 0) {
        onHeld();
        return true;
      }
      const guard = { key: liveKey, revision: values[0]?.revision ?? 0 };
      const changed = await engine.change(changes, guard).catch((thrown: unknown) => {
        // It may have been refused because the lease has ended. Without the right, another would be refused, too.
        if (!(thrown instanceof EngineError && thrown.kind === 'denied')) lease = undefined;
        throw thrown;
      });
      const [first, last] = [changed?.[0], changed?.at(-1)];
      const takesName = changes[0]?.key === liveKey;
      if (takesName && first?.made) [held, lastHeld] = [first.revision, first.revision];
      // Otherwise the registration was removed meanwhile.
      if (!last?.made) continue;
      setTaken(false);
      if (takesName) onHeld();
      return true;
    }
    throw new EngineError('unavailable', 'others keep changing the registration of this packager');
  };

  const renew = async (): Promise<boolean> => {
    if (lease === undefined || held === undefined) return claimName();
    const isKept = await engine.keepAlive(lease);
    sinceCheckMs += pace.heartbeatMs;
    if (isKept && sinceCheckMs < pace.checkMs) return true;
    sinceCheckMs = 0;
    if (!isKept) [lease, held] = [undefined, undefined];
    return claimName();
  };

  const step = (run: () => Promise<boolean>): Promise<boolean> =>
    queue('', async () => {
      try {
        const isHeld = await run();
        if (isFaulty) log.info('renewed the membership lease in etcd again', { name });
        isFaulty = false;
        return isHeld;
      } catch (thrown) {
        if (!isFaulty && !isClosed)
          log.warn('failed to renew the membership lease in etcd', { name, cause: describeThrown(thrown) });
        isFaulty = true;
        throw thrown;
      } finally {
        plan(held === undefined ? pace.retryMs : pace.heartbeatMs);
      }
    });

  const plan = (ms: number) => {
    clearTimeout(timer);
    if (!isClosed) timer = setTimeout(() => void step(renew).catch(() => undefined), ms).unref();
  };

  return {
    /** False: the sidecar of another folder has the name, which is requested again. @throws EngineError */
    join: () => step(claimName),
    /** The revision at which the name was taken; undefined: it isn't held. */
    heldSince: () => held,
    checkSoon(): void {
      sinceCheckMs = pace.checkMs;
      plan(0);
    },
    async close(): Promise<void> {
      isClosed = true;
      clearTimeout(timer);
      const leave = queue('', async () => {
        if (lease !== undefined) await engine.revoke(lease);
      });
      await Promise.race([leave.catch(() => undefined), pause(pace.closeMs, undefined, { ref: false })]);
    },
  };
}

/** After a report comes a rest this many times as long as it took: the reports of many packagers slow the engine. */
const REST = 2;

function createReporter(options: PacedOptions, lease: NameLease) {
  const { engine, keys, name, log, now, pace } = options;
  const key = keys.report(name);
  let sent: string | undefined;
  let revision = 0;
  let isSending = false;
  let isAwaited = false;
  let isFaulty = false;
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;

  /** False: the name is no longer held. @throws EngineError */
  const write = async (text: string, heldSince: number): Promise<boolean> => {
    const value = reportValue(text, options.clock());
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      // Another packager that has taken the name must not get this report.
      const guard = { key: keys.live(name), revision: heldSince };
      const [answer] = (await engine.change([{ key, expected: revision, value }], guard)) ?? [];
      if (!answer) {
        if (lease.heldSince() === heldSince) lease.checkSoon();
        return false;
      }
      revision = answer.made ? answer.revision : (answer.present?.revision ?? 0);
      if (answer.made) return true;
    }
    throw new EngineError('unavailable', 'another sidecar writes the report of this packager');
  };

  const send = async (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    const heldSince = lease.heldSince();
    const text = reportText(options.id(), options.report());
    if (isSending || heldSince === undefined || text === sent) return;
    [isSending, isAwaited] = [true, false];
    const began = now();
    let pause = 0;
    try {
      if (await write(text, heldSince)) sent = text;
      isFaulty = false;
      pause = Math.max(pace.gatherMs, REST * (now() - began));
    } catch (thrown) {
      if (!isFaulty) log.warn('the report to the fleet failed', { name, cause: describeThrown(thrown) });
      [isFaulty, isAwaited] = [true, true];
      pause = pace.reportRetryMs;
    }
    isSending = false;
    if (isAwaited) sendIn(pause);
  };
  const sendIn = (ms: number) => {
    if (!isClosed) timer ??= setTimeout(send, ms).unref();
  };
  const periodic = setInterval(send, pace.reportMs).unref();
  const reportSoon = () => {
    isAwaited = true;
    if (!isSending) sendIn(pace.gatherMs);
  };

  return {
    reportSoon,
    /** Writes an unchanged report, too: the engine may have lost it, and it says when this packager was last there. */
    renew() {
      sent = undefined;
      reportSoon();
    },
    close() {
      isClosed = true;
      clearInterval(periodic);
      clearTimeout(timer);
    },
  };
}

function createWaiter(list: () => Promise<readonly Packager[]>, pace: Pace) {
  const closing = new AbortController();
  // Each wait adds two listeners.
  setMaxListeners(0, closing.signal);
  /** All waits share a reading that is under way. */
  const readAll = cached(0, () => 0, list);

  const behind = async (changes: readonly AwaitedChange[]): Promise<readonly string[]> =>
    (await readAll())
      .filter((packager) => {
        const reason = lackOf(packager);
        return changes.some(
          ({ streamId, revision }) =>
            isWithinPrefixes(packager.streams, streamId) && reason(streamId, revision) !== undefined,
        );
      })
      .map(({ name }) => name);

  return {
    /** @see Fleet.waitFor @throws EngineError when the packagers could not be read in time. */
    async waitFor(changes: readonly AwaitedChange[], seconds: number): Promise<readonly string[]> {
      const untilClosed = { signal: closing.signal, ref: false };
      // Not by AbortSignal.any: Node 20 forgets a timeout that nothing else holds.
      let isOver = false;
      const deadline = pause(seconds * 1000, undefined, untilClosed).finally(() => {
        isOver = true;
      });
      let names: readonly string[] | undefined;
      let fault: unknown = new EngineError('unavailable', 'the packagers could not be listed in time');
      const poll = async () => {
        const [first, longest] = pace.pollMs;
        for (let ms = first; names?.length !== 0 && !isOver; ms = Math.min(ms * 1.25, longest)) {
          await pause(ms, undefined, untilClosed);
          try {
            names = await behind(changes);
          } catch (thrown) {
            fault = thrown;
          }
        }
      };
      // A reading may take longer than the wait.
      await Promise.race([poll(), deadline]).catch(() => undefined);
      if (!names) throw fault;
      return names;
    },
    close: () => closing.abort(),
  };
}
