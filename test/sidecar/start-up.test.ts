import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigError } from '../../src/http/config';
import { refuseCacheFolder, warningOfShortKey } from '../../src/sidecar/start-up';
import { temporaryFolder } from '../support/after-test';

describe('refuses to start with a folder for the provider cache', () => {
  const faultOf = (folder: string, keyFilesPath = '/srv/keys'): readonly string[] => {
    try {
      refuseCacheFolder(folder, keyFilesPath);
      return [];
    } catch (thrown) {
      if (thrown instanceof ConfigError) return thrown.faults;
      throw thrown;
    }
  };
  const [uid, gid] = [process.getuid?.(), process.getgid?.()];

  it('that is missing', async () => {
    const folder = join(await temporaryFolder(), 'absent');
    expect(faultOf(folder)).toEqual([
      `PACKAGERDRMAPI_PROVIDERCACHE: the folder ${folder} is missing. Mount it, or make it as root: chown ${uid}:${gid} and chmod 0700.`,
    ]);
  });

  it('that is a file', async () => {
    const file = join(await temporaryFolder(), 'file');
    await writeFile(file, '');
    expect(faultOf(file)).toEqual([
      `PACKAGERDRMAPI_PROVIDERCACHE: ${file} is not a folder. Give the path of one.`,
    ]);
  });

  it('among the key files', async () => {
    const folder = await temporaryFolder();
    const why = 'is in the key-file folder, which the packager reads. Give it a folder of its own.';
    expect(faultOf(folder, folder)).toEqual([`PACKAGERDRMAPI_PROVIDERCACHE: ${folder} ${why}`]);
    expect(faultOf(join(folder, 'cache'), folder)).toEqual([
      `PACKAGERDRMAPI_PROVIDERCACHE: ${join(folder, 'cache')} ${why}`,
    ]);
    expect(faultOf(folder, join(folder, 'keys'))).toEqual([]);
  });

  // To root every folder is open.
  (uid === 0 ? it.skip : it)('that it may not write to', async () => {
    const folder = await temporaryFolder();
    await chmod(folder, 0o500);
    expect(faultOf(folder)).toEqual([
      `PACKAGERDRMAPI_PROVIDERCACHE: this service runs as user ${uid}, group ${gid}, and may not write to the folder ${folder} (EACCES). As root: chown ${uid}:${gid} and chmod 0700.`,
    ]);
  });
});

test.each([
  ['0.0.0.0', 'fifteen-letters', 'short_api_key'],
  ['0.0.0.0', 'sixteen-letters.', undefined],
  ['127.0.0.1', 'short', undefined],
  ['0.0.0.0', undefined, undefined],
])('warns on %s of the API key %s: %s', (host, apiKey, code) => {
  expect(warningOfShortKey({ apiKey, host })?.code).toBe(code);
});
