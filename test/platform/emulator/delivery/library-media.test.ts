import { onceForAll } from '../../../support/after-test';
import {
  documentOf,
  NOTHING,
  posterFields,
  startDelivery,
  type TestDelivery,
} from '../../../support/start-delivery';
import { FILM } from '../../../support/start-library';

let delivery: TestDelivery;
let media: string;

const shared = onceForAll(() => startDelivery());

beforeEach(async () => {
  delivery = await shared();
  media = await delivery.external({ title: 'Harbour <at> dawn' });
});

const asked = (path: string, headers: Readonly<Record<string, string>> = {}) =>
  fetch(`${delivery.url}${path}`, { headers });

const METADATA = {
  title: 'Harbour at dawn',
  permalink: 'https://publisher.example/harbour',
  description: 'Boats leave.',
  tags: ['boats', 'sea'],
  custom_params: { sponsor: 'Acme' },
};

test('describes an uploaded media with its manifest, renditions, text tracks and custom parameters', async () => {
  const { film, track, url, unauthenticated } = delivery;
  const { media, rendition } = await film(METADATA);
  const german = await track(media, { label: 'Deutsch', srclang: 'de', position: 2 }, 'WEBVTT\n');
  const english = await track(media, { label: 'English', srclang: 'en', position: 1 }, 'WEBVTT\n');
  const chapters = await track(media, { track_kind: 'chapters', position: 3 }, 'WEBVTT\n');
  const { body, headers } = await unauthenticated.get(`/v2/media/${media}`).expect(200);
  const fields = {
    title: 'Harbour at dawn',
    description: 'Boats leave.',
    link: 'https://publisher.example/harbour',
    duration: 2,
    tags: 'boats,sea',
    sources: [
      { file: `${url}/manifests/${media}.m3u8`, type: 'application/vnd.apple.mpegurl' },
      {
        ...{ file: `${url}/videos/${media}-${rendition}.mp4`, type: 'video/mp4', height: 36, width: 64 },
        ...{ label: '36p', bitrate: FILM.length * 4, filesize: FILM.length },
      },
    ],
    tracks: [
      { kind: 'captions', file: `${url}/tracks/${english}.vtt`, label: 'English', language: 'en' },
      { kind: 'captions', file: `${url}/tracks/${german}.vtt`, label: 'Deutsch', language: 'de' },
      { kind: 'chapters', file: `${url}/tracks/${chapters}.vtt` },
    ],
    sponsor: 'Acme',
  };
  expect(body).toEqual(documentOf(url, media, fields));
  expect(headers).toMatchObject({ 'access-control-allow-origin': '*', 'cache-control': 'no-store' });
});

test('describes external content by its own address, and a media of which little is said with every field', async () => {
  const { external, get, url } = delivery;
  const file = 'https://cdn.example/live/master.m3u8?session=1';
  const media = await external({}, file);
  const sources = { sources: [{ file, type: 'application/vnd.apple.mpegurl' }] };
  expect(await get(`/v2/media/${media}/`)).toEqual({ status: 200, body: documentOf(url, media, sources) });
  expect(await get(`/manifests/${media}.m3u8`)).toEqual(NOTHING);
});

test('says of content of an unfit type that it is a video, which no browser shows as a page', async () => {
  const { film, post, advance, unauthenticated } = delivery;
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
  const { post, external, unauthenticated, siteId, admin } = delivery;
  const id = await external({ ...METADATA, custom_params: {} });
  const [item] = (await unauthenticated.get(`/v2/media/${id}`)).body.playlist;
  const metadata = { title: 'Mine', media_filter: { include: { values: [id] } } };
  const playlist = (await post('/playlists/manual_playlist/', { metadata })).id;
  const ofPlaylist = ['kind', 'links', 'playlist', 'feedid', 'feed_instance_id'];
  const names = [...Object.keys(item), ...ofPlaylist, 'constructor', 'toString', 'own'];
  const custom_params = Object.fromEntries(names.map((name) => [name, 'forged']));
  for (const path of [`media/${id}/`, `playlists/${playlist}/manual_playlist/`])
    await admin.patch(`/v2/sites/${siteId}/${path}`).send({ metadata: { custom_params } }).expect(200);
  const single = await unauthenticated.get(`/v2/media/${id}`).expect(200);
  expect(single.body.playlist[0]).toMatchObject({ ...item, own: 'forged' });
  expect(single.body.playlist[0]).not.toHaveProperty('feedid');
  const list = await unauthenticated.get(`/v2/playlists/${playlist}`).expect(200);
  expect(list.body.playlist[0]).toMatchObject({ ...item, feedid: playlist });
  expect(list.body).toMatchObject({ title: 'Mine', feedid: playlist, kind: 'MANUAL', own: 'forged' });
  expect(list.body).toMatchObject({
    links: expect.any(Object),
    feed_instance_id: expect.not.stringMatching('forged'),
  });
});

test('answers 400 to an unknown format', async () => {
  const answer = await delivery.get(`/v2/media/${media}?format=xml`);
  expect(answer).toEqual({ status: 400, body: { message: 'format: must be json or mrss.' } });
});

test('answers 405 to another method than GET', async () => {
  const { unauthenticated } = delivery;
  const documents = ['/live/channels/a.json', '/v2/media/a', '/v2/playlists/a'];
  const files = ['/videos/a-b.mp4', '/tracks/a.vtt', '/thumbnails/a'];
  for (const path of [...documents, ...files, '/embed/channel.html', '/embed/media.html'])
    await unauthenticated.post(path).expect('allow', 'GET, HEAD').expect(405);
  await unauthenticated.post('/embed/channel.js').expect('allow', 'GET, HEAD').expect(405);
});

