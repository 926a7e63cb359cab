import fc from 'fast-check';
import { startFakePackager } from '../../../support/fake-packager';
import { NOTHING, posterFields, startDelivery } from '../../../support/start-delivery';
import { startEmulator, type TestEmulator } from '../../../support/start-emulator';
import { until } from '../../../support/until';

let emulator: TestEmulator;

beforeEach(async () => {
  emulator = await startEmulator();
});

const channels = () => `/v2/sites/${emulator.siteId}/channels`;
const create = (metadata: object) => emulator.createChannel(metadata);

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

test('says nothing of a manual channel’s event before it is published', async () => {
  const channel = await create({ publishing_mode: 'manual' });
  await emulator.connect(channel);
  expect(await channelDocument(channel)).toEqual(idle);
  const event = currentEvent(channel);
  await emulator.admin.put(`${channels()}/${channel.id}/events/${event}/publish/`).expect(204);
  expect(await channelDocument(channel)).toEqual(active(event));
});

test('shows a channel as idle as soon as it is disabled', async () => {
  const channel = await create({});
  await emulator.connect(channel);
  await emulator.admin.put(`${channels()}/${channel.id}/disable/`).expect(204);
  expect(await channelDocument(channel)).toEqual(idle);
});

test('answers 404 with a message for a channel that is unknown, or deleted', async () => {
  const channel = await create({});
  expect(await channelDocument({ id: 'nowhere0' })).toEqual(noChannel);
  await emulator.admin.delete(`${channels()}/${channel.id}/`).expect(204);
  expect(await channelDocument(channel)).toEqual(noChannel);
});

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

let channel: Awaited<ReturnType<TestEmulator['createChannel']>>;

const METADATA = {
  title: 'Town hall',
  tags: ['news', 'live'],
  custom_params: { sponsor: 'Acme', title: 'Forged', mediaid: 'forged00' },
  reconnect_window: 0,
};

async function start(metadata: object = {}): Promise<string> {
  channel = await emulator.createChannel({ ...METADATA, ...metadata });
  return emulator.connect(channel);
}

async function endEvent(seconds = 90): Promise<void> {
  await emulator.advance(seconds);
  await emulator.disconnect(channel);
  await emulator.advance(0.001);
}

const publish = (event: string) =>
  emulator.admin.put(`${channels()}/${channel.id}/events/${event}/publish/`).expect(204);

const get = (path: string) => emulator.unauthenticated.get(path);

const textOf = async (path: string) => (await fetch(`${emulator.url}${path}`)).text();

/** 2030-01-01T00:00:00Z, when the test's clock stands at its start. */
const START = 1_893_456_000;

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
        ...posterFields(poster),
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

const pathsOf = (event: string) => [
  `/v2/media/${event}`,
  `/v2/media/${event}/poster.svg`,
  `/live/events/${event}.m3u8`,
  `/manifests/${event}.m3u8`,
];

async function expectAbsent(event: string): Promise<void> {
  for (const path of pathsOf(event)) {
    const { status, body, headers } = await get(path);
    expect({ path, status, body }).toEqual({ path, ...NOTHING });
    expect(headers['access-control-allow-origin']).toBe('*');
  }
}

