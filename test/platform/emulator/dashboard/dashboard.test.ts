import { html } from '../../../../src/http/html';
import { breakable } from '../../../../src/platform/emulator/dashboard/elements';
import { onceForAll } from '../../../support/after-test';
import { complaintsOf, rowsOf, textOf } from '../../../support/read-page';
import { startEmulator } from '../../../support/start-emulator';
import { startLibraryPages } from '../../../support/start-library-pages';

const shared = onceForAll(() => startEmulator());

test('shows addresses as who asks reaches them, and how much there is', async () => {
  const env = { EMULATOR_CONTROL_HOST: '0.0.0.0', EMULATOR_RTMP_PORT: '1936' };
  const { unauthenticated, port } = await startEmulator(env);
  const host = `localhost:${port}`;
  const { text } = await unauthenticated.get('/dashboard').set({ host }).expect(200);
  const origin = `http://${host}`;
  const own = ['/v2', '/v1', '/embed/channel.js'].map((path) => `${origin}${path}`);
  for (const address of [...own, 'rtmp://localhost:1936/live', 'http://localhost:8081'])
    expect(text.replaceAll('<wbr>', '')).toContain(`>${address}</code>`);
  expect(textOf(text)).toContain(
    '0 channels 0 active now 0 events 0 media 0 playlists 0 players 0 webhooks 1 credential Begin with a channel',
  );
});

test('shows the clients of the key provider with their addresses', async () => {
  const { unauthenticated, client, url } = await startEmulator({ EMULATOR_CLIENT_API_KEY: "it's-a-key" });
  const page = textOf((await unauthenticated.get('/dashboard/clients').expect(200)).text);
  expect(page).toContain(`${url}/config/v1/clients`);
  expect(page).toContain(`SPEKE v1 ${url}/keyprovider/speke1/demo`);
  expect(page).toContain(`SPEKE v2 ${url}/keyprovider/speke2/demo`);
  expect(page).toContain(`CPIX by GET ${url}/keyprovider/cpix/demo/{contentId}`);
  expect(page).toContain(`CPIX API of Studio DRM ${url}/v1/cpix/demo/{contentId}`);
  expect(page).toContain('Widevine https://widevine-license.example.com/proxy');
  expect(page).toContain(`curl -sS ${url}/keyprovider/cenc/${client.name}/my-content`);
  expect(page).toContain(`-H 'API-KEY: it'\\''s-a-key'`);
});

test.each([
  [404, 'GET', '/dashboard/nothing', 'The dashboard has no such page.'],
  [404, 'GET', '/dashboard/channels/nothing1', 'There is no channel with this id.'],
  [404, 'POST', '/dashboard/channels/nothing1/events/nothing1/publish', 'There is no channel with this id.'],
  [404, 'POST', '/dashboard/credentials/nothing1/replace', 'There is no credential with this id.'],
  [405, 'POST', '/dashboard/events', 'This path accepts GET, HEAD, not POST.'],
  [400, 'GET', '/dashboard/channels/%ff', 'percent-encoding'],
] as const)('answers %d to %s %s as a page', async (status, method, path, sentence) => {
  const { unauthenticated } = await shared();
  const answer = await (method === 'GET' ? unauthenticated.get(path) : unauthenticated.post(path));
  expect(answer.status).toBe(status);
  expect(answer.type).toBe('text/html');
  expect(textOf(answer.text)).toContain(sentence);
});

test('answers 413 to a form that is too large', async () => {
  const { post } = await startLibraryPages();
  const { status, text } = await post('channels', { title: 'x'.repeat(2 ** 20) });
  expect(status).toBe(413);
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
  const { unauthenticated } = await shared();
  const plain = await unauthenticated.get('/dashboard/channels');
  for (const done of ['unknown', '__proto__', '<b>']) {
    expect((await unauthenticated.get('/dashboard/channels').query({ done })).text).toBe(plain.text);
  }
});

test('writes no secret and no form into the log', async () => {
  const { post, page, context, logOf } = await startLibraryPages();
  await post('credentials', { name: 'the-key-name', permission: 'Viewer', site_ids: 'demosite' });
  await page('credentials');
  const log = await logOf(2);
  for (const { secret } of context.state.credentials.all()) expect(log).not.toContain(secret);
  expect(log).not.toContain('the-key-name');
});

const FORM = 'title=News&mode=auto&dvr=on&site=demosite';

