import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Channel, createChannel } from '../../src/emulator/live/channels';
import { type RtmpIngest, startRtmpIngest } from '../../src/emulator/live/rtmp-ingest';
import { shakaPackagerOfNpm } from '../../src/packager/shaka-packager';
import { channelMetadata } from '../support/channel-metadata';
import { startEmulator, type TestEmulator } from '../support/start-emulator';
import {
  CONTENT_KEY,
  FAIRPLAY,
  FAIRPLAY_KEY_ID,
  KEY_ID,
  startPackager,
  type TestPackager,
} from '../support/start-packager';

jest.setTimeout(60_000);

let emulator: TestEmulator;
let ingest: RtmpIngest;
let channel: Channel;
let packager: TestPackager;

beforeEach(async () => {
  emulator = await startEmulator();
  ingest = await startRtmpIngest(emulator.context, { host: '127.0.0.1', port: 0 });
  channel = createChannel(emulator.context, emulator.siteId, channelMetadata());
  packager = await startPackager({ ffmpeg: 'ffmpeg' });
  packager.provision();
});

afterEach(async () => {
  await packager.stop();
  await ingest.stop();
});

const address = () => `rtmp://127.0.0.1:${ingest.port}/live/${channel.streamKey}`;

function ffmpeg(...args: string[]): Buffer {
  return execFileSync('ffmpeg', ['-hide_banner', '-loglevel', 'error', '-y', ...args]);
}

/** Encodes some seconds of a moving picture with a tone. */
function encoded(name: string, ...args: string[]): string {
  const path = join(packager.home, name);
  const picture = ['-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=15'];
  const tone = ['-f', 'lavfi', '-i', 'sine=frequency=440'];
  const codecs = ['-c:v', 'libx264', '-preset', 'veryfast', '-g', '15', '-bf', '2', '-c:a', 'aac'];
  ffmpeg(...picture, ...tone, ...codecs, '-pix_fmt', 'yuv420p', '-t', '8', ...args, path);
  return path;
}

/** Streams a file to the ingest, as fast as it is played, and answers when it is over. */
async function stream(file: string, ...args: string[]): Promise<void> {
  const child = spawn(
    'ffmpeg',
    ['-hide_banner', '-loglevel', 'error', '-re', '-i', file, '-c', 'copy', ...args, '-f', 'flv', address()],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  await once(child, 'close');
}

/** The hash of each picture of a file as it is shown, or of each piece of sound as it is encoded. */
function hashesOf(file: string, kind: 'video' | 'audio', ...args: string[]): string[] {
  const map = kind === 'video' ? ['-map', '0:v:0'] : ['-map', '0:a:0', '-c', 'copy'];
  const text = ffmpeg(...args, '-i', file, ...map, '-f', 'framemd5', '-').toString();
  return text
    .split('\n')
    .filter((line) => /^\d/.test(line))
    .map((line) => line.split(',').at(-1)?.trim() ?? '');
}

/** The segments of a rendition, each behind its initialization, in their order. */
async function segmentsOf(system: 'dash' | 'hls', kind: 'video' | 'audio'): Promise<Buffer[]> {
  const { text } = await packager.api.get(`/media/news/hls/${kind}.m3u8`).expect(200);
  const segments: Buffer[] = [];
  let initialization = Buffer.alloc(0);
  for (const [, uri = ''] of text.matchAll(/^(?:#EXT-X-MAP:URI="|)([\w-]+\/\w+\.(?:mp4|m4s))/gm)) {
    const answer = await fetch(`${packager.url}/media/news/${system}/${uri}`);
    const bytes = Buffer.from(await answer.arrayBuffer());
    if (uri.endsWith('.mp4')) initialization = bytes;
    else segments.push(Buffer.concat([initialization, bytes]));
  }
  return segments;
}

/** What all segments of a rendition hold when they are decrypted, each one by itself. */
async function decrypted(system: 'dash' | 'hls', kind: 'video' | 'audio'): Promise<string[]> {
  const segments = await segmentsOf(system, kind);
  return segments.flatMap((bytes, index) => {
    const path = join(packager.home, `${system}-${kind}-${index}.mp4`);
    writeFileSync(path, bytes);
    // An independent reader of `cenc`; of `cbcs` and of a first piece of sound, ffmpeg 5.1 makes garbage.
    if (system === 'dash' && kind === 'video')
      return hashesOf(path, kind, '-decryption_key', CONTENT_KEY.toString('hex'));
    return hashesOf(decryptedFile(path, system, kind), kind);
  });
}

function decryptedFile(file: string, system: 'dash' | 'hls', kind: string): string {
  const output = `${file}.clear.mp4`;
  const [keyId, key] =
    system === 'dash'
      ? [KEY_ID.toString('hex'), CONTENT_KEY.toString('hex')]
      : [FAIRPLAY_KEY_ID.replaceAll('-', ''), FAIRPLAY.key];
  execFileSync(shakaPackagerOfNpm(process.platform, process.arch, __filename), [
    `in=${file},stream=${kind},output=${output}`,
    '--enable_raw_key_decryption',
    `--keys=label=:key_id=${keyId}:key=${key}`,
    '--quiet',
  ]);
  return output;
}

test('every picture of an encoder comes out of the encryption as it went in', async () => {
  const source = encoded('source.flv');
  const streaming = stream(source);
  const putting = setInterval(() => void packager.put('news', { source: address(), keyFile: 'news' }), 500);
  await packager.until('news', ({ state }) => state === 'running');
  await streaming;
  clearInterval(putting);
  await packager.api.post('/streams/news/end').expect(200);
  for (const kind of ['video', 'audio'] as const) {
    const wanted = hashesOf(source, kind);
    expect(wanted.length).toBeGreaterThan(100);
    expect(await decrypted('dash', kind)).toEqual(wanted);
    expect(await decrypted('hls', kind)).toEqual(wanted);
  }
});
