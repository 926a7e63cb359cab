import fc from 'fast-check';
import { NOTHING, startDelivery } from '../../../support/start-delivery';
import { FILM } from '../../../support/start-library';

/** 2030-01-01T00:00:00Z, when the test's clock stands at its start. */
const START = 1_893_456_000;

const METADATA = {
  title: 'Harbour at dawn',
  description: 'Boats leave.',
  tags: ['boats', 'sea'],
  custom_params: { sponsor: 'Acme' },
};

test('describes an uploaded media with its manifest, renditions, text tracks and custom parameters', async () => {
  const { film, track, url, unauthenticated } = await startDelivery();
  const { media, rendition } = await film(METADATA);
  const german = await track(media, { label: 'Deutsch', srclang: 'de', position: 2 }, 'WEBVTT\n');
  const english = await track(media, { label: 'English', srclang: 'en', position: 1 }, 'WEBVTT\n');
  const chapters = await track(media, { track_kind: 'chapters', position: 3 }, 'WEBVTT\n');
  const { body, headers } = await unauthenticated.get(`/v2/media/${media}`).expect(200);
  const poster = `${url}/v2/media/${media}/poster.svg`;
  expect(body).toEqual({
    title: 'Harbour at dawn',
    description: 'Boats leave.',
    kind: 'Single Item',
    playlist: [
      {
        title: 'Harbour at dawn',
        mediaid: media,
        link: `${url}/v2/media/${media}`,
        image: poster,
        images: [320, 640, 1280].map((width) => ({
          src: `${poster}?width=${width}`,
          width,
          type: 'image/svg+xml',
        })),
        duration: 2,
        pubdate: START,
        description: 'Boats leave.',
        tags: 'boats,sea',
        sources: [
          { file: `${url}/manifests/${media}.m3u8`, type: 'application/vnd.apple.mpegurl' },
          {
            file: `${url}/videos/${media}-${rendition}.mp4`,
            type: 'video/mp4',
            height: 36,
            width: 64,
            label: '36p',
            bitrate: FILM.length * 4,
            filesize: FILM.length,
          },
        ],
        tracks: [
          { kind: 'captions', file: `${url}/tracks/${english}.vtt`, label: 'English', language: 'en' },
          { kind: 'captions', file: `${url}/tracks/${german}.vtt`, label: 'Deutsch', language: 'de' },
          { kind: 'chapters', file: `${url}/tracks/${chapters}.vtt` },
        ],
        variations: {},
        sponsor: 'Acme',
      },
    ],
    feed_instance_id: expect.stringMatching(/./),
  });
  expect(headers).toMatchObject({ 'access-control-allow-origin': '*', 'cache-control': 'no-store' });
});

test('describes external content by its own address, and a media of which little is said with every field', async () => {
  const { external, url, get } = await startDelivery();
  const media = await external({}, 'https://cdn.example/live/master.m3u8?session=1');
  const poster = `${url}/v2/media/${media}/poster.svg`;
  expect(await get(`/v2/media/${media}/`)).toEqual({
    status: 200,
    body: {
      title: '',
      description: '',
      kind: 'Single Item',
      playlist: [
        {
          title: '',
          mediaid: media,
          link: `${url}/v2/media/${media}`,
          image: poster,
          images: [320, 640, 1280].map((width) => ({
            src: `${poster}?width=${width}`,
            width,
            type: 'image/svg+xml',
          })),
          duration: 0,
          pubdate: START,
          description: '',
          tags: '',
          sources: [
            {
              file: 'https://cdn.example/live/master.m3u8?session=1',
              type: 'application/vnd.apple.mpegurl',
            },
          ],
          tracks: [],
          variations: {},
        },
      ],
      feed_instance_id: expect.stringMatching(/./),
    },
  });
  expect(await get(`/manifests/${media}.m3u8`)).toEqual(NOTHING);
});

test('links to the page of a media that has one', async () => {
  const { external, unauthenticated } = await startDelivery();
  const media = await external({ permalink: 'https://publisher.example/harbour' });
  const { body } = await unauthenticated.get(`/v2/media/${media}`);
  expect(body.playlist[0].link).toBe('https://publisher.example/harbour');
});

