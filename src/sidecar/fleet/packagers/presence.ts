import { isDeepStrictEqual } from 'node:util';
import { describeThrown } from '../../../http/errors';
import type { Log } from '../../../http/log';
import { type Change, type Engine, EngineError, type Lease, type StoredValue } from '../engine/engine';
import type { Places } from '../places';
import { lifeValue, readLife, readRegistration, registrationValue } from './roll';

/** What a packager is called, and how it is known that it is the same one. */
export interface PresenceOptions {
  readonly engine: Engine;
  readonly places: Places;
  readonly name: string;
  readonly streams: readonly string[] | undefined;
  readonly version: string;
  /** Of the folder, `LedgerHead.id`. */
  readonly id: () => string;
  readonly log: Log;
  readonly clock: () => Date;
  readonly onNameTaken: (taken: boolean) => void;
  /** Hears that the name is held, each time that it was written anew. */
  readonly onHeld: () => void;
  readonly pace: PresencePace;
}

/** In ms, but for the lease. */
export interface PresencePace {
  /** How long a packager counts as live that says nothing any more, in seconds. */
  readonly leaseSeconds: number;
  readonly keepAliveMs: number;
  /** How soon it is tried again to get a name that is taken, or that could not be asked for. */
  readonly retryMs: number;
  /** How often it is looked whether the name and the registration still stand there. */
  readonly lookMs: number;
  /** How long the end waits for the engine. */
  readonly closeMs: number;
}

/** Holds a name among the packagers, with a lease that is kept alive. */
export interface Presence {
  /** @see Membership.join */
  join(): Promise<boolean>;
  /** The revision at which the name was taken for this sidecar; undefined: it does not hold it. */
  held(): number | undefined;
  /** Looks soon whether the name is still held. */
  look(): void;
  close(): Promise<void>;
}

/** Others that change the same keys at the same moment: so often it is decided again. */
const MAX_ROUNDS = 5;

