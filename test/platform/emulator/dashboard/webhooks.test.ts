import { complaintsOf, rowsOf, textOf } from '../../../support/read-page';
import { startEmulator } from '../../../support/start-emulator';
import { startWebhookReceiver } from '../../../support/webhook-receiver';

const FORM = {
  name: 'Newsroom',
  webhook_url: 'http://127.0.0.1:9/hook',
  site_ids: 'demosite',
  events: ['channel_created'],
};

test('creates a webhook and shows its secret once', async () => {
  const { unauthenticated, context } = await startEmulator();
  const answer = await unauthenticated.post('/dashboard/webhooks').type('form').send(FORM).expect(303);
  const [webhook] = context.webhooks.list();
  const path = `/dashboard/webhooks/${webhook?.id}`;
  expect(answer.headers.location).toBe(`${path}?done=webhook-created`);
  expect(webhook?.metadata).toEqual({
    name: 'Newsroom',
    description: '',
    webhook_url: 'http://127.0.0.1:9/hook',
    events: ['channel_created'],
    site_ids: ['demosite'],
  });
  await unauthenticated.head(path).expect(200);
  expect((await unauthenticated.get(path)).text).toContain(webhook?.secret);
  expect((await unauthenticated.get(path)).text).not.toContain(webhook?.secret);
  expect((await unauthenticated.get('/dashboard/webhooks')).text).not.toContain(webhook?.secret);
});

test('never shows the secret of a webhook that the management API created', async () => {
  const { unauthenticated, context } = await startEmulator();
  const { id, secret } = context.webhooks.create({
    name: 'Newsroom',
    description: '',
    webhook_url: FORM.webhook_url,
    events: ['channel_created'],
    site_ids: ['demosite'],
  });
  expect((await unauthenticated.get(`/dashboard/webhooks/${id}`)).text).not.toContain(secret);
});

test('shows the form again with everything that was wrong with it', async () => {
  const { unauthenticated, context } = await startEmulator();
  const sent = {
    name: '',
    webhook_url: 'http://example.com/hook',
    site_ids: 'demosite',
    description: 'kept',
  };
  const { text } = await unauthenticated.post('/dashboard/webhooks').type('form').send(sent).expect(400);
  expect(complaintsOf(text)).toEqual([
    'Name is empty.',
    'URL must be an https address; http is for loopback, or for every host with EMULATOR_ALLOW_HTTP_WEBHOOKS=true.',
    'Events names no event.',
  ]);
  expect(text).toContain('value="kept"');
  const elsewhere = await unauthenticated
    .post('/dashboard/webhooks')
    .type('form')
    .send({ ...FORM, site_ids: 'elsewher' })
    .expect(400);
  expect(complaintsOf(elsewhere.text)).toEqual(['The account has no such site.']);
  expect(context.webhooks.list()).toEqual([]);
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

test('deletes a webhook', async () => {
  const { unauthenticated, context } = await startEmulator();
  await unauthenticated.post('/dashboard/webhooks').type('form').send(FORM);
  const path = `/dashboard/webhooks/${context.webhooks.list()[0]?.id}`;
  await unauthenticated.post(`${path}/delete`).expect(303);
  expect(context.webhooks.list()).toEqual([]);
  const gone = await unauthenticated.get(path).expect(404);
  expect(textOf(gone.text)).toContain('There is no webhook with this id. It may have been deleted.');
});
