import { complaintsOf, rowsOf, textOf } from '../../../support/read-page';
import { startLibraryPages } from '../../../support/start-library-pages';
import { startWebhookReceiver } from '../../../support/webhook-receiver';

const SECRET = 'demo-api-secret-0123456789';

test('lists the credentials with what they may do, and their secrets for who asks', async () => {
  const { page } = await startLibraryPages();
  const text = await page('credentials');
  const seeded = ['seeded seeded00', 'Admin', 'demosite', '2030-01-01 00:00:00 UTC'];
  expect(rowsOf(text)[0]?.slice(0, 4)).toEqual(seeded);
  expect(text).toMatch(new RegExp(`<details class="secret"[^>]*>(?:(?!</details>).)*${SECRET}`, 's'));
  expect(textOf(text)).toContain('Show Credentials');
  expect(text).toContain('dir="auto">seeded</span>');
});

test('shows the key and the secret of each site for v1', async () => {
  const env = { EMULATOR_SITE_ID: 'demosite,othrsite', EMULATOR_V1_SECRET: 'a-secret-of-version-1' };
  const { page } = await startLibraryPages(env);
  const [, v1 = ''] = (await page('credentials')).split('V1 API credentials');
  expect(rowsOf(v1).map(([site, key]) => [site, key])).toEqual([
    ['demosite', 'demosite Copy key of demosite'],
    ['othrsite', 'othrsite Copy key of othrsite'],
  ]);
  expect(v1).toMatch(/<details class="secret"[^>]*>(?:(?!<\/details>).)*a-secret-of-version-1/s);
});

test('adds a key name, replaces its secret and deletes it, but not the last Admin', async () => {
  const { context, post } = await startLibraryPages();
  await post('credentials', { name: 'Reader', permission: 'Viewer', site_ids: 'demosite' });
  const [seeded, made] = context.state.credentials.all();
  expect(made).toMatchObject({ name: 'Reader', permission: 'Viewer', siteIds: ['demosite'] });
  await post(`credentials/${made?.id}/replace`);
  const [, replaced] = context.state.credentials.all();
  expect(replaced).toMatchObject({ name: 'Reader', permission: 'Viewer', siteIds: ['demosite'] });
  expect(replaced?.secret).not.toBe(made?.secret);
  await post(`credentials/${replaced?.id}/delete`);
  const { status, text } = await post('credentials/seeded00/delete');
  expect(status).toBe(409);
  expect(textOf(text)).toContain('This is the last Admin credential');
  expect(context.state.credentials.all()).toEqual([seeded]);
});

test('shows the form of a credential again with its problems', async () => {
  const { context, post } = await startLibraryPages();
  const { status, text } = await post('credentials', { name: ' ', permission: 'Owner' });
  expect(status).toBe(400);
  expect(complaintsOf(text)).toEqual([
    'Name is empty.',
    'Permission must be one of Viewer, Editor, Admin.',
    'Sites names no site.',
  ]);
  const elsewhere = { name: 'Reader', permission: 'Viewer', site_ids: 'elsewher' };
  expect((await post('credentials', elsewhere)).status).toBe(403);
  expect(context.state.credentials.all()).toHaveLength(1);
});

const FORM = {
  name: 'Newsroom',
  webhook_url: 'http://127.0.0.1:9/hook',
  site_ids: 'demosite',
  events: ['channel_created'],
};

test('creates a webhook and shows its secret once, and never that of one which the API created', async () => {
  const { unauthenticated, context, createWebhook, post, page } = await startLibraryPages();
  expect((await post('webhooks', { ...FORM, site_ids: 'elsewher' })).status).toBe(400);
  await post('webhooks', FORM);
  const [webhook] = context.state.webhooks.all();
  const path = `webhooks/${webhook?.id}`;
  await unauthenticated.head(`/dashboard/${path}`).expect(200);
  expect(await page(path)).toContain(webhook?.secret);
  for (const later of [path, 'webhooks']) expect(await page(later)).not.toContain(webhook?.secret);
  const { id, secret } = createWebhook(FORM.webhook_url, ['channel_created']);
  expect(await page(`webhooks/${id}`)).not.toContain(secret);
});

test('shows every try of a delivery, the latest first, with its answer and the next try', async () => {
  const { context, post, page, createChannel } = await startLibraryPages();
  const receiver = await startWebhookReceiver();
  receiver.answer(500, 204);
  await post('webhooks', { ...FORM, webhook_url: receiver.url });
  const event = `channel_created ${(await createChannel()).id}`;
  const path = `webhooks/${context.state.webhooks.all()[0]?.id}`;
  const rows = async (count: number) => {
    for (;;) {
      const found = rowsOf(await page(path));
      if (found.length === count) return found;
    }
  };
  const [first, second] = ['2030-01-01 00:00:00 UTC', '2030-01-01 00:00:01 UTC'];
  const failed = [first, event, '1', 'failed, to be retried', 'Status 500 after 0 ms', second];
  expect(await rows(1)).toEqual([failed]);
  expect(rowsOf(await page('webhooks'))[0]?.[3]).toBe(`failed, to be retried ${first}`);
  context.clock.advance(1000);
  const delivered = [second, event, '2', 'delivered', 'Status 204 after 0 ms', '–'];
  expect(await rows(2)).toEqual([delivered, failed]);
});
