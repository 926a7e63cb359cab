import {
  type FleetAnswer,
  type FleetPackager,
  type FleetState,
  type LackReason,
  MAX_LACKS,
} from '../../src/api/fleet';
import { parseStreamId, type StreamId, takes } from '../../src/api/stream-id';
import { etagOf } from '../../src/drm/bytes';
import type { HttpError } from '../../src/http/errors';
import { apiError } from '../../src/sidecar/errors';
import type { AwaitedChange, Fleet, OpenFleet, Step } from '../../src/sidecar/fleet/fleet';
import {
  type ChangeContext,
  type ChangedBy,
  type Conditions,
  isLeftAlone,
  type KeyFileStore,
  queueByName,
  requireMatch,
} from '../../src/sidecar/storage/key-file-store';

const FLEET_ID = '5b1f2a52-6f0e-4a0f-9d0c-3f4d2b1a0c9e';
/** When everything happens. */
const TIME = '2030-06-01T12:00:00.000Z';

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

interface FakePackager {
  readonly name: string;
  /** undefined: all. */
  readonly streams?: readonly string[];
}

interface FakeFleetOptions {
  /** This packager, and the others. */
  readonly here?: FakePackager;
  readonly others?: readonly FakePackager[];
  /** How long a second of a wait lasts, in milliseconds. */
  readonly secondMs?: number;
}

export type FakeFleet = ReturnType<typeof createFakeFleet>;

interface FakeEntry {
  readonly bytes: Buffer | undefined;
  readonly revision: number;
  readonly by: ChangedBy;
  readonly from: string;
}

interface Member extends FakePackager {
  isLive: boolean;
  why: LackReason | undefined;
  /** The revision that it has of each stream. */
  readonly has: Map<string, number>;
}

const ELSEWHERE: ChangedBy = { key: 'default', address: '127.0.0.1', requestId: 'request-elsewhere' };

interface Knobs {
  /** Every change, and every question to the engine, fails so. */
  fault: HttpError | undefined;
  /** The fleet accepts changes, and they can't be written here. */
  faultHere: HttpError | undefined;
  /** Each wait for packagers fails so. */
  waitFault: Error | undefined;
  /** The key files of the folder that an import finds, since a store does not list them. */
  files: readonly string[];
  /** The streams whose entries were sealed with a former secret, and those that no secret opens. */
  former: readonly string[];
  unreadable: readonly string[];
}

