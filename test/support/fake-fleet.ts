import { randomBytes, randomUUID } from 'node:crypto';
import type { FleetState, LackReason } from '../../src/api/fleet';
import type { FleetAnswer, FleetPackager } from '../../src/api/fleet-answers';
import { findingsIn } from '../../src/api/fleet-findings';
import { isWithinPrefixes, parseStreamId } from '../../src/api/stream-id';
import type { HttpError } from '../../src/http/errors';
import type { Lease } from '../../src/sidecar/fleet/engine/engine';
import { distinctPrefixes, engineKeysUnder } from '../../src/sidecar/fleet/engine-keys';
import { createSeal } from '../../src/sidecar/fleet/entries/seal';
import type { AwaitedChange, OpenFleet } from '../../src/sidecar/fleet/fleet';
import {
  heartbeatValue,
  registrationValue,
  reportText,
  reportValue,
} from '../../src/sidecar/fleet/members/packagers';
import { openFleet } from '../../src/sidecar/fleet/open-fleet';
import type { ChangedBy } from '../../src/sidecar/storage/key-file-store';
import { FakeCluster } from './fake-engine';
import { right } from './right';
import { until } from './until';

const FLEET_ID = '5b1f2a52-6f0e-4a0f-9d0c-3f4d2b1a0c9e';
/** When everything happens. */
const TIME = '2030-06-01T12:00:00.000Z';
const NOW = new Date(TIME);
const PREFIX = 'packagerdrmapi/';
const KEYS = engineKeysUnder(PREFIX);
const FORMER = 'the-former-secret-of-the-tests-0123456789';
const SECRETS = ['the-first-secret-of-the-tests-0123456789', FORMER];
const SEAL = createSeal(SECRETS, randomBytes);
const CLOCK_AHEAD_MS = 12;
const ELSEWHERE: ChangedBy = { key: 'default', address: '127.0.0.1', requestId: 'request-elsewhere' };
const SERVER = {
  ...{ url: 'http://etcd-1:2379', version: '3.4.23', leader: true, alarms: [] },
  ...{ size: 24_576, size_in_use: 16_384, quota: 2_147_483_648 },
};

/** A packager that has everything. */
export const PACKAGER: FleetPackager = {
  name: 'p',
  live: true,
  streams: null,
  since: TIME,
  version: '1.2.3',
  state: 'level',
  applied: 3,
  reported: TIME,
  behind: 0,
  behind_seconds: 0,
  lacks: [],
  lacking: 0,
  clock_ahead_ms: null,
  propagation_ms: [],
};

type Lack = Exclude<LackReason, 'behind'>;

interface FakePackager {
  readonly name: string;
  /** undefined: all. */
  readonly streams?: readonly string[];
}

export type FakeFleet = ReturnType<typeof createFakeFleet>;

/**
 * A fleet whose engine is in memory, of which one packager is the sidecar at test. The others are what they report, which is
 * that they have everything at once, unless they are held.
 */
