import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import * as z from 'zod';

export const HELP = `Usage: npm run demo [-- --once]      in a clone
       packager-drm-demo [--once]    of the npm package

Starts the key-file sidecar, the emulator of the platform and the reference packager on this machine's loopback,
provisions the stream "demo" through the sidecar's HTTP API, packages a test clip with the key file, makes a live
channel in each publishing mode, shows players, key file, channels and the commands to go on with, and stays up until
Ctrl-C. With ffmpeg on the machine, a test picture is streamed to the first channel.

  --once   tests the packaged clip after showing the key file, and ends; streams nothing
  --help   shows this text
`;

export function readDemoOptions(args: readonly string[]) {
  try {
    const options = {
      once: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    } as const;
    const { values } = parseArgs({ args: [...args], options, strict: true });
    return { ok: true as const, ...values };
  } catch (thrown) {
    return { ok: false as const, fault: (thrown as Error).message };
  }
}

export interface DemoChannel {
  readonly mode: 'auto' | 'manual';
  readonly id: string;
  readonly streamKey: string;
}

export type DemoClip =
  | { readonly ok: true; readonly mediaId: string; readonly dashUrl: string; readonly hlsUrl: string }
  | { readonly ok: false; readonly why: string };

interface Provisioned {
  readonly sidecarUrl: string;
  readonly emulatorUrl: string;
  readonly streamId: string;
  readonly apiKey: string;
  readonly request: Readonly<Record<string, string>>;
  readonly keyFile: string;
  readonly keyFilePath: string;
  readonly clip: DemoClip;
  readonly verifyCommand: string;
  readonly channels: readonly DemoChannel[];
  /** Whether a test picture is streamed, and if not, how one is got where one is wanted. */
  readonly live: boolean;
  readonly advice: string | undefined;
  readonly controlUrl: string;
  readonly rtmpUrl: string;
  readonly siteId: string;
  readonly apiSecret: string;
}

const REFUSED = z.object({ stream: z.string(), state: z.enum(['refused', 'failed']), reason: z.string() });

/** The text for a line of the packager's log that reports a stream as not packaged, with the reason. */
export function refusalIn(line: string, emulatorUrl: string): string | undefined {
  const read = line.includes('"stream not packaged"') ? REFUSED.safeParse(JSON.parse(line)).data : undefined;
  return (
    read &&
    `The packager ${read.state === 'refused' ? 'refuses' : "can't package"} the stream ${read.stream}. ${read.reason}\n  ${emulatorUrl}/dashboard/events?q=${read.stream}\n`
  );
}

export function guide(done: Provisioned): string {
  const { sidecarUrl, emulatorUrl, streamId, apiKey, request, keyFile, keyFilePath } = done;
  const curl = `curl -sS ${sidecarUrl}/api/keyfile/${streamId} -H 'x-api-key: ${apiKey}'`;
  return `${clipText(done)}
The sidecar runs at ${sidecarUrl}, the emulator of the platform at ${emulatorUrl}.
The key file as written by POST /api/keyfile/${streamId}:

${keyFile}
It is ${keyFilePath}

Provision it again:
  ${curl} -H 'content-type: application/json' -d '${JSON.stringify(request)}'
Read it:
  ${curl}
Delete it:
  ${curl} -X DELETE

Live channels, protected with the same key file; the dashboard is ${emulatorUrl}/dashboard

${done.channels.map((channel) => channelText(channel, done)).join('\n')}
${encoderText(done)}
Their management API:
  curl -sS ${emulatorUrl}/v2/sites/${done.siteId}/channels/ -H 'Authorization: Bearer ${done.apiSecret}'
`;
}

function clipText(done: Provisioned): string {
  const { clip, emulatorUrl, verifyCommand } = done;
  if (!clip.ok) return `No media are packaged. ${clip.why}\n`;
  const player = `${emulatorUrl}/embed/media.html?mediaId=${clip.mediaId}`;
  return `A test clip plays with DRM. Open it in Chrome, Edge or Firefox:

  DASH, cenc   ${player}
  HLS, cbcs    ${player}&format=hls
${liveText(done)}
Its keys come from the key provider; the sidecar wrote them into a key file, with which the packager encrypted. The
browser gets them as ClearKey licenses from the emulator's DRM side. Test whether the stream decrypts with the key file,
with the command or on the page:

  ${verifyCommand}
  ${emulatorUrl}/verify?url=${clip.dashUrl}
`;
}

/** Whether the demo's own encoder streams to the channel: it takes the first one that viewers see at once. */
function isStreaming({ mode }: DemoChannel, { live, clip }: Provisioned): boolean {
  return live && clip.ok && mode === 'auto';
}

function liveText(done: Provisioned): string {
  const { advice, channels, emulatorUrl } = done;
  if (advice !== undefined) return `\n${advice}\n`;
  const streaming = channels.find((channel) => isStreaming(channel, done));
  return streaming ? `  live         ${embedUrl(streaming, emulatorUrl)}\n` : '';
}

function embedUrl({ id }: DemoChannel, emulatorUrl: string): string {
  return `${emulatorUrl}/embed/channel.html?channelId=${id}`;
}

function channelText(channel: DemoChannel, done: Provisioned): string {
  const { mode, id, streamKey } = channel;
  const seen =
    mode === 'auto' ? 'viewers see it as soon as an encoder streams' : 'viewers see it once it is published';
  return `Channel ${id} (${mode}: ${seen})
  watch       ${embedUrl(channel, done.emulatorUrl)}
  stream key  ${streamKey}${isStreaming(channel, done) ? ', with which ffmpeg streams now' : ''}
`;
}

/** How to stream to the first channel that has no encoder yet. */
function encoderText(done: Provisioned): string {
  const { channels, rtmpUrl, controlUrl } = done;
  const { streamKey = '' } = channels.find((channel) => !isStreaming(channel, done)) ?? {};
  return `Stream to a channel, with OBS (server ${rtmpUrl}, and the stream key) or with ffmpeg:
  ffmpeg ${TEST_PICTURE.join(' ')} ${rtmpUrl}/${streamKey}
Or with a simulated encoder, which sends no picture:
  curl -sS ${controlUrl}/encoder/connect -d '${JSON.stringify({ stream_key: streamKey })}'`;
}

const ENCODER = 'libx264';
const ASKED_WITHIN_MS = 10_000;

/** The input of ffmpeg when it replaces an encoder: a test picture with a clock, and a tone. */
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
