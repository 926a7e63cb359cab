import request from 'supertest';
import { createApp } from '../../../../src/http/app';
import { createLog } from '../../../../src/http/log';
import type { Permission } from '../../../../src/platform/emulator/auth';
import { createClock } from '../../../../src/platform/emulator/clock';
import { mountResource } from '../../../../src/platform/emulator/resources/resource-calls';
import { webhookCalls } from '../../../../src/platform/emulator/resources/webhooks';
import { createState, seedState } from '../../../../src/platform/emulator/state';
import { START, startWebhooks } from '../../../support/start-webhooks';

const EVENTS =
  'channel_created, channel_active, channel_idle, conversions_complete, media_available, media_created, media_deleted, media_reuploaded, media_updated, thumbnail_created, thumbnail_deleted, track_created, track_deleted';
const SECRET = 'secret-2xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx';
const METADATA = {
  name: 'to the newsroom',
  description: 'tells of channels',
  webhook_url: 'https://receiver.example/hook',
  events: ['channel_active', 'channel_idle'],
  site_ids: ['demosite'],
};
const WEBHOOK = {
  id: 'hook0001',
  type: 'webhook',
  created: '2030-01-01T00:00:00.000000+00:00',
  last_modified: '2030-01-01T00:00:00.000000+00:00',
  metadata: METADATA,
  relationships: {},
  schema: null,
};
const NOT_FOUND = {
  errors: [{ code: 'not_found', description: 'This account has no webhook with this id.' }],
};

const log = createLog('silent', process.stdout, () => START);

/** The routes alone, with an Admin of `demosite` and `othrsite` and what else a test adds. */
function start() {
  const clock = createClock(() => START);
  const service = startWebhooks({}, clock);
  const state = createState();
  seedState(
    state,
    { channel: undefined, siteIds: ['demosite', 'othrsite'], apiSecret: 'admin-secret' },
    START,
  );
  const app = createApp({ log, newId: () => 'request', now: () => 0 }, (mounted) =>
    mountResource(mounted, { state, clock }, webhookCalls({ webhooks: service.webhooks, clock })),
  );
  const as = (secret: string) => request.agent(app).set('authorization', `Bearer ${secret}`);
  let credentials = 0;
  const withCredential = (permission: Permission, ...siteIds: string[]) => {
    credentials += 1;
    const secret = `secret-of-${permission}-${credentials}`;
    state.credentials.add({
      id: `cred000${credentials}`,
      name: permission,
      permission,
      siteIds,
      secret,
      created: START,
    });
    return as(secret);
  };
  return { ...service, api: as('admin-secret'), unauthenticated: request.agent(app), as, withCredential };
}

const problems = (...descriptions: string[]) => ({
  errors: descriptions.map((description) => ({ code: 'invalid_body', description })),
});

test.each(['/v2/webhooks', '/v2/webhooks/'])('creates a webhook at %s and shows its secret', async (path) => {
  const { api } = start();
  const response = await api.post(path).send({ metadata: METADATA });
  expect(response.status).toBe(201);
  expect(response.headers['cache-control']).toBe('no-store');
  expect(response.body).toEqual({ ...WEBHOOK, secret: SECRET });
});

/** What is sent instead of good metadata, and what is wrong with it, one a line; "x*201" is so many letters. */
const WRONG = `
{"name":"","webhook_url":"","events":[],"site_ids":[]} → metadata.name: is empty → metadata.webhook_url: must be an absolute https address → metadata.events: names no event → metadata.site_ids: names no site
{"name":"x*201","description":"x*2001"} → metadata.name: is longer than 200 characters → metadata.description: is longer than 2000 characters
{"webhook_url":"http://receiver.example/"} → metadata.webhook_url: must be an https address; http is for loopback, or for every host with EMULATOR_ALLOW_HTTP_WEBHOOKS=true
{"events":["channel_idle","idle"],"site_ids":["demosite","demosite"]} → metadata.events.1: must be one of ${EVENTS} → metadata.site_ids: repeats a site
{"site_ids":SITES} → metadata.site_ids: has more than 1000 entries
{"events":["channel_idle","channel_idle"]} → metadata.events: repeats an event
`
  .replaceAll(/x\*(\d+)/g, (_all, count) => 'x'.repeat(Number(count)))
  .replace('SITES', JSON.stringify(Array.from({ length: 1001 }, (_none, index) => `site${index}`)));

