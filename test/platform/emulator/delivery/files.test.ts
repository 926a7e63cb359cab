import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onceForAll } from '../../../support/after-test';
import { NOTHING, startDelivery, type TestDelivery } from '../../../support/start-delivery';
import { FILM } from '../../../support/start-library';
import { until } from '../../../support/until';

let delivery: TestDelivery;
let path: string;
let media: string;

async function start() {
  const delivery = await startDelivery();
  const { media, rendition } = await delivery.film();
  return { delivery, media, path: `/videos/${media}-${rendition}.mp4` };
}

const shared = onceForAll(start);

const asked = (headers: Readonly<Record<string, string>> = {}, asks = path) =>
  fetch(`${delivery.url}${asks}`, { headers });

const bytesOf = async (response: Response) => Buffer.from(await response.arrayBuffer());

describe('a file', () => {
  beforeEach(async () => {
    ({ delivery, media, path } = await shared());
  });

  test('sends a rendition byte for byte, for players of every origin, to be asked for again each time', async () => {
    const response = await asked();
    expect(response.status).toBe(200);
    expect((await bytesOf(response)).equals(FILM)).toBe(true);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'video/mp4',
      'content-length': String(FILM.length),
      'accept-ranges': 'bytes',
      'cache-control': 'no-cache',
      etag: expect.stringMatching(/^"[0-9a-f]{32}"$/),
      'x-content-type-options': 'nosniff',
      'access-control-allow-origin': '*',
      'access-control-expose-headers': 'accept-ranges, content-length, content-range, etag',
      'cross-origin-resource-policy': 'cross-origin',
      'content-security-policy': expect.stringMatching(/^default-src 'none';.*;sandbox$/),
    });
    expect(response.headers.has('last-modified')).toBe(false);
  });

  test.each([
    ['bytes=0-9', 0, 10],
    ['bytes=-20', FILM.length - 20, FILM.length],
  ])('sends the range %s alone', async (range, start, end) => {
    const response = await asked({ range });
    expect(response.status).toBe(206);
    expect(response.headers.get('content-range')).toBe(`bytes ${start}-${end - 1}/${FILM.length}`);
    expect((await bytesOf(response)).equals(FILM.subarray(start, end))).toBe(true);
  });

  test('answers 416 with the length to a range behind the end', async () => {
    const response = await asked({ range: `bytes=${FILM.length}-` });
    expect(response.status).toBe(416);
    expect(await response.json()).toEqual({ message: 'The file has no such range of bytes.' });
    expect(response.headers.get('content-range')).toBe(`bytes */${FILM.length}`);
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  });

  test('answers 304 to who has the file, 412 to who wants another version, and the whole when the rest is of another', async () => {
    const { headers } = await asked();
    const etag = String(headers.get('etag'));
    // The client of Node asks for a fresh answer.
    const same = await delivery.unauthenticated.get(path).set('if-none-match', etag);
    expect({ status: same.status, length: same.headers['content-length'] }).toEqual({ status: 304 });
    const other = await asked({ 'if-match': '"another"' });
    expect({ status: other.status, body: await other.json() }).toEqual({
      status: 412,
      body: { message: 'The file has changed.' },
    });
    expect((await asked({ range: 'bytes=5-', 'if-range': etag })).status).toBe(206);
    expect((await asked({ range: 'bytes=5-', 'if-range': '"another"' })).status).toBe(200);
  });

  test.each([
    ['vtt', 'text/vtt; charset=utf-8', null],
    ['srt', 'application/x-subrip; charset=utf-8', 'attachment'],
    ['ttml', 'application/ttml+xml; charset=utf-8', 'attachment'],
    ['html', 'text/plain; charset=utf-8', null],
  ])('sends a %s text track as %s, whatever ending is asked for', async (format, type, disposition) => {
    const text = '<script>alert(1)</script> äöü\n';
    const track = await delivery.track(media, {}, text, format);
    for (const ending of [format, 'vtt']) {
      const response = await asked({}, `/tracks/${track}.${ending}`);
      expect(response.status).toBe(200);
      expect(response.headers.get('content-type')).toBe(type);
      expect(response.headers.get('content-disposition')).toBe(disposition);
      expect(response.headers.get('content-security-policy')).toContain('sandbox');
      expect(response.headers.get('x-content-type-options')).toBe('nosniff');
      expect(await response.text()).toBe(text);
    }
  });

  test('sends a text track while it is published alone', async () => {
    const { admin, siteId, get } = delivery;
    const track = await delivery.track(media, {}, 'WEBVTT\n');
    const one = `/v2/sites/${siteId}/media/${media}/text_tracks/${track}`;
    await admin.put(`${one}/unpublish/`).expect(204);
    expect(await get(`/tracks/${track}.vtt`)).toEqual(NOTHING);
    expect(JSON.stringify((await get(`/v2/media/${media}`)).body)).not.toContain(track);
    await admin.put(`${one}/publish/`).expect(204);
    expect((await get(`/tracks/${track}.vtt`)).status).toBe(200);
  });

  test.each([
    '/videos/..%2F..%2Fetc-passwd.mp4',
    '/videos/MEDIA-00000001.mp4',
    '/videos/MEDIA-__proto__.mp4',
    '/tracks/..%2f..%2f..%2fetc%2fpasswd.vtt',
    '/tracks/%00.vtt',
    '/thumbnails/constructor',
  ])('answers 404 and no file at %s', async (pattern) => {
    const response = await asked({}, pattern.replace('MEDIA', media));
    expect(response.status).toBe(404);
    expect(await response.text()).not.toContain('root:');
  });

  test('does not send a rendition by the id of another media', async () => {
    const other = await delivery.film();
    expect(await delivery.get(path.replace(media, other.media))).toEqual(NOTHING);
  });

  test('answers 404 for a file that somebody has taken from the disk', async () => {
    const { context, film, get } = delivery;
    const { media, rendition } = await film();
    const file = context.state.media.find(media)?.file;
    if (file) await context.uploads.files.remove(file);
    expect(await get(`/videos/${media}-${rendition}.mp4`)).toEqual(NOTHING);
  });

  test('sends files of a folder whose name begins with a dot', async () => {
    const folder = mkdtempSync(join(tmpdir(), '.hidden folder#%41?-'));
    const hidden = await startDelivery({ EMULATOR_UPLOADSFOLDER: folder });
    const film = await hidden.film();
    const response = await fetch(`${hidden.url}/videos/${film.media}-${film.rendition}.mp4`);
    expect(response.status).toBe(200);
    expect((await bytesOf(response)).equals(FILM)).toBe(true);
    rmSync(folder, { recursive: true });
  });
});

