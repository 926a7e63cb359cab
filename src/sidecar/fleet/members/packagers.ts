import * as z from 'zod';
import { FLEET_STATES, LACK_REASONS, type LackReason, MAX_LACKS, namesOf } from '../../../api/fleet';
import type { FleetPackager, FleetStreamAnswer } from '../../../api/fleet-answers';
import { isWithinPrefixes, type StreamId } from '../../../api/stream-id';
import { isJsonObject, parseJson } from '../../../drm/bytes';
import { apiError } from '../../errors';
import {
  type Change,
  type Engine,
  EngineError,
  type KeyRange,
  type Lease,
  type StoredValue,
} from '../engine/engine';
import { appliedTo, type EngineKeys, PACKAGER_NAME } from '../engine-keys';
import type { LedgerRecord } from '../ledger/ledger';

/** The end of the year 9999: ISO 8601 has four digits for it. */
const LAST_TIME = 253_402_300_799_999;
/** Of prefixes, as in the configuration, and of times: others may write to the engine. */
const MAX_VALUES = 100;
/** How often a decision is repeated while others change the same keys. */
export const MAX_ROUNDS = 5;
/** Records in one answer of the engine: a report may have 200 KB. */
const PAGE = 200;

// Each field has its own fallback: other versions may store more, or something else.
/** Milliseconds since 1970. */
const time = z.int().min(0).max(LAST_TIME).catch(0);
const text = z.string().catch('');

const registration = z.object({
  /** Of its folder, `LedgerHead.id`. */
  id: text,
  streams: z
    .array(z.string())
    .max(MAX_VALUES)
    .readonly()
    .nullable()
    .catch(null)
    .transform((streams) => streams ?? undefined),
  since: time,
  version: text,
});

type Registration = z.output<typeof registration>;

const heartbeat = z.object({ id: text, lease: text });

/** `id` is of the folder that the report is about, `at` by the packager's clock. */
const report = z.object({
  id: text,
  state: z.enum(namesOf(FLEET_STATES)).catch('joining'),
  /** Revisions up to which all but `lacks` is applied, in the order of `EngineKeys.entries`; empty: nothing is yet. */
  applied: z.array(z.int().min(0)).max(MAX_VALUES).readonly().catch([]),
  /** Streams missing there, up to 1,000, and why. Pairs, because `__proto__` is a valid stream id. */
  lacks: z
    .array(z.tuple([z.string(), z.enum(namesOf(LACK_REASONS)).exclude(['behind']).catch('failed')]))
    .catch([])
    .transform((pairs) => Object.fromEntries(pairs)),
  /** Includes those that are not named. */
  lacking: z.uint32().catch(0),
  clockAhead: z
    .int()
    .nullable()
    .catch(null)
    .transform((ms) => ms ?? undefined),
  /** Milliseconds; oldest first, up to 50. */
  propagation: z.array(z.number().min(0)).max(MAX_VALUES).readonly().catch([]),
  at: time,
});

type StoredReport = z.output<typeof report>;
export type Report = Omit<StoredReport, 'id' | 'at'>;

export interface Packager extends Registration {
  readonly name: string;
  readonly live: boolean;
  readonly report: StoredReport | undefined;
}

/** Values other than JSON objects have no field. */
function read<Output>(schema: z.ZodType<Output>, value: Buffer): Output {
  const found = parseJson(value.toString());
  return schema.parse(isJsonObject(found) ? found : {});
}

export const readRegistration = (value: Buffer) => read(registration, value);

export function registrationValue({ id, streams, since, version }: Registration): Buffer {
  return Buffer.from(JSON.stringify({ id, streams: streams ?? null, since, version }));
}

/** The lease distinguishes two sidecars whose folders are copies. */
export const readHeartbeat = (value: Buffer) => read(heartbeat, value);

export function heartbeatValue(id: string, lease: Lease): Buffer {
  return Buffer.from(JSON.stringify({ id, lease }));
}

/**
 * A revision that is not older than the report's own means that the engine was restored from a backup: it has lost the
 * changes that the report is about.
 */
function readReport({ value, revision }: Pick<StoredValue, 'value' | 'revision'>): StoredReport {
  const { applied, lacking, ...rest } = read(report, value);
  return {
    ...rest,
    applied: applied.some((each) => each >= revision) ? [] : applied,
    lacking: Math.max(lacking, Object.keys(rest.lacks).length),
  };
}

/** Without the time: equal texts report the same. */
export function reportText(id: string, { lacks, clockAhead, ...rest }: Report): string {
  return JSON.stringify({ id, ...rest, lacks: Object.entries(lacks), clockAhead: clockAhead ?? null });
}

