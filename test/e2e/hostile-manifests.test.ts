import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createGet } from '../../src/http/get';
import { openTester } from '../../src/verify/sandboxed-tester';
import { DIST, runScript, startBuilt } from '../support/built-program';
import { startFakeUpstream } from '../support/fake-upstream';

const head = '#EXTM3U\n#EXT-X-TARGETDURATION:2\n';
const longVariable = `#EXT-X-DEFINE:NAME="a",VALUE="${'x'.repeat(8000)}"\n`;
const segment = (keyFormat: number, uri = 'a') =>
  `#EXT-X-KEY:METHOD=SAMPLE-AES,URI="${uri}",KEYFORMAT="k${keyFormat}"\n#EXTINF:2,\na.ts\n`;

/** Each within the bounds of what may be read at all. */
const HOSTILE = {
  memory: head + longVariable + segment(1, '{$a}'.repeat(16)).repeat(60_000),
  time: head + Array.from({ length: 100_000 }, (_, index) => segment(index % 999)).join(''),
};

async function serveHostile(): Promise<string> {
  const upstream = await startFakeUpstream();
  for (const [name, body] of Object.entries(HOSTILE)) upstream.on(`/${name}.m3u8`, { body });
  return upstream.url;
}

test('a manifest that takes all memory ends its test alone, while the emulator answers', async () => {
  const [hostile, { url }] = await Promise.all([
    serveHostile(),
    startBuilt('emulator', { cwd: tmpdir(), env: {} }),
  ]);
  let over = false;
  const body = new URLSearchParams({ url: `${hostile}/memory.m3u8` });
  const tested = fetch(`${url}/dashboard/stream-tester`, { method: 'POST', body }).finally(() => {
    over = true;
  });
  const probes: number[] = [];
  while (!over) {
    const { status } = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(5000) });
    probes.push(status);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const response = await tested;
  expect([response.status, await response.text()]).toEqual([
    200,
    expect.stringContaining('manifest_too_large'),
  ]);
  expect(new Set(probes)).toEqual(new Set([200]));
});

test('a manifest that takes more processor time than a test may have ends it', async () => {
  const program = join(DIST, 'emulator', 'stream-test.js');
  const { get, close } = createGet({ userAgent: 'test' });
  const now = () => new Date();
  const tester = openTester(get, { sandbox: { program, processorSeconds: 1, heapMib: 1024 }, now });
  const { report } = await tester.test(`${await serveHostile()}/time.m3u8`, {});
  close();
  expect(report.faults).toMatchObject([{ code: 'manifest_too_large' }]);
});

test('the command line reports a manifest that takes all memory as a fault of the stream', async () => {
  const args = ['--json', 'verify', `${await serveHostile()}/memory.m3u8`];
  const { code, stdout, stderr } = await runScript(join(DIST, 'cli/main.js'), { args, cwd: tmpdir() }).ended;
  expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
  expect(JSON.parse(stdout)).toMatchObject({
    type: 'unknown',
    renditions: [],
    fetched: { requests: 1 },
    faults: [{ severity: 'error', code: 'manifest_too_large' }],
  });
});
