import fc from 'fast-check';
import { parseXml, type XmlElement } from '../../../../src/drm/xml';
import { anyCharacter } from '../../../support/any-character';
import { right } from '../../../support/right';
import { NOTHING, startDelivery, type TestDelivery } from '../../../support/start-delivery';
import { FILM } from '../../../support/start-library';

describe('the parts of a media for viewers', () => {
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

  test('media related to a hidden media show nothing of its tags', async () => {
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
    for (const path of paths.slice(0, 5)) expect((await asked(path)).status).toBe(200);
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
        await (isShown ? expectShown() : expectHidden());
      }),
      { numRuns: 8 },
    );
  });
});

describe('Media RSS', () => {
  let delivery: TestDelivery;

  beforeEach(async () => {
    delivery = await startDelivery();
  });

  /** Reads a document as XML. @throws when it isn't well-formed. */
  const parsed = (xml: string): XmlElement => right(parseXml(xml)).value;

  async function mrssOf(path: string): Promise<string> {
    const response = await fetch(`${delivery.url}${path}`);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/rss+xml; charset=utf-8');
    expect(response.headers.get('access-control-allow-origin')).toBe('*');
    return response.text();
  }

  test('writes a playlist as Media RSS, with the extensions that the player reads', async () => {
    const { film, external, track, playlist, url } = delivery;
    const { media, rendition } = await film({
      title: 'Boats & <ships>',
      description: '"Out" at sea',
      tags: ['boats', 'R&D'],
      custom_params: { sponsor: 'A & B', 'two words': 'no element', image: 'forged' },
    });
    const captions = await track(media, { label: 'English "US"', srclang: 'en' }, 'WEBVTT\n');
    const published = { publish_start_date: '2029-12-31T23:59:58Z' };
    const other = await external(published, 'https://cdn.example/a.m3u8?x=1&y=2');
    const values = [media, other];
    const feed = await playlist('manual_playlist', {
      title: 'Sea',
      custom_params: { theme: 'dark', kind: 'forged' },
      media_filter: { include: { values } },
    });
    const page = `${url}/v2/playlists/${feed}?format=mrss&amp;page_limit=500&amp;page_offset=1`;
    const thumbnails = (id: string) =>
      [320, 640, 1280]
        .map(
          (width) =>
            `        <media:thumbnail url="${url}/v2/media/${id}/poster.svg?width=${width}" width="${width}"/>`,
        )
        .join('\n');
    const xml = await mrssOf(`/v2/playlists/${feed}?format=mrss`);
    const [, instance] = /<jwplayer:feed_instance_id>([^<]+)</.exec(xml) ?? [];
    expect(xml).toBe(`<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0" xmlns:media="http://search.yahoo.com/mrss/" xmlns:jwplayer="http://rss.jwpcdn.com/">
  <channel>
    <title>Sea</title>
    <description/>
    <link>${page}</link>
    <jwplayer:kind>MANUAL</jwplayer:kind>
    <jwplayer:feedid>${feed}</jwplayer:feedid>
    <jwplayer:feed_instance_id>${instance}</jwplayer:feed_instance_id>
    <jwplayer:link_first>${page}</jwplayer:link_first>
    <jwplayer:link_last>${page}</jwplayer:link_last>
    <jwplayer:theme>dark</jwplayer:theme>
    <item>
      <title>Boats &amp; &lt;ships&gt;</title>
      <link>${url}/v2/media/${media}</link>
      <description>&quot;Out&quot; at sea</description>
      <pubDate>Tue, 01 Jan 2030 00:00:00 GMT</pubDate>
      <guid isPermaLink="false">${media}</guid>
      <media:group>
        <media:content url="${url}/manifests/${media}.m3u8" type="application/vnd.apple.mpegurl" medium="video" duration="2"/>
        <media:content url="${url}/videos/${media}-${rendition}.mp4" type="video/mp4" medium="video" duration="2" width="64" height="36" bitrate="${Math.round(FILM.length / 250)}" fileSize="${FILM.length}">
          <media:title>36p</media:title>
        </media:content>
${thumbnails(media)}
        <media:keywords>boats,R&amp;D</media:keywords>
      </media:group>
      <jwplayer:image>${url}/v2/media/${media}/poster.svg</jwplayer:image>
      <jwplayer:feedid>${feed}</jwplayer:feedid>
      <jwplayer:track file="${url}/tracks/${captions}.vtt" kind="captions" label="English &quot;US&quot;" language="en"/>
      <jwplayer:sponsor>A &amp; B</jwplayer:sponsor>
    </item>
    <item>
      <title/>
      <link>${url}/v2/media/${other}</link>
      <description/>
      <pubDate>Mon, 31 Dec 2029 23:59:58 GMT</pubDate>
      <guid isPermaLink="false">${other}</guid>
      <media:group>
        <media:content url="https://cdn.example/a.m3u8?x=1&amp;y=2" type="application/vnd.apple.mpegurl" medium="video" duration="0"/>
${thumbnails(other)}
        <media:keywords/>
      </media:group>
      <jwplayer:image>${url}/v2/media/${other}/poster.svg</jwplayer:image>
      <jwplayer:feedid>${feed}</jwplayer:feedid>
    </item>
  </channel>
</rss>
`);
  });

  test('writes a single media, and a playlist without media', async () => {
    const media = await delivery.external({ title: 'Alone' });
    const [channel] = parsed(await mrssOf(`/v2/media/${media}?format=mrss`)).children;
    const item = channel?.children.find(({ name }) => name === 'item');
    expect(item?.children.find(({ name }) => name === 'guid')?.text).toBe(media);
    const empty = await delivery.playlist('search_playlist', { title: 'Nothing' });
    const [other] = parsed(await mrssOf(`/v2/playlists/${empty}?format=mrss`)).children;
    expect(other?.children.map(({ name }) => name)).not.toContain('item');
  });

  test('any text and any custom parameter makes a well-formed document that has the text', async () => {
    const { external, admin, siteId } = delivery;
    const media = await external();
    const text = fc.string({ unit: anyCharacter, maxLength: 30 });
    const name = fc
      .oneof(
        fc.string({ minLength: 1, maxLength: 15 }),
        fc.constantFrom('title', 'source', 'feedid', 'a:b', '1st', 'ä', '-x', 'xmlns'),
      )
      // It is refused.
      .filter((each) => each !== '__proto__');
    await fc.assert(
      fc.asyncProperty(
        text,
        text,
        fc.dictionary(name, text, { maxKeys: 5 }),
        async (title, description, params) => {
          await admin
            .patch(`/v2/sites/${siteId}/media/${media}/`)
            .send({ metadata: { title, description, tags: [], custom_params: params } })
            .expect(200);
          const [channel] = parsed(await mrssOf(`/v2/media/${media}?format=mrss`)).children;
          const item = channel?.children.find((element) => element.name === 'item');
          const titles = item?.children.filter((element) => element.name === 'title') ?? [];
          expect(titles).toHaveLength(1);
          // XML has no control characters, and its line ends may be read as line feeds.
          const kept = title.replaceAll(/[^\t\n\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '');
          expect(titles[0]?.text.replaceAll('\r', '').trim()).toBe(kept.trim());
          const poster = await fetch(`${delivery.url}/v2/media/${media}/poster.svg`);
          expect(parsed(await poster.text()).name).toBe('svg');
        },
      ),
      { numRuns: 30 },
    );
  });
});
