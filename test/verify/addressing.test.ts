import type { OutgoingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import fs from 'fs-extra';
import { createGet } from '../../src/http/get';
import { StreamMemory } from '../../src/verify/stream-memory';
import { verifyStream } from '../../src/verify/verify-stream';
import { afterTest } from '../support/after-test';
import { redirectTo, sendBytes } from '../support/media-server';
import {
  expectToPlay,
  KEY_FILE,
  keyFileText,
  type ServedStream,
  startStream,
  statesOf,
} from '../support/start-stream';

const SIGNALLING = `<ContentProtection schemeIdUri="urn:mpeg:dash:mp4protection:2011" value="cenc" xmlns:cenc="urn:mpeg:cenc:2013" cenc:default_KID="4b6a75d3-8049-4edc-b82a-c7a2680c5781"/>`;

/** A manifest of the picture alone; `inside` is the content of its Representation. */
function mpd(
  inside: string,
  { attributes = 'type="static" mediaPresentationDuration="PT6S"', period = '', top = '', set = '' } = {},
) {
  return `<?xml version="1.0"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" profiles="urn:mpeg:dash:profile:isoff-live:2011" minBufferTime="PT2S" ${attributes}>
  ${top}<Period id="p"${period}><AdaptationSet contentType="video" mimeType="video/mp4">${SIGNALLING}${set}
    <Representation id="v" bandwidth="30000" codecs="avc1.64000b">${inside}</Representation>
  </AdaptationSet></Period>
</MPD>`;
}

async function verifyMpd(
  stream: ServedStream,
  text: string,
  options: Parameters<typeof stream.verify>[0] = {},
) {
  await fs.outputFile(join(stream.folder, options.path ?? 'm.mpd'), text);
  return stream.verify(options);
}

async function testMpd(stream: ServedStream, text: string, path = '/m.mpd') {
  const report = await verifyMpd(stream, text, { path });
  const [rendition] = report.renditions;
  return {
    faults: report.faults,
    segment: rendition?.segment?.url.replace(stream.url, ''),
    seconds: rendition?.segment?.seconds,
    state: rendition?.judgement?.state,
  };
}

const NUMBER =
  '<SegmentTemplate timescale="1000" duration="2000" initialization="v.mp4" media="v$Number$.m4s"/>';
const TIMELINE = '<SegmentTimeline><S t="0" d="2000" r="2"/></SegmentTimeline>';
const right = (segment = '/v3.m4s') => ({ faults: [], segment, seconds: 2, state: 'decrypts' });

describe('DASH', () => {
  test.each<{ form: string; inside: string; options?: Parameters<typeof mpd>[1] }>([
    { form: 'SegmentTemplate with $Number$ and a duration', inside: NUMBER },
    {
      form: 'SegmentTemplate with an endNumber before the end of the period',
      inside: NUMBER.replace('duration', 'endNumber="3" duration'),
      options: { attributes: 'type="static" mediaPresentationDuration="PT60S"' },
    },
    {
      form: 'SegmentTemplate of the AdaptationSet, with other attributes in the Representation',
      inside: '<SegmentTemplate timescale="1000" duration="2000"/>',
      options: {
        set: '<SegmentTemplate initialization="$RepresentationID$.mp4" media="$RepresentationID$$Number$.m4s"/>',
      },
    },
    {
      form: 'SegmentTemplate with an endNumber that is none',
      inside: NUMBER.replace('duration', 'endNumber="2.5" duration'),
    },
    {
      form: 'SegmentTimeline with $Number$',
      inside:
        '<SegmentTemplate timescale="10" initialization="v.mp4" media="v$Number%01d$.m4s"><SegmentTimeline><S t="0" d="20" r="2"/></SegmentTimeline></SegmentTemplate>',
    },
    {
      form: 'SegmentList',
      inside:
        '<SegmentList timescale="1000" duration="2000"><Initialization sourceURL="v.mp4"/><SegmentURL media="v1.m4s"/><SegmentURL media="v2.m4s"/><SegmentURL media="v3.m4s"/></SegmentList>',
    },
    {
      form: 'SegmentTemplate next to a Label that begins with an element',
      inside: NUMBER,
      options: { set: '<Label><b>HD</b></Label>' },
    },
    {
      form: 'BaseURL with a path',
      inside: `<BaseURL>./</BaseURL>${NUMBER}`,
      options: { top: '<BaseURL>/</BaseURL>' },
    },
  ])('finds the newest segment by $form', async ({ inside, options }) => {
    const stream = await startStream('dash');
    expect(await testMpd(stream, mpd(inside, options))).toEqual(right());
  });

  test('finds a segment by $Time$ in large units', async () => {
    const stream = await startStream('dash');
    const times = ['17637912345678901', '17637912365678901'];
    for (const [index, time] of times.entries())
      await fs.move(join(stream.folder, `v${index + 2}.m4s`), join(stream.folder, `t${time}.m4s`));
    const timeline = `<SegmentTimeline><S t="${times[0]}" d="20000000" r="1"/></SegmentTimeline>`;
    const template = `<SegmentTemplate timescale="10000000" initialization="v.mp4" media="t$Time$.m4s">${timeline}</SegmentTemplate>`;
    expect(await testMpd(stream, mpd(template))).toEqual(right(`/t${times[1]}.m4s`));
  });

  test('follows BaseURL of all levels, absolute ones too, and takes the first of several', async () => {
    const stream = await startStream('dash');
    for (const file of ['v.mp4', 'v1.m4s', 'v3.m4s'])
      await fs.copy(join(stream.folder, file), join(stream.folder, 'cdn/news/video/hd', file));
    const text = mpd(`<BaseURL>hd/</BaseURL><BaseURL>sd/</BaseURL>${NUMBER}`, {
      top: `<BaseURL>${stream.url}/cdn/</BaseURL><BaseURL>http://127.0.0.1:1/</BaseURL>`,
      set: '<BaseURL>video/</BaseURL>',
    }).replace('<AdaptationSet', '<BaseURL>news/</BaseURL><AdaptationSet');
    expect(await testMpd(stream, text, '/elsewhere/m.mpd')).toEqual(right('/cdn/news/video/hd/v3.m4s'));
  });

  test('resolves what is relative at the address to which a manifest was redirected', async () => {
    const stream = await startStream('dash');
    await fs.outputFile(join(stream.folder, 'far/away/m.mpd'), mpd(NUMBER));
    for (const file of ['v.mp4', 'v3.m4s', 'v1.m4s'])
      await fs.copy(join(stream.folder, file), join(stream.folder, 'far/away', file));
    stream.answers.set('/start.mpd', redirectTo('/hop.mpd', 301));
    stream.answers.set('/hop.mpd', redirectTo(`${stream.url}/far/away/m.mpd`, 307));
    const report = await stream.verify({ path: '/start.mpd' });
    expectToPlay(report, 1);
    expect(report.url).toBe(`${stream.url}/far/away/m.mpd`);
    stream.answers.set('/gone.mpd', redirectTo('/nowhere.mpd'));
    const { faults } = await stream.verify({ path: '/gone.mpd' });
    expect(faults[0]?.description).toBe(
      `${stream.url}/gone.mpd redirects to ${stream.url}, which is not there (404); check the path, and whether the stream is running.`,
    );
  });

  test.each<[encoding: string, bytes: Buffer]>([
    ['gzip', gzipSync(mpd(NUMBER))],
    ['deflate', deflateSync(mpd(NUMBER))],
    ['aws-chunked, br', brotliCompressSync(mpd(NUMBER))],
  ])('unpacks a manifest in %s', async (encoding, bytes) => {
    const stream = await startStream('dash');
    const headers = { 'content-encoding': encoding };
    stream.answers.set('/m.mpd', (_request, response) => response.writeHead(200, headers).end(bytes));
    expectToPlay(await stream.verify(), 1);
  });

  test('finds segments in one file by the index that SegmentBase names', async () => {
    const stream = await startStream('dash', { single: true });
    const report = await stream.verify();
    expectToPlay(report);
    expect(report.renditions[0]?.segment).toEqual({
      url: `${stream.url}/v.mp4`,
      bytes: expect.any(Number),
      seconds: 2,
      number: 2,
    });
    expect(stream.requests.filter((request) => request.startsWith('/v.mp4'))).toEqual([
      expect.stringMatching(/^\/v\.mp4 bytes=\d+-\d+$/),
      expect.stringMatching(/^\/v\.mp4 bytes=0-\d+$/),
      expect.stringMatching(/^\/v\.mp4 bytes=\d+-\d+$/),
      expect.stringMatching(/^\/v\.mp4 bytes=\d+-\d+$/),
    ]);
  });

  test('finds the index of a file whose manifest names none', async () => {
    const stream = await startStream('dash', { single: true });
    expect(await testMpd(stream, mpd('<BaseURL>v.mp4</BaseURL>'))).toEqual(right('/v.mp4'));
  });

  test.each([
    ['file', 0],
    ['file larger than the limit', 5 * 1024 * 1024],
  ])('takes a part of a %s from a server that sends whole ones, and says so', async (_what, more) => {
    const stream = await startStream('dash', { single: true });
    const file = Buffer.concat([await fs.readFile(join(stream.folder, 'v.mp4')), Buffer.alloc(more)]);
    stream.answers.set('/v.mp4', (_request, response) => response.writeHead(200).end(file));
    const { faults } = await stream.verify();
    expect(faults.map(({ severity, code }) => [severity, code])).toEqual([['warning', 'range_ignored']]);
  });

  test.each<[what: string, headers: OutgoingHttpHeaders, status: number]>([
    ['another part than was asked for', { 'content-range': 'bytes 0-99/30000' }, 206],
    ['the whole file, compressed', { 'content-encoding': 'gzip' }, 200],
  ])('blames a server that sends %s', async (_what, headers, status) => {
    const stream = await startStream('dash', { single: true });
    const file = gzipSync(await fs.readFile(join(stream.folder, 'v.mp4')));
    stream.answers.set('/v.mp4', (_request, response) => response.writeHead(status, headers).end(file));
    const { faults } = await stream.verify();
    const description = expect.stringContaining(
      '/v.mp4, the segment index, is not the requested byte range: ',
    );
    expect(faults[0]).toEqual({ severity: 'error', code: 'answer_broken', description });
  });

  test('tests every period of a stream on demand', async () => {
    const stream = await startStream('dash');
    const text = mpd(NUMBER, { period: ' duration="PT4S"' });
    const [before = '', period = ''] = /^([\s\S]*?)(<Period[\s\S]*<\/Period>)/.exec(text)?.slice(1) ?? [];
    const second = period.replace('id="p"', 'id="q"').replace('v$Number', 'w$Number');
    await fs.copy(join(stream.folder, 'v1.m4s'), join(stream.folder, 'w1.m4s'));
    await fs.copy(join(stream.folder, 'v2.m4s'), join(stream.folder, 'w2.m4s'));
    const report = await verifyMpd(stream, `${before}${period}${second}</MPD>`);
    expectToPlay(report);
    expect(report.renditions.map(({ name, segment }) => `${name} ${segment?.url}`)).toEqual([
      `period p video 30 kb/s ${stream.url}/v2.m4s`,
      `period q video 30 kb/s ${stream.url}/w2.m4s`,
    ]);
  });

  const NOW = new Date('2026-11-22T12:00:07Z');
  const LIVE = 'type="dynamic" availabilityStartTime="2026-11-22T12:00:00Z" minimumUpdatePeriod="PT2S"';

  test('takes of a live stream the newest period that has begun', async () => {
    const stream = await startStream('dash');
    const text = mpd(NUMBER, { attributes: LIVE, period: ' start="PT0S"' });
    const period = /<Period[\s\S]*<\/Period>/.exec(text)?.[0] ?? '';
    const later = (start: number, name: string) =>
      period
        .replace('PT0S', `PT${start}S`)
        .replace('id="p"', `id="${name}"`)
        .replace('v$Number', `${name}$Number`);
    await fs.copy(join(stream.folder, 'v1.m4s'), join(stream.folder, 'q1.m4s'));
    const periods = text.replace('</MPD>', `${later(4, 'q')}${later(3600, 'r')}</MPD>`);
    const report = await verifyMpd(stream, periods, { now: () => NOW });
    expect(report.renditions.map(({ segment }) => segment?.url.replace(stream.url, ''))).toEqual(['/q1.m4s']);
    expect(report.live).toBe(true);
    const keyId = KEY_FILE.cenc?.keyId ?? '';
    const wrong = keyFileText({ cenc: { keyId, contentKey: '/+7dzLuqmYh3ZlVEMyIRAA==' } });
    const blamed = async (second: number) => {
      const changed = new Date(`2026-11-22T12:00:0${second}Z`);
      const keyFiles = [{ name: 'news.key', text: wrong, changed }];
      const { faults } = await stream.verify({ now: () => NOW, keyFiles });
      return /after the stream began \((.*?)\)/.exec(faults[0]?.description ?? '')?.[1];
    };
    expect([await blamed(3), await blamed(5)]).toEqual([undefined, '2026-11-22 12:00:04 UTC']);
    // Many packagers count from 1970.
    const since1970 = NUMBER.replace('duration="2000"', '').replace('/>', `>${TIMELINE}</SegmentTemplate>`);
    const attributes = 'type="dynamic" availabilityStartTime="1970-01-01T00:00:00Z"';
    await fs.outputFile(join(stream.folder, 'm.mpd'), mpd(since1970, { attributes }));
    expect(await blamed(5)).toBeUndefined();
  });

  test('expects no new segment before the end of a live period whose segments are listed ahead, nor at once then', async () => {
    const stream = await startStream('dash');
    const listed =
      '<SegmentTimeline><S t="0" d="2000"/><S d="90000"/><S d="2000"/></SegmentTimeline></SegmentTemplate>';
    const template = NUMBER.replace('duration="2000"', '').replace('/>', `>${listed}`);
    const text = mpd(template, { attributes: LIVE, period: ' start="PT0S" duration="PT94S"' });
    const memory = new StreamMemory();
    const codes: string[][] = [];
    for (const time of ['12:00:01', '12:01:30', '12:01:43', '12:01:45']) {
      const now = () => new Date(`2026-11-22T${time}Z`);
      codes.push((await verifyMpd(stream, text, { memory, now })).faults.map(({ code }) => code));
    }
    expect(codes).toEqual([[], [], [], ['playlist_not_moving']]);
  });

  test('takes of a live stream the period before one that has no segment yet', async () => {
    const stream = await startStream('dash');
    const text = mpd(NUMBER, { attributes: LIVE, period: ' start="PT0S"' });
    const period = /<Period[\s\S]*<\/Period>/.exec(text)?.[0] ?? '';
    const next = period.replace('PT0S', 'PT6S').replace('id="p"', 'id="q"');
    const report = await verifyMpd(stream, text.replace('</MPD>', `${next}</MPD>`), { now: () => NOW });
    expectToPlay(report, 1);
  });

  test('takes an older segment when the newest is not there yet, and says so', async () => {
    const stream = await startStream('dash');
    const text = mpd(NUMBER, { attributes: LIVE, period: ' start="PT0S"' });
    const report = await verifyMpd(stream, text, { now: () => new Date('2026-11-22T12:00:09Z') });
    const description = `${stream.url}/v4.m4s is listed as the newest segment but is not available yet (404), while the one 1 before it is; players that start now wait or fail, so check the clocks of packager and server, and the delay of the upload.`;
    expect(report.faults).toEqual([{ severity: 'warning', code: 'segment_early', description }]);
    expect(statesOf(report)).toEqual(['decrypts']);
  });

  test('names the older segment when it is refused, and the newest is not there yet', async () => {
    const stream = await startStream('dash');
    stream.answers.set('/v3.m4s', (_request, response) => response.writeHead(403).end());
    const text = mpd(NUMBER, { attributes: LIVE, period: ' start="PT0S"' });
    const report = await verifyMpd(stream, text, { now: () => new Date('2026-11-22T12:00:09Z') });
    const description = `${stream.url}/v3.m4s, the newest segment that is there, is refused (403); check whether the address needs a new token.`;
    expect(report.faults).toEqual([{ severity: 'error', code: 'forbidden', description }]);
  });

  test('sees new segments by $Time$ while it is watched', async () => {
    const stream = await startStream('dash');
    const memory = new StreamMemory();
    const segments: unknown[] = [];
    for (const time of [20, 40]) {
      await fs.copy(join(stream.folder, `v${time / 20}.m4s`), join(stream.folder, `t${time}.m4s`));
      const timeline = `<SegmentTimeline><S t="${time}" d="20"/></SegmentTimeline>`;
      const template = `<SegmentTemplate timescale="10" initialization="v.mp4" media="t$Time$.m4s">${timeline}</SegmentTemplate>`;
      const text = mpd(template, { attributes: LIVE, period: ' start="PT0S"' });
      const { renditions } = await verifyMpd(stream, text, { now: () => NOW, memory });
      segments.push(renditions[0]?.segment?.number);
    }
    expect(segments).toEqual([20, 40]);
  });

  test('fetches subtitles that are one text as a whole, and once while they are watched', async () => {
    const stream = await startStream('dash');
    stream.answers.set('/s.vtt', (_request, response) => response.end('WEBVTT\n'));
    const all = mpd('<BaseURL>s.vtt</BaseURL>', { attributes: LIVE, period: ' start="PT0S"' });
    const text = all.replace(/contentType="video" mimeType="video\/mp4"/, 'mimeType="text/vtt"');
    const memory = new StreamMemory();
    for (const seconds of [0, 60]) {
      const now = () => new Date(NOW.getTime() + seconds * 1000);
      expect((await verifyMpd(stream, text, { now, memory, keyFiles: [] })).faults).toEqual([]);
    }
    expect(stream.requests.filter((request) => request.startsWith('/s.vtt'))).toEqual(['/s.vtt']);
  });

  test('reads the protection of each Representation, and that of a reference', async () => {
    const stream = await startStream('dash');
    const other = SIGNALLING.replaceAll('4b6a75d3', '99999999');
    const another = `<Representation id="w" bandwidth="1" codecs="avc1.64000b">${other}${NUMBER}</Representation>`;
    const text = mpd(SIGNALLING + NUMBER)
      .replace(SIGNALLING, '')
      .replace('<Representation id="v"', `${another}<Representation id="v"`);
    const report = await verifyMpd(stream, text, { keyFiles: [] });
    const description = expect.stringContaining('m.mpd has key id 99999999-8049-4edc-b82a-c7a2680c5781');
    expect(report.faults).toEqual([{ severity: 'error', code: 'key_id_mismatch', description }]);
  });

  test('reads a manifest in UTF-16', async () => {
    const stream = await startStream('dash');
    await fs.outputFile(join(stream.folder, 'm.mpd'), Buffer.from(`\ufeff${mpd(NUMBER)}`, 'utf16le'));
    expectToPlay(await stream.verify({ path: '/m.mpd' }), 1);
  });

  test('a missing segment is reported once for all renditions', async () => {
    const stream = await startStream('dash');
    await fs.remove(join(stream.folder, 'v3.m4s'));
    await fs.remove(join(stream.folder, 'a3.m4s'));
    const description = `${stream.url}/v3.m4s, the last segment, is not there (404); check whether the packager still writes it, and whether the CDN has the right path. The same is true of ${stream.url}/a3.m4s.`;
    expect((await stream.verify()).faults).toEqual([
      { severity: 'error', code: 'segment_not_found', description },
    ]);
  });
});

describe('HLS', () => {
  test('takes byte ranges of one file', async () => {
    const stream = await startStream('hls', { single: true });
    const report = await stream.verify();
    expectToPlay(report);
    expect(report.renditions[0]?.segment?.bytes).toBeLessThan(10_000);
    // A range without a start goes on where the last one ended.
    await stream.change('v.m3u8', (text) => {
      const [first = '', ...others] = text.split(/(?<=#EXT-X-BYTERANGE:\d+@\d+\n)/);
      return first + others.map((part) => part.replace(/(#EXT-X-BYTERANGE:\d+)@\d+/, '$1')).join('');
    });
    expectToPlay(await stream.verify());
  });

  test('puts variables into addresses', async () => {
    const stream = await startStream('hls');
    await stream.change('master.m3u8', (text) =>
      text
        .replace('#EXTM3U\n', '#EXTM3U\n#EXT-X-DEFINE:NAME="part",VALUE="m4s"\n')
        .replace('\nv.m3u8', '\nv.m3u8?host=fairplay.example.com'),
    );
    const defined = '#EXT-X-DEFINE:IMPORT="part"\n#EXT-X-DEFINE:QUERYPARAM="host"\n';
    await stream.change('v.m3u8', (text) =>
      text
        .replace('#EXTM3U\n', `#EXTM3U\n${defined}`)
        .replaceAll('.m4s', '.{$part}')
        .replace('skd://fairplay.example.com', 'skd://{$host}'),
    );
    expectToPlay(await stream.verify());
  });

  test('tests one playlist that several variants share once, and no I-frame playlist', async () => {
    const stream = await startStream('hls');
    const more =
      '#EXT-X-STREAM-INF:BANDWIDTH=999,CODECS="avc1.64000b"\nv.m3u8\n#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI="i.m3u8"\n';
    await stream.change('master.m3u8', (text) => text + more);
    const report = await stream.verify();
    expect([report.renditions.length, report.faults]).toEqual([2, []]);
  });

  test('names variants that are alike, and playlists of one name, differently', async () => {
    const stream = await startStream('hls');
    const playlist = await fs.readFile(join(stream.folder, 'v.m3u8'), 'utf8');
    for (const folder of ['b', 'c']) {
      const text = playlist.replaceAll(/\bv\d?\.m(?:4s|p4)/g, '../$&');
      await fs.outputFile(join(stream.folder, folder, 'v.m3u8'), text);
      const variant = `#EXT-X-STREAM-INF:BANDWIDTH=999,CODECS="avc1.64000b"\n${folder}/v.m3u8\n`;
      await stream.change('master.m3u8', (master) => master + variant);
    }
    const report = await stream.verify();
    expect(report.faults).toEqual([]);
    const names = ['video 1 kb/s', 'video 1 kb/s (2)'];
    expect(report.renditions.map(({ name }) => name)).toEqual(expect.arrayContaining(names));
    const files = names.map((name) => `v.m3u8 (${name})`);
    expect(report.systems[0]?.in).toEqual(expect.arrayContaining(['v.m3u8', ...files]));
  });

  test('takes the keys that hold for the newest segment, and passes over gaps', async () => {
    const stream = await startStream('hls');
    const line = (uri: string) =>
      `#EXT-X-KEY:METHOD=SAMPLE-AES,URI="${uri}",KEYFORMAT="com.apple.streamingkeydelivery",KEYFORMATVERSIONS="1"`;
    await stream.change('v.m3u8', (text) =>
      text
        .replace(/#EXT-X-KEY:.*/, line('skd://fairplay.example.com/former'))
        .replace('v2.m4s\n', `v2.m4s\n${line('skd://fairplay.example.com/news')}\n`)
        .replace('#EXT-X-ENDLIST', '#EXT-X-GAP\n#EXTINF:2.0,\nmissing.m4s\n#EXT-X-ENDLIST'),
    );
    expectToPlay(await stream.verify());
  });

  test('a live playlist is live, and one that does not move is reported', async () => {
    const stream = await startStream('hls');
    for (const file of ['v.m3u8', 'a.m3u8'])
      await stream.change(file, (text) =>
        text
          .replace(/#EXT-X-(?:ENDLIST|PLAYLIST-TYPE:VOD)\n?/g, '')
          .replace('#EXTINF', '#EXT-X-PROGRAM-DATE-TIME:2026-11-22T12:00:00Z\n#EXTINF'),
      );
    const early = await stream.verify({ now: () => new Date('2026-11-22T12:00:10Z') });
    expect([early.live, early.faults]).toEqual([true, []]);
    const late = await stream.verify({ now: () => new Date('2026-11-22T12:01:00Z') });
    expect(late.faults.map(({ code }) => code)).toEqual(['playlist_not_moving']);
    for (const file of ['v.m3u8', 'a.m3u8'])
      await stream.change(file, (text) => text.replace(/(?<=DATE-TIME:).*/, 'today'));
    expect((await stream.verify()).faults).toEqual([]);
  });
});

test('warns of a host that is asked over http, although the manifest is at https', async () => {
  const stream = await startStream('dash');
  await stream.change('m.mpd', (text) => text.replace('<Period', `<BaseURL>${stream.url}/</BaseURL><Period`));
  const { get, close } = createGet({ userAgent: 'test' });
  afterTest(close);
  const { faults } = await verifyStream('https://secure.test/m.mpd', {
    get: (request) => get({ ...request, url: request.url.replace('https://secure.test', stream.url) }),
    now: () => new Date(),
  });
  const description = expect.stringMatching(/^127\.0\.0\.1:\d+ is asked over http, although /);
  expect(faults).toEqual([{ severity: 'warning', code: 'plain_http', description }]);
});

test('an address with a token is not shown', async () => {
  const stream = await startStream('dash');
  stream.answers.set('/v3.m4s', (_request, response) => response.writeHead(403).end());
  const text = JSON.stringify(await stream.verify({ path: '/m.mpd?token=geheim' }));
  expect(text).not.toContain('geheim');
});

test('a part of a file is asked for with its range', async () => {
  const stream = await startStream('dash', { single: true });
  const bytes = await fs.readFile(join(stream.folder, 'v.mp4'));
  const encodings = new Set<unknown>();
  stream.answers.set('/v.mp4', (request, response) => {
    encodings.add(request.headers['accept-encoding']);
    sendBytes(bytes, request, response);
  });
  await stream.verify();
  expect(encodings).toEqual(new Set(['identity']));
});
