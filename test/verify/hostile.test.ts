import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fs from 'fs-extra';
import type { Answer } from '../support/media-server';
import { redirectTo } from '../support/media-server';
import { rowsOf } from '../support/rows-of';
import { startStream } from '../support/start-stream';

const MiB = 1024 * 1024;

/** The refusal of a stream with this manifest, and its cost. */
async function refusal(answer: Answer | string | Buffer, limits = {}, path = '/bad.mpd') {
  const stream = await startStream('dash');
  stream.answers.set(
    path,
    typeof answer === 'function' ? answer : (_request, response) => response.writeHead(200).end(answer),
  );
  const report = await stream.verify({ path, limits });
  return { codes: report.faults.map(({ code }) => code), report };
}

const entities = Array.from(
  { length: 20 },
  (_, index) => `<!ENTITY e${index + 1} "${`&e${index};`.repeat(10)}">`,
);
const BOMB = `<!DOCTYPE MPD [<!ENTITY e0 "boom">${entities.join('')}]><MPD><Period>&e20;</Period></MPD>`;

/** Sends a piece again and again, as long as anybody reads. */
function pour(response: ServerResponse, piece: Buffer): void {
  if (!response.destroyed) response.write(piece, () => setImmediate(() => pour(response, piece)));
}

const endless: Answer = (_request, response) => {
  response.writeHead(200).write('#EXTM3U\n');
  pour(response, Buffer.alloc(64 * 1024, '#EXTINF:2,\na.ts\n'));
};

const lines = (count: number, line: (at: number) => string) =>
  Array.from({ length: count }, (_, at) => line(at)).join('\n');
const mpd = (set: string) =>
  `<MPD type="static" mediaPresentationDuration="PT10S"><Period><AdaptationSet mimeType="video/mp4">${set}</AdaptationSet></Period></MPD>`;

const packed =
  (body: string | Buffer): Answer =>
  (_request, response) =>
    void response.writeHead(200, { 'content-encoding': 'gzip' }).end(body);
const drops: Answer = (_request, response) => {
  const timer = setInterval(() => response.write(' '), 20);
  response.on('close', () => clearInterval(timer));
};
const LONG_LINE = `#EXT-X-DEFINE:NAME="a",VALUE="${'x'.repeat(8000)}"\n#EXT-X-KEY:URI="${'{$a}'.repeat(17)}"\n`;
const MANY_VARIABLES = lines(1001, (at) => `#EXT-X-DEFINE:NAME="${at}",VALUE=""`);
const MANY_KEYS = lines(1001, (at) => `#EXT-X-KEY:METHOD=A,KEYFORMAT="${at}"`);
const template = (media: string, more = '') =>
  mpd(`<SegmentTemplate${more} media="${media}"/><Representation id="a"/>`);

