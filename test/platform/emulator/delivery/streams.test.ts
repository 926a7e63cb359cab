import { request as httpRequest, type ServerResponse } from 'node:http';
import fc from 'fast-check';
import { DASH_KEY_ID, HLS_KEY_ID } from '../../../support/fake-packager';
import { NOTHING, startPackaged } from '../../../support/start-delivery';
import { until } from '../../../support/until';

const HLS = 'application/vnd.apple.mpegurl';
const DASH = 'application/dash+xml';
const SEGMENT = 'video/iso.segment';
const MASTER = '#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nvideo.m3u8\n';

type Streaming = Awaited<ReturnType<typeof start>>;

async function start() {
  const delivery = await startPackaged();
  const { packager } = delivery;
  /** Waits until something can be played under an id, and puts files there. */
  const packaged = async (id: string) => {
    await until(() => delivery.context.packaging.deliverable(id) !== undefined);
    packager.media.set(`/media/${id}/hls/master.m3u8`, { type: HLS, body: MASTER });
    packager.media.set(`/media/${id}/hls/part-1/video_1.m4s`, { type: SEGMENT, body: '0123456789' });
    packager.media.set(`/media/${id}/dash/manifest.mpd`, { type: DASH, body: '<MPD/>' });
  };
  return {
    ...delivery,
    packaged,
    /** Connects an encoder to a channel with this metadata; answers the id of its event, once it is packaged. */
    async live(metadata?: object) {
      const id = await delivery.connect(await delivery.createChannel(metadata));
      await packaged(id);
      return id;
    },
    /** The paths below `/media` that the packager was asked for. */
    forwarded: () => packager.calls.flatMap(({ path }) => (path.startsWith('/media/') ? [path] : [])),
  };
}

/** The answer to viewers at a path, without following redirects. */
const at = async ({ unauthenticated }: Streaming, path: string) => {
  const { status, headers, text } = await unauthenticated.get(path).redirects(0).buffer();
  return { status, location: headers.location, text };
};

test('a stream that the packager refuses is not available to viewers; its preview says why', async () => {
  const streaming = await start();
  const { packager, onAir, context } = streaming;
  const problem = { code: 'codec_unsupported', description: 'The encoder sends audio as MPEG-1 audio.' };
  packager.onPut = (document) => ({ ...document, state: 'refused', problem, dash: null, hls: null });
  const { id } = await onAir();
  const token = context.state.events.find(id)?.previewToken;
  await until(() => context.packaging.isRefused(id));
  const said = async (path: string) => {
    const { status, text } = await at(streaming, path);
    return { status, ...JSON.parse(text) };
  };
  const refused = { status: 404, code: 'not_available' };
  for (const end of ['mpd', 'm3u8']) {
    const viewers = { ...refused, message: 'The stream is not available.' };
    expect(await said(`/live/events/${id}.${end}`)).toEqual(viewers);
    expect(await said(`/live/previews/${token}.${end}`)).toEqual({
      ...refused,
      message: problem.description,
    });
  }
});

