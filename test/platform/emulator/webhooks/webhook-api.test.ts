import { onceForAll } from '../../../support/after-test';
import { errorBody, invalidBody } from '../../../support/error-body';
import { answered } from '../../../support/resource-bodies';
import { startEmulator } from '../../../support/start-emulator';
import { tableRows } from '../../../support/table-rows';

const EVENTS =
  'channel_created, channel_active, channel_idle, conversions_complete, media_available, media_created, media_deleted, media_reuploaded, media_updated, thumbnail_created, thumbnail_deleted, track_created, track_deleted';
const METADATA = {
  name: 'to the newsroom',
  description: 'reports channels',
  webhook_url: 'https://receiver.example/hook',
  events: ['channel_active', 'channel_idle'],
  site_ids: ['demosite'],
};
const WEBHOOK = { ...answered('webhook', 'id000002'), metadata: METADATA };
const NOT_FOUND = errorBody('not_found', 'This account has no webhook with this id.');

/** An emulator with an Admin of `demosite` and `othrsite`, and another one of `demosite` alone. */
async function start() {
  const emulator = await startEmulator({ EMULATOR_SITE_ID: 'demosite,othrsite' });
  const create = async (metadata: object = {}) =>
    (await emulator.admin.post('/v2/webhooks').send({ metadata: { ...METADATA, ...metadata } })).body;
  const wanted = { name: 'foreign', permission: 'Admin', site_ids: ['demosite'] };
  const { body } = await emulator.control.post('/credentials').send(wanted).expect(201);
  return {
    ...emulator,
    create,
    foreign: emulator.as(body.secret),
    webhooks: emulator.context.state.webhooks,
  };
}

const shared = onceForAll(start);

test('shows the secret of a webhook when it is created, and never again', async () => {
  const { admin, webhooks } = await start();
  const response = await admin.post('/v2/webhooks').send({ metadata: METADATA });
  const [webhook] = webhooks.all();
  expect([response.status, response.body]).toEqual([201, { ...WEBHOOK, secret: webhook?.secret }]);
  expect(response.headers['cache-control']).toBe('no-store');
  await admin.get('/v2/webhooks/id000002/').expect(200, WEBHOOK);
  const page = { page: 1, page_length: 10, total: 1, webhooks: [WEBHOOK] };
  await admin.get('/v2/webhooks/?q=&sort=').expect(200, page);
});

/** Wrong metadata and its faults, one a line; "x*201" is so many letters. */
const WRONG = `
{"name":"","webhook_url":"","events":[],"site_ids":[]} → metadata.name: is empty → metadata.webhook_url: must be an absolute https address → metadata.events: names no event → metadata.site_ids: names no site
{"name":"x*201","description":"x*2001"} → metadata.name: is longer than 200 characters → metadata.description: is longer than 2000 characters
{"webhook_url":"http://receiver.example/"} → metadata.webhook_url: must be an https address; http is for loopback, or for every host with EMULATOR_ALLOW_HTTP_WEBHOOKS=true
{"events":["channel_idle","idle"],"site_ids":["demosite","demosite"]} → metadata.events.1: must be one of ${EVENTS} → metadata.site_ids: repeats a site
{"events":["channel_idle","channel_idle"]} → metadata.events: repeats an event
`.replaceAll(/x\*(\d+)/g, (_all, count) => 'x'.repeat(Number(count)));

test.each(tableRows(WRONG))(
  'answers 400 to the create call %#, and creates nothing',
  async (given = '', ...descriptions) => {
    const { admin, webhooks } = await shared();
    const metadata = { ...METADATA, ...JSON.parse(given) };
    const refused = invalidBody(...descriptions);
    await admin.post('/v2/webhooks').send({ metadata }).expect(400, refused);
    expect(webhooks.all()).toEqual([]);
  },
);

test('answers 403 that names each site out of reach, whether or not it exists', async () => {
  const { foreign, webhooks } = await shared();
  const metadata = { ...METADATA, site_ids: ['othrsite', 'demosite', 'nosuchst'] };
  const refused = [0, 2].map(
    (place) => `metadata.site_ids.${place}: this credential does not reach a site with this id.`,
  );
  const forbidden = errorBody('site_forbidden', ...refused);
  await foreign.post('/v2/webhooks').send({ metadata }).expect(403, forbidden);
  expect(webhooks.all()).toEqual([]);
});

test('updates what the body names and keeps the rest, the secret too', async () => {
  const { admin, create, advance, webhooks } = await start();
  const { secret } = await create();
  await advance(1.5);
  const metadata = { name: 'renamed', events: ['media_available'], description: null };
  const updated = {
    ...WEBHOOK,
    last_modified: '2030-01-01T00:00:01.500000+00:00',
    metadata: { ...METADATA, name: 'renamed', events: ['media_available'] },
  };
  await admin.patch('/v2/webhooks/id000002').send({ metadata }).expect(200, updated);
  await admin.get('/v2/webhooks/id000002').expect(200, updated);
  expect(webhooks.find('id000002')?.secret).toBe(secret);
});

test('answers 403 to an update with a site out of reach, and changes nothing', async () => {
  const { admin, create } = await start();
  await create();
  const metadata = { name: 'renamed', site_ids: ['demosite', 'nosuchst'] };
  const { body } = await admin.patch('/v2/webhooks/id000002').send({ metadata }).expect(403);
  expect(body.errors[0].code).toBe('site_forbidden');
  await admin.get('/v2/webhooks/id000002').expect(200, WEBHOOK);
});

test.each(['get', 'patch', 'delete'] as const)(
  'answers a %s of a webhook as if it were not there when one of its sites is out of reach',
  async (method) => {
    const { create, foreign, webhooks } = await start();
    const { id } = await create({ site_ids: ['demosite', 'othrsite'] });
    for (const unreachable of [id, 'nosuchid'])
      await foreign[method](`/v2/webhooks/${unreachable}`).expect(404, NOT_FOUND);
    expect((await foreign.get('/v2/webhooks')).body.total).toBe(0);
    expect(webhooks.all()).toHaveLength(1);
  },
);