test.each(
  WRONG.trim()
    .split('\n')
    .map((row) => row.split(' → ')),
)('answers 400 to the create call %#, and creates nothing', async (given = '', ...descriptions) => {
  const { api, webhooks } = start();
  const metadata = { ...METADATA, ...JSON.parse(given) };
  const { status, body } = await api.post('/v2/webhooks').send({ metadata });
  expect([status, body]).toEqual([400, problems(...descriptions)]);
  expect(webhooks.list()).toEqual([]);
});

test('answers 403 that names each site out of reach, whether or not it exists', async () => {
  const { withCredential, webhooks } = start();
  const response = await withCredential('Admin', 'demosite')
    .post('/v2/webhooks')
    .send({ metadata: { ...METADATA, site_ids: ['othrsite', 'demosite', 'nosuchst'] } });
  expect(response.status).toBe(403);
  expect(response.body).toEqual({
    errors: [0, 2].map((place) => ({
      code: 'site_forbidden',
      description: `metadata.site_ids.${place}: this credential does not reach a site with this id.`,
    })),
  });
  expect(webhooks.list()).toEqual([]);
});

test('shows a webhook, alone and in a list, without its secret', async () => {
  const { api } = start();
  await api.post('/v2/webhooks').send({ metadata: METADATA });
  const [one, all] = [await api.get('/v2/webhooks/hook0001/'), await api.get('/v2/webhooks/?q=&sort=')];
  expect([one.status, one.body]).toEqual([200, WEBHOOK]);
  expect([all.status, all.body]).toEqual([200, { page: 1, page_length: 10, total: 1, webhooks: [WEBHOOK] }]);
});

test('updates what the body names and keeps the rest, the secret too', async () => {
  const { api, clock, webhooks } = start();
  await api.post('/v2/webhooks').send({ metadata: METADATA });
  clock.advance(1500);
  const metadata = { name: 'renamed', events: ['media_available'], description: null };
  const response = await api.patch('/v2/webhooks/hook0001').send({ metadata });
  const updated = {
    ...WEBHOOK,
    last_modified: '2030-01-01T00:00:01.500000+00:00',
    metadata: { ...METADATA, name: 'renamed', events: ['media_available'] },
  };
  expect([response.status, response.body]).toEqual([200, updated]);
  expect((await api.get('/v2/webhooks/hook0001')).body).toEqual(updated);
  expect(webhooks.find('hook0001')?.secret).toBe(SECRET);
});

test('answers 403 to an update with a site out of reach, and changes nothing', async () => {
  const { api } = start();
  await api.post('/v2/webhooks').send({ metadata: METADATA });
  const metadata = { name: 'renamed', site_ids: ['demosite', 'nosuchst'] };
  const { status, body } = await api.patch('/v2/webhooks/hook0001').send({ metadata });
  expect([status, body.errors[0].code]).toEqual([403, 'site_forbidden']);
  expect((await api.get('/v2/webhooks/hook0001')).body).toEqual(WEBHOOK);
});

test.each(['get', 'patch', 'delete'] as const)(
  'answers a %s of a webhook as if it were not there when one of its sites is out of reach',
  async (method) => {
    const { create, withCredential, webhooks } = start();
    const { id } = create('https://receiver.example/', { site_ids: ['demosite', 'othrsite'] });
    const foreign = withCredential('Admin', 'demosite');
    for (const unreachable of [id, 'nosuchid']) {
      const response = await foreign[method](`/v2/webhooks/${unreachable}`);
      expect([response.status, response.body]).toEqual([404, NOT_FOUND]);
    }
    expect((await foreign.get('/v2/webhooks')).body.total).toBe(0);
    expect(webhooks.list()).toHaveLength(1);
  },
);
