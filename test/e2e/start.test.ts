import { createServer } from 'node:net';
import { join } from 'node:path';
import fs from 'fs-extra';
import { temporaryFolder } from '../support/after-test';
import { DIST, runScript, startBuilt, untilReady } from '../support/built-program';
import { CENC_ONLY, CENC_ONLY_FILE } from '../support/post-manual';

const SIDECAR = join(DIST, 'sidecar', 'main.js');

let cwd: string;

beforeEach(async () => {
  cwd = await temporaryFolder();
});

async function roundTrip(url: string, apiKey: string) {
  const address = `${url}/api/keyfile/live`;
  const headers = { 'x-api-key': apiKey, 'content-type': 'application/json' };
  const post = await fetch(address, { method: 'POST', headers, body: JSON.stringify(CENC_ONLY) });
  const get = await fetch(address, { headers });
  return [post.status, await post.text(), get.status, await get.text()];
}

const SERVED = [200, CENC_ONLY_FILE, 200, CENC_ONLY_FILE];

test('serves with the API key of a file, ended by a line break or not', async () => {
  await fs.writeFile(join(cwd, 'api-key'), 'key-of-a-file\n');
  const { url } = await startBuilt('sidecar', { cwd, env: { PACKAGERDRMAPI_APIKEY_FILE: 'api-key' } });
  await untilReady(url);
  expect(await roundTrip(url, 'key-of-a-file')).toEqual(SERVED);
  expect(await fs.readFile(join(cwd, 'keys', 'live.key'), 'utf8')).toBe(CENC_ONLY_FILE);
});

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

test('tells Prometheus of its process, too', async () => {
  const { url } = await startBuilt('sidecar', { cwd, env: { PACKAGERDRMAPI_APIKEY: 'any-key' } });
  const text = await (await fetch(`${url}/metrics`)).text();
  expect(text).toMatch(/^process_resident_memory_bytes \d+$/m);
  expect(text).toMatch(/^# TYPE nodejs_gc_duration_seconds histogram$/m);
});

test('refuses to start with every fault of the configuration in one message', async () => {
  const env = {
    PACKAGERDRMAPI_APIKEY_FILE: 'missing',
    PACKAGERDRMAPI_PORT: '70000',
    PACKAGERDRMAPI_KEYFILEMODE: '0777',
    PACKAGERDRMAPI_KEYPROVIDERURL: 'ftp://provider.example.com',
    PACKAGERDRMAPI_CHECKS: 'off',
  };
  expect(await runScript(SIDECAR, { cwd, env }).ended).toEqual({
    code: 2,
    signal: null,
    stdout: '',
    stderr: `\
The configuration has 5 faults:
  - PACKAGERDRMAPI_KEYFILEMODE: must not make key files executable
  - PACKAGERDRMAPI_PORT: must be from 0 to 65535
  - PACKAGERDRMAPI_KEYPROVIDERURL: must be an http:// or https:// address without user, query, fragment or space
  - PACKAGERDRMAPI_CHECKS: must be strict or warn
  - PACKAGERDRMAPI_APIKEY_FILE: missing: there is no such file
See docs/configuration.md.
`,
  });
  expect(await fs.readdir(cwd)).toEqual([]);
});

test('ends with 1 and the reason in its log when the port is taken', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const env = {
    PACKAGERDRMAPI_APIKEY: 'key',
    PACKAGERDRMAPI_HOST: '127.0.0.1',
    PACKAGERDRMAPI_PORT: String(port),
  };
  const { code, stdout, stderr } = await runScript(SIDECAR, { cwd, env }).ended;
  await new Promise((resolve) => server.close(resolve));
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: 'sidecar: cannot start: the port is taken by another program; choose another port\n',
  });
  expect(JSON.parse(stdout)).toMatchObject({
    level: 'error',
    message: 'cannot start: the port is taken by another program; choose another port',
    cause: { code: 'EADDRINUSE' },
  });
});

test('starts without its folder, says so, and is ready as soon as the folder is there', async () => {
  await fs.writeFile(join(cwd, 'keys'), 'a file in the way\n');
  const { url, until } = await startBuilt('sidecar', { cwd, env: { PACKAGERDRMAPI_APIKEY: 'key' } });
  await until(/"message":"the key-file folder cannot be used"/);
  expect((await fetch(`${url}/readyz`)).status).toBe(503);
  await fs.remove(join(cwd, 'keys'));
  await fs.ensureDir(join(cwd, 'keys'));
  await untilReady(url);
  expect(await roundTrip(url, 'key')).toEqual(SERVED);
});

test.each([
  ['0.0.0.0', /^0\.0\.0\.0:\d+$/, /^http:\/\/127\.0\.0\.1:\d+$/],
  ['127.0.0.1', /^127\.0\.0\.1:\d+$/, /^http:\/\/127\.0\.0\.1:\d+$/],
])('says in its log that it listens on %s, and an address to call', async (host, address, url) => {
  const env = { PACKAGERDRMAPI_APIKEY: 'key', PACKAGERDRMAPI_HOST: host };
  const { until } = await startBuilt('sidecar', { cwd, env });
  const [line] = await until(/^.*"message":"listening".*$/m);
  const said = JSON.parse(line);
  expect(said).toEqual({
    time: expect.any(String),
    level: 'info',
    message: 'listening',
    service: 'sidecar',
    address: expect.stringMatching(address),
    url: expect.stringMatching(url),
    keyFilesPath: join(await fs.realpath(cwd), 'keys'),
    provisioning: false,
  });
  expect(said.address.split(':').at(-1)).toBe(said.url.split(':').at(-1));
});

test('says that a folder is where the file of the API key belongs', async () => {
  await fs.ensureDir(join(cwd, 'api-key'));
  const { code, stderr } = await runScript(SIDECAR, { cwd, env: { PACKAGERDRMAPI_APIKEY_FILE: 'api-key' } })
    .ended;
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: `\
The configuration has a fault:
  - PACKAGERDRMAPI_APIKEY_FILE: api-key is a folder. Docker makes one where the file to mount is missing: remove it, make the file, and create the container again.
See docs/configuration.md.
`,
  });
});

test('warns of a variable that looks misspelt', async () => {
  const env = { PACKAGERDRMAPI_APIKEY: 'key', PACKAGERDRMAPI_KEYFILEPATH: 'keys' };
  const { until } = await startBuilt('sidecar', { cwd, env });
  const [line] = await until(/^.*"message":"unknown variable".*$/m);
  expect(JSON.parse(line)).toEqual({
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    level: 'warn',
    message: 'unknown variable',
    variable: 'PACKAGERDRMAPI_KEYFILEPATH (did you mean PACKAGERDRMAPI_KEYFILESPATH?)',
  });
});
