import { parseArgs } from 'node:util';
import * as z from 'zod';

export const HELP = `Usage: npm run demo [-- --once]

Starts the key-file sidecar and the emulator of the platform on this machine's loopback, provisions the stream "demo"
through the sidecar's HTTP API, makes a live channel in each publishing mode, shows the key file, the channels and the
commands to go on with, and stays up until Ctrl-C.

  --once   ends after showing the key file
  --help   shows this text
`;

type DemoOptions =
  | { readonly ok: true; readonly once: boolean; readonly help: boolean }
  | { readonly ok: false; readonly fault: string };

/** Reads the command line's arguments; an unknown one is a fault that names it. */
export function readDemoOptions(args: readonly string[]): DemoOptions {
  try {
    const options = {
      once: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    } as const;
    const { values } = parseArgs({ args: [...args], options, strict: true });
    return { ok: true, ...values };
  } catch (thrown) {
    return { ok: false, fault: messageOf(thrown) };
  }
}

/** Not `instanceof Error`, which fails across realms. */
function messageOf(thrown: unknown): string {
  const known = typeof thrown === 'object' && thrown !== null && 'message' in thrown;
  return known ? String(thrown.message) : 'The arguments cannot be read.';
}

/** A channel that the demo made, as far as its text tells of it. */
export interface DemoChannel {
  readonly mode: 'auto' | 'manual';
  readonly id: string;
  readonly streamKey: string;
}

const created = z.object({ id: z.string(), stream_key: z.string() });

export function channelBody(title: string, mode: DemoChannel['mode']): object {
  return { metadata: { title, publishing_mode: mode } };
}

export function readChannel(mode: DemoChannel['mode'], answer: unknown): DemoChannel {
  const { id, stream_key: streamKey } = created.parse(answer);
  return { mode, id, streamKey };
}

/** What the demo did, for the text that tells it. */
interface Provisioned {
  readonly sidecarUrl: string;
  readonly emulatorUrl: string;
  readonly streamId: string;
  readonly apiKey: string;
  readonly request: Readonly<Record<string, string>>;
  readonly keyFile: string;
  readonly keyFilePath: string;
  readonly channels: readonly DemoChannel[];
  readonly controlUrl: string;
  readonly rtmpUrl: string;
  readonly siteId: string;
  readonly apiSecret: string;
}

/** Tells what was done, shows the key file, and gives the commands that repeat it in a POSIX shell. */
export function guide(done: Provisioned): string {
  const { sidecarUrl, emulatorUrl, streamId, apiKey, request, keyFile, keyFilePath } = done;
  const curl = `curl -sS ${sidecarUrl}/api/keyfile/${streamId} -H 'x-api-key: ${apiKey}'`;
  return `The sidecar runs at ${sidecarUrl}, the emulator of the platform at ${emulatorUrl}.

The demo sent POST /api/keyfile/${streamId} to the sidecar. The sidecar fetched the client's shared secret from the
configuration service and the keys from the key provider, and wrote this key file for the packager:

${keyFile}
It lies at ${keyFilePath}

Provision it again:
  ${curl} -H 'content-type: application/json' -d '${JSON.stringify(request)}'
Read it:
  ${curl}
Delete it:
  ${curl} -X DELETE

Live channels of the emulator, to be seen on its dashboard, ${emulatorUrl}/dashboard

${done.channels.map((channel) => channelText(channel, done)).join('\n')}
Their management API: curl -sS ${emulatorUrl}/v2/sites/${done.siteId}/channels/ -H 'Authorization: Bearer ${done.apiSecret}'
Without ffmpeg, a simulated encoder:
${done.channels.map((channel) => `  curl -sS ${done.controlUrl}/encoder/connect -d '${JSON.stringify({ stream_key: channel.streamKey })}'`).join('\n')}
`;
}

function channelText({ mode, id, streamKey }: DemoChannel, { emulatorUrl, rtmpUrl }: Provisioned): string {
  const seen =
    mode === 'auto' ? 'viewers see it as soon as an encoder streams' : 'viewers see it once it is published';
  return `Channel ${id} (${mode}: ${seen})
  stream key  ${streamKey}
  watch       ${emulatorUrl}/embed/channel.html?channelId=${id}
  stream      ffmpeg -re -f lavfi -i testsrc2=size=1280x720:rate=30 -f lavfi -i sine=frequency=440 -c:v libx264 -preset veryfast -pix_fmt yuv420p -g 60 -c:a aac -f flv ${rtmpUrl}/${streamKey}
`;
}
