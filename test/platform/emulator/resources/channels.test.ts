import { channelMetadata } from '../../../support/channel-metadata';
import { errorBody } from '../../../support/error-body';
import { answered } from '../../../support/resource-bodies';
import { startEmulator } from '../../../support/start-emulator';

const CREATED = {
  ...answered('channel', 'id000001'),
  status: 'creating',
  enabled: true,
  stream_key: 'secret-000000000000000000000000000000001',
  preview_url: [],
  recent_events: [],
  metadata: channelMetadata({ title: '', reconnect_window: 60 }),
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
  // The key is a secret, which no list can be searched for.
  await admin.get(PATH).query({ q: 'stream_key: *' }).expect(400);
  const nothing = Object.fromEntries(Object.keys(CREATED.metadata).map((name) => [name, null]));
  for (const metadata of [{}, nothing]) {
    const { body } = await admin.post(PATH).send({ metadata, upload: {}, relationships: {} }).expect(201);
    expect(body.metadata).toEqual(CREATED.metadata);
  }
});

test('has the channel of its configuration from the start, and again after a reset, and with a state of another configuration', async () => {
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
  for (const former of [{}, { ...env, EMULATOR_CHANNEL_STREAM_KEY: 'a-former-stream-key' }]) {
    const { body: state } = await (await startEmulator(former)).control.get('/state?reveal=true');
    await emulator.control.put('/state').send(state).expect(200);
    await emulator.admin.get(`${PATH}demolive/`).expect(200, expected);
  }
});

test('deletes a channel: its routes answer 404, its stream key is unknown, and no list names it', async () => {
  const { admin, control, context, onAir } = await startEmulator();
  const { id, stream_key } = (await onAir()).channel;
  await admin.delete(`${PATH}${id}/`).expect(204, '');
  expect(context.state.events.all()).toEqual([]);
  const missing = errorBody('not_found', 'This site has no channel with this id.');
  await admin.delete(`${PATH}${id}/`).expect(404, missing);
  await admin.put(`${PATH}${id}/enable/`).expect(404, missing);
  await admin.get(`${PATH}${id}/events/`).expect(404, missing);
  expect((await admin.get(PATH)).body).toEqual({ page: 1, page_length: 10, total: 0, channels: [] });
  const { body } = await control.post('/encoder/connect').send({ stream_key }).expect(404);
  expect(body.errors[0].code).toBe('unknown_stream_key');
});
