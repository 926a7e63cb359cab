import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { formatUuid } from '../../src/drm/bytes';
import { fairPlayKeyId } from '../../src/drm/packaging';
import { widevinePsshDataOf } from '../../src/drm/widevine';
import { type RtmpIngest, startRtmpIngest } from '../../src/platform/emulator/live/rtmp-ingest';
import { type Channel, createChannel } from '../../src/platform/emulator/resources/channels';
import { afterTest, onceForAll } from '../support/after-test';
import { channelMetadata } from '../support/channel-metadata';
import { decryptedFile } from '../support/packaged-samples';
import { startEmulator, type TestEmulator } from '../support/start-emulator';
import {
  CONTENT_KEY,
  FAIRPLAY,
  FAIRPLAY_KEY_ID,
  KEY_ID,
  startProvisioned,
  type TestPackager,
  textOfKeyFile,
} from '../support/start-packager';
import { testsTogether } from '../support/tests-together';
import { until } from '../support/until';

jest.setTimeout(120_000);

const run = promisify(execFile);
const encoders: ChildProcess[] = [];
const start = onceForAll(async () => {
  const emulator = await startEmulator();
  const ingest = await startRtmpIngest(emulator.context, { host: '127.0.0.1', port: 0 });
  afterTest(() => ingest.stop());
  const packager = await startProvisioned({ ffmpeg: 'ffmpeg', rotate: true, limits: { silentMs: 1500 } });
  afterTest(() => encoders.map((encoder) => encoder.kill('SIGKILL')));
  return { emulator, ingest, packager };
});
let emulator: TestEmulator;
let ingest: RtmpIngest;
let packager: TestPackager;

beforeAll(async () => {
  ({ emulator, ingest, packager } = await start());
});

const newChannel = () => createChannel(emulator.context, emulator.siteId, channelMetadata());
const address = ({ streamKey }: Channel) => `rtmp://127.0.0.1:${ingest.port}/live/${streamKey}`;

// Not synchronous: the packager runs in this process.
const ffmpeg = async (...args: string[]): Promise<string> =>
  (await run('ffmpeg', ['-hide_banner', '-loglevel', 'error', '-y', ...args])).stdout;

/** Encodes some seconds of a moving picture with a tone. */
async function encoded(name: string, ...args: string[]): Promise<string> {
  const path = join(packager.home, name);
  const picture = ['-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=15'];
  const tone = ['-f', 'lavfi', '-i', 'sine=frequency=440'];
  const codecs = ['-c:v', 'libx264', '-preset', 'veryfast', '-g', '15', '-bf', '2', '-c:a', 'aac'];
  await ffmpeg(...picture, ...tone, ...codecs, '-pix_fmt', 'yuv420p', '-t', '6', ...args, path);
  return path;
}

interface Streaming {
  readonly child: ChildProcess;
  /** Resolves when the encoder has gone, and the packager gets no more calls for the stream. */
  readonly over: Promise<void>;
}

