import { type FleetPackager, type FleetStreamAnswer, type LackReason, MAX_LACKS } from '../../../api/fleet';
import { type StreamId, takes } from '../../../api/stream-id';
import { appliedTo } from '../engine-keys';
import type { LedgerRecord } from '../ledger/ledger';
import type { Packager, Report } from './member-records';

type Version = readonly [streamId: StreamId, record: Pick<LedgerRecord, 'version' | 'revision'>];

/**
 * The replication lag of each packager, as this sidecar knows it.
 * @param records the streams that this sidecar takes
 * @param now milliseconds since 1970
 * @param own the prefixes of the streams that this sidecar takes; its records of others may be outdated
 */
export function replicationLag(
  packagers: readonly Packager[],
  records: Iterable<Version>,
  now: number,
  own: readonly string[] | undefined,
): FleetPackager[] {
  const slowest = Math.min(...packagers.map(({ report }) => leastApplied(report) ?? -1));
  const recent = [...records].filter(([id, { revision }]) => revision > slowest && takes(own, id));
  // Packagers with the same streams and the same report miss the same.
  const known = new Map<string, readonly Version[]>();
  return packagers.map((packager) => {
    const { streams, report } = packager;
    const name = JSON.stringify([report?.applied, streams]);
    const applied = appliedTo(streams, report?.applied ?? []);
    const missed =
      known.get(name) ?? recent.filter(([id, { revision }]) => takes(streams, id) && revision > applied(id));
    known.set(name, missed);
    return lagOf(packager, missed, now);
  });
}

function lagOf(packager: Packager, missed: readonly Version[], now: number): FleetPackager {
  const { name, live, streams, since, version, report } = packager;
  const reported = report?.lacks ?? {};
  const unreported = missed.filter(([id]) => !Object.hasOwn(reported, id));
  const lacks = [
    ...Object.entries(reported).map(([streamid, why]) => ({ streamid, why })),
    ...unreported.slice(0, MAX_LACKS).map(([streamid]) => ({ streamid, why: 'behind' as const })),
  ];
  const oldest = missed.reduce((least, [, record]) => Math.min(least, record.version), now);
  return {
    name,
    live,
    streams: streams ? [...streams] : null,
    since: new Date(since).toISOString(),
    version,
    state: report?.state ?? 'joining',
    applied: leastApplied(report) ?? null,
    reported: report ? new Date(report.at).toISOString() : null,
    behind: missed.length,
    behind_seconds: (now - oldest) / 1000,
    lacks: lacks.slice(0, MAX_LACKS),
    lacking: (report?.lacking ?? 0) + unreported.length,
    clock_ahead_ms: report?.clockAhead === undefined ? null : Math.round(report.clockAhead),
    propagation_ms: [...(report?.propagation ?? [])],
  };
}

/** The least revision that a packager has of any of its ranges; undefined: it has none yet. */
function leastApplied(report: Report | undefined): number | undefined {
  return report && report.applied.length > 0 ? Math.min(...report.applied) : undefined;
}

/**
 * Answers why a packager does not have a stream as it is since a revision; `unnamed`: perhaps, its report names only some
 * of the streams that it lacks.
 */
export function lackOf({ streams, report }: Pick<Packager, 'streams' | 'report'>) {
  const applied = appliedTo(streams, report?.applied ?? []);
  const isCut = report !== undefined && report.lacking > Object.keys(report.lacks).length;
  return (streamId: StreamId, revision: number): LackReason | 'unnamed' | undefined => {
    if (!report || applied(streamId) < revision) return 'behind';
    // `constructor` is a valid stream id.
    if (Object.hasOwn(report.lacks, streamId)) return report.lacks[streamId];
    return isCut ? 'unnamed' : undefined;
  };
}

/** The packagers that take a stream, and whether they have it as it is since a revision. */
export function streamLag(
  packagers: readonly Packager[],
  streamId: StreamId,
  revision: number,
): FleetStreamAnswer['packagers'] {
  return packagers
    .filter(({ streams }) => takes(streams, streamId))
    .map((packager) => {
      const { name, live } = packager;
      const why = lackOf(packager)(streamId, revision);
      return { name, live, has: why === undefined, ...(why && why !== 'unnamed' && { why }) };
    });
}
