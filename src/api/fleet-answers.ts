import * as z from 'zod';
import { FLEET_STATES, LACK_REASONS, MAX_LACKS, namesOf } from './fleet';

const tableOf = (table: Readonly<Record<string, string>>): string =>
  Object.entries(table)
    .map(([name, text]) => `\`${name}\`: ${text}`)
    .join('; ');

const streamid = z.string().describe('The stream id.');
const why = z.enum(namesOf(LACK_REASONS)).describe(`Why: ${tableOf(LACK_REASONS)}.`);
const name = z.string().describe('The name of the packager, `PACKAGERDRMAPI_FLEET_NAME`.');
const live = z.boolean().describe('Whether its sidecar runs and reaches the engine.');
const revision = z.int().nullable().describe("The engine's revision; `null`: not known yet.");

const engineServer = z.object({
  url: z.string().describe('Its address.'),
  fault: z.string().optional().describe('Why it could not be asked.'),
  version: z.string().optional().describe('Its version.'),
  leader: z.boolean().optional().describe('Whether it is the leader.'),
  size: z.int().optional().describe('The size of its database in bytes.'),
  size_in_use: z.int().optional().describe('Bytes of it that are in use.'),
  quota: z.int().optional().describe('Its quota in bytes.'),
  alarms: z
    .array(z.string())
    .optional()
    .describe('Its alarms, and those of servers that do not answer: `NOSPACE`, `CORRUPT`.'),
});

const fleetPackager = z.object({
  name,
  live,
  streams: z
    .array(z.string())
    .nullable()
    .describe('Prefixes of the ids of the streams that it takes; `null`: all.'),
  since: z.iso.datetime().describe('When it registered.'),
  version: z.string().describe('Of its sidecar.'),
  state: z.enum(namesOf(FLEET_STATES)).describe('Its membership state at its last report.'),
  applied: revision.describe(
    'It has every change of its streams up to this revision, but for `lacks`; of several prefixes the lowest. `null`: not reported yet.',
  ),
  reported: z.iso.datetime().nullable().describe('When it last reported, by its own clock.'),
  behind: z.int().describe('How many changes of its streams it has not received yet.'),
  behind_seconds: z.number().describe('The age of the oldest of them, in seconds; 0 when there is none.'),
  lacks: z
    .array(z.object({ streamid, why }))
    .describe(`The streams that are missing at it, up to ${MAX_LACKS}.`),
  lacking: z.int().describe('Their number.'),
  clock_ahead_ms: z
    .int()
    .nullable()
    .describe("By how much its clock is ahead of the engine's, to about a second."),
  propagation_ms: z
    .array(z.number())
    .describe(
      'For its last changes, oldest first: the time from their acceptance anywhere to the file here, by the clocks of both.',
    ),
});

const sealedEntries = z.object({
  entries: z.int().describe('How many entries, of the streams that it takes.'),
  streamids: z.array(z.string()).describe(`The streams of up to ${MAX_LACKS} of them.`),
});

const fleetFinding = z.object({
  severity: z.enum(['error', 'warning']).describe('`warning`: it may pass, or the fleet works without it.'),
  code: z.string().describe('For programs: stable, in snake_case.'),
  description: z.string().describe('What is wrong.'),
  todo: z.string().describe('What to do.'),
  commands: z.array(z.array(z.string())).optional().describe('Commands that do it, each in its words.'),
});

export const fleetAnswer = z.object({
  name,
  fleet: z.string().nullable().describe('The id of the fleet; `null`: it has joined none yet.'),
  state: z
    .enum(namesOf(FLEET_STATES))
    .describe(`The membership state of this sidecar: ${tableOf(FLEET_STATES)}.`),
  since: z.iso.datetime().describe('Since when it is in this state.'),
  revision,
  engine: z.array(engineServer).describe('The servers of the engine.'),
  compacted: z
    .boolean()
    .nullable()
    .describe('Whether the engine compacts old revisions; `null`: it is too new, or cannot be reached.'),
  streams: z.int().describe('How many streams of the fleet have a key file, of those that it takes.'),
  deleted: z.int().describe('How many are noted as deleted.'),
  missing: z
    .int()
    .describe(
      'How many key files of the fleet are here that the engine no longer knows. They stay; an import brings them back.',
    ),
  former_secret: sealedEntries
    .optional()
    .describe(
      'Entries that are sealed with another secret of its file than the first. A reseal seals them with the first; before that, no other secret may be removed from a file.',
    ),
  missing_secret: sealedEntries
    .optional()
    .describe('Entries that are sealed with a secret which it does not have.'),
  ignored: z
    .int()
    .optional()
    .describe('How many keys of the engine are ignored, since their names are no names of packagers.'),
  packagers: z.array(fleetPackager).describe('Every registered packager, by name.'),
  findings: z.array(fleetFinding).optional().describe('What is wrong with the fleet, and what to do.'),
});

export const fleetStreamAnswer = z.object({
  streamid,
  revision: z.int().describe("The engine's revision of its last change."),
  state: z
    .enum(['file', 'deleted', 'unreadable'])
    .describe('`unreadable`: what the engine holds cannot be opened here.'),
  etag: z.string().nullable().describe('The entity tag of its key file; `null`: it has none.'),
  changed: z.iso.datetime().nullable().describe('When the change was accepted.'),
  key: z.string().nullable().describe('The name of the API key that made it.'),
  from: z.string().nullable().describe('The packager whose sidecar took the request.'),
  packagers: z
    .array(
      z.object({
        name,
        live,
        has: z.boolean().describe('Whether it has this state of the stream.'),
        why: why.optional(),
      }),
    )
    .describe('Every registered packager that takes the stream.'),
});

const next = z
  .string()
  .nullable()
  .describe('The value of `after` for the next step; `null` after the last one.');

export const fleetImportAnswer = z.object({
  imported: z.int().describe('Key files that the fleet has now.'),
  same: z.int().describe('Key files that it had already.'),
  refused: z
    .array(
      z.object({
        streamid,
        code: z
          .enum(['differs', 'deleted', 'unreadable', 'not_a_key_file', 'not_taken'])
          .describe(
            'The reason: the fleet has another key file of the stream, notes it as deleted, or has an entry that cannot be opened; or there is no regular file; or this packager does not take the stream.',
          ),
        description: z.string().describe('The reason in words.'),
      }),
    )
    .describe('Key files that stay as they are, here and in the fleet, and why.'),
  next,
  total: z.int().describe('How many key files there are here.'),
});

export const fleetResealAnswer = z.object({
  resealed: z.int().describe('Entries that are sealed with the first secret now.'),
  current: z.int().describe('Entries that were already.'),
  unreadable: z
    .array(z.string())
    .describe('Streams whose entries no secret of this sidecar opens. They stay as they are.'),
  next,
  total: z.int().describe('How many entries the fleet has.'),
});

export const fleetRetireAnswer = z.object({ name, retired: z.literal(true) });

export type FleetAnswer = z.output<typeof fleetAnswer>;
export type FleetFinding = z.output<typeof fleetFinding>;
export type FleetPackager = FleetAnswer['packagers'][number];
export type FleetStreamAnswer = z.output<typeof fleetStreamAnswer>;
export type FleetImportAnswer = z.output<typeof fleetImportAnswer>;
export type FleetResealAnswer = z.output<typeof fleetResealAnswer>;