test('hides a manual event until it is published, as if it did not exist', async () => {
  const event = await start({ publishing_mode: 'manual' });
  await expectAbsent(event);
  await expectAbsent('nowhere0');
  await publish(event);
  for (const path of pathsOf(event)) await get(path).expect(200);
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

test.each(['', '?width=0', '?width=-1', '?width=99999', '?width="onload="x', '?width=1&width=2'])(
  'draws the poster at its own size when asked for it with "%s"',
  async (query) => {
    const event = await start();
    const { status, body } = await get(`/v2/media/${event}/poster.svg${query}`);
    expect(status).toBe(200);
    expect(String(body)).toContain('<svg xmlns="http://www.w3.org/2000/svg" width="1280" height="720"');
  },
);

/** An event as the specification lets viewers see it, without any of the program's own ideas. */
interface Model {
  published: boolean;
  over: boolean;
  channelDeleted: boolean;
  mediaDeleted: boolean;
  expired: boolean;
}

const STEPS = ['publish', 'end', 'delete channel', 'delete media', 'expire', 'renew'] as const;
type Step = (typeof STEPS)[number];

/** Whether viewers may watch, and who holds the token of the preview. */
function rightsOf({ published, over, mediaDeleted, expired }: Model): { viewer: boolean; preview: boolean } {
  if (!over) return { viewer: published, preview: true };
  return { viewer: published && !mediaDeleted && !expired, preview: false };
}

test('asks the packager for what may be watched now and for nothing else, whatever happened before', async () => {
  const packager = await startFakePackager();
  const delivery = await startDelivery({ EMULATOR_PACKAGERURL: packager.url });
  const { createChannel, connect, disconnect, advance, admin, site, context, unauthenticated } = delivery;
  const forwarded = () => packager.calls.filter(({ path }) => path.startsWith('/media/')).length;

  async function take(step: Step, model: Model, ids: { channel: string; event: string; key: string }) {
    const ofMedia = `${site}/media/${ids.event}/`;
    const patch = (publish_end_date: string | null) =>
      admin.patch(ofMedia).send({ metadata: { publish_end_date } });
    const hasMedia = model.over && !model.mediaDeleted;
    if (step === 'publish') {
      await admin.put(`${site}/channels/${ids.channel}/events/${ids.event}/publish/`);
      if (!model.over) model.published = true;
    } else if (step === 'end' && !model.over) {
      await disconnect({ stream_key: ids.key });
      await advance(1);
      model.over = true;
    } else if (step === 'delete channel' && !model.channelDeleted) {
      await admin.delete(`${site}/channels/${ids.channel}/`).expect(204);
      Object.assign(model, { channelDeleted: true, over: true });
    } else if (step === 'delete media') {
      await admin.delete(ofMedia).expect(hasMedia ? 204 : 404);
      model.mediaDeleted ||= hasMedia;
    } else if (step === 'expire' && hasMedia) {
      await patch('2029-01-01T00:00:00Z').expect(200);
      model.expired = true;
    } else if (step === 'renew' && hasMedia) {
      await patch(null).expect(200);
      model.expired = false;
    }
  }

  const steps = fc.array(fc.constantFrom(...STEPS), { minLength: 1, maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(
      steps,
      fc.constantFrom('hls/master.m3u8', 'hls/part-1/video_1.m4s', 'dash/manifest.mpd'),
      async (taken, file) => {
        const { id: channel, stream_key: key } = await createChannel({
          publishing_mode: 'manual',
          reconnect_window: 0,
        });
        const event = await connect({ stream_key: key });
        await until(() => context.packaging.deliverable(event) !== undefined);
        packager.media.set(`/media/${event}/${file}`, { type: 'text/plain', body: 'x' });
        const token = context.state.events.find(event)?.previewToken;
        const model: Model = {
          published: false,
          over: false,
          channelDeleted: false,
          mediaDeleted: false,
          expired: false,
        };
        for (const step of taken) {
          await take(step, model, { channel, event, key });
          const { viewer, preview } = rightsOf(model);
          const before = forwarded();
          const statuses = [];
          for (const place of [`/live/events/${event}`, `/manifests/${event}`, `/live/previews/${token}`])
            statuses.push((await unauthenticated.get(`${place}/${file}`)).status);
          const wanted = [viewer, viewer, preview];
          expect([step, statuses]).toEqual([step, wanted.map((may) => (may ? 200 : 404))]);
          expect(forwarded() - before).toBe(wanted.filter(Boolean).length);
        }
      },
    ),
    {
      numRuns: 12,
      examples: [
        [['publish', 'delete channel', 'expire', 'renew'], 'hls/part-1/video_1.m4s'],
        [['end', 'publish'], 'dash/manifest.mpd'],
      ],
    },
  );
});
