import { createHmac, createSecretKey } from 'node:crypto';
import { type Notification, signNotification } from '../../../../src/platform/emulator/webhooks/notification';
import { mayCall, receiverUrlFaults } from '../../../../src/platform/emulator/webhooks/receiver';
import { startEmulator, type TestEmulator } from '../../../support/start-emulator';
import { until } from '../../../support/until';
import { startWebhookReceiver } from '../../../support/webhook-receiver';

const SECRET = '0123456789abcdefghijklmnopqrstuvwxyzABCD';
const HAPPENED = new Date('2030-01-02T03:04:05.678Z');

function sign(event: Notification['event'], subjectId: string) {
  const to = { webhookId: 'hook0001', key: createSecretKey(Buffer.from(SECRET)) };
  return signNotification({ event, siteId: 'demosite', subjectId }, to, HAPPENED);
}

test.each<[Notification['event'], string, string]>([
  ['channel_active', 'channel1', '"channel_id":"channel1"'],
  ['media_available', 'media001', '"media_id":"media001"'],
])(
  'writes the body of %s with its keys in order, which the token has byte for byte, signed with the text of the secret',
  async (event, subjectId, id) => {
    const { body, token } = await sign(event, subjectId);
    expect(body).toBe(
      `{"event":"${event}",${id},"webhook_id":"hook0001","site_id":"demosite","event_time":"2030-01-02T03:04:05+00:00"}`,
    );
    const [header = '', payload = '', signature] = token.split('.');
    expect(Buffer.from(header, 'base64url').toString()).toBe('{"alg":"HS256","typ":"JWT"}');
    expect(Buffer.from(payload, 'base64url').toString()).toBe(body);
    expect(signature).toBe(createHmac('sha256', SECRET).update(`${header}.${payload}`).digest('base64url'));
  },
);

const CHANNEL_LIFE = ['channel_created', 'channel_active', 'channel_idle', 'media_available'];

/** Makes a webhook for the life of channels. */
function subscribe({ admin, siteId }: TestEmulator, webhook_url: string) {
  const metadata = { name: 'all', webhook_url, events: CHANNEL_LIFE, site_ids: [siteId] };
  return admin.post('/v2/webhooks/').send({ metadata });
}

test('reports the life of a channel in order, and of the replay at its end if viewers see it', async () => {
  const receiver = await startWebhookReceiver();
  const emulator = await startEmulator();
  const { siteId, onAir, disconnect, advance } = emulator;
  const { body: webhook } = await subscribe(emulator, receiver.url);
  const { channel: unpublished } = await onAir({ publishing_mode: 'manual' });
  await disconnect(unpublished);
  await advance(60);
  const { channel, id: eventId } = await onAir();
  await advance(10);
  await disconnect(channel);
  await advance(60);
  const calls = await receiver.until(7);
  const about = { webhook_id: webhook.id, site_id: siteId };
  const [first, second, third, ...others] = calls.map(({ text }) => JSON.parse(text));
  const unseen = [first, second, third].map(({ event, channel_id }) => [event, channel_id]);
  expect(unseen).toEqual(CHANNEL_LIFE.slice(0, 3).map((event) => [event, unpublished.id]));
  expect(others).toEqual([
    { event: 'channel_created', channel_id: channel.id, ...about, event_time: '2030-01-01T00:01:00+00:00' },
    { event: 'channel_active', channel_id: channel.id, ...about, event_time: '2030-01-01T00:01:00+00:00' },
    { event: 'channel_idle', channel_id: channel.id, ...about, event_time: '2030-01-01T00:02:10+00:00' },
    { event: 'media_available', media_id: eventId, ...about, event_time: '2030-01-01T00:02:10+00:00' },
  ]);
});

test('an advance of the clock brings the next try, and the control port shows both', async () => {
  const receiver = await startWebhookReceiver();
  receiver.answer(503);
  const emulator = await startEmulator();
  const { control, createChannel, advance } = emulator;
  const { body: webhook } = await subscribe(emulator, receiver.url);
  const { id } = await createChannel();
  const deliveries = async (count: number): Promise<object[]> => {
    const { body } = await control.get('/deliveries');
    return body.deliveries.length < count ? deliveries(count) : body.deliveries;
  };
  await deliveries(1);
  await advance(1);
  const { url } = receiver;
  const about = { webhook_id: webhook.id, event: 'channel_created', subject_id: id, url, ms: 0 };
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
  const emulator = await startEmulator(env);
  await subscribe(emulator, 'http://172.18.0.2/').expect(status);
});

/** Notifies this address of a new channel from the first emulator, and returns the status of the answer. */
async function notifiedAt(emulator: TestEmulator, url: string): Promise<unknown> {
  const { context, createChannel } = emulator;
  await subscribe(emulator, url).expect(201);
  await createChannel();
  // An emulator that was reset has forgotten its channels, and its deliveries as well.
  await until(() => context.webhooks.history().length > 0 || context.state.channels.all().length === 0);
  return context.webhooks.history()[0]?.answer;
}

test.each([
  ['control port', ({ controlUrl }: TestEmulator) => `${controlUrl}/reset`],
  ['dashboard, which has no login,', ({ url }: TestEmulator) => `${url}/dashboard/channels/id000001/delete`],
])('a webhook to the %s is not obeyed', async (_which, addressOf) => {
  const emulator = await startEmulator();
  const { id } = await emulator.createChannel();
  expect(id).toBe('id000001');
  expect(await notifiedAt(emulator, addressOf(emulator))).toEqual({ status: 403 });
  expect(emulator.context.state.channels.all()).toHaveLength(2);
});

