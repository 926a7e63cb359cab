import fc from 'fast-check';
import { NOTHING, startDelivery, type TestDelivery } from '../../../support/start-delivery';

let delivery: TestDelivery;
let media: string;
/** Every address at which something of the media can be had. */
let paths: readonly string[];
let playlists: readonly string[];

beforeEach(async () => {
  delivery = await startDelivery();
  const { film, poster, track, playlist } = delivery;
  const made = await film({ title: 'Secret harbour', tags: ['hidden'] });
  media = made.media;
  const thumbnail = await poster(media, 'GIF89a\x01\x00\x01\x00', 'image/gif');
  const text = await track(media, {}, 'WEBVTT\n');
  paths = [
    `/v2/media/${media}`,
    `/v2/media/${media}/`,
    `/v2/media/${media}?format=mrss`,
    `/v2/media/${media}/poster.jpg`,
    `/v2/media/${media}/poster.svg?width=320`,
    `/manifests/${media}.m3u8`,
    `/live/events/${media}.m3u8`,
    `/videos/${media}-${made.rendition}.mp4`,
    `/thumbnails/${thumbnail}`,
    `/thumbnails/${thumbnail}.jpg`,
    `/tracks/${text}.vtt`,
  ];
  playlists = [
    `/v2/playlists/${await playlist('manual_playlist', { media_filter: { include: { values: [media] } } })}`,
    `/v2/playlists/${await playlist('dynamic_playlist')}`,
    `/v2/playlists/${await playlist('trending_playlist')}`,
    `/v2/playlists/${await playlist('recommendations_playlist')}`,
    `/v2/playlists/${await playlist('search_playlist')}?search=harbour`,
    `/v2/playlists/${await playlist('search_playlist')}?search=harbour&backfill=true&format=mrss`,
    `/v2/playlists/${await playlist('article_matching_playlist')}?search=harbour`,
  ];
});

const change = (metadata: object) =>
  delivery.admin.patch(`/v2/sites/${delivery.siteId}/media/${media}/`).send({ metadata }).expect(200);

async function expectHidden(): Promise<void> {
  for (const path of paths) expect({ path, ...(await delivery.get(path)) }).toEqual({ path, ...NOTHING });
  for (const path of playlists) {
    const response = await asked(path);
    const text = await response.text();
    const leaks = text.includes(media) || text.includes('Secret');
    expect({ path, status: response.status, leaks }).toEqual({ path, status: 200, leaks: false });
  }
}

async function expectShown(): Promise<void> {
  for (const path of paths)
    expect({ path, status: (await asked(path)).status }).toEqual({ path, status: 200 });
  for (const path of playlists) {
    const text = await (await asked(path)).text();
    expect({ path, has: text.includes(media) }).toEqual({ path, has: true });
  }
}

const asked = (path: string) => fetch(`${delivery.url}${path}`);

test('nothing of a media is delivered when it is deleted', async () => {
  await delivery.admin.delete(`/v2/sites/${delivery.siteId}/media/${media}/`).expect(204);
  await expectHidden();
});

test('what is related to a hidden media tells nothing of its tags', async () => {
  const { external, playlist, titlesOf } = delivery;
  await external({ title: 'Alike', tags: ['hidden'] });
  await external({ title: 'Newer' });
  const feed = await playlist('recommendations_playlist', { media_limit: 1 });
  expect(await titlesOf(feed, `?related_media_id=${media}`)).toEqual(['Alike']);
  await change({ publish_end_date: '2030-01-01T00:00:00Z' });
  expect(await titlesOf(feed, `?related_media_id=${media}`)).toEqual(['Newer']);
});

test('viewers keep what they have while a media gets another content', async () => {
  const { body } = await delivery.admin
    .put(`/v2/sites/${delivery.siteId}/media/${media}/reupload/`)
    .send({ upload: {} })
    .expect(200);
  await expectShown();
  await delivery.send(body.upload_link, Buffer.from('another'));
  for (const path of paths.slice(0, 6)) expect((await asked(path)).status).toBe(200);
});

test('a media is delivered exactly while its dates allow it, at every address', async () => {
  const minutes = fc.integer({ min: -3000, max: 3000 });
  const start = Date.parse('2030-01-01T00:00:00Z');
  const at = (minute: number) => new Date(start + minute * 60_000).toISOString();
  await fc.assert(
    fc.asyncProperty(minutes, fc.option(minutes), async (from, to) => {
      const publish_end_date = to === null ? null : at(to);
      await change({ publish_start_date: at(from), publish_end_date });
      const now = delivery.context.clock.now().getTime();
      const isShown = Date.parse(at(from)) <= now && (to === null || now < Date.parse(at(to)));
      for (const path of paths)
        expect({ path, status: (await asked(path)).status }).toEqual({ path, status: isShown ? 200 : 404 });
      for (const path of playlists)
        expect({ path, has: (await (await asked(path)).text()).includes(media) }).toEqual({
          path,
          has: isShown,
        });
    }),
    { numRuns: 15 },
  );
});
