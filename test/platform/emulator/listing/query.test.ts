import { parse } from 'node:querystring';
import fc from 'fast-check';
import { type Fields, readFilter } from '../../../../src/platform/emulator/listing/filter';
import { listPage } from '../../../../src/platform/emulator/listing/list';
import { processorMs } from '../../../support/processor-time';
import { startEmulator } from '../../../support/start-emulator';
import { tableRows } from '../../../support/table-rows';

interface Film {
  readonly title: string;
  readonly tags: readonly string[];
  readonly year: number | undefined;
  readonly created: Date;
}

const FIELDS: Fields<Film> = {
  named: {
    title: { kind: 'text', of: ({ title }) => title },
    tags: { kind: 'text', of: ({ tags }) => tags },
    year: { kind: 'number', of: ({ year }) => year },
    created: { kind: 'time', of: ({ created }) => created },
  },
  paramsOf: ({ title }) => ({ first: title.slice(0, 1) }),
};

const film = (title: string, tags: string[], year: number | undefined, day: string): Film => ({
  title,
  tags,
  year,
  created: new Date(`${day}T12:00:00Z`),
});
const FILMS = [
  film('Live show', ['news', 'evening'], 2020, '2030-01-01'),
  film('Alive', ['drama'], 1993, '2030-01-02'),
  film('The live-stream *special*', ['news', 'late night'], 2025, '2030-01-31'),
  film('Über "uns"', [], undefined, '2030-02-01'),
  film('', ['drama', 'news'], -5, '2031-01-01'),
];

function found(q: string): number[] {
  const filter = readFilter(q, FIELDS);
  expect(filter.faults).toEqual([]);
  return FILMS.flatMap((each, index) => (filter.predicate?.(each) === false ? [] : [index]));
}

test.each([
  ['', [0, 1, 2, 3, 4]],
  ['  ', [0, 1, 2, 3, 4]],
  ['title: live', [0, 2]],
  ['title:LIVE', [0, 2]],
  ['title: "live show"', [0]],
  ['title: "show live"', []],
  ['title: live-stream', [2]],
  ['title: stream', [2]],
  ['title: liv', []],
  ['title: liv*', [0, 2]],
  ['title: *liv*', [0, 1, 2]],
  ['title: *ive', [0, 1, 2]],
  ['title: "the*special\\*"', [2]],
  ['title: \\*special\\*', [2]],
  ['title: "\\"uns\\""', [3]],
  ['title: über', [3]],
  ['title: uber', []],
  ['title: *', [0, 1, 2, 3, 4]],
  ['title: ""', [4]],
  ['tags: "late night"', [2]],
  ['metadata.tags: night', [2]],
  ['year: 1993', [1]],
  ['year: [2000 TO 2025]', [0, 2]],
  ['year: [* TO 1993]', [1, 4]],
  ['year: [-5 TO *]', [0, 1, 2, 4]],
  ['year: [* TO *]', [0, 1, 2, 4]],
  ['NOT year: *', [3]],
  ['created: [2030-01-02 TO 2030-01-31]', [1, 2]],
  ['created: [2030-01-02T12:00:00Z TO "2030-01-31T11:59:59.999Z"]', [1]],
  ['created: 2030-01-0*', [0, 1]],
  ['created: 2030-01-02', [1]],
  ['created: "2030-01-02T12:00:00.000000+00:00"', [1]],
  ['title: [a TO live]', [1]],
  ['title: [* TO ALIVE]', [1, 4]],
  ['title: [M TO *]', [2, 3]],
  ['custom_params.first: L', [0]],
  ['custom_params.none: *', []],
  ['custom_params.valueOf: *', []],
  ['tags: drama OR tags: news AND title: live', [0, 1, 2, 4]],
  ['(tags: drama OR tags: news) AND title: live', [0, 2]],
  ['NOT NOT tags: drama', [1, 4]],
  ['NOT tags: drama AND NOT (title: live OR title: über)', []],
  ['tags:news AND(title:live)', [0, 2]],
  // The deepest and the longest that are allowed.
  [`${'('.repeat(50)}title: live${')'.repeat(50)}`, [0, 2]],
  [`${'NOT '.repeat(50)}title: live`, [0, 2]],
  [Array(140).fill('(title: a)').join(' OR '), []],
])('finds for %s the films %j', (q, expected) => {
  expect(found(q)).toEqual(expected);
});

