import { execFile } from 'node:child_process';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { readEmulatorConfig } from '../src/platform/emulator/config';
import { readPackagerConfig } from '../src/platform/packager/config';
import { readSidecarConfig } from '../src/sidecar/config';
import { temporaryFolder } from './support/after-test';
import { readServices, type Service } from './support/compose-file';

const FLEET = 'docker-compose.fleet.yml';
const MEMBERS = [1, 2, 3];
/** Required of every service that we build. */
const HARDENED = {
  user: '1000:1000',
  read_only: true,
  cap_drop: ['ALL'],
  security_opt: ['no-new-privileges:true'],
  // A core dump would hold content keys.
  ulimits: { core: 0 },
};

/** Variables are texts; YAML has numbers and booleans, too. */
function environmentOf(service: Service | undefined): Record<string, string> {
  return Object.fromEntries(
    Object.entries(service?.environment ?? {}).map(([name, value]) => [name, String(value)]),
  );
}

test('the packager of compose reads the key files of the sidecar, writes none, and is published nowhere', async () => {
  const { sidecar, packager } = await readServices();
  expect(packager).toMatchObject({
    user: '1001:1000',
    volumes: ['keys:/keys:ro', 'media:/media'],
    read_only: true,
  });
  expect(packager).not.toHaveProperty('ports');
  expect(sidecar).toMatchObject({ user: '1000:1000', volumes: ['keys:/keys'] });
});

test('the packager of compose stays in the group of a sidecar that runs as another user, at its folder', async () => {
  const env = { SIDECAR_UID: '3500', SIDECAR_GID: '3600', SIDECAR_KEYS: '/opt/keys' };
  const { sidecar, packager } = await readServices(env);
  expect([sidecar?.user, sidecar?.volumes]).toEqual(['3500:3600', ['/opt/keys:/keys']]);
  expect([packager?.user, packager?.volumes]).toEqual(['1001:3600', ['/opt/keys:/keys:ro', 'media:/media']]);
});

test.each([{}, { PACKAGER_APIKEY: 'a-key-of-my-own-0123456789', EMULATOR_CHANNEL_ID: 'Stadium1' }])(
  'emulator and packager of compose understand their variables, and each other, with %j',
  async (env) => {
    const services = await readServices(env);
    const emulator = readEmulatorConfig(environmentOf(services.emulator));
    const packager = readPackagerConfig(environmentOf(services.packager));
    expect([emulator.unknownVariables, packager.unknownVariables]).toEqual([[], []]);
    expect(emulator.packager).toEqual({
      url: 'http://packager:8082',
      apiKey: packager.apiKey,
      rtmpUrl: 'rtmp://emulator:1935/live',
    });
    expect(packager).toMatchObject({ keyFilesPath: '/keys', folder: '/media' });
  },
);

test('the emulator of compose keeps its host name, by which it finds what a killed one left in its volume', async () => {
  const { emulator } = await readServices();
  expect(emulator).toMatchObject({ hostname: 'emulator', volumes: ['uploads:/uploads'] });
});

test('the images can be read by their user, whatever the umask of the clone', async () => {
  const dockerfile = await readFile(join(__dirname, '../Dockerfile'), 'utf8');
  expect(dockerfile).toMatch(/^RUN npm run build .*&& chmod -R a\+rX dist package\.json$/m);
});

