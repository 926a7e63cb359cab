import request from 'supertest';
import { html } from '../../../../src/http/html';
import { breakable } from '../../../../src/platform/emulator/dashboard/elements';
import { textOf } from '../../../support/read-page';
import { startEmulator } from '../../../support/start-emulator';

test('shows addresses as who asks reaches them, and how much there is', async () => {
  const { unauthenticated, port } = await startEmulator({
    EMULATOR_CONTROL_HOST: '0.0.0.0',
    EMULATOR_RTMP_PORT: '1936',
  });
  const { text } = await unauthenticated
    .get('/dashboard')
    .set({ host: `localhost:${port}` })
    .expect(200);
  const origin = `http://localhost:${port}`;
  for (const address of [
    `${origin}/v2`,
    `${origin}/v1`,
    `${origin}/embed/channel.js`,
    'rtmp://localhost:1936/live',
    'http://localhost:8081',
  ]) {
    expect(text.replaceAll('<wbr>', '')).toContain(`>${address}</code>`);
  }
  expect(textOf(text)).toContain(
    '0 channels 0 active now 0 events 0 media 0 playlists 0 players 0 webhooks 1 credential Begin with a channel',
  );
});

test('counts one thing as one', async () => {
  const { unauthenticated, context, siteId, createChannel, connect, admin } = await startEmulator();
  const channel = await createChannel({ reconnect_window: 0 });
  await connect(channel);
  context.clock.advance(1000);
  const [event] = context.state.events.all();
  const clip = `/v2/sites/${siteId}/channels/${channel.id}/events/${event?.id}/clip/`;
  await admin.put(`${clip}?trim_in_point=00:00:00&trim_out_point=00:00:01`).expect(200);
  const metadata = { name: 'n', description: '', webhook_url: 'http://127.0.0.1:9', site_ids: [siteId] };
  context.webhooks.create({ ...metadata, events: ['channel_idle'] });
  const text = textOf((await unauthenticated.get('/dashboard')).text);
  expect(text).toContain(
    '1 channel 1 active now 1 event 1 media 0 playlists 0 players 1 webhook 1 credential Addresses',
  );
});

test('breaks an address after its signs, and in a long piece', () => {
  const broken = (address: string) => html`${breakable(address)}`.toString();
  expect(broken('https://receiver.test/hooks/on-air/?site=demosite&key=k')).toBe(
    'https://<wbr>receiver.<wbr>test/<wbr>hooks/<wbr>on-<wbr>air/?<wbr>site=<wbr>demosite&#38;<wbr>key=<wbr>k',
  );
  expect(broken(`/${'k'.repeat(45)}`)).toBe(`/<wbr>${'k'.repeat(20)}<wbr>${'k'.repeat(20)}<wbr>kkkkk`);
});

test('shows the clients of the key provider with their addresses', async () => {
  const { unauthenticated, client, url } = await startEmulator({ EMULATOR_CLIENT_API_KEY: "it's-a-key" });
  const page = textOf((await unauthenticated.get('/dashboard/clients').expect(200)).text);
  expect(page).toContain(`${url}/config/v1/clients`);
  expect(page).toContain(`SPEKE v1 ${url}/keyprovider/speke1/demo`);
  expect(page).toContain(`SPEKE v2 ${url}/keyprovider/speke2/demo`);
  expect(page).toContain(`CPIX by GET ${url}/keyprovider/cpix/demo/{contentId}`);
  expect(page).toContain('Widevine https://widevine-license.example.com/proxy');
  expect(page).toContain(`curl -sS ${url}/keyprovider/cenc/${client.name}/my-content`);
  expect(page).toContain(`-H 'API-KEY: it'\\''s-a-key'`);
});

test.each([
  [404, 'GET', '/dashboard/nothing', 'The dashboard has no such page.'],
  [404, 'GET', '/dashboard/channels/nothing1', 'There is no channel with this id.'],
  [404, 'POST', '/dashboard/channels/nothing1/events/nothing1/publish', 'There is no channel with this id.'],
  [404, 'POST', '/dashboard/credentials/nothing1/replace', 'There is no credential with this id.'],
  [405, 'POST', '/dashboard/events', 'This path accepts GET, not POST.'],
  [400, 'GET', '/dashboard/channels/%ff', 'percent-encoding'],
] as const)('answers %d to %s %s as a page', async (status, method, path, sentence) => {
  const { unauthenticated } = await startEmulator();
  const answer = await (method === 'GET' ? unauthenticated.get(path) : unauthenticated.post(path));
  expect(answer.status).toBe(status);
  expect(answer.type).toBe('text/html');
  expect(textOf(answer.text)).toContain(sentence);
});

test('answers 413 to a form that is too large', async () => {
  const { unauthenticated } = await startEmulator();
  const { text } = await unauthenticated
    .post('/dashboard/channels')
    .type('form')
    .send({ title: 'x'.repeat(2 ** 20) })
    .expect(413);
  expect(textOf(text)).toContain('The body is larger than this route accepts');
});

test('answers 500 with a page that says nothing of the cause, which goes to the log', async () => {
  const { unauthenticated, context, logOf } = await startEmulator();
  context.state.channels.all = () => {
    throw new TypeError('the cause');
  };
  const { text } = await unauthenticated.get('/dashboard/channels').expect(500);
  expect(textOf(text)).toContain('The dashboard failed');
  expect(text).not.toContain('the cause');
  expect(await logOf(2)).toContain('the cause');
});

test('says nothing of its own making when the address holds an unknown word', async () => {
  const { unauthenticated } = await startEmulator();
  const plain = await unauthenticated.get('/dashboard/channels');
  for (const done of ['unknown', '__proto__', '<b>']) {
    expect((await unauthenticated.get('/dashboard/channels').query({ done })).text).toBe(plain.text);
  }
});

test('serves the style sheet and the scripts with their types', async () => {
  const { unauthenticated } = await startEmulator();
  await unauthenticated
    .get('/dashboard/style.css')
    .expect(200)
    .expect('content-type', 'text/css; charset=utf-8');
  for (const name of ['script', 'order', 'upload', 'stream-tester']) {
    await unauthenticated
      .get(`/dashboard/${name}.js`)
      .expect(200)
      .expect('content-type', /^text\/javascript/);
  }
});

test('writes no secret and no form into the log', async () => {
  const { unauthenticated, context, logOf } = await startEmulator();
  await unauthenticated
    .post('/dashboard/credentials')
    .type('form')
    .send({ name: 'the-key-name', permission: 'Viewer', site_ids: 'demosite' });
  await unauthenticated.get('/dashboard/credentials');
  const log = await logOf(2);
  for (const { secret } of context.state.credentials.all()) expect(log).not.toContain(secret);
  expect(log).not.toContain('the-key-name');
});

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