const JOINED = 'Join conditions by AND or OR in capital letters, and put several words in quotes.';
const NAMED = 'Name the field to look in, as in title: news, and write NOT in capital letters.';
/** A query and its faults, one a line. */
const FAULTS = String.raw`
live → at character 5, a colon after live is expected. NAMED
title: → at character 7, a word, a text in quotes or a range is expected.
title: live show → at character 13, AND, OR or the end is expected. JOINED
title: "live → at character 13, a closing quote is expected.
title: live\ → at character 13, a character after the backslash is expected.
(title: live → at character 13, AND, OR or a closing parenthesis is expected. JOINED
title: live) → at character 12, AND, OR or the end is expected. JOINED
title: live AND → at character 16, a field, NOT or an opening parenthesis is expected.
AND title: live → at character 5, a colon after AND is expected. NAMED
(title: live NOT tags: x) → at character 14, AND, OR or a closing parenthesis is expected. JOINED
year: [1 2] → at character 10, TO, as in [from TO to] is expected.
year: [1 TO 2 → at character 14, ] at the end of the range is expected.
year: [1* TO 2] → at character 10, a bound without * is expected.
year: [one TO 2] → the bounds of year must be numbers, or * for none.
year: [1 TO two] → the bounds of year must be numbers, or * for none.
created: [yesterday TO *] → the bounds of created must be ISO 8601 times, or * for none.
created: [2030-13-01 TO *] → the bounds of created must be ISO 8601 times, or * for none.
autor: x OR tags: y OR autor: z → autor is not a field to filter by. Fields: title, tags, year, created, custom_params.<name>.
constructor: x → constructor is not a field to filter by. Fields: title, tags, year, created, custom_params.<name>.
titel: x → titel is not a field to filter by. Did you mean title?
metadata.tag: x → metadata.tag is not a field to filter by. Did you mean tags?
custom_param.genre: x → custom_param.genre is not a field to filter by. Did you mean custom_params.genre?
`;
const TOO_DEEP = 'a field is expected. Parentheses and NOT may be nested 50 deep.';
const TOO_LONG = 'has 10007 characters, at most 2000 are allowed. Send several shorter requests.';

test.each([
  ...tableRows(FAULTS.replaceAll('JOINED', JOINED).replaceAll('NAMED', NAMED)),
  [`title: ${'x'.repeat(10_000)}`, TOO_LONG],
  ['('.repeat(2000), `at character 51, ${TOO_DEEP}`],
  [`${'NOT '.repeat(490)}title: live`, `at character 201, ${TOO_DEEP}`],
])('says of %s what is wrong', (q = '', fault = '') => {
  expect(readFilter(q, FIELDS)).toMatchObject({ faults: [fault] });
});

test('reads or refuses any text, and never throws', () => {
  const piece = fc.constantFrom(...'title : " \\ * ( ) [ ] TO AND OR NOT x'.split(' '), ' ');
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(piece).map((pieces) => pieces.join('')),
      ),
      (text) => {
        expect(readFilter(text, FIELDS).faults).toEqual(expect.any(Array));
      },
    ),
    { numRuns: 500 },
  );
});

test('finds any title by its own words, escaped', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1, maxLength: 50, unit: 'grapheme' }), (title) => {
      const filter = readFilter(`title: "${title.replaceAll(/[\\"*]/g, '\\$&')}"`, FIELDS);
      const whole = { title, tags: [], year: undefined, created: new Date(0) };
      expect(filter.predicate?.(whole)).toBe(true);
    }),
  );
});

