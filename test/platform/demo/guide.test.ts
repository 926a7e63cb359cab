import { TEST_PICTURE } from '../../../src/platform/demo/encoder';
import { guide, readDemoOptions, refusalIn } from '../../../src/platform/demo/guide';

test.each([
  [[], { ok: true, once: false, help: false }],
  [['--once'], { ok: true, once: true, help: false }],
  [['--help'], { ok: true, once: false, help: true }],
])('reads the arguments %j', (args, options) => {
  expect(readDemoOptions(args)).toEqual(options);
});

test.each([
  [['--onec'], "'--onec'"],
  [['once'], "'once'"],
  [['--once=yes'], "'--once'"],
])('refuses the arguments %j and names the fault', (args, named) => {
  expect(readDemoOptions(args)).toEqual({ ok: false, fault: expect.stringContaining(named) });
});

const DONE = {
  sidecarUrl: 'http://127.0.0.1:9000',
  emulatorUrl: 'http://127.0.0.1:8080',
  streamId: 'demo',
  apiKey: 'key',
  request: { client: 'c', contentId: 'demo' },
  keyFile: 'name: value\nother: value\n',
  keyFilePath: '/keys/demo.key',
  clip: { ok: true, mediaId: 'clipclip', dashUrl: 'http://a.test/c.mpd', hlsUrl: 'http://a.test/c.m3u8' },
  verifyCommand: 'node cli.js verify http://a.test/c.mpd demo.key',
  channels: [
    { mode: 'auto', id: 'autoauto', streamKey: 'k1' },
    { mode: 'manual', id: 'handhand', streamKey: 'k2' },
  ],
  live: true,
  advice: undefined,
  controlUrl: 'http://127.0.0.1:8081',
  rtmpUrl: 'rtmp://127.0.0.1:1935/live',
  siteId: 'sitesite',
  apiSecret: 'secret',
} as const;

const CURL = "curl -sS http://127.0.0.1:9000/api/keyfile/demo -H 'x-api-key: key'";

const FFMPEG = `ffmpeg ${TEST_PICTURE.join(' ')} rtmp://127.0.0.1:1935/live`;

test('names the players first, then the test, the key file and the commands that repeat it', () => {
  expect(guide(DONE)).toBe(`A test clip plays with DRM. Open it in Chrome, Edge or Firefox:

  DASH, cenc   http://127.0.0.1:8080/embed/media.html?mediaId=clipclip
  HLS, cbcs    http://127.0.0.1:8080/embed/media.html?mediaId=clipclip&format=hls
  live         http://127.0.0.1:8080/embed/channel.html?channelId=autoauto

Its keys come from the key provider; the sidecar wrote them into a key file, with which the packager encrypted. The
browser gets them as ClearKey licenses from the emulator's DRM side. Test whether the stream decrypts with the key file,
with the command or on the page:

  node cli.js verify http://a.test/c.mpd demo.key
  http://127.0.0.1:8080/verify?url=http://a.test/c.mpd

The sidecar runs at http://127.0.0.1:9000, the emulator of the platform at http://127.0.0.1:8080.
The key file as written by POST /api/keyfile/demo:

name: value
other: value

It is /keys/demo.key

Provision it again:
  ${CURL} -H 'content-type: application/json' -d '{"client":"c","contentId":"demo"}'
Read it:
  ${CURL}
Delete it:
  ${CURL} -X DELETE

Live channels, protected with the same key file; the dashboard is http://127.0.0.1:8080/dashboard

Channel autoauto (auto: viewers see it as soon as an encoder streams)
  watch       http://127.0.0.1:8080/embed/channel.html?channelId=autoauto
  stream key  k1, with which ffmpeg streams now

Channel handhand (manual: viewers see it once it is published)
  watch       http://127.0.0.1:8080/embed/channel.html?channelId=handhand
  stream key  k2

Stream to a channel, with OBS (server rtmp://127.0.0.1:1935/live, and the stream key) or with ffmpeg:
  ${FFMPEG}/k2
Or with a simulated encoder, which sends no picture:
  curl -sS http://127.0.0.1:8081/encoder/connect -d '{"stream_key":"k2"}'
Their management API:
  curl -sS http://127.0.0.1:8080/v2/sites/sitesite/channels/ -H 'Authorization: Bearer secret'
`);
});

test('says how to get ffmpeg where there is none, and how to stream to the first channel', () => {
  const lines = guide({ ...DONE, live: false, advice: 'Install ffmpeg.' }).split('\n');
  expect(lines.slice(2, 7)).toEqual([
    '  DASH, cenc   http://127.0.0.1:8080/embed/media.html?mediaId=clipclip',
    '  HLS, cbcs    http://127.0.0.1:8080/embed/media.html?mediaId=clipclip&format=hls',
    '',
    'Install ffmpeg.',
    '',
  ]);
  expect(lines.filter((line) => /^ {2}(?:stream key|ffmpeg) |encoder\/connect/.test(line))).toEqual([
    '  stream key  k1',
    '  stream key  k2',
    `  ${FFMPEG}/k1`,
    `  curl -sS http://127.0.0.1:8081/encoder/connect -d '{"stream_key":"k1"}'`,
  ]);
});

test('names no live player when nothing is to be streamed', () => {
  const text = guide({ ...DONE, live: false });
  expect(text.slice(0, text.indexOf('Its keys'))).not.toMatch(/live|ffmpeg/i);
});

test('says why nothing is packaged, and still shows the key file and the channels', () => {
  const why = 'The packager ended with exit code 2. It said nothing.';
  const lines = guide({ ...DONE, clip: { ok: false, why } }).split('\n');
  expect(lines.slice(0, 3)).toEqual([
    `No media are packaged. ${why}`,
    '',
    'The sidecar runs at http://127.0.0.1:9000, the emulator of the platform at http://127.0.0.1:8080.',
  ]);
  expect(lines).toEqual(expect.arrayContaining(['name: value', `  ${FFMPEG}/k1`]));
});

test.each([
  ['refused', 'The packager refuses the stream abc12345. Set it to AAC.'],
  ['failed', "The packager can't package the stream abc12345. Set it to AAC."],
] as const)('shows that a stream is %s, and why, from the log of the packager', (state, says) => {
  const entry = {
    level: 'warn',
    message: 'stream not packaged',
    stream: 'abc12345',
    state,
    reason: 'Set it to AAC.',
  };
  const read = (changes: object) =>
    refusalIn(JSON.stringify({ ...entry, ...changes }), 'http://127.0.0.1:8080');
  expect(read({})).toBe(`${says}\n  http://127.0.0.1:8080/dashboard/events?q=abc12345\n`);
  expect(read({ state: 'interrupted' })).toBeUndefined();
  expect(read({ message: 'part of a stream started' })).toBeUndefined();
});
