import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fs from 'fs-extra';
import type { Answer } from '../support/media-server';
import { redirectTo } from '../support/media-server';
import { startStream } from '../support/start-stream';

const MiB = 1024 * 1024;

/** What a stream is refused with whose manifest is answered like this, and what that cost. */
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

const TOO_LARGE = ['manifest_too_large'];
const lines = (count: number, line: (at: number) => string) =>
  Array.from({ length: count }, (_, at) => line(at)).join('\n');
const mpd = (set: string) =>
  `<MPD type="static" mediaPresentationDuration="PT10S"><Period><AdaptationSet mimeType="video/mp4">${set}</AdaptationSet></Period></MPD>`;

type Row = [string, Answer | string | Buffer, string[], (object | undefined)?];

/** Each row is whole: jest takes a parameter that a row lacks for its callback. */
const withLimits = (rows: readonly Row[]) =>
  rows.map(([name, answer, codes, limits = {}]) => [name, answer, codes, limits] as const);

test.each(
  withLimits([
    ['an entity bomb', BOMB, ['manifest_unreadable']],
    ['a document type', '<!DOCTYPE MPD SYSTEM "file:///etc/passwd"><MPD/>', ['manifest_unreadable']],
    ['elements a million deep', `<MPD>${'<a>'.repeat(1_000_000)}`, ['manifest_unreadable']],
    ['a manifest without an end', endless, ['too_large']],
    [
      'a manifest that is small when packed alone',
      (_request, response) =>
        response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(Buffer.alloc(32 * MiB, ' '))),
      ['too_large'],
    ],
    [
      'a manifest that says that it is packed, and is not',
      (_request, response) => response.writeHead(200, { 'content-encoding': 'br' }).end('<MPD/>'),
      ['answer_broken'],
    ],
    ['redirects in a circle', redirectTo('/bad.mpd'), ['too_many_redirects']],
    ['a redirect to a file', redirectTo('file:///etc/passwd'), ['address_refused']],
    ['a redirect to nowhere', (_request, response) => response.writeHead(302).end(), ['answer_broken']],
    [
      'an answer that comes drop by drop',
      (_request, response) => {
        const timer = setInterval(() => response.write(' '), 20);
        response.on('close', () => clearInterval(timer));
      },
      ['timeout'],
      { requestMs: 300 },
    ],
    ['an answer that never comes', () => undefined, ['limit_reached'], { totalMs: 300 }],
    ['a cut connection', (request) => request.socket.destroy(), ['unreachable']],
    ['an answer that is no HTTP', (request) => request.socket.end('220 ftp ready\r\n'), ['unreachable']],
    ['a web page', '<!doctype html><html></html>', ['not_a_manifest']],
    ['nothing', '', ['not_a_manifest']],
    ['bytes', Buffer.from([0, 1, 2, 255]), ['not_a_manifest']],
    ['XML that is something else', '<rss/>', ['not_a_manifest']],
    ['a manifest without a period', '<MPD/>', ['manifest_unreadable']],
    ['a manifest without anything to play', '<MPD><Period/></MPD>', ['no_rendition']],
    [
      'a playlist with a line of a mebibyte',
      `#EXTM3U\n#EXT-X-STREAM-INF:${','.repeat(MiB)}\nv.m3u8`,
      ['manifest_unreadable'],
    ],
    [
      'a playlist with lines of many attributes',
      `#EXTM3U\n${`#EXT-X-MAP:${'a,'.repeat(4000)}\n`.repeat(900)}`,
      ['manifest_unreadable'],
    ],
    [
      'a playlist whose variables make a long line',
      `#EXTM3U\n#EXT-X-DEFINE:NAME="a",VALUE="${'x'.repeat(8000)}"\n#EXT-X-KEY:URI="${'{$a}'.repeat(17)}"\n`,
      ['manifest_unreadable'],
    ],
    [
      'a playlist of many variables',
      `#EXTM3U\n${lines(1001, (at) => `#EXT-X-DEFINE:NAME="${at}",VALUE=""`)}`,
      TOO_LARGE,
    ],
    [
      'many keys at once',
      `#EXTM3U\n${lines(1001, (at) => `#EXT-X-KEY:METHOD=A,KEYFORMAT="${at}"`)}`,
      TOO_LARGE,
    ],
    ['many session keys', `#EXTM3U\n${lines(1001, () => '#EXT-X-SESSION-KEY:METHOD=A')}`, TOO_LARGE],
    ['many periods', `<MPD>${'<Period/>'.repeat(2001)}</MPD>`, TOO_LARGE],
    ['many representations', mpd('<Representation/>'.repeat(2001)), TOO_LARGE],
    [
      'a long template',
      mpd(`<SegmentTemplate media="${'$Number%099d$'.repeat(400)}"/><Representation/>`),
      TOO_LARGE,
    ],
    [
      'a template of a long address',
      mpd(`<SegmentTemplate duration="2" media="${'$Number%099d$'.repeat(100)}"/><Representation id="a"/>`),
      ['address_refused', 'not_protected'],
    ],
    [
      'a playlist with a variable that is not there',
      '#EXTM3U\n#EXT-X-DEFINE:IMPORT="a"\n',
      ['manifest_unreadable'],
    ],
  ]),
)('%s is refused at once', async (_name, answer, codes, limits) => {
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
  expect(report.faults).toEqual([
    {
      severity: 'error',
      code: 'too_large',
      description: `${stream.url}/v3.m4s, the last segment, is larger than 2 MiB, the limit for one file; it was not read. The same is true of ${stream.url}/a3.m4s.`,
    },
  ]);
  expect(report.fetched.bytes).toBeLessThan(5 * MiB);
});

