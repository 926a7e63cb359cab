import { startEmulator, type TestEmulator } from '../../../support/start-emulator';

let emulator: TestEmulator;
let channel: { id: string; stream_key: string; preview_url: string[] };

const METADATA = {
  title: 'Town hall',
  tags: ['news', 'live'],
  custom_params: { sponsor: 'Acme', title: 'Forged', mediaid: 'forged00' },
  reconnect_window: 0,
};

async function start(metadata: object = {}): Promise<string> {
  emulator = await startEmulator();
  const { body } = await emulator.admin
    .post(`/v2/sites/${emulator.siteId}/channels/`)
    .send({ metadata: { ...METADATA, ...metadata } })
    .expect(201);
  channel = body;
  await emulator.control.post('/encoder/connect').send({ stream_key: channel.stream_key }).expect(200);
  return emulator.context.state.channels.find(channel.id)?.currentEventId ?? '';
}

async function endEvent(seconds = 90): Promise<void> {
  emulator.context.clock.advance(seconds * 1000);
  await emulator.control.post('/encoder/disconnect').send({ stream_key: channel.stream_key }).expect(200);
  emulator.context.clock.advance(1);
}

const publish = (event: string) =>
  emulator.admin
    .put(`/v2/sites/${emulator.siteId}/channels/${channel.id}/events/${event}/publish/`)
    .expect(204);

const get = (path: string) => emulator.unauthenticated.get(path);

const textOf = async (path: string) => (await fetch(`${emulator.url}${path}`)).text();

/** 2030-01-01T00:00:00Z, when the test's clock stands at its start. */
const START = 1_893_456_000;

const absent = {
  status: 404,
  body: { message: 'There is nothing to watch under this id: it is unknown, or not published yet.' },
};

function documentOf(
  id: string,
  { file, duration, pubdate }: { file: string; duration: number; pubdate: number },
) {
  const poster = `${emulator.url}/v2/media/${id}/poster.svg`;
  return {
    title: 'Town hall',
    description: '',
    kind: 'Single Item',
    feed_instance_id: expect.stringMatching(/./),
    playlist: [
      {
        sponsor: 'Acme',
        title: 'Town hall',
        mediaid: id,
        description: '',
        link: `${emulator.url}/v2/media/${id}`,
        image: poster,
        images: [320, 640, 1280].map((width) => ({
          src: `${poster}?width=${width}`,
          width,
          type: 'image/svg+xml',
        })),
        duration,
        pubdate,
        tags: 'news,live',
        sources: [{ file: `${emulator.url}${file}`, type: 'application/vnd.apple.mpegurl' }],
        tracks: [],
        variations: {},
      },
    ],
  };
}

test('answers a playlist for a live event, with its custom parameters beside the fields', async () => {
  const event = await start();
  const { status, body, headers } = await get(`/v2/media/${event}`);
  expect({ status, body }).toEqual({
    status: 200,
    body: documentOf(event, { file: `/live/events/${event}.m3u8`, duration: 0, pubdate: START }),
  });
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
  expect({ status, body }).toEqual({
    status: 200,
    body: documentOf(event, { file: `/manifests/${event}.m3u8`, duration: 90, pubdate: START + 90 }),
  });
});

test('keeps the replay when the channel is deleted', async () => {
  const event = await start();
  await emulator.admin.delete(`/v2/sites/${emulator.siteId}/channels/${channel.id}/`).expect(204);
  await get(`/v2/media/${event}`).expect(200);
});

const PATHS = [
  '/v2/media/EVENT',
  '/v2/media/EVENT/poster.svg',
  '/live/events/EVENT.m3u8',
  '/manifests/EVENT.m3u8',
];

test.each(PATHS)('hides a manual event until it is published: %s', async (pattern) => {
  const event = await start({ publishing_mode: 'manual' });
  const path = pattern.replace('EVENT', event);
  const { status, body, headers } = await get(path);
  expect({ status, body }).toEqual(absent);
  expect(headers['access-control-allow-origin']).toBe('*');
  await publish(event);
  await get(path).expect(200);
});

test.each(PATHS)('hides the recording of an event that was never published: %s', async (pattern) => {
  const event = await start({ publishing_mode: 'manual' });
  await endEvent();
  const { status, body } = await get(pattern.replace('EVENT', event));
  expect({ status, body }).toEqual(absent);
});

test.each(PATHS)('answers the same 404 for an id that does not exist: %s', async (pattern) => {
  await start();
  const { status, body } = await get(pattern.replace('EVENT', 'nowhere0'));
  expect({ status, body }).toEqual(absent);
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

test('draws a poster that shows the title as text, as wide as asked', async () => {
  const event = await start({ title: '<script>alert(1)</script> & a title that is longer than one line' });
  const { headers, body } = await get(`/v2/media/${event}/poster.svg?width=320`);
  const svg = String(body);
  expect(headers['content-type']).toBe('image/svg+xml; charset=utf-8');
  expect(headers['content-security-policy']).toContain("default-src 'none'");
  expect(svg).toContain('<svg xmlns="http://www.w3.org/2000/svg" width="320" height="180"');
  expect(svg).not.toContain('<script');
  expect(svg).toContain('…</text>');
});

test.each(['', '?width=0', '?width=-1', '?width=99999', '?width="onload="x', '?width=1&width=2'])(
  'draws the poster at its own size when asked for it with "%s"',
  async (query) => {
    const event = await start();
    const { status, body } = await get(`/v2/media/${event}/poster.svg${query}`);
    expect(status).toBe(200);
    expect(String(body)).toContain('<svg xmlns="http://www.w3.org/2000/svg" width="1280" height="720"');
  },
);