test.each([
  ['webhook', 'A webhook may not be sent here. Give it the address of a receiver of your own.'],
  ['fetch', 'No file is fetched from here. Give an address of your own.'],
])('the control port says why it refuses a %s', async (kind, description) => {
  const { control } = await startEmulator();
  const errors = [{ code: `${kind}_refused`, description }];
  await control.post('/reset').set('user-agent', `packager-drm-emulator-${kind}`).expect(403, { errors });
});

const HTTPS_ONLY = { allowHttp: false };
const NOT_HTTPS =
  'must be an https address; http is for loopback, or for every host with EMULATOR_ALLOW_HTTP_WEBHOOKS=true';
const PRIVATE =
  'must not be an address of a private network, unless EMULATOR_ALLOW_HTTP_WEBHOOKS=true is set';
const NO_ADDRESS = 'must be an absolute https address';
const WITH_USER = 'must not hold a user name or password: the token is in the Authorization header';

/** Rows of addresses, with spaces between them, that have these faults. */
const rowsOf = (addresses: string, faults: string[]) =>
  addresses.split(/\s+/).map((url): [string, string[]] => [url, faults]);

test.each<[string, string[]]>([
  ...rowsOf(
    `https://receiver.example/hook?a=1 HTTPS://receiver.example https://receiver.example:8443/
  https://203.0.113.7/hook https://[2001:db8::7]/hook https://receiver https://receiver.invalid/ https://localhost:3000/
  https://127.0.0.1/ http://localhost:3000/hook http://receiver.localhost/ http://127.0.0.1:3000/ http://127.8.9.10/
  http://[::1]:3000/ http://[::ffff:127.0.0.1]:3000/ http://0x7f.1/ https://[::ffff:203.0.113.7]/hook
  https://[2606:2800:220:1::7]/hook`,
    [],
  ),
  ['', [NO_ADDRESS]],
  ['receiver.example/hook', [NO_ADDRESS]],
  [' https://receiver.example/', [NO_ADDRESS]],
  ['https://receiver.example/\nhook', [NO_ADDRESS]],
  ['https://receiver.example/ö', [NO_ADDRESS]],
  [`https://receiver.example/${'x'.repeat(1976)}`, ['is longer than 2000 characters']],
  ['ftp://receiver.example/', ['must be an https address']],
  ['https://user@receiver.example/', [WITH_USER]],
  ['http://user:password@receiver.example/', [WITH_USER, NOT_HTTPS]],
  ...rowsOf(
    `http://receiver.example/ http://localhost.example/ http://10.0.0.1/ http://203.0.113.7/
  http://[::127.0.0.1]/ http://[2002:7f00:1::]/`,
    [NOT_HTTPS],
  ),
  ...rowsOf(
    `https://0.0.0.0/ https://10.1.2.3/ https://100.64.0.1/ https://169.254.169.254/latest/meta-data
  https://172.31.255.255/ https://192.168.1.1:8443/ https://192.0.0.8/ https://198.18.0.1/ https://224.0.0.1/
  https://255.255.255.255/ https://0xa.1/ https://[::]/ https://[fd00::1]/ https://[fe80::1]/ https://[ff02::1]/
  https://[::ffff:10.0.0.1]/ https://192.88.99.1/ https://[::10.0.0.1]/ https://[::127.0.0.1]/
  https://[::ffff:0:10.0.0.1]/ https://[64:ff9b::10.0.0.1]/ https://[64:ff9b:1::10.0.0.1]/ https://[100::1]/
  https://[2001:0:7f00:1::]/ https://[2001:2::1]/ https://[2001:10::1]/ https://[2001:20::1]/ https://[2002:a00:1::]/
  https://[5f00::1]/ https://[fec0::1]/ https://[4000::1]/`,
    [PRIVATE],
  ),
])('finds in %j the faults %j', (url, faults) => {
  expect(receiverUrlFaults(url, HTTPS_ONLY)).toEqual(faults);
});

test.each([
  ['http://receiver:3000/hook', []],
  ['http://172.18.0.2/', []],
  ['ftp://receiver/', ['must be an https address']],
  ['https://user@receiver/', [WITH_USER]],
])('finds in %s, where http is allowed, the faults %j', (url, faults) => {
  expect(receiverUrlFaults(url, { allowHttp: true })).toEqual(faults);
});

test.each<[string, string, boolean]>([
  ['127.0.0.1', 'http:', true],
  ['203.0.113.7', 'http:', false],
  ['172.15.255.255', 'https:', true],
  ['172.16.0.0', 'https:', false],
  ['2001:200::1', 'https:', true],
  ['::ffff:c0a8:1', 'https:', false],
  ['0:0:0:0:0:FFFF:192.168.0.1', 'https:', false],
  ['fe80::1%1', 'https:', false],
])('the address %s may be called over %s only by the rules: %s', (address, protocol, allowed) => {
  expect(mayCall(address, protocol, HTTPS_ONLY)).toBe(allowed);
  expect(mayCall(address, protocol, { allowHttp: true })).toBe(true);
});
