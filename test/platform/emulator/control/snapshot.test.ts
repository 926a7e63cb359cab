import { partLink } from '../../../../src/platform/emulator/uploads/uploads';
import { startEmulator } from '../../../support/start-emulator';
import { startWebhookReceiver } from '../../../support/webhook-receiver';

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
};

test('shows what the platform starts with', async () => {
  const { control } = await startEmulator();
  expect((await control.get('/state')).body).toEqual(SEEDED);
});

test('shows channels, events and media, their secrets only when they are to be revealed', async () => {
  const { admin, control, createChannel, connect } = await startEmulator();
  const simulcast = { stream_key: 'elsewhere', stream_url: 'rtmps://target.example/live', title: 't' };
  const channel = await createChannel({ publishing_mode: 'manual', simulcast_targets: [simulcast] });
  const event = await connect(channel);
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
  expect((await control.get('/state')).body.media).toEqual([
    {
      id: event,
      site_id: 'demosite',
      created: NOW,
      title: '',
      duration: 0,
      published: false,
      event_id: event,
      clip: null,
    },
  ]);
});

test('is back at the start after a reset: no channel, event, webhook, fault or encoder, and real time', async () => {
  const emulator = await startEmulator();
  const { admin, control, context } = emulator;
  const receiver = await startWebhookReceiver();
  const metadata = {
    name: 'n',
    description: '',
    webhook_url: receiver.url,
    events: ['channel_idle'],
    site_ids: ['demosite'],
  };
  await admin.post('/v2/webhooks/').send({ metadata }).expect(201);
  const dropped: string[] = [];
  const channel = await emulator.createChannel();
  context.broadcast.connect(channel.stream_key, (why) => dropped.push(why));
  const interrupted = await emulator.createChannel();
  await emulator.connect(interrupted);
  await emulator.disconnect(interrupted);
  await control.post('/faults').send({ target: 'GET /embed/channel.js', kind: 'reset' }).expect(201);
  await control.post('/credentials').send({ name: 'n', permission: 'Admin' }).expect(201);
  await control.delete('/credentials/seeded00').expect(204);
  await control.post('/clock').send({ advance_seconds: 10 }).expect(200);
  const reset = await control.post('/reset');
  expect([reset.status, reset.text, dropped]).toEqual([204, '', ['reset']]);
  expect((await control.get('/state')).body).toEqual(SEEDED);
  expect((await control.get('/deliveries')).body).toEqual({ deliveries: [] });
  await emulator.advance(24 * 3600);
  expect((await control.get('/state')).body).toEqual({ ...SEEDED, now: '2030-01-02T00:00:00.000000+00:00' });
  expect(receiver.received).toEqual([]);
});

test.each([false, true])('shows webhooks with their secrets when they are revealed: %s', async (reveal) => {
  const { control, context } = await startEmulator();
  const { id, secret, metadata } = context.webhooks.create({
    name: 'hook',
    description: '',
    webhook_url: 'https://receiver.example/',
    events: ['channel_created', 'channel_active'],
    site_ids: ['demosite'],
  });
  const { body } = await control.get('/state').query({ reveal }).expect(200);
  const times = { created: NOW, last_modified: NOW };
  const shown = { id, type: 'webhook', ...times, metadata, relationships: {}, schema: null };
  expect(body.webhooks).toEqual([{ ...shown, ...(reveal && { secret }) }]);
});

test('has nothing of the control port on the platform port', async () => {
  const { admin } = await startEmulator();
  for (const name of ['encoder/connect', 'clock', 'faults', 'deliveries', 'reset', 'state', 'credentials']) {
    const path = `/${name}`;
    expect([path, (await admin.get(path)).status, (await admin.post(path)).status]).toEqual([path, 404, 404]);
  }
});

test('has nothing of the platform on the control port', async () => {
  const { control } = await startEmulator();
  await control.get('/v2/sites/demosite/channels/').expect(404);
  await control.get('/healthz').expect(200);
});

test('shows the uploads that are open, without their tokens, and what the files take', async () => {
  const { control, context, unauthenticated } = await startEmulator();
  const wanted = { siteId: 'demosite', maxBytes: 1000, done: () => undefined } as const;
  const direct = context.uploads.begin({ ...wanted, method: 'direct' });
  const multipart = context.uploads.begin({ ...wanted, method: 'multipart' });
  await unauthenticated
    .put(partLink(multipart, 7, ''))
    .send('hello')
    .expect(200);
  await unauthenticated.put(`/uploads/${direct.id}?token=${direct.token}`).send('hello!').expect(200);
  expect((await control.get('/state?reveal=true')).body.uploads).toEqual({
    bytes: 11,
    max_bytes: 2 ** 31,
    open: [
      {
        id: multipart.id,
        site_id: 'demosite',
        method: 'multipart',
        created: NOW,
        expires: '2030-01-02T00:00:00.000000+00:00',
        parts: 1,
      },
    ],
  });
});
