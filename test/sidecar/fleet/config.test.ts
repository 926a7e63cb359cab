import { hostname } from 'node:os';
import { readSidecarConfig } from '../../../src/sidecar/config';
import type { FleetConfig } from '../../../src/sidecar/fleet/config';
import { faultsOf } from '../../support/faults-of';

jest.mock('node:os', () => ({
  ...jest.requireActual<typeof import('node:os')>('node:os'),
  hostname: jest.fn(() => 'origin-1'),
}));

type Variables = Readonly<Record<string, string>>;

/** The variables by their names without the common prefix. */
function read(variables: Variables): FleetConfig | undefined {
  const env = Object.fromEntries(
    Object.entries(variables).map(([name, value]) => [`PACKAGERDRMAPI_FLEET_${name}`, value]),
  );
  const noFile = (): string => {
    throw new Error('no file is read here');
  };
  return readSidecarConfig({ PACKAGERDRMAPI_APIKEY: 'the-key-of-this-service', ...env }, noFile).fleet;
}

const LEAST = { URLS: 'http://etcd-1:2379', SECRET_FILE: '/run/secrets/fleet' };
const LEAST_CONFIG: FleetConfig = {
  urls: ['http://etcd-1:2379'],
  secretFile: '/run/secrets/fleet',
  name: 'origin-1',
  streams: undefined,
  prefix: 'packagerdrmapi/',
  timeoutMs: 5000,
  tls: {},
};

beforeEach(() => {
  jest.mocked(hostname).mockReturnValue('origin-1');
});

test('is none without its variables, or with empty ones', () => {
  expect(read({})).toBeUndefined();
  expect(read({ URLS: '', SECRET_FILE: '', PREFIX: '', USER: '' })).toBeUndefined();
});

test('needs addresses and a secret; all else has a default', () => {
  expect(read(LEAST)).toEqual(LEAST_CONFIG);
});

test('reads every variable', () => {
  expect(
    read({
      URLS: ' https://etcd-1:2379/, https://etcd-2:2379 ,,https://[2001:db8::3]:2379',
      SECRET_FILE: './secret',
      NAME: 'Site_a.packager-1',
      STREAMS: 'site-a/, news ,sport@',
      PREFIX: '/teams/video/drm/',
      TIMEOUTMS: '500',
      USER: 'site-a',
      PASSWORD_FILE: './password',
      TLSCA: './ca.pem',
      TLSCERT: './client.pem',
      TLSKEY: './client-key.pem',
    }),
  ).toEqual({
    urls: ['https://etcd-1:2379', 'https://etcd-2:2379', 'https://[2001:db8::3]:2379'],
    secretFile: './secret',
    name: 'Site_a.packager-1',
    streams: ['site-a/', 'news', 'sport@'],
    prefix: '/teams/video/drm/',
    timeoutMs: 500,
    user: { name: 'site-a', passwordFile: './password' },
    tls: { authorities: './ca.pem', client: { certificate: './client.pem', key: './client-key.pem' } },
  });
});

test.each<[variables: Variables, change: Partial<FleetConfig>]>([
  [{ TIMEOUTMS: '60000' }, { timeoutMs: 60_000 }],
  [{ PREFIX: 'a/' }, { prefix: 'a/' }],
  [{ NAME: 'x'.repeat(64) }, { name: 'x'.repeat(64) }],
  [
    { URLS: 'HTTPS://Etcd-1:443', TLSCA: 'ca' },
    { urls: ['https://etcd-1'], tls: { authorities: 'ca' } },
  ],
])('reads %j', (variables, change) => {
  expect(read({ ...LEAST, ...variables })).toEqual({ ...LEAST_CONFIG, ...change });
});

const NAME_RULE = 'must be 1 to 64 letters, digits and . _ - and begin with a letter or digit';
const PREFIX = 'must be 2 to 200 printable characters without spaces, and end in a slash';