describe('a live event', () => {
  it('has DASH and HLS with the addresses of its keys', async () => {
    const streaming = await start();
    const id = await streaming.live();
    const { body } = await streaming.unauthenticated.get(`/v2/media/${id}`);
    const { url } = streaming;
    const clearkey = { url: `${url}/keyprovider/clearkey` };
    const base64url = (uuid: string) => Buffer.from(uuid.replaceAll('-', ''), 'hex').toString('base64url');
    expect(body.playlist[0].sources).toEqual([
      {
        file: `${url}/live/events/${id}.mpd`,
        type: DASH,
        drm: {
          widevine: { url: 'https://widevine-license.example.com/proxy' },
          playready: { url: 'https://playready-license.example.com/rightsmanager.asmx' },
          clearkey,
        },
      },
      {
        file: `${url}/live/events/${id}.m3u8`,
        type: HLS,
        drm: {
          fairplay: {
            processSpcUrl: 'https://fairplay-license.example.com/license',
            certificateUrl: 'https://fairplay-license.example.com/certificate',
          },
          clearkey: { ...clearkey, keyIds: [base64url(HLS_KEY_ID)] },
        },
      },
    ]);
    expect(DASH_KEY_ID).not.toBe(HLS_KEY_ID);
  });

  it('names its addresses before there is a segment, and one of a key file without FairPlay has no HLS', async () => {
    const streaming = await start();
    const { packager, onAir, unauthenticated } = streaming;
    packager.onPut = (document) => ({ ...document, state: 'starting', dash: null, hls: null });
    const { id } = await onAir();
    const types = async () =>
      (await unauthenticated.get(`/v2/media/${id}`)).body.playlist[0].sources.map(
        ({ type }: { type: string }) => type,
      );
    expect(await types()).toEqual([DASH, HLS]);
    expect((await at(streaming, `/live/events/${id}.m3u8`)).text).toContain('no segment follows');
    expect(await at(streaming, `/live/events/${id}.mpd`)).toMatchObject({ status: 404 });
    packager.onPut = (document) => ({ ...document, hls: null });
    await until(() => streaming.context.packaging.deliverable(id) !== undefined);
    expect(await types()).toEqual([DASH]);
  });

  it('leads to what the packager has, and delivers it as it is', async () => {
    const streaming = await start();
    const { unauthenticated } = streaming;
    const id = await streaming.live();
    const base = `/live/events/${id}`;
    const leadsTo = async (end: string, file: string) =>
      expect(await at(streaming, `${base}.${end}`)).toMatchObject({
        status: 302,
        location: `${base}/${file}`,
      });
    await leadsTo('m3u8', 'hls/master.m3u8');
    await leadsTo('mpd', 'dash/manifest.mpd');
    const master = await unauthenticated.get(`${base}/hls/master.m3u8`).buffer();
    const { headers } = master;
    const shown = [headers['content-type'], headers['cache-control'], headers['access-control-allow-origin']];
    expect([master.status, master.text, ...shown]).toEqual([200, MASTER, HLS, 'no-store', '*']);
    const segment = `${base}/hls/part-1/video_1.m4s`;
    const whole = await unauthenticated.get(segment).buffer().expect('cache-control', 'max-age=60');
    expect([whole.status, String(whole.body)]).toEqual([200, '0123456789']);
    const piece = await unauthenticated.get(segment).set('range', 'bytes=2-4').buffer();
    expect([piece.status, String(piece.body)]).toEqual([206, '234']);
    expect(piece.headers['content-range']).toBe('bytes 2-4/10');
    expect(piece.headers['access-control-expose-headers']).toContain('content-range');
    await unauthenticated
      .get(segment)
      .set('range', 'bytes=20-')
      .expect('content-range', 'bytes */10')
      .expect(416);
    await unauthenticated
      .head(segment)
      .expect('content-length', '10')
      .expect('content-type', SEGMENT)
      .expect(200);
    expect((await at(streaming, `${base}/hls/part-1/video_2.m4s`)).status).toBe(404);
    expect((await unauthenticated.post(segment)).status).toBe(405);
    await unauthenticated
      .options(segment)
      .set('access-control-request-headers', 'range')
      .expect('access-control-allow-origin', '*')
      .expect('access-control-allow-methods', 'GET, HEAD')
      .expect('access-control-allow-headers', 'range')
      .expect(204, '');
  });

  it.each([
    ['on', '', undefined],
    ['off', '?window=30', '?window=30'],
  ])('with dvr %s has a window of its own, whatever a viewer asks for', async (dvr, query, window = '') => {
    const streaming = await start();
    const { channel, id } = await streaming.onAir({ dvr, reconnect_window: 0 });
    await streaming.packaged(id);
    const base = `/live/events/${id}`;
    expect((await at(streaming, `${base}.m3u8`)).location).toBe(`${base}/hls/master.m3u8${query}`);
    for (const asked of ['', '?window=9999', '?x=1&window=1'])
      await at(streaming, `${base}/hls/master.m3u8${asked}`);
    await at(streaming, `${base}/dash/manifest.mpd`);
    await at(streaming, `${base}/hls/part-1/video_1.m4s?window=3`);
    const master = `/media/${id}/hls/master.m3u8${window}`;
    expect(streaming.forwarded()).toEqual([
      master,
      master,
      master,
      `/media/${id}/dash/manifest.mpd${window}`,
      `/media/${id}/hls/part-1/video_1.m4s`,
    ]);
    await streaming.disconnect(channel);
    await streaming.advance(1);
    // The replay is whole.
    await at(streaming, `${base}/hls/master.m3u8?window=30`);
    expect(streaming.forwarded().at(-1)).toBe(`/media/${id}/hls/master.m3u8`);
    expect((await at(streaming, `/manifests/${id}.mpd`)).location).toBe(`/manifests/${id}/dash/manifest.mpd`);
  });

  it('has the text tracks of its channel, as they were given', async () => {
    const { createChannel, connect, unauthenticated } = await start();
    const text_tracks = [{ label: 'English', language: 'en', instream_id: 'CC1' }, { kind: 'subtitles' }];
    const id = await connect(await createChannel({ text_tracks }));
    const { body } = await unauthenticated.get(`/v2/media/${id}`);
    expect(body.playlist[0].tracks).toEqual([
      { kind: 'captions', label: 'English', language: 'en', instream_id: 'CC1' },
      { kind: 'subtitles' },
    ]);
  });
});