test.each(
  rowsOf<Answer | string | Buffer | readonly [Answer, limits: object]>({
    'an entity bomb: manifest_unreadable': BOMB,
    'a document type: manifest_unreadable': '<!DOCTYPE MPD SYSTEM "file:///etc/passwd"><MPD/>',
    'elements a million deep: manifest_unreadable': `<MPD>${'<a>'.repeat(1_000_000)}`,
    'a manifest without an end: too_large': endless,
    'a manifest that is small when packed alone: too_large': packed(gzipSync(Buffer.alloc(32 * MiB, ' '))),
    'a manifest that says that it is packed, and is not: answer_broken': packed('<MPD/>'),
    'redirects in a circle: too_many_redirects': redirectTo('/bad.mpd'),
    'a redirect to a file: address_refused': redirectTo('file:///etc/passwd'),
    'a redirect to nowhere: answer_broken': (_request, response) => response.writeHead(302).end(),
    'an answer that comes drop by drop: timeout': [drops, { requestMs: 300 }],
    'an answer that never comes: limit_reached': [() => undefined, { totalMs: 300 }],
    'a cut connection: unreachable': (request) => request.socket.destroy(),
    'an answer that is no HTTP: unreachable': (request) => request.socket.end('220 ftp ready\r\n'),
    'a web page: not_a_manifest': '<!doctype html><html></html>',
    'nothing: not_a_manifest': '',
    'bytes: not_a_manifest': Buffer.from([0, 1, 2, 255]),
    'XML that is something else: not_a_manifest': '<rss/>',
    'a manifest without a period: manifest_unreadable': '<MPD/>',
    'a manifest without anything to play: no_rendition': '<MPD><Period/></MPD>',
    'a playlist with a line of a mebibyte: manifest_unreadable': `#EXTM3U\n#EXT-X-STREAM-INF:${','.repeat(MiB)}\nv.m3u8`,
    'a playlist with lines of many attributes: manifest_unreadable': `#EXTM3U\n${`#EXT-X-MAP:${'a,'.repeat(4000)}\n`.repeat(900)}`,
    'a playlist whose variables make a long line: manifest_unreadable': `#EXTM3U\n${LONG_LINE}`,
    'an I-frame playlist: not_a_media_playlist': '#EXTM3U\n#EXT-X-I-FRAMES-ONLY\n#EXTINF:2,\nv.ts\n',
    'a playlist of many variables: manifest_too_large': `#EXTM3U\n${MANY_VARIABLES}`,
    'many keys at once: manifest_too_large': `#EXTM3U\n${MANY_KEYS}`,
    'many session keys: manifest_too_large': `#EXTM3U\n${'#EXT-X-SESSION-KEY:METHOD=A\n'.repeat(1001)}`,
    'many periods: manifest_too_large': `<MPD>${'<Period/>'.repeat(2001)}</MPD>`,
    'many representations: manifest_too_large': mpd('<Representation/>'.repeat(2001)),
    'a long template: manifest_too_large': template('$Number%099d$'.repeat(400)),
    'a template of a long address: address_refused, not_protected': template(
      '$Number%099d$'.repeat(100),
      ' duration="2"',
    ),
    'a byte range that is none: manifest_unreadable': '#EXTM3U\n#EXTINF:2,\n#EXT-X-BYTERANGE:abc\nv.mp4\n',
    'a byte range of an init segment that is none: manifest_unreadable':
      '#EXTM3U\n#EXT-X-MAP:URI="v.mp4",BYTERANGE="10@x"\n',
    'a playlist with a variable that is not there: manifest_unreadable':
      '#EXTM3U\n#EXT-X-DEFINE:IMPORT="a"\n',
  }),
)('is refused at once: %s', async (_what, given, codes) => {
  const [answer, limits] = Array.isArray(given) ? given : [given, {}];
  const found = await refusal(answer, limits);
  expect(found.codes).toEqual(codes);
  expect(found.report.fetched.bytes).toBeLessThan(9 * MiB);
});

test('a segment of ten gigabytes is not read', async () => {
  const stream = await startStream('dash');
  for (const name of ['v3', 'a3'])
    stream.answers.set(`/${name}.m4s`, (_request, response) => {
      response.writeHead(200, { 'content-length': 10 * 1024 * MiB });
      pour(response, Buffer.alloc(MiB));
    });
  const report = await stream.verify({ limits: { segmentBytes: 2 * MiB } });
  const description = `${stream.url}/v3.m4s, the last segment, is larger than 2 MiB, the limit for one file; it was not read. The same is true of ${stream.url}/a3.m4s.`;
  expect(report.faults).toEqual([{ severity: 'error', code: 'too_large', description }]);
  expect(report.fetched.bytes).toBeLessThan(5 * MiB);
});

test('a test ends when its bytes, its requests or its time are used up', async () => {
  const stream = await startStream('dash');
  for (const limits of [{ totalBytes: 4000 }, { requests: 2 }]) {
    const { faults } = await stream.verify({ limits });
    expect(new Set(faults.map(({ code }) => code))).toEqual(new Set(['limit_reached']));
  }
  let ms = 0;
  const now = () => {
    ms += 1000;
    return new Date(ms);
  };
  expect((await stream.verify({ limits: { totalMs: 3000 }, now })).faults[0]?.code).toBe('limit_reached');
});

test('of many renditions the first are tested, and it is said how many are not', async () => {
  const stream = await startStream('dash');
  await stream.change('m.mpd', (text) =>
    text.replace(/<Representation[\s\S]*?<\/Representation>/, (one) => one.repeat(500)),
  );
  const report = await stream.verify({ limits: { renditions: 3 } });
  expect(report.renditions.length).toBe(3);
  const description =
    'm.mpd has 498 renditions that were not tested; a test covers 3 renditions in 20 periods.';
  expect(report.faults).toEqual([{ severity: 'warning', code: 'cut_short', description }]);
});

test('base addresses that multiply, and repeats by the billion, cost nothing', async () => {
  const stream = await startStream('dash');
  const many = '<BaseURL>./</BaseURL>'.repeat(400);
  await stream.change('m.mpd', (text) =>
    text
      .replaceAll(/<(?:Period|AdaptationSet|Representation)\b[^>]*>/g, (start) => `${start}${many}`)
      .replaceAll(/r="\d+"/g, 'r="999999999"'),
  );
  const report = await stream.verify();
  expect(report.faults.map(({ code }) => code)).toEqual(['segment_not_found']);
});

