import { createHmac, randomBytes } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import dns from 'node:dns';
import { setImmediate as turn } from 'node:timers/promises';
import { type Clock, createClock } from '../../../../src/platform/emulator/clock';
import { FaultSwitches } from '../../../../src/platform/emulator/control/faults';
import { ItemStore } from '../../../../src/platform/emulator/listing/item-store';
import {
  type Delivery,
  WEBHOOK_SETTINGS,
  type Webhook,
  type WebhookMetadata,
  type WebhookSettings,
  Webhooks,
} from '../../../../src/platform/emulator/webhooks/webhooks';
import { afterTest } from '../../../support/after-test';
import { refusedUrl, type Script } from '../../../support/fake-upstream';
import { recordedLog } from '../../../support/recorded-log';
import { until } from '../../../support/until';
import { startWebhookReceiver } from '../../../support/webhook-receiver';

const START = new Date('2030-01-01T00:00:00.000Z');
const SITE = 'demosite';

/** A clock that is stopped until it is advanced. */
const standingClock = (): Clock => createClock(() => START);

/** A stopped clock that skips every wait. */
function leapingClock(): Clock {
  const clock = standingClock();
  return {
    ...clock,
    after(ms, run) {
      setImmediate(() => clock.advance(ms));
      return clock.after(ms, run);
    },
  };
}

/** The webhook service alone; it is stopped after the test. */
function startWebhooks(settings: Partial<WebhookSettings> = {}, clock = leapingClock()) {
  const faults = new FaultSwitches(randomBytes, clock);
  const { log, lines } = recordedLog();
  let made = 0;
  const next = () => `made${++made}`;
  const state = { webhooks: new ItemStore<Webhook>(clock.now) };
  const webhooks = new Webhooks(
    { state, clock, faults, now: () => 0, log },
    { ...WEBHOOK_SETTINGS, ...settings },
  );
  afterTest(() => webhooks.stop());
  return {
    webhooks,
    remove: (webhook: Webhook) => state.webhooks.remove(webhook),
    faults,
    clock,
    /** Creates a webhook for all channel events of the site. */
    create: (url: string, changes?: Partial<WebhookMetadata>) =>
      state.webhooks.add({
        id: next(),
        secret: next(),
        created: clock.now(),
        lastModified: clock.now(),
        metadata: {
          name: 'hook',
          description: '',
          webhook_url: url,
          events: ['channel_created', 'channel_active', 'channel_idle'],
          site_ids: [SITE],
          ...changes,
        },
      }),
    /** Notifies of `channel_created` of these channels. */
    notify(...channelIds: string[]) {
      for (const id of channelIds) {
        webhooks.notify('channel_created', { id, siteId: SITE });
      }
    },
    /** Waits until this many tries have been made in all. */
    async tries(count: number) {
      await until(() => webhooks.history().length >= count);
      return webhooks.history();
    },
    logText: () => lines.map(([, message]) => message).join('\n'),
  };
}

/** The service with one webhook, whose receiver answers its next calls so, and has these channels in its calls. */
async function startOne(
  answers: readonly Script[] = [],
  settings: Partial<WebhookSettings> = {},
  clock?: Clock,
) {
  const receiver = await startWebhookReceiver();
  receiver.answer(...answers);
  const service = startWebhooks(settings, clock);
  const channels = () => receiver.received.map(({ text }) => JSON.parse(text).channel_id);
  return { ...service, receiver, webhook: service.create(receiver.url), channels };
}

const TIMEOUT_MS = 60_000;
const secondsOf = (tries: readonly Delivery[]) =>
  tries.map(({ at }) => (at.getTime() - START.getTime()) / 1000);

test('POSTs the signed body as JSON with the token as a bearer', async () => {
  const receiver = await startWebhookReceiver();
  const { create, notify } = startWebhooks();
  const { id, secret } = create(`${receiver.url}/deep?token=1`);
  notify('channel1');
  const [call] = await receiver.until(1);
  const text = `{"event":"channel_created","channel_id":"channel1","webhook_id":"${id}","site_id":"demosite","event_time":"2030-01-01T00:00:00+00:00"}`;
  expect(call).toMatchObject({ method: 'POST', path: '/hook/deep?token=1', text });
  expect(call?.headers).toMatchObject({
    'content-type': 'application/json',
    'user-agent': 'packager-drm-emulator-webhook',
    'content-length': String(text.length),
    authorization: expect.stringMatching(/^Bearer /),
  });
  const [header, payload, signature] = call?.headers.authorization?.split('.') ?? [];
  const signed = `${header?.replace('Bearer ', '')}.${payload}`;
  expect(signature).toBe(createHmac('sha256', secret).update(signed).digest('base64url'));
});

