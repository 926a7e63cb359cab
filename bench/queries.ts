import type { Figure, Plan } from './figure';
import { median, oneByOne } from './load';
import { residentMiB, type Started, start } from './processes';

const SECRET = 'bench-api-secret-0123456789';
const REQUESTS = 50;
const MEDIA = 10_000;
/** For the median of any list. */
const AT_MOST_MS = 25;

const QUERIES: readonly (readonly [name: string, query: Readonly<Record<string, string>>])[] = [
  ['plain list', {}],
  ['last page', { page: String(MEDIA / 10) }],
  ['word of one title', { q: 'title: 7777' }],
  ['word of half of the titles', { q: 'title: live' }],
  ['phrase of half of the titles', { q: 'title: "live show"' }],
  ['start of a word of half of the titles', { q: 'title: liv*' }],
  ['exact external id', { q: 'external_id: ext-7777' }],
  ['tag of half of the media', { q: 'tags: "late night"' }],
  ['custom parameter', { q: 'custom_params.room: "room 7"' }],
  ['half of the times', { q: 'created: [2030-01-05 TO *]' }],
  ['title AND tag', { q: 'title: live AND tags: football' }],
  ['NOT', { q: 'NOT title: live' }],
  ['sorted by title', { sort: 'title:asc' }],
  [
    'word of half of the titles, sorted by author and title',
    { q: 'title: live', sort: 'author:asc,title:dsc' },
  ],
];

/** Lists and queries of the largest library that the emulator is built for, in milliseconds. */
export async function queries(plan: Plan): Promise<Figure[]> {
  const [empty, large] = await Promise.all([startLibrary(0), startLibrary(MEDIA)]);
  const get = async (query: Readonly<Record<string, string>>) => {
    const path = `/v2/sites/benchsit/media/?${new URLSearchParams(query)}`;
    const headers = { authorization: `Bearer ${SECRET}` };
    return median(await oneByOne(large.url, 'GET', [path], { headers, count: REQUESTS }));
  };
  const kept = ((residentMiB(large.child) - residentMiB(empty.child)) / MEDIA) * 1024 * 1024;
  const asked = QUERIES.map(([name, query]) => ({ name, query, ms: [] as number[] }));
  for (const { query } of asked) await get(query);
  for (let round = 0; round < plan.rounds; round += 1)
    for (const { query, ms } of asked) ms.push(await get(query));
  await Promise.all([empty.stop(), large.stop()]);
  return asked.map(({ name, ms }, place) => ({
    name: `list of ${MEDIA.toLocaleString('en')} media, milliseconds: ${name}`,
    atMost: AT_MOST_MS,
    ratios: ms,
    ...(place === 0 && { detail: `${Math.round(kept).toLocaleString('en')} bytes resident memory a media` }),
  }));
}

function startLibrary(count: number): Promise<Started> {
  return start('bench/servers/library.js', { BENCH_MEDIA: String(count), BENCH_SECRET: SECRET }, '/healthz');
}
