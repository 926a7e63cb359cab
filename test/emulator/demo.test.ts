import { createServer } from 'node:net';
import { freePort } from '../../src/emulator/demo/child-program';
import { guide, readDemoOptions } from '../../src/emulator/demo/guide';

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

test('shows the key file as it is, its path and the commands that repeat it', () => {
  const text = guide({
    sidecarUrl: 'http://127.0.0.1:9000',
    emulatorUrl: 'http://127.0.0.1:8080',
    streamId: 'demo',
    apiKey: 'key',
    request: { client: 'c', contentId: 'demo' },
    keyFile: 'name: value\nother: value\n',
    keyFilePath: '/keys/demo.key',
    channels: [{ mode: 'manual', id: 'abcdefgh', streamKey: 'k1' }],
    controlUrl: 'http://127.0.0.1:8081',
    rtmpUrl: 'rtmp://127.0.0.1:1935/live',
    siteId: 'sitesite',
    apiSecret: 'secret',
  });
  const curl = "curl -sS http://127.0.0.1:9000/api/keyfile/demo -H 'x-api-key: key'";
  expect(text.split('\n')).toEqual(
    expect.arrayContaining([
      'name: value',
      'other: value',
      'It lies at /keys/demo.key',
      `  ${curl} -H 'content-type: application/json' -d '{"client":"c","contentId":"demo"}'`,
      `  ${curl}`,
      `  ${curl} -X DELETE`,
      'Channel abcdefgh (manual: viewers see it once it is published)',
      '  stream key  k1',
      '  watch       http://127.0.0.1:8080/embed/channel.html?channelId=abcdefgh',
      expect.stringMatching(/^ {2}stream {6}ffmpeg .* rtmp:\/\/127\.0\.0\.1:1935\/live\/k1$/),
      `  curl -sS http://127.0.0.1:8081/encoder/connect -d '{"stream_key":"k1"}'`,
    ]),
  );
});

test('passes over a port that another of its programs was promised', async () => {
  const port = await freePort(20_000);
  expect(await freePort(port, new Set([port, port + 1]))).toBeGreaterThan(port + 1);
});

test('passes over a port that is taken', async () => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  const { port } = taken.address() as { port: number };
  try {
    expect(await freePort(port)).toBeGreaterThan(port);
  } finally {
    await new Promise((resolve) => taken.close(resolve));
  }
});