test('a test ends when its bytes, its requests or its time are used up', async () => {
  const stream = await startStream('dash');
  for (const limits of [{ totalBytes: 4000 }, { requests: 2 }]) {
    const { faults } = await stream.verify({ limits });
    expect(new Set(faults.map(({ code }) => code))).toEqual(new Set(['limit_reached']));
  }
  let ms = 0;
  const { faults } = await stream.verify({
    limits: { totalMs: 3000 },
    now: () => {
      ms += 1000;
      return new Date(ms);
    },
  });
  expect(faults[0]?.code).toBe('limit_reached');
});

test('of many renditions the first are tested, and it is said how many are not', async () => {
  const stream = await startStream('dash');
  await stream.change('m.mpd', (text) =>
    text.replace(/<Representation[\s\S]*?<\/Representation>/, (one) => one.repeat(500)),
  );
  const report = await stream.verify({ limits: { renditions: 3 } });
  expect(report.renditions.length).toBe(3);
  expect(report.faults).toEqual([
    {
      severity: 'warning',
      code: 'cut_short',
      description: 'm.mpd has 498 renditions that were not tested; a test covers 3 renditions in 20 periods.',
    },
  ]);
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
  await stream.change(
    'master.m3u8',
    (text) =>
      `${text}${['GROUP-ID="__proto__"', 'GROUP-ID="constructor"']
        .map(
          (group) =>
            `#EXT-X-MEDIA:TYPE=AUDIO,${group},NAME="polluted",URI="a.m3u8"\n#EXT-X-MEDIA:TYPE=__proto__,${group},NAME="polluted",URI="a.m3u8"\n`,
        )
        .join('')}#EXT-X-DATERANGE:ID="__proto__",START-DATE="2026-11-22T12:00:00Z",X-POLLUTED="1"\n`,
  );
  await stream.change('v.m3u8', (text) =>
    text.replace(
      '#EXTINF',
      '#EXT-X-DATERANGE:ID="__proto__",START-DATE="2026-11-22T12:00:00Z",X-POLLUTED="1"\n#EXTINF',
    ),
  );
  expect((await stream.verify()).faults).toEqual([]);
  expect(Object.keys(Object.prototype)).toEqual([]);
  expect(Reflect.get({}, 'polluted')).toBeUndefined();
});

test('a multivariant playlist that names itself is told, not followed', async () => {
  const stream = await startStream('hls');
  await stream.change('master.m3u8', (text) => text.replace('v.m3u8', 'master.m3u8'));
  expect((await stream.verify()).faults.map(({ code }) => code)).toEqual(['not_a_media_playlist']);
});

test('an index that names itself is followed a few times', async () => {
  const stream = await startStream('dash', { single: true });
  const path = join(stream.folder, 'v.mp4');
  const file = await fs.readFile(path);
  const at = file.indexOf('sidx') + 4;
  // A version 0 index whose first reference is an index of no length, which stands where it stands itself.
  file.writeUInt16BE(1, at + 22);
  file.writeUInt32BE(0x80000000, at + 24);
  await fs.writeFile(path, file);
  const report = await stream.verify();
  expect(report.renditions[0]?.segment).toBeNull();
  expect(stream.requests.length).toBeLessThan(15);
});

test('keys of a playlist that are none do no harm', async () => {
  const stream = await startStream('hls');
  await stream.change('v.m3u8', (text) =>
    text.replace(
      '#EXTINF',
      '#EXT-X-KEY:METHOD=AES-128,URI="none.key",IV=0xno\n#EXT-X-KEY:\n#EXT-X-KEY:METHOD=NONE\n#EXT-X-SESSION-KEY\n#EXTINF',
    ),
  );
  expect((await stream.verify({ keyFiles: [] })).faults.map(({ code }) => code)).toContain('not_protected');
});

test('what libraries say of hostile names reaches no terminal', async () => {
  const console = [jest.spyOn(global.console, 'error'), jest.spyOn(global.console, 'warn')];
  const stream = await startStream('dash');
  await fs.writeFile(
    join(stream.folder, 'v3.m4s'),
    Buffer.concat([Buffer.from('\0\0\0\0\u001bc\u001bc', 'latin1'), Buffer.alloc(64, 0x1b)]),
  );
  await stream.verify();
  await stream.change('m.mpd', (text) => text.replaceAll('ContentProtection', 'Content\u009b:a:b'));
  const { faults } = await stream.verify();
  expect(faults.map(({ code }) => code)).toEqual(['manifest_unreadable']);
  expect(console.flatMap(({ mock }) => mock.calls)).toEqual([]);
});

test('a segment of a few bytes that says that it has half a million samples is refused', async () => {
  const stream = await startStream('dash');
  const path = join(stream.folder, 'v3.m4s');
  const segment = await fs.readFile(path);
  const at = segment.indexOf('trun');
  // No fields of their own, so that they need no bytes.
  segment.writeUInt32BE(0, at + 4);
  segment.writeUInt32BE(500_000, at + 8);
  await fs.writeFile(path, segment);
  const { faults } = await stream.verify();
  expect(faults).toEqual([
    {
      severity: 'error',
      code: 'media_too_large',
      description: 'In v3.m4s: The media say that they have more than 200000 samples.',
    },
  ]);
});
