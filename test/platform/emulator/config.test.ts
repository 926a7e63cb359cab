import { tmpdir } from 'node:os';
import { readEmulatorConfig } from '../../../src/platform/emulator/config';

const DEFAULTS = {
  host: '127.0.0.1',
  port: 8080,
  controlHost: '127.0.0.1',
  controlPort: 8081,
  rtmpPort: 1935,
  siteIds: ['demosite'],
  apiSecret: 'demo-api-secret-0123456789',
  v1Secret: 'demo-api-secret-0123456789',
  rateLimit: false,
  allowHttpWebhooks: false,
  uploadsFolder: tmpdir(),
  uploadsMaxBytes: 2048 * 1024 * 1024,
  client: { name: 'demo', apiKey: 'demo-client-api-key', sharedSecret: 'demo-shared-secret-0123456789' },
  logLevel: 'info',
  unknownVariables: [],
};

test('starts without any variable, and takes an empty one as absent', () => {
  expect(readEmulatorConfig({})).toEqual(DEFAULTS);
  expect(readEmulatorConfig({ EMULATOR_PORT: '', EMULATOR_CLIENT_SHARED_SECRET: '', PATH: '/bin' })).toEqual(
    DEFAULTS,
  );
});

test('takes every variable', () => {
  const config = readEmulatorConfig({
    EMULATOR_HOST: '0.0.0.0',
    EMULATOR_PORT: '65535',
    EMULATOR_CONTROL_HOST: '::1',
    EMULATOR_CONTROL_PORT: '0',
    EMULATOR_RTMP_PORT: '1936',
    EMULATOR_SITE_ID: 'site0001, site0002',
    EMULATOR_API_SECRET: '0123456789abcdef',
    EMULATOR_V1_SECRET: 'fedcba9876543210',
    EMULATOR_RATELIMIT: 'on',
    EMULATOR_ALLOW_HTTP_WEBHOOKS: 'true',
    EMULATOR_CHANNEL_ID: 'Stadium1',
    EMULATOR_CHANNEL_STREAM_KEY: 'stream-key_012345',
    EMULATOR_UPLOADSFOLDER: '/var/uploads',
    EMULATOR_UPLOADSMAXMB: '5',
    EMULATOR_CLIENT: 'acme.tv',
    EMULATOR_CLIENT_API_KEY: 'k',
    EMULATOR_CLIENT_SHARED_SECRET: '0123456789abcdef',
    EMULATOR_LOGLEVEL: 'silent',
  });
  expect(config).toEqual({
    host: '0.0.0.0',
    port: 65_535,
    controlHost: '::1',
    controlPort: 0,
    rtmpPort: 1936,
    siteIds: ['site0001', 'site0002'],
    apiSecret: '0123456789abcdef',
    v1Secret: 'fedcba9876543210',
    rateLimit: true,
    allowHttpWebhooks: true,
    channel: { id: 'Stadium1', streamKey: 'stream-key_012345' },
    uploadsFolder: '/var/uploads',
    uploadsMaxBytes: 5 * 1024 * 1024,
    client: { name: 'acme.tv', apiKey: 'k', sharedSecret: '0123456789abcdef' },
    logLevel: 'silent',
    unknownVariables: [],
  });
});

test('serves HTTPS with the certificate that is given', () => {
  const env = { EMULATOR_TLSCERT: 'tls.crt', EMULATOR_TLSKEY: 'tls.key' };
  expect(readEmulatorConfig(env)).toEqual({
    ...DEFAULTS,
    tls: { certificate: 'tls.crt', key: 'tls.key', clientAuthorities: undefined },
  });
});

test('serves HTTPS with a certificate of its own, for its names and those that are given', () => {
  expect(readEmulatorConfig({ EMULATOR_TLS: 'self-signed', EMULATOR_HOST: '0.0.0.0' })).toEqual({
    ...DEFAULTS,
    host: '0.0.0.0',
    tls: { folder: './emulator-tls', names: ['localhost', 'emulator', '127.0.0.1', '::1'] },
  });
  const env = {
    EMULATOR_TLS: 'self-signed',
    EMULATOR_TLSFOLDER: '/tls',
    EMULATOR_TLSNAMES: 'api.test, 192.0.2.1, localhost',
    EMULATOR_HOST: 'box.internal',
  };
  expect(readEmulatorConfig(env).tls).toEqual({
    folder: '/tls',
    names: ['localhost', 'emulator', '127.0.0.1', '::1', 'box.internal', 'api.test', '192.0.2.1'],
  });
  expect(readEmulatorConfig({ EMULATOR_TLS: 'off' })).toEqual(DEFAULTS);
});

