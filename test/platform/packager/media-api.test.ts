import { once } from 'node:events';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { processorMs } from '../../support/processor-time';
import {
  MEDIA_VECTORS,
  sourceOf,
  startPackager,
  startProvisioned,
  startRunning,
  type TestPackager,
} from '../../support/start-packager';
import { until } from '../../support/until';

async function startEnded(options = {}): Promise<TestPackager> {
  const packager = await startRunning(options);
  await packager.api.post('/streams/news/end');
  return packager;
}

const firstSegment = async ({ api }: TestPackager) =>
  /^part-.*_1\.m4s$/m.exec((await api.get('/media/news/hls/video.m3u8')).text)?.[0] ?? '';

test('media is served with its type, whole or a range of it, and to any page', async () => {
  const packager = await startEnded();
  const path = `/media/news/hls/${await firstSegment(packager)}`;
  const whole = await fetch(packager.url + path);
  const bytes = Buffer.from(await whole.arrayBuffer());
  const named = ['content-type', 'access-control-allow-origin', 'cache-control'];
  const shown = ['video/iso.segment', '*', 'public, max-age=86400, immutable'];
  expect([whole.status, ...named.map((name) => whole.headers.get(name))]).toEqual([200, ...shown]);
  const range = await fetch(packager.url + path, { headers: { range: 'bytes=10-19' } });
  expect([range.status, range.headers.get('content-range')]).toEqual([206, `bytes 10-19/${bytes.length}`]);
  expect(Buffer.from(await range.arrayBuffer())).toEqual(bytes.subarray(10, 20));
  const head = await packager.api.head(path).expect(200);
  expect(head.headers['content-length']).toBe(String(bytes.length));
  const beyond = await packager.api.get(path).set('range', 'bytes=99999999-').expect(416);
  expect(JSON.parse(beyond.text || beyond.body)).toEqual({
    errors: [{ code: 'range_not_satisfiable', description: 'The file has no such range of bytes.' }],
  });
  for (const [name, type] of [
    ['hls/audio.m3u8', 'application/vnd.apple.mpegurl'],
    ['dash/manifest.mpd', 'application/dash+xml'],
  ]) {
    const asked = packager.api.get(`/media/news/${name}`).expect('cache-control', 'no-cache');
    await asked.expect('content-type', `${type}; charset=utf-8`).expect(200);
  }
});

test('a viewer who goes before the answer is no failure of the packager', async () => {
  const packager = await startEnded();
  const { hostname, port } = new URL(packager.url);
  const path = `/media/news/hls/${await firstSegment(packager)}`;
  for (let count = 0; count < 20; count += 1) {
    const socket = connect(Number(port), hostname);
    socket.write(`GET ${path} HTTP/1.1\r\nhost: packager\r\n\r\n`, () => socket.resetAndDestroy());
    await once(socket, 'close');
  }
  await until(() => packager.log().split('"aborted":true').length > 2);
  expect(packager.log()).not.toContain('request failed');
});