test('tries again after 1, 5, 30 and 120 seconds, with the same body and token, and then gives up', async () => {
  const { receiver, notify, tries, logText, channels } = await startOne([408, 429, 500, 503, 502]);
  notify('channel1', 'channel2');
  const made = await tries(6);
  expect(secondsOf(made)).toEqual([0, 1, 6, 36, 156, 156]);
  expect(made.map(({ attempt, answer, nextTryAt }) => [attempt, answer, nextTryAt?.toISOString()])).toEqual([
    [1, { status: 408 }, '2030-01-01T00:00:01.000Z'],
    [2, { status: 429 }, '2030-01-01T00:00:06.000Z'],
    [3, { status: 500 }, '2030-01-01T00:00:36.000Z'],
    [4, { status: 503 }, '2030-01-01T00:02:36.000Z'],
    [5, { status: 502 }, undefined],
    [1, { status: 200 }, undefined],
  ]);
  const calls = receiver.received.map(({ text, headers }) => `${text} ${headers.authorization}`);
  expect(new Set(calls.slice(0, 5)).size).toBe(1);
  expect(channels()[5]).toBe('channel2');
  expect(logText().match(/webhook notification given up/g)).toHaveLength(1);
});

test.each([302, 308, 400, 404])('gives up at once on a %i', async (status) => {
  const answer = { status, headers: { location: '/elsewhere' } };
  const { receiver, notify, tries, logText } = await startOne([answer]);
  notify('channel1', 'channel2');
  const made = await tries(2);
  expect(made.map(({ answer, nextTryAt }) => [answer, nextTryAt])).toEqual([
    [{ status }, undefined],
    [{ status: 200 }, undefined],
  ]);
  expect(logText().match(/webhook notification given up/g)).toHaveLength(1);
  expect(receiver.received.map(({ path }) => path)).toEqual(['/hook', '/hook']);
});

/** Takes over the timers of the source alone: what a call waits for passes when a test says so, however slow the machine. */
function holdTimers(): void {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask'] });
}

afterEach(() => jest.useRealTimers());

/** Resolves when a caller has read the head of an answer. */
function untilAnswered(): Promise<void> {
  return new Promise((resolve) => {
    const channel = 'http.client.response.finish';
    const heard = () => {
      unsubscribe(channel, heard);
      resolve();
    };
    subscribe(channel, heard);
  });
}

test('takes "hang" for a failure, tries again and goes on in order', async () => {
  const { receiver, notify, webhooks } = await startOne(['hang'], { timeoutMs: TIMEOUT_MS });
  holdTimers();
  notify('channel1', 'channel2');
  await receiver.until(1);
  jest.advanceTimersByTime(TIMEOUT_MS - 1);
  expect(webhooks.history()).toEqual([]);
  jest.advanceTimersByTime(1);
  await receiver.until(3);
  while (webhooks.history().length < 3) await turn();
  expect(webhooks.history().map(({ subjectId, answer }) => [subjectId, answer])).toEqual([
    ['channel1', { failure: 'timeout' }],
    ['channel1', { status: 200 }],
    ['channel2', { status: 200 }],
  ]);
});

const receiverThat = async (script: Script) => (await startOne([script])).receiver.url;

/** How the only try ends to notify this address. */
async function answerAt(url: string, settings: Partial<WebhookSettings> = {}) {
  const { create, notify, tries } = startWebhooks({ retryDelaysMs: [], ...settings });
  create(url);
  notify('channel1');
  return (await tries(1)).map(({ answer }) => answer);
}

test.each<[string, () => string | Promise<string>, string]>([
  ['nobody listens', refusedUrl, 'connection_refused'],
  ['the host has no address', () => 'http://receiver.invalid/', 'host_not_found'],
  ['it speaks no TLS', async () => (await receiverThat(200)).replace('http', 'https'), 'tls_failed'],
  ['the receiver cuts the connection', () => receiverThat('reset'), 'connection_reset'],
  ['the answer is no HTTP', () => receiverThat('garbage'), 'not_http'],
])('keeps the failure when %s', async (_case, urlOf, failure) => {
  expect(await answerAt(await urlOf(), { allowHttp: true })).toEqual([{ failure }]);
});

