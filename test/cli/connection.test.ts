import { join } from 'node:path';
import fs from 'fs-extra';
import { readConnection } from '../../src/cli/context';
import type { Options } from '../../src/cli/options';
import type { Environment } from '../../src/http/config';
import { folderOfEachTest } from '../support/after-test';
import { problemsOf } from './problems-of';

const folder = folderOfEachTest();
const cwd = join(folder, 'checkout');
const home = join(folder, 'home');

function read(options: Options, env: Environment = {}) {
  const { url, ...connection } = readConnection(options, { HOME: home, ...env }, cwd);
  return { url: url.href, ...connection };
}

const fault = (options: Options, env: Environment = {}) => problemsOf(() => read(options, env));

async function write(path: string, text: string, mode = 0o600): Promise<void> {
  await fs.outputFile(path, text);
  await fs.chmod(path, mode);
}

const NOTHING_ELSE = { ca: undefined, cert: undefined, certKey: undefined, warnings: [] };

test('options win over the environment, which wins over the configuration file, which wins over the container', async () => {
  const file = join(home, '.config', 'packager-drm', 'config.yaml');
  await write(file, 'url: http://of-the-file\nkey: of-the-file\n');
  const container = { PACKAGERDRMAPI_PORT: '9000', PACKAGERDRMAPI_APIKEY: 'of-the-container' };
  const variables = { PACKAGERDRM_URL: 'http://of-the-variable', PACKAGERDRM_APIKEY: 'of-the-variable' };
  const found = (of: string, url: string, key: string) => ({
    url: `http://of-the-${of}/`,
    urlFrom: url,
    apiKey: `of-the-${of}`,
    apiKeyFrom: key,
    ...NOTHING_ELSE,
  });
  const options = { url: 'http://of-the-option', key: 'of-the-option' };
  expect(read(options, { ...container, ...variables })).toEqual(found('option', '--url', '--key'));
  expect(read({}, { ...container, ...variables })).toEqual(
    found('variable', 'PACKAGERDRM_URL', 'PACKAGERDRM_APIKEY'),
  );
  expect(read({}, container)).toEqual(found('file', `url in ${file}`, `key in ${file}`));
  await fs.remove(file);
  expect(read({}, container)).toEqual({
    ...found('container', 'PACKAGERDRMAPI_PORT', 'PACKAGERDRMAPI_APIKEY'),
    url: 'http://127.0.0.1:9000/',
  });
});

const PEM = '-----BEGIN CERTIFICATE-----\n';
const KEY_PEM = '-----BEGIN EC PRIVATE KEY-----\n';

test('each value is looked for by itself', async () => {
  await write(join(cwd, 'packager-drm.yaml'), 'keyFile: secrets/key.txt\nca: secrets/ca.pem\n');
  await write(join(cwd, 'secrets', 'key.txt'), 'of-the-key-file\n');
  await write(join(cwd, 'secrets', 'ca.pem'), PEM);
  await write(join(cwd, 'cert.pem'), PEM);
  await write(join(cwd, 'cert-key.pem'), KEY_PEM);
  const options = { url: 'https://h', cert: 'cert.pem' };
  expect(read(options, { PACKAGERDRM_CERTKEY: 'cert-key.pem' })).toMatchObject({
    apiKey: 'of-the-key-file',
    apiKeyFrom: `keyFile in ${join(cwd, 'packager-drm.yaml')}`,
    ca: PEM,
    cert: PEM,
    certKey: KEY_PEM,
  });
});

test.each<[string, Options, Environment, string]>([
  ['--key-file', { keyFile: 'key.txt' }, { PACKAGERDRM_APIKEY: 'x' }, '--key-file'],
  ['the variable', {}, { PACKAGERDRM_APIKEY_FILE: 'key.txt' }, 'PACKAGERDRM_APIKEY_FILE'],
  ["the container's", {}, { PACKAGERDRMAPI_APIKEY_FILE: 'key.txt' }, 'PACKAGERDRMAPI_APIKEY_FILE'],
])('reads the key from the file of %s', async (_name, options, env, apiKeyFrom) => {
  await write(join(cwd, 'key.txt'), '\ufeffof-the-file\r\n');
  expect(read({ url: 'http://h', ...options }, env)).toMatchObject({ apiKey: 'of-the-file', apiKeyFrom });
});

test('reads one configuration file: the named one, that of the folder, or that of the user', async () => {
  await write(join(cwd, 'named.yaml'), 'url: http://named\nkey: k\n');
  await write(join(cwd, 'packager-drm.yaml'), 'url: http://folder\nkey: k\n');
  await write(join(home, 'xdg', 'packager-drm', 'config.yaml'), 'url: http://user\nkey: k\n');
  const env = { XDG_CONFIG_HOME: join(home, 'xdg') };
  expect(read({ config: 'named.yaml' }, env).url).toBe('http://named/');
  expect(read({}, env).url).toBe('http://folder/');
  await fs.remove(join(cwd, 'packager-drm.yaml'));
  expect(read({}, env).url).toBe('http://user/');
});

test.each<[string, Environment, string]>([
  ['its default port', {}, 'http://127.0.0.1/'],
  ['its host', { PACKAGERDRMAPI_HOST: '10.0.0.1', PACKAGERDRMAPI_PORT: '81' }, 'http://10.0.0.1:81/'],
  ['all its hosts', { PACKAGERDRMAPI_HOST: '0.0.0.0', PACKAGERDRMAPI_PORT: '81' }, 'http://127.0.0.1:81/'],
  ['its IPv6 host', { PACKAGERDRMAPI_HOST: '::1', PACKAGERDRMAPI_PORT: '81' }, 'http://[::1]:81/'],
  ['TLS', { PACKAGERDRMAPI_TLSCERT: 'c.pem', PACKAGERDRMAPI_PORT: '81' }, 'https://localhost:81/'],
])('finds the sidecar of the same container by %s', (_name, env, url) => {
  expect(read({}, { PACKAGERDRMAPI_APIKEY: 'k', ...env }).url).toBe(url);
});

