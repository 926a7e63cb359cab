import { onceForAll } from '../../../support/after-test';
import { answered } from '../../../support/resource-bodies';
import { startEmulator, type TestEmulator } from '../../../support/start-emulator';

const CREATED = {
  ...answered('channel', 'id000001'),
  status: 'creating',
  enabled: true,
  stream_key: 'secret-000000000000000000000000000000001',
  preview_url: [],
  recent_events: [],
  metadata: {
    title: '',
    tags: [],
    custom_params: {},
    dvr: 'on',
    publishing_mode: 'auto',
    latency: 'default',
    reconnect_window: 60,
    simulcast_targets: [],
    text_tracks: [],
  },
};

const METADATA = {
  title: 'Evening show',
  tags: ['news', 'live'],
  custom_params: { studio: '4', empty: '' },
  dvr: 'off',
  publishing_mode: 'manual',
  latency: 'default',
  simulcast_targets: [{ stream_key: 'key', stream_url: 'rtmps://target.example/live', title: 'Elsewhere' }],
};

const PATH = '/v2/sites/demosite/channels/';

test('creates a channel with an id and a stream key, and keeps every field', async () => {
  const { admin } = await startEmulator();
  const expected = { ...CREATED, metadata: { ...CREATED.metadata, ...METADATA } };
  await admin.post(PATH).send({ metadata: METADATA }).expect(201, expected);
  await admin.get(`${PATH}id000001/`).expect(200, expected);
  const nothing = Object.fromEntries(Object.keys(CREATED.metadata).map((name) => [name, null]));
  for (const metadata of [{}, nothing]) {
    const { body } = await admin.post(PATH).send({ metadata, upload: {}, relationships: {} }).expect(201);
    expect(body.metadata).toEqual(CREATED.metadata);
  }
});

test('has the channel of its configuration from the start, and again, without its event, after a reset', async () => {
  const stream_key = 'demo-stream-key-0123456789';
  const env = { EMULATOR_CHANNEL_ID: 'demolive', EMULATOR_CHANNEL_STREAM_KEY: stream_key };
  const emulator = await startEmulator(env);
  const metadata = { ...CREATED.metadata, title: 'Live demo' };
  const expected = { ...CREATED, id: 'demolive', stream_key, metadata };
  await emulator.admin.get(`${PATH}demolive/`).expect(200, expected);
  const id = await emulator.connect({ stream_key });
  const { body } = await emulator.admin.get(`${PATH}demolive/`);
  expect(body).toMatchObject({ status: 'active', recent_events: [{ media_id: id, status: 'active' }] });
  await emulator.control.post('/reset').expect(204);
  await emulator.admin.get(`${PATH}demolive/`).expect(200, expected);
});

test.each(['', '/'])('takes every action of a channel ending in "%s" without a redirect', async (end) => {
  const { admin, createChannel, connect } = await startEmulator();
  const channel = await createChannel({ publishing_mode: 'manual' });
  const event = await connect(channel);
  const one = `${PATH}${channel.id}`;
  const put = (path: string) => admin.put(path).set('content-type', 'application/json');
  const statuses = [];
  for (const call of [
    admin.get(`${one}/events${end}`),
    admin.get(`${one}/events/${event}${end}`),
    put(`${one}/events/${event}/publish${end}`),
    put(`${one}/disable${end}`),
    put(`${one}/enable${end}`),
    put(`${one}/events/${event}/request_master${end}`),
    admin.get(`${one}/events/${event}/master${end}`),
    put(`${one}/events/${event}/clip${end}?trim_in_point=00:00:00.000&trim_out_point=00:00:01.000`),
  ]) {
    statuses.push((await call).status);
  }
  expect(statuses).toEqual([200, 200, 204, 204, 204, 204, 200, 409]);
});