test('takes time in proportion to the text, however many wildcards there are', async () => {
  const title = 'a'.repeat(100_000);
  const filter = readFilter(`title: ${'a*'.repeat(900)}b`, FIELDS);
  const whole = { title, tags: [], year: undefined, created: new Date(0) };
  const took = await processorMs(() => expect(filter.predicate?.(whole)).toBe(false));
  expect(took).toBeLessThan(500);
});

test('takes values that are no numbers and no times as absent', () => {
  const odd = { title: '', tags: [], year: Number.NaN, created: new Date(Number.NaN) };
  for (const q of ['year: *', 'created: *', 'year: [* TO *]', 'created: [* TO *]']) {
    const filter = readFilter(q, FIELDS);
    expect([q, filter.predicate?.(odd)]).toEqual([q, false]);
  }
});

const byWords: Fields<{ readonly title: string }> = {
  named: { title: { kind: 'words', of: ({ title }) => title } },
};

test.each([
  ['letter case', 'LIVE', 'Live show'],
  ['accents in the title', 'uber', 'Über uns'],
  ['accents in the query', 'Über', 'Uber rides'],
  ['accents that are characters of their own', 'cafe', 'Cafe\u0301 am Rand'],
  ['letters that are no accents', 'strasse', 'Die Straße'],
  ['Greek accents and final letters', 'ΟΔΟΣ', 'Οδός'],
  ['punctuation within a phrase', '"late show"', 'Late-show!'],
  ['the words of an unquoted text in any order', 'show-late', 'Late night show'],
  ['words with an apostrophe', '"johns dog"', "Johns' dog"],
  ['the start of a word with an accent', 'uberg*', 'Übergang'],
  ['parts of words', '*ouse', 'Lighthouse'],
])('finds a title by its words whatever the %s: %s in %s', (_what, q, title) => {
  const filter = readFilter(`title: ${q}`, byWords);
  const found = (text: string) => filter.predicate?.({ title: text });
  expect([found(title), found(`2030 ${title} 2030`)]).toEqual([true, true]);
});

test.each([
  ['foot', 'Football'],
  ['show', 'Shows'],
  ['fotball', 'Football'],
  ['"late show"', 'Late night show'],
  ['"show late"', 'Late show'],
  ['"late show"', 'Late shows'],
  ['late-show', 'Late movie'],
  ['show', ''],
])('does not find %s in the title %s', (q, title) => {
  const filter = readFilter(`title: ${q}`, byWords);
  expect(filter.predicate?.({ title })).toBe(false);
});

const pageOf = (films: readonly Film[], query: object) =>
  listPage(films, query, 'films', FIELDS, ({ title }) => title) as { total: number; films: string[] };

test.each([
  ['', 'edcba'],
  ['created:asc', 'abcde'],
  ['year:asc', 'cebad'],
  ['year:dsc', 'adbec'],
  ['year:dsc,title:dsc', 'dabec'],
  ['tags:asc,created:dsc', 'dbaec'],
])('sorts by "%s": what is absent comes first, what is equal keeps its order', (sort, expected) => {
  const films = [
    film('a', ['x'], 2025, '2030-01-01'),
    film('b', ['A', 'b'], 2020, '2030-01-02'),
    film('c', ['y'], undefined, '2030-01-03'),
    film('d', ['A', 'B'], 2025, '2030-01-04'),
    film('e', ['x', 'z'], 5, '2030-01-05'),
  ];
  expect(pageOf(films, { sort }).films.join('')).toBe(expected);
});

test('yields the first ten thousand results of a query whatever the paging, and all items without one', () => {
  const films = Array.from({ length: 10_050 }, (_none, index) =>
    film(`Clip ${index}`, [], index, '2030-01-01'),
  );
  expect(pageOf(films, { q: 'title: clip', page: '1005' })).toMatchObject({ total: 10_000, films: [] });
  expect(pageOf(films, { q: 'title: clip', page: '1000' }).films.at(-1)).toBe('Clip 50');
  expect(pageOf(films, { q: 'title: clip', page: '2', page_length: '6000' }).films).toHaveLength(4000);
  expect(pageOf(films, { page: '1005' })).toMatchObject({ total: 10_050, films: { length: 10 } });
});

