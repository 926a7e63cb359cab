import { startEmulator, type TestEmulator } from '../../../support/start-emulator';
import { until } from '../../../support/until';

const REFUSED = {
  errors: [
    {
      code: 'webhook_refused',
      description: 'A webhook may not be sent here. Give it the address of a receiver of your own.',
    },
  ],
};

/** Has the first emulator notify this address of a new channel, and answers the status that came back. */
async function notifiedAt({ admin, context, createChannel }: TestEmulator, url: string): Promise<unknown> {
  const events = ['channel_created'];
  const metadata = { name: 'hook', description: '', webhook_url: url, events, site_ids: ['demosite'] };
  await admin.post('/v2/webhooks').send({ metadata }).expect(201);
  await createChannel();
  // An emulator that was reset has forgotten its channels, and its deliveries as well.
  await until(() => context.webhooks.history().length > 0 || context.state.channels.all().length === 0);
  return context.webhooks.history()[0]?.answer;
}

const urlOn = (host: string, { controlUrl }: TestEmulator, path: string) =>
  `http://${host}:${new URL(controlUrl).port}${path}`;

test.each(['127.0.0.1', 'localhost', '[::ffff:127.0.0.1]', '0x7f.1'])(
  'a webhook to the control port at %s is not obeyed',
  async (host) => {
    const emulator = await startEmulator();
    expect(await notifiedAt(emulator, urlOn(host, emulator, '/reset'))).toEqual({ status: 403 });
    expect(emulator.context.state.channels.all()).toHaveLength(1);
  },
);

test('a webhook to the control port of another emulator is not obeyed', async () => {
  const [emulator, other] = [await startEmulator(), await startEmulator()];
  await other.createChannel();
  expect(await notifiedAt(emulator, urlOn('127.0.0.1', other, '/reset'))).toEqual({ status: 403 });
  expect(other.context.state.channels.all()).toHaveLength(1);
});

test('a webhook to the dashboard, which has no login, is not obeyed', async () => {
  const emulator = await startEmulator();
  const { id } = await emulator.createChannel();
  const url = `${emulator.url}/dashboard/channels/${id}/delete`;
  expect(await notifiedAt(emulator, url)).toEqual({ status: 403 });
  expect(emulator.context.state.channels.all()).toHaveLength(2);
});

test('the control port says why it refuses a webhook', async () => {
  const { control } = await startEmulator();
  const answer = await control.post('/reset').set('user-agent', 'packager-drm-emulator-webhook');
  expect([answer.status, answer.body]).toEqual([403, REFUSED]);
});
