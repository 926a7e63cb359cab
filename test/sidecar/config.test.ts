import { CMAF_CBCS_REFUSED } from '../../src/drm/cmaf-cbcs';
import { ConfigError } from '../../src/http/config';
import { readSidecarConfig } from '../../src/sidecar/config';
import { faultsOf } from '../support/faults-of';

const KEY = 'the-key-of-this-service';
const NO_FILES = (): string => {
  throw new Error('no file is read here');
};

const wrongIn = (env: Record<string, string>, readText = NO_FILES) =>
  faultsOf(() => readSidecarConfig(env, readText));

const DEFAULTS = {
  apiKey: KEY,
  apiKeysFile: undefined,
  keyFilesPath: './keys',
  keyFileMode: 0o640,
  host: '0.0.0.0',
  port: 80,
  configServiceUrl: undefined,
  keyProviderUrl: undefined,
  upstreamTimeoutMs: 5000,
  checks: 'strict',
  cmaf: false,
  provisionOnRead: false,
  demo: false,
  audit: 'stdout',
  metrics: true,
  tls: undefined,
  cpix: undefined,
  connections: { total: 512, perAddress: 256 },
  logLevel: 'info',
  unknownVariables: [],
};

describe('readSidecarConfig', () => {
  it('needs the API key alone', () => {
    expect(readSidecarConfig({ PACKAGERDRMAPI_APIKEY: KEY }, NO_FILES)).toEqual(DEFAULTS);
  });

  it('reads every variable', () => {
    const env = {
      PACKAGERDRMAPI_APIKEY: KEY,
      PACKAGERDRMAPI_KEYFILESPATH: '/srv/keys',
      PACKAGERDRMAPI_KEYFILEMODE: '600',
      PACKAGERDRMAPI_HOST: '::1',
      PACKAGERDRMAPI_PORT: '9000',
      PACKAGERDRMAPI_GRANDCENTRALURL: 'https://config.example/v1/clients',
      PACKAGERDRMAPI_KEYPROVIDERURL: 'http://keys.example:9293/',
      PACKAGERDRMAPI_UPSTREAMTIMEOUTMS: '250',
      PACKAGERDRMAPI_CHECKS: 'warn',
      PACKAGERDRMAPI_CMAF: 'cenc',
      PACKAGERDRMAPI_APIKEYS_FILE: '/etc/keys.json',
      PACKAGERDRMAPI_AUDIT: '/var/log/audit.log',
      PACKAGERDRMAPI_METRICS: 'off',
      PACKAGERDRMAPI_TLSCERT: '/etc/tls.crt',
      PACKAGERDRMAPI_TLSKEY: '/etc/tls.key',
      PACKAGERDRMAPI_TLSCLIENTCA: '/etc/clients.crt',
      PACKAGERDRMAPI_CPIXCERT: '/etc/cpix.crt',
      PACKAGERDRMAPI_CPIXKEY: '/etc/cpix.key',
      PACKAGERDRMAPI_MAXCONNECTIONS: '100',
      PACKAGERDRMAPI_MAXCONNECTIONSPERADDRESS: '10',
      PACKAGERDRMAPI_LOGLEVEL: 'silent',
      OTHER: 'left alone',
    };
    expect(readSidecarConfig(env, NO_FILES)).toEqual({
      ...DEFAULTS,
      apiKeysFile: '/etc/keys.json',
      keyFilesPath: '/srv/keys',
      keyFileMode: 0o600,
      host: '::1',
      port: 9000,
      configServiceUrl: 'https://config.example/v1/clients',
      keyProviderUrl: 'http://keys.example:9293/',
      upstreamTimeoutMs: 250,
      checks: 'warn',
      cmaf: true,
      audit: '/var/log/audit.log',
      metrics: false,
      tls: { certificate: '/etc/tls.crt', key: '/etc/tls.key', clientAuthorities: '/etc/clients.crt' },
      cpix: { certificate: '/etc/cpix.crt', key: '/etc/cpix.key' },
      connections: { total: 100, perAddress: 10 },
      logLevel: 'silent',
    });
  });

  it('names variables that are most likely misspelt', () => {
    const env = {
      PACKAGERDRMAPI_APIKEY: KEY,
      PACKAGERDRMAPI_KEYFILEPATH: '/srv/keys',
      PACKAGERDRM_X: 'other',
    };
    expect(readSidecarConfig(env, NO_FILES).unknownVariables).toEqual([
      'PACKAGERDRMAPI_KEYFILEPATH (did you mean PACKAGERDRMAPI_KEYFILESPATH?)',
    ]);
  });

  it('names all faults at once and quotes no value', () => {
    const faults = wrongIn({
      PACKAGERDRMAPI_APIKEY: 'a key with secret words',
      PACKAGERDRMAPI_PORT: 'secret',
      PACKAGERDRMAPI_KEYFILEMODE: 'secret',
      PACKAGERDRMAPI_GRANDCENTRALURL: 'secret',
      PACKAGERDRMAPI_KEYPROVIDERURL: 'https://user:secret@keys.example/',
      PACKAGERDRMAPI_UPSTREAMTIMEOUTMS: 'secret',
      PACKAGERDRMAPI_CHECKS: 'secret',
      PACKAGERDRMAPI_AUDIT: 'STDOUT',
      PACKAGERDRMAPI_LOGLEVEL: 'secret',
    });
    const url = 'must be an http:// or https:// address without user, query, fragment or space';
    expect(faults).toEqual([
      'PACKAGERDRMAPI_APIKEY: must be printable ASCII without spaces: it travels in a header',
      'PACKAGERDRMAPI_KEYFILEMODE: must be an octal mode like 0640',
      'PACKAGERDRMAPI_PORT: must be a whole number from 0 to 65535',
      `PACKAGERDRMAPI_GRANDCENTRALURL: ${url}`,
      `PACKAGERDRMAPI_KEYPROVIDERURL: ${url}`,
      'PACKAGERDRMAPI_UPSTREAMTIMEOUTMS: must be a whole number from 1 to 600000',
      'PACKAGERDRMAPI_CHECKS: must be strict or warn',
      'PACKAGERDRMAPI_AUDIT: must be stdout or off in small letters, or the path of a file (./STDOUT)',
      'PACKAGERDRMAPI_LOGLEVEL: must be one of error, warn, info, debug, silent',
    ]);
  });

  it('names variables whose quotes became part of the value', () => {
    const why = 'the quotes are part of the value; leave them out';
    const quoted = { PACKAGERDRMAPI_APIKEY: `"${KEY}"`, PACKAGERDRMAPI_LOGLEVEL: "'info'" };
    expect(wrongIn(quoted)).toEqual(Object.keys(quoted).map((name) => `${name}: ${why}`));
  });

  it('reads how packagers pull, and names what is wrong with it', () => {
    const pulled = (pattern: string, on: string, url = '') => ({
      PACKAGERDRMAPI_APIKEY: KEY,
      PACKAGERDRMAPI_PULLPATTERN: pattern,
      PACKAGERDRMAPI_PROVISIONONREAD: on,
      PACKAGERDRMAPI_KEYPROVIDERURL: url,
    });
    const pattern = 'live/{client}/{contentId}';
    expect(readSidecarConfig(pulled(pattern, 'true', 'https://keys.example/'), NO_FILES)).toMatchObject({
      pullPattern: pattern,
      provisionOnRead: true,
    });
    expect(wrongIn(pulled('{client}', 'yes'))).toEqual([
      'PACKAGERDRMAPI_PULLPATTERN: must have {contentId}; {client} may be in it, too',
      'PACKAGERDRMAPI_PROVISIONONREAD: must be true or false',
    ]);
    for (const odd of ['../{contentId}', '/{contentId}', '{contentId}/{other}', '.{contentId}'])
      expect(wrongIn(pulled(odd, 'false'))).toEqual([
        expect.stringMatching(/^PACKAGERDRMAPI_PULLPATTERN: makes no stream id of a content id: /),
      ]);
    expect(wrongIn(pulled('', 'true'))).toEqual([
      'PACKAGERDRMAPI_PROVISIONONREAD: needs a key provider; set PACKAGERDRMAPI_KEYPROVIDERURL, too',
    ]);
  });

  it('says why there are no CMAF lines for cbcs', () => {
    expect(wrongIn({ PACKAGERDRMAPI_APIKEY: KEY, PACKAGERDRMAPI_CMAF: 'cbcs' })).toEqual([
      `PACKAGERDRMAPI_CMAF: ${CMAF_CBCS_REFUSED}`,
    ]);
    const cmafOf = (value: string) =>
      readSidecarConfig({ PACKAGERDRMAPI_APIKEY: KEY, PACKAGERDRMAPI_CMAF: value }, NO_FILES).cmaf;
    expect(['true', 'cenc', 'false'].map(cmafOf)).toEqual([true, true, false]);
    expect(wrongIn({ PACKAGERDRMAPI_APIKEY: KEY, PACKAGERDRMAPI_CMAF: 'yes' })).toEqual([
      'PACKAGERDRMAPI_CMAF: must be true, cenc or false',
    ]);
  });

  it('says with the other faults that the API key is missing', () => {
    expect(wrongIn({ PACKAGERDRMAPI_PORT: '70000' })).toEqual([
      'PACKAGERDRMAPI_PORT: must be from 0 to 65535',
      'PACKAGERDRMAPI_APIKEY: is missing; set it to the key that clients send in x-api-key, or set PACKAGERDRMAPI_APIKEY_FILE to a file that holds it, or PACKAGERDRMAPI_APIKEYS_FILE to a file of several keys',
    ]);
  });

  it.each([
    [' 80', 'must be a whole number from 0 to 65535'],
    ['65536', 'must be from 0 to 65535'],
    [
      'tcp://10.0.0.1:80',
      'holds an address that Kubernetes sets for a Service named packagerdrmapi; rename the Service or set enableServiceLinks: false',
    ],
  ])('refuses the port %j', (port, fault) => {
    expect(wrongIn({ PACKAGERDRMAPI_APIKEY: KEY, PACKAGERDRMAPI_PORT: port })).toEqual([
      `PACKAGERDRMAPI_PORT: ${fault}`,
    ]);
  });

  it.each([
    ['0680', 'must be an octal mode like 0640'],
    ['640 ', 'must be an octal mode like 0640'],
    ['0440', 'must let the owner read and write (06xx)'],
    ['0750', 'must not make key files executable'],
  ])('refuses the mode %j', (mode, fault) => {
    expect(wrongIn({ PACKAGERDRMAPI_APIKEY: KEY, PACKAGERDRMAPI_KEYFILEMODE: mode })).toEqual([
      `PACKAGERDRMAPI_KEYFILEMODE: ${fault}`,
    ]);
  });
});

