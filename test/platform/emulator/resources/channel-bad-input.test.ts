import { startEmulator } from '../../../support/start-emulator';

const PATH = '/v2/sites/demosite/channels/';
const invalid = (...descriptions: string[]) => ({
  errors: descriptions.map((description) => ({ code: 'invalid_body', description })),
});
const target = { stream_key: 'k', stream_url: 'rtmps://target.example/live', title: 't' };
const many = <T>(count: number, item: T): T[] => Array.from({ length: count }, () => item);
const FIELDS_OF_METADATA =
  'title, tags, custom_params, dvr, publishing_mode, latency, reconnect_window, simulcast_targets, text_tracks';

const BODIES: readonly [name: string, body: unknown, ...descriptions: string[]][] = [
  ['nothing at all', undefined, 'metadata: is missing'],
  ['metadata that is null', { metadata: null }, 'metadata: must be an object'],
  [
    'an unknown field of the metadata',
    { metadata: { wholly_unknown_field: 'x' } },
    `metadata.wholly_unknown_field is not a field of this request. Fields of metadata: ${FIELDS_OF_METADATA}.`,
  ],
  [
    'every field of the wrong type, all told at once',
    {
      metadata: {
        title: 1,
        tags: 'news',
        custom_params: ['a'],
        dvr: true,
        publishing_mode: 'later',
        latency: {},
        reconnect_window: '60',
        simulcast_targets: {},
        text_tracks: 'none',
      },
    },
    'metadata.title: must be a string',
    'metadata.tags: must be an array',
    'metadata.custom_params: must be an object whose values are strings',
    'metadata.dvr: must be on or off',
    'metadata.publishing_mode: must be auto or manual',
    'metadata.latency: must be a string',
    'metadata.reconnect_window: must be a whole number of seconds',
    'metadata.simulcast_targets: must be an array',
    'metadata.text_tracks: must be an array',
  ],
  [
    'values inside of the wrong type',
    {
      metadata: { tags: ['a', 1, null, 'x'.repeat(201)], custom_params: { a: 1, b: null }, text_tracks: [1] },
    },
    'metadata.tags.1: must be a string',
    'metadata.tags.2: must be a string',
    'metadata.tags.3: is longer than 200 characters',
    'metadata.custom_params.a: must be a string',
    'metadata.custom_params.b: must be a string',
    'metadata.text_tracks.0: must be an object',
  ],
  [
    'too much of everything',
    {
      metadata: {
        title: 'x'.repeat(1001),
        tags: many(101, 'a'),
        custom_params: Object.fromEntries(many(101, '').map((value, index) => [`p${index}`, value])),
        latency: 'x'.repeat(51),
        reconnect_window: 1801,
        simulcast_targets: many(21, target),
        text_tracks: many(51, {}),
      },
    },
    'metadata.title: is longer than 1000 characters',
    'metadata.tags: has more than 100 entries',
    'metadata.custom_params: has more than 100 entries',
    'metadata.latency: is longer than 50 characters',
    'metadata.reconnect_window: must be at most 1800 seconds',
    'metadata.simulcast_targets: has more than 20 entries',
    'metadata.text_tracks: has more than 50 entries',
  ],
  [
    'names of custom parameters and text tracks that are empty or too long',
    { metadata: { custom_params: { '': 'a', b: 'c' }, text_tracks: [{ ['x'.repeat(201)]: 'a' }] } },
    'metadata.custom_params: has a name that is empty or longer than 200 characters',
    'metadata.text_tracks.0: has a name that is empty or longer than 200 characters',
  ],
  [
    'numbers that are no count of seconds',
    { metadata: { reconnect_window: -1 } },
    'metadata.reconnect_window: must not be negative',
  ],
  [
    'simulcast targets without an address, and to another kind of address',
    {
      metadata: {
        simulcast_targets: [
          { stream_key: 'k', title: 't' },
          { ...target, stream_url: 'https://target.example/' },
          { ...target, stream_urls: 'x' },
        ],
      },
    },
    'metadata.simulcast_targets.0.stream_url: is missing',
    'metadata.simulcast_targets.1.stream_url: must be an rtmps:// address',
    'metadata.simulcast_targets.2.stream_urls is not a field of this request. Did you mean metadata.simulcast_targets.2.stream_url?',
  ],
];

test.each(BODIES)(
  'refuses %s with 400, and neither makes nor changes a channel',
  async (_name, body, ...told) => {
    const { admin, createChannel } = await startEmulator();
    const { id } = await createChannel({ title: 'Before', tags: ['kept'] });
    const before = (await admin.get(PATH)).body;
    const calls = [admin.post(PATH), admin.patch(`${PATH}${id}/`)];
    for (const call of calls) {
      const { status, body: answer } = body === undefined ? await call : await call.send(body as object);
      expect([status, answer]).toEqual([400, invalid(...told)]);
    }
    expect((await admin.get(PATH)).body).toEqual(before);
  },
);

const SCALAR = 'must be a string of at most 4000 characters, a number, true, false or null';

test('refuses a text track of any depth, which could not be written again', async () => {
  const { admin } = await startEmulator();
  const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
  const created = await admin
    .post(PATH)
    .send(`{"metadata":{"text_tracks":[{"label":"en"},{"cues":${deep}}]}}`);
  expect([created.status, created.body]).toEqual([400, invalid(`metadata.text_tracks.1.cues: ${SCALAR}`)]);
  expect((await admin.get(PATH)).body.total).toBe(0);
});

test('keeps custom parameters apart from what every object has', async () => {
  const { admin } = await startEmulator();
  const custom = '{"constructor":"a","toString":"b","hasOwnProperty":"c"}';
  const created = await admin.post(PATH).send(`{"metadata":{"custom_params":${custom}}}`);
  expect([created.status, JSON.stringify(created.body.metadata.custom_params)]).toEqual([201, custom]);
  expect((await admin.get(PATH).query({ q: 'custom_params.valueOf: *' })).body.total).toBe(0);
  expect((await admin.get(PATH).query({ q: 'custom_params.toString: b' })).body.total).toBe(1);
});

test('never quotes malformed JSON', async () => {
  const { admin, logOf } = await startEmulator();
  const { status, body } = await admin.post(PATH).send('{"metadata": {"stream_secret": hush');
  expect([status, body]).toEqual([
    400,
    {
      errors: [{ code: 'malformed_json', description: 'The body is not valid JSON. Send one JSON object.' }],
    },
  ]);
  expect(await logOf(1)).not.toContain('hush');
});

test('refuses an unauthenticated call before it reads the body', async () => {
  const { unauthenticated } = await startEmulator();
  const { status, body } = await unauthenticated.post(PATH).send('{"broken');
  expect([status, body.errors[0].code]).toEqual([401, 'credential_missing']);
});