/** The smallest picture that each format allows. */
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
const GIF = Buffer.from('R0lGODlhAQABAAAAACwAAAAAAQABAAACAkQBADs=', 'base64');
const SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(document.domain)</script></svg>';
const PAGE = '<!doctype html><script>alert(document.domain)</script>';

test.each([
  ['png', PNG, 'image/png'],
  ['gif', GIF, 'image/gif'],
  ['svg', Buffer.from(SVG), 'image/svg+xml'],
])(
  'serves an uploaded %s as the poster under every ending, and says so in documents',
  async (ending, bytes, type) => {
    const thumbnail = await delivery.poster(media, bytes, 'image/jpeg');
    const poster = `${delivery.url}/v2/media/${media}/poster.${ending}`;
    const { body } = await delivery.unauthenticated.get(`/v2/media/${media}`);
    expect(body.playlist[0]).toMatchObject(posterFields(poster, type));
    for (const path of [
      `/v2/media/${media}/poster.${ending}?width=320`,
      `/v2/media/${media}/poster.jpg?width=720`,
      `/v2/media/${media}/poster.svg`,
      `/thumbnails/${thumbnail}`,
      `/thumbnails/${thumbnail}.jpg?width=64`,
    ]) {
      const response = await asked(path);
      expect({ path, status: response.status, type: response.headers.get('content-type') }).toEqual({
        path,
        status: 200,
        type,
      });
      expect(Buffer.from(await response.arrayBuffer()).equals(bytes)).toBe(true);
      expect(Object.fromEntries(response.headers)).toMatchObject({
        'access-control-allow-origin': '*',
        'x-content-type-options': 'nosniff',
        'content-security-policy': expect.stringMatching(/^default-src 'none';.*;sandbox$/),
      });
    }
    expect((await asked(`/thumbnails/${thumbnail}`, { range: 'bytes=1-3' })).status).toBe(206);
  },
);

test('draws a poster with the title for a media that has no picture of its own, as wide as asked', async () => {
  for (const ending of ['svg', 'jpg', 'jpeg', 'png', 'webp', 'gif', 'avif']) {
    const response = await asked(`/v2/media/${media}/poster.${ending}?width=320`);
    expect({ ending, type: response.headers.get('content-type') }).toEqual({
      ending,
      type: 'image/svg+xml; charset=utf-8',
    });
    const text = await response.text();
    expect(text).toContain('width="320" height="180"');
    expect(text).toContain('Harbour &#60;at&#62; dawn');
  }
});

test('draws the picture that is taken from a media', async () => {
  const upload = { source_type: 'video_position', source_media_id: media, video_position: 1 };
  const { id } = await delivery.post('/thumbnails/', { upload });
  const response = await asked(`/thumbnails/${id}.jpg?width=640`);
  expect(response.headers.get('content-type')).toBe('image/svg+xml; charset=utf-8');
  expect(await response.text()).toContain('width="640" height="360"');
});

test.each(['text/html', 'image/x', 'text/html; charset=ü', 'image/png', 'image/svg+xml;x'])(
  'never serves an uploaded page as one, though it is said to be %s',
  async (mime_type) => {
    const relationships = { media: [{ id: media, is_poster: true }] };
    const { id, upload_link } = await delivery.post('/thumbnails/', { upload: { mime_type }, relationships });
    await delivery.send(upload_link, Buffer.from(PAGE));
    const response = await asked(`/thumbnails/${id}.html`);
    expect(response.status).toBe(200);
    const headers = Object.fromEntries(response.headers);
    expect(headers).toMatchObject({
      'content-security-policy': expect.stringMatching(/^default-src 'none';.*;sandbox$/),
      'x-content-type-options': 'nosniff',
    });
    // A file that is declared as a picture is shown as one, or not at all.
    const [said = ''] = mime_type.split(';');
    if (['image/png', 'image/svg+xml'].includes(said)) expect(headers['content-type']).toBe(said);
    else {
      expect(headers['content-type']).toBe('application/octet-stream');
      expect(headers['content-disposition']).toBe('attachment');
      // A player gets a picture.
      const poster = await asked(`/v2/media/${media}/poster.jpg`);
      expect(poster.headers.get('content-type')).toBe('image/svg+xml; charset=utf-8');
    }
  },
);

test('serves a moving thumbnail as the video it is, and draws the poster', async () => {
  const { post, send, admin, siteId, advance } = delivery;
  const relationships = { media: [{ id: media, is_poster: true }] };
  const upload = { thumbnail_type: 'video' };
  const { id, upload_link } = await post('/thumbnails/', { upload, relationships });
  expect(await delivery.get(`/thumbnails/${id}`)).toEqual(NOTHING);
  await send(upload_link, FILM);
  await advance(1);
  expect((await admin.get(`/v2/sites/${siteId}/thumbnails/${id}/`)).body.status).toBe('ready');
  expect((await asked(`/thumbnails/${id}.mp4`)).headers.get('content-type')).toBe('video/mp4');
  const poster = await asked(`/v2/media/${media}/poster.jpg`);
  expect(poster.headers.get('content-type')).toBe('image/svg+xml; charset=utf-8');
});

test('answers 404 for a poster of another kind, and for a thumbnail of no media', async () => {
  const { id, upload_link } = await delivery.post('/thumbnails/', { upload: {} });
  await delivery.send(upload_link, PNG);
  for (const path of [`/v2/media/${media}/poster.mp4`, `/v2/media/${media}/poster.html`, `/thumbnails/${id}`])
    expect({ path, ...(await delivery.get(path)) }).toEqual({ path, ...NOTHING });
});
