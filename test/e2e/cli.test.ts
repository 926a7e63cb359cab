import { join } from 'node:path';
import fs from 'fs-extra';
import { folderOfEachTest } from '../support/after-test';
import { type BuiltProgram, DIST, runScript, startBuilt, untilReady } from '../support/built-program';
import { startFakeSidecar } from '../support/fake-sidecar';
import { until } from '../support/until';

const API_KEY = 'key-of-the-cli-tests';
/** Five requests of an apply. */
const STREAMS = 500;

const cwd = folderOfEachTest();

beforeEach(async () => {
  // 255 values over and over, none of them zero.
  const keyId = (index: number) => Buffer.alloc(16, (index % 255) + 1).toString('base64');
  const rows = Array.from(
    { length: STREAMS },
    (_item, index) => `live/s${index},${keyId(index)},${keyId(index + 7)}`,
  );
  await fs.writeFile(join(cwd, 'manifest.csv'), `streamid,cenc.keyid,cenc.contentkey\n${rows.join('\n')}\n`);
});

function run(args: readonly string[], url: string): BuiltProgram {
  const env = { PACKAGERDRM_URL: url, PACKAGERDRM_APIKEY: API_KEY };
  return runScript(join(DIST, 'cli', 'main.js'), { args, env, cwd });
}

async function startSidecar(): Promise<string> {
  const { url } = await startBuilt('sidecar', { cwd, env: { PACKAGERDRMAPI_APIKEY: API_KEY } });
  await untilReady(url);
  return url;
}

async function keyFiles(): Promise<string[]> {
  const folder = join(cwd, 'keys', 'live');
  return (await fs.pathExists(folder))
    ? (await fs.readdir(folder)).filter((name) => name.endsWith('.key'))
    : [];
}

test('a manifest whose apply is killed in the middle is finished by the next apply', async () => {
  const url = await startSidecar();
  const killed = run(['apply', 'manifest.csv', '--yes'], url);
  await until(async () => (await keyFiles()).length >= 150);
  killed.send('SIGKILL');
  expect((await killed.ended).signal).toBe('SIGKILL');

  const { code, stdout, stderr } = await run(['apply', 'manifest.csv', '--yes', '--json'], url).ended;
  const { summary } = JSON.parse(stdout);
  expect([code, stderr]).toEqual([0, '']);
  const { unchanged, ...others } = summary;
  expect(others).toEqual({ created: STREAMS - unchanged, changed: 0, failed: 0, not_reached: 0 });
  expect(unchanged).toBeGreaterThanOrEqual(150);
  expect(await keyFiles()).toHaveLength(STREAMS);

  const again = await run(['apply', 'manifest.csv', '--yes'], url).ended;
  expect([again.code, again.stderr]).toEqual([0, 'There is nothing to write.\n']);
}, 60_000);

test.each(['SIGINT', 'SIGTERM'] as const)(
  '%s ends an apply after the request under way, with a summary',
  async (signal) => {
    const sidecar = await startFakeSidecar();
    const program: { apply?: BuiltProgram } = {};
    sidecar.before = ({ dryRun }) => {
      if (!dryRun && sidecar.files.size === 0) program.apply?.send(signal);
      return undefined;
    };
    program.apply = run(['apply', 'manifest.csv', '--yes'], sidecar.url);
    const { code, stderr } = await program.apply.ended;
    const written = sidecar.files.size;
    expect(written).toBeLessThan(STREAMS);
    const summary = `manifest.csv: ${written} created, ${STREAMS - written} not reached.`;
    expect([code, stderr.split('\n').at(-2)]).toEqual([130, summary]);
  },
  30_000,
);
