import { onceForAll } from '../../../support/after-test';
import { documentOf, NOTHING, startPackaged } from '../../../support/start-delivery';
import { startEmulator, type TestEmulator } from '../../../support/start-emulator';
import { tableRows } from '../../../support/table-rows';
import { until } from '../../../support/until';

let emulator: TestEmulator;

const channels = () => `/v2/sites/${emulator.siteId}/channels`;

async function create(metadata: object) {
  emulator = await startEmulator();
  return emulator.createChannel(metadata);
}

async function channelDocument({ id }: { id: string }): Promise<unknown> {
  const { status, body } = await emulator.unauthenticated.get(`/live/channels/${id}.json`);
  return { status, body };
}

const idle = { status: 200, body: { status: 'idle' } };
const active = (event: unknown) => ({ status: 200, body: { status: 'active', current_event: event } });
const noChannel = { status: 404, body: { message: 'There is no channel with this id.' } };

const currentEvent = ({ id }: { id: string }) => emulator.context.state.channels.find(id)?.currentEventId;

test('shows an auto channel as active, with its event, from connect to the end of the event', async () => {
  const channel = await create({ publishing_mode: 'auto', reconnect_window: 60 });
  expect(await channelDocument(channel)).toEqual(idle);
  await emulator.connect(channel);
  const event = currentEvent(channel);
  expect(await channelDocument(channel)).toEqual(active(event));
  await emulator.disconnect(channel);
  expect(await channelDocument(channel)).toEqual(active(event));
  emulator.context.clock.advance(60_000);
  expect(await channelDocument(channel)).toEqual(idle);
});

test("says nothing of a manual channel's event before it is published", async () => {
  const channel = await create({ publishing_mode: 'manual' });
  await emulator.connect(channel);
  expect(await channelDocument(channel)).toEqual(idle);
  const event = currentEvent(channel);
  await emulator.admin.put(`${channels()}/${channel.id}/events/${event}/publish/`).expect(204);
  expect(await channelDocument(channel)).toEqual(active(event));
});

test('answers 404 with a message for a channel that is unknown, or deleted', async () => {
  const channel = await create({});
  expect(await channelDocument({ id: 'nowhere0' })).toEqual(noChannel);
  await emulator.admin.delete(`${channels()}/${channel.id}/`).expect(204);
  expect(await channelDocument(channel)).toEqual(noChannel);
});

let channel: Awaited<ReturnType<TestEmulator['createChannel']>>;

const METADATA = {
  title: 'Town hall',
  tags: ['news', 'live'],
  custom_params: { sponsor: 'Acme', title: 'Forged', mediaid: 'forged00' },
  reconnect_window: 0,
};

async function start(metadata: object = {}): Promise<string> {
  channel = await create({ ...METADATA, ...metadata });
  return emulator.connect(channel);
}

async function endEvent(seconds = 90): Promise<void> {
  await emulator.advance(seconds);
  await emulator.disconnect(channel);
  await emulator.advance(0.001);
}

const get = (path: string) => emulator.unauthenticated.get(path);

const textOf = async (path: string) => (await fetch(`${emulator.url}${path}`)).text();

/** 2030-01-01T00:00:00Z, the start of the test's clock. */
const START = 1_893_456_000;

/** The answer about the event, or its replay, of the channel. */
function answerOf(id: string, file: string, times: { readonly duration: number; readonly pubdate: number }) {
  const sources = [{ file: `${emulator.url}${file}`, type: 'application/vnd.apple.mpegurl' }];
  const fields = { title: 'Town hall', tags: 'news,live', sponsor: 'Acme', ...times, sources };
  return { status: 200, body: documentOf(emulator.url, id, fields) };
}

test('answers a playlist for a live event, with its custom parameters next to the fields', async () => {
  const event = await start();
  const { status, body, headers } = await get(`/v2/media/${event}`);
  const times = { duration: 0, pubdate: START };
  expect({ status, body }).toEqual(answerOf(event, `/live/events/${event}.m3u8`, times));
  expect(headers).toMatchObject({
    'access-control-allow-origin': '*',
    'cache-control': 'no-store',
    'content-type': 'application/json; charset=utf-8',
  });
});

test('answers a playlist for the replay under the same id at once when the event has ended', async () => {
  const event = await start();
  await endEvent(90);
  const { status, body } = await get(`/v2/media/${event}/`);
  const times = { duration: 90, pubdate: START + 90 };
  expect({ status, body }).toEqual(answerOf(event, `/manifests/${event}.m3u8`, times));
});

test('hides a manual event until it is published, as if it did not exist', async () => {
  const event = await start({ publishing_mode: 'manual' });
  const paths = ['', '/poster.svg'].map((rest) => `/v2/media/${event}${rest}`);
  paths.push(`/live/events/${event}.m3u8`, `/manifests/${event}.m3u8`);
  for (const path of paths) {
    const { status, body } = await get(path).expect('access-control-allow-origin', '*');
    expect({ path, status, body }).toEqual({ path, ...NOTHING });
  }
  await emulator.admin.put(`${channels()}/${channel.id}/events/${event}/publish/`).expect(204);
  for (const path of paths) await get(path).expect(200);
});

