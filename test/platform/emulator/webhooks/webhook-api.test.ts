import { createHmac } from 'node:crypto';
import request from 'supertest';
import { createApp } from '../../../../src/http/app';
import { createLog } from '../../../../src/http/log';
import type { Permission } from '../../../../src/platform/emulator/auth';
import { createClock } from '../../../../src/platform/emulator/clock';
import { createState, seedState } from '../../../../src/platform/emulator/state';
import { mountWebhooks } from '../../../../src/platform/emulator/webhooks/webhook-api';
import { START, startWebhooks } from '../../../support/start-webhooks';
import { startWebhookReceiver } from '../../../support/webhook-receiver';

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
  seedState(state, { siteIds: ['demosite', 'othrsite'], apiSecret: 'admin-secret' }, START);
  const app = createApp({ log, newId: () => 'request', now: () => 0 }, (mounted) =>
    mountWebhooks(mounted, { state, clock, webhooks: service.webhooks }),
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

test.each<[string, object, object]>([
  ['without a description', { ...METADATA, description: undefined }, { ...METADATA, description: '' }],
  [
    'for every event and several sites',
    { ...METADATA, events: EVENTS.split(', '), site_ids: ['othrsite', 'demosite'] },
    { ...METADATA, events: EVENTS.split(', '), site_ids: ['othrsite', 'demosite'] },
  ],
])('creates a webhook %s', async (_case, metadata, kept) => {
  const { api } = start();
  const response = await api.post('/v2/webhooks').send({ metadata, upload: {}, relationships: {} });
  expect(response.status).toBe(201);
  expect(response.body).toEqual({ ...WEBHOOK, metadata: kept, secret: SECRET });
});

test('reads the body as JSON whatever it is declared as, and takes the bare secret', async () => {
  const { unauthenticated } = start();
  const response = await unauthenticated
    .post('/v2/webhooks')
    .set({ authorization: 'admin-secret', 'content-type': 'text/plain' })
    .send(JSON.stringify({ metadata: METADATA }));
  expect(response.status).toBe(201);
});

test.each<[string, unknown, string[]]>([
  ['no body', undefined, ['metadata: is missing']],
  ['an array', [], ['The body must be a JSON object with metadata.']],
  ['no metadata', {}, ['metadata: is missing']],
  [
    'empty metadata',
    { metadata: {} },
    [
      'metadata.name: is missing',
      'metadata.webhook_url: is missing',
      'metadata.events: is missing',
      'metadata.site_ids: is missing',
    ],
  ],
  [
    'fields of other types',
    {
      metadata: { name: 1, description: [], webhook_url: {}, events: 'channel_idle', site_ids: 'demosite' },
      upload: 1,
    },
    [
      'metadata.name: must be a string',
      'metadata.webhook_url: must be a string',
      'metadata.events: must be an array',
      'metadata.site_ids: must be an array',
      'metadata.description: must be a string',
      'upload: must be an object',
    ],
  ],
  [
    'empty fields',
    { metadata: { name: '', webhook_url: '', events: [], site_ids: [] } },
    [
      'metadata.name: is empty',
      'metadata.webhook_url: must be an absolute https address',
      'metadata.events: names no event',
      'metadata.site_ids: names no site',
    ],
  ],
  [
    'fields that are too long',
    {
      metadata: {
        ...METADATA,
        name: 'n'.repeat(201),
        description: 'd'.repeat(2001),
        webhook_url: `https://receiver.example/${'x'.repeat(2000)}`,
      },
    },
    [
      'metadata.name: is longer than 200 characters',
      'metadata.webhook_url: is longer than 2000 characters',
      'metadata.description: is longer than 2000 characters',
    ],
  ],
  [
    'repetitions, an unknown event and an http address',
    {
      metadata: {
        ...METADATA,
        webhook_url: 'http://receiver.example/',
        events: ['channel_idle', 'idle'],
        site_ids: ['demosite', 'demosite'],
      },
    },
    [
      'metadata.webhook_url: must be an https address; http is for loopback, or for every host with EMULATOR_ALLOW_HTTP_WEBHOOKS=true',
      `metadata.events.1: must be one of ${EVENTS}`,
      'metadata.site_ids: repeats a site',
    ],
  ],
  [
    'too many sites',
    { metadata: { ...METADATA, site_ids: Array.from({ length: 1001 }, (_none, index) => `site${index}`) } },
    ['metadata.site_ids: has more than 1000 entries'],
  ],
  [
    'an event twice',
    { metadata: { ...METADATA, events: ['channel_idle', 'channel_idle'] } },
    ['metadata.events: repeats an event'],
  ],
  [
    'unknown fields',
    { metadata: { ...METADATA, url: 'https://receiver.example/', secret: 'mine' } },
    [
      'metadata.url is not a field of this request. Fields of metadata: name, webhook_url, events, site_ids, description.',
      'metadata.secret is not a field of this request. Fields of metadata: name, webhook_url, events, site_ids, description.',
    ],
  ],
])('answers 400 to a create call with %s, and creates nothing', async (_case, body, descriptions) => {
  const { api, webhooks } = start();
  const response = await api.post('/v2/webhooks').send(body as object);
  expect(response.status).toBe(400);
  expect(response.body).toEqual(problems(...descriptions));
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

test('lists the newest first, filtered and page by page', async () => {
  const { api, create } = start();
  create('https://receiver.example/1', { name: 'first' });
  create('https://receiver.example/2', { name: 'second' });
  create('https://receiver.example/3', { name: 'third', events: ['media_deleted'] });
  const namesAt = async (query: string) => {
    const { body } = await api.get(`/v2/webhooks${query}`);
    return body.webhooks.map(({ metadata }: typeof WEBHOOK) => metadata.name);
  };
  expect(await namesAt('')).toEqual(['third', 'second', 'first']);
  expect(await namesAt('?sort=created:asc&page_length=2')).toEqual(['first', 'second']);
  expect(await namesAt('?page=2&page_length=2')).toEqual(['first']);
  expect(await namesAt('?q=events: media_deleted')).toEqual(['third']);
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

test('moves a webhook to other sites, an address and a description', async () => {
  const { api } = start();
  await api.post('/v2/webhooks').send({ metadata: METADATA });
  const metadata = { description: '', webhook_url: 'https://other.example/', site_ids: ['othrsite'] };
  const response = await api.patch('/v2/webhooks/hook0001').send({ metadata });
  expect(response.body).toEqual({ ...WEBHOOK, metadata: { ...METADATA, ...metadata } });
});

test.each<[number, string, object, object]>([
  [
    400,
    'several faults',
    { metadata: { name: 'renamed', webhook_url: 'ftp://receiver.example/', events: [] }, id: 'hook0002' },
    problems(
      'metadata.webhook_url: must be an https address',
      'metadata.events: names no event',
      'id is set by the platform, and a request cannot change it. Leave it out.',
    ),
  ],
  [400, 'no metadata', {}, problems('metadata: is missing')],
  [
    403,
    'a site out of reach',
    { metadata: { name: 'renamed', site_ids: ['demosite', 'nosuchst'] } },
    {
      errors: [
        {
          code: 'site_forbidden',
          description: 'metadata.site_ids.1: this credential does not reach a site with this id.',
        },
      ],
    },
  ],
])('answers %i to an update with %s, and changes nothing', async (status, _case, body, answer) => {
  const { api } = start();
  await api.post('/v2/webhooks').send({ metadata: METADATA });
  const response = await api.patch('/v2/webhooks/hook0001').send(body);
  expect([response.status, response.body]).toEqual([status, answer]);
  expect((await api.get('/v2/webhooks/hook0001')).body).toEqual(WEBHOOK);
});

test('deletes a webhook for good', async () => {
  const { api, webhooks } = start();
  await api.post('/v2/webhooks').send({ metadata: METADATA });
  const deleted = await api.delete('/v2/webhooks/hook0001/').set('content-type', 'application/json');
  expect([deleted.status, deleted.text]).toEqual([204, '']);
  const again = await api.delete('/v2/webhooks/hook0001');
  expect([again.status, again.body]).toEqual([404, NOT_FOUND]);
  expect(webhooks.list()).toEqual([]);
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

test('a Viewer reads webhooks and changes none', async () => {
  const { create, withCredential, webhooks } = start();
  const { id } = create('https://receiver.example/');
  const viewer = withCredential('Viewer', 'demosite');
  expect((await viewer.get(`/v2/webhooks/${id}`)).status).toBe(200);
  for (const refusal of [
    await viewer.post('/v2/webhooks').send({ metadata: METADATA }),
    await viewer.patch(`/v2/webhooks/${id}`).send({ metadata: { name: 'renamed' } }),
    await viewer.delete(`/v2/webhooks/${id}`),
  ]) {
    expect([refusal.status, refusal.body.errors[0].code]).toEqual([403, 'permission_insufficient']);
  }
  expect(webhooks.list()).toHaveLength(1);
});

test.each<['get' | 'post' | 'patch' | 'delete', string]>([
  ['get', '/v2/webhooks'],
  ['post', '/v2/webhooks'],
  ['get', '/v2/webhooks/hook0001'],
  ['patch', '/v2/webhooks/hook0001'],
  ['delete', '/v2/webhooks/hook0001'],
])('answers 401 to %s %s without a credential or with a wrong one', async (method, path) => {
  const { as, unauthenticated } = start();
  const [missing, wrong] = [await unauthenticated[method](path), await as('admin-secreT')[method](path)];
  expect([missing.status, missing.body.errors[0].code]).toEqual([401, 'credential_missing']);
  expect([wrong.status, wrong.body.errors[0].code]).toEqual([401, 'credential_refused']);
});

test.each<[string, string]>([
  ['/v2/webhooks', 'GET, POST'],
  ['/v2/webhooks/hook0001', 'GET, PATCH, DELETE'],
])('answers 405 to a PUT of %s', async (path, allow) => {
  const response = await start().api.put(path);
  expect([response.status, response.headers.allow]).toEqual([405, allow]);
});

test('the secret of the create call verifies what the receiver gets', async () => {
  const receiver = await startWebhookReceiver();
  const { api, notify } = start();
  const metadata = { ...METADATA, webhook_url: receiver.url, events: ['channel_created'] };
  await api.post('/v2/webhooks').send({ metadata });
  notify('channel1');
  const [call] = await receiver.until(1);
  const [header, payload, signature] = call?.headers.authorization?.replace('Bearer ', '').split('.') ?? [];
  expect(signature).toBe(createHmac('sha256', SECRET).update(`${header}.${payload}`).digest('base64url'));
  expect(Buffer.from(payload ?? '', 'base64url').toString()).toBe(call?.text);
});
