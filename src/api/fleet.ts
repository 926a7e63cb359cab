import * as z from 'zod';
import { querySwitch, wholeNumber } from '../http/faults';

export const FLEET_STATES = {
  joining: 'it has not yet received every key file of the fleet',
  level: 'it has every change of the engine, and receives every change',
  away: 'it does not reach the engine; the key files in its folder stay',
  wrong_secret: 'the fleet is sealed with a secret that it does not have; it writes nothing',
  other_fleet: 'the engine holds a different fleet than the one that it joined; it writes nothing',
  lost_fleet: 'the engine is empty though it has joined a fleet; it writes and removes nothing',
  name_taken: 'another sidecar runs under its name; key files still arrive',
  denied: 'the engine refuses its user, its certificate, or a right that it needs',
  no_folder: 'its key-file folder cannot be used',
} as const;

export type FleetState = keyof typeof FLEET_STATES;

export const LACK_REASONS = {
  behind: 'the packager has not received the change yet',
  kept: "a file that is not the fleet's is in its place, and stays until a POST replaces it",
  unreadable: "the packager cannot open the engine's entry: sealed with another secret, or damaged",
  failed: 'the file could not be written or removed; the sidecar retries',
  older: 'the engine holds an older state than the packager: a backup was restored, or an old entry replayed',
} as const;

export type LackReason = keyof typeof LACK_REASONS;

/** In the key-file folder. No stream id begins with a dot. */
export const FLEET_FOLDER = '.packagerdrmapi-fleet';

/** Missing streams that are listed for a packager. */
export const MAX_LACKS = 100;
/** For a request that waits for all packagers. */
export const MAX_WAIT_SECONDS = 30;
const MAX_FLEET_STEP = 1000;

export const namesOf = <Name extends string>(table: Readonly<Record<Name, string>>): [Name, ...Name[]] =>
  Object.keys(table) as [Name, ...Name[]];

const WAIT_RULE = `must be a whole number of seconds, from 1 to ${MAX_WAIT_SECONDS}`;

export const waitSeconds = z
  .string(WAIT_RULE)
  .refine((text) => /^[1-9]\d?$/.test(text) && Number(text) <= MAX_WAIT_SECONDS, WAIT_RULE)
  .transform(Number)
  .optional()
  .meta({
    type: 'integer',
    minimum: 1,
    maximum: MAX_WAIT_SECONDS,
    description:
      'Only in a fleet of packagers: the answer waits, at most this number of seconds, until every registered packager that takes the stream has the change. It is 200 when all have it, else 202 with a `Warning` that names those where it is missing. A dry run does not wait.',
  });

export const fleetStepQuery = z.strictObject({
  after: z
    .string('is given twice')
    .max(200, 'must be a stream id')
    // The engine's keys are bytes.
    .refine((text) => !/[^\0-\xff]/.test(text), 'must be a stream id')
    .optional()
    .describe('The `next` of the step before; left out for the first one.'),
  limit: wholeNumber(1, MAX_FLEET_STEP)
    .default(MAX_FLEET_STEP)
    .meta({ default: MAX_FLEET_STEP, description: 'The number of streams of a step, at most.' }),
});

export const fleetImportQuery = fleetStepQuery.extend({
  found: querySwitch.describe(
    "`true`, with the first step: the engine has lost the fleet, and it is founded again. Refused while the fleet is there, and while another one is. Restore the engine's backup instead, if there is one.",
  ),
});
