import { createHmac, createSecretKey } from 'node:crypto';
import jwt from 'jsonwebtoken';
import { type Notification, signNotification } from '../../../../src/platform/emulator/webhooks/notification';
import { startEmulator } from '../../../support/start-emulator';
import { startWebhookReceiver } from '../../../support/webhook-receiver';

const SECRET = '0123456789abcdefghijklmnopqrstuvwxyzABCD';
const HAPPENED = new Date('2030-01-02T03:04:05.678Z');

function sign(subject: Notification['subject'], event: Notification['event']) {
  const to = { webhookId: 'hook0001', key: createSecretKey(Buffer.from(SECRET)) };
  return signNotification({ event, siteId: 'demosite', subject }, to, HAPPENED);
}

test.each<[Notification['event'], Notification['subject'], string]>([
  ['channel_active', { channelId: 'channel1' }, '"channel_id":"channel1"'],
  ['media_available', { mediaId: 'media001' }, '"media_id":"media001"'],
])('writes the body of %s with its keys in order', async (event, subject, id) => {
  expect((await sign(subject, event)).body).toBe(
    `{"event":"${event}",${id},"webhook_id":"hook0001","site_id":"demosite","event_time":"2030-01-02T03:04:05+00:00"}`,
  );
});

test('the payload of the token is the body, byte for byte, signed with the text of the secret', async () => {
  const { body, token } = await sign({ channelId: 'channel1' }, 'channel_created');
  const [header = '', payload = '', signature] = token.split('.');
  expect(Buffer.from(header, 'base64url').toString()).toBe('{"alg":"HS256","typ":"JWT"}');
  expect(Buffer.from(payload, 'base64url').toString()).toBe(body);
  expect(signature).toBe(createHmac('sha256', SECRET).update(`${header}.${payload}`).digest('base64url'));
});

test('a receiver that decodes the token gets the claims of the body and no other', async () => {
  const { body, token } = await sign({ mediaId: 'media001' }, 'media_deleted');
  const claims = jwt.verify(token, SECRET, { algorithms: ['HS256'] });
  expect(JSON.stringify(claims)).toBe(body);
});

test('a receiver with another secret refuses the token', async () => {
  const { token } = await sign({ mediaId: 'media001' }, 'media_deleted');
  expect(() => jwt.verify(token, `${SECRET}x`)).toThrow('invalid signature');
});

const CHANNEL_LIFE = ['channel_created', 'channel_active', 'channel_idle', 'media_available'];

test('tells of the life of a channel in order, and of the replay at its end', async () => {
  const receiver = await startWebhookReceiver();
  const { admin, siteId, createChannel, connect, disconnect, advance } = await startEmulator();
  const metadata = { name: 'all', webhook_url: receiver.url, events: CHANNEL_LIFE, site_ids: [siteId] };
  const { body: webhook } = await admin.post('/v2/webhooks/').send({ metadata });
  const channel = await createChannel();
  const eventId = await connect(channel);
  await advance(10);
  await disconnect(channel);
  await advance(60);
  const calls = await receiver.until(4);
  const about = { webhook_id: webhook.id, site_id: siteId };
  expect(calls.map(({ text }) => JSON.parse(text))).toEqual([
    { event: 'channel_created', channel_id: channel.id, ...about, event_time: '2030-01-01T00:00:00+00:00' },
    { event: 'channel_active', channel_id: channel.id, ...about, event_time: '2030-01-01T00:00:00+00:00' },
    { event: 'channel_idle', channel_id: channel.id, ...about, event_time: '2030-01-01T00:01:10+00:00' },
    { event: 'media_available', media_id: eventId, ...about, event_time: '2030-01-01T00:01:10+00:00' },
  ]);
});

test('an advance of the clock brings the next try, and the control port shows both', async () => {
  const receiver = await startWebhookReceiver();
  receiver.answer(503);
  const { admin, control, siteId, createChannel, advance } = await startEmulator();
  const metadata = { name: 'all', webhook_url: receiver.url, events: CHANNEL_LIFE, site_ids: [siteId] };
  const { body: webhook } = await admin.post('/v2/webhooks/').send({ metadata });
  const { id } = await createChannel();
  const deliveries = async (count: number): Promise<object[]> => {
    const { body } = await control.get('/deliveries');
    return body.deliveries.length < count ? deliveries(count) : body.deliveries;
  };
  await deliveries(1);
  await advance(1);
  const about = {
    webhook_id: webhook.id,
    event: 'channel_created',
    subject_id: id,
    url: receiver.url,
    ms: 0,
  };
  const [first, second] = ['2030-01-01T00:00:00.000Z', '2030-01-01T00:00:01.000Z'];
  expect(await deliveries(2)).toEqual([
    { ...about, attempt: 1, at: first, status: 503, failure: null, next_try_at: second },
    { ...about, attempt: 2, at: second, status: 200, failure: null, next_try_at: null },
  ]);
});

test.each<[number, Record<string, string>]>([
  [400, {}],
  [201, { EMULATOR_ALLOW_HTTP_WEBHOOKS: 'true' }],
])('answers %i to a receiver in a private network over http, with the variables %j', async (status, env) => {
  const { admin, siteId } = await startEmulator(env);
  const metadata = {
    name: 'all',
    webhook_url: 'http://172.18.0.2/',
    events: CHANNEL_LIFE,
    site_ids: [siteId],
  };
  expect((await admin.post('/v2/webhooks/').send({ metadata })).status).toBe(status);
});

test('a reset forgets the webhooks', async () => {
  const { admin, context, siteId } = await startEmulator();
  const metadata = {
    name: 'all',
    webhook_url: 'https://receiver.example/',
    events: CHANNEL_LIFE,
    site_ids: [siteId],
  };
  await admin.post('/v2/webhooks/').send({ metadata });
  context.reset();
  expect((await admin.get('/v2/webhooks/')).body).toEqual({
    page: 1,
    page_length: 10,
    total: 0,
    webhooks: [],
  });
});