test.each([
  [{}, 'rtmp://127.0.0.1:1935/live'],
  [{ EMULATOR_HOST: '0.0.0.0', EMULATOR_RTMP_PORT: '1936' }, 'rtmp://127.0.0.1:1936/live'],
  [{ EMULATOR_HOST: '::' }, 'rtmp://127.0.0.1:1935/live'],
  [{ EMULATOR_HOST: '192.0.2.1' }, 'rtmp://192.0.2.1:1935/live'],
  [{ EMULATOR_HOST: '::1' }, 'rtmp://[::1]:1935/live'],
  [{ EMULATOR_RTMP_PORT: 'off' }, undefined],
  [{ EMULATOR_PACKAGERRTMPURL: 'rtmp://emulator:1935/live/' }, 'rtmp://emulator:1935/live'],
  [
    { EMULATOR_RTMP_PORT: 'off', EMULATOR_PACKAGERRTMPURL: 'rtmps://relay.test/app' },
    'rtmps://relay.test/app',
  ],
])('tells the packager with %j where it pulls live streams', (env, rtmpUrl) => {
  const { packager } = readEmulatorConfig({ EMULATOR_PACKAGERURL: 'http://packager:8082/', ...env });
  expect(packager).toEqual({ url: 'http://packager:8082', apiKey: undefined, rtmpUrl });
});

test.each([
  [{ EMULATOR_TLSCERT: 'tls.crt' }, 'EMULATOR_TLSCERT and EMULATOR_TLSKEY: HTTPS needs both'],
  [{ EMULATOR_TLSKEY: 'tls.key' }, 'EMULATOR_TLSCERT and EMULATOR_TLSKEY: HTTPS needs both'],
  [
    { EMULATOR_TLS: 'self-signed', EMULATOR_TLSCERT: 'c', EMULATOR_TLSKEY: 'k' },
    'EMULATOR_TLS: self-signed makes a certificate; leave out EMULATOR_TLSCERT and EMULATOR_TLSKEY',
  ],
  [{ EMULATOR_PACKAGERAPIKEY: 'key' }, 'EMULATOR_PACKAGERAPIKEY: is used only with EMULATOR_PACKAGERURL'],
  [
    { EMULATOR_PACKAGERRTMPURL: 'rtmp://emulator:1935/live' },
    'EMULATOR_PACKAGERRTMPURL: is used only with EMULATOR_PACKAGERURL',
  ],
  [{ EMULATOR_TLS: 'on' }, 'EMULATOR_TLS: must be off or self-signed'],
  [{ EMULATOR_TLSNAMES: 'a.test' }, 'EMULATOR_TLSNAMES: is used only with EMULATOR_TLS=self-signed'],
  [
    { EMULATOR_TLS: 'self-signed', EMULATOR_TLSNAMES: 'https://a.test' },
    'EMULATOR_TLSNAMES: must be a host name or an address, or several with commas between them',
  ],
  [
    { EMULATOR_CHANNEL_ID: 'Stadium1' },
    'EMULATOR_CHANNEL_ID and EMULATOR_CHANNEL_STREAM_KEY: a channel at the start needs both',
  ],
  [
    { EMULATOR_CHANNEL_STREAM_KEY: 'stream-key_012345' },
    'EMULATOR_CHANNEL_ID and EMULATOR_CHANNEL_STREAM_KEY: a channel at the start needs both',
  ],
  [
    { EMULATOR_CHANNEL_ID: 'Stadium1', EMULATOR_CHANNEL_STREAM_KEY: 'a key with blanks' },
    'EMULATOR_CHANNEL_STREAM_KEY: must be 16 to 200 letters, digits, _ and -',
  ],
  [
    { EMULATOR_CHANNEL_ID: 'stadium', EMULATOR_CHANNEL_STREAM_KEY: 'stream-key_012345' },
    'EMULATOR_CHANNEL_ID: must be 8 letters and digits',
  ],
])('refuses %j', (env, fault) => {
  expect(() => readEmulatorConfig(env)).toThrow(
    expect.objectContaining({ name: 'ConfigError', faults: [fault] }),
  );
});