test.each<[variables: Variables, ...faults: string[]]>([
  [{ URLS: ' , ' }, 'URLS: must be 1 to 16 addresses, with commas between'],
  [
    { URLS: Array.from({ length: 17 }, (_, index) => `http://etcd-${index}:2379`).join() },
    'URLS: must be 1 to 16 addresses, with commas between',
  ],
  ...['etcd-1:2379', 'root:hidden@etcd-1:2379', 'hidden'].map((URLS): [Variables, string] => [
    { URLS },
    'URLS: address 1 must be one like http://etcd-1:2379',
  ]),
  [
    { URLS: 'http://root:hidden@etcd-1:2379' },
    'URLS: address 1 must hold no user and no password: set PACKAGERDRMAPI_FLEET_USER and PACKAGERDRMAPI_FLEET_PASSWORD_FILE',
  ],
  ...['/v3', '/?token=hidden', '#a'].map((rest): [Variables, string] => [
    { URLS: `http://etcd-1:2379${rest}` },
    "URLS: address 1 must end after the port: the engine's servers have no path",
  ]),
  [{ URLS: 'http://etcd-1:2379,https://etcd-2:2379' }, 'URLS: must be all http:// or all https://'],
  [{ URLS: 'http://etcd-1:2379,HTTP://ETCD-1:2379/' }, 'URLS: holds an address twice'],
  [
    { SECRET_FILE: '' },
    'SECRET_FILE: is missing; a fleet needs a file with its secret, the same for all: openssl rand -hex 32',
  ],
  [{ NAME: 'x'.repeat(65) }, `NAME: ${NAME_RULE}`],
  [{ STREAMS: 'site-*' }, 'STREAMS: takes letters, digits and . _ - ~ @ + /, and no * or other pattern'],
  [{ STREAMS: ' , ' }, 'STREAMS: holds no prefix of stream ids; leave it out for a packager that takes all'],
  [{ STREAMS: 'a,/b' }, 'STREAMS: must not begin with / or a dot, nor hold // or /.: no stream id does'],
  [
    { STREAMS: Array.from({ length: 101 }, (_, index) => `s${index}`).join() },
    'STREAMS: must have at most 100 prefixes of stream ids',
  ],
  [{ PREFIX: 'fleet' }, `PREFIX: ${PREFIX}`],
  [{ PREFIX: `${'x'.repeat(200)}/` }, `PREFIX: ${PREFIX}`],
  [{ TIMEOUTMS: '499' }, 'TIMEOUTMS: must be from 500 to 60000'],
  [{ TIMEOUTMS: '5s' }, 'TIMEOUTMS: must be a whole number from 500 to 60000'],
  [{ USER: 'x'.repeat(201), PASSWORD_FILE: 'p' }, 'USER: must have at most 200 characters'],
  [{ USER: 'site-a' }, 'USER and PACKAGERDRMAPI_FLEET_PASSWORD_FILE: signing in to the engine needs both'],
  [
    { URLS: 'https://etcd-1:2379', TLSCERT: 'cert' },
    'TLSCERT and PACKAGERDRMAPI_FLEET_TLSKEY: a client certificate needs both',
  ],
  [{ TLSCA: 'ca' }, 'URLS: must be https:// addresses for certificates to have an effect'],
  [
    { TIMEOUTMS: '1', SECRET_FILE: '', USER: 'x' },
    'TIMEOUTMS: must be from 500 to 60000',
    'SECRET_FILE: is missing; a fleet needs a file with its secret, the same for all: openssl rand -hex 32',
    'USER and PACKAGERDRMAPI_FLEET_PASSWORD_FILE: signing in to the engine needs both',
  ],
])('refuses %j', (variables, ...faults) => {
  expect(faultsOf(() => read({ ...LEAST, ...variables }))).toEqual(
    faults.map((fault) => `PACKAGERDRMAPI_FLEET_${fault}`),
  );
});

test('refuses what has no use without the addresses', () => {
  expect(faultsOf(() => read({ NAME: 'packager-1', SECRET_FILE: 'secret' }))).toEqual([
    'PACKAGERDRMAPI_FLEET_SECRET_FILE: is for a fleet; set PACKAGERDRMAPI_FLEET_URLS, too, or leave it out',
    'PACKAGERDRMAPI_FLEET_NAME: is for a fleet; set PACKAGERDRMAPI_FLEET_URLS, too, or leave it out',
  ]);
});

test('needs a name where the host has none that can be one', () => {
  jest.mocked(hostname).mockReturnValue('_my host');
  expect(faultsOf(() => read(LEAST))).toEqual([
    `PACKAGERDRMAPI_FLEET_NAME: is missing, and the host name can't be used: it ${NAME_RULE}`,
  ]);
  expect(read({ ...LEAST, NAME: 'packager-1' })).toEqual({ ...LEAST_CONFIG, name: 'packager-1' });
});
