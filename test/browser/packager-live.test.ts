import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
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

let streams = 0;
/** The id of a stream that nothing has been of, also where a test is tried again. */
const newStream = (name: string) => {
  streams += 1;
  return `${name}-${streams}`;
};
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

/** Starts an encoder of a channel, and sends the stream to the packager again and again, as the emulator does. */
function stream(id: string, channel: Channel, input: readonly string[], copy: readonly string[], more = {}) {
  const output = ['-c', 'copy', ...copy, '-f', 'flv', address(channel)];
  const child = spawn('ffmpeg', ['-hide_banner', '-loglevel', 'error', ...input, ...output], {
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  encoders.push(child);
  const body = { source: address(channel), keyFile: 'news', ...more };
  const putting = setInterval(() => void packager.put(id, body), 500);
  /** Resolves when the encoder has gone, and the packager gets no more calls for the stream. */
  const over = once(child, 'close').then(() => clearInterval(putting));
  return { child, over };
}

/** Where the first tag of an FLV file is that has this time, in seconds, or a later one. */
function placeOf(seconds: number, flv: Buffer): number {
  let at = 13;
  while (at < flv.length && flv.readUIntBE(at + 4, 3) < seconds * 1000) at += 15 + flv.readUIntBE(at + 1, 3);
  return at;
}

/**
 * Streams an FLV file to a channel, as far as a test lets it, so that nothing depends on how fast the machine is. Resolves
 * when the packager pulls it: it has sent a second by then, its first group of pictures, which a new player gets whole.
 */
async function streamed(id: string, file: string, { copy = [] as readonly string[], more = {} } = {}) {
  const { child, over } = stream(id, newChannel(), ['-fpsprobesize', '0', '-i', 'pipe:0'], copy, more);
  const bytes = readFileSync(file);
  let sent = 0;
  /** Lets it stream up to a second. */
  const upTo = (seconds: number) => {
    const end = placeOf(seconds, bytes);
    child.stdin?.write(bytes.subarray(sent, end));
    sent = end;
  };
  upTo(1);
  await untilParts(id, 1);
  const end = async () => {
    child.stdin?.end(bytes.subarray(sent));
    await over;
    return endOf(id);
  };
  return { upTo, end };
}

/** Ends a stream whose encoder has gone, when all that it has sent has come. */
async function endOf(id: string) {
  await packager.until(id, ({ problem }) =>
    /^(?:encoder_gone|source_unavailable)$/.test(problem?.code ?? ''),
  );
  return (await packager.api.post(`/streams/${id}/end`).expect(200)).body;
}

const untilParts = (id: string, count: number) =>
  until(() => packager.log().split(`"part of a stream started","stream":"${id}"`).length > count);

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
    const id = newStream('news');
    const source = await encoded('source.flv');
    const encoder = await streamed(id, source);
    encoder.upTo(4);
    const paused = await packager.until(id, ({ state }) => state === 'interrupted');
    expect(paused.problem?.code).toBe('encoder_silent');
    encoder.upTo(5);
    await packager.until(id, isRunning);
    await encoder.end();
    for (const kind of ['video', 'audio'] as const) {
      const wanted = await hashesOf(source, kind);
      expect(wanted.length).toBeGreaterThan(80);
      expect(await decrypted(id, 'dash', kind)).toEqual(wanted);
      expect(await decrypted(id, 'hls', kind)).toEqual(wanted);
    }
    expect((await packager.api.get(`/media/${id}/hls/video.m3u8`)).text).not.toContain('DISCONTINUITY');

    // The recording is the same, clear; a piece of it begins and ends at the requested times.
    const recorded = async (query: string) => {
      const path = join(packager.home, 'recording.mp4');
      const answer = await fetch(`${packager.url}/streams/${id}/recording${query}`);
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
    const beyond = await packager.api.get(`/streams/${id}/recording?from=100`).expect(409);
    expect(beyond.body.errors[0].code).toBe('nothing_recorded');
  },

  async 'twelve keys go by in one connection: each begins a period and a key line, and every picture and sound comes out as it went in'() {
    const id = newStream('rotating');
    const source = await encoded('rotating.flv', '-t', '15');
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
    const encoder = await streamed(id, source, { more: { keyFile: 'rotating', latency: 'low' } });
    let seconds = 1.5;
    // The next key frame, at which a key begins.
    const next = () => {
      seconds += 1;
      encoder.upTo(seconds);
    };
    for (let index = 1; index < 12; index += 1) {
      // Of a key file that is cut off, nothing is taken: the last good key stays.
      if (index === 6) {
        packager.provision('rotating', 'cenc-keyid: ');
        next();
        await until(() =>
          packager.log().includes(`"new key file not used; the stream keeps its key","stream":"${id}"`),
        );
      }
      provision(index);
      next();
      await untilParts(id, index + 1);
    }
    const { dash, hls } = await encoder.end();
    const all = Array.from({ length: 12 }, (_, index) => index);
    expect(dash.keyIds).toEqual(all.map((index) => formatUuid(keysOf(index).cenc.id)));
    expect(hls.keyIds).toEqual(all.map((index) => formatUuid(keysOf(index).cbcs.id)));

    // That of a second pull would be one.
    const { text: playlist } = await packager.api.get(`/media/${id}/hls/video.m3u8`);
    expect(playlist.match(/#EXT-X-KEY:/g)).toHaveLength(12);
    expect(playlist).not.toContain('DISCONTINUITY');
    const { text: manifest } = await packager.api.get(`/media/${id}/dash/manifest.mpd`);
    expect(manifest.match(/<Period /g)).toHaveLength(12);
    for (const kind of ['video', 'audio'] as const) {
      const wanted = await hashesOf(source, kind);
      for (const system of ['dash', 'hls'] as const) {
        const segments = await segmentsOf(id, system, kind);
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
        const shown = await decryptedFiles(files, id, system, kind);
        expect([system, kind, shown]).toEqual([system, kind, wanted]);
      }
    }
  },

  async 'a stream of one picture a second is packaged from its first one on'() {
    const id = newStream('slides');
    // Its first group of pictures is long: a new player gets it whole.
    const slides = await encoded('slides.flv', '-r', '1', '-g', '8', '-bf', '0', '-t', '12');
    const { child, over } = stream(id, newChannel(), ['-readrate', '1', '-i', slides], []);
    await untilParts(id, 1);
    expect(child.exitCode).toBeNull();
    await over;
    await endOf(id);
    expect(await decrypted(id, 'hls', 'video')).toEqual(await hashesOf(slides, 'video'));
  },

  async 'a change of resolution, and of time, within a connection begins a part each, of whole pictures'() {
    const id = newStream('changes');
    const small = await encoded('small.flv', '-s', '160x90', '-t', '3');
    const large = await encoded('large.flv', '-t', '6');
    const [list, both] = ['list', 'both.flv'].map((name) => join(packager.home, name)) as [string, string];
    writeFileSync(list, `ffconcat version 1.0\nfile ${small}\nfile ${large}\n`);
    await ffmpeg('-f', 'concat', '-safe', '0', '-i', list, '-c', 'copy', both);
    // Six seconds on, two days are skipped.
    const jump = 'setts=pts=PTS+if(gt(DTS\\,6000)\\,2*86400000):dts=DTS+if(gt(DTS\\,6000)\\,2*86400000)';
    const encoder = await streamed(id, both, { copy: ['-bsf:v', jump, '-bsf:a', jump] });
    // A second behind each change: the group of pictures with which the next part begins.
    encoder.upTo(4);
    await untilParts(id, 2);
    encoder.upTo(7);
    await untilParts(id, 3);
    await encoder.end();
    const changed = `"the encoder changed its stream; the packager pulls it again","stream":"${id}"`;
    expect(packager.log().split(changed).length).toBeGreaterThan(2);
    const [before, after] = [await hashesOf(small, 'video'), await hashesOf(large, 'video')];
    for (const system of ['dash', 'hls'] as const) {
      const shown = await decrypted(id, system, 'video');
      const second = shown.filter((hash) => after.includes(hash));
      expect(shown.filter((hash) => before.includes(hash) || after.includes(hash))).toEqual(shown);
      expect(new Set(second).size).toBeGreaterThan(after.length / 2);
    }
  },

  async 'a simulcast target gets the stream as it is, from when it can be reached, and a player ends with the encoder without a complaint'() {
    const id = newStream('simulcast');
    const [channel, target] = [newChannel(), newChannel()];
    const lost = `rtmp://127.0.0.1:1/live/${target.streamKey}`;
    const source = await encoded('looped.flv');
    const simulcast = { simulcast: [{ url: lost }, { url: address(target) }] };
    const looped = ['-readrate', '1', '-stream_loop', '-1', '-i', source];
    const { child, over } = stream(id, channel, looped, [], simulcast);
    await until(() => emulator.context.broadcast.sessionOf(target.id) !== undefined);
    const copy = join(packager.home, 'copy.flv');
    await ffmpeg('-i', address(target), '-c', 'copy', '-frames:v', '30', copy);
    expect(await hashesOf(source, 'video')).toEqual(
      expect.arrayContaining((await hashesOf(copy, 'video')).slice(0, 28)),
    );
    await packager.until(id, isRunning);
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
    await packager.api.post(`/streams/${id}/end`);
    await until(() => emulator.context.broadcast.sessionOf(target.id) === undefined);
    expect(packager.log()).toContain('"simulcast ended; the packager tries again"');
    expect(packager.log()).not.toContain(target.streamKey);
    expect(packager.log()).not.toContain(channel.streamKey);
  },
});