test('compose takes from .env what .env.example shows, but for files, folders, addresses in the container, and a fleet', async () => {
  const [example = '', compose = ''] = await Promise.all(
    ['.env.example', 'docker-compose.yml'].map((name) => readFile(join(__dirname, '..', name), 'utf8')),
  );
  const names = [...example.matchAll(/^(?:# )?((?:PACKAGERDRMAPI|EMULATOR|PACKAGER)_\w+)=/gm)].map(
    ([, name = '']) => name,
  );
  const ownOfAContainer =
    /FILE$|CERT$|(?:TLS|CPIX)KEY$|TLS\w*CA$|FOLDER$|PATH$|PROVIDERCACHE|FFMPEG$|SHAKAPACKAGER$|HOST$|PORT$|PACKAGERAPIKEY$|_FLEET_/;
  const left = names.filter((name) => !ownOfAContainer.test(name) && !compose.includes(`\${${name}`));
  expect([names.length > 60, left]).toEqual([true, []]);
});

test('encoder and provisioning of compose are for the channel that the emulator starts with', async () => {
  const env = { EMULATOR_CHANNEL_ID: 'Stadium1', EMULATOR_CHANNEL_STREAM_KEY: 'stream-key-of-mine' };
  for (const given of [{}, env]) {
    const { emulator, encoder, provision } = await readServices(given);
    const { channel } = readEmulatorConfig(environmentOf(emulator));
    expect([encoder?.profiles, provision?.profiles]).toEqual([['encoder'], ['encoder']]);
    expect(encoder?.command).toMatch(new RegExp(` rtmp://emulator:1935/live/${channel?.streamKey}$`));
    expect(encoder?.environment.CHANNEL).toBe(`http://emulator:8080/live/channels/${channel?.id}.json`);
    expect(provision?.environment.STREAM_ID).toBe(channel?.id);
  }
});

function fleetOf(service: Service | undefined) {
  return readSidecarConfig(environmentOf(service), () => '');
}

test('the sidecars of the fleet of compose are three packagers of one fleet, each with key files of its own', async () => {
  const services = await readServices({}, FLEET);
  for (const number of MEMBERS) {
    const service = services[`origin-${number}`];
    const config = fleetOf(service);
    expect(config.unknownVariables).toEqual([]);
    expect(config.fleet).toEqual({
      urls: MEMBERS.map((each) => `http://etcd-${each}:2379`),
      secretFile: '/fleet/secret',
      name: `origin-${number}`,
      streams: undefined,
      prefix: 'packagerdrmapi/',
      timeoutMs: 5000,
      tls: {},
    });
    expect(config.keyFilesPath).toBe('/keys');
    expect(service?.volumes).toEqual([`keys-${number}:/keys`, 'secret:/fleet:ro']);
    expect(service?.ports).toEqual([`127.0.0.1:900${number}:80`]);
    expect(service?.depends_on).toEqual({ secret: { condition: 'service_completed_successfully' } });
  }
});

test('the demo key opens the fleet of compose on loopback only', async () => {
  const demoWith = async (env: Record<string, string>) => {
    const services = await readServices(env, FLEET);
    return MEMBERS.map((number) => fleetOf(services[`origin-${number}`]).demo ?? false);
  };
  expect(await demoWith({})).toEqual([true, true, true]);
  expect(await demoWith({ SIDECAR_PUBLISH: '127.0.0.2' })).toEqual([true, true, true]);
  expect(await demoWith({ SIDECAR_PUBLISH: '10.0.0.7' })).toEqual([false, false, false]);
});

test('the etcd servers of compose are one cluster that forgets old states, and only the sidecars reach them', async () => {
  const services = await readServices({}, FLEET);
  const cluster = MEMBERS.map((each) => `etcd-${each}=http://etcd-${each}:2380`).join();
  for (const number of MEMBERS) {
    const service = services[`etcd-${number}`];
    expect(environmentOf(service)).toMatchObject({
      ETCD_NAME: `etcd-${number}`,
      ETCD_DATA_DIR: '/data',
      ETCD_INITIAL_CLUSTER: cluster,
      ETCD_INITIAL_ADVERTISE_PEER_URLS: `http://etcd-${number}:2380`,
      ETCD_ADVERTISE_CLIENT_URLS: `http://etcd-${number}:2379`,
      ETCD_AUTO_COMPACTION_MODE: 'periodic',
      ETCD_AUTO_COMPACTION_RETENTION: '1h',
      ETCD_QUOTA_BACKEND_BYTES: '2147483648',
    });
    expect(service?.volumes).toEqual([`etcd-${number}:/data`]);
    expect(service?.networks).toEqual(['engine']);
    expect(service).not.toHaveProperty('ports');
  }
});

test('nothing of the fleet of compose runs as root or writes anywhere but into its volumes', async () => {
  const services = Object.entries(await readServices({}, FLEET));
  expect(services.map(([name]) => name)).toEqual([
    ...MEMBERS.map((number) => `etcd-${number}`),
    'secret',
    ...MEMBERS.map((number) => `origin-${number}`),
  ]);
  for (const [, service] of services) expect(service).toMatchObject(HARDENED);
});

test('the sidecar of compose runs without root, with a read-only root and no capability', async () => {
  expect((await readServices()).sidecar).toMatchObject(HARDENED);
});

test('compose makes a secret of its own for the fleet, and leaves the one that is there', async () => {
  const folder = await temporaryFolder();
  const { secret } = await readServices({}, FLEET);
  const [, option = '', script = ''] = secret?.command ?? [];
  const make = () =>
    promisify(execFile)(process.execPath, [option, script.replaceAll('/keys', folder)], { cwd: folder });
  await make();
  const path = join(folder, 'secret');
  const made = await readFile(path, 'utf8');
  expect(made).toMatch(/^[0-9a-f]{64}\n$/);
  expect((await stat(path)).mode & 0o777).toBe(0o400);
  await make();
  expect(await readFile(path, 'utf8')).toBe(made);
});
