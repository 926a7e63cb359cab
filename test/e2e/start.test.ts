import { join } from 'node:path';
import fs from 'fs-extra';
import { folderOfEachTest } from '../support/after-test';
import { DIST, runScript, startBuilt, untilReady } from '../support/built-program';
import { CENC_ONLY_FILE } from '../support/post-manual';
import { roundTrip, SERVED } from '../support/round-trip';

const SIDECAR = join(DIST, 'sidecar', 'main.js');

const cwd = folderOfEachTest();

test('serves with the API key of a file, ended by a line break or not', async () => {
  await fs.writeFile(join(cwd, 'api-key'), 'key-of-a-file\n');
  const { url } = await startBuilt('sidecar', { cwd, env: { PACKAGERDRMAPI_APIKEY_FILE: 'api-key' } });
  await untilReady(url);
  expect(await roundTrip(url, 'key-of-a-file')).toEqual(SERVED);
  expect(await fs.readFile(join(cwd, 'keys', 'live.key'), 'utf8')).toBe(CENC_ONLY_FILE);
});

test.each([
  ['sidecar', 'docs/configuration.md'],
  ['emulator', 'docs/emulator.md'],
  ['packager', 'docs/packager.md'],
])(
  'does not start the %s for --help and other arguments, and names the page of its variables',
  async (house, page) => {
    const run = (...args: string[]) => runScript(join(DIST, house, 'main.js'), { cwd, env: {}, args }).ended;
    const says = `All settings are environment variables. See ${page}.\n`;
    const stderr = `This program takes no arguments. ${says}`;
    expect(await Promise.all([run('--help'), run('--port', '9000')])).toMatchObject([
      { code: 0, stdout: says, stderr: '' },
      { code: 2, stdout: '', stderr },
    ]);
  },
);

test('refuses to start with every fault of the configuration in one message', async () => {
  const env = {
    PACKAGERDRMAPI_APIKEY_FILE: 'missing',
    PACKAGERDRMAPI_PORT: '70000',
  };
  expect(await runScript(SIDECAR, { cwd, env }).ended).toEqual({
    code: 2,
    signal: null,
    stdout: '',
    stderr: `\
The configuration has 2 faults:
  - PACKAGERDRMAPI_PORT: must be from 0 to 65535
  - PACKAGERDRMAPI_APIKEY_FILE: missing: there is no such file
See docs/configuration.md.
`,
  });
  expect(await fs.readdir(cwd)).toEqual([]);
});
