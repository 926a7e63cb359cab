import { createClock } from '../../../src/platform/emulator/clock';
import { deriveKeys } from '../../../src/platform/emulator/upstreams/key-provider';
import { onceForAll } from '../../support/after-test';
import { errorBody } from '../../support/error-body';
import { signedPath } from '../../support/sign-v1';
import { startEmulator } from '../../support/start-emulator';

const shared = onceForAll(() => startEmulator());

const CHANNELS = '/v2/sites/demosite/channels/';

test.each(['a b', '[::1', 'x:99999', '%', 'user@host', 'host/path', 'host?', 'host#', '\\'])(
  'addresses in answers are those of loopback when the Host header %j is none',
  async (host) => {
    const emulator = await shared();
    const path = '/v2/sites/demosite/playlists/manual_playlist/';
    const { id } = (await emulator.admin.post(path).send({ metadata: {} }).expect(201)).body;
    const { body } = await emulator.unauthenticated.get(`/v2/playlists/${id}`).set('host', host);
    expect(new URL(body.links.first).origin).toBe(emulator.url);
    const made = await emulator.unauthenticated.get(signedPath('/v1/videos/create')).set('host', host);
    expect([made.status, made.body.link.address]).toEqual([200, new URL(emulator.url).host]);
  },
);

test('logs one line for each request and no secret, API key or key in any of them', async () => {
  const { api, client, logOf, unauthenticated, ...emulator } = await startEmulator();
  const { keyId, contentKey, fairPlayKey, fairPlayIv, aesKey } = deriveKeys(client, 'film');
  const kids = [keyId.toString('base64url')];
  const secretInPath = `/keyprovider/${client.sharedSecret}/${client.apiKey}`;
  for (const path of [`/config/v1/clients/${client.name}`, secretInPath]) await api.get(path);
  for (const kind of ['cenc', 'fairplay', 'widevine', 'playready', 'aes']) {
    await api.get(`/keyprovider/${kind}/demo/film`);
    await unauthenticated.get(`/keyprovider/${kind}/demo/film`).set('API-KEY', `${client.apiKey}-wrong`);
  }
  await unauthenticated.post('/keyprovider/clearkey').send({ kids, type: 'temporary' });
  const cut = `{"${contentKey.toString('base64')}`;
  await unauthenticated.post('/keyprovider/clearkey').type('json').send(cut);

  const sent = { name: 'n', permission: 'Editor' };
  const { secret } = (await emulator.control.post('/credentials').send(sent).expect(201)).body;
  const { channel } = await emulator.onAir();
  await emulator.as(secret).get(CHANNELS).expect(200);
  for (const wrong of ['wrong', 'demo-api-secret-0123456789'])
    await unauthenticated.get(signedPath('/v1/status', {}, { secret: wrong }));
  await emulator.control.get('/state?reveal=true').expect(200);

  const log = await logOf(21);
  expect(log.trimEnd().split('\n')).toHaveLength(21);
  const secrets = [contentKey, fairPlayKey, fairPlayIv, aesKey].flatMap((key) => [
    key.toString('hex'),
    key.toString('base64'),
    key.toString('base64url'),
  ]);
  const text = log.toLowerCase();
  const ofAccount = ['demo-api-secret-0123456789', secret, channel.stream_key];
  const all = [client.apiKey, client.sharedSecret, ...ofAccount, ...secrets];
  expect(all.filter((secret) => text.includes(secret.toLowerCase()))).toEqual([]);
});

const headersOf = ({ headers }: { headers: Record<string, string> }) => [
  headers['jw-request-limit'],
  headers['jw-request-remaining'],
];

test('answers the limit and what remains of it on every management answer, and refuses nobody by default', async () => {
  const emulator = await startEmulator();
  expect(headersOf(await emulator.admin.get(CHANNELS))).toEqual(['60', '59']);
  expect(headersOf(await emulator.admin.get(`${CHANNELS}nothing0`))).toEqual(['60', '58']);
  emulator.countRequests(60);
  const over = await emulator.admin.get(CHANNELS);
  expect([over.status, headersOf(over)]).toEqual([200, ['60', '0']]);
});

test('refuses the sixty-first request of a credential in a minute, until the minute is over', async () => {
  const emulator = await startEmulator({ EMULATOR_RATELIMIT: 'on' });
  expect(headersOf(await emulator.admin.get(CHANNELS))).toEqual(['60', '59']);
  emulator.countRequests(59);
  expect(headersOf(await emulator.admin.get(CHANNELS).expect(200))).toEqual(['60', '0']);
  await emulator.advance(20);
  const refused = await emulator.admin.get(CHANNELS);
  const description = 'These are more than 60 requests in a minute. Wait 40 s.';
  expect([refused.status, refused.headers['retry-after'], headersOf(refused), refused.body]).toEqual([
    429,
    '40',
    ['60', '0'],
    errorBody('rate_limit_exceeded', description),
  ]);
  await emulator.advance(40);
  expect(headersOf(await emulator.admin.get(CHANNELS).expect(200))).toEqual(['60', '59']);
});

