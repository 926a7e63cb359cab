import { spawnSync } from 'node:child_process';

const ENCODER = 'libx264';
const ASKED_WITHIN_MS = 10_000;

/** What ffmpeg draws and encodes when it stands for an encoder: a test picture with a clock, and a tone. */
export const TEST_PICTURE = [
  ...['-re', '-f', 'lavfi', '-i', 'testsrc=size=960x540:rate=25'],
  ...['-f', 'lavfi', '-i', 'sine=frequency=330:beep_factor=4'],
  ...['-c:v', ENCODER, '-preset', 'veryfast', '-pix_fmt', 'yuv420p', '-g', '50', '-c:a', 'aac', '-f', 'flv'],
] as const;

/** Why the ffmpeg of a `PATH` can't encode H.264, and how to get one that can; undefined when it can. */
export function whyNoEncoder(searchPath: string, platform: NodeJS.Platform): string | undefined {
  const { stdout } = spawnSync('ffmpeg', ['-hide_banner', '-encoders'], {
    env: { PATH: searchPath },
    encoding: 'utf8',
    timeout: ASKED_WITHIN_MS,
    killSignal: 'SIGKILL',
    windowsHide: true,
  });
  if (stdout?.includes(ENCODER)) return undefined;
  return stdout
    ? `For a live test picture, take an ffmpeg with ${ENCODER}: that of your PATH has none.`
    : `For a live test picture, ${INSTALL[platform] ?? 'install ffmpeg'}, and start the demo again.`;
}

const INSTALL: Partial<Record<NodeJS.Platform, string>> = {
  linux: 'install ffmpeg with the package manager (sudo apt-get install ffmpeg, sudo dnf install ffmpeg)',
  darwin: 'install ffmpeg (brew install ffmpeg)',
  win32: 'install ffmpeg (winget install Gyan.FFmpeg)',
};