test('every address that a playlist names is there', async () => {
  const packager = await startEnded();
  const { text } = await packager.api.get('/media/news/dash/manifest.mpd');
  const names = [...text.matchAll(/initialization="([^"]+)"/g)].map(([, name]) => `/media/news/dash/${name}`);
  for (const kind of ['video', 'audio']) {
    const list = await packager.api.get(`/media/news/hls/${kind}.m3u8`);
    for (const [name] of list.text.matchAll(/part-[^"\s]+/g)) names.push(`/media/news/hls/${name}`);
  }
  expect(names.length).toBeGreaterThan(6);
  for (const name of names) await packager.api.get(name).expect(200);
});

test('a window limits what is listed, and is carried to the media playlists', async () => {
  const packager = await startEnded();
  const master = await packager.api.get('/media/news/hls/master.m3u8?window=2').expect(200);
  expect(master.text).toContain('\nvideo.m3u8?window=2\n');
  const all = await packager.api.get('/media/news/hls/video.m3u8');
  const some = await packager.api.get('/media/news/hls/video.m3u8?window=2').expect(200);
  expect(some.text.length).toBeLessThanOrEqual(all.text.length);
  await packager.api.get('/media/news/dash/manifest.mpd?window=2').expect(200);
  const { body } = await packager.api.get('/media/news/dash/manifest.mpd?window=0').expect(400);
  const description = 'window: must be a whole number of seconds, from 1 to 9999999';
  expect(body).toEqual({ errors: [{ code: 'invalid_query', description }] });
});

test('every playlist of a complete part is read once, with room for this one part', async () => {
  const { api, home } = await startEnded({ keptParts: 1 });
  const names = ['dash/manifest.mpd', 'hls/master.m3u8', 'hls/video.m3u8', 'hls/audio.m3u8'];
  const textsOf = () =>
    Promise.all(names.map(async (name) => (await api.get(`/media/news/${name}`).expect(200)).text));
  const first = await textsOf();
  const folder = join(home, 'media/packager-media/streams/news');
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' }))
    if (/\.(?:mpd|m3u8)$/.test(file)) rmSync(join(folder, file));
  expect(await textsOf()).toEqual(first);
});

test('a live manifest has the present at each request, and each new segment, and is static when the stream has ended', async () => {
  const packager = await startProvisioned();
  await packager.put('news', { source: sourceOf('live-long'), keyFile: 'news' });
  await packager.until('news', ({ state }) => state === 'running');
  const manifest = async () => (await packager.api.get('/media/news/dash/manifest.mpd').expect(200)).text;
  const first = await manifest();
  const timelines = (text: string) => text.match(/<S .*>/g)?.join();
  const times = new Set<string | undefined>();
  await until(async () => {
    const text = await manifest();
    times.add(/publishTime="([^"]*)".*utc:direct:2014" value="\1"/s.exec(text)?.[1]);
    return timelines(text) !== timelines(first);
  });
  expect(times).not.toContain(undefined);
  await packager.api.post('/streams/news/end').expect(200);
  expect(await manifest()).toContain(' type="static"');
});

test('the segments of an open part are read once until it has more', async () => {
  const packager = await startRunning();
  const stream = join(packager.home, 'media/packager-media/streams/news');
  const part = join(stream, readdirSync(stream).find((name) => name.startsWith('part-')) ?? '');
  const grow = (file: string, segment: RegExp, another: (index: number) => string) => {
    const text = readFileSync(join(part, file), 'utf8');
    const segments = Array.from({ length: 30_000 }, (_, index) => another(index)).join('');
    writeFileSync(join(part, file), text.replace(segment, segments));
  };
  grow('dash/manifest.mpd', /<S [^>]*>/, (index) => `<S t="${index * 180_000}" d="180000"/>`);
  grow('hls/video.m3u8', /#EXTINF.*\n.*\n/, (index) => `#EXTINF:2.000,\nvideo_${index}.m4s\n`);
  const get = async () => {
    for (const file of ['dash/manifest.mpd', 'hls/video.m3u8'])
      await packager.api.get(`/media/news/${file}?window=30`).expect(200);
  };
  const first = await processorMs(get);
  // Other work of the process counts as well: the least of three.
  const later: number[] = [];
  for (let round = 0; round < 3; round += 1) later.push(await processorMs(() => get().then(get)));
  expect(Math.min(...later)).toBeLessThan(first);
});

test('nothing but the media of a stream is served', async () => {
  const packager = await startEnded();
  const part = (await firstSegment(packager)).split('/')[0];
  const paths = [
    '/media/other/hls/master.m3u8',
    '/media/news/hls/..%2fmaster.m3u8',
    `/media/news/hls/${part}/recording.ts`,
    `/media/news/dash/${part}/manifest.mpd`,
    `/media/news/dash/${part}/..%2f..%2f..%2fstream.json`,
    `/media/news/../news/${part}/recording.ts`,
    '/media/news/hls/part-9/video_1.m4s',
    `/media/news/hls/${part}/video_99.m4s`,
    `/media/news/recording/${part}/video_1.m4s`,
  ];
  for (const path of paths) {
    const answer = await fetch(packager.url + path);
    expect([path, answer.status]).toEqual([path, 404]);
  }
  const { body } = await packager.api.get(paths[0] ?? '').expect(404);
  const description = 'There is no such file: the stream is unknown, or has nothing to play yet.';
  expect(body).toEqual({ errors: [{ code: 'media_not_found', description }] });
});

test('with an API key, every call but the health check needs it', async () => {
  const packager = await startPackager({ apiKey: 'a-key-of-16-chars' });
  await packager.api.get('/healthz').expect(200, { status: 'ok' });
  for (const path of ['/streams', '/streams/news', '/media/news/hls/master.m3u8', '/nowhere']) {
    const { body } = await packager.api.get(path).expect(401);
    const description = "Send the packager's API key (PACKAGER_APIKEY) in the header x-api-key.";
    expect(body).toEqual({ errors: [{ code: 'unauthorized', description }] });
    await packager.api.get(path).set('x-api-key', 'a-key-of-16-charS').expect(401);
  }
  await packager.api.get('/streams').set('x-api-key', 'a-key-of-16-chars').expect(200, { streams: [] });
});

test('without an API key, pages play media, and change nothing', async () => {
  const { api } = await startPackager();
  const ofPage = { origin: 'http://page.example', 'content-type': 'text/plain' };
  for (const path of ['/conversions', '/streams/news/end'])
    await api
      .post(path)
      .set(ofPage)
      .send('x')
      .expect(403, /"code":"page_refused"/);
  await api.head('/media/news/hls/master.m3u8').set(ofPage).expect(404);
});

test('a request that is wrong is refused with each field, and quotes no address', async () => {
  const packager = await startPackager();
  const body = {
    source: 'http://host/SECRET',
    keyfile: 'a',
    simulcast: [{ url: "rtmp://host/live/'SECRET" }],
  };
  const answer = await packager.api.put('/streams/news').send(body).expect(400);
  const source = 'source: must be an address that begins with rtmp:// or rtmps://';
  const unknown = 'keyfile is not a field of this request. Did you mean keyFile?';
  expect(answer.body.errors).toEqual([
    { code: 'invalid_body', description: source },
    { code: 'invalid_body', description: `simulcast.0.url: must not hold quotes, \\, < or >` },
    { code: 'unknown_field', description: unknown },
  ]);
  const key = { source: 'rtmp://host/live/SECRET', keyFile: '../secret' };
  const wrong = await packager.api.put('/streams/news').send(key).expect(400);
  expect(wrong.body.errors[0].description).toMatch(/^keyFile: must be a stream id/);
  await packager.api.put('/streams/.hidden').send({ source: 'rtmp://host/live/SECRET' }).expect(400);
  expect(packager.log()).not.toContain('SECRET');
  await packager.api.get('/streams').expect(200, { streams: [] });
});

test('a media file is packaged with a key file, and one that comes later takes its place', async () => {
  const packager = await startProvisioned();
  const film = readFileSync(join(MEDIA_VECTORS, 'film.mp4'));
  const put = (query: string) =>
    packager.api.put(`/streams/film/file?${query}`).type('application/octet-stream').send(film);
  const { body } = await put('keyFile=news').expect(201);
  expect(body).toEqual({
    ...{ id: 'film', kind: 'file', keyFile: 'news', protection: 'key_file', state: 'ended', problem: null },
    ...{ started: expect.any(String), seconds: expect.any(Number) },
    dash: { path: '/media/film/dash/manifest.mpd', keyIds: ['00112233-4455-6677-8899-aabbccddeeff'] },
    hls: { path: '/media/film/hls/master.m3u8', keyIds: [expect.any(String)] },
  });
  expect((await packager.api.get('/media/film/hls/video.m3u8')).text).toContain('METHOD=SAMPLE-AES');
  const recording = await packager.api.get('/streams/film/recording').expect(409);
  const description = 'The stream has 0 seconds of recorded media.';
  expect(recording.body.errors).toEqual([{ code: 'nothing_recorded', description }]);
  const clear = await put('protection=none').expect(200);
  expect(clear.body).toMatchObject({ keyFile: null, protection: 'none', dash: { keyIds: [] } });
  expect((await packager.api.get('/media/film/hls/video.m3u8')).text).not.toContain('#EXT-X-KEY');
  const refused = await put('keyFile=missing').expect(200);
  expect(refused.body).toMatchObject({
    ...{ state: 'refused', problem: { code: 'key_file_missing' }, dash: null, hls: null },
  });
  await packager.api.get('/media/film/hls/master.m3u8').expect(404);
  await packager.api.delete('/streams/film').expect(204);
});