export function createPresence(options: PresenceOptions): Presence {
  const { engine, places, name, log, pace } = options;
  const keys = { life: places.live(name), registration: places.packager(name), report: places.report(name) };
  let lease: Lease | undefined;
  let held: number | undefined;
  /** The revision at which this process held the name last. */
  let lastHeld: number | undefined;
  /** The leases under which this process may have taken the name. */
  const asked = new Set<string>();
  let isTaken = false;
  let isFaulty = false;
  let isClosed = false;
  let looked = 0;
  let timer: NodeJS.Timeout | undefined;
  let turn: Promise<unknown> = Promise.resolve();

  /** What is done with the name is done one after another. */
  const inTurn = <Answer>(step: () => Promise<Answer>): Promise<Answer> => {
    const done = turn.then(step, step);
    turn = done.catch(() => undefined);
    return done;
  };

  const tellTaken = (taken: boolean, why?: string) => {
    if (taken === isTaken) return;
    isTaken = taken;
    if (taken) log.warn('another sidecar runs under the name of this packager', { name, why });
    else log.info('the name of this packager is free again', { name });
    options.onNameTaken(taken);
  };

  /** Who else lives under the name; undefined: nobody, or this folder's sidecar before its restart. */
  const otherIn = (stored: StoredValue | undefined): string | undefined => {
    if (!stored) return undefined;
    const life = readLife(stored.value);
    if (life.id !== options.id()) return 'it has another key-file folder';
    // What a restored engine holds of this process is older than what it held last.
    const isCopy = lastHeld !== undefined && stored.revision > lastHeld && !asked.has(life.lease);
    return isCopy ? 'its key-file folder is a copy of the one here' : undefined;
  };

  const takeLease = async (): Promise<Lease> => {
    lease ??= await engine.grant(pace.leaseSeconds);
    asked.add(lease);
    return lease;
  };

  /** What has to be written for the name to be held by a lease that lasts, and the packager to be registered. */
  const missing = async ([life, registered, reported]: readonly (StoredValue | undefined)[]) => {
    const changes: Change[] = [];
    if (!life || life.revision !== held || lease === undefined || readLife(life.value).lease !== lease) {
      const taken = await takeLease();
      const value = lifeValue(options.id(), taken);
      changes.push({ key: keys.life, expected: life?.revision ?? 0, value, lease: taken });
    }
    const former = registered && readRegistration(registered.value);
    const since = former?.id === options.id() ? former.since : options.clock().getTime();
    const { streams, version } = options;
    const wanted = { id: options.id(), streams, since, version };
    // A report has a revision for each range of the former selection: read with the new one, it would say what is not so.
    if (former && reported && !isDeepStrictEqual(former.streams, streams))
      changes.push({ key: keys.report, expected: reported.revision, value: undefined });
    if (!former || !isDeepStrictEqual(former, wanted)) {
      const value = registrationValue(wanted);
      changes.push({ key: keys.registration, expected: registered?.revision ?? 0, value });
    }
    return changes;
  };

  /** Has the name held and the packager registered. False: another one lives under the name. @throws EngineError */
  const settle = async (): Promise<boolean> => {
    for (let round = 0; round < MAX_ROUNDS && !isClosed; round += 1) {
      const { values } = await engine.read([keys.life, keys.registration, keys.report]);
      const [life] = values;
      const other = otherIn(life);
      if (other !== undefined) {
        held = undefined;
        lease = undefined;
        tellTaken(true, other);
        return false;
      }
      const changes = await missing(values);
      if (changes.length === 0) return true;
      const done = await change(changes, life?.revision ?? 0);
      if (!done) continue;
      const isHeldAnew = changes[0]?.key === keys.life;
      const [first, last] = [done[0], done.at(-1)];
      if (isHeldAnew && first?.made) {
        [held, lastHeld] = [first.revision, first.revision];
        asked.clear();
        if (lease !== undefined) asked.add(lease);
      }
      // Somebody removed the registration meanwhile.
      if (!last?.made) continue;
      tellTaken(false);
      if (isHeldAnew) options.onHeld();
      return true;
    }
    throw new EngineError('unavailable', 'others keep changing the registration of this packager');
  };

  /** The name is still as it was read, or nothing is changed at all. */
  const change = async (changes: readonly Change[], revision: number) => {
    try {
      return (await engine.change(changes, { key: keys.life, revision }))?.answers;
    } catch (thrown) {
      // It may have been refused since the lease has ended.
      lease = undefined;
      throw thrown;
    }
  };

  const keepUp = async (): Promise<void> => {
    if (lease === undefined || held === undefined) {
      await settle();
      return;
    }
    const isKept = await engine.keepAlive(lease);
    looked += pace.keepAliveMs;
    if (isKept && looked < pace.lookMs) return;
    looked = 0;
    if (!isKept) [lease, held] = [undefined, undefined];
    await settle();
  };

  /** Runs a step, and tells of a fault when it begins and when it ends. */
  const watched = async <Answer>(step: () => Promise<Answer>): Promise<Answer> => {
    try {
      const answer = await step();
      if (isFaulty) log.info('the engine knows again that this packager runs', { name });
      isFaulty = false;
      return answer;
    } catch (thrown) {
      if (!isFaulty && !isClosed)
        log.warn('the engine can not be told that this packager runs', {
          name,
          cause: describeThrown(thrown),
        });
      isFaulty = true;
      throw thrown;
    }
  };

  const plan = (ms: number) => {
    clearTimeout(timer);
    if (isClosed) return;
    timer = setTimeout(() => {
      inTurn(() => watched(keepUp))
        .catch(() => undefined)
        .finally(planNext);
    }, ms).unref();
  };
  const planNext = () => plan(held === undefined ? pace.retryMs : pace.keepAliveMs);

  const leave = async (): Promise<void> => {
    await turn;
    if (lease !== undefined) await engine.revoke(lease);
  };

  return {
    join: () => inTurn(() => watched(settle)).finally(planNext),
    held: () => held,
    look() {
      looked = pace.lookMs;
      plan(0);
    },
    async close() {
      isClosed = true;
      clearTimeout(timer);
      let patience: NodeJS.Timeout | undefined;
      const enough = new Promise<void>((resolve) => {
        patience = setTimeout(resolve, pace.closeMs);
      });
      await Promise.race([leave().catch(() => undefined), enough]);
      clearTimeout(patience);
      held = undefined;
    },
  };
}
