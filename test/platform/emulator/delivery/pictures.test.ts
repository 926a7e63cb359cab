import { NOTHING, startDelivery, type TestDelivery } from '../../../support/start-delivery';
import { FILM } from '../../../support/start-library';

/** The smallest picture that each format allows. */
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
const GIF = Buffer.from('R0lGODlhAQABAAAAACwAAAAAAQABAAACAkQBADs=', 'base64');
const SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(document.domain)</script></svg>';
const PAGE = '<!doctype html><script>alert(document.domain)</script>';

let delivery: TestDelivery;
let media: string;

beforeEach(async () => {
  delivery = await startDelivery();
  media = await delivery.external({ title: 'Harbour <at> dawn' });
});

const asked = (path: string, headers: Readonly<Record<string, string>> = {}) =>
  fetch(`${delivery.url}${path}`, { headers });

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
    const images = [320, 640, 1280].map((width) => ({ src: `${poster}?width=${width}`, width, type }));
    expect(body.playlist[0]).toMatchObject({ image: poster, images });
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

test('takes the poster that was chosen last, and draws one when it is deleted', async () => {
  const { admin, siteId, poster } = delivery;
  const first = await poster(media, PNG);
  const second = await poster(media, GIF);
  const typeOf = async () => (await asked(`/v2/media/${media}/poster.jpg`)).headers.get('content-type');
  expect(await typeOf()).toBe('image/gif');
  const relationships = { media: [{ id: media, is_poster: true }] };
  await admin.patch(`/v2/sites/${siteId}/thumbnails/${first}/`).send({ relationships }).expect(200);
  expect(await typeOf()).toBe('image/png');
  for (const id of [first, second]) await admin.delete(`/v2/sites/${siteId}/thumbnails/${id}/`).expect(204);
  expect(await typeOf()).toBe('image/svg+xml; charset=utf-8');
});

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

test.each([
  'text/html',
  'application/xhtml+xml',
  'image/svg+xml;x',
  'image/x',
  'text/html; charset=ü',
  'image/png',
])('never serves an uploaded page as one, though it is said to be %s', async (mime_type) => {
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
  // What is said to be a picture is shown as one, or not at all.
  const [said = ''] = mime_type.split(';');
  if (['image/png', 'image/svg+xml'].includes(said)) expect(headers['content-type']).toBe(said);
  else {
    expect(headers['content-type']).toBe('application/octet-stream');
    expect(headers['content-disposition']).toBe('attachment');
    // A player gets a picture.
    const poster = await asked(`/v2/media/${media}/poster.jpg`);
    expect(poster.headers.get('content-type')).toBe('image/svg+xml; charset=utf-8');
  }
});

test('serves a moving thumbnail as the video it is, and draws the poster beside it', async () => {
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
