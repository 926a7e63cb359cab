import type { Express } from 'express';
import * as z from 'zod';
import { routeAt } from '../../../http/app';
import { HttpError } from '../../../http/errors';
import { wireTime } from '../clock';
import type { EmulatorContext } from '../context';
import { readJson, validated } from '../json-body';
import { type Fault, type FaultSwitch, whyNoRoute } from './faults';

const ClockBody = z.strictObject(
  {
    advance_seconds: z
      .number('must be a number of seconds')
      .min(0, 'must not be negative: time goes forward')
      .max(366 * 24 * 3600, 'must be at most a year'),
  },
  'The body must be a JSON object with advance_seconds.',
);

const TARGET = /^(?:webhook:(?:\*|[A-Za-z0-9]{8})|(?:\*|[A-Z]+) \/(?:(?![?#])[\x21-\x7e])*)$/;

const STATUS = 'must be 400 to 599';
const RATE = 'must be a number from 0 to 1';
const milliseconds = z.int('must be milliseconds').max(600_000, 'must be at most 600000');

export const FaultBody = z
  .strictObject(
    {
      target: z
        .string('must be a string')
        .max(500, 'is longer than 500 characters')
        .regex(
          TARGET,
          'must be "METHOD /path" without a query (:name and * stand for one part), webhook:<id> or webhook:*',
        ),
      kind: z.enum(['fail', 'delay', 'reset'], 'must be fail, delay or reset'),
      status: z.int('must be a status').min(400, STATUS).max(599, STATUS).optional(),
      ms: milliseconds.min(1, 'must be at least 1').optional(),
      ms_to: milliseconds.optional(),
      rate: z.number(RATE).min(0, RATE).max(1, RATE).optional(),
      times: z
        .int('must be a whole number')
        .min(1, 'must be at least 1')
        .max(1_000_000, 'must be at most 1000000')
        .optional(),
    },
    'The body must be a JSON object with target and kind.',
  )
  .superRefine(({ kind, status, ms, ms_to }, context) => {
    if (status !== undefined && kind !== 'fail') addIssue(context, 'status', 'goes with the kind fail');
    if (ms !== undefined && kind !== 'delay') addIssue(context, 'ms', 'goes with the kind delay');
    if (ms_to !== undefined && (ms === undefined || ms_to < ms))
      addIssue(context, 'ms_to', 'goes with ms, and must not be less');
  });

export type FaultBody = z.output<typeof FaultBody>;

function addIssue(context: z.RefinementCtx, field: string, message: string): void {
  context.addIssue({ code: 'custom', path: [field], message });
}

/** Without more words, a call fails with 500, or is a second late; and one call, or with a rate any number of calls. */
export function faultOf({ target, kind, status = 500, ms = 1000, ms_to, rate, times }: FaultBody) {
  const faults: Readonly<Record<Fault['kind'], Fault>> = {
    fail: { kind: 'fail', status },
    delay: { kind: 'delay', ms, ms_to },
    reset: { kind: 'reset' },
  };
  return {
    target,
    fault: faults[kind],
    rate,
    times: times ?? (rate === undefined ? 1 : Number.POSITIVE_INFINITY),
  };
}

const NO_WEBHOOK = 'there is no webhook with this id; GET /state lists them, webhook:* means all';

export function mountSwitches(
  app: Express,
  { clock, faults, state }: Pick<EmulatorContext, 'clock' | 'faults' | 'state'>,
): void {
  routeAt(app, '/clock')
    .get((_request, response) => void response.json({ now: wireTime(clock.now()) }))
    .post(readJson, (request, response) => {
      const { advance_seconds } = validated(ClockBody, request.body);
      clock.advance(Math.round(advance_seconds * 1000));
      response.json({ now: wireTime(clock.now()) });
    });

  routeAt(app, '/faults')
    .get((_request, response) => void response.json(renderFaults(faults.list())))
    .post(readJson, (request, response) => {
      const { target, fault, times, rate } = faultOf(validated(FaultBody, request.body));
      const [, webhookId] = /^webhook:(.*)$/.exec(target) ?? [];
      const why =
        webhookId === undefined
          ? whyNoRoute(target, faults.routes)
          : webhookId !== '*' && !state.webhooks.find(webhookId) && NO_WEBHOOK;
      if (why) throw new HttpError(400, { code: 'invalid_body', description: `target: ${why}` });
      faults.add(target, fault, times, rate);
      response.status(201).json(renderFaults(faults.list()));
    })
    .delete((_request, response) => {
      faults.clear();
      response.status(204).end();
    });
}

export function renderFaults(switches: readonly FaultSwitch[]) {
  // Any number of calls is `null` in JSON.
  return {
    faults: switches.map(({ target, fault, rate, left }) => ({ target, ...fault, rate, times: left })),
  };
}
