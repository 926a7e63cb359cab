import { formatUuid } from '../../../../src/drm/bytes';
import { fairPlayKeyId } from '../../../../src/drm/packaging';
import { partLink } from '../../../../src/platform/emulator/uploads/uploads';
import { onceForAll } from '../../../support/after-test';
import { errorBody, invalidBody } from '../../../support/error-body';
import { signedPath } from '../../../support/sign-v1';
import { startEmulator } from '../../../support/start-emulator';
import { tableRows } from '../../../support/table-rows';
import { startWebhookReceiver } from '../../../support/webhook-receiver';

const platform = onceForAll(() => startEmulator());

const REFUSED = errorBody(
  'page_refused',
  'The control port is for programs on this machine, called by address or private name.',
);

test('refuses requests of a page by any of their marks, and answers a person who calls it in a browser', async () => {
  const { control, createChannel } = await startEmulator();
  await createChannel();
  for (const origin of ['https://evil.example', 'http://127.0.0.1:8080', 'null']) {
    const reset = await control.post('/reset').set('origin', origin);
    expect([origin, reset.status, reset.body]).toEqual([origin, 403, REFUSED]);
  }
  for (const sender of ['cross-site', 'same-site', 'same-origin']) {
    const state = await control.get('/state').set('sec-fetch-site', sender);
    expect([sender, state.status, state.body]).toEqual([sender, 403, REFUSED]);
  }
  const { body } = await control.get('/state').set('sec-fetch-site', 'none').expect(200);
  expect(body.channels).toHaveLength(1);
});

test.each([
  ['evil.example', 403],
  ['127.0.0.1.evil.example', 403],
  ['bad host', 403],
  ['LOCALHOST:8081', 200],
])('answers a call by the name %s with %d', async (host, status) => {
  const { control } = await platform();
  await control.get('/state?reveal=true').set('host', host).expect(status);
});

test('refuses a second encoder with the same key, and leaves the first its event', async () => {
  const { onAir, control, context } = await startEmulator();
  const { channel, id: event } = await onAir();
  const { stream_key } = channel;
  const advice = 'Another encoder streams to this channel. Connect after it has disconnected.';
  const refused = errorBody('already_streaming', advice);
  await control.post('/encoder/connect').send({ stream_key }).expect(409, refused);
  expect(context.broadcast.sessionOf(channel.id)?.eventId).toBe(event);
});

test('answers 409 to the disconnect of an encoder that is not there, and 404 to an unknown stream key', async () => {
  const { control, createChannel, connect } = await startEmulator();
  const channel = await createChannel();
  const { id, stream_key } = channel;
  const ask = async (path: string, key = stream_key) => {
    const { status, body } = await control.post(`/encoder/${path}`).send({ stream_key: key });
    return [status, body];
  };
  const idle = [409, errorBody('not_streaming', 'No encoder streams to this channel. Connect one first.')];
  const unknown = [404, errorBody('unknown_stream_key', 'No channel has this stream key.')];
  expect(await ask('disconnect')).toEqual(idle);
  const event_id = await connect(channel);
  expect(await ask('disconnect')).toEqual([200, { channel_id: id, event_id }]);
  expect(await ask('disconnect')).toEqual(idle);
  for (const path of ['connect', 'disconnect']) expect(await ask(path, 'nothing')).toEqual(unknown);
});

test.each([
  [{ stream_key: 1 }, 'stream_key: must be a string'],
  [[], 'The body must be a JSON object with stream_key.'],
])('refuses the body %j', async (body, description) => {
  const { control } = await platform();
  await control.post('/encoder/connect').send(body).expect(400, invalidBody(description));
});

const KEY_ID = '0e58f5d5-e6b4-4197-a9b1-438646ef4765';
const KEY = '00112233445566778899aabbccddeeff';
const LICENSE_URL = 'skd://fairplay.example.com/news';
const bytes = (hex: string) => Buffer.from(hex.replaceAll('-', ''), 'hex');
const base64 = (hex: string) => bytes(hex).toString('base64');
const base64url = (hex: string) => bytes(hex).toString('base64url');

test.each([
  ['a UUID and hex', KEY_ID, KEY],
  ['hex in capitals', KEY_ID.replaceAll('-', '').toUpperCase(), KEY.toUpperCase()],
  ['base64', base64(KEY_ID), base64(KEY)],
])('gives licenses for a supplied key that is sent as %s', async (_what, key_id, content_key) => {
  const { control, unauthenticated } = await startEmulator();
  const [sent, taken] = [{ keys: [{ key_id, content_key }] }, { keys: [{ key_id: KEY_ID }] }];
  await control.post('/clearkey/keys').send(sent).expect(200, taken);
  const kid = base64url(KEY_ID);
  const license = { keys: [{ kty: 'oct', k: base64url(KEY), kid }], type: 'temporary' };
  const asked = { kids: [kid] };
  await unauthenticated.post('/keyprovider/clearkey').send(asked).expect(200, license);
});

