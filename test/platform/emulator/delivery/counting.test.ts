import { startDelivery, type TestDelivery } from '../../../support/start-delivery';
import { FILM } from '../../../support/start-library';
import { until } from '../../../support/until';

let delivery: TestDelivery;
let film: { readonly media: string; readonly rendition: string };
let video: string;

beforeEach(async () => {
  delivery = await startDelivery();
  film = await delivery.film();
  video = `/videos/${film.media}-${film.rendition}.mp4`;
});

async function usedOn(date = '2030-01-01') {
  const { body } = await delivery.admin
    .put(`/v2/sites/${delivery.siteId}/query_usage/`)
    .send({ start_date: date, end_date: date })
    .expect(200);
  const [{ deliveries, delivered_bytes: bytes }] = body.results;
  return { deliveries, bytes };
}

const views = () => delivery.context.state.media.find(film.media)?.views;
const asked = async (path: string, init: RequestInit = {}) => {
  const response = await fetch(`${delivery.url}${path}`, init);
  await response.arrayBuffer();
};
/** An answer is counted when it is over, which its reader may learn earlier. */
const untilCounted = (wanted: object) =>
  until(async () => JSON.stringify(await usedOn()) === JSON.stringify(wanted));

test('counts documents that viewers get, on the day they get them', async () => {
  const playlist = await delivery.playlist('trending_playlist');
  await asked(`/v2/media/${film.media}`);
  await asked(`/v2/media/${film.media}?format=mrss`);
  await asked(`/v2/playlists/${playlist}`);
  expect(await usedOn()).toEqual({ deliveries: 3, bytes: 0 });
  expect(views()).toBe(2);
  await delivery.advance(24 * 3600);
  await asked(`/v2/media/${film.media}`);
  expect(await usedOn()).toEqual({ deliveries: 3, bytes: 0 });
  expect(await usedOn('2030-01-02')).toEqual({ deliveries: 1, bytes: 0 });
});

test('does not count HEAD, preflights, refusals and what is not there', async () => {
  const playlist = await delivery.playlist('trending_playlist');
  const paths = [
    `/v2/media/${film.media}`,
    `/v2/playlists/${playlist}`,
    video,
    `/v2/media/${film.media}/poster.svg`,
  ];
  for (const path of paths) for (const method of ['HEAD', 'OPTIONS', 'POST']) await asked(path, { method });
  for (const path of [
    `/v2/media/${film.media}?format=x`,
    `/v2/playlists/${playlist}?page_limit=x`,
    '/v2/media/nowhere0',
  ])
    await asked(path);
  await asked(video, { headers: { range: `bytes=${FILM.length}-` } });
  const { headers } = await fetch(`${delivery.url}${video}`, { method: 'HEAD' });
  await delivery.unauthenticated
    .get(video)
    .set('if-none-match', String(headers.get('etag')))
    .expect(304);
  await asked(video, { headers: { range: 'bytes=0-0' } });
  await untilCounted({ deliveries: 0, bytes: 1 });
  expect(views()).toBe(1);
});

test('counts the bytes that viewers get, and a view with the beginning of the file', async () => {
  await asked(video);
  await untilCounted({ deliveries: 0, bytes: FILM.length });
  await asked(video, { headers: { range: 'bytes=0-99' } });
  await asked(video, { headers: { range: 'bytes=100-199' } });
  await asked(video, { headers: { range: 'bytes=-50' } });
  await untilCounted({ deliveries: 0, bytes: FILM.length + 250 });
  expect(views()).toBe(2);
});

test('counts the bytes of pictures and text tracks, which are no views', async () => {
  const track = await delivery.track(film.media, {}, 'WEBVTT\n\n');
  await asked(`/tracks/${track}.vtt`);
  await untilCounted({ deliveries: 0, bytes: 8 });
  const picture = await fetch(`${delivery.url}/v2/media/${film.media}/poster.svg`);
  const { byteLength } = await picture.arrayBuffer();
  await untilCounted({ deliveries: 0, bytes: 8 + byteLength });
  expect(views()).toBe(0);
});

test('counts no more than the file of a viewer who goes away', async () => {
  const large = await delivery.film({}, Buffer.alloc(20_000_000));
  const controller = new AbortController();
  const response = await fetch(`${delivery.url}/videos/${large.media}-${large.rendition}.mp4`, {
    signal: controller.signal,
  });
  await response.body?.getReader().read();
  controller.abort();
  await until(async () => (await usedOn()).bytes > 0);
  expect((await usedOn()).bytes).toBeLessThan(20_000_000);
});
