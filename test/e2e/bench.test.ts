import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import fs from 'fs-extra';
import { temporaryFolder } from '../support/after-test';
import { processesNaming } from '../support/chain-processes';
import { until } from '../support/until';

const ROOT = resolve(__dirname, '../..');
/** The sidecar, and both servers that it is compared with. */
const SERVERS = /\/dist\/(?:sidecar\/main|bench\/servers\/[\w-]+)\.js$/;

// npm and four processes take their time.
jest.setTimeout(60_000);

beforeAll(() => execFileSync(process.execPath, ['build.mjs', '--bench'], { cwd: ROOT }));

(fs.existsSync('/proc/self/environ') ? test : test.skip)(
  'a benchmark takes its servers and folders with it when npm gets SIGINT or SIGTERM',
  async () => {
    await Promise.all([endsAll('SIGINT'), endsAll('SIGTERM')]);
  },
);

test.each(['many', '1'])('a benchmark of %j keys is refused before it starts', (keys) => {
  const args = ['dist/bench/run.js', 'rotation', `--keys=${keys}`];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' });
  expect([status, stdout]).toEqual([2, '']);
  expect(stderr).toMatch(
    /^--keys must be how many keys there are to be, from 2 to 9999, such as --keys 12\.$/m,
  );
});

async function endsAll(signal: NodeJS.Signals): Promise<void> {
  const folder = await temporaryFolder();
  const env = { PATH: process.env.PATH, HOME: folder, TMPDIR: folder };
  // --ignore-scripts: it is built already.
  const args = ['run', '--ignore-scripts', 'bench', '--', 'writes'];
  const npm = spawn('npm', args, { cwd: ROOT, env, stdio: 'ignore' });
  const closed = once(npm, 'close');
  await until(() => processesNaming(folder).filter((line) => SERVERS.test(line)).length === 3);
  npm.kill(signal);
  await closed;
  await until(() => processesNaming(folder).length === 0);
  expect((await fs.readdir(folder)).filter((name) => name.startsWith('packager-drm-api-bench'))).toEqual([]);
}