test.each([
  ['q=&sort=&page=&page_length=', [1, 10, 4], ['alpha two', 'charlie', 'Alpha', 'bravo']],
  ['sort=created:dsc', [1, 10, 4], ['alpha two', 'charlie', 'Alpha', 'bravo']],
  ['page_length=3&page=2', [2, 3, 4], ['bravo']],
  ['page_length=3&page=3', [3, 3, 4], []],
  ['page=9007199254740991&page_length=10000', [Number.MAX_SAFE_INTEGER, 10_000, 4], []],
  ['q=title: alpha&sort=created:asc&page=2&page_length=1', [2, 1, 2], ['alpha two']],
  ['unknown=parameter', [1, 10, 4], ['alpha two', 'charlie', 'Alpha', 'bravo']],
])(
  'lists for ?%s the page, its length, how many there are, and the films: %j %j',
  (query, numbers, films) => {
    const all = ['bravo', 'Alpha', 'charlie', 'alpha two'].map((title) => film(title, [], 0, '2030-01-01'));
    const [page, page_length, total] = numbers;
    expect(pageOf(all, parse(query))).toEqual({ page, page_length, total, films });
  },
);

/** A query and its faults, one a line. */
const WRONG = `
page=0 → page: must be at least 1.
page=1.5 → page: must be a whole number from 1.
page=9007199254740992 → page: must be at most 9007199254740991.
page=1&page=2 → page: is given twice.
page_length=10001 → page_length: must be at most 10000.
sort=title → sort: write field:asc or field:dsc, several joined by commas.
sort=rating:asc → sort: rating is not a field to sort by. Fields: title, tags, year, created, custom_params.<name>.
sort=title:asc,tags:asc,metadata.title:dsc → sort: title is given twice. Give one direction for it.
sort=${Array(1000).fill('title:asc').join(',')} → sort: has more than 10 fields. The first ones decide.
q=titel:x&sort=titel:asc,x&page=x&page_length=0 → page: must be a whole number from 1. → page_length: must be at least 1. → q: titel is not a field to filter by. Did you mean title? → sort: titel is not a field to sort by. Did you mean title? → sort: write field:asc or field:dsc, several joined by commas.
`;

test.each(tableRows(WRONG))('refuses ?%s and says what is wrong', (query = '', ...faults) => {
  const problems = faults.map((description) => ({ code: 'invalid_parameter', description }));
  expect(() => pageOf([], parse(query))).toThrow(expect.objectContaining({ status: 400, problems }));
});

const MEDIA = '/v2/sites/demosite/media/';

test('finds media by what callers send', async () => {
  const { admin } = await startEmulator();
  for (const metadata of [
    { title: 'Über den Wolken', author: 'Ann Lee', external_id: 'ext-17' },
    { title: 'Late show', tags: ['news', 'late night'], external_id: 'EXT-18' },
    { title: 'Football', author: 'Anne', custom_params: { name: 'Blue room' } },
  ])
    await admin.post(MEDIA).send({ metadata }).expect(201);
  const cases: [string, string[]][] = [
    ['', ['Football', 'Late show', 'Über den Wolken']],
    ['metadata.title: uber', ['Über den Wolken']],
    ['author:ann', ['Über den Wolken']],
    ['external_id: ext-18', ['Late show']],
    ['tags:news', ['Late show']],
    ['custom_params.name:blue', ['Football']],
    ['(title: football OR author: lee) AND NOT tags: *', ['Football', 'Über den Wolken']],
  ];
  for (const [q, expected] of cases) {
    const { body } = await admin.get(MEDIA).query({ q }).expect(200);
    const titles = body.media.map(({ metadata }: { metadata: { title: string } }) => metadata.title);
    expect([q, titles]).toEqual([q, expected]);
  }
  const { body } = await admin.get(`${MEDIA}?sort=title:asc&page=2&page_length=1`).expect(200);
  expect(body).toMatchObject({
    page: 2,
    page_length: 1,
    total: 3,
    media: [{ metadata: { title: 'Late show' } }],
  });
});