test.each(['off', '0'])('takes no encoders over RTMP with EMULATOR_RTMP_PORT=%s', (value) => {
  expect(readEmulatorConfig({ EMULATOR_RTMP_PORT: value })).toEqual({ ...DEFAULTS, rtmpPort: undefined });
});

test('names a misspelt variable with the one that was meant, and starts all the same', () => {
  expect(readEmulatorConfig({ EMULATOR_PROT: '1' })).toEqual({
    ...DEFAULTS,
    unknownVariables: ['EMULATOR_PROT (did you mean EMULATOR_PORT?)'],
  });
});

const PACKAGER_URL = 'must be an http:// or https:// address without a password or a query';
const RTMP_URL = 'must be an rtmp:// address such as rtmp://emulator:1935/live';

test.each([
  ['EMULATOR_PACKAGERURL', 'packager:8082', PACKAGER_URL],
  ['EMULATOR_PACKAGERURL', 'http://user:password@packager', PACKAGER_URL],
  ['EMULATOR_PACKAGERURL', 'http://packager?x=1', PACKAGER_URL],
  ['EMULATOR_PACKAGERURL', 'http://packager/#x', PACKAGER_URL],
  ['EMULATOR_PACKAGERURL', 'rtmp://packager', PACKAGER_URL],
  ['EMULATOR_PACKAGERRTMPURL', 'http://emulator:1935/live', RTMP_URL],
  ['EMULATOR_PACKAGERRTMPURL', 'rtmp:///live', RTMP_URL],
  ['EMULATOR_PACKAGERRTMPURL', 'rtmp://a b/live', RTMP_URL],
  ['EMULATOR_PORT', '80a', 'must be a port number'],
  ['EMULATOR_PORT', '-1', 'must be a port number'],
  ['EMULATOR_PORT', '65536', 'must be at most 65535'],
  ['EMULATOR_CONTROL_PORT', 'x', 'must be a port number'],
  ['EMULATOR_RTMP_PORT', 'on', 'must be off or a port number'],
  ['EMULATOR_RTMP_PORT', '65536', 'must be at most 65535'],
  ['EMULATOR_SITE_ID', 'site', 'must be 8 letters and digits, or several such ids with commas between them'],
  ['EMULATOR_API_SECRET', 'short', 'must have at least 16 characters'],
  ['EMULATOR_RATELIMIT', 'yes', 'must be on or off'],
  ['EMULATOR_ALLOW_HTTP_WEBHOOKS', '1', 'must be true or false'],
  ['EMULATOR_UPLOADSMAXMB', '0', 'must be a whole number of megabytes, from 1 to 99999999'],
  ['EMULATOR_UPLOADSMAXMB', '2 GB', 'must be a whole number of megabytes, from 1 to 99999999'],
  ['EMULATOR_CLIENT', 'a/b', 'must be 1 to 200 letters, digits, _, - and ., and not . or ..'],
  ['EMULATOR_CLIENT', '../..', 'must be 1 to 200 letters, digits, _, - and ., and not . or ..'],
  [
    'EMULATOR_CLIENT_API_KEY',
    'two words',
    'must be printable ASCII without spaces, as it is sent in a header',
  ],
  ['EMULATOR_CLIENT_SHARED_SECRET', '0123456789abcde', 'must have at least 16 bytes'],
  ['EMULATOR_LOGLEVEL', 'loud', 'must be one of error, warn, info, debug, silent'],
])('refuses %s=%s, and does not repeat it', (name, value, fault) => {
  const env = { EMULATOR_PACKAGERURL: 'http://packager', [name]: value };
  expect(() => readEmulatorConfig(env)).toThrow(
    expect.objectContaining({ name: 'ConfigError', faults: [`${name}: ${fault}`] }),
  );
});

test('tells every fault at once and quotes no secret', () => {
  expect(() => readEmulatorConfig({ EMULATOR_PORT: 'x', EMULATOR_CLIENT_SHARED_SECRET: 'hush' })).toThrow(
    expect.objectContaining({
      message:
        'The configuration has 2 faults:\n' +
        '  - EMULATOR_PORT: must be a port number\n' +
        '  - EMULATOR_CLIENT_SHARED_SECRET: must have at least 16 bytes',
    }),
  );
});