/** A fleet in memory, of which one packager is the sidecar at test; the others have what they are said to have. */
export function createFakeFleet({
  here = { name: 'origin-1' },
  others = [{ name: 'origin-2' }, { name: 'origin-3' }],
  secondMs = 10,
}: FakeFleetOptions = {}) {
  const knobs: Knobs = {
    ...{ fault: undefined, faultHere: undefined, waitFault: undefined },
    ...{ files: [], former: [], unreadable: [] },
  };
  const entries = new Map<StreamId, FakeEntry>();
  const members = new Map<string, Member>(
    [here, ...others].map((each) => [each.name, { ...each, isLive: true, why: undefined, has: new Map() }]),
  );
  const inTurn = queueByName();
  const waits: { changes: readonly AwaitedChange[]; seconds: number }[] = [];
  const contexts: (ChangeContext | ChangedBy | undefined)[] = [];
  const calls: string[] = [];
  let revision = 1;
  let unready: HttpError | undefined;
  let state: FleetState = 'level';
  let said: Partial<FleetAnswer> = {};
  let deliver = (_stream: string, _bytes?: Buffer, _from?: string, _by?: Partial<ChangedBy>): Promise<void> =>
    Promise.reject(new TypeError('No sidecar takes part'));
  const onRelease = new Set<() => void>();

  const memberOf = (name: string): Member => {
    const member = members.get(name);
    if (!member) throw new TypeError(`No packager is called ${name}`);
    return member;
  };
  const isHere = (streamId: string) => takes(here.streams, streamId);
  const has = (member: Member, streamId: string, wanted: number) =>
    !takes(member.streams, streamId) || (member.has.get(streamId) ?? 0) >= wanted;
  const catchUp = (member: Member) => {
    if (member.why !== undefined || !member.isLive) return;
    if (member.name !== here.name)
      for (const [id, entry] of entries) if (takes(member.streams, id)) member.has.set(id, entry.revision);
    for (const look of [...onRelease]) look();
  };
  const accept = (streamId: StreamId, entry: Omit<FakeEntry, 'revision'>): number => {
    revision += 1;
    entries.set(streamId, { ...entry, revision });
    for (const member of members.values()) catchUp(member);
    return revision;
  };
  const refuseFaulty = () => {
    if (knobs.fault) throw knobs.fault;
  };

  const changing =
    (local: KeyFileStore) =>
    (streamId: StreamId, bytes: Buffer | undefined, conditions: Conditions, context?: ChangeContext) =>
      inTurn(streamId, async () => {
        refuseFaulty();
        const known = entries.get(streamId);
        const present = known ? known.bytes : isHere(streamId) ? local.read(streamId) : undefined;
        requireMatch(conditions, present);
        const answer = { former: present, notSynced: undefined };
        const isKept = bytes ? isLeftAlone(conditions, present, bytes) : present === undefined;
        if (isKept)
          return known
            ? { ...answer, fleet: { revision: known.revision, isHere: isHere(streamId) } }
            : answer;
        contexts.push(context);
        const accepted = accept(streamId, { bytes, by: context?.by ?? ELSEWHERE, from: here.name });
        const fleet = { revision: accepted, isHere: isHere(streamId) };
        if (!fleet.isHere) return { ...answer, fleet };
        if (knobs.faultHere) return { ...answer, fleet: { ...fleet, notHere: knobs.faultHere } };
        const { notSynced } = await (bytes ? local.write(streamId, bytes) : local.remove(streamId));
        memberOf(here.name).has.set(streamId, accepted);
        return { ...answer, notSynced, fleet };
      });

  const packagerAnswer = (member: Member): FleetPackager => {
    const { name, isLive: live, streams, why = 'behind' } = member;
    const lacking = [...entries].filter(([id, entry]) => !has(member, id, entry.revision)).map(([id]) => id);
    return {
      ...PACKAGER,
      ...{ name, live, streams: streams ? [...streams] : null },
      state: name === here.name ? state : 'level',
      applied: Math.max(1, ...member.has.values()),
      behind: why === 'behind' ? lacking.length : 0,
      behind_seconds: lacking.length,
      lacks: lacking
        .sort()
        .slice(0, MAX_LACKS)
        .map((streamid) => ({ streamid, why })),
      lacking: lacking.length,
      clock_ahead_ms: 12,
      propagation_ms: [...member.has.values()].slice(-50).map(() => 21.5),
    };
  };

  const status = (): FleetAnswer => {
    const streams = [...entries.values()].filter(({ bytes }) => bytes !== undefined).length;
    return {
      ...{ name: here.name, fleet: FLEET_ID, state, since: TIME, revision },
      engine: [
        {
          ...{ url: 'http://etcd-1:2379', version: '3.4.23', leader: true, alarms: [] },
          ...{ size: 24_576, size_in_use: 16_384, quota: 2_147_483_648 },
        },
      ],
      ...{ compacted: true, streams, deleted: entries.size - streams, missing: 0 },
      packagers: [...members.values()]
        .map(packagerAnswer)
        .sort((one, other) => (one.name < other.name ? -1 : 1)),
      ...said,
    };
  };

  /** One step over sorted stream ids: those of the step, and what the next one is asked for with. */
  const stepOf = (all: readonly string[], { after, limit }: Step) => {
    const left = [...all].sort().filter((id) => after === undefined || id > after);
    const chosen = left.slice(0, limit).map(asStreamId);
    return { chosen, next: left.length > limit ? (chosen.at(-1) ?? null) : null, total: all.length };
  };

  const behind = (changes: readonly AwaitedChange[]) =>
    [...members.values()]
      .filter((member) => !changes.every((change) => has(member, change.streamId, change.revision)))
      .map(({ name }) => name)
      .sort();

  const open: OpenFleet = (local, { audit, observer }): Fleet => {
    const change = changing(local);
    deliver = async (given, bytes, from = others[0]?.name ?? 'origin-2', origin = {}) => {
      const streamId = asStreamId(given);
      const before = local.read(streamId);
      const by = { ...ELSEWHERE, ...origin };
      const accepted = accept(streamId, { bytes, by, from });
      if (!isHere(streamId) || memberOf(here.name).why !== undefined) return;
      await (bytes ? local.write(streamId, bytes) : local.remove(streamId));
      memberOf(here.name).has.set(streamId, accepted);
      const result = bytes ? (before ? 'changed' : 'created') : 'deleted';
      const keyIds = { oldKeyId: undefined, newKeyId: undefined };
      audit({ action: bytes ? 'put' : 'delete', ...by, streamId, result, ...keyIds, from });
      observer.entry(bytes ? 'written' : 'removed');
      observer.applied(0.02);
    };
    return {
      store: {
        ...local,
        write: (streamId, bytes, conditions = {}, context) => change(streamId, bytes, conditions, context),
        remove: (streamId, conditions = {}, context) => change(streamId, undefined, conditions, context),
      },
      start: () => void calls.push('start'),
      checkReady() {
        if (unready) throw unready;
      },
      status: () => Promise.resolve(status()),
      async whereIs(streamid) {
        refuseFaulty();
        const entry = entries.get(streamid);
        if (!entry) throw apiError('fleet_entry_not_found');
        const state = entry.bytes ? ('file' as const) : ('deleted' as const);
        const etag = entry.bytes ? etagOf(entry.bytes) : null;
        const known = { state, etag, changed: TIME, key: entry.by.key, from: entry.from };
        const closed = { state: 'unreadable', etag: null, changed: null, key: null, from: null } as const;
        return {
          ...{ streamid, revision: entry.revision },
          ...(knobs.unreadable.includes(streamid) ? closed : known),
          packagers: [...members.values()]
            .filter(({ streams }) => takes(streams, streamid))
            .map((member) => {
              const { name, isLive: live, why = 'behind' } = member;
              const isThere = has(member, streamid, entry.revision);
              return { name, live, has: isThere, ...(!isThere && { why }) };
            }),
        };
      },
      waitFor(changes, seconds) {
        waits.push({ changes, seconds });
        if (knobs.waitFault) return Promise.reject(knobs.waitFault);
        return new Promise((resolve) => {
          const end = () => {
            clearTimeout(timer);
            onRelease.delete(look);
            resolve(behind(changes));
          };
          const look = () => {
            if (behind(changes).length === 0) end();
          };
          const timer = setTimeout(end, seconds * secondMs);
          onRelease.add(look);
          look();
        });
      },
      async importStep(step, by) {
        refuseFaulty();
        contexts.push(by);
        const { chosen, next, total } = stepOf(knobs.files, step);
        let [imported, same] = [0, 0];
        const refused: Awaited<ReturnType<Fleet['importStep']>>['refused'] = [];
        for (const streamid of chosen) {
          const bytes = local.read(streamid);
          const entry = entries.get(streamid);
          if (!bytes) continue;
          if (entry?.bytes?.equals(bytes)) same += 1;
          else if (entry) {
            const code = entry.bytes ? 'differs' : 'deleted';
            refused.push({ streamid, code, description: 'It stays as it is, here and in the fleet.' });
          } else {
            memberOf(here.name).has.set(streamid, accept(streamid, { bytes, by, from: here.name }));
            imported += 1;
          }
        }
        return { imported, same, refused, next, total };
      },
      async found() {
        calls.push('found');
        if (state !== 'lost_fleet')
          throw apiError('invalid_query', 'The fleet is not lost: leave found out. Nothing was changed.');
        [state, unready] = ['level', undefined];
      },
      async resealStep(step) {
        refuseFaulty();
        const { chosen, next, total } = stepOf([...entries.keys()], step);
        const unreadable = chosen.filter((id) => knobs.unreadable.includes(id));
        const resealed = chosen.filter((id) => knobs.former.includes(id)).length;
        knobs.former = knobs.former.filter((id) => !chosen.some((each) => each === id));
        const current = chosen.length - resealed - unreadable.length;
        return { resealed, current, unreadable, next, total };
      },
      async retire(name) {
        refuseFaulty();
        const member = members.get(name);
        const absent = `No packager of the fleet is called ${name}. GET /api/fleet lists them.`;
        if (!member) throw apiError('packager_not_found', absent);
        const live = `The packager ${name} is running. Stop its sidecar, wait half a minute, then retire it.`;
        if (member.isLive) throw apiError('packager_live', live);
        members.delete(name);
        calls.push(`retire ${name}`);
      },
      figures: () => ({
        state,
        behindSeconds: state === 'level' ? 0 : undefined,
        lacks: { kept: 0, unreadable: knobs.unreadable.length, failed: 0, older: 0 },
        engineSize: 24_576,
        engineQuota: 2_147_483_648,
      }),
      close: async () => void calls.push('close'),
    };
  };

  return Object.assign(knobs, {
    /** Hand it to the sidecar as `fleet`. One sidecar takes part. */
    open,
    /** From now on the packager gets no change, for this reason. */
    hold(name: string, why: LackReason = 'behind') {
      memberOf(name).why = why;
    },
    /** It gets what it lacks, and everything from now on. */
    release(name: string) {
      memberOf(name).why = undefined;
      catchUp(memberOf(name));
    },
    /** Its sidecar is gone, or back. While it is gone it gets no change. */
    setLive(name: string, isLive: boolean) {
      memberOf(name).isLive = isLive;
      catchUp(memberOf(name));
    },
    /** A change that the sidecar of another packager took; without bytes a deletion. It is made in the folder here. */
    arrive: (...change: Parameters<typeof deliver>) => deliver(...change),
    /** Every state but `level` and `away` makes this sidecar unready, with the error if one is given. */
    setState(next: FleetState, error?: HttpError) {
      state = next;
      unready = error;
    },
    /** What the status says in place of what is known here. */
    say(answer: Partial<FleetAnswer>) {
      said = answer;
    },
    waits,
    /** On whose behalf each change, and each step of an import, was made. */
    contexts,
    /** `start`, `found`, `retire origin-2`, `close`, in their order. */
    calls,
  });
}

function asStreamId(text: string): StreamId {
  const parsed = parseStreamId(text);
  if (!parsed.ok) throw new TypeError(`${text} is no stream id`);
  return parsed.value;
}