async function usedOn(date = '2030-01-01') {
  const { body } = await delivery.admin
    .put(`/v2/sites/${delivery.siteId}/query_usage/`)
    .send({ start_date: date, end_date: date })
    .expect(200);
  const [{ deliveries, delivered_bytes: bytes }] = body.results;
  return { deliveries, bytes };
}

const views = () => delivery.context.state.media.find(media)?.views;
const read = async (path: string, init: RequestInit = {}) => {
  const response = await fetch(`${delivery.url}${path}`, init);
  await response.arrayBuffer();
};
/** An answer is counted when it is over, which its reader may learn earlier. */
const untilCounted = (wanted: object) =>
  until(async () => JSON.stringify(await usedOn()) === JSON.stringify(wanted));

describe('answers to viewers', () => {
  beforeEach(async () => {
    ({ delivery, media, path } = await start());
  });

  test('counts documents that viewers get, on the day they get them', async () => {
    const playlist = await delivery.playlist('trending_playlist');
    await read(`/v2/media/${media}`);
    await read(`/v2/media/${media}?format=mrss`);
    await read(`/v2/playlists/${playlist}`);
    expect(await usedOn()).toEqual({ deliveries: 3, bytes: 0 });
    expect(views()).toBe(2);
    await delivery.advance(24 * 3600);
    await read(`/v2/media/${media}`);
    expect(await usedOn()).toEqual({ deliveries: 3, bytes: 0 });
    expect(await usedOn('2030-01-02')).toEqual({ deliveries: 1, bytes: 0 });
  });

  test('does not count HEAD, preflights, refusals and what is not there', async () => {
    const playlist = await delivery.playlist('trending_playlist');
    const paths = [`/v2/media/${media}`, `/v2/playlists/${playlist}`, path, `/v2/media/${media}/poster.svg`];
    for (const path of paths) for (const method of ['HEAD', 'OPTIONS', 'POST']) await read(path, { method });
    const wrong = [`/v2/media/${media}?format=x`, `/v2/playlists/${playlist}?page_limit=x`];
    for (const path of [...wrong, '/v2/media/nowhere0']) await read(path);
    await read(path, { headers: { range: `bytes=${FILM.length}-` } });
    const { headers } = await fetch(`${delivery.url}${path}`, { method: 'HEAD' });
    const etag = String(headers.get('etag'));
    await delivery.unauthenticated.get(path).set('if-none-match', etag).expect(304);
    await read(path, { headers: { range: 'bytes=0-0' } });
    await untilCounted({ deliveries: 0, bytes: 1 });
    expect(views()).toBe(1);
  });

  test('counts the bytes that viewers get, and a view with the start of the file', async () => {
    await read(path);
    await untilCounted({ deliveries: 0, bytes: FILM.length });
    await read(path, { headers: { range: 'bytes=0-99' } });
    await read(path, { headers: { range: 'bytes=100-199' } });
    await read(path, { headers: { range: 'bytes=-50' } });
    await untilCounted({ deliveries: 0, bytes: FILM.length + 250 });
    expect(views()).toBe(2);
  });

  test('counts the bytes of pictures and text tracks, which are no views', async () => {
    const track = await delivery.track(media, {}, 'WEBVTT\n\n');
    await read(`/tracks/${track}.vtt`);
    await untilCounted({ deliveries: 0, bytes: 8 });
    const picture = await fetch(`${delivery.url}/v2/media/${media}/poster.svg`);
    const { byteLength } = await picture.arrayBuffer();
    await untilCounted({ deliveries: 0, bytes: 8 + byteLength });
    expect(views()).toBe(0);
  });

  test('counts no more than the file of a viewer who goes away', async () => {
    const large = await delivery.film({}, Buffer.alloc(8_000_000));
    const controller = new AbortController();
    const response = await fetch(`${delivery.url}/videos/${large.media}-${large.rendition}.mp4`, {
      signal: controller.signal,
    });
    await response.body?.getReader().read();
    controller.abort();
    await until(async () => (await usedOn()).bytes > 0);
    expect((await usedOn()).bytes).toBeLessThan(8_000_000);
  });
});
