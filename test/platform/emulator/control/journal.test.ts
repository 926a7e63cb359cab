import request from 'supertest';
import { Journal } from '../../../../src/platform/emulator/control/journal';
import { onceForAll } from '../../../support/after-test';
import { processorMs } from '../../../support/processor-time';
import { startEmulator } from '../../../support/start-emulator';

const CHANNELS = '/v2/sites/demosite/channels';
const PREVIEW = /secret-0+3/;

/** An emulator that clients have called in all ways. */
const called = onceForAll(async () => {
  const emulator = await startEmulator();
  const { admin, api, unauthenticated, control, createChannel, connect } = emulator;
  const channel = await createChannel({ title: 'Mine', publishing_mode: 'manual' });
  const misspelt = { metadata: { titel: 'Other' } };
  await admin.post(`${CHANNELS}/`).send(misspelt).expect(400);
  const malformed = '{"metadata":{"stream_key":"abcd-secret';
  await admin.post(`${CHANNELS}/`).type('text/plain').send(malformed).expect(400);
  await admin.get('/v2/sites/demosite/chanels/?page=2').expect(404);
  await admin.get(`${CHANNELS}/nothing1/`).expect(404);
  await unauthenticated.get(`${CHANNELS}/`).auth('some', 'basic-secret').expect(401);
  const signed = 'api_key=demosite&api_signature=0123abcd&video_key=Xyz12345';
  await unauthenticated.get(`/v1/videos/list?${signed}`).expect(400);
  await api.get('/keyprovider/cenc/demo/content').expect(200);
  await api.get('/config/v1/clients/demo').expect(200);
  const webhook_url = 'http://127.0.0.1:1/?password=pass-word';
  const webhook = { name: 'w', description: '', events: ['channel_active'], site_ids: ['demosite'] };
  await admin.post('/v2/webhooks').send({ metadata: { ...webhook, webhook_url } });
  const event = await connect(channel);
  const preview = emulator.context.state.events.find(event)?.previewToken;
  await unauthenticated.get(`/live/previews/${preview}.m3u8`).expect(200);
  const fault = { target: 'GET /live/channels/gone0001.json', kind: 'reset' };
  await control.post('/faults').send(fault).expect(201);
  await unauthenticated.get('/live/channels/gone0001.json').catch(() => undefined);
  await unauthenticated.get('/dashboard').expect(200);
  return { ...emulator, channel };
});

test('lists what clients sent and were answered, and the field or route that they may have meant', async () => {
  const { control } = await called();
  const { body } = await control.get('/requests').expect(200);
  const [made, misspelt, malformed, noRoute, noItem] = body.requests;
  expect(made).toEqual({
    id: 1,
    time: '2030-01-01T00:00:00.000Z',
    ms: 0,
    method: 'POST',
    path: `${CHANNELS}/`,
    query: '',
    status: 201,
    headers: expect.objectContaining({ authorization: 'Bearer ***', 'content-type': 'application/json' }),
    body: { metadata: { title: 'Mine', publishing_mode: 'manual' } },
    body_bytes: 56,
    answer: {
      headers: expect.objectContaining({ 'x-request-id': 'request-1', 'cache-control': 'no-store' }),
      body: expect.objectContaining({ id: 'id000001', stream_key: '***' }),
      body_bytes: expect.any(Number),
    },
    hint: null,
  });
  expect(misspelt).toMatchObject({
    status: 400,
    hint: 'metadata.titel is not a field of this request. Did you mean metadata.title?',
  });
  expect(malformed.headers['content-type']).toBe('text/plain');
  expect(malformed.body).toBe('{"metadata":{"stream_key":"***"');
  expect(noRoute).toMatchObject({
    query: 'page=2',
    hint: 'The platform has no such route; did you mean GET /v2/sites/:siteId/channels?',
  });
  expect(noItem).toMatchObject({ status: 404, hint: null });
  expect(body.requests.at(-1)).toMatchObject({
    path: '/live/channels/gone0001.json',
    status: 0,
    answer: { body: null },
  });
  expect(body.last).toBe(body.requests.length);
});

