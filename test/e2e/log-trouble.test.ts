import { spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { join } from 'node:path';
import fs from 'fs-extra';
import { freePort } from '../../src/platform/demo/child-program';
import { temporaryFolder } from '../support/after-test';
import { API_KEY, callWithKey } from '../support/api-key';
import { DIST } from '../support/built-program';
import { CENC_ONLY, CENC_ONLY_FILE } from '../support/post-manual';
import { until } from '../support/until';

/** Starts the sidecar with a standard output of its own kind, and answers when it is ready. */
async function startWith(stdout: 'pipe' | number) {
  const cwd = await temporaryFolder();
  const port = await freePort(23_000);
  const child = spawn(process.execPath, [join(DIST, 'sidecar', 'main.js')], {
    cwd,
    env: {
      PACKAGERDRMAPI_APIKEY: API_KEY,
      PACKAGERDRMAPI_HOST: '127.0.0.1',
      PACKAGERDRMAPI_PORT: String(port),
    },
    stdio: ['ignore', stdout, 'ignore'],
  });
  const ended = new Promise((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })));
  const url = `http://127.0.0.1:${port}`;
  // The reader of the log goes away before the first line.
  child.stdout?.destroy();
  await until(() =>
    fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
  return { child, cwd, ended, url };
}

test.each([
  ['is full', () => openSync('/dev/full', 'w')],
  ['has lost its reader', () => 'pipe' as const],
])('goes on serving, and stops in order, when its log %s', async (_how, stdout) => {
  const { child, cwd, ended, url } = await startWith(stdout());
  for (let turn = 0; turn < 20; turn += 1) {
    const address = `${url}/api/keyfile/live-${turn}`;
    const post = await callWithKey(address, 'POST', CENC_ONLY);
    expect([post.status, await post.text()]).toEqual([200, CENC_ONLY_FILE]);
    expect((await callWithKey(`${address}-absent`, 'GET')).status).toBe(404);
  }
  expect(await fs.readdir(join(cwd, 'keys'))).toHaveLength(20);
  child.kill('SIGTERM');
  expect(await ended).toEqual({ code: 0, signal: null });
});
