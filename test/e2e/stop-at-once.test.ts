import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import fs from 'fs-extra';
import { folderOfEachTest } from '../support/after-test';
import { API_KEY, callWithKey } from '../support/api-key';
import { bundledScript, startBuilt, untilReady } from '../support/built-program';
import { CENC_ONLY } from '../support/post-manual';
import { until } from '../support/until';

/** For a sidecar whose long waits are a tenth as long. */
const FAST_CLOCK = { NODE_OPTIONS: `--require ${JSON.stringify(bundledScript('fast-clock'))}` };

const cwd = folderOfEachTest();

test('ends at once on a stop signal while it sweeps a large folder', async () => {
  const COUNT = 10_000;
  const name = (index: number) => `.packagerdrmapi-0c0ffee0-0000-4000-8000-00000000dead-${index}.tmp`;
  await fs.ensureDir(join(cwd, 'keys'));
  for (let index = 0; index < COUNT; index += 1) fs.writeFileSync(join(cwd, 'keys', name(index)), '');
  const sidecar = await startBuilt('sidecar', { cwd, env: { PACKAGERDRMAPI_APIKEY: API_KEY } });
  sidecar.send('SIGTERM');
  const { code, stderr } = await sidecar.ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const left = (await fs.readdir(join(cwd, 'keys'))).length;
  expect(left).toBeGreaterThan(COUNT / 10);
});

test('cuts a request that never ends after ten seconds, and ends with 0', async () => {
  const sidecar = await startBuilt('sidecar', {
    cwd,
    env: { PACKAGERDRMAPI_APIKEY: API_KEY, ...FAST_CLOCK },
  });
  await untilReady(sidecar.url);
  const socket = connect(Number(new URL(sidecar.url).port), '127.0.0.1');
  const head = ['POST /api/keyfile/live HTTP/1.1', 'host: sidecar', `x-api-key: ${API_KEY}`];
  socket.write(
    [...head, 'content-type: application/json', 'content-length: 100', 'expect: 100-continue', '', ''].join(
      '\r\n',
    ),
  );
  const [said] = await once(socket, 'data');
  expect(String(said)).toBe('HTTP/1.1 100 Continue\r\n\r\n');
  socket.write('{"cenc":');
  const cut = once(socket, 'close');
  sidecar.send('SIGTERM');
  const stoppedAt = performance.now();
  const { code, stderr } = await sidecar.ended;
  await cut;
  const took = performance.now() - stoppedAt;
  expect(took).toBeGreaterThan(950);
  expect(took).toBeLessThan(20_000);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(await fs.readdir(join(cwd, 'keys'))).toEqual([]);
}, 30_000);

test('a batch that a stop interrupts has written whole files, each with its line in the audit', async () => {
  const sidecar = await startBuilt('sidecar', {
    cwd,
    env: { PACKAGERDRMAPI_APIKEY: API_KEY, PACKAGERDRMAPI_AUDIT: join(cwd, 'audit.log'), ...FAST_CLOCK },
  });
  await untilReady(sidecar.url);
  const streams = Array.from({ length: 4000 }, (_none, index) => ({
    streamid: `s-${index}`,
    ...CENC_ONLY,
  }));
  const sent = Array.from({ length: 4 }, (_none, batch) => {
    const own = streams.map((stream) => ({ ...stream, streamid: `${batch}/${stream.streamid}` }));
    return callWithKey(`${sidecar.url}/api/keyfiles`, 'POST', { streams: own }).catch(() => 'cut');
  });
  await until(async () => await fs.pathExists(join(cwd, 'keys/0')));
  sidecar.send('SIGTERM');
  expect(await sidecar.ended).toMatchObject({ code: 0 });
  await Promise.all(sent);
  const files = (await fs.readdir(join(cwd, 'keys'), { recursive: true })).map(String);
  const written = files.filter((name) => name.endsWith('.key'));
  expect(written.length).toBeLessThan(4 * streams.length);
  const lines = (await fs.readFile(join(cwd, 'audit.log'), 'utf8'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const created = lines
    .filter(({ result }) => result === 'created')
    .map(({ stream_id }) => `${stream_id}.key`);
  expect(created.sort()).toEqual(written.sort());
  expect(files.filter((name) => name.endsWith('.tmp'))).toEqual([]);
});
