import { readEmulatorConfig } from '../src/emulator/config';
import { readPackagerConfig } from '../src/packager/config';
import { readServices, type Service } from './support/compose-file';

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