test('shows no secret of a client, of the account or of an answer', async () => {
  const { control, channel, context } = await called();
  const { text, body } = await control.get('/requests').expect(200);
  const [webhook] = context.state.webhooks.all();
  const [client] = context.clients.values();
  const secrets = [channel.stream_key, webhook?.secret, client?.apiKey, client?.sharedSecret];
  const sent = [
    'demo-api-secret',
    'abcd-secret',
    '0123abcd',
    'pass-word',
    Buffer.from('some:basic-secret').toString('base64'),
  ];
  for (const secret of [...secrets, ...sent]) expect(text).not.toContain(secret);
  expect(text).not.toMatch(PREVIEW);
  const byPath = (path: string) => body.requests.find((each: { path: string }) => each.path === path);
  expect(byPath('/v1/videos/list').query).toBe('api_key=***&api_signature=***&video_key=Xyz12345');
  expect(byPath('/keyprovider/cenc/demo/content')).toMatchObject({
    headers: { 'api-key': '***' },
    answer: { body: { key: '***' } },
  });
  expect(byPath('/live/previews/***.m3u8')).toBeDefined();
});

test.each([
  ['method=get&status=404', ['/v2/sites/demosite/chanels/', `${CHANNELS}/nothing1/`]],
  ['status=4xx&limit=1', ['/v1/videos/list']],
  ['status=0', ['/live/channels/gone0001.json']],
  [`path=/v2/sites/*/channels/:id`, [`${CHANNELS}/nothing1/`]],
  ['since=9&method=POST', ['/v2/webhooks']],
  ['since=99', []],
])('lists the requests of %s', async (query, paths) => {
  const { body } = await (await called()).control.get(`/requests?${query}`).expect(200);
  expect(body.requests.map(({ path }: { path: string }) => path)).toEqual(paths);
});

test('names every parameter that it cannot use', async () => {
  const { control } = await called();
  const { body } = await control.get('/requests?status=4&path=live&since=x&limit=0&metod=GET').expect(400);
  expect(body.errors.map(({ description }: { description: string }) => description)).toEqual([
    'path: must be a path, in which * and :name stand for any part',
    'status: must be a status, or a class such as 4xx',
    'since: must be the id of a request, or the last that was answered',
    'limit: must be at least 1',
    'metod is not a parameter of this request. Did you mean method?',
  ]);
});

test('the dashboard lists them, and shows one with its headers, bodies and hint', async () => {
  const { unauthenticated } = await called();
  const list = (await unauthenticated.get('/dashboard/requests?status=4xx').expect(200)).text;
  expect(list).toContain('<a href="/dashboard/requests/2"><b>POST</b>');
  expect(list).not.toContain('/dashboard/requests/1"');
  const { text } = await unauthenticated.get('/dashboard/requests/2').expect(200);
  for (const part of ['Did you mean metadata.title?', 'authorization: Bearer ***', 'titel', 'invalid_body'])
    expect(text).toContain(part);
  await unauthenticated.get('/dashboard/requests/99').expect(404);
});