describe('the configuration file that merely lies in the working folder', () => {
  const path = join(cwd, 'packager-drm.yaml');

  test.each<[string, Options, Environment]>([
    ['--key', { key: 'k' }, {}],
    ['PACKAGERDRM_APIKEY', {}, { PACKAGERDRM_APIKEY: 'k' }],
    ['PACKAGERDRMAPI_APIKEY', {}, { PACKAGERDRMAPI_APIKEY: 'k' }],
  ])('draws no key of %s to its address', async (from, options, env) => {
    await write(path, 'url: http://elsewhere\n');
    expect(await fault(options, env)).toEqual([
      `The address is from ${path}, and the API key from ${from}: a file in the working folder gets no key from elsewhere. To use it anyway, give --config ${path}, or give the address with --url.`,
    ]);
    expect(read({ ...options, config: 'packager-drm.yaml' }, env).url).toBe('http://elsewhere/');
    expect(read({ ...options, url: 'http://mine' }, env).url).toBe('http://mine/');
  });

  test('chooses no authority for an API key of elsewhere', async () => {
    await write(join(cwd, 'ca.pem'), PEM);
    await write(path, 'ca: ca.pem\n');
    const own = { url: 'https://mine', key: 'k' };
    expect(await fault(own)).toEqual([
      `The authority is from ${path}, and the API key from --key: a file in the working folder gets no key from elsewhere. To use it anyway, give --config ${path}, or give the authority with --ca.`,
    ]);
    expect(read({ ...own, config: path }).ca).toBe(PEM);
  });

  test.each(['../home.txt', 'link.txt'])('draws no file from outside its folder: %s', async (keyFile) => {
    await write(join(folder, 'home.txt'), 'secret');
    await write(path, `url: http://elsewhere\nkeyFile: ${keyFile}\n`);
    await fs.symlink(join(folder, 'home.txt'), join(cwd, 'link.txt'));
    expect(await fault({})).toEqual([
      `keyFile is outside the folder of ${path}; move the key there, or give --config ${path} to use it anyway.`,
    ]);
    expect(read({ config: path }).apiKey).toBe('secret');
  });
});

test('warns of a configuration file that holds a key and is open to others', async () => {
  const path = join(cwd, 'packager-drm.yaml');
  await write(path, 'url: http://h\nkey: k\n', 0o640);
  const warning = `${path} holds an API key and others can read it; run: chmod 600 ${path}`;
  expect(read({}).warnings).toEqual([warning]);
  await write(join(cwd, 'key.txt'), 'k');
  await write(path, 'url: http://h\nkeyFile: key.txt\n', 0o644);
  expect(read({}).warnings).toEqual([]);
});

const ADDRESS =
  'must start with http:// or https:// and have no user, query or space, such as http://127.0.0.1:9000.';
const FILES = 'CWD/packager-drm.yaml or HOME/.config/packager-drm/config.yaml';
const UNREADABLE = "CWD/none, can't be read; check the path and who may read it.";

test.each<[Options, string, Environment?]>([
  [
    { key: 'k' },
    `The address of the sidecar is missing: give it with --url, in PACKAGERDRM_URL, or as url in ${FILES}.`,
  ],
  [
    { url: 'http://h' },
    `The sidecar's API key is missing: give it with --key-file, in PACKAGERDRM_APIKEY, or as keyFile in ${FILES}.`,
  ],
  [{ url: 'localhost:9000', key: 'k' }, `The address of --url ${ADDRESS}`],
  [{ key: 'k' }, `The address of PACKAGERDRM_URL ${ADDRESS}`, { PACKAGERDRM_URL: 'http://a:SECRET@h' }],
  [{ url: 'http://h?x=1', key: 'k' }, `The address of --url ${ADDRESS}`],
  [
    { url: 'http://h', key: 'SECRET key' },
    'The API key of --key must be printable ASCII without spaces: it travels in a header.',
  ],
  [{ url: 'http://h', key: 'SECRET', keyFile: 'f' }, 'Give --key or --key-file, not both.'],
  [
    { url: 'https://h', key: 'k', cert: '/dev/null' },
    'A client certificate needs both: --cert and --cert-key.',
  ],
  [{ url: 'https://h', keyFile: 'none' }, `The file of --key-file, ${UNREADABLE}`],
  [{ url: 'https://h', key: 'k', ca: 'none' }, `The file of --ca, ${UNREADABLE}`],
  [
    { config: 'none.yaml' },
    "The configuration file CWD/none.yaml can't be read; check the path and who may read it.",
  ],
  [
    { config: '/dev/zero' },
    "The configuration file /dev/zero can't be read; check the path and who may read it.",
  ],
])('refuses %j', async (options, sentence, env = {}) => {
  expect(await fault(options, env)).toEqual([sentence.replace('CWD', cwd).replace('HOME', home)]);
});

test.each([
  ['keyfile: x', ':1: keyfile is not a field; did you mean keyFile?'],
  ['url: http://h\nkey: [SECRET]', ':2: key must be text.'],
  ['key: SECRET\nkeyFile: x', ':1: the file has key and keyFile; give one.'],
  ['- SECRET', ':1: the file must be a list of "name: value" lines.'],
  ['key: "SECRET', ':1: misses a character, most likely a closing quote, a colon or a comma.'],
])('refuses the configuration file %j', async (text, sentence) => {
  const path = join(cwd, 'packager-drm.yaml');
  await write(path, text);
  expect(await fault({})).toEqual([`${path}${sentence}`]);
});
