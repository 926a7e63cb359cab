import { complaintsOf, rowsOf, textOf } from '../../../support/read-page';
import { startEmulator } from '../../../support/start-emulator';
import { startWebhookReceiver } from '../../../support/webhook-receiver';

const SECRET = 'demo-api-secret-0123456789';

test('lists the credentials with what they may do, and their secrets for who asks', async () => {
  const { unauthenticated } = await startEmulator();
  const { text } = await unauthenticated.get('/dashboard/credentials').expect(200);
  expect(rowsOf(text)[0]?.slice(0, 4)).toEqual([
    'seeded seeded00',
    'Admin',
    'demosite',
    '2030-01-01 00:00:00 UTC',
  ]);
  expect(text).toMatch(new RegExp(`<details class="secret"[^>]*>(?:(?!</details>).)*${SECRET}`, 's'));
  expect(textOf(text)).toContain('Show Credentials');
});

test('shows the key and the secret of each site for v1', async () => {
  const { unauthenticated } = await startEmulator({
    EMULATOR_SITE_ID: 'demosite,othrsite',
    EMULATOR_V1_SECRET: 'a-secret-of-version-1',
  });
  const { text } = await unauthenticated.get('/dashboard/credentials').expect(200);
  const [, v1 = ''] = text.split('V1 API credentials');
  expect(rowsOf(v1).map(([site, key]) => [site, key])).toEqual([
    ['demosite', 'demosite Copy key of demosite'],
    ['othrsite', 'othrsite Copy key of othrsite'],
  ]);
  expect(v1).toMatch(/<details class="secret"[^>]*>(?:(?!<\/details>).)*a-secret-of-version-1/s);
});

test('adds a key name, replaces its secret and deletes it, but not the last Admin', async () => {
  const { unauthenticated, context } = await startEmulator();
  const post = (path: string, form = {}) =>
    unauthenticated.post(`/dashboard/credentials${path}`).type('form').send(form);
  await post('', { name: 'Reader', permission: 'Viewer', site_ids: 'demosite' }).expect(303);
  const [seeded, made] = context.state.credentials.all();
  expect(made).toMatchObject({ name: 'Reader', permission: 'Viewer', siteIds: ['demosite'] });
  await post(`/${made?.id}/replace`).expect(303);
  const [, replaced] = context.state.credentials.all();
  expect(replaced).toMatchObject({ name: 'Reader', permission: 'Viewer', siteIds: ['demosite'] });
  expect(replaced?.secret).not.toBe(made?.secret);
  await post(`/${replaced?.id}/delete`).expect(303);
  const refused = await post('/seeded00/delete').expect(409);
  expect(textOf(refused.text)).toContain('This is the last Admin credential');
  expect(context.state.credentials.all()).toEqual([seeded]);
});

test('shows the form of a credential again with its problems', async () => {
  const { unauthenticated, context } = await startEmulator();
  const sent = { name: ' ', permission: 'Owner' };
  const { text } = await unauthenticated.post('/dashboard/credentials').type('form').send(sent).expect(400);
  expect(complaintsOf(text)).toEqual([
    'Name is empty.',
    'Permission must be one of Viewer, Editor, Admin.',
    'Sites names no site.',
  ]);
  const elsewhere = { name: 'Reader', permission: 'Viewer', site_ids: 'elsewher' };
  const answer = await unauthenticated.post('/dashboard/credentials').type('form').send(elsewhere);
  expect(answer.status).toBe(403);
  expect(context.state.credentials.all()).toHaveLength(1);
});

const FORM = {
  name: 'Newsroom',
  webhook_url: 'http://127.0.0.1:9/hook',
  site_ids: 'demosite',
  events: ['channel_created'],
};

test('creates a webhook and shows its secret once, and never that of one which the API created', async () => {
  const { unauthenticated, context } = await startEmulator();
  const answer = await unauthenticated.post('/dashboard/webhooks').type('form').send(FORM).expect(303);
  const [webhook] = context.webhooks.list();
  const path = `/dashboard/webhooks/${webhook?.id}`;
  expect(answer.headers.location).toBe(`${path}?done=webhook-created`);
  await unauthenticated.head(path).expect(200);
  expect((await unauthenticated.get(path)).text).toContain(webhook?.secret);
  expect((await unauthenticated.get(path)).text).not.toContain(webhook?.secret);
  expect((await unauthenticated.get('/dashboard/webhooks')).text).not.toContain(webhook?.secret);
  const metadata = { name: 'Other', description: '', webhook_url: FORM.webhook_url, site_ids: ['demosite'] };
  const { id, secret } = context.webhooks.create({ ...metadata, events: ['channel_created'] });
  expect((await unauthenticated.get(`/dashboard/webhooks/${id}`)).text).not.toContain(secret);
});

test('shows every try of a delivery, the latest first, with its answer and the next try', async () => {
  const { unauthenticated, context } = await startEmulator();
  const receiver = await startWebhookReceiver();
  receiver.answer(500, 204);
  await unauthenticated
    .post('/dashboard/webhooks')
    .type('form')
    .send({ ...FORM, webhook_url: receiver.url });
  await unauthenticated.post('/dashboard/channels').type('form').send({ site: 'demosite' });
  const path = `/dashboard/webhooks/${context.webhooks.list()[0]?.id}`;
  const channelId = context.state.channels.all()[0]?.id;
  const rows = async (count: number) => {
    for (;;) {
      const found = rowsOf((await unauthenticated.get(path)).text);
      if (found.length === count) return found;
    }
  };
  const failed = [
    '2030-01-01 00:00:00 UTC',
    `channel_created ${channelId}`,
    '1',
    'failed, to be retried',
    'Status 500 after 0 ms',
    '2030-01-01 00:00:01 UTC',
  ];
  expect(await rows(1)).toEqual([failed]);
  const list = await unauthenticated.get('/dashboard/webhooks');
  expect(rowsOf(list.text)[0]?.[3]).toBe('failed, to be retried 2030-01-01 00:00:00 UTC');
  context.clock.advance(1000);
  expect(await rows(2)).toEqual([
    [
      '2030-01-01 00:00:01 UTC',
      `channel_created ${channelId}`,
      '2',
      'delivered',
      'Status 204 after 0 ms',
      '–',
    ],
    failed,
  ]);
});
