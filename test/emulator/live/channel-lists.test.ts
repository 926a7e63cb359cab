import { createChannel } from '../../../src/emulator/live/channels';
import { startEmulator, type TestEmulator } from '../../support/start-emulator';

const PATH = '/v2/sites/demosite/channels/';

/** Channels with these titles, made a second after each other. */
async function withChannels(...titles: string[]): Promise<TestEmulator> {
  const emulator = await startEmulator();
  for (const title of titles) {
    await emulator.createChannel({ title });
    await emulator.advance(1);
  }
  return emulator;
}

async function titles({ admin }: TestEmulator, query: object): Promise<string[]> {
  const { body } = await admin.get(PATH).query(query).expect(200);
  return body.channels.map(({ metadata }: { metadata: { title: string } }) => metadata.title);
}

test('lists ten channels, the newest first, and counts them all', async () => {
  const emulator = await withChannels('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l');
  const { body } = await emulator.admin.get(PATH);
  const { channels, ...rest } = body;
  expect(rest).toEqual({ page: 1, page_length: 10, total: 12 });
  expect(channels.map((channel: { id: string }) => channel.id)).toEqual(
    Array.from({ length: 10 }, (_none, index) => `id${String(12 - index).padStart(6, '0')}`),
  );
  const [newest] = channels;
  expect(newest).toEqual((await emulator.admin.get(`${PATH}${newest.id}`)).body);
});

test('takes sort, q, page and page_length, alone, together and empty', async () => {
  const emulator = await withChannels('bravo', 'Alpha', 'charlie', 'alpha two');
  const cases: [object, string[]][] = [
    [{ q: '', sort: '', page: '', page_length: '' }, ['alpha two', 'charlie', 'Alpha', 'bravo']],
    [{ sort: 'created:asc' }, ['bravo', 'Alpha', 'charlie', 'alpha two']],
    [{ sort: 'created:dsc' }, ['alpha two', 'charlie', 'Alpha', 'bravo']],
    [{ sort: 'title:asc' }, ['Alpha', 'alpha two', 'bravo', 'charlie']],
    [{ sort: 'status:asc,title:dsc' }, ['charlie', 'bravo', 'alpha two', 'Alpha']],
    [{ sort: 'status:dsc,created:asc' }, ['bravo', 'Alpha', 'charlie', 'alpha two']],
    [{ page_length: 3 }, ['alpha two', 'charlie', 'Alpha']],
    [{ page_length: 3, page: 2 }, ['bravo']],
    [{ page_length: 3, page: 3 }, []],
    [{ page: Number.MAX_SAFE_INTEGER, page_length: 10_000 }, []],
    [{ page_length: 2, page: 2, sort: 'created:asc' }, ['charlie', 'alpha two']],
    [{ page_length: 3, page: 2, sort: 'title:asc' }, ['charlie']],
    [{ q: 'title: alpha' }, ['alpha two', 'Alpha']],
    [{ q: 'title: alpha', sort: 'created:asc', page: 2, page_length: 1 }, ['alpha two']],
    [{ unknown: 'parameter' }, ['alpha two', 'charlie', 'Alpha', 'bravo']],
  ];
  for (const [query, expected] of cases)
    expect([query, await titles(emulator, query)]).toEqual([query, expected]);
  const { body } = await emulator.admin.get(PATH).query({ q: 'title: alpha', page: 2, page_length: 1 });
  expect([body.page, body.page_length, body.total]).toEqual([2, 1, 2]);
});

test('filters by status and custom parameters', async () => {
  const emulator = await startEmulator();
  const channel = await emulator.createChannel({ title: 'a', custom_params: { room: 'Blue room' } });
  await emulator.createChannel({ title: 'b', custom_params: { room: 'red' } });
  await emulator.connect(channel);
  expect(await titles(emulator, { q: 'status: active' })).toEqual(['a']);
  expect(await titles(emulator, { q: 'NOT status: active' })).toEqual(['b']);
  expect(await titles(emulator, { q: 'custom_params.room: blue' })).toEqual(['a']);
  expect(await titles(emulator, { q: 'metadata.custom_params.room: red AND publishing_mode: auto' })).toEqual(
    ['b'],
  );
});

const FIELDS =
  'Fields: id, created, last_modified, status, title, tags, dvr, publishing_mode, latency, reconnect_window, custom_params.<name>.';
test.each([
  ['page=0', 'page: must be at least 1.'],
  ['page=-1', 'page: must be a whole number.'],
  ['page=1.5', 'page: must be a whole number.'],
  ['page=9007199254740992', 'page: must be at most 9007199254740991.'],
  ['page=1&page=2', 'page: is given twice.'],
  ['page_length=10001', 'page_length: must be at most 10000.'],
  ['sort=title', 'sort: write field:asc or field:dsc, several joined by commas.'],
  ['sort=title:desc', 'sort: write field:asc or field:dsc, several joined by commas.'],
  ['sort=created:dsc,', 'sort: write field:asc or field:dsc, several joined by commas.'],
  ['sort=stream_key:asc', `sort: stream_key is not a field to sort by. ${FIELDS}`],
  ['q=title', 'q: at character 6, a colon after title is expected.'],
  [
    'q=stream_key:x&sort=titel:asc,x&page=x&page_length=0',
    'page: must be a whole number.',
    'page_length: must be at least 1.',
    `q: stream_key is not a field to filter by. ${FIELDS}`,
    `sort: titel is not a field to sort by. ${FIELDS}`,
    'sort: write field:asc or field:dsc, several joined by commas.',
  ],
])('refuses ?%s and says what is wrong', async (query, ...told) => {
  const { admin } = await startEmulator();
  const { status, body } = await admin.get(`${PATH}?${query}`);
  const errors = told.map((description) => ({ code: 'invalid_parameter', description }));
  expect([status, body]).toEqual([400, { errors }]);
});

test('lists ten thousand channels page by page, each once', async () => {
  const { admin, context, createChannel: create } = await startEmulator();
  await create();
  const { metadata } = context.state.channels.all()[0] ?? { metadata: undefined };
  if (!metadata) throw new Error('the first channel should be there');
  for (let made = 1; made < 10_000; made += 1) createChannel(context, 'demosite', metadata);
  const seen: string[] = [];
  for (let page = 1; page <= 20; page += 1) {
    const { body } = await admin.get(PATH).query({ page, page_length: 500 }).expect(200);
    expect(body.total).toBe(10_000);
    seen.push(...body.channels.map(({ id }: { id: string }) => id));
  }
  expect(seen).toEqual(
    Array.from({ length: 10_000 }, (_none, index) => `id${String(10_000 - index).padStart(6, '0')}`),
  );
});

test('reads of ten thousand channels no more than the page, in the orders that are kept', async () => {
  const { admin, context, createChannel: create } = await startEmulator();
  await create();
  const [first] = context.state.channels.all();
  let reads = 0;
  const counting = new Proxy([...Array(10_000)], {
    get(target, name, receiver) {
      if (typeof name === 'string' && /^\d+$/.test(name)) {
        reads += 1;
        return first;
      }
      return Reflect.get(target, name, receiver);
    },
  });
  jest.spyOn(context.state.channels, 'ofSite').mockReturnValue(counting);
  for (const sort of ['created:dsc', 'created:asc', '']) {
    for (const page of [1, 500, 1000]) {
      reads = 0;
      const { body } = await admin.get(PATH).query({ sort, page }).expect(200);
      expect([body.total, body.channels.length, reads]).toEqual([10_000, 10, 10]);
    }
  }
});