test.each([
  ['api_format=xml&a=%20&custom.key=longer-than-ids', 'api_format=xml&a=%20&custom.key=***'],
  [
    '{"a":{"secret":["b","c"],"stream_key":123,"upload_token":null},"b":"c"}',
    { a: { secret: '***', stream_key: '***', upload_token: null }, b: 'c' },
  ],
  ['{"content_key_hex": "00ff\\"11", "key_id": "abc', '{"content_key_hex": "***", "key_id": "abc'],
  [
    '<a:PlainValue>AAAA==</a:PlainValue><video key="abcd1234"/><token>b</token>',
    '<a:PlainValue>***</a:PlainValue><video key="abcd1234"/><token>***</token>',
  ],
  [
    `{"token":{"v":["b"]},"api_keys":["b]c"],"in":"{\\"a\\":\\"{\\\\\\"pwd\\\\\\":\\\\\\"b\\"}"}`,
    { token: '***', api_keys: '***', in: '{"a":"{\\"pwd\\":\\"***\\"' },
  ],
  [
    "password=a'b,c;d&user[token]=e&u%5Bsecret%5D=f&u=%3Fsig%3Dg",
    'password=***&user[token]=***&u%5Bsecret%5D=***&u=%3Fsig%3D***',
  ],
  [
    '<PlainValue xmlns="u">\n<![CDATA[A]]>B&#65;C, D\n</PlainValue><i>',
    '<PlainValue xmlns="u">\n***</PlainValue><i>',
  ],
  [
    '--b\r\nContent-Disposition: form-data; name="api_key"\r\n\r\nabc\r\n--b',
    '--b\r\nContent-Disposition: form-data; name="api_key"\r\n\r\n***\r\n--b',
  ],
  [
    'x-content-key: 00112233; token: is missing. Basic bWU6cGFzc3dvcmQ= eyJh.eyJi.c',
    'x-content-key: ***; token: is missing. Basic *** ***',
  ],
  ['['.repeat(8000) + ']'.repeat(8000), expect.stringMatching(/^\[{8000}\]{8000}$/)],
  ['token:'.repeat(2700), expect.stringMatching(/^token:/)],
  [`token:${' '.repeat(16_000)}x`, expect.stringMatching(/^token: {16000}x$/)],
  ['\u0080\u0002}(X\u0005\0\0\0token', null],
  ['a:1:{s:5:"token";s:4:"abcd";}', 'a:1:{s:5:"token";s:4:"***";}'],
  [
    'see https://me:pw@host/live/masters/Abc-d.mp4?sig=ef demo-client-api-key',
    'see https://***@host/live/masters/***.mp4?sig=*** ***',
  ],
])('hides the secrets of body %#', async (sent, shown) => {
  const { unauthenticated, control } = await called();
  await unauthenticated.post('/v1/videos/create').type('text/plain').send(sent).expect(400);
  const list = control.get('/requests?path=/v1/videos/create&limit=1');
  expect(await processorMs(() => list)).toBeLessThan(300);
  expect((await list).body.requests[0].body).toEqual(shown);
});

test('forgets the oldest beyond its number of entries and of bytes, and cuts bodies', async () => {
  const exchanged = { at: new Date(0), ms: 0, method: 'GET', url: '/', status: 200, headers: {} };
  const noBody = { headers: {}, body: undefined, length: undefined };
  const journal = new Journal({ entries: 3, bytes: 4000, bodyBytes: 1000 });
  const add = (body?: string) =>
    journal.add({ ...exchanged, ...noBody, body: journal.cut(body), answer: noBody });
  const ids = () => journal.list().map(({ id }) => id);
  for (let each = 0; each < 5; each += 1) add();
  expect(ids()).toEqual([3, 4, 5]);
  add('x'.repeat(5000));
  expect([ids(), journal.list().at(-1)?.body?.length]).toEqual([[5, 6], 1000]);
  journal.clear();
  add();
  expect([ids(), journal.last]).toEqual([[7], 7]);
});

test('is empty after DELETE, after a reset and after Clear on the dashboard', async () => {
  const { control, admin, url } = await startEmulator();
  const calls = [
    () => control.delete('/requests').expect(204),
    () => control.post('/reset').expect(204),
    () => request(url).post('/dashboard/requests').type('form').send({}).expect(303),
  ];
  for (const call of calls) {
    await admin.get(`${CHANNELS}/`).expect(200);
    expect((await control.get('/requests')).body.requests).toHaveLength(1);
    await call();
    expect((await control.get('/requests')).body.requests).toEqual([]);
  }
});
