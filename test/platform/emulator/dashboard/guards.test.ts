import request from 'supertest';
import { startEmulator } from '../../../support/start-emulator';

const FORM = 'title=News&mode=auto&dvr=on&site=demosite';

test('sends the headers that keep a page to itself', async () => {
  const { unauthenticated } = await startEmulator();
  const { headers } = await unauthenticated.get('/dashboard').expect(200);
  expect(headers).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'content-security-policy':
      "default-src 'none';base-uri 'none';connect-src 'self';form-action 'self';frame-ancestors 'none';img-src 'self' data:;script-src 'self';style-src 'self'",
    'referrer-policy': 'same-origin',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
  });
});

test('leaves the headers of the API as they are', async () => {
  const { unauthenticated } = await startEmulator();
  const { headers } = await unauthenticated.get('/v2/webhooks').expect(401);
  expect(headers['content-security-policy']).toBe("default-src 'none';frame-ancestors 'none'");
});

const senders: [does: string, status: number, headers: Record<string, string>][] = [
  ['takes a form of its own', 303, { 'sec-fetch-site': 'same-origin' }],
  ['takes a form of its own over plain HTTP', 303, { origin: 'http://localhost:8080' }],
  ['takes a form behind a proxy that ends TLS', 303, { origin: 'https://localhost:8080' }],
  ['takes a form of a program that is no browser', 303, {}],
  ['refuses a form of another site', 403, { 'sec-fetch-site': 'cross-site' }],
  ['refuses a form of another port of the machine', 403, { 'sec-fetch-site': 'same-site' }],
  ['refuses a form that nobody sent', 403, { 'sec-fetch-site': 'none' }],
  ['refuses a form of another origin', 403, { origin: 'http://evil.example' }],
  ['refuses a form of another port by its origin', 403, { origin: 'http://localhost:8081' }],
  ['refuses a form of an origin that hides', 403, { origin: 'null' }],
  [
    'believes the browser before the origin',
    403,
    { 'sec-fetch-site': 'cross-site', origin: 'http://localhost:8080' },
  ],
];

test.each(senders)('%s: %d', async (_does, status, headers) => {
  const { unauthenticated, context } = await startEmulator();
  const answer = await unauthenticated
    .post('/dashboard/channels')
    .set({ host: 'localhost:8080', ...headers })
    .send(FORM);
  expect(answer.status).toBe(status);
  expect(context.state.channels.all()).toHaveLength(status === 303 ? 1 : 0);
});

const LOOPBACK = { EMULATOR_HOST: '127.0.0.1' };
const hosts: [status: number, host: string, env: Record<string, string>][] = [
  [200, 'localhost:8080', LOOPBACK],
  [200, 'LocalHost', LOOPBACK],
  [200, '127.0.0.1:8080', LOOPBACK],
  [200, '[::1]:8080', LOOPBACK],
  [200, 'emulator:8080', LOOPBACK],
  [403, 'evil.example', LOOPBACK],
  [403, 'localhost.evil.example:8080', LOOPBACK],
  [403, 'evil.example#@localhost', LOOPBACK],
  [403, 'user@localhost', LOOPBACK],
  [403, 'localhost:port', LOOPBACK],
  [200, 'box.internal:8080', { EMULATOR_HOST: 'box.internal' }],
  [403, 'evil.example', { EMULATOR_HOST: 'box.internal' }],
  [200, '[fd00::1]:8080', { EMULATOR_HOST: 'fd00::1' }],
  [200, 'emulator:8080', { EMULATOR_HOST: '0.0.0.0' }],
  [200, '192.168.1.5:8080', { EMULATOR_HOST: '0.0.0.0' }],
  [200, 'host.docker.internal', { EMULATOR_HOST: '::' }],
  [200, '[fd00::1]:8080', { EMULATOR_HOST: '::' }],
  [403, 'evil.example:8080', { EMULATOR_HOST: '0.0.0.0' }],
  [403, 'evil.example', { EMULATOR_HOST: '::' }],
];

test.each(hosts)('answers %d to the host %s with %j', async (status, host, env) => {
  const { unauthenticated } = await startEmulator(env);
  await unauthenticated.get('/dashboard').set({ host }).expect(status);
});

test('says how to call a dashboard that was called by another name', async () => {
  const { unauthenticated } = await startEmulator();
  const { text } = await unauthenticated.get('/dashboard/channels').set({ host: 'evil.example' }).expect(403);
  expect(text).toContain('The dashboard answers to localhost, 127.0.0.1, [::1], emulator.');
});

test('says how to call a dashboard that listens on every address', async () => {
  const { unauthenticated } = await startEmulator({ EMULATOR_HOST: '0.0.0.0' });
  const { text } = await unauthenticated.get('/dashboard').set({ host: 'evil.example' }).expect(403);
  expect(text).toContain(
    'The dashboard answers to addresses and private names, such as localhost or emulator. Call it by one of them.',
  );
});

test('refuses a request that names no host', async () => {
  const { url } = await startEmulator();
  await request(url).get('/dashboard').set({ host: '' }).expect(403);
});
