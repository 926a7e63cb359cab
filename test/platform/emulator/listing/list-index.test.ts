import fc from 'fast-check';
import { type Fields, readFilter } from '../../../../src/platform/emulator/listing/filter';
import { ItemStore } from '../../../../src/platform/emulator/listing/item-store';
import { listPage } from '../../../../src/platform/emulator/listing/list';

interface Clip {
  readonly id: string;
  readonly site: string;
  title: string;
  tags: readonly string[];
  rating: number | undefined;
  made: Date | undefined;
  custom: Readonly<Record<string, string>>;
}

/** As a clock does, it changes what is computed without telling the store. */
let now = 0;

const FIELDS: Fields<Clip> = {
  named: {
    id: { kind: 'text', of: ({ id }) => id },
    title: { kind: 'text', near: true, of: ({ title }) => title },
    tags: { kind: 'text', of: ({ tags }) => tags },
    rating: { kind: 'number', of: ({ rating }) => rating },
    made: { kind: 'time', of: ({ made }) => made },
    length: { kind: 'number', isComputed: true, of: ({ title }) => (title.length + now) % 10 },
    state: { kind: 'text', isComputed: true, of: ({ title }) => (title.length > now % 10 ? 'live' : 'late') },
  },
  prefixed: { prefix: 'custom.', field: (name) => ({ kind: 'text', of: ({ custom }) => custom[name] }) },
};
const listed = { name: 'clips', fields: FIELDS, render: ({ id }: Clip) => id };

const WORDS = [
  ...[
    'Live',
    'lives',
    'live',
    'lvie',
    'love',
    'show',
    'shows',
    'Shöw',
    'documentary',
    'documantery',
    'documentaries',
  ],
  ...[
    '2024',
    '2025',
    's1',
    'late',
    'night',
    'né',
    'ne\u0301',
    'straße',
    'strasse',
    '日本',
    '한국',
    '🙂',
    '!',
    '-',
  ],
  ...['ilve', 'run', 'running', 'child', 'children'],
];
const word = fc.constantFrom(...WORDS);
const text = fc
  .array(fc.tuple(word, fc.constantFrom(' ', ' ', '-', ', ', '')), { maxLength: 4 })
  .map((parts) => parts.flat().join(''));
const fieldsOfClip = fc.record({
  title: text,
  tags: fc.array(text, { maxLength: 3 }),
  rating: fc.option(fc.oneof(fc.integer({ min: -3, max: 12 }), fc.constant(Number.NaN)), { nil: undefined }),
  made: fc.option(
    fc.integer({ min: 0, max: 5 }).map((days) => new Date(Date.UTC(2030, 0, 1 + days))),
    { nil: undefined },
  ),
  custom: fc.dictionary(fc.constantFrom('room', 'valueOf'), text, { maxKeys: 2 }),
});
const change = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('add' as const), fields: fieldsOfClip }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('change' as const), at: fc.nat(), fields: fieldsOfClip }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('remove' as const), at: fc.nat() }) },
);

const quoted = (words: string) => `"${words.replaceAll(/[\\"]/g, '\\$&')}"`;
const pattern = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...WORDS.map((each) => each.toLowerCase())) },
  text.map(quoted),
  fc
    .tuple(text, fc.constantFrom('*', ''), text, fc.constantFrom('*', ''))
    .map((parts) => quoted(parts.join(''))),
  fc.constantFrom('*', 'li*', '*ow', '*o*', 'l*w', 's*', '"*"', '""', '[a TO m]', '[* TO *]', 'live-show'),
);
const clause = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .tuple(fc.constantFrom('title', 'title', 'title', 'tags', 'custom.room', 'state'), pattern)
      .map((parts) => parts.join(': ')),
  },
  fc.constantFrom('rating: 4', 'rating: [2 TO 7]', 'rating: [* TO 3]', 'length: [3 TO 9]', 'NOT rating: *'),
  fc.constantFrom('made: [2030-01-02 TO 2030-01-03]', 'made: 2030-01-0*', 'id: c1', 'id: *'),
);
const { query } = fc.letrec<{ query: string }>((tie) => ({
  query: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    clause,
    tie('query').map((part) => `NOT (${part})`),
    fc
      .tuple(tie('query'), fc.constantFrom('AND', 'OR'), tie('query'))
      .map(([a, op, b]) => `(${a} ${op} ${b})`),
  ),
}));
const sort = fc.constantFrom(
  '',
  'created:asc',
  'title:asc',
  'rating:dsc,title:asc',
  'tags:dsc',
  'length:asc',
  'made:dsc',
);
const asked = fc.record({
  q: fc.oneof({ weight: 1, arbitrary: fc.constant('') }, { weight: 5, arbitrary: query }),
  sort,
  page: fc.constantFrom('1', '2'),
  page_length: fc.constantFrom('3', '100'),
});

type Change = typeof change extends fc.Arbitrary<infer Made> ? Made : never;

/** Makes the change, and tells the store. */
function make(store: ItemStore<Clip>, made: Change, number: number): void {
  const clips = store.of('s');
  if (made.kind === 'add') {
    store.add({ id: `c${number}`, site: 's', ...made.fields });
    return;
  }
  const clip = clips[made.at % Math.max(clips.length, 1)];
  if (!clip) return;
  if (made.kind === 'remove') {
    store.remove(clip);
    return;
  }
  Object.assign(clip, made.fields);
  store.changed(clip);
}

