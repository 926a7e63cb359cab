import { startEmulator, type TestEmulator } from '../../support/start-emulator';

const PATH = '/v2/sites/demosite/channels/';

const headersOf = ({ headers }: { headers: Record<string, string> }) => [
  headers['jw-request-limit'],
  headers['jw-request-remaining'],
];

async function callTimes({ admin }: TestEmulator, times: number): Promise<void> {
  for (let call = 0; call < times; call += 1) await admin.get(PATH).expect(200);
}

test('tells the limit and what remains of it on every management answer, and refuses nobody by default', async () => {
  const emulator = await startEmulator();
  expect(headersOf(await emulator.admin.get(PATH))).toEqual(['60', '59']);
  expect(headersOf(await emulator.admin.get(`${PATH}nothing0`))).toEqual(['60', '58']);
  await callTimes(emulator, 60);
  const over = await emulator.admin.get(PATH);
  expect([over.status, headersOf(over)]).toEqual([200, ['60', '0']]);
});

test('refuses the sixty-first request of a credential in a minute, until the minute is over', async () => {
  const emulator = await startEmulator({ EMULATOR_RATELIMIT: 'on' });
  await callTimes(emulator, 60);
  await emulator.advance(20);
  const refused = await emulator.admin.get(PATH);
  const description = 'These are more than 60 requests in a minute. Wait 40 s.';
  expect([refused.status, refused.headers['retry-after'], headersOf(refused), refused.body]).toEqual([
    429,
    '40',
    ['60', '0'],
    { errors: [{ code: 'rate_limit_exceeded', description }] },
  ]);
  await emulator.advance(40);
  expect(headersOf(await emulator.admin.get(PATH).expect(200))).toEqual(['60', '59']);
});

test('counts each credential, and those without one, apart', async () => {
  const emulator = await startEmulator({ EMULATOR_RATELIMIT: 'on' });
  const body = { name: 'other', permission: 'Viewer' };
  const { secret } = (await emulator.control.post('/credentials').send(body).expect(201)).body;
  await callTimes(emulator, 60);
  await emulator.admin.get(PATH).expect(429);
  await emulator.as(secret).get(PATH).expect(200);
  expect(headersOf(await emulator.unauthenticated.get(PATH).expect(401))).toEqual(['60', '59']);
  expect(headersOf(await emulator.as('wrong').get(PATH).expect(401))).toEqual(['60', '58']);
});

test('counts no call of the control port, the upstreams or delivery', async () => {
  const { api, control, unauthenticated } = await startEmulator();
  for (const call of [
    api.get('/config/v1/clients/demo'),
    control.get('/state'),
    unauthenticated.get('/v2/media/nothing0'),
  ]) {
    expect(headersOf(await call)).toEqual([undefined, undefined]);
  }
});

test('starts to count anew after a reset, also of an advanced clock', async () => {
  const emulator = await startEmulator({ EMULATOR_RATELIMIT: 'on' });
  await emulator.advance(3600);
  await callTimes(emulator, 60);
  await emulator.control.post('/reset').expect(204);
  expect(headersOf(await emulator.admin.get(PATH).expect(200))).toEqual(['60', '59']);
});

test('forgets who has not called for a minute', async () => {
  const emulator = await startEmulator();
  await emulator.admin.get(PATH).expect(200);
  await emulator.unauthenticated.get(PATH).expect(401);
  await emulator.advance(60);
  await emulator.admin.get(PATH).expect(200);
  expect([...emulator.context.state.rateWindows.keys()]).toEqual(['credential seeded00']);
});

test('counts ten thousand callers a minute, and forgets the oldest for more', async () => {
  const emulator = await startEmulator();
  const { rateWindows } = emulator.context.state;
  const resetTime = new Date(emulator.context.clock.now().getTime() + 60_000);
  for (let caller = 0; caller < 10_000; caller += 1) {
    rateWindows.set(`address ${caller}`, { totalHits: 1, resetTime });
  }
  expect(headersOf(await emulator.admin.get(PATH))).toEqual(['60', '59']);
  expect(headersOf(await emulator.admin.get(PATH))).toEqual(['60', '58']);
  expect([rateWindows.size, rateWindows.has('address 0'), rateWindows.has('address 1')]).toEqual([
    10_000,
    false,
    true,
  ]);
});