describe('permission to watch', () => {
  const hostile = fc.oneof(
    fc.constantFrom(
      '../../../streams',
      '..%2f..%2fstreams',
      '%2e%2e/%2e%2e/streams',
      './x',
      'a//b',
      '.hidden',
    ),
    fc.string(),
  );

  it('never lets a request leave what belongs to the media, nor reach the packager for another', async () => {
    const streaming = await start();
    const shown = await streaming.live();
    const hidden = await streaming.live({ publishing_mode: 'manual' });
    const places = fc.constantFrom('/live/events', '/manifests', '/live/previews', '/LIVE/Events');
    const ids = fc.constantFrom(shown, hidden, 'absent00', `${hidden}%2f..%2f${shown}`, '..');
    const formats = fc.constantFrom('hls', 'dash');
    await fc.assert(
      fc.asyncProperty(places, ids, formats, hostile, async (place, id, format, rest) => {
        await raw(streaming.port, `${place}/${id}/${format}/${rest.replace(/[^\x21-\x7e]/g, '')}`);
      }),
      { numRuns: 40 },
    );
    const wrong = streaming.forwarded().filter((path) => {
      const below = new RegExp(`^/media/${shown}/(?:hls|dash)(?:/\\w[\\w.-]*)+$`);
      return !below.test(path);
    });
    expect(wrong).toEqual([]);
    const ofMedia = streaming.packager.calls.filter(({ path }) => path.includes('/media/'));
    expect(ofMedia.filter(({ method }) => method !== 'GET')).toEqual([]);
  });
});

/** Sends a path exactly as it is. */
function raw(port: number, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ port, path, host: '127.0.0.1', agent: false }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0));
    });
    sent.on('error', reject).end();
  });
}

describe('a packager in trouble', () => {
  it.each([
    ['answers 500', 500],
    ['answers nothing', 'hang'],
    ['cuts the connection', 'reset'],
    ['refuses the API key', 401],
  ] as const)('that %s costs a viewer an answer 502', async (_what, trouble) => {
    const streaming = await start();
    const id = await streaming.live();
    streaming.packager.trouble = ({ path }) => (path.startsWith('/media/') ? trouble : undefined);
    const { status, body } = await streaming.unauthenticated.get(`/live/events/${id}/hls/master.m3u8`);
    const message = 'The packager does not answer. Try again in a moment.';
    expect([status, body]).toEqual([502, { message }]);
    streaming.packager.trouble = () => undefined;
    expect((await at(streaming, `/live/events/${id}/hls/master.m3u8`)).status).toBe(200);
  });

  it('that closes a kept connection costs a viewer nothing', async () => {
    const streaming = await start();
    const id = await streaming.live();
    let resets = 1;
    streaming.packager.trouble = ({ path }) => {
      if (!path.startsWith('/media/') || resets === 0) return undefined;
      resets -= 1;
      return 'reset';
    };
    expect((await at(streaming, `/live/events/${id}/hls/master.m3u8`)).status).toBe(200);
    expect(resets).toBe(0);
  });

  it('is slowed down by a viewer who reads slowly, and nothing piles up between them', async () => {
    const streaming = await start();
    const id = await streaming.live();
    let sent = 0;
    const body = (response: ServerResponse) => {
      const more = () => {
        do sent += 65_536;
        while (response.write(Buffer.alloc(65_536)) && sent < 2 ** 28);
      };
      response.on('drain', more);
      more();
    };
    streaming.packager.media.set(`/media/${id}/hls/big.m4s`, { type: SEGMENT, body });
    const path = `/live/events/${id}/hls/big.m4s`;
    const asked = httpRequest({ port: streaming.port, path, host: '127.0.0.1', agent: false }, (response) => {
      response.once('data', () => response.pause());
    });
    asked.on('error', () => undefined).end();
    await until(() => sent > 0);
    for (let before = -1; before < sent; await new Promise((resolve) => setTimeout(resolve, 100)))
      before = sent;
    // No more than the system's buffers for two connections.
    expect(sent).toBeLessThan(2 ** 25);
    asked.destroy();
  });
});