test('serves the preview of a manual event before it is published, and no longer than the event lasts', async () => {
  const event = await start({ publishing_mode: 'manual' });
  const { body } = await emulator.admin.get(`/v2/sites/${emulator.siteId}/channels/${channel.id}/`);
  const [preview = ''] = body.preview_url;
  const path = preview.slice(emulator.url.length);
  const { headers } = await get(path).expect(200);
  expect(headers['content-type']).toBe('application/vnd.apple.mpegurl; charset=utf-8');
  expect(path).not.toContain(event);
  await endEvent();
  await get(path).expect(404);
});

test('answers a live HLS playlist while the event is on, and a closed one for the replay', async () => {
  const event = await start();
  const lines = [
    '#EXTM3U',
    '#EXT-X-VERSION:5',
    '#EXT-X-TARGETDURATION:4',
    '#EXT-X-MEDIA-SEQUENCE:0',
    '# The emulator packages no media: no segment follows.',
  ];
  expect(await textOf(`/live/events/${event}.m3u8`)).toBe(`${lines.join('\n')}\n`);
  await endEvent();
  expect(await textOf(`/manifests/${event}.m3u8`)).toBe(
    `${[...lines, '#EXT-X-PLAYLIST-TYPE:VOD', '#EXT-X-ENDLIST'].join('\n')}\n`,
  );
});

const streaming = onceForAll(async () => {
  const emulator = await startEmulator();
  return { ...emulator, ...(await emulator.onAir()) };
});

test.each(['', '?width=0', '?width=-1', '?width=99999', '?width="onload="x', '?width=1&width=2'])(
  'draws the poster at its own size when asked for it with "%s"',
  async (query) => {
    const { unauthenticated, id } = await streaming();
    const { status, body } = await unauthenticated.get(`/v2/media/${id}/poster.svg${query}`);
    expect(status).toBe(200);
    expect(String(body)).toContain('<svg xmlns="http://www.w3.org/2000/svg" width="1280" height="720"');
    // The signs at the end of an Arabic title are at its left.
    expect(String(body)).toContain('text-anchor="middle" unicode-bidi="plaintext">');
  },
);

/** The history of an event, and whether viewers and the holders of its preview may watch it then. */
const RIGHTS = `
nothing → false true
publish → true true
end → false false
publish, end → true false
end, publish → false false
publish, delete channel → true false
delete channel → false false
publish, end, delete channel, delete media → false false
publish, end, expire → false false
publish, delete channel, expire, renew → true false
`;

describe('asks the packager for what may be watched now and for nothing else, whatever happened before', () => {
  const shared = onceForAll(() => startPackaged());

  test.each(tableRows(RIGHTS))('%s: %s', async (steps = '', expected) => {
    const { packager, admin, site, context, unauthenticated, ...delivery } = await shared();
    const sent = { publishing_mode: 'manual', reconnect_window: 0 };
    const { channel: created, id: event } = await delivery.onAir(sent);
    await until(() => context.packaging.deliverable(event) !== undefined);
    const token = context.state.events.find(event)?.previewToken;
    const [ofChannel, ofMedia] = [`${site}/channels/${created.id}/`, `${site}/media/${event}/`];
    const expires = (publish_end_date: string | null) =>
      admin.patch(ofMedia).send({ metadata: { publish_end_date } }).expect(200);
    const take: Readonly<Record<string, () => PromiseLike<unknown>>> = {
      nothing: async () => undefined,
      publish: () => admin.put(`${ofChannel}events/${event}/publish/`),
      end: () => delivery.disconnect(created).then(() => delivery.advance(1)),
      'delete channel': () => admin.delete(ofChannel).expect(204),
      'delete media': () => admin.delete(ofMedia).expect(204),
      expire: () => expires('2029-01-01T00:00:00Z'),
      renew: () => expires(null),
    };
    for (const step of steps.split(', ')) await take[step]?.();
    for (const file of ['hls/master.m3u8', 'hls/part-1/video_1.m4s', 'dash/manifest.mpd']) {
      packager.media.set(`/media/${event}/${file}`, { type: 'text/plain', body: 'x' });
      const statuses: number[] = [];
      for (const place of [`/live/events/${event}`, `/manifests/${event}`, `/live/previews/${token}`])
        statuses.push((await unauthenticated.get(`${place}/${file}`)).status);
      const [live, replay, preview] = statuses.map((status) => status === 200);
      expect([steps, live, `${replay} ${preview}`]).toEqual([steps, replay, expected]);
      const forwarded = packager.calls.filter(({ path }) => path === `/media/${event}/${file}`);
      expect(forwarded).toHaveLength(statuses.filter((status) => status === 200).length);
    }
  });
});