test('sends the headers that keep a page to itself', async () => {
  const { unauthenticated } = await shared();
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

const HERE = 'http://localhost:8080';
const senders: [does: string, status: number, headers: Record<string, string>][] = [
  ['takes a form of its own', 303, { 'sec-fetch-site': 'same-origin' }],
  ['takes a form of its own over plain HTTP', 303, { origin: HERE }],
  ['takes a form behind a proxy that ends TLS', 303, { origin: 'https://localhost:8080' }],
  ['takes a form of a program that is no browser', 303, {}],
  ['refuses a form of another site', 403, { 'sec-fetch-site': 'cross-site' }],
  ['refuses a form of another port of the machine', 403, { 'sec-fetch-site': 'same-site' }],
  ['refuses a form of another origin', 403, { origin: 'http://evil.example' }],
  ['refuses a form of another port by its origin', 403, { origin: 'http://localhost:8081' }],
  ['refuses a form of an origin that hides', 403, { origin: 'null' }],
  ['believes the browser before the origin', 403, { 'sec-fetch-site': 'none', origin: HERE }],
];

test.each(senders)('%s: %d', async (_does, status, headers) => {
  const { unauthenticated, context } = await shared();
  const sender = { host: 'localhost:8080', ...headers };
  const before = context.state.channels.all().length;
  await unauthenticated.post('/dashboard/channels').set(sender).send(FORM).expect(status);
  expect(context.state.channels.all()).toHaveLength(before + (status === 303 ? 1 : 0));
});

const NAMED = 'Set EMULATOR_HOST for another name.';
const EVERYWHERE = 'The dashboard answers to addresses and private names, such as localhost or emulator.';
const OWN = ['localhost:8080', '127.0.0.1:8080', '[::1]:8080', 'emulator:8080'];

test.each([
  ['127.0.0.1', OWN, ['evil.example', 'evil.example#@localhost', 'localhost:port', ''], NAMED],
  ['box.internal', ['box.internal:8080'], ['evil.example'], NAMED],
  ['fd00::1', ['[fd00::1]:8080'], [], NAMED],
  ['0.0.0.0', ['emulator:8080'], ['evil.example:8080'], EVERYWHERE],
  ['::', ['host.docker.internal', '[fd00::1]:8080'], ['evil.example'], EVERYWHERE],
])('that listens on %s answers to the hosts %j, and not to %j', async (own, taken, refused, sentence) => {
  const { unauthenticated } = await startEmulator({ EMULATOR_HOST: own });
  for (const host of taken) await unauthenticated.get('/dashboard').set({ host }).expect(200);
  for (const host of refused) {
    const { text } = await unauthenticated.get('/dashboard').set({ host }).expect(403);
    expect([host, text]).toEqual([host, expect.stringContaining(sentence)]);
  }
});

const used = onceForAll(async () => {
  const emulator = await startLibraryPages({ EMULATOR_SITE_ID: 'siteAAAA,siteBBBB' });
  const { usage } = emulator.context.state;
  const on = (day: string) => new Date(`${day}T12:00:00Z`);
  usage.count('siteAAAA', on('2029-12-30'), 'deliveries', 3);
  usage.count('siteBBBB', on('2029-12-30'), 'deliveries', 4);
  usage.count('siteAAAA', on('2030-01-01'), 'delivered_bytes', 1_234_567);
  usage.count('siteAAAA', on('2030-01-01'), 'live_seconds', 3723);
  return emulator;
});

test('shows totals, a bar for each day of all sites, and a table of the days on which something was used', async () => {
  const { page } = await used();
  const text = await page('usage?start_date=2029-12-29&end_date=2030-01-01');
  expect(textOf(text)).toContain('0 Media created 0 B Uploaded 7 Deliveries 1.2 MB Delivered 1:02:03 Live');
  const bars = ['2029-12-29: 0', '2029-12-30: 7', '2029-12-31: 0', '2030-01-01: 0'];
  expect([...text.matchAll(/<title>([^<]*)<\/title>/g)].map(([, title]) => title).slice(1)).toEqual(bars);
  expect(text).toContain(
    'aria-label="Deliveries from 2029-12-29 to 2030-01-01. The most on one day: 7, on 2029-12-30."',
  );
  expect(rowsOf(text)).toEqual([
    ['Total', '0', '0 B', '7', '1.2 MB', '1:02:03'],
    ['2030-01-01', '0', '0 B', '0', '1.2 MB', '1:02:03'],
    ['2029-12-30', '0', '0 B', '7', '0 B', '0:00'],
  ]);
});

test('shows thirty days up to today, all sites and deliveries, unless others are asked for', async () => {
  const { page } = await used();
  const text = await page('usage');
  expect(text).toContain('name="start_date" value="2029-12-03"');
  expect(text).toContain('name="end_date" value="2030-01-01"');
  expect(text).toMatch(/aria-current="true">30 days/);
  const site = await page('usage?site=siteAAAA&show=live_seconds');
  expect(textOf(site)).toContain('3 Deliveries');
  expect(textOf(site)).toContain('Live, day by day');
  expect(site).toContain('<title>2030-01-01: 1:02:03</title>');
  const unused = await page('usage?end_date=2029-12-29');
  expect(textOf(unused)).toContain('Nothing was used in these days.');
  expect(unused).not.toContain('<svg');
});

test.each([
  ['start_date=2030-01-02&end_date=2030-01-01', 'End date must not be before start_date.'],
  ['start_date=2020-01-01&end_date=2030-01-01', 'Start date is more than 366 days before.'],
  ['start_date=soon', 'Start date must be a day such as 2030-01-31.'],
])('says what is wrong with %s, and shows the latest days', async (query, sentence) => {
  const { unauthenticated } = await used();
  const { text } = await unauthenticated.get(`/dashboard/usage?${query}`).expect(400);
  expect(complaintsOf(text)).toEqual([sentence]);
  expect(text).toContain('name="end_date" value="2030-01-01"');
});

test.each([
  ['deliveries', 1, '2', '1'],
  ['deliveries', 22, '30', '15'],
  ['deliveries', 101, '200', '100'],
  ['live_seconds', 3700, '2:00:00', '1:00:00'],
  ['live_seconds', 90_000, '27:46:40', '13:53:20'],
] as const)('ends the scale of %s up to %d at %s', async (measure, value, top, half) => {
  const { page, context, siteId } = await startLibraryPages();
  context.state.usage.count(siteId, new Date('2030-01-01T12:00:00Z'), measure, value);
  const text = await page(`usage?show=${measure}`);
  expect(text).toContain(`<span>${top}</span><span>${half}</span><span>0</span>`);
});

test('lets a long text break between its characters, not within one', () => {
  expect(html`${breakable(`a${'😀'.repeat(16)}`)}`.toString()).toBe(`a${'😀'.repeat(15)}<wbr>😀`);
});