describe('PACKAGERDRMAPI_APIKEY_FILE', () => {
  const env = { PACKAGERDRMAPI_APIKEY_FILE: '/run/secrets/key' };
  const FAULT = 'PACKAGERDRMAPI_APIKEY_FILE:';
  const ASCII = 'must be printable ASCII without spaces: it travels in a header';

  it.each([KEY, `${KEY}\n`, `\ufeff${KEY}\r\n`])('names the file that holds the key: %j', (text) => {
    const paths: string[] = [];
    const readText = (path: string) => {
      paths.push(path);
      return text;
    };
    expect(readSidecarConfig(env, readText)).toEqual(DEFAULTS);
    expect(paths).toEqual(['/run/secrets/key']);
  });

  it.each([
    ['\n', `${FAULT} the key in it is empty`],
    [`${KEY}\nsecond line`, `${FAULT} the key in it ${ASCII}`],
    [`${KEY}\ufeff`, `${FAULT} the key in it ${ASCII}`],
  ])('is refused when the file holds %j', (text, fault) => {
    expect(wrongIn(env, () => text)).toEqual([fault]);
  });

  it('is refused when the file cannot be read, and together with PACKAGERDRMAPI_APIKEY', () => {
    const read = () => {
      throw new ConfigError(['/run/secrets/key: there is no such file']);
    };
    expect(wrongIn(env, read)).toEqual([`${FAULT} /run/secrets/key: there is no such file`]);
    expect(wrongIn({ ...env, PACKAGERDRMAPI_APIKEY: KEY }, () => KEY)).toEqual([
      'PACKAGERDRMAPI_APIKEY and PACKAGERDRMAPI_APIKEY_FILE: set one of them, not both',
    ]);
  });
});