export function reportValue(text: string, at: Date): Buffer {
  return Buffer.from(`${text.slice(0, -1)},"at":${at.getTime()}}`);
}

async function listByName(
  engine: Pick<Engine, 'list'>,
  keys: EngineKeys,
  range: KeyRange,
  ignored: string[],
): Promise<ReadonlyMap<string, StoredValue>> {
  const found = new Map<string, StoredValue>();
  for (let after: string | undefined; ; ) {
    const { values, more } = await engine.list({ ...range, after }, { limit: PAGE });
    for (const stored of values) {
      const name = keys.nameOf(stored.key, range);
      if (name === undefined) ignored.push(stored.key);
      else found.set(name, stored);
    }
    after = values.at(-1)?.key;
    if (!more || after === undefined) return found;
  }
}

/** Sorted by name. `onIgnored` is called with the number of keys without a valid name. @throws EngineError */
export async function listPackagers(
  engine: Pick<Engine, 'list'>,
  keys: EngineKeys,
  onIgnored: (count: number) => void,
): Promise<readonly Packager[]> {
  const ignored: string[] = [];
  const [registered, living, reported] = await Promise.all([
    listByName(engine, keys, keys.packagers, ignored),
    listByName(engine, keys, keys.lives, ignored),
    listByName(engine, keys, keys.reports, ignored),
  ]);
  onIgnored(ignored.length);
  return [...registered]
    .map(([name, { value }]): Packager => {
      const stored = reported.get(name);
      const found = stored && readReport(stored);
      const registration = readRegistration(value);
      // The report of another folder, which had the name before, says nothing of this packager.
      const own = found?.id === registration.id ? found : undefined;
      return { ...registration, name, live: living.has(name), report: own };
    })
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}

/** Removes a packager that does not run. @throws HttpError 404, 409. @throws EngineError */
export async function retire(engine: Engine, keys: EngineKeys, name: string): Promise<void> {
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const asked = [keys.packager(name), keys.report(name), keys.live(name)];
    const { values } = PACKAGER_NAME.test(name) ? await engine.read(asked) : { values: [] };
    const [registration, report, live] = values;
    if (!registration)
      throw apiError(
        'packager_not_found',
        `No packager of the fleet is called ${name}. GET /api/fleet lists them.`,
      );
    if (live)
      throw apiError(
        'packager_live',
        `The packager ${name} is running. Stop its sidecar, wait half a minute, then retire it.`,
      );
    const removals = [registration, report].flatMap((stored): Change[] =>
      stored ? [{ key: stored.key, expected: stored.revision, value: undefined }] : [],
    );
    // If it starts meanwhile, the guard fails and it is read again.
    const done = await engine.change(removals, { key: keys.live(name), revision: 0 });
    if (done?.[0]?.made) return;
  }
  throw new EngineError('unavailable', `the registration of the packager ${name} keeps changing`);
}

type Version = readonly [streamId: StreamId, record: Pick<LedgerRecord, 'version' | 'revision'>];

/** `now`: ms since 1970. */
export function replicationLag(
  packagers: readonly Packager[],
  records: Iterable<Version>,
  now: number,
): FleetPackager[] {
  const slowest = packagers.reduce(
    (least, { report }) => Math.min(least, leastApplied(report) ?? -1),
    Infinity,
  );
  const recent = [...records].filter(([, { revision }]) => revision > slowest);
  // Packagers with the same streams and the same report miss the same.
  const known = new Map<string, readonly Version[]>();
  return packagers.map((packager) => {
    const { streams, report } = packager;
    const name = JSON.stringify([report?.applied, streams]);
    const applied = appliedTo(streams, report?.applied ?? []);
    const missed =
      known.get(name) ??
      recent.filter(([id, { revision }]) => isWithinPrefixes(streams, id) && revision > applied(id));
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
    clock_ahead_ms: report?.clockAhead ?? null,
    propagation_ms: [...(report?.propagation ?? [])],
  };
}

function leastApplied(report: Report | undefined): number | undefined {
  return report && report.applied.length > 0 ? Math.min(...report.applied) : undefined;
}

/** Undefined: it has the stream. `unnamed`: perhaps not, since its report names only some of the missing streams. */
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

export function streamLag(
  packagers: readonly Packager[],
  streamId: StreamId,
  revision: number,
): FleetStreamAnswer['packagers'] {
  return packagers
    .filter(({ streams }) => isWithinPrefixes(streams, streamId))
    .map((packager) => {
      const { name, live } = packager;
      const why = lackOf(packager)(streamId, revision);
      return { name, live, has: why === undefined, ...(why && why !== 'unnamed' && { why }) };
    });
}
