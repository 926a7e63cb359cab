import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parse } from 'yaml';
import type { FindApiKey } from '../../src/sidecar/api-key';
import { readSidecarConfig } from '../../src/sidecar/config';
import { guardDocumentedKeys } from '../../src/sidecar/start-up';
import { folderOfEachTest } from '../support/after-test';
import { DIST, type Ended, runScript, startBuilt, untilReady } from '../support/built-program';
import { readServices } from '../support/compose-file';
import { recordedLog } from '../support/recorded-log';

const ROOT = resolve(__dirname, '../..');
const SIDECAR = join(DIST, 'sidecar', 'main.js');

const cwd = folderOfEachTest();

/** How the documentation writes a key that clients send, whole: `…` and `$KEY` are a reader's own. */
const SHOWN =
  /(?:x-api-key: |PACKAGERDRM(?:API)?_APIKEY=|PACKAGERDRMAPI_APIKEY:-|"name": "[^"]+", "key": ")([\w-]{4,})(?=['"}\s`]|$)/gm;

/** Every API key that somebody can copy from here. */
async function shownKeys(): Promise<string[]> {
  const entries = await readdir(join(ROOT, 'docs'), { withFileTypes: true });
  const pages = entries.filter((entry) => entry.isFile()).map(({ name }) => join('docs', name));
  const files = [...pages, 'README.md', '.env.example', 'docker-compose.yml', 'docker-compose.fleet.yml'];
  const texts = await Promise.all(files.map((file) => readFile(join(ROOT, file), 'utf8')));
  return [...new Set(texts.flatMap((text) => [...text.matchAll(SHOWN)].map(([, key = '']) => key)))];
}

/** Runs a sidecar that is not to come up; one that does is ended. */
function refused(env: Record<string, string>): Promise<Ended> {
  const sidecar = runScript(SIDECAR, { cwd, env: { PACKAGERDRMAPI_PORT: '0', ...env } });
  const end = () => sidecar.send('SIGKILL');
  sidecar.until(/"message":"listening"/).then(end, end);
  return sidecar.ended;
}

function message(...faults: string[]): string {
  const lines = faults.map((fault) => `  - ${fault}\n`).join('');
  const count = faults.length === 1 ? 'a fault' : `${faults.length} faults`;
  return `The configuration has ${count}:\n${lines}See docs/configuration.md.\n`;
}

function isShown(host: string): string {
  return `is in the documentation; on ${host} anyone could read content keys with it. Set one of your own: openssl rand -hex 32. This one is for loopback (PACKAGERDRMAPI_HOST=127.0.0.1; in compose, no SIDECAR_PUBLISH); PACKAGERDRMAPI_DEMO=true allows it for a demo that no one else can reach`;
}

async function statusOf(url: string, apiKey: string): Promise<number> {
  return (await fetch(`${url}/api/keyfile/live`, { headers: { 'x-api-key': apiKey } })).status;
}

test('refuses to listen on all addresses with any API key that the documentation shows', async () => {
  const keys = await shownKeys();
  expect(keys).toEqual(expect.arrayContaining(['demo-sidecar-api-key', 'change-me-to-a-long-random-key']));
  for (const key of keys) expectRefusal('0.0.0.0', key);
});

const DEMO_KEY = 'demo-sidecar-api-key';

function guarded(reach: { host: string; demo?: boolean }, apiKey = DEMO_KEY) {
  const { log, lines } = recordedLog();
  const findKey: FindApiKey = (given) =>
    given === apiKey ? { name: 'default', scope: 'write', streams: undefined } : undefined;
  const find = guardDocumentedKeys(findKey, { apiKey, demo: false, ...reach }, log);
  return { found: find(apiKey)?.name, lines };
}

const expectRefusal = (host: string, apiKey = DEMO_KEY) =>
  expect(() => guarded({ host }, apiKey)).toThrow(
    expect.objectContaining({ faults: [`PACKAGERDRMAPI_APIKEY: the key ${isShown(host)}`] }),
  );

test.each(['::', '192.0.2.1', 'packager.example.com'])(
  'refuses to listen on %s with the key of the demo',
  (host) => expectRefusal(host),
);

test.each([{ host: '127.0.0.1' }, { host: 'localhost' }, { host: '[::1]' }, { host: '0.0.0.0', demo: true }])(
  'serves the key of the demo at %j, and warns of it',
  (reach) => {
    expect(guarded(reach)).toEqual({
      found: 'default',
      lines: [['warn', expect.stringMatching(/^this API key is in the documentation/), { name: 'default' }]],
    });
  },
);

test('refuses documented keys in the file of keys, each by its name', async () => {
  const keys = [
    { name: 'sports-desk', key: 'change-me-to-a-long-random-key' },
    { name: 'operator', key: 'a-key-of-this-test-alone' },
    { name: 'provisioning', key: '5c0d7c1f6f1f4a37b0c8c4c6a6f0a9d2' },
  ];
  await writeFile(join(cwd, 'keys.json'), JSON.stringify({ keys }));
  const { code, stderr } = await refused({ PACKAGERDRMAPI_APIKEYS_FILE: 'keys.json' });
  const faults = ['sports-desk', 'provisioning'].map(
    (name) => `PACKAGERDRMAPI_APIKEYS_FILE: the key ${name} ${isShown('0.0.0.0')}`,
  );
  expect({ code, stderr }).toEqual({ code: 2, stderr: message(...faults) });
});

test('takes no documented key that comes into the file of keys later, and says so once', async () => {
  const write = (keys: object[]) => writeFile(join(cwd, 'keys.json'), JSON.stringify({ keys }));
  const operator = { name: 'operator', key: 'a-key-of-this-test-alone' };
  await write([operator]);
  const env = { PACKAGERDRMAPI_APIKEYS_FILE: 'keys.json', PACKAGERDRMAPI_HOST: '0.0.0.0' };
  const { url, until, stdout } = await startBuilt('sidecar', { cwd, env });
  await untilReady(url);
  await write([operator, { name: 'desk', key: 'change-me-to-a-long-random-key' }]);
  await until(/"message":"API keys read".*"count":2/);
  expect(await statusOf(url, 'change-me-to-a-long-random-key')).toBe(401);
  expect(await statusOf(url, 'change-me-to-a-long-random-key')).toBe(401);
  expect(await statusOf(url, operator.key)).toBe(404);
  await until(/an API key from the documentation is not accepted/);
  const lines = stdout().match(/^.*is not accepted.*$/gm) ?? [];
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    {
      time: expect.any(String),
      level: 'error',
      message: 'an API key from the documentation is not accepted',
      fault: `PACKAGERDRMAPI_APIKEYS_FILE: the key desk ${isShown('0.0.0.0')}`,
    },
  ]);
});