describe('a library media', () => {
  it('is packaged in the clear, and its file stays next to the streams', async () => {
    const streaming = await start();
    const { media, rendition } = await streaming.film();
    await streaming.packaged(media);
    await until(() => streaming.context.state.renditions.find(rendition)?.status === 'ready');
    const call = await streaming.packager.called(`PUT /streams/${media}/file`);
    expect([call.path, call.headers['content-type']]).toEqual([
      `/streams/${media}/file?protection=none`,
      'application/octet-stream',
    ]);
    const { body } = await streaming.unauthenticated.get(`/v2/media/${media}`);
    const { url } = streaming;
    expect(
      body.playlist[0].sources.map(({ file, drm }: { file: string; drm: object }) => [file, drm]),
    ).toEqual([
      [`${url}/manifests/${media}.m3u8`, undefined],
      [`${url}/manifests/${media}.mpd`, undefined],
      [`${url}/videos/${media}-${rendition}.mp4`, undefined],
    ]);
    expect((await at(streaming, `/manifests/${media}/dash/manifest.mpd`)).text).toBe('<MPD/>');
  });

  it('that names a key file is encrypted with it, and its file is not to be had', async () => {
    const streaming = await start();
    const { media, rendition } = await streaming.film({ custom_params: { stream_id: 'news' } });
    await streaming.packaged(media);
    expect(streaming.packager.said()).toContain(`PUT /streams/${media}/file?keyFile=news`);
    const { body } = await streaming.unauthenticated.get(`/v2/media/${media}`);
    expect(body.playlist[0].sources.map(({ type }: { type: string }) => type)).toEqual([DASH, HLS]);
    expect(await streaming.get(`/videos/${media}-${rendition}.mp4`)).toEqual(NOTHING);
    const shown = await streaming.read(`/media/${media}/media_renditions/${rendition}/`);
    expect(shown.delivery_url).toBeNull();
  });

  it('that is to be protected from now on is not delivered in the clear any more, whatever the packager does', async () => {
    const streaming = await start();
    const { media } = await streaming.film();
    await streaming.packaged(media);
    streaming.packager.trouble = () => 500;
    const metadata = { custom_params: { stream_id: 'news' } };
    await streaming.admin.patch(`${streaming.site}/media/${media}/`).send({ metadata }).expect(200);
    for (const file of ['hls/master.m3u8', 'dash/manifest.mpd'])
      expect(await streaming.get(`/manifests/${media}/${file}`)).toEqual(NOTHING);
    expect(streaming.forwarded()).toEqual([]);
    streaming.packager.trouble = () => undefined;
    await until(() => streaming.context.packaging.deliverable(media)?.protection === 'key_file');
    const calls = streaming.packager
      .said()
      .filter((call) => /^(?:PUT|DELETE)/.test(call) && call.includes(media));
    expect(calls.at(-1)).toBe(`PUT /streams/${media}/file?keyFile=news`);
    expect(calls).toContain(`DELETE /streams/${media}`);
  });
});
