import { spawn } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { delimiter, resolve } from 'node:path';
import { text } from 'node:stream/consumers';

const ENCODER = 'libx264';
const ASKED_WITHIN_MS = 10_000;

/** What ffmpeg draws and encodes when it stands for an encoder: a test picture with a clock, and a tone. */
export const TEST_PICTURE = [
  ...['-re', '-f', 'lavfi', '-i', 'testsrc=size=960x540:rate=25'],
  ...['-f', 'lavfi', '-i', 'sine=frequency=330:beep_factor=4'],
  ...['-c:v', ENCODER, '-preset', 'veryfast', '-pix_fmt', 'yuv420p', '-g', '50', '-c:a', 'aac', '-f', 'flv'],
] as const;

/** The ffmpeg of this machine, or a sentence that says how to get one. */
export type Ffmpeg =
  | { readonly found: true; readonly path: string }
  | { readonly found: false; readonly advice: string };

/** Looks for an ffmpeg that can encode H.264 in the folders of `searchPath`, the user's `PATH`. */
export async function findFfmpeg(searchPath: string | undefined, platform: NodeJS.Platform): Promise<Ffmpeg> {
  const path = await pathOf(platform === 'win32' ? 'ffmpeg.exe' : 'ffmpeg', searchPath ?? '');
  const install = INSTALL[platform] ?? 'install ffmpeg';
  if (path === undefined) {
    return { found: false, advice: `For a live test picture, ${install}, and start the demo again.` };
  }
  if ((await encodersOf(path)).includes(ENCODER)) return { found: true, path };
  const advice = `For a live test picture, take an ffmpeg with ${ENCODER}: ${path} has none.`;
  return { found: false, advice };
}

const INSTALL: Partial<Record<NodeJS.Platform, string>> = {
  linux: 'install ffmpeg with the package manager (sudo apt-get install ffmpeg, sudo dnf install ffmpeg)',
  darwin: 'install ffmpeg (brew install ffmpeg)',
  win32: 'install ffmpeg (winget install Gyan.FFmpeg)',
};

async function pathOf(program: string, searchPath: string): Promise<string | undefined> {
  for (const folder of searchPath.split(delimiter).filter((each) => each !== '')) {
    const path = resolve(folder, program);
    const isThere = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isThere) return path;
  }
  return undefined;
}

/** What the program says of its encoders; nothing when it is no ffmpeg. */
async function encodersOf(path: string): Promise<string> {
  const child = spawn(path, ['-hide_banner', '-encoders'], {
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: ASKED_WITHIN_MS,
    killSignal: 'SIGKILL',
    windowsHide: true,
  });
  const failed = new Promise<string>((resolve) => child.once('error', () => resolve('')));
  return Promise.race([failed, text(child.stdout)]);
}
