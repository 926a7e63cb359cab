import { type FleetPackager, MAX_LACKS, takes } from '../../../api/fleet';
import type { StreamId } from '../../../api/stream-id';
import type { LedgerRecord } from '../ledger/ledger-lines';
import { appliedTo, followed } from '../places';
import type { Packager } from './packagers';

type Known = Pick<LedgerRecord, 'version' | 'revision'>;

/** Packagers that take the same streams and have the same revision are behind by the same changes. */
interface Group {
  readonly applied: readonly number[];
  readonly streams: readonly string[] | undefined;
  behind: number;
  /** The lowest version of those changes. */
  oldest: number;
  /** The first of their streams. */
  readonly first: StreamId[];
}

/** A packager that takes a beginning, and up to which revision it has that. */
interface Taker {
  readonly group: Group;
  readonly applied: number;
}

/**
 * How far each packager is, as this sidecar knows it.
 * @param records what it knows of the streams that it takes; they are gone through once
 * @param now milliseconds since 1970
 * @param own the beginnings of the streams that it takes; of others its records may be old
 */
export function lagOf(
  packagers: readonly Packager[],
  records: Iterable<readonly [StreamId, Known]>,
  now: number,
  own: readonly string[] | undefined,
): FleetPackager[] {
  const groups = new Map<string, Group>();
  const groupOf = packagers.map(({ streams, report }) => {
    const applied = report?.applied ?? [];
    const name = JSON.stringify([applied, streams]);
    const group = groups.get(name) ?? { applied, streams, behind: 0, oldest: Infinity, first: [] };
    groups.set(name, group);
    return group;
  });
  const revisions = count([...groups.values()], records, own, namedIn(packagers));
  return packagers.map((packager, index) => {
    const { behind, oldest, first } = groupOf[index] as Group;
    return describe(packager, { behind, oldest, first }, now, revisions);
  });
}

/** The streams whose revisions must be known: those that packagers say they lack, and may be behind in, too. */
function namedIn(packagers: readonly Packager[]): ReadonlySet<string> {
  return new Set(packagers.flatMap(({ report }) => Object.keys(report?.lacks ?? {})));
}

/** Counts for each group what it is behind in, and answers the revisions of the named streams that any is behind in. */
function count(
  groups: readonly Group[],
  records: Iterable<readonly [StreamId, Known]>,
  own: readonly string[] | undefined,
  named: ReadonlySet<string>,
): ReadonlyMap<string, number> {
  const revisions = new Map<string, number>();
  const byBeginning = new Map<string, Taker[]>();
  for (const group of groups) {
    for (const [index, beginning] of followed(group.streams).entries()) {
      const taker = { group, applied: group.applied[index] ?? -1 };
      byBeginning.set(beginning, [...(byBeginning.get(beginning) ?? []), taker]);
    }
  }
  // Those that are furthest behind come first, so that the rest need not be looked at.
  for (const takers of byBeginning.values()) takers.sort((one, other) => one.applied - other.applied);
  const slowest = Math.min(...[...byBeginning.values()].map(([taker]) => taker?.applied ?? Infinity));
  const lengths = [...new Set([...byBeginning.keys()].map(({ length }) => length))];
  for (const [streamId, { revision, version }] of records) {
    if (revision <= slowest || !takes(own, streamId)) continue;
    if (named.has(streamId)) revisions.set(streamId, revision);
    for (const length of lengths) {
      if (length > streamId.length) continue;
      for (const { group, applied } of byBeginning.get(streamId.slice(0, length)) ?? []) {
        if (applied >= revision) break;
        group.behind += 1;
        if (version < group.oldest) group.oldest = version;
        if (group.first.length < MAX_LACKS) group.first.push(streamId);
      }
    }
  }
  return revisions;
}

function describe(
  { name, live, streams, since, version, report }: Packager,
  { behind, oldest, first }: Pick<Group, 'behind' | 'oldest' | 'first'>,
  now: number,
  revisions: ReadonlyMap<string, number>,
): FleetPackager {
  const applied = report?.applied ?? [];
  const reported = Object.entries(report?.lacks ?? {});
  const isBehindIn = (streamId: string) =>
    takes(streams, streamId) &&
    (revisions.get(streamId) ?? -Infinity) > appliedTo(streams, applied, streamId);
  const lacked = new Set(reported.map(([streamId]) => streamId));
  const lacks = [
    ...reported.map(([streamid, why]) => ({ streamid, why })),
    ...first
      .filter((streamId) => !lacked.has(streamId))
      .map((streamid) => ({ streamid, why: 'behind' as const })),
  ];
  const both = behind === 0 ? 0 : reported.filter(([streamId]) => isBehindIn(streamId)).length;
  return {
    name,
    live,
    streams: streams ? [...streams] : null,
    since: new Date(since).toISOString(),
    version,
    state: report?.state ?? 'joining',
    applied: applied.length === 0 ? null : Math.min(...applied),
    reported: report ? new Date(report.at).toISOString() : null,
    behind,
    behind_seconds: behind === 0 ? 0 : Math.max(0, now - oldest) / 1000,
    lacks: lacks.slice(0, MAX_LACKS),
    lacking: (report?.lacking ?? 0) + behind - both,
    clock_ahead_ms: report?.clockAhead === undefined ? null : Math.round(report.clockAhead),
    propagation_ms: [...(report?.propagation ?? [])],
  };
}