test('refuses a PACKAGERDRMAPI_DEMO that says nothing', () => {
  const fault =
    'must be true or false, or the address that a container is published on: true when it is a loopback one';
  const env = { PACKAGERDRMAPI_APIKEY: 'key', PACKAGERDRMAPI_DEMO: 'yes' };
  expect(() => readSidecarConfig(env, () => '')).toThrow(
    expect.objectContaining({ faults: [`PACKAGERDRMAPI_DEMO: ${fault}`] }),
  );
});

async function composed(env: Record<string, string>) {
  const { sidecar } = await readServices(env);
  const { PACKAGERDRMAPI_APIKEY = '', PACKAGERDRMAPI_DEMO = '' } = sidecar?.environment ?? {};
  const demo = String(PACKAGERDRMAPI_DEMO);
  return { ports: sidecar?.ports, env: { PACKAGERDRMAPI_APIKEY, PACKAGERDRMAPI_DEMO: demo } };
}

describe('docker-compose.yml', () => {
  test('publishes the demo on loopback alone, and its sidecar starts', async () => {
    const { ports, env } = await composed({});
    expect({ ports, env }).toEqual({
      ports: ['127.0.0.1:9000:80'],
      env: { PACKAGERDRMAPI_APIKEY: 'demo-sidecar-api-key', PACKAGERDRMAPI_DEMO: 'true' },
    });
    const { url } = await startBuilt('sidecar', { cwd, env: { ...env, PACKAGERDRMAPI_HOST: '0.0.0.0' } });
    expect(await statusOf(url, 'demo-sidecar-api-key')).toBe(404);
  });

  test('publishes on another address, and its sidecar refuses the documented key there', async () => {
    const { ports, env } = await composed({ SIDECAR_PUBLISH: '0.0.0.0' });
    expect(ports).toEqual(['0.0.0.0:9000:80']);
    expect((await refused(env)).code).toBe(2);
  });
});

test('the compose file of docs/run-with-docker.md publishes on loopback and keeps the volume from the packager', async () => {
  const page = await readFile(join(ROOT, 'docs/run-with-docker.md'), 'utf8');
  const [, text = ''] = /^ *```yaml\n( *services:\n[\s\S]*?)^ *```$/m.exec(page) ?? [];
  const { services } = parse(text);
  const { wowza, sidecar } = services;
  const [mount] = wowza.volumes;
  expect({ ports: sidecar.ports, groups: wowza.group_add, mount }).toEqual({
    ports: ['127.0.0.1:9000:80'],
    groups: ['1000'],
    mount: {
      type: 'volume',
      source: 'keys',
      target: '/usr/local/WowzaStreamingEngine/keys',
      read_only: true,
      volume: { nocopy: true },
    },
  });
});