/** Streams a file to a channel as fast as it is played, and sends it to the packager again and again, as the emulator does. */
function stream(
  id: string,
  channel: Channel,
  file: string,
  args: readonly string[] = [],
  more = {},
  speed = 1,
): Streaming {
  const input = [...(file.endsWith('list') ? ['-f', 'concat', '-safe', '0'] : []), '-i', file];
  const child = spawn(
    'ffmpeg',
    [
      ...['-hide_banner', '-loglevel', 'error', '-readrate', `${speed}`, ...input, '-c', 'copy'],
      ...[...args, '-f', 'flv', address(channel)],
    ],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  encoders.push(child);
  const body = { source: address(channel), keyFile: 'news', ...more };
  const putting = setInterval(() => void packager.put(id, body), 500);
  const over = once(child, 'close').then(() => clearInterval(putting));
  return { child, over };
}

/** The hash of each picture of a file as it is shown, or of each piece of sound as it is encoded. */
async function hashesOf(file: string, kind: 'video' | 'audio', ...args: string[]): Promise<string[]> {
  const map = kind === 'video' ? ['-map', '0:v:0'] : ['-map', '0:a:0', '-c', 'copy'];
  const text = await ffmpeg(...args, '-i', file, ...map, '-f', 'framemd5', '-');
  return text
    .split('\n')
    .filter((line) => /^\d/.test(line))
    .map((line) => line.split(',').at(-1)?.trim() ?? '');
}

type System = 'dash' | 'hls';
type Kind = 'video' | 'audio';

interface Segment {
  readonly initialization: Buffer;
  readonly bytes: Buffer;
}

/** The segments of a rendition, with their initialization, in their order. */
async function segmentsOf(id: string, system: System, kind: Kind): Promise<Segment[]> {
  const { text } = await packager.api.get(`/media/${id}/hls/${kind}.m3u8`).expect(200);
  const segments: Segment[] = [];
  let initialization = Buffer.alloc(0);
  for (const [, uri = ''] of text.matchAll(/^(?:#EXT-X-MAP:URI="|)([\w-]+\/\w+\.(?:mp4|m4s))/gm)) {
    const answer = await fetch(`${packager.url}/media/${id}/${system}/${uri}`);
    const bytes = Buffer.from(await answer.arrayBuffer());
    if (uri.endsWith('.mp4')) initialization = bytes;
    else segments.push({ initialization, bytes });
  }
  return segments;
}

interface Keys {
  readonly cenc: { readonly id: Buffer; readonly key: Buffer };
  readonly cbcs: { readonly id: Buffer; readonly key: Buffer };
}
const KEYS: Keys = {
  cenc: { id: KEY_ID, key: CONTENT_KEY },
  cbcs: {
    id: Buffer.from(FAIRPLAY_KEY_ID.replaceAll('-', ''), 'hex'),
    key: Buffer.from(FAIRPLAY.key, 'hex'),
  },
};

/** Decrypts files of a rendition, each one with its own keys. */
async function decryptedFiles(
  files: readonly { readonly bytes: Buffer; readonly keys: Keys }[],
  name: string,
  system: System,
  kind: Kind,
): Promise<string[]> {
  const hashes: string[] = [];
  for (const [index, { bytes, keys }] of files.entries()) {
    const path = join(packager.home, `${name}-${system}-${kind}-${index}.mp4`);
    writeFileSync(path, bytes);
    const { id, key } = system === 'dash' ? keys.cenc : keys.cbcs;
    // An independent reader of `cenc`; of `cbcs` and of a first piece of sound, ffmpeg 5.1 makes garbage.
    const found =
      system === 'dash' && kind === 'video'
        ? await hashesOf(path, kind, '-decryption_key', key.toString('hex'))
        : await hashesOf(await decryptedFile(path, kind, id, key), kind);
    hashes.push(...found);
  }
  return hashes;
}

/** Decrypts all segments of a rendition, each one by itself. */
async function decrypted(id: string, system: System, kind: Kind): Promise<string[]> {
  const segments = await segmentsOf(id, system, kind);
  const files = segments.map(({ initialization, bytes }) => Buffer.concat([initialization, bytes]));
  return decryptedFiles(
    files.map((bytes) => ({ bytes, keys: KEYS })),
    id,
    system,
    kind,
  );
}

const isRunning = ({ state }: { state: string }) => state === 'running';

testsTogether(undefined, {
  async 'every picture of an encoder, which pauses meanwhile, comes out of the encryption as it went in'() {
    const source = await encoded('source.flv');
    const { child, over } = stream('news', newChannel(), source);
    await packager.until('news', isRunning);
    child.kill('SIGSTOP');
    const paused = await packager.until('news', ({ state }) => state === 'interrupted');
    expect(paused.problem?.code).toBe('encoder_silent');
    child.kill('SIGCONT');
    await packager.until('news', isRunning);
    await over;
    await packager.api.post('/streams/news/end').expect(200);
    for (const kind of ['video', 'audio'] as const) {
      const wanted = await hashesOf(source, kind);
      expect(wanted.length).toBeGreaterThan(80);
      expect(await decrypted('news', 'dash', kind)).toEqual(wanted);
      expect(await decrypted('news', 'hls', kind)).toEqual(wanted);
    }
    expect((await packager.api.get('/media/news/hls/video.m3u8')).text).not.toContain('DISCONTINUITY');

    // The recording is the same, clear; a piece of it begins and ends at the requested times.
    const recorded = async (query: string) => {
      const path = join(packager.home, 'recording.mp4');
      const answer = await fetch(`${packager.url}/streams/news/recording${query}`);
      expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'video/mp4']);
      writeFileSync(path, Buffer.from(await answer.arrayBuffer()));
      return hashesOf(path, 'video');
    };
    const pictures = await hashesOf(source, 'video');
    expect(await recorded('')).toEqual(pictures);
    // Its key frames are a second apart.
    const piece = await recorded('?from=2.6&to=4.6');
    const first = pictures.indexOf(piece[0] ?? '');
    expect(first).toBe(39);
    expect(piece.length).toBeCloseTo(30, -1);
    // The last ones are cut in the order of their decoding.
    expect(pictures.slice(first, first + piece.length - 3)).toEqual(piece.slice(0, -3));
    const beyond = await packager.api.get('/streams/news/recording?from=100').expect(409);
    expect(beyond.body.errors[0].code).toBe('nothing_recorded');
  },

  async 'twelve keys go by in one connection: each begins a period and a key line, and every picture and sound comes out as it went in'() {
    const source = await encoded('rotating.flv', '-t', '24');
    const hash = (text: string) => createHash('md5').update(text).digest();
    const licenseUrl = (index: number) => `skd://license.example/rotating?${index}`;
    const keysOf = (index: number): Keys => ({
      cenc: { id: hash(`id ${index}`), key: hash(`key ${index}`) },
      cbcs: { id: fairPlayKeyId(licenseUrl(index)), key: hash(`sound ${index}`) },
    });
    const provision = (index: number) => {
      const { cenc, cbcs } = keysOf(index);
      const keyFile = {
        cenc: { keyId: cenc.id.toString('base64'), contentKey: cenc.key.toString('base64') },
        widevine: { psshData: widevinePsshDataOf(cenc.id, 'rotating') },
        fairplay: { key: cbcs.key.toString('hex'), iv: FAIRPLAY.iv, licenseUrl: licenseUrl(index) },
      };
      packager.provision('rotating', textOfKeyFile(keyFile));
    };
    provision(0);
    const { over } = stream('rotating', newChannel(), source, [], { keyFile: 'rotating', latency: 'low' }, 2);
    await packager.until('rotating', isRunning);
    for (let index = 1; index < 12; index += 1) {
      await packager.until('rotating', ({ dash }) => dash?.keyIds.length === index);
      // Of a key file that is cut off, nothing is taken: the last good key stays.
      if (index === 6) {
        packager.provision('rotating', 'cenc-keyid: ');
        await until(() => packager.log().includes('"new key file not used; the stream keeps its key"'));
      }
      provision(index);
    }
    await over;
    const { body } = await packager.api.post('/streams/rotating/end').expect(200);
    const all = Array.from({ length: 12 }, (_, index) => index);
    expect(body.dash.keyIds).toEqual(all.map((index) => formatUuid(keysOf(index).cenc.id)));
    expect(body.hls.keyIds).toEqual(all.map((index) => formatUuid(keysOf(index).cbcs.id)));

    // That of a second pull would be one.
    const { text: playlist } = await packager.api.get('/media/rotating/hls/video.m3u8');
    expect(playlist.match(/#EXT-X-KEY:/g)).toHaveLength(12);
    expect(playlist).not.toContain('DISCONTINUITY');
    const { text: manifest } = await packager.api.get('/media/rotating/dash/manifest.mpd');
    expect(manifest.match(/<Period /g)).toHaveLength(12);
    for (const kind of ['video', 'audio'] as const) {
      const wanted = await hashesOf(source, kind);
      for (const system of ['dash', 'hls'] as const) {
        const segments = await segmentsOf('rotating', system, kind);
        const heads = [...new Set(segments.map(({ initialization }) => initialization))];
        const alone = segments.map(({ initialization, bytes }) => ({
          bytes: Buffer.concat([initialization, bytes]),
          keys: keysOf(heads.indexOf(initialization)),
        }));
        const whole = heads.map((head, index) => ({
          bytes: Buffer.concat([
            head,
            ...segments.flatMap(({ initialization, bytes }) => (initialization === head ? [bytes] : [])),
          ]),
          keys: keysOf(index),
        }));
        // Of several segments in a file, ffmpeg 5.1 decrypts the first.
        const files = system === 'dash' && kind === 'video' ? alone : whole;
        const shown = await decryptedFiles(files, 'rotating', system, kind);
        // Media that the encoder sent before the pull is not packaged.
        expect(shown.length).toBeGreaterThan(0.9 * wanted.length);
        expect([system, kind, shown]).toEqual([system, kind, wanted.slice(-shown.length)]);
      }
    }
  },

  async 'a stream of one picture a second is packaged from its first one on'() {
    const slides = await encoded('slides.flv', '-r', '1', '-g', '2', '-t', '12');
    await stream('slides', newChannel(), slides).over;
    await packager.api.post('/streams/slides/end');
    // The last one may be on its way when the stream is ended.
    const wanted = (await hashesOf(slides, 'video')).slice(0, -1);
    expect((await decrypted('slides', 'hls', 'video')).slice(0, wanted.length)).toEqual(wanted);
  },

  async 'a change of resolution, and of time, within a connection begins a part each, of whole pictures'() {
    const small = await encoded('small.flv', '-s', '160x90', '-t', '5');
    const large = await encoded('large.flv', '-t', '8');
    const list = join(packager.home, 'list');
    writeFileSync(list, `ffconcat version 1.0\nfile ${small}\nfile ${large}\n`);
    // Eight seconds on, two days are skipped.
    const jump = 'setts=pts=PTS+if(gt(DTS\\,8000)\\,2*86400000):dts=DTS+if(gt(DTS\\,8000)\\,2*86400000)';
    await stream('changes', newChannel(), list, ['-bsf:v', jump, '-bsf:a', jump]).over;
    await packager.api.post('/streams/changes/end');
    const changes = packager
      .log()
      .match(/"the encoder changed its stream; the packager pulls it again","stream":"changes"/g);
    expect(changes?.length).toBeGreaterThanOrEqual(2);
    const [before, after] = [await hashesOf(small, 'video'), await hashesOf(large, 'video')];
    for (const system of ['dash', 'hls'] as const) {
      const shown = await decrypted('changes', system, 'video');
      const second = shown.filter((hash) => after.includes(hash));
      expect(shown.filter((hash) => before.includes(hash) || after.includes(hash))).toEqual(shown);
      expect(new Set(second).size).toBeGreaterThan(after.length / 2);
    }
  },

  async 'a simulcast target gets the stream as it is, from when it can be reached, and a player ends with the encoder without a complaint'() {
    const [channel, target] = [newChannel(), newChannel()];
    const lost = `rtmp://127.0.0.1:1/live/${target.streamKey}`;
    const source = await encoded('long.flv', '-t', '40');
    const simulcast = { simulcast: [{ url: lost }, { url: address(target) }] };
    const { child, over } = stream('simulcast', channel, source, [], simulcast);
    await until(() => emulator.context.broadcast.sessionOf(target.id) !== undefined);
    const copy = join(packager.home, 'copy.flv');
    await ffmpeg('-i', address(target), '-c', 'copy', '-frames:v', '30', copy);
    expect(await hashesOf(source, 'video')).toEqual(
      expect.arrayContaining((await hashesOf(copy, 'video')).slice(0, 28)),
    );
    await packager.until('simulcast', isRunning);
    // A player of the channel itself, which ends with the encoder.
    const play = ['-i', address(channel), '-c', 'copy', '-xerror', '-f', 'flv', '-'];
    const player = spawn('ffmpeg', ['-loglevel', 'error', ...play], { stdio: ['ignore', 'pipe', 'pipe'] });
    let complaints = '';
    player.stderr.setEncoding('utf8').on('data', (text: string) => {
      complaints += text;
    });
    await once(player.stdout, 'data');
    player.stdout.resume();
    const ended = once(player, 'close');
    child.kill('SIGINT');
    await over;
    expect([await ended, complaints]).toEqual([[0, null], '']);
    await packager.api.post('/streams/simulcast/end');
    await until(() => emulator.context.broadcast.sessionOf(target.id) === undefined);
    expect(packager.log()).toContain('"simulcast ended; the packager tries again"');
    expect(packager.log()).not.toContain(target.streamKey);
    expect(packager.log()).not.toContain(channel.streamKey);
  },
});