test('deletes a channel: its routes answer 404, its stream key is unknown, and no list names it', async () => {
  const { admin, control, createChannel } = await startEmulator();
  const { id, stream_key } = await createChannel();
  await admin.delete(`${PATH}${id}/`).expect(204, '');
  const missing = { errors: [{ code: 'not_found', description: 'This site has no channel with this id.' }] };
  await admin.delete(`${PATH}${id}/`).expect(404, missing);
  await admin.put(`${PATH}${id}/enable/`).expect(404, missing);
  await admin.get(`${PATH}${id}/events/`).expect(404, missing);
  expect((await admin.get(PATH)).body).toEqual({ page: 1, page_length: 10, total: 0, channels: [] });
  const { body } = await control.post('/encoder/connect').send({ stream_key }).expect(404);
  expect(body.errors[0].code).toBe('unknown_stream_key');
});

test('keeps the replays of a deleted channel', async () => {
  const { admin, connect, createChannel, context } = await startEmulator();
  const channel = await createChannel({ title: 'Show' });
  const event = await connect(channel);
  await admin.delete(`${PATH}${channel.id}/`).expect(204);
  expect(context.state.media.all()).toMatchObject([
    { id: event, metadata: { title: 'Show' }, hidden: false },
  ]);
  expect([context.state.channels.all(), context.state.events.all()]).toEqual([[], []]);
});

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

test('takes sort, q, page and page_length, alone, together and empty', async () => {
  const emulator = await withChannels('bravo', 'Alpha', 'charlie', 'alpha two');
  const cases: [object, string[]][] = [
    [{ q: '', sort: '', page: '', page_length: '' }, ['alpha two', 'charlie', 'Alpha', 'bravo']],
    [{ sort: 'created:asc' }, ['bravo', 'Alpha', 'charlie', 'alpha two']],
    [{ sort: 'status:dsc,created:asc' }, ['bravo', 'Alpha', 'charlie', 'alpha two']],
    [{ page_length: 3, page: 2 }, ['bravo']],
    [{ page_length: 3, page: 3 }, []],
    [{ page: Number.MAX_SAFE_INTEGER, page_length: 10_000 }, []],
    [{ q: 'title: alpha', sort: 'created:asc', page: 2, page_length: 1 }, ['alpha two']],
    [{ unknown: 'parameter' }, ['alpha two', 'charlie', 'Alpha', 'bravo']],
  ];
  for (const [query, expected] of cases)
    expect([query, await titles(emulator, query)]).toEqual([query, expected]);
  const { body } = await emulator.admin.get(PATH).query({ q: 'title: alpha', page: 2, page_length: 1 });
  expect([body.page, body.page_length, body.total]).toEqual([2, 1, 2]);
});

const shared = onceForAll(() => startEmulator());

/** A query and what is wrong with it, one a line. */
const WRONG = `
page=0 → page: must be at least 1.
page=1.5 → page: must be a whole number from 1.
page=9007199254740992 → page: must be at most 9007199254740991.
page=1&page=2 → page: is given twice.
page_length=10001 → page_length: must be at most 10000.
sort=title → sort: write field:asc or field:dsc, several joined by commas.
sort=stream_key:asc → sort: stream_key is not a field to sort by. FIELDS
sort=title:asc,tags:asc,metadata.title:dsc → sort: title is given twice. Give one direction for it.
sort=${Array(1000).fill('title:asc').join(',')} → sort: has more than 10 fields. The first ones decide.
q=stream_key:x&sort=titel:asc,x&page=x&page_length=0 → page: must be a whole number from 1. → page_length: must be at least 1. → q: stream_key is not a field to filter by. FIELDS → sort: titel is not a field to sort by. Did you mean title? → sort: write field:asc or field:dsc, several joined by commas.
`.replaceAll(
  'FIELDS',
  'Fields: id, created, last_modified, status, title, tags, dvr, publishing_mode, latency, reconnect_window, custom_params.<name>.',
);
test.each(
  WRONG.trim()
    .split('\n')
    .map((row) => row.split(' → ')),
)('refuses ?%s and says what is wrong', async (query, ...told) => {
  const { admin } = await shared();
  const errors = told.map((description) => ({ code: 'invalid_parameter', description }));
  await admin.get(`${PATH}?${query}`).expect(400, { errors });
});
