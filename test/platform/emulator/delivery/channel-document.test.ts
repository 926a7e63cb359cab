import { startEmulator, type TestEmulator } from '../../../support/start-emulator';

let emulator: TestEmulator;

beforeEach(async () => {
  emulator = await startEmulator();
});

const channels = () => `/v2/sites/${emulator.siteId}/channels`;

async function create(metadata: object): Promise<{ id: string; stream_key: string }> {
  const { body } = await emulator.admin.post(`${channels()}/`).send({ metadata }).expect(201);
  return body;
}

const encoder = (does: 'connect' | 'disconnect', { stream_key }: { stream_key: string }) =>
  emulator.control.post(`/encoder/${does}`).send({ stream_key }).expect(200);

async function documentOf({ id }: { id: string }): Promise<unknown> {
  const { status, body } = await emulator.unauthenticated.get(`/live/channels/${id}.json`);
  return { status, body };
}

const idle = { status: 200, body: { status: 'idle' } };
const active = (event: unknown) => ({ status: 200, body: { status: 'active', current_event: event } });
const absent = { status: 404, body: { message: 'There is no channel with this id.' } };

const currentEvent = ({ id }: { id: string }) => emulator.context.state.channels.find(id)?.currentEventId;

test('shows an auto channel as active, with its event, from connect to the end of the event', async () => {
  const channel = await create({ publishing_mode: 'auto', reconnect_window: 60 });
  expect(await documentOf(channel)).toEqual(idle);
  await encoder('connect', channel);
  const event = currentEvent(channel);
  expect(await documentOf(channel)).toEqual(active(event));
  await encoder('disconnect', channel);
  expect(await documentOf(channel)).toEqual(active(event));
  emulator.context.clock.advance(60_000);
  expect(await documentOf(channel)).toEqual(idle);
});

test('says nothing of a manual channel’s event before it is published', async () => {
  const channel = await create({ publishing_mode: 'manual' });
  await encoder('connect', channel);
  expect(await documentOf(channel)).toEqual(idle);
  const event = currentEvent(channel);
  await emulator.admin.put(`${channels()}/${channel.id}/events/${event}/publish/`).expect(204);
  expect(await documentOf(channel)).toEqual(active(event));
});

test('shows a channel as idle as soon as it is disabled', async () => {
  const channel = await create({});
  await encoder('connect', channel);
  await emulator.admin.put(`${channels()}/${channel.id}/disable/`).expect(204);
  expect(await documentOf(channel)).toEqual(idle);
});

test('answers 404 with a message for a channel that is unknown, or deleted', async () => {
  const channel = await create({});
  expect(await documentOf({ id: 'nowhere0' })).toEqual(absent);
  await emulator.admin.delete(`${channels()}/${channel.id}/`).expect(204);
  expect(await documentOf(channel)).toEqual(absent);
});

test.each(['', '/'])(
  'lets pages of every origin read it, fresh each time, at a path that ends in "%s"',
  async (slash) => {
    const { id } = await create({});
    for (const path of [`/live/channels/${id}.json${slash}`, `/live/channels/nowhere0.json${slash}`]) {
      const { headers } = await emulator.unauthenticated.get(path);
      expect(headers).toMatchObject({
        'access-control-allow-origin': '*',
        'cross-origin-resource-policy': 'cross-origin',
        'cache-control': 'no-store',
        'content-type': 'application/json; charset=utf-8',
      });
    }
  },
);

test('answers a preflight of a browser', async () => {
  const { status, headers, text } = await emulator.unauthenticated
    .options('/live/channels/abcd1234.json')
    .set('origin', 'https://publisher.example')
    .set('access-control-request-method', 'GET')
    .set('access-control-request-headers', 'x-player');
  expect({ status, text }).toEqual({ status: 204, text: '' });
  expect(headers).toMatchObject({
    'access-control-allow-origin': '*',
    'access-control-allow-methods': 'GET, HEAD',
    'access-control-allow-headers': 'x-player',
  });
});

test('answers 405 to another method than GET', async () => {
  const { status, headers } = await emulator.unauthenticated.put('/live/channels/abcd1234.json');
  expect({ status, allow: headers.allow }).toEqual({ status: 405, allow: 'GET' });
});

test('does not count against the rate limit', async () => {
  const { headers } = await emulator.unauthenticated.get('/live/channels/abcd1234.json');
  expect(Object.keys(headers).filter((name) => name.includes('request-limit'))).toEqual([]);
});
