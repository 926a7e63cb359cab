import { type ChildProcess, spawn } from 'node:child_process';

export type Colour = 'red' | 'lime' | 'blue' | 'yellow' | 'cyan' | 'magenta';

/** The stream of an encoder: two halves of one colour each, with a white box that moves above them, and a tone. */
export interface Picture {
  readonly left?: Colour;
  readonly right?: Colour;
  readonly size?: string;
  /** Left out: both. */
  readonly only?: 'video' | 'audio';
}

export type Encoder = ReturnType<typeof spawnFfmpeg>;

/** Pictures a second; a key frame each second. */
const RATE = 15;
const H264 = ['-c:v', 'libx264', '-preset', 'superfast', '-tune', 'zerolatency', '-pix_fmt', 'yuv420p'];

/** The arguments of ffmpeg for a picture, without an output. */
export function pictureArguments({
  left = 'red',
  right = 'blue',
  size = '320x180',
  only,
}: Picture): string[] {
  const [width = 320, height = 180] = size.split('x').map(Number);
  const side = Math.round(height / 4);
  const graph = [
    `color=${left}:s=${width}x${height}:r=${RATE}[left]`,
    `color=${right}:s=${width / 2}x${height}:r=${RATE}[right]`,
    `color=white:s=${side}x${side}:r=${RATE}[box]`,
    `[left][right]overlay=${width / 2}:0[halves]`,
    `[halves][box]overlay=x='mod(n*7,${width - side})':y=${Math.round(height / 9)}[out]`,
  ].join(';');
  return [
    ...(only === 'audio' ? [] : ['-f', 'lavfi', '-i', graph]),
    ...(only === 'video' ? [] : ['-f', 'lavfi', '-i', 'sine=frequency=440:sample_rate=48000']),
    ...(only === 'audio' ? [] : [...H264, '-g', String(RATE)]),
    ...(only === 'video' ? [] : ['-c:a', 'aac', '-b:a', '96k']),
  ];
}

/** Starts ffmpeg with these arguments. @param env identifies its owner. */
export function spawnFfmpeg(args: readonly string[], env: Readonly<Record<string, string>>) {
  const child: ChildProcess = spawn('ffmpeg', ['-hide_banner', '-loglevel', 'error', '-nostdin', ...args], {
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let complaints = '';
  let running = true;
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    complaints += text;
  });
  const exit = new Promise<number | null>((resolve) =>
    child.once('close', (code) => {
      running = false;
      resolve(code);
    }),
  );
  return {
    pid: child.pid ?? 0,
    /** The exit code; null where a signal ended it. */
    exit,
    /** Whether it streams still. */
    isRunning: () => running,
    /** Its error output. */
    complaints: () => complaints,
    /** It goes, and says so. */
    async stop() {
      child.kill('SIGCONT');
      child.kill('SIGINT');
      await exit;
    },
    send: (signal: NodeJS.Signals) => void child.kill(signal),
  };
}