test('needs no single API key with a file of keys', () => {
  expect(readSidecarConfig({ PACKAGERDRMAPI_APIKEYS_FILE: '/etc/keys.json' }, NO_FILES)).toEqual({
    ...DEFAULTS,
    apiKey: undefined,
    apiKeysFile: '/etc/keys.json',
  });
});

const HTTPS =
  'PACKAGERDRMAPI_TLSCERT and PACKAGERDRMAPI_TLSKEY: HTTPS needs both; without them PACKAGERDRMAPI_TLSCLIENTCA has no effect';
const CPIX =
  'PACKAGERDRMAPI_CPIXCERT and PACKAGERDRMAPI_CPIXKEY: encrypted content keys need both; set the other one, too, or none';

test.each<[env: Record<string, string>, fault: string]>([
  [{ PACKAGERDRMAPI_TLSCERT: '/etc/tls.crt' }, HTTPS],
  [{ PACKAGERDRMAPI_TLSCLIENTCA: '/etc/clients.crt' }, HTTPS],
  [{ PACKAGERDRMAPI_TLSKEY: '/etc/tls.key', PACKAGERDRMAPI_TLSCLIENTCA: '/etc/clients.crt' }, HTTPS],
  [{ PACKAGERDRMAPI_CPIXCERT: '/etc/cpix.crt' }, CPIX],
  [{ PACKAGERDRMAPI_CPIXCERT: '', PACKAGERDRMAPI_CPIXKEY: '/etc/cpix.key' }, CPIX],
])('refuses a half of what belongs together: %j', (env, fault) => {
  expect(wrongIn({ PACKAGERDRMAPI_APIKEY: KEY, ...env })).toEqual([fault]);
});

