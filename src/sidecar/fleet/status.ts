import { MAX_LACKS } from '../../api/fleet';
import type { FleetAnswer, FleetStreamAnswer } from '../../api/fleet-answers';
import { findingsIn } from '../../api/fleet-findings';
import type { StreamId } from '../../api/stream-id';
import { etagOf } from '../../drm/bytes';
import { apiError } from '../errors';
import type { EngineServer } from './engine/engine';
import type { FleetFigures, FleetParts } from './fleet';
import { type Packager, replicationLag, streamLag } from './members/packagers';
import type { MembershipState } from './membership-state';
import type { Member } from './open-fleet';

/** Below this revision, an engine has nothing to compact. */
const YOUNG_REVISION = 100_000;

/** Leaves out unreachable parts. `present` is undefined before the folder can be used. */
export async function fleetStatus(
  { name, engine, clock, isTaken }: FleetParts,
  state: MembershipState,
  present: Member | undefined,
  lastKnown: FleetAnswer['packagers'],
): Promise<FleetAnswer> {
  const { moment } = state;
  const { ledger, replication, membership } = present ?? {};
  const isOld = moment !== undefined && moment.revision >= YOUNG_REVISION;
  const [servers, packagers, hasFirstRevision] = await Promise.all([
    engine.servers(),
    // While the engine is away, it would only wait for the time limit.
    state.state === 'away' ? undefined : membership?.list().catch(() => undefined),
    isOld ? engine.hasRevision(1).catch(() => undefined) : undefined,
  ]);
  // Records of other streams are of a former selection.
  const known = [...(ledger?.records() ?? [])].filter(([streamId]) => isTaken(streamId));
  const isAbsent = (streamId: StreamId) => replication?.absent.has(streamId) ?? false;
  // Others are older than the engine's restoration or new foundation.
  const records = known.filter(
    ([streamId, { revision }]) => revision <= (moment?.revision ?? Infinity) && !isAbsent(streamId),
  );
  const deleted = known.filter(([, { tag }]) => tag === undefined).length;
  const answer: FleetAnswer = {
    name,
    fleet: ledger?.head.fleet ?? null,
    state: state.state,
    since: state.since.toISOString(),
    revision: moment?.revision ?? null,
    engine: [...servers],
    compacted: hasFirstRevision === undefined ? null : !hasFirstRevision,
    streams: known.length - deleted,
    deleted,
    missing: known.filter(([streamId, { tag }]) => tag !== undefined && isAbsent(streamId)).length,
    former_secret: entriesOf(replication?.formerSecrets),
    missing_secret: entriesOf(replication?.missingSecrets),
    ignored: membership?.ignored ?? 0,
    packagers: packagers ? replicationLag(packagers, records, clock().getTime()) : lastKnown,
  };
  return { ...answer, findings: findingsIn(answer) };
}

function entriesOf(streams: { readonly size: number; keys(): Iterable<StreamId> } | undefined) {
  return { entries: streams?.size ?? 0, streamids: [...(streams?.keys() ?? [])].slice(0, MAX_LACKS) };
}

type Where = Pick<FleetParts, 'keys' | 'grouped' | 'seal'> & { list(): Promise<readonly Packager[]> };

/** @throws HttpError 404 @throws EngineError */
export async function streamStatus(
  streamId: StreamId,
  { keys, grouped, seal, list }: Where,
): Promise<FleetStreamAnswer> {
  const key = keys.entry(streamId);
  const [{ present }, packagers] = await Promise.all([grouped.read(key), list()]);
  if (!present) throw apiError('fleet_entry_not_found');
  const entry = seal().open(key, present.value, streamId);
  return {
    streamid: streamId,
    revision: present.revision,
    state: entry ? (entry.bytes ? 'file' : 'deleted') : 'unreadable',
    etag: entry?.bytes ? etagOf(entry.bytes) : null,
    changed: entry ? new Date(entry.at).toISOString() : null,
    key: entry?.by.key ?? null,
    from: entry?.from ?? null,
    packagers: streamLag(packagers, streamId, present.revision),
  };
}

export function fleetFigures(
  state: MembershipState,
  lacks: Iterable<keyof FleetFigures['lacks']>,
  servers: readonly EngineServer[],
): FleetFigures {
  const counts = { kept: 0, unreadable: 0, failed: 0, older: 0 };
  for (const why of lacks) counts[why] += 1;
  const [largest] = servers.toSorted((one, other) => (other.size ?? 0) - (one.size ?? 0));
  return {
    state: state.state,
    behindSeconds: state.behindSeconds(),
    lacks: counts,
    engineSize: largest?.size,
    engineQuota: largest?.quota,
  };
}
