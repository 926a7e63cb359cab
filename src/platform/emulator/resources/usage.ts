import * as z from 'zod';
import { HttpError } from '../../../http/errors';
import type { Clock } from '../clock';
import { actionSchema, readActionFields } from './body';
import { Day, type SetFields, type ShownFields, SITE } from './fields';
import type { Action } from './resource';
import { once } from './resource-calls';

const DAYS = {
  start_date: { schema: Day, says: 'The first day.' },
  end_date: { schema: Day, says: 'The last day.' },
  results: {
    schema: z.array(
      z.object({
        site_id: z.string().meta({ description: 'The site.' }),
        date: Day.meta({ description: 'The day.' }),
        media_created: z.int().meta({ description: 'How many media were made.' }),
        uploaded_bytes: z.int().meta({ description: 'Bytes that were uploaded or fetched.' }),
        deliveries: z.int().meta({ description: 'How often viewers asked for a media or a playlist.' }),
        delivered_bytes: z.int().meta({ description: 'Bytes that viewers got.' }),
        live_seconds: z.number().meta({ description: 'Seconds that encoders streamed.' }),
      }),
    ),
    says: 'Each day of each site, the oldest first.',
  },
} as const satisfies ShownFields;

const ASKED_DAYS = {
  start_date: { schema: Day, says: 'The first day. Without it, 30 days before the last.' },
  end_date: { schema: Day, says: 'The last day. Without it, today.' },
} as const satisfies SetFields;

/** The usage of a site, and of the account. */
export const USAGE_ACTIONS = {
  query_usage: {
    methods: ['PUT'],
    path: `${SITE}/query_usage`,
    title: 'Query the usage of a site',
    status: 200,
    says: 'The usage of a site, day by day.',
    answer: DAYS,
    body: ASKED_DAYS,
  },
  query_account_usage: {
    methods: ['PUT'],
    path: '/v2/query_usage',
    title: 'Query the usage of the account',
    status: 200,
    says: 'The usage of all sites of the credential, day by day.',
    answer: DAYS,
    body: ASKED_DAYS,
  },
} as const satisfies Readonly<Record<string, Action>>;

/** The usage of a site on one day. */
interface DayOfUsage {
  /** Media that were made. */
  media: number;
  /** Bytes that were uploaded or fetched. */
  uploadedBytes: number;
  /** Documents of media and playlists that viewers asked for. */
  deliveries: number;
  /** Bytes of media, pictures and text tracks that viewers got. */
  deliveredBytes: number;
  /** Seconds that encoders streamed. */
  liveSeconds: number;
}

/** Counts the usage of each site and day, by the platform's clock in UTC. */
export class Usage {
  readonly #days = new Map<string, DayOfUsage>();

  /** Adds to the day of a site. */
  count(siteId: string, at: Date, name: keyof DayOfUsage, much = 1): void {
    const key = `${siteId} ${dayOf(at)}`;
    const day = this.#days.get(key) ?? { ...NOTHING };
    day[name] += much;
    this.#days.set(key, day);
  }

  /** Adds the seconds from one moment to another, each to its own day. */
  countTime(siteId: string, from: Date, to: Date, name: keyof DayOfUsage): void {
    for (let start = from.getTime(); start < to.getTime(); ) {
      const end = Math.min(to.getTime(), (Math.floor(start / DAY_MS) + 1) * DAY_MS);
      this.count(siteId, new Date(start), name, (end - start) / 1000);
      start = end;
    }
  }

  /** The usage of a site on a day such as 2030-01-31. */
  on(siteId: string, day: string): Readonly<DayOfUsage> {
    return this.#days.get(`${siteId} ${day}`) ?? NOTHING;
  }

  clear(): void {
    this.#days.clear();
  }
}

declare module './resource' {
  interface LibraryState {
    readonly usage: Usage;
  }
}

const NOTHING: DayOfUsage = { media: 0, uploadedBytes: 0, deliveries: 0, deliveredBytes: 0, liveSeconds: 0 };
const DAY_MS = 24 * 60 * 60 * 1000;
const MAX_DAYS = 366;

function dayOf(at: Date): string {
  return at.toISOString().slice(0, 10);
}

const askedDays = once(() => actionSchema(ASKED_DAYS));

/**
 * The usage of sites, day by day, oldest first, with the first and the last day; without a body, on the latest 30 days.
 * @throws HttpError 400 when the days are in the wrong order, or too many.
 */
export function usageOf(
  { state, clock }: { readonly state: { readonly usage: Usage }; readonly clock: Clock },
  siteIds: readonly string[],
  body: unknown,
) {
  const given = readActionFields(askedDays(), body ?? {}, 'invalid_body');
  const end = typeof given.end_date === 'string' ? given.end_date : dayOf(clock.now());
  const start =
    typeof given.start_date === 'string' ? given.start_date : dayOf(new Date(Date.parse(end) - 29 * DAY_MS));
  const days = (Date.parse(end) - Date.parse(start)) / DAY_MS + 1;
  if (days < 1 || days > MAX_DAYS) {
    const description =
      days < 1
        ? 'end_date: must not be before start_date'
        : `start_date: is more than ${MAX_DAYS} days before`;
    throw new HttpError(400, { code: 'invalid_body', description });
  }
  const results = Array.from({ length: days }, (_, place) =>
    dayOf(new Date(Date.parse(start) + place * DAY_MS)),
  ).flatMap((date) => siteIds.map((siteId) => renderDay(siteId, date, state.usage.on(siteId, date))));
  return { start_date: start, end_date: end, results };
}

function renderDay(siteId: string, date: string, day: Readonly<DayOfUsage>) {
  return {
    site_id: siteId,
    date,
    media_created: day.media,
    uploaded_bytes: day.uploadedBytes,
    deliveries: day.deliveries,
    delivered_bytes: day.deliveredBytes,
    live_seconds: Math.round(day.liveSeconds),
  };
}