test('gives licenses for a supplied FairPlay key under the id of its license address, until a reset', async () => {
  const { control, unauthenticated } = await startEmulator();
  const keyId = fairPlayKeyId(LICENSE_URL);
  const body = { keys: [{ fairplay: { license_url: LICENSE_URL, key: KEY } }] };
  const sent = await control.post('/clearkey/keys').send(body);
  expect([sent.status, sent.body]).toEqual([200, { keys: [{ key_id: formatUuid(keyId) }] }]);
  const kid = keyId.toString('base64url');
  const ask = () => unauthenticated.post('/keyprovider/clearkey').send({ kids: [kid] });
  expect((await ask()).body.keys).toEqual([{ kty: 'oct', k: base64url(KEY), kid }]);
  await control.post('/reset').expect(204);
  expect((await ask()).status).toBe(404);
});

/** A body and its faults, one a line. */
const WRONG_KEYS = `
[] → The body must be a JSON object with keys.
{"keys":{}} → keys: must be an array
{"keys":[]} → keys: names no key
{"keys":[{}]} → keys.0: must have key_id and content_key, or fairplay
{"keys":[{"key_id":KID}]} → keys.0.content_key: is missing
{"keys":[{"content_key":KEY}]} → keys.0.key_id: is missing
{"keys":[{"key_id":1,"content_key":KEY}]} → keys.0.key_id: must be a string
{"keys":[{"key_id":KID,"content_key":"abc"}]} → keys.0.content_key: has 3 hex digits; it must have 32 (16 bytes)
{"keys":[{"key_id":KID,"content_key":KID}]} → keys.0.content_key: is the same as key_id; send the content key
{"keys":[{"key_id":"${'0'.repeat(32)}","content_key":KEY}]} → keys.0.key_id: is all zeros; give the key its own id
{"keys":[{"key_id":KID,"content_key":KEY,"kid":"x"}]} → keys.0.kid is not a field of this request. Fields of keys.0: key_id, content_key, fairplay.
{"keys":[{"fairplay":{"license_url":"fairplay.example.com","key":KEY}}]} → keys.0.fairplay.license_url: must be an address that starts with skd:// or https:// or http://
{"keys":[{"fairplay":{"key":KEY,"license_url":"skd://a.test/news","iv":KEY}}]} → keys.0.fairplay.iv is not a field of this request. Fields of keys.0.fairplay: license_url, key.
{"keys":[{"key_id":KID,"content_key":KEY,"fairplay":{"license_url":"skd://a.test/news","key":KEY}}]} → keys.0.fairplay: is a key of its own; put key_id and content_key into another one
{"keys":[${Array(101).fill('{"key_id":KID,"content_key":KEY}')}]} → keys: names more than 100 keys
`
  .replaceAll(/(?<=[:[])KID/g, `"${KEY_ID.replaceAll('-', '')}"`)
  .replaceAll(/(?<=[:[])KEY/g, `"${KEY}"`);

test.each(tableRows(WRONG_KEYS))(
  'refuses the keys %s, and takes none of them',
  async (text, ...descriptions) => {
    const { control, context } = await platform();
    const { status, body: answer } = await control.post('/clearkey/keys').type('json').send(text);
    expect([status, answer]).toEqual([400, invalidBody(...descriptions)]);
    expect(context.issuedKeys.find(bytes(KEY_ID))).toBeUndefined();
    expect(JSON.stringify(answer)).not.toContain(KEY);
  },
);

describe('the state of the platform', () => {
  const NOW = '2030-01-01T00:00:00.000000+00:00';
  const SEEDED = {
    now: NOW,
    sites: ['demosite'],
    credentials: [
      {
        id: 'seeded00',
        name: 'seeded',
        permission: 'Admin',
        site_ids: ['demosite'],
        created: NOW,
        secret: '***',
      },
    ],
    clients: [{ name: 'demo', api_key: '***', shared_secret: '***' }],
    channels: [],
    events: [],
    media: [],
    uploads: { bytes: 0, max_bytes: 2 ** 31, open: [] },
    webhooks: [],
    faults: [],
    saved: expect.objectContaining({ version: 1 }),
  };

  test('shows channels, events and media, their secrets only when they are to be revealed', async () => {
    const { admin, control, onAir } = await startEmulator();
    const simulcast = { stream_key: 'elsewhere', stream_url: 'rtmps://target.example/live', title: 't' };
    const { channel, id: event } = await onAir({ publishing_mode: 'manual', simulcast_targets: [simulcast] });
    const state = (await control.get('/state')).body;
    const path = `/v2/sites/demosite/channels/${channel.id}/`;
    const { preview_url, ...shown } = (await admin.get(path)).body;
    const shownEvent = (await admin.get(`${path}events/${event}/`)).body;
    expect(state).toEqual({
      ...SEEDED,
      channels: [
        {
          ...shown,
          site_id: 'demosite',
          current_event: event,
          stream_key: '***',
          metadata: { ...shown.metadata, simulcast_targets: [{ ...simulcast, stream_key: '***' }] },
        },
      ],
      events: [
        {
          ...shownEvent,
          site_id: 'demosite',
          channel_id: channel.id,
          publishing_mode: 'manual',
          state: 'preview',
          preview_path: '***',
        },
      ],
    });
    const revealed = (await control.get('/state?reveal=true')).body;
    expect(revealed.channels[0]).toEqual({ ...shown, site_id: 'demosite', current_event: event });
    expect(preview_url[0].endsWith(revealed.events[0].preview_path)).toBe(true);
    expect(revealed.credentials[0].secret).toBe('demo-api-secret-0123456789');
    expect(revealed.clients).toEqual([
      { name: 'demo', api_key: 'demo-client-api-key', shared_secret: 'demo-shared-secret-0123456789' },
    ]);
    await admin.put(`${path}disable/`).expect(204);
    const replay = { id: event, site_id: 'demosite', created: NOW, title: '', status: 'ready', duration: 0 };
    expect((await control.get('/state')).body.media).toEqual([
      { ...replay, published: false, event_id: event, clip: null },
    ]);
  });

  test('is back at the start after a reset: no channel, event, webhook, fault, encoder, signature or counted call, and real time', async () => {
    const emulator = await startEmulator();
    const { control, context } = emulator;
    const receiver = await startWebhookReceiver();
    emulator.createWebhook(receiver.url, ['channel_idle']);
    const dropped: string[] = [];
    const channel = await emulator.createChannel();
    context.broadcast.connect(channel.stream_key, (why) => dropped.push(why));
    const { channel: interrupted } = await emulator.onAir();
    await emulator.disconnect(interrupted);
    await control.post('/faults').send({ target: 'GET /embed/channel.js', kind: 'reset' }).expect(201);
    await control.post('/credentials').send({ name: 'n', permission: 'Admin' }).expect(201);
    await control.delete('/credentials/seeded00').expect(204);
    await control.post('/clock').send({ advance_seconds: 10 }).expect(200);
    const { signatures, rateWindows } = context.state;
    await emulator.unauthenticated.get(signedPath('/v1/status')).expect(405);
    expect([signatures.size, rateWindows.size]).toEqual([1, 2]);
    const reset = await control.post('/reset');
    expect([reset.status, reset.text, dropped]).toEqual([204, '', ['reset']]);
    expect((await control.get('/state')).body).toEqual(SEEDED);
    expect((await control.get('/deliveries')).body).toEqual({ deliveries: [] });
    expect([signatures.size, rateWindows.size]).toEqual([0, 0]);
    await emulator.advance(24 * 3600);
    const now = '2030-01-02T00:00:00.000000+00:00';
    expect((await control.get('/state')).body).toEqual({ ...SEEDED, now });
    expect(receiver.received).toEqual([]);
  });

  test.each([false, true])('shows webhooks with their secrets when they are revealed: %s', async (reveal) => {
    const { control, createWebhook } = await startEmulator();
    const { id, secret, metadata } = createWebhook('https://receiver.example/', ['channel_created']);
    const { body } = await control.get('/state').query({ reveal }).expect(200);
    const times = { created: NOW, last_modified: NOW };
    const shown = { id, type: 'webhook', ...times, metadata, relationships: {}, schema: null };
    expect(body.webhooks).toEqual([{ ...shown, ...(reveal && { secret }) }]);
  });

  test('has nothing of the platform on the control port', async () => {
    const { control } = await platform();
    await control.get('/v2/sites/demosite/channels/').expect(404);
    await control.get('/healthz').expect(200);
  });

  test('shows the uploads that are open, without their tokens, and what the files take', async () => {
    const { control, context, unauthenticated } = await startEmulator();
    const wanted = { siteId: 'demosite', maxBytes: 1000, done: () => undefined } as const;
    const direct = context.uploads.begin({ ...wanted, method: 'direct' });
    const multipart = context.uploads.begin({ ...wanted, method: 'multipart' });
    const part = partLink(multipart, 7, '');
    await unauthenticated.put(part).send('hello').expect(200);
    await unauthenticated.put(`/uploads/${direct.id}?token=${direct.token}`).send('hello!').expect(200);
    const open = {
      ...{ id: multipart.id, site_id: 'demosite', method: 'multipart', parts: 1 },
      ...{ created: NOW, expires: '2030-01-02T00:00:00.000000+00:00' },
    };
    const { uploads } = (await control.get('/state?reveal=true')).body;
    expect(uploads).toEqual({ bytes: 11, max_bytes: 2 ** 31, open: [open] });
  });
});
