import * as z from 'zod';
import { httpError } from '../../../http/errors';
import type { Clock } from '../clock';
import { field, validated } from '../json-body';
import { siteBody } from './body';
import { Day, SITE } from './fields';
import type { Action } from './resource';

const Counts = z.object({
  media_created: field(z.int(), 'How many media were made.'),
  uploaded_bytes: field(z.int(), 'Bytes that were uploaded or fetched.'),
  deliveries: field(z.int(), 'How often viewers asked for a media or a playlist.'),
  delivered_bytes: field(z.int(), 'Bytes that viewers got.'),
  live_seconds: field(z.number(), 'Seconds that encoders streamed.'),
});
type Counts = z.output<typeof Counts>;

const DayOfSite = Counts.extend({
  site_id: field(z.string(), 'The site.'),
  date: field(Day, 'The day.'),
});

const Days = z.object({
  start_date: field(Day, 'The first day.'),
  end_date: field(Day, 'The last day.'),
  results: field(z.array(DayOfSite), 'Each day of each site, the oldest first.'),
});

const AskedDays = siteBody({
  start_date: field(Day.nullish(), 'The first day. Without it, 30 days before the last.'),
  end_date: field(Day.nullish(), 'The last day. Without it, today.'),
});

const usageAction = (path: string, title: string, says: string) =>
  ({ methods: ['PUT'], path, title, status: 200, says, answer: Days, body: AskedDays }) as const;

export const USAGE_ACTIONS = {
  query_usage: usageAction(
    `${SITE}/query_usage`,
    'Query the usage of a site',
    'The usage of a site, day by day.',
  ),
  query_account_usage: usageAction(
    '/v2/query_usage',
    'Query the usage of the account',
    'The usage of all sites of the credential, day by day.',
  ),
} satisfies Readonly<Record<string, Action>>;

/** `day` is the id of the site, a space and the date. */
export interface UsageOfDay {
  readonly day: string;
  readonly counts: Partial<Counts>;
}

/** Counts the usage of each site and day, by the platform's clock in UTC. */
export class Usage {
  readonly #days = new Map<string, Counts>();

  count(siteId: string, at: Date, name: keyof Counts, much = 1): void {
    const key = `${siteId} ${dayOf(at)}`;
    const day = this.#days.get(key) ?? { ...NOTHING };
    day[name] += much;
    this.#days.set(key, day);
  }

  /** Adds the seconds from one moment to another, each to its own day. */
  countTime(siteId: string, from: Date, to: Date, name: keyof Counts): void {
    for (let start = from.getTime(); start < to.getTime(); ) {
      const end = Math.min(to.getTime(), (Math.floor(start / DAY_MS) + 1) * DAY_MS);
      this.count(siteId, new Date(start), name, (end - start) / 1000);
      start = end;
    }
  }

  on(siteId: string, day: string): Readonly<Counts> {
    return this.#days.get(`${siteId} ${day}`) ?? NOTHING;
  }

  all(): UsageOfDay[] {
    return [...this.#days].map(([day, counts]) => ({ day, counts }));
  }

  restore(days: readonly UsageOfDay[]): void {
    for (const { day, counts } of days) this.#days.set(day, { ...NOTHING, ...counts });
  }

  clear(): void {
    this.#days.clear();
  }
}

const NOTHING = Object.fromEntries(Object.keys(Counts.shape).map((name) => [name, 0])) as Counts;
export const DAY_MS = 24 * 60 * 60 * 1000;
const MAX_DAYS = 366;

export function dayOf(at: Date): string {
  return at.toISOString().slice(0, 10);
}

/** Oldest first; without a body, the latest 30 days. @throws HttpError 400 for a wrong order, or too many. */
export function usageOf(
  { state, clock }: { readonly state: { readonly usage: Usage }; readonly clock: Clock },
  siteIds: readonly string[],
  body: unknown,
) {
  const given = validated(AskedDays, body ?? {});
  const end = given.end_date ?? dayOf(clock.now());
  const start = given.start_date ?? dayOf(new Date(Date.parse(end) - 29 * DAY_MS));
  const days = (Date.parse(end) - Date.parse(start)) / DAY_MS + 1;
  if (days < 1) throw httpError('invalid_body', 'end_date: must not be before start_date');
  if (days > MAX_DAYS) throw httpError('invalid_body', `start_date: is more than ${MAX_DAYS} days before`);
  const results = Array.from({ length: days }, (_, place) =>
    dayOf(new Date(Date.parse(start) + place * DAY_MS)),
  ).flatMap((date) =>
    siteIds.map((site_id): z.output<typeof DayOfSite> => {
      const { live_seconds, ...day } = state.usage.on(site_id, date);
      return { site_id, date, ...day, live_seconds: Math.round(live_seconds) };
    }),
  );
  return { start_date: start, end_date: end, results };
}
