import type { Figure, Plan } from './figure';
import { median, oneByOne } from './load';
import { residentMiB, type Started, start } from './processes';

const SECRET = 'bench-api-secret-0123456789';
const REQUESTS = 200;

/** What is asked of the media, and how many times the plain list it may take. */
const QUERIES: readonly (readonly [name: string, query: Readonly<Record<string, string>>])[] = [
  ['word of one title', { q: 'title: 77777' }],
  ['word of a tenth of the titles', { q: 'title: documentary' }],
  ['word of half of the titles', { q: 'title: live' }],
  ['mistyped word of half of the titles', { q: 'title: recroded' }],
  ['phrase of half of the titles', { q: 'title: "live show"' }],
  ['beginning of a word of half of the titles', { q: 'title: liv*' }],
  ['exact external id', { q: 'external_id: ext-77777' }],
  ['tag of half of the media', { q: 'tags: "late night"' }],
  ['custom parameter', { q: 'custom_params.room: "room 7"' }],
  ['half of the times', { q: 'created: [2030-02-05 TO *]' }],
  ['title AND tag', { q: 'title: live AND tags: football' }],
  ['NOT', { q: 'NOT title: live' }],
  ['sorted by title', { sort: 'title:asc' }],
  [
    'word of half of the titles, sorted by author and title',
    { q: 'title: live', sort: 'author:asc,title:dsc' },
  ],
];

/** Lists and queries of a large library beside a plain list of it, and beside a small library. */
export async function queries(plan: Plan): Promise<Figure[]> {
  const few = 100;
  const many = plan.manyFiles;
  const [small, empty, large] = await Promise.all([few, 0, many].map(startLibrary));
  if (!small || !empty || !large) throw new Error('the libraries should have started');
  const get = async (
    library: Started,
    asked: readonly Readonly<Record<string, string>>[],
    count = REQUESTS,
  ) => {
    const paths = asked.map((query) => `/v2/sites/benchsit/media/?${new URLSearchParams(query)}`);
    const headers = { authorization: `Bearer ${SECRET}` };
    return median(await oneByOne(library.url, 'GET', paths, { headers, count }));
  };
  for (const library of [small, empty, large]) await get(library, [{}], 500);
  const kept = (residentMiB(large.child) - residentMiB(empty.child)) / many;
  const before = residentMiB(large.child);
  const firsts: string[] = [];
  for (const [name, query] of QUERIES) firsts.push(`${name} ${(await get(large, [query], 1)).toFixed(0)} ms`);
  const indexed = (residentMiB(large.child) - before) / many;

  const last = Math.floor(many / 20);
  const deep = Array.from({ length: 50 }, (_none, index) => ({ page: String(last - index) }));
  const ratios = { deep: [] as number[], grown: [] as number[] };
  const asked = QUERIES.map(([name, query]) => ({ name, query, ratios: [] as number[], ms: 0 }));
  for (let round = 0; round < plan.rounds; round += 1) {
    const list = await get(large, [{}]);
    ratios.grown.push(list / (await get(small, [{}])));
    ratios.deep.push((await get(large, deep)) / list);
    for (const each of asked) {
      // Right beside what it is compared with, as the machine is not equally fast all the time.
      const plainList = await get(large, [{}], REQUESTS / 2);
      each.ms = await get(large, variants(each.query));
      each.ratios.push(each.ms / plainList);
    }
  }
  await Promise.all([small, empty, large].map((library) => library.stop()));
  const n = many.toLocaleString('en');
  const bytes = (mib: number) => `${Math.round(mib * 1024 * 1024).toLocaleString('en')} bytes`;
  return [
    {
      name: `page ${last.toLocaleString('en')} of ${n} media to page 1`,
      atMost: 1.2,
      ratios: ratios.deep,
      detail: `${bytes(kept)} resident memory a media, and ${bytes(indexed)} more once it was searched and sorted by 7 fields`,
    },
    { name: `page 1 of ${n} media to that of ${few}`, atMost: 1.2, ratios: ratios.grown },
    ...asked.map(
      ({ name, ratios: values, ms }, index): Figure => ({
        name: `query of ${n} media to their plain list: ${name}`,
        atMost: 5,
        ratios: values,
        detail: `${ms.toFixed(2)} ms in the last round; the first time ${firsts[index]?.replace(`${name} `, '')}`,
      }),
    ),
  ];
}

/** One query in so many texts that none is asked again while what it found is still kept. */
function variants(query: Readonly<Record<string, string>>): readonly Readonly<Record<string, string>>[] {
  const { q } = query;
  if (q === undefined) return [query];
  return Array.from({ length: 50 }, (_none, spaces) => ({ ...query, q: `${q}${' '.repeat(spaces)}` }));
}

function startLibrary(count: number): Promise<Started> {
  return start('bench/servers/library.js', { BENCH_MEDIA: String(count), BENCH_SECRET: SECRET }, '/healthz');
}
