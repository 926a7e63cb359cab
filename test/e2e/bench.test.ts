import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import fs from 'fs-extra';
import { temporaryFolder } from '../support/after-test';
import { until } from '../support/until';

const ROOT = resolve(__dirname, '../..');
/** The sidecar, and both servers that it is compared with. */
const SERVERS = /\/dist\/(?:sidecar\/main|bench\/servers\/[\w-]+)\.js$/;

// npm and four processes take their time.
jest.setTimeout(60_000);

beforeAll(() => execFileSync(process.execPath, ['build.mjs', '--bench'], { cwd: ROOT }));

/** The command lines of the processes whose variables name a folder. */
function processesIn(folder: string): string[] {
  return fs.readdirSync('/proc').flatMap((name) => {
    try {
      if (!/^\d+$/.test(name)) return [];
      const [variables, words] = ['environ', 'cmdline'].map((file) =>
        fs.readFileSync(join('/proc', name, file), 'utf8').split('\0'),
      );
      return variables?.some((variable) => variable.includes(folder)) ? [words?.join(' ').trim() ?? ''] : [];
    } catch {
      return []; // it has ended, or is another user's
    }
  });
}

(fs.existsSync('/proc/self/environ') ? test : test.skip)(
  'a benchmark takes its servers and folders with it when npm gets SIGINT or SIGTERM',
  async () => {
    await Promise.all([endsAll('SIGINT'), endsAll('SIGTERM')]);
  },
);

async function endsAll(signal: NodeJS.Signals): Promise<void> {
  const folder = await temporaryFolder();
  const env = { PATH: process.env.PATH, HOME: folder, TMPDIR: folder };
  // --ignore-scripts: it is built already.
  const args = ['run', '--ignore-scripts', 'bench', '--', 'writes'];
  const npm = spawn('npm', args, { cwd: ROOT, env, stdio: 'ignore' });
  const closed = once(npm, 'close');
  await until(() => processesIn(folder).filter((line) => SERVERS.test(line)).length === 3);
  npm.kill(signal);
  await closed;
  await until(() => processesIn(folder).length === 0);
  expect((await fs.readdir(folder)).filter((name) => name.startsWith('packager-drm-api-bench'))).toEqual([]);
}
