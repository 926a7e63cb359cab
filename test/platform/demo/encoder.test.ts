import { chmod, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { whyNoEncoder } from '../../../src/platform/demo/encoder';
import { temporaryFolder } from '../../support/after-test';

/** A folder with a program of the name ffmpeg that lists these encoders. */
async function folderWith(encoders: string, mode = 0o755): Promise<string> {
  const folder = await temporaryFolder();
  const path = join(folder, 'ffmpeg');
  await writeFile(path, `#!/bin/sh\n[ "$2" = -encoders ] && echo '${encoders}'\n`);
  await chmod(path, mode);
  return folder;
}

test('takes the first ffmpeg of the path that may be run, if it encodes H.264', async () => {
  const notToRun = await folderWith(' V....D libx264', 0o644);
  const good = await folderWith(' V....D libx264   libx264 H.264 / AVC');
  const without = await folderWith(' V....D libopenh264');
  expect(whyNoEncoder([notToRun, good, without].join(delimiter), 'linux')).toBeUndefined();
  expect(whyNoEncoder([without, good].join(delimiter), 'linux')).toBe(
    'For a live test picture, take an ffmpeg with libx264: that of your PATH has none.',
  );
});

test.each([
  ['linux', /sudo apt-get install ffmpeg/],
  ['darwin', /brew install ffmpeg/],
  ['win32', /winget install Gyan\.FFmpeg/],
  ['openbsd', /install ffmpeg, and start the demo again\.$/],
] as const)('says in one sentence how to get ffmpeg on %s', async (platform, how) => {
  const advice = whyNoEncoder(await temporaryFolder(), platform);
  expect(advice).toMatch(/^For a live test picture, .*, and start the demo again\.$/);
  expect(advice).toMatch(how);
});