export function createFakeFleet({
  /** This packager, and the others. */
  here = { name: 'origin-1' } as FakePackager,
  others = [{ name: 'origin-2' }, { name: 'origin-3' }] as readonly FakePackager[],
  /** How long a second of a wait lasts, in milliseconds. */
  secondMs = 100,
} = {}) {
  const cluster = new FakeCluster();
  cluster.servers = [SERVER];
  const engine = Object.assign(cluster.connect(), { ahead: CLOCK_AHEAD_MS });
  const knobs = {
    /** Every change, every question to the engine and the readiness fail so. */
    fault: undefined as HttpError | undefined,
    /** The fleet accepts changes, and they can't be written here. */
    faultHere: undefined as HttpError | undefined,
  };
  const refuseFaulty = (fault: HttpError | undefined) => {
    if (fault) throw fault;
  };
  engine.before = () => refuseFaulty(knobs.fault);
  const waits: { changes: readonly AwaitedChange[]; seconds: number }[] = [];
  const calls: string[] = [];
  let said: Partial<FleetAnswer> = {};
  let stateHere = (): FleetState => 'joining';
  let isClosed = false;

  const members = new Map(
    others.map((each) => [
      each.name,
      {
        ...each,
        isLive: true,
        why: undefined as LackReason | undefined,
        lacks: new Map<string, Lack>(),
      },
    ]),
  );
  type Member = NonNullable<ReturnType<typeof members.get>>;
  const memberOf = (name: string): Member => {
    const member = members.get(name);
    if (!member) throw new TypeError(`No other packager is called ${name}`);
    return member;
  };
  const report = ({ name, streams, isLive, lacks }: Member) => {
    if (!isLive) return;
    const text = reportText(name, {
      state: 'level',
      applied: distinctPrefixes(streams).map(() => cluster.revision),
      lacks: Object.fromEntries(lacks),
      lacking: lacks.size,
      clockAhead: CLOCK_AHEAD_MS,
      propagation: [],
    });
    cluster.set(KEYS.report(name), reportValue(text, NOW));
  };
  const live = (name: string) => cluster.set(KEYS.live(name), heartbeatValue(name, `of ${name}` as Lease));

  cluster.set(KEYS.fleet, SEAL.sealText(KEYS.fleet, JSON.stringify({ id: FLEET_ID })));
  for (const member of members.values()) {
    const { name, streams } = member;
    const registration = { id: name, streams, since: NOW.getTime(), version: '1.2.3' };
    cluster.set(KEYS.packager(name), registrationValue(registration));
    live(name);
    report(member);
  }
  let seen = cluster.revision;
  cluster.listeners.add(() => {
    const streams = cluster.eventsFrom(seen + 1).flatMap(({ key }) => KEYS.streamOf(key) ?? []);
    seen = cluster.revision;
    if (streams.length === 0) return;
    for (const member of members.values()) {
      const { why, lacks } = member;
      if (why === 'behind') continue;
      for (const streamId of streams)
        if (why && isWithinPrefixes(member.streams, streamId)) lacks.set(streamId, why);
      report(member);
    }
  });

  /** Whether this packager has joined, and reported what came so far; one that is closed never will, and is not waited for. */
  const isSettled = () => {
    if (isClosed) return true;
    const state = stateHere();
    if (state !== 'level' || knobs.fault) return state !== 'joining';
    const isTaken = (key: string) => {
      const streamId = KEYS.streamOf(key);
      return streamId !== undefined && isWithinPrefixes(here.streams, streamId);
    };
    const newest = Math.max(0, ...cluster.range(isTaken).map(({ revision }) => revision));
    const report = cluster.json(KEYS.report(here.name)) as
      | { state: FleetState; applied: number[] }
      | undefined;
    // The report may be of before it was level, with everything applied: what is listed is the report.
    return report?.state === state && report.applied.some((revision) => revision >= newest);
  };

  const open: OpenFleet = (local, hooks) => {
    let skippedMs = 0;
    const fleet = openFleet(
      {
        ...hooks,
        // A report that no client waits for comes soon, too.
        ...{ pace: { reportMs: 20 } },
        config: { name: here.name, streams: here.streams, prefix: PREFIX },
        engine,
        secrets: () => SECRETS,
        onSecrets: () => undefined,
        newId: randomUUID,
        clock: () => NOW,
        now: () => performance.now() + skippedMs,
      },
      {
        ...local,
        async write(...asked) {
          refuseFaulty(knobs.faultHere);
          return local.write(...asked);
        },
        async remove(...asked) {
          refuseFaulty(knobs.faultHere);
          return local.remove(...asked);
        },
      },
    );
    stateHere = () => fleet.figures().state;
    const called = <Asked extends unknown[], Answer>(name: string, run: (...asked: Asked) => Answer) => {
      return (...asked: Asked) => {
        calls.push(name);
        return run(...asked);
      };
    };
    return {
      ...fleet,
      start: called('start', fleet.start),
      found: called('found', fleet.found),
      importStep: called('import', fleet.importStep),
      resealStep: called('reseal', fleet.resealStep),
      checkReady() {
        refuseFaulty(knobs.fault);
        fleet.checkReady();
      },
      async status() {
        await until(isSettled);
        // An answer is kept for a second.
        skippedMs += 1000;
        const answer = { ...(await fleet.status()), ...said };
        return { ...answer, findings: findingsIn(answer) };
      },
      async streamStatus(streamId) {
        await until(isSettled);
        return fleet.streamStatus(streamId);
      },
      async waitFor(changes, seconds) {
        waits.push({ changes, seconds });
        return fleet.waitFor(changes, (seconds * secondMs) / 1000);
      },
      async retire(name) {
        await fleet.retire(name);
        calls.push(`retire ${name}`);
      },
      async close(busy) {
        isClosed = true;
        await fleet.close(busy);
      },
    };
  };

  const fleet = Object.assign(knobs, {
    /** Hand it to the sidecar as `fleet`. One sidecar takes part. */
    open,
    engine,
    /** The entry of a stream in its engine. */
    entryOf(stream: string) {
      const streamId = asStreamId(stream);
      const found = cluster.get(KEYS.entry(streamId));
      const entry = found && SEAL.open(found.key, found.value, streamId);
      return entry && { ...entry, revision: found.revision };
    },
    /** From now on the packager gets no change, for this reason. */
    hold(name: string, why: LackReason = 'behind') {
      memberOf(name).why = why;
    },
    /** It gets the missing changes, and everything from now on. */
    release(name: string) {
      const member = memberOf(name);
      member.why = undefined;
      member.lacks.clear();
      report(member);
    },
    /** Its sidecar is gone, or back. While it is gone it gets no change. */
    setLive(name: string, isLive: boolean) {
      const member = memberOf(name);
      member.isLive = isLive;
      if (isLive) live(name);
      else cluster.set(KEYS.live(name), undefined);
      report(member);
    },
    /** A change that the sidecar of another packager took; without bytes a deletion. Resolves when it is made here. */
    async arrive(stream: string, bytes?: Buffer, from = 'origin-2', by: Partial<ChangedBy> = {}) {
      const streamId = asStreamId(stream);
      const key = KEYS.entry(streamId);
      const version = NOW.getTime() + cluster.revision;
      const entry = { streamId, id: randomUUID(), version, bytes, at: NOW.getTime(), from };
      cluster.set(
        key,
        SEAL.seal(key, { ...entry, by: { ...ELSEWHERE, ...by }, awaited: true, isFound: false }),
      );
      await until(isSettled);
    },
    /** Seals an entry with the former secret. */
    sealFormerly(stream: string) {
      const key = KEYS.entry(asStreamId(stream));
      const entry = fleet.entryOf(stream);
      if (entry) cluster.set(key, createSeal([FORMER], randomBytes).seal(key, entry));
    },
    /** No secret opens its entry from now on. */
    spoil(stream: string) {
      cluster.set(KEYS.entry(asStreamId(stream)), 'garbage');
    },
    /** The engine loses everything. */
    async lose() {
      await until(isSettled);
      seen = 0;
      members.clear();
      cluster.restore();
      await until(() => isClosed || stateHere() === 'lost_fleet');
    },
    /** Replaces parts of the status. */
    say(answer: Partial<FleetAnswer>) {
      said = answer;
    },
    waits,
    /** `start`, `found`, `import`, `reseal`, `retire origin-2`, in their order. */
    calls,
  });
  return fleet;
}

const asStreamId = (text: string) => right(parseStreamId(text)).value;