describe('the provider cache is configured', () => {
  const read = (env: Record<string, string>) =>
    readSidecarConfig({ PACKAGERDRMAPI_APIKEY: KEY, ...env }, NO_FILES);
  const HOUR = 60 * 60_000;
  const FOLDER = '/var/cache/packager-drm-api';

  it.each([
    [{ PACKAGERDRMAPI_PROVIDERCACHE: 'off' }, undefined],
    [{ PACKAGERDRMAPI_PROVIDERCACHE: FOLDER }, { folder: FOLDER, maxAgeMs: 7 * 24 * HOUR }],
    [
      { PACKAGERDRMAPI_PROVIDERCACHE: FOLDER, PACKAGERDRMAPI_PROVIDERCACHEMAXAGE: '2' },
      { folder: FOLDER, maxAgeMs: 2 * HOUR },
    ],
  ])('by %j', (env, providerCache) => {
    expect(read(env).providerCache).toEqual(providerCache);
  });

  it.each([
    ['PROVIDERCACHE', 'on', 'must be the absolute path of a folder (/var/cache/packager-drm-api), or off'],
    ['PROVIDERCACHEMAXAGE', '0', 'must be from 1 to 8760'],
    ['PROVIDERCACHEMAXAGE', '8761', 'must be from 1 to 8760'],
  ])('but not by PACKAGERDRMAPI_%s=%s', (name, value, fault) => {
    const variable = `PACKAGERDRMAPI_${name}`;
    expect(() => read({ [variable]: value })).toThrow(new ConfigError([`${variable}: ${fault}`]));
  });
});