test('finds the same through all changes as a reading of every item does', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(change, asked), { minLength: 5, maxLength: 60, size: 'max' }), (steps) => {
      const store = new ItemStore<Clip>(({ site }) => site);
      for (const [number, step] of steps.entries()) {
        now += 1;
        if ('kind' in step) make(store, step, number);
        else {
          expect([step, listPage(store.list('s'), step, listed)]).toEqual([
            step,
            listPage(store.of('s'), step, listed),
          ]);
        }
      }
    }),
    // Of some thirty steps each: thousands of questions, of which each asks every item.
    { numRuns: 150 },
  );
});

const plain = (id: number, title: string): Clip => ({
  id: `c${id}`,
  site: 's',
  title,
  tags: [],
  rating: id,
  made: undefined,
  custom: { [`name${id}`]: 'x' },
});

function filled(count: number, title = (id: number) => `Clip ${id}`): ItemStore<Clip> {
  const store = new ItemStore<Clip>(({ site }) => site);
  for (let id = 0; id < count; id += 1) store.add(plain(id, title(id)));
  return store;
}

const totalOf = (store: ItemStore<Clip>, q: string) =>
  (listPage(store.list('s'), { q }, listed) as { total: number }).total;

test('still finds everything after most items have changed, several times, or are gone', () => {
  const store = filled(5000);
  expect(totalOf(store, 'title: clip')).toBe(5000);
  for (const round of ['first', 'second', 'third']) {
    for (const clip of store.of('s')) {
      clip.title = `${round} ${clip.id}`;
      store.changed(clip);
      if (clip.id.endsWith('99')) expect(totalOf(store, `title: ${clip.id}`)).toBe(1);
    }
    expect([totalOf(store, 'title: clip'), totalOf(store, `title: ${round}`)]).toEqual([0, 5000]);
  }
  for (const clip of [...store.of('s')].slice(0, 4000)) store.remove(clip);
  expect([totalOf(store, 'title: third'), totalOf(store, 'NOT title: third')]).toEqual([1000, 0]);
  store.clear();
  expect(totalOf(store, 'title: third')).toBe(0);
});

test('finds long phrases by all of their words', () => {
  const words = Array.from({ length: 40 }, (_none, index) => `word${'abcdefgh'[index % 8]}${index}`);
  const [all, swapped] = [words.join(' '), [...words.slice(0, 38), ...words.slice(38).reverse()].join(' ')];
  const store = filled(3, (id) => `${id} ${id === 1 ? swapped : all}`);
  expect([totalOf(store, `title: "${all}"`), totalOf(store, `title: "${swapped}"`)]).toEqual([2, 1]);
});

test('reads what is computed for each list, also for the same query', () => {
  const store = filled(1, () => 'Clip');
  const found = () => totalOf(store, 'length: [0 TO 3]');
  now = 0;
  expect(found()).toBe(0);
  now = 6;
  expect(found()).toBe(1);
});

test('evaluates each condition that comes without its text', () => {
  const { index } = filled(3).list('s');
  const found = (q: string) => {
    const filter = readFilter(q, FIELDS);
    const condition = filter.ok ? filter.condition : undefined;
    return index
      .find({ fields: FIELDS, condition, sorting: 'oldest', start: 0, length: 10 })
      .items.map(({ id }) => id);
  };
  expect([found('title: 1'), found('title: 2'), found('title: clip')]).toEqual([
    ['c1'],
    ['c2'],
    ['c0', 'c1', 'c2'],
  ]);
});

test('filters by more names of custom parameters than it keeps in mind', () => {
  const store = filled(200);
  for (const round of [1, 2])
    for (let id = 0; id < 200; id += 1)
      expect([round, totalOf(store, `custom.name${id}: x`)]).toEqual([round, 1]);
});

test('yields the first ten thousand results of a query whatever the paging, and all items without one', () => {
  const store = filled(10_050);
  const page = (query: object) => listPage(store.list('s'), query, listed);
  expect(page({ q: 'title: clip', page: '1005' })).toEqual({
    page: 1005,
    page_length: 10,
    total: 10_000,
    clips: [],
  });
  expect(page({ q: 'title: clip', page: '1000' })).toEqual({
    page: 1000,
    page_length: 10,
    total: 10_000,
    clips: Array.from({ length: 10 }, (_none, index) => `c${59 - index}`),
  });
  expect(page({ q: 'title: clip', page: '2', page_length: '6000', sort: 'rating:asc' })).toEqual({
    page: 2,
    page_length: 6000,
    total: 10_000,
    clips: Array.from({ length: 4000 }, (_none, index) => `c${6000 + index}`),
  });
  expect(page({ page: '1005' })).toEqual({
    page: 1005,
    page_length: 10,
    total: 10_050,
    clips: Array.from({ length: 10 }, (_none, index) => `c${9 - index}`),
  });
});

test('reads no item of a long list twice for its queries, until the item changes', () => {
  const store = filled(1000);
  let reads = 0;
  const counting: Fields<Clip> = {
    named: {
      title: {
        kind: 'text',
        near: true,
        of: ({ title }) => {
          reads += 1;
          return title;
        },
      },
    },
  };
  const counted = { ...listed, fields: counting };
  const ask = (query: object) => listPage(store.list('s'), query, counted);
  expect(reads).toBe(0);
  for (const q of ['title: clip', 'title: clp', 'title: "clip 17"', 'title: cl*', 'NOT title: clip'])
    ask({ q });
  expect(reads).toBe(1000);
  for (const page of ['1', '7', '100']) ask({ sort: 'title:asc', page });
  expect(reads).toBe(2000);
  const [clip] = store.of('s');
  if (clip) store.changed(clip);
  ask({ q: 'title: clip', sort: 'title:asc' });
  expect(reads).toBe(2002);
});
