import { join } from 'node:path';
import fs from 'fs-extra';
import { folderOfEachTest } from '../support/after-test';
import { DIST, runScript, startBuilt, untilReady } from '../support/built-program';
import { roundTrip, SERVED } from '../support/round-trip';

const cwd = folderOfEachTest();

test('reads the .env file of its working folder, and lets the environment win over it', async () => {
  const lines = ['PACKAGERDRMAPI_APIKEY=key-of-dotenv', 'PACKAGERDRMAPI_KEYFILESPATH=overruled'];
  await fs.writeFile(join(cwd, '.env'), lines.join('\n'));
  const { url } = await startBuilt('sidecar', { cwd, env: { PACKAGERDRMAPI_KEYFILESPATH: 'chosen' } });
  await untilReady(url);
  expect(await roundTrip(url, 'key-of-dotenv')).toEqual(SERVED);
  expect((await fs.readdir(cwd)).sort()).toEqual(['.env', 'chosen']);
});

test('warns in the log, and holders of an API key at /readyz, of a key folder that it had to make', async () => {
  const key = 'a-key-of-sixteen-or-more';
  const start = () => startBuilt('sidecar', { cwd, env: { PACKAGERDRMAPI_APIKEY: key } });
  const codesOf = async ({ url, stdout }: Awaited<ReturnType<typeof start>>) => {
    await untilReady(url);
    const answer = await fetch(`${url}/readyz`, { headers: { 'x-api-key': key } });
    const { warnings = [] } = (await answer.json()) as { warnings?: { code: string }[] };
    const logged = stdout().match(/"message":"warning at the start","code":"\w+"/g) ?? [];
    return [warnings.map(({ code }) => code), logged.length];
  };
  expect(await codesOf(await start())).toEqual([['key_folder_made'], 1]);
  expect(await codesOf(await start())).toEqual([[], 0]);
});

test('starts without its folder, says so, and is ready as soon as the folder is there', async () => {
  await fs.writeFile(join(cwd, 'keys'), 'a file in the way\n');
  const { url, until } = await startBuilt('sidecar', { cwd, env: { PACKAGERDRMAPI_APIKEY: 'key' } });
  await until(
    /"message":"the key-file folder cannot be used".*"why":"[^"]*\/keys is not a folder\. Remove it, or set /,
  );
  expect((await fetch(`${url}/readyz`)).status).toBe(503);
  await fs.remove(join(cwd, 'keys'));
  await fs.ensureDir(join(cwd, 'keys'));
  await untilReady(url);
  expect(await roundTrip(url, 'key')).toEqual(SERVED);
});

test('starts with a folder that cannot be made, and says why', async () => {
  const env = { PACKAGERDRMAPI_APIKEY: 'key', PACKAGERDRMAPI_KEYFILESPATH: '/proc/none/keys' };
  const { url, until } = await startBuilt('sidecar', { cwd, env });
  await until(
    /"message":"the key-file folder cannot be used".*"why":"(?:The key-file folder is not writable: |this service runs as user)/,
  );
  expect((await fetch(`${url}/readyz`)).status).toBe(503);
});

test('says in its log, and nowhere else, where it listens, an address to call, and of a variable that looks misspelt', async () => {
  const env = {
    PACKAGERDRMAPI_APIKEY: 'key',
    PACKAGERDRMAPI_HOST: '0.0.0.0',
    PACKAGERDRMAPI_KEYFILEPATH: 'keys',
    // Not enough: this protocol needs the configuration service, too.
    PACKAGERDRMAPI_KEYPROVIDERURL: 'http://127.0.0.1:1/keyprovider',
    // Packages would write what they do, the password of a proxy among it.
    DEBUG: '*',
  };
  const { until, send, ended } = await startBuilt('sidecar', { cwd, env });
  const [line] = await until(/^.*"message":"listening".*$/m);
  const said = JSON.parse(line);
  expect(said).toEqual({
    time: expect.any(String),
    level: 'info',
    message: 'listening',
    service: 'sidecar',
    address: expect.stringMatching(/^0\.0\.0\.0:\d+$/),
    url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
    keyFilesPath: join(await fs.realpath(cwd), 'keys'),
    provisioning: false,
  });
  expect(said.address.split(':').at(-1)).toBe(said.url.split(':').at(-1));
  await until(/"unknown variable","variable":"PACKAGERDRMAPI_KEYFILEPATH \(did you mean/);
  send('SIGTERM');
  expect(await ended).toMatchObject({ code: 0, stderr: '' });
});

test('says that a folder is where the file of the API key belongs', async () => {
  await fs.ensureDir(join(cwd, 'api-key'));
  const env = { PACKAGERDRMAPI_APIKEY_FILE: 'api-key' };
  const { code, stderr } = await runScript(join(DIST, 'sidecar', 'main.js'), { cwd, env }).ended;
  const fault =
    'PACKAGERDRMAPI_APIKEY_FILE: api-key is a folder. Docker makes one where the file to mount is missing: remove it, make the file, and create the container again.';
  expect([code, stderr]).toEqual([2, expect.stringContaining(`\n  - ${fault}\n`)]);
});
