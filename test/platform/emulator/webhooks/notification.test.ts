import { createHmac, createSecretKey } from 'node:crypto';
import fc from 'fast-check';
import { type Notification, signNotification } from '../../../../src/platform/emulator/webhooks/notification';
import { startEmulator, type TestEmulator } from '../../../support/start-emulator';
import { startWebhooks } from '../../../support/start-webhooks';
import { until } from '../../../support/until';
import { type ReceiverScript, startWebhookReceiver } from '../../../support/webhook-receiver';

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

const CHANNEL_LIFE = ['channel_created', 'channel_active', 'channel_idle', 'media_available'];

test('reports the life of a channel in order, and of the replay at its end', async () => {
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

const script = fc.oneof(
  { weight: 6, arbitrary: fc.constant<ReceiverScript>(200) },
  { weight: 4, arbitrary: fc.constantFrom<ReceiverScript>(500, 503, 429, 408, 'reset', 'garbage') },
);

/** What of `channelIds` is delivered, in order, when the receiver answers so and each is tried five times. */
function expectedCalls(channelIds: readonly string[], scripts: readonly ReceiverScript[]): string[] {
  const left = [...scripts];
  return channelIds.flatMap((channelId) => {
    const calls: string[] = [];
    let answer: ReceiverScript;
    do {
      answer = left.shift() ?? 200;
      calls.push(channelId);
    } while (answer !== 200 && calls.length < 5);
    return calls;
  });
}

test('every notification is delivered in order, none lost and none again after a 200, whatever fails between', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(script, { maxLength: 40 }), { minLength: 1, maxLength: 3 }),
      fc.integer({ min: 1, max: 20 }),
      async (scriptsOfReceivers, count) => {
        const { create, notify } = startWebhooks();
        const channelIds = Array.from({ length: count }, (_none, index) => `channel-${index}`);
        const receivers = [];
        for (const scripts of scriptsOfReceivers) {
          const receiver = await startWebhookReceiver();
          receiver.answer(...scripts);
          create(receiver.url);
          receivers.push({ receiver, expected: expectedCalls(channelIds, scripts) });
        }
        notify(...channelIds);
        for (const { receiver, expected } of receivers) {
          const calls = await receiver.until(expected.length);
          expect(calls.map(({ text }) => JSON.parse(text).channel_id)).toEqual(expected);
        }
      },
    ),
    { numRuns: 40 },
  );
});

const REFUSED = {
  errors: [
    {
      code: 'webhook_refused',
      description: 'A webhook may not be sent here. Give it the address of a receiver of your own.',
    },
  ],
};

/** Has the first emulator notify this address of a new channel, and answers the status that came back. */
async function notifiedAt({ admin, context, createChannel }: TestEmulator, url: string): Promise<unknown> {
  const events = ['channel_created'];
  const metadata = { name: 'hook', description: '', webhook_url: url, events, site_ids: ['demosite'] };
  await admin.post('/v2/webhooks').send({ metadata }).expect(201);
  await createChannel();
  // An emulator that was reset has forgotten its channels, and its deliveries as well.
  await until(() => context.webhooks.history().length > 0 || context.state.channels.all().length === 0);
  return context.webhooks.history()[0]?.answer;
}

test('a webhook to the control port is not obeyed', async () => {
  const emulator = await startEmulator();
  const url = `${emulator.controlUrl}/reset`;
  expect(await notifiedAt(emulator, url)).toEqual({ status: 403 });
  expect(emulator.context.state.channels.all()).toHaveLength(1);
});

test('a webhook to the dashboard, which has no login, is not obeyed', async () => {
  const emulator = await startEmulator();
  const { id } = await emulator.createChannel();
  const url = `${emulator.url}/dashboard/channels/${id}/delete`;
  expect(await notifiedAt(emulator, url)).toEqual({ status: 403 });
  expect(emulator.context.state.channels.all()).toHaveLength(2);
});

test('the control port says why it refuses a webhook', async () => {
  const { control } = await startEmulator();
  const answer = await control.post('/reset').set('user-agent', 'packager-drm-emulator-webhook');
  expect([answer.status, answer.body]).toEqual([403, REFUSED]);
});
