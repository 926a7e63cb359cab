import { startEmulator } from '../../support/start-emulator';
import { until } from '../../support/until';
import { startWebhookReceiver } from '../../support/webhook-receiver';

const LIBRARY = '/v2/sites/demosite';

test('answers and notifies with equal bytes in each run with one seed, and after a reset', async () => {
  const receiver = await startWebhookReceiver();
  const run = async (seed: string, times = 1) => {
    const { admin, api, control, context, unauthenticated, port, controlUrl } = await startEmulator({
      EMULATOR_SEED: seed,
    });
    const runs: string[] = [];
    for (let each = 0; each < times; each += 1) {
      const bytes: string[] = [];
      const call = async (calling: ReturnType<typeof admin.get>) => {
        const { status, headers, text, body } = await calling;
        bytes.push(
          `${status} ${JSON.stringify(headers)} ${text}`
            .replaceAll(`:${port}`, '')
            .replaceAll(controlUrl, ''),
        );
        return body;
      };
      const webhook = { name: 'w', webhook_url: receiver.url, site_ids: ['demosite'] };
      const events = ['media_available', 'channel_active'];
      await call(admin.post('/v2/webhooks').send({ metadata: { ...webhook, events } }));
      const { stream_key } = await call(admin.post(`${LIBRARY}/channels/`).send({ metadata: {} }));
      await call(control.post('/encoder/connect').send({ stream_key }));
      await call(control.post('/credentials').send({ name: 'n', permission: 'Viewer' }));
      const upload = { method: 'external', source_url: 'https://example.com/a.mp4' };
      await call(admin.post(`${LIBRARY}/media/`).send({ metadata: { title: 'T' }, upload }));
      await call(admin.post(`${LIBRARY}/media/`).send({ metadata: {}, upload: { method: 'multipart' } }));
      await call(api.get('/keyprovider/cenc/demo/content'));
      await call(control.post('/clock').send({ advance_seconds: 5 }));
      await until(() => context.webhooks.history().length === 2);
      await call(admin.get(`${LIBRARY}/media/`));
      await call(unauthenticated.get('/v2/sites/nothing'));
      for (const path of ['/state?reveal=true', '/deliveries', '/requests']) await call(control.get(path));
      await call(control.post('/reset'));
      runs.push(bytes.join('\n'));
    }
    return runs;
  };
  const [first, again] = await run('42', 2);
  expect(again).toBe(first);
  expect(await run('42')).toEqual([first]);
  expect(await run('-42')).not.toEqual([first]);
});

test('a webhook call that a fault delays takes real time, as the clock is stopped', async () => {
  const receiver = await startWebhookReceiver();
  const { control, context, createChannel, createWebhook } = await startEmulator({ EMULATOR_SEED: '1' });
  createWebhook(receiver.url, ['channel_created']);
  await control.post('/faults').send({ target: 'webhook:*', kind: 'delay', ms: 1 }).expect(201);
  await createChannel();
  await until(() => context.webhooks.history().length === 1);
  expect(receiver.received).toHaveLength(1);
});

test('what answers have does not depend on health checks and on polls of the control port', async () => {
  const answered = async (polls: number) => {
    const { admin, control, unauthenticated } = await startEmulator({ EMULATOR_SEED: '1' });
    const { body } = await admin.post(`${LIBRARY}/playlists/manual_playlist/`).send({ metadata: {} });
    for (let poll = 0; poll < polls; poll += 1) await control.get('/healthz').expect(200);
    const { headers } = await admin.get('/v2/webhooks/');
    for (let poll = 0; poll < polls; poll += 1) await unauthenticated.get('/healthz').expect(200);
    const document = (await unauthenticated.get(`/v2/playlists/${body.id}`)).body;
    return [headers['x-request-id'], document.feed_instance_id];
  };
  expect(await answered(3)).toEqual(await answered(0));
});
