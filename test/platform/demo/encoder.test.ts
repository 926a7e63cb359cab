import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { findFfmpeg } from '../../../src/platform/demo/encoder';
import { temporaryFolder } from '../../support/after-test';

/** A folder with a program of the name ffmpeg that lists these encoders. */
async function folderWith(encoders: string, mode = 0o755): Promise<string> {
  const folder = await temporaryFolder();
  const path = join(folder, 'ffmpeg');
  await writeFile(path, `#!/bin/sh\n[ "$2" = -encoders ] && printf '%s\\n' '${encoders}'\n`);
  await chmod(path, mode);
  return folder;
}

test('takes the first ffmpeg of the path that may be run, if it encodes H.264', async () => {
  const empty = await temporaryFolder();
  const notToRun = await folderWith(' V....D libx264', 0o644);
  const good = await folderWith(' V....D libx264   libx264 H.264 / AVC');
  const path = ['', empty, notToRun, good, await folderWith('')].join(delimiter);
  expect(await findFfmpeg(path, 'linux')).toEqual({ found: true, path: join(good, 'ffmpeg') });
});

test.each([
  ['linux', /sudo apt-get install ffmpeg/],
  ['darwin', /brew install ffmpeg/],
  ['win32', /winget install Gyan\.FFmpeg/],
  ['openbsd', /install ffmpeg, and start the demo again\.$/],
] as const)('says in one sentence how to get ffmpeg on %s', async (platform, how) => {
  for (const path of [undefined, '', await temporaryFolder()]) {
    const { advice = '' } = { advice: '', ...(await findFfmpeg(path, platform)) };
    expect(advice).toMatch(/^For a live test picture, .*, and start the demo again\.$/);
    expect(advice).toMatch(how);
  }
});

test('says which ffmpeg has no encoder of H.264, and of what is no program at all', async () => {
  const without = await folderWith(' V....D libopenh264');
  const folder = await temporaryFolder();
  await mkdir(join(folder, 'ffmpeg'));
  for (const each of [without, folder]) {
    expect(await findFfmpeg(each, 'linux')).toEqual({
      found: false,
      advice: `For a live test picture, take an ffmpeg with libx264: ${join(each, 'ffmpeg')} has none.`,
    });
  }
});