describe('a name', () => {
  /** Makes every name lead to these addresses. */
  function leadTo(...addresses: string[]): void {
    jest.spyOn(dns, 'lookup').mockImplementation(((_name: string, _options: object, done: Found) => {
      const found = addresses.map((address) => ({ address, family: 4 }));
      done(null, found);
    }) as typeof dns.lookup);
  }
  type Found = (error: null, found: { address: string; family: number }[]) => void;

  afterEach(() => jest.restoreAllMocks());

  test('whose look-up never ends is a timeout', async () => {
    jest.spyOn(dns, 'lookup').mockImplementation((() => undefined) as unknown as typeof dns.lookup);
    expect(await answerAt('https://receiver.example/', { timeoutMs: 50 })).toEqual([{ failure: 'timeout' }]);
  });

  test.each([
    ['https://receiver.example/', ['10.0.0.1', '192.168.0.1']],
    ['http://localhost/', ['10.0.0.1', '203.0.113.7']],
  ])('as in %s that leads to %j alone is not called', async (url, addresses) => {
    leadTo(...addresses);
    expect(await answerAt(url)).toEqual([{ failure: 'address_not_allowed' }]);
  });

  test('is called at those of its addresses that are allowed', async () => {
    const receiver = await startWebhookReceiver();
    leadTo('10.0.0.1', '127.0.0.1');
    expect(await answerAt(receiver.url.replace('127.0.0.1', 'localhost'))).toEqual([{ status: 200 }]);
  });
});

test.each<Script>(['stall', 'endless'])(
  'takes a 200 for delivered although its body does %s',
  async (script) => {
    const { receiver, webhooks, notify } = await startOne([script], { timeoutMs: TIMEOUT_MS });
    const answered = untilAnswered();
    holdTimers();
    notify('channel1', 'channel2');
    await answered;
    jest.advanceTimersByTime(TIMEOUT_MS);
    while (webhooks.history().length < 2) await turn();
    expect(webhooks.history().map(({ subjectId, answer }) => [subjectId, answer])).toEqual([
      ['channel1', { status: 200 }],
      ['channel2', { status: 200 }],
    ]);
    await receiver.untilCut(1);
  },
);

test('sends one notification after another over one connection', async () => {
  const { receiver, notify } = await startOne([{ status: 200, body: 'x'.repeat(10_000) }, 500, 200]);
  notify(...Array.from({ length: 10 }, (_none, index) => `channel-${index}`));
  await receiver.until(11);
  expect(receiver.connections()).toBe(1);
});

test('a receiver that hangs holds up its own webhook alone', async () => {
  const { create, notify, channels } = await startOne(['hang']);
  const quick = await startWebhookReceiver();
  create(quick.url);
  notify('channel1', 'channel2', 'channel3');
  await quick.until(3);
  expect(channels()).toEqual(['channel1']);
});

test('calls only the webhooks that asked for the event and the site', async () => {
  const receiver = await startWebhookReceiver();
  const { webhooks, create } = startWebhooks();
  create(`${receiver.url}/events`, { events: ['media_available', 'channel_idle'] });
  create(`${receiver.url}/sites`, { site_ids: ['othrsite', SITE] });
  create(`${receiver.url}/neither`, { site_ids: ['thrdsite'] });
  webhooks.notify('channel_idle', { id: 'channel1', siteId: SITE });
  webhooks.notify('channel_active', { id: 'channel2', siteId: 'othrsite' });
  webhooks.notify('media_available', { id: 'media001', siteId: SITE });
  webhooks.notify('channel_created', { id: 'channel3', siteId: SITE });
  await receiver.until(5);
  await turn();
  const got = receiver.received.map(({ path, text }) => `${path} ${JSON.parse(text).event}`);
  expect(got.sort()).toEqual([
    '/hook/events channel_idle',
    '/hook/events media_available',
    '/hook/sites channel_active',
    '/hook/sites channel_created',
    '/hook/sites channel_idle',
  ]);
});

test('reports the time of the event, not that of its delivery', async () => {
  const { receiver, notify, clock } = await startOne([500], {}, standingClock());
  notify('channel1');
  clock.advance(2500);
  notify('channel2');
  await receiver.until(1);
  while (receiver.received.length < 3) {
    clock.advance(1000);
    await turn();
  }
  expect(receiver.received.map(({ text }) => JSON.parse(text).event_time)).toEqual([
    '2030-01-01T00:00:00+00:00',
    '2030-01-01T00:00:00+00:00',
    '2030-01-01T00:00:02+00:00',
  ]);
});