test('counts each credential, and those without one, apart', async () => {
  const emulator = await startEmulator({ EMULATOR_RATELIMIT: 'on' });
  const body = { name: 'other', permission: 'Viewer' };
  const { secret } = (await emulator.control.post('/credentials').send(body).expect(201)).body;
  await emulator.admin.get(CHANNELS).expect(200);
  emulator.countRequests(60);
  await emulator.admin.get(CHANNELS).expect(429);
  await emulator.as(secret).get(CHANNELS).expect(200);
  expect(headersOf(await emulator.unauthenticated.get(CHANNELS).expect(401))).toEqual(['60', '59']);
  expect(headersOf(await emulator.as('wrong').get(CHANNELS).expect(401))).toEqual(['60', '58']);
});

test('counts no call of the control port, the upstreams or delivery', async () => {
  const { api, control, unauthenticated } = await startEmulator();
  const delivered = ['/v2/media/nothing0', '/v2/uploads/nothing0/parts'].map((path) =>
    unauthenticated.get(path),
  );
  for (const call of [api.get('/config/v1/clients/demo'), control.get('/state'), ...delivered])
    expect(headersOf(await call)).toEqual([undefined, undefined]);
});

test('forgets callers that have not called for a minute', async () => {
  const emulator = await startEmulator();
  await emulator.admin.get(CHANNELS).expect(200);
  await emulator.unauthenticated.get(CHANNELS).expect(401);
  await emulator.advance(60);
  await emulator.admin.get(CHANNELS).expect(200);
  expect([...emulator.context.state.rateWindows.keys()]).toEqual(['credential seeded00']);
});

test('counts ten thousand callers a minute, and forgets the oldest for more', async () => {
  const emulator = await startEmulator();
  const { rateWindows } = emulator.context.state;
  const resetTime = new Date(emulator.context.clock.now().getTime() + 60_000);
  for (let caller = 0; caller < 10_000; caller += 1) {
    rateWindows.set(`address ${caller}`, { totalHits: 1, resetTime });
  }
  expect(headersOf(await emulator.admin.get(CHANNELS))).toEqual(['60', '59']);
  expect(headersOf(await emulator.admin.get(CHANNELS))).toEqual(['60', '58']);
  const [first, second] = ['address 0', 'address 1'].map((name) => rateWindows.has(name));
  expect([rateWindows.size, first, second]).toEqual([10_000, false, true]);
});

describe('the clock', () => {
  const START = new Date('2030-01-01T00:00:00.000Z');

  /** A clock over a stopped wall clock. */
  function standingClock() {
    let wall = START.getTime();
    const clock = createClock(() => new Date(wall));
    return { clock, passes: (ms: number) => (wall += ms) };
  }

  test('returns real time until it is advanced, and real time plus the advance after', () => {
    const { clock, passes } = standingClock();
    expect(clock.now()).toEqual(START);
    clock.advance(1000);
    passes(50);
    expect(clock.now().getTime() - START.getTime()).toBe(1050);
  });

  test('runs what falls due in due order, each seeing its own due time', () => {
    const { clock } = standingClock();
    const ran: [string, number][] = [];
    const note = (name: string) => () => ran.push([name, clock.now().getTime() - START.getTime()]);
    clock.after(300, note('third'));
    clock.after(100, note('first'));
    clock.after(100, note('second'));
    clock.after(501, note('later'));
    clock.advance(500);
    expect(ran).toEqual([
      ['first', 100],
      ['second', 100],
      ['third', 300],
    ]);
    expect(clock.now().getTime() - START.getTime()).toBe(500);
  });

  test('runs within one advance what is set up by what runs', () => {
    const { clock } = standingClock();
    let ran = 0;
    const tick = () => {
      ran += 1;
      clock.after(100, tick);
    };
    tick();
    clock.advance(350);
    expect(ran).toBe(4);
  });

  test('runs nothing that was cancelled, from outside or by what ran before it', () => {
    const { clock } = standingClock();
    const ran: string[] = [];
    const second = clock.after(20, () => ran.push('second'));
    const third = clock.after(30, () => ran.push('third'));
    clock.after(10, () => {
      ran.push('first');
      third.cancel();
    });
    second.cancel();
    clock.advance(100);
    expect(ran).toEqual(['first']);
  });

  test('goes on with the rest when one of them throws', () => {
    const { clock } = standingClock();
    const ran: string[] = [];
    clock.after(10, () => {
      throw new Error('broken');
    });
    clock.after(20, () => ran.push('next'));
    expect(() => clock.advance(100)).toThrow('broken');
    clock.advance(0);
    expect(ran).toEqual(['next']);
  });

  test('runs soon after a machine has slept what fell due meanwhile, although timers stood still', () => {
    jest.useFakeTimers();
    const { clock, passes } = standingClock();
    const ran: string[] = [];
    clock.after(12 * 60 * 60_000, () => ran.push('the longest duration of an event'));
    passes(13 * 60 * 60_000);
    jest.advanceTimersByTime(10_000);
    jest.useRealTimers();
    expect(ran).toEqual(['the longest duration of an event']);
  });

  test('runs on real time without any advance', async () => {
    const clock = createClock(() => new Date());
    const ran: string[] = [];
    await new Promise<void>((resolve) => {
      clock.after(15, () => {
        ran.push('second');
        resolve();
      });
      clock.after(5, () => ran.push('first'));
    });
    expect(ran).toEqual(['first', 'second']);
  });
});
