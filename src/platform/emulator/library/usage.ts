import { HttpError } from '../../../http/errors';
import type { EmulatorContext } from '../context';

/** What a site used on one day. */
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

/** What is counted for each site and day, by the platform's clock in UTC. */
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

  /** What a site used on a day such as 2030-01-31. */
  on(siteId: string, day: string): Readonly<DayOfUsage> {
    return this.#days.get(`${siteId} ${day}`) ?? NOTHING;
  }

  clear(): void {
    this.#days.clear();
  }
}

const NOTHING: DayOfUsage = { media: 0, uploadedBytes: 0, deliveries: 0, deliveredBytes: 0, liveSeconds: 0 };
const DAY_MS = 24 * 60 * 60 * 1000;
const MAX_DAYS = 366;

function dayOf(at: Date): string {
  return at.toISOString().slice(0, 10);
}

/**
 * What sites used, day by day, oldest first; the first and the last day are among them.
 * @throws HttpError 400 when the days are in the wrong order, or too many.
 */
export function queryUsage(
  { state, clock }: Pick<EmulatorContext, 'state' | 'clock'>,
  siteIds: readonly string[],
  given: Readonly<Record<string, unknown>>,
) {
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