test('loses the newest when the queue is full, and says so', async () => {
  const { notify, tries, logText, channels } = await startOne([], { queueLimit: 2 });
  notify('channel1', 'channel2', 'channel3', 'channel4');
  const made = await tries(4);
  expect(channels()).toEqual(['channel1', 'channel2']);
  expect(made.map(({ subjectId, attempt, answer }) => [subjectId, attempt, answer])).toEqual([
    ['channel3', 0, { failure: 'queue_full' }],
    ['channel4', 0, { failure: 'queue_full' }],
    ['channel1', 1, { status: 200 }],
    ['channel2', 1, { status: 200 }],
  ]);
  expect(logText().match(/webhook queue full/g)).toHaveLength(1);
  notify('channel5');
  await tries(5);
  expect(channels()).toEqual(['channel1', 'channel2', 'channel5']);
});

test('remembers the latest tries, of one webhook or of all', async () => {
  const { receiver, webhooks, create, notify, webhook } = await startOne([], { historyLimit: 3 });
  notify('channel1', 'channel2', 'channel3', 'channel4', 'channel5');
  await receiver.until(5);
  const second = create(receiver.url);
  notify('channel6');
  await receiver.until(7);
  while (webhooks.history(second.id).length < 1) await turn();
  expect(webhooks.history()).toHaveLength(3);
  const all = [webhook, second].flatMap(({ id }) => webhooks.history(id).map(({ subjectId }) => subjectId));
  expect(all.sort()).toEqual(['channel5', 'channel6', 'channel6']);
});

test('goes on at the new address when a webhook is moved between two tries', async () => {
  const moved = await startWebhookReceiver();
  const { receiver, webhook, notify, tries, clock } = await startOne([500], {}, standingClock());
  notify('channel1');
  await tries(1);
  webhook.metadata = { ...webhook.metadata, webhook_url: moved.url };
  clock.advance(1000);
  await moved.until(1);
  expect(receiver.received).toHaveLength(1);
});

test.each(['remove', 'reset', 'stop'] as const)(
  '%s drops what waits and cuts the call under way',
  async (how) => {
    const { receiver, webhooks, webhook, remove, notify, channels } = await startOne(['hang']);
    notify('channel1', 'channel2');
    await receiver.until(1);
    if (how === 'remove') remove(webhook);
    else webhooks[how]();
    await receiver.untilCut(1);
    notify('channel3');
    const other = startWebhooks();
    other.create(receiver.url);
    other.notify('channel4');
    await other.tries(1);
    expect(channels()).toEqual(['channel1', 'channel4']);
    expect(webhooks.history()).toEqual([]);
  },
);

test('removing a webhook ends its wait for the next try', async () => {
  const { receiver, webhooks, webhook, remove, notify, tries, clock } = await startOne(
    [500],
    {},
    standingClock(),
  );
  notify('channel1');
  await tries(1);
  remove(webhook);
  clock.advance(600_000);
  await turn();
  expect(receiver.received).toHaveLength(1);
  expect(webhooks.history(webhook.id)).toHaveLength(1);
});

test('a call that is held back goes on at once when the faults are removed', async () => {
  const { receiver, faults, notify, tries } = await startOne([], {}, standingClock());
  faults.add('webhook:*', { kind: 'delay', ms: 60_000 }, 1);
  notify('channel1');
  await until(() => faults.list().length === 0);
  faults.clear();
  expect((await tries(1)).map(({ answer }) => answer)).toEqual([{ status: 200 }]);
  expect(receiver.received).toHaveLength(1);
});

test('a fault switch fails, breaks or delays the next calls of a receiver', async () => {
  const { receiver, faults, webhook, notify, tries } = await startOne();
  faults.add(`webhook:${webhook.id}`, { kind: 'fail', status: 503 }, 1);
  faults.add('webhook:*', { kind: 'reset' }, 1);
  faults.add('webhook:*', { kind: 'delay', ms: 60_000 }, 1);
  faults.add('webhook:*', { kind: 'delay', ms: 3_000 }, 1);
  faults.add('webhook:other', { kind: 'reset' }, 1);
  notify('channel1');
  const made = await tries(4);
  const failures = [{ status: 503 }, { failure: 'connection_reset' }, { failure: 'timeout' }];
  expect(made.map(({ answer }) => answer)).toEqual([...failures, { status: 200 }]);
  // A delay of a minute ends as every call does after 5 seconds.
  expect(secondsOf(made)).toEqual([0, 1, 6, 41]);
  expect(receiver.received).toHaveLength(1);
});
