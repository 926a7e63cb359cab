import * as z from 'zod';
import { FLEET_STATES, type FleetState, LACK_REASONS, type LackReason } from '../../../api/fleet';
import type { Engine, KeyRange, Lease, StoredValue } from '../engine/engine';
import type { Places } from '../places';
import type { Packager, Report } from './packagers';

/** What a packager wrote of itself when it registered. */
export type Registration = Omit<Packager, 'name' | 'live' | 'report'>;

/** A report, and of which folder's packager it is: another one under the same name has not what this one says. */
export interface KeptReport extends Report {
  readonly id: string;
  readonly at: number;
}

/** Who lives under a name. The lease tells two sidecars from each other whose folders are copies. */
export interface Life {
  readonly id: string;
  readonly lease: string;
}

/** The last day that a date can be. */
const LAST_TIME = 8.64e15;
/** How many records of packagers are asked for at once: a report may have 200 KB. */
const PAGE = 200;

// Each field falls back on its own: other versions may write more, or something else.
const time = z.int().min(0).max(LAST_TIME).catch(0);
const text = z.string().catch('');

const registration = z.object({
  id: text,
  streams: z.array(z.string()).nullable().catch(null),
  since: time,
  version: text,
});

const life = z.object({ id: text, lease: text });

const stateNames = Object.keys(FLEET_STATES) as [FleetState, ...FleetState[]];
const whyNames = Object.keys(LACK_REASONS).filter((name) => name !== 'behind') as [
  Exclude<LackReason, 'behind'>,
  ...Exclude<LackReason, 'behind'>[],
];

const report = z.object({
  id: text,
  state: z.enum(stateNames).catch('joining'),
  applied: z.array(z.int().min(0)).catch([]),
  // Pairs, since `__proto__` is the id of a stream like others.
  lacks: z.array(z.tuple([z.string(), z.enum(whyNames).catch('failed')])).catch([]),
  lacking: z.int().min(0).catch(0),
  clockAhead: z.number().nullable().catch(null),
  propagation: z.array(z.number().min(0)).catch([]),
  at: time,
});

/** Reads what the engine holds; what is no JSON object has no field. */
function read<Shape extends z.ZodRawShape>(schema: z.ZodObject<Shape>, value: Buffer) {
  let found: unknown;
  try {
    found = JSON.parse(value.toString());
  } catch {
    found = undefined;
  }
  return schema.parse(typeof found === 'object' && found !== null && !Array.isArray(found) ? found : {});
}

export function readRegistration(value: Buffer): Registration {
  const { streams, ...rest } = read(registration, value);
  return { ...rest, streams: streams ?? undefined };
}

export function registrationValue({ id, streams, since, version }: Registration): Buffer {
  return Buffer.from(JSON.stringify({ id, streams: streams ?? null, since, version }));
}

export function readLife(value: Buffer): Life {
  return read(life, value);
}

export function lifeValue(id: string, lease: Lease): Buffer {
  return Buffer.from(JSON.stringify({ id, lease } satisfies Life));
}

/**
 * Reads a report as it stands in the engine. Nobody can have a revision that is not older than his report: the engine was
 * restored from a backup then, and the report is about changes that it has lost.
 */
export function readReport({ value, revision }: Pick<StoredValue, 'value' | 'revision'>): KeptReport {
  const { applied, clockAhead, lacks, lacking, ...rest } = read(report, value);
  return {
    ...rest,
    applied: applied.some((each) => each >= revision) ? [] : applied,
    clockAhead: clockAhead ?? undefined,
    lacks: Object.fromEntries(lacks),
    lacking: Math.max(lacking, lacks.length),
  };
}

/** The JSON of a report, without its time: equal ones say the same. */
export function reportText(id: string, { applied, clockAhead, lacks, ...rest }: Report): string {
  const { state, lacking, propagation } = rest;
  return JSON.stringify({
    id,
    state,
    applied,
    lacks: Object.entries(lacks),
    lacking,
    clockAhead: clockAhead ?? null,
    propagation,
  });
}

export function reportValue(said: string, at: Date): Buffer {
  return Buffer.from(`${said.slice(0, -1)},"at":${at.getTime()}}`);
}

/** All keys of a range, and the revision from which on a watch tells what has changed since. @throws EngineError */
export async function listRange(
  engine: Pick<Engine, 'list'>,
  range: KeyRange,
): Promise<{ readonly values: readonly StoredValue[]; readonly next: number }> {
  const values: StoredValue[] = [];
  let next: number | undefined;
  for (let after: string | undefined; ; after = values.at(-1)?.key) {
    const page = await engine.list({ ...range, after }, { limit: PAGE });
    next ??= page.at.revision + 1;
    values.push(...page.values);
    if (!page.more || page.values.length === 0) return { values, next };
  }
}

/** Every registered packager with what is known of it, by name. @throws EngineError */
export async function listPackagers(
  engine: Pick<Engine, 'list'>,
  places: Places,
): Promise<readonly Packager[]> {
  const [registered, living, reported] = await Promise.all(
    [places.packagers, places.lives, places.reports].map(async (range) => {
      const { values } = await listRange(engine, range);
      return new Map(values.map((stored) => [places.nameOf(stored.key), stored]));
    }),
  );
  return [...(registered ?? [])]
    .map(([name, { value }]): Packager => {
      const { id, streams, since, version } = readRegistration(value);
      const found = reported?.get(name);
      const kept = found && ofPackager(id, readReport(found));
      return { name, id, streams, since, version, live: living?.has(name) === true, report: kept };
    })
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}

/** A report, unless it is that of another folder's packager, which had the name before. */
export function ofPackager<Kept extends KeptReport>(id: string, kept: Kept): Kept | undefined {
  return kept.id === id ? kept : undefined;
}