test('names in a playlist change no object of the program', async () => {
  const stream = await startStream('hls');
  const media = ['AUDIO', '__proto__'].map(
    (type) => `#EXT-X-MEDIA:TYPE=${type},GROUP-ID="__proto__",NAME="polluted",URI="a.m3u8"\n`,
  );
  const range = '#EXT-X-DATERANGE:ID="__proto__",START-DATE="2026-11-22T12:00:00Z",X-POLLUTED="1"\n';
  await stream.change('master.m3u8', (text) => `${text}${media.join('')}${range}`);
  await stream.change('v.m3u8', (text) => text.replace('#EXTINF', `${range}#EXTINF`));
  expect((await stream.verify()).faults).toEqual([]);
  expect(Object.keys(Object.prototype)).toEqual([]);
  expect(Reflect.get({}, 'polluted')).toBeUndefined();
});

test.each([
  ['an address that a variable makes a tag', '#EXT-X-DEFINE:NAME="v",VALUE=" TAG"', '{$v}'],
  ['a variable of two lines', '#EXT-X-DEFINE:QUERYPARAM="v"', 'v.m4s{$v}'],
])('%s is refused, not read', async (_, definition, address) => {
  const stream = await startStream('hls');
  const tag = '#EXT-X-DATERANGE:ID=__proto__,START-DATE=2026-11-22T12:00:00Z,X-POLLUTED=1';
  await stream.change('master.m3u8', (text) =>
    text.replace('v.m3u8', `v.m3u8?v=${encodeURIComponent(`\n${tag}`)}`),
  );
  await stream.change('v.m3u8', (text) =>
    text.replace('#EXTINF', `${definition.replace('TAG', tag)}\n#EXTINF:1,\n${address}\n#EXTINF`),
  );
  const { faults } = await stream.verify();
  expect(Object.keys(Object.prototype)).toEqual([]);
  expect(faults.map(({ code }) => code)).toEqual(['manifest_unreadable']);
});

test('a multivariant playlist that names itself is reported, not followed', async () => {
  const stream = await startStream('hls');
  await stream.change('master.m3u8', (text) => text.replace('v.m3u8', 'master.m3u8'));
  expect((await stream.verify()).faults.map(({ code }) => code)).toEqual(['not_a_media_playlist']);
});

test('an index that names itself is followed a few times', async () => {
  const stream = await startStream('dash', { single: true });
  const path = join(stream.folder, 'v.mp4');
  const file = await fs.readFile(path);
  const at = file.indexOf('sidx') + 4;
  // A version 0 index whose first reference is an index of no length at its own place.
  file.writeUInt16BE(1, at + 22);
  file.writeUInt32BE(0x80000000, at + 24);
  await fs.writeFile(path, file);
  const report = await stream.verify();
  expect(report.renditions[0]?.segment).toBeNull();
  expect(stream.requests.length).toBeLessThan(15);
});

test('keys of a playlist that are none do no harm', async () => {
  const stream = await startStream('hls');
  const keys =
    '#EXT-X-KEY:METHOD=AES-128,URI="none.key",IV=0xno\n#EXT-X-KEY:\n#EXT-X-KEY:METHOD=NONE\n#EXT-X-SESSION-KEY\n';
  await stream.change('v.m3u8', (text) => text.replace('#EXTINF', `${keys}#EXTINF`));
  expect((await stream.verify({ keyFiles: [] })).faults.map(({ code }) => code)).toContain('not_protected');
});

test('the errors of libraries about hostile names reach no terminal', async () => {
  const console = [jest.spyOn(global.console, 'error'), jest.spyOn(global.console, 'warn')];
  const stream = await startStream('dash');
  const box = Buffer.from('\0\0\0\0\u001bc\u001bc', 'latin1');
  await fs.writeFile(join(stream.folder, 'v3.m4s'), Buffer.concat([box, Buffer.alloc(64, 0x1b)]));
  await stream.verify();
  await stream.change('m.mpd', (text) => text.replaceAll('ContentProtection', 'Content\u009b:a:b'));
  const { faults } = await stream.verify();
  expect(faults.map(({ code }) => code)).toEqual(['manifest_unreadable']);
  expect(console.flatMap(({ mock }) => mock.calls)).toEqual([]);
});

test('a media sequence number of 23 digits does not end the test', async () => {
  const stream = await startStream('hls');
  await stream.change('v.m3u8', (text) =>
    text.replace('#EXTM3U\n', `#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:${'9'.repeat(23)}\n`),
  );
  const { renditions } = await stream.verify();
  expect(renditions.map(({ judgement }) => judgement?.state)).toEqual(['decrypts', 'decrypts']);
});