test('says of content of an unfit type that it is a video, which no browser shows as a page', async () => {
  const { film, post, advance, unauthenticated } = await startDelivery();
  const { media, rendition } = await film({}, Buffer.from('<script>alert(1)</script>'));
  const { headers } = await unauthenticated.get(`/videos/${media}-${rendition}.mp4`).expect(200);
  expect(headers['content-type']).toBe('video/mp4');
  const { body } = await unauthenticated.get(`/v2/media/${media}`);
  const file = expect.stringContaining(rendition);
  expect(body.playlist[0].sources[1]).toEqual({ file, type: 'video/mp4', label: 'Original', filesize: 25 });
  const source_url = 'https://cdn.example/page';
  const upload = { method: 'external', source_url, mime_type: 'text/html' };
  const { id } = await post('/media/', { metadata: {}, upload });
  await advance(5);
  const external = await unauthenticated.get(`/v2/media/${id}`).expect(200);
  expect(external.body.playlist[0].sources).toEqual([{ file: source_url, type: 'video/mp4' }]);
});

test('no custom parameter takes the place of a field, whatever its name', async () => {
  const { post, external, context, unauthenticated, siteId, admin } = await startDelivery();
  const media = await external({ ...METADATA, custom_params: {} });
  const { body: before } = await unauthenticated.get(`/v2/media/${media}`);
  const [item] = before.playlist;
  const fields = [...Object.keys(item), 'feedid', 'constructor', 'toString'];
  const playlist = (
    await post('/playlists/manual_playlist/', {
      metadata: { title: 'Mine', media_filter: { include: { values: [media] } } },
    })
  ).id;
  const name = fc.oneof(fc.constantFrom(...fields), fc.string({ minLength: 1, maxLength: 20 }));
  // That name is refused.
  const taken = name.filter((each) => each !== '__proto__');
  const params = fc.uniqueArray(fc.tuple(taken, fc.string({ maxLength: 10 })), {
    maxLength: 8,
    selector: ([key]) => key,
  });
  await fc.assert(
    fc.asyncProperty(params, async (pairs) => {
      const body = `{"metadata":{"custom_params":{${pairs
        .map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`)
        .join()}}}}`;
      for (const path of [`media/${media}/`, `playlists/${playlist}/manual_playlist/`])
        await admin.patch(`/v2/sites/${siteId}/${path}`).type('json').send(body).expect(200);
      const single = await unauthenticated.get(`/v2/media/${media}`).expect(200);
      expect(single.body.playlist[0]).toMatchObject(item);
      expect(single.body.playlist[0]).not.toHaveProperty('feedid');
      const list = await unauthenticated.get(`/v2/playlists/${playlist}`).expect(200);
      expect(list.body.playlist[0]).toMatchObject({ ...item, feedid: playlist });
      expect(list.body).toMatchObject({ title: 'Mine', feedid: playlist, kind: 'MANUAL' });
      expect(typeof list.body.links).toBe('object');
      for (const [key, value] of pairs) {
        if (!fields.includes(key)) expect(single.body.playlist[0][key]).toBe(value);
      }
    }),
    { numRuns: 60 },
  );
  expect(context.state.media.find(media)?.metadata.title).toBe('Harbour at dawn');
});

test.each([
  ['format=xml', 'format: must be json or mrss.'],
  ['format=json&format=mrss', 'format: must be json or mrss.'],
])('answers 400 to ?%s', async (query, message) => {
  const { external, get } = await startDelivery();
  expect(await get(`/v2/media/${await external()}?${query}`)).toEqual({ status: 400, body: { message } });
});

test('answers 405 to another method than GET', async () => {
  const { unauthenticated } = await startDelivery();
  for (const path of [
    '/v2/media/a',
    '/v2/playlists/a',
    '/videos/a-b.mp4',
    '/tracks/a.vtt',
    '/thumbnails/a',
  ]) {
    const { status, headers } = await unauthenticated.post(path);
    expect({ path, status, allow: headers.allow }).toEqual({ path, status: 405, allow: 'GET' });
  }
});
