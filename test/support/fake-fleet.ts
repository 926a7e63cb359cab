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
import type { AwaitedChange, Fleet, FleetHooks, OpenFleet, Step } from '../../src/sidecar/fleet/fleet';

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

const NOBODY: ChangedBy = { key: 'default', address: '127.0.0.1', requestId: 'request-elsewhere' };

/** A fleet in memory, of which one packager is the sidecar at test; the others have what they are said to have. */
export function createFakeFleet({
  here = { name: 'origin-1' },
  others = [{ name: 'origin-2' }, { name: 'origin-3' }],
  secondMs = 10,
}: FakeFleetOptions = {}) {
  const entries = new Map<StreamId, FakeEntry>();
  const members = new Map<string, Member>(
    [here, ...others].map((each) => [
      each.name,
      { ...each, isLive: true, why: undefined, has: new Map<string, number>() },
    ]),
  );
  const inTurn = queueByName();
  const [waits, contexts, calls]: [
    { changes: readonly AwaitedChange[]; seconds: number }[],
    (ChangeContext | ChangedBy | undefined)[],
    string[],
  ] = [[], [], []];
  let revision = 1;
  let fault: HttpError | undefined;
  let faultHere: HttpError | undefined;
  let waitFault: Error | undefined;
  let unready: HttpError | undefined;
  let state: FleetState = 'level';
  let said: Partial<FleetAnswer> = {};
  let files: readonly StreamId[] = [];
  let former = new Set<string>();
  let unreadable = new Set<string>();
  let deliver = (
    _streamId: string,
    _bytes: Buffer | undefined,
    _from?: string,
    _by?: Partial<ChangedBy>,
  ): Promise<void> => Promise.reject(new TypeError('No sidecar takes part'));
  const onRelease = new Set<() => void>();

  const memberOf = (name: string): Member => {
    const member = members.get(name);
    if (!member) throw new TypeError(`No packager is called ${name}`);
    return member;
  };
  const isHere = (streamId: string) => takes(here.streams, streamId);
  /** The streams that a member takes and has not as they are. */
  const lacksOf = (member: Member) =>
    [...entries]
      .filter(([id, entry]) => takes(member.streams, id) && (member.has.get(id) ?? 0) < entry.revision)
      .map(([streamid]) => streamid)
      .sort();
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
    if (fault) throw fault;
  };

  const changing =
    (local: KeyFileStore) =>
    (streamId: StreamId, bytes: Buffer | undefined, conditions: Conditions, context?: ChangeContext) =>
      inTurn(streamId, async () => {
        refuseFaulty();
        const known = entries.get(streamId);
        const present = known ? known.bytes : isHere(streamId) ? local.read(streamId) : undefined;
        const standing = known && { fleet: { revision: known.revision, isHere: isHere(streamId) } };
        requireMatch(conditions, present);
        const isKept = bytes ? isLeftAlone(conditions, present, bytes) : present === undefined;
        if (isKept) return { former: present, notSynced: undefined, ...standing };
        contexts.push(context);
        const accepted = accept(streamId, { bytes, by: context?.by ?? NOBODY, from: here.name });
        const fleet = { revision: accepted, isHere: isHere(streamId) };
        if (!fleet.isHere) return { former: present, notSynced: undefined, fleet };
        if (faultHere)
          return { former: present, notSynced: undefined, fleet: { ...fleet, notHere: faultHere } };
        const { notSynced } = await (bytes ? local.write(streamId, bytes) : local.remove(streamId));
        memberOf(here.name).has.set(streamId, accepted);
        return { former: present, notSynced, fleet };
      });

  const packagerAnswer = (member: Member): FleetPackager => {
    const lacking = lacksOf(member);
    return {
      name: member.name,
      live: member.isLive,
      streams: member.streams ? [...member.streams] : null,
      since: TIME,
      version: '1.2.3',
      state: member.name === here.name ? state : 'level',
      applied: Math.max(1, ...member.has.values()),
      reported: TIME,
      behind: (member.why ?? 'behind') === 'behind' ? lacking.length : 0,
      behind_seconds: lacking.length,
      lacks: lacking.slice(0, MAX_LACKS).map((streamid) => ({ streamid, why: member.why ?? 'behind' })),
      lacking: lacking.length,
      clock_ahead_ms: 12,
      propagation_ms: [...member.has.values()].slice(-50).map(() => 21.5),
    };
  };

  const holding = (holds: (entry: FakeEntry) => boolean) => [...entries.values()].filter(holds).length;
  const status = (): FleetAnswer => ({
    name: here.name,
    fleet: FLEET_ID,
    state,
    since: TIME,
    revision,
    engine: [
      {
        url: 'http://etcd-1:2379',
        version: '3.4.23',
        leader: true,
        size: 24_576,
        size_in_use: 16_384,
        quota: 2_147_483_648,
        alarms: [],
      },
    ],
    compacted: true,
    streams: holding(({ bytes }) => bytes !== undefined),
    deleted: holding(({ bytes }) => bytes === undefined),
    missing: 0,
    packagers: [...members.values()]
      .map(packagerAnswer)
      .sort((one, other) => (one.name < other.name ? -1 : 1)),
    ...said,
  });

  /** One step over sorted stream ids: those of the step, and what the next one is asked for with. */
  const stepOf = (all: readonly StreamId[], { after, limit }: Step) => {
    const left = [...all].sort().filter((id) => after === undefined || id > after);
    const chosen = left.slice(0, limit);
    return { chosen, next: left.length > limit ? (chosen.at(-1) ?? null) : null, total: all.length };
  };

  const behind = (changes: readonly AwaitedChange[]) =>
    [...members.values()]
      .filter((member) =>
        changes.some(
          (change) =>
            takes(member.streams, change.streamId) &&
            (member.has.get(change.streamId) ?? 0) < change.revision,
        ),
      )
      .map(({ name }) => name)
      .sort();

  const open: OpenFleet = (local, hooks): Fleet => {
    const change = changing(local);
    deliver = async (given, bytes, from = others[0]?.name ?? 'origin-2', by = {}) => {
      const streamId = asStreamId(given);
      const before = local.read(streamId);
      const origin = { ...NOBODY, ...by };
      const accepted = accept(streamId, { bytes, by: origin, from });
      if (!isHere(streamId) || memberOf(here.name).why !== undefined) return;
      await (bytes ? local.write(streamId, bytes) : local.remove(streamId));
      memberOf(here.name).has.set(streamId, accepted);
      auditArrival(hooks, { streamId, before, bytes, from, by: origin });
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
      async whereIs(streamId) {
        refuseFaulty();
        const entry = entries.get(streamId);
        if (!entry) throw apiError('fleet_entry_not_found');
        const isFile = entry.bytes !== undefined;
        const isOpen = !unreadable.has(streamId);
        return {
          streamid: streamId,
          revision: entry.revision,
          state: isOpen ? (isFile ? 'file' : 'deleted') : 'unreadable',
          etag: isOpen && entry.bytes ? etagOf(entry.bytes) : null,
          changed: isOpen ? TIME : null,
          key: isOpen ? entry.by.key : null,
          from: isOpen ? entry.from : null,
          packagers: [...members.values()]
            .filter(({ streams }) => takes(streams, streamId))
            .map(({ name, isLive, has, why }) => {
              const isThere = (has.get(streamId) ?? 0) >= entry.revision;
              return {
                name,
                live: isLive,
                has: isThere,
                ...(!isThere && { why: why ?? ('behind' as const) }),
              };
            }),
        };
      },
      waitFor(changes, seconds) {
        waits.push({ changes, seconds });
        if (waitFault) return Promise.reject(waitFault);
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
        const { chosen, next, total } = stepOf(files, step);
        let [imported, same] = [0, 0];
        const refused: Awaited<ReturnType<Fleet['importStep']>>['refused'] = [];
        for (const streamid of chosen) {
          const bytes = local.read(streamid);
          const entry = entries.get(streamid);
          if (!bytes) continue;
          if (entry?.bytes?.equals(bytes)) same += 1;
          else if (entry)
            refused.push({
              streamid,
              code: entry.bytes ? 'differs' : 'deleted',
              description: 'It stays as it is, here and in the fleet.',
            });
          else {
            const accepted = accept(streamid, { bytes, by, from: here.name });
            memberOf(here.name).has.set(streamid, accepted);
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
        const closed = chosen.filter((id) => unreadable.has(id));
        const resealed = chosen.filter((id) => former.delete(id)).length;
        return {
          resealed,
          current: chosen.length - resealed - closed.length,
          unreadable: closed,
          next,
          total,
        };
      },
      async retire(name) {
        refuseFaulty();
        const member = members.get(name);
        if (!member)
          throw apiError(
            'packager_not_found',
            `No packager of the fleet is called ${name}. GET /api/fleet lists them.`,
          );
        if (member.isLive)
          throw apiError(
            'packager_live',
            `The packager ${name} is running. Stop its sidecar, wait half a minute, then retire it.`,
          );
        members.delete(name);
        calls.push(`retire ${name}`);
      },
      figures: () => ({
        state,
        behindSeconds: state === 'level' ? 0 : undefined,
        lacks: { kept: 0, unreadable: unreadable.size, failed: 0, older: 0 },
        engineSize: 24_576,
        engineQuota: 2_147_483_648,
      }),
      close: async () => void calls.push('close'),
    };
  };

  return {
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
    /** Has every change, and every question to the engine, fail so; undefined: no longer. */
    fail(error: HttpError | undefined) {
      fault = error;
    },
    /** Has the fleet accept changes that can't be written here. */
    failHere(error: HttpError | undefined) {
      faultHere = error;
    },
    /** Has each wait for packagers fail so. */
    failWaits(error: Error | undefined) {
      waitFault = error;
    },
    /** Every state but `level` and `away` makes this sidecar unready, with the error if one is given. */
    setState(next: FleetState, error?: HttpError) {
      state = next;
      unready = error;
    },
    /** What the status says in place of what is known here. */
    say(answer: Partial<FleetAnswer>) {
      said = answer;
    },
    /** The key files of the folder that an import finds, since a store does not list them. */
    setFiles(...streamIds: readonly string[]) {
      files = streamIds.map(asStreamId);
    },
    /** The entries that were sealed with a former secret, and those that no secret opens. */
    setSealed(sealed: { readonly former?: readonly string[]; readonly unreadable?: readonly string[] }) {
      former = new Set(sealed.former);
      unreadable = new Set(sealed.unreadable);
    },
    waits,
    /** On whose behalf each change, and each step of an import, was made. */
    contexts,
    /** `start`, `found`, `retire origin-2`, `close`, in their order. */
    calls,
  };
}

interface Arrival {
  readonly streamId: StreamId;
  readonly before: Buffer | undefined;
  readonly bytes: Buffer | undefined;
  readonly from: string;
  readonly by: ChangedBy;
}

function auditArrival({ audit, observer }: FleetHooks, { streamId, before, bytes, from, by }: Arrival): void {
  const result = bytes ? (before ? 'changed' : 'created') : 'deleted';
  audit({
    action: bytes ? 'put' : 'delete',
    ...by,
    streamId,
    result,
    oldKeyId: undefined,
    newKeyId: undefined,
    from,
  });
  observer.entry(bytes ? 'written' : 'removed');
  observer.applied(0.02);
}

function asStreamId(text: string): StreamId {
  const parsed = parseStreamId(text);
  if (!parsed.ok) throw new TypeError(`${text} is no stream id`);
  return parsed.value;
}
