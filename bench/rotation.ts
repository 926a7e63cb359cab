import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { SYSTEMS, type System, shakaPackagerOfNpm } from '../src/platform/packager/shaka-packager';
import { launchChromium } from '../test/support/chromium';
import { PACKAGER_API_KEY, RealChain } from '../test/support/real-chain';
import { decoded, licensedKeys } from '../test/support/real-player';
import type { Figure, Plan } from './figure';

const run = promisify(execFile);
const EVERY_SECONDS = 10;
const STALL_MS = 250;
/** Before the first change and behind the last one. */
const SPARE_SECONDS = 60;
/** A player keeps three segments behind the live edge, and plays without a pause once the stream has them. */
const START_SECONDS = 12;
const PICTURE = ['-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=15'];
const TONE = ['-f', 'lavfi', '-i', 'sine=frequency=440'];
const CODECS = ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '15', '-pix_fmt', 'yuv420p', '-c:a', 'aac'];

interface Seen {
  readonly pictures: number;
  /** In milliseconds, as is the longest time between two pictures. */
  readonly stalls: readonly number[];
  readonly longest: number;
  /** How often the player ran out of media. */
  readonly waiting: number;
}

/**
 * Counts the times without a new picture in the page's player. A busy page may hear of several pictures at once: the time
 * since the last call is theirs in equal parts. As text: it is compiled without the DOM's types.
 */
const WATCH = `(() => {
  const video = document.querySelector('video');
  const seen = { pictures: 0, stalls: [], longest: 0, waiting: 0 };
  let before = performance.now();
  let presented = 0;
  const next = (now, { presentedFrames }) => {
    const pictures = presented ? presentedFrames - presented : 1;
    const time = (now - before) / pictures;
    seen.pictures += pictures;
    seen.longest = Math.max(seen.longest, time);
    if (time > ${STALL_MS}) seen.stalls.push(Math.round(time));
    before = now;
    presented = presentedFrames;
    video.requestVideoFrameCallback(next);
  };
  video.requestVideoFrameCallback(next);
  video.addEventListener('waiting', () => { seen.waiting += 1; });
  window.seenPictures = seen;
})()`;

/** A live stream with a new key every ten seconds: what viewers see of it, and whether its pictures come out as they went in. */
export async function rotation({ rotatedKeys }: Plan): Promise<Figure[]> {
  const chain = new RealChain({ rotate: true });
  const onExit = () => chain.killAll();
  process.on('exit', onExit);
  const browser = await launchChromium();
  try {
    await chain.start();
    const source = join(chain.home, 'source.flv');
    const seconds = `${rotatedKeys * EVERY_SECONDS + SPARE_SECONDS}`;
    await run('ffmpeg', ['-loglevel', 'error', ...PICTURE, ...TONE, ...CODECS, '-t', seconds, source]);
    // As an operator sets it who rotates for hours: with DVR, a manifest lists each key period since the start.
    const channel = await chain.channel({ dvr: 'off' });
    await chain.provision(channel.id);
    const encoder = chain.ffmpeg(['-re', '-i', source, '-c', 'copy'], channel);
    const event = await chain.event(channel);
    await chain.untilPackaged(event, ({ state }) => state === 'running');
    await new Promise((settle) => setTimeout(settle, START_SECONDS * 1000));
    const watching = SYSTEMS.map(async (system) => {
      const page = await browser.newPage();
      const licensed = licensedKeys(page);
      const query = `channelId=${channel.id}&format=${system}`;
      await page.goto(`${chain.url('emulator')}/embed/channel.html?${query}`);
      await chain.until('pictures', async () => (await decoded(page)).frames > 30);
      await page.evaluate(WATCH);
      return { system, page, licensed };
    });
    const viewers = await Promise.all(watching);
    await chain.rotate(channel.id, EVERY_SECONDS, rotatedKeys - 1);
    // Viewers are some seconds late.
    await new Promise((settle) => setTimeout(settle, 2 * EVERY_SECONDS * 1000));
    const seen = await Promise.all(viewers.map(({ page }) => page.evaluate<Seen>('window.seenPictures')));
    await Promise.all(viewers.map(({ page }) => page.close()));
    await encoder.stop();
    const packaged = await chain.untilPackaged(event, ({ state }) => state !== 'running');
    const wanted = await hashesOf(source);
    const figures: Figure[] = [];
    for (const [index, { system, licensed }] of viewers.entries()) {
      const keyIds = packaged[system]?.keyIds ?? [];
      const { pictures = 0, stalls = [], longest = Number.NaN, waiting = 0 } = seen[index] ?? {};
      const of = `rotation, ${system.toUpperCase()}:`;
      const told = `${pictures} pictures, ${waiting} times out of media, stalls of ${stalls.join(', ') || 0} ms`;
      const asked = `the viewer asked for ${licensed.size} of them`;
      const same = await sameAs(chain, event, system, keyIds, wanted);
      figures.push(
        { name: `${of} keys of the stream`, ratios: [keyIds.length], atLeast: rotatedKeys, detail: asked },
        { name: `${of} stalls over ${STALL_MS} ms`, ratios: [stalls.length], atMost: 0, detail: told },
        { name: `${of} longest time between two pictures, in ms`, ratios: [longest] },
        { name: `${of} share of the pictures that equal the source`, atLeast: 1, ...same },
      );
    }
    return figures;
  } finally {
    await browser.close();
    await chain.stop();
    process.off('exit', onExit);
  }
}

/** Decrypts all segments of each key. @returns the share of the pictures that equal the source's, each one in its place. */
async function sameAs(
  chain: RealChain,
  event: string,
  system: System,
  keyIds: readonly string[],
  wanted: readonly string[],
): Promise<Pick<Figure, 'ratios' | 'detail'>> {
  const playlist = String(await servedFile(chain, `${event}/hls/video.m3u8`));
  const keys = await keysOf(chain, keyIds);
  const parts: Buffer[][] = [];
  for (const [, uri = ''] of playlist.matchAll(/^(?:#EXT-X-MAP:URI="|)([\w-]+\/\w+\.(?:mp4|m4s))/gm)) {
    const bytes = await servedFile(chain, `${event}/${system}/${uri}`);
    if (uri.endsWith('.mp4')) parts.push([bytes]);
    else parts.at(-1)?.push(bytes);
  }
  const shown: string[] = [];
  for (const [index, [initialization, ...segments]] of parts.entries()) {
    const path = join(chain.home, 'part.mp4');
    const key = keys[index] ?? '';
    // ffmpeg 5.1 decrypts one fragment, and under `cbcs` makes garbage.
    for (const fragments of system === 'dash' ? segments.map((each) => [each]) : [segments]) {
      writeFileSync(path, Buffer.concat([initialization ?? Buffer.alloc(0), ...fragments]));
      const hashes =
        system === 'dash'
          ? hashesOf(path, '-decryption_key', key)
          : hashesOf(await decryptedFile(path, keyIds[index] ?? '', key));
      shown.push(...(await hashes));
    }
  }
  const from = wanted.indexOf(shown[0] ?? '');
  const same = shown.filter((hash, index) => hash === wanted[from + index]).length;
  const detail = `${same} of ${shown.length} with ${parts.length} keys, from picture ${from} of the source on, decrypted by ${system === 'dash' ? 'ffmpeg' : 'shaka-packager'}`;
  return { ratios: [same / shown.length], detail };
}

/** A file that the packager serves. */
async function servedFile(chain: RealChain, path: string): Promise<Buffer> {
  const headers = { 'x-api-key': PACKAGER_API_KEY };
  const answer = await fetch(`${chain.url('packager')}/media/${path}`, { headers });
  if (!answer.ok) throw new Error(`The packager answered ${answer.status} for ${path}`);
  return Buffer.from(await answer.arrayBuffer());
}

/** The keys, in hex, that the platform's license server gives for key ids, which are UUIDs. */
async function keysOf(chain: RealChain, keyIds: readonly string[]): Promise<string[]> {
  const keys: string[] = [];
  // It takes 100 at a time.
  for (let from = 0; from < keyIds.length; from += 100) {
    const some = keyIds.slice(from, from + 100).map((id) => Buffer.from(id.replaceAll('-', ''), 'hex'));
    const body = JSON.stringify({ kids: some.map((keyId) => keyId.toString('base64url')) });
    const answer = await fetch(`${chain.url('emulator')}/keyprovider/clearkey`, { method: 'POST', body });
    const given = (await answer.json()) as { keys: { k: string }[] };
    keys.push(...given.keys.map(({ k }) => Buffer.from(k, 'base64url').toString('hex')));
  }
  return keys;
}

async function decryptedFile(file: string, keyId: string, key: string): Promise<string> {
  const output = `${file}.clear.mp4`;
  const keys = `--keys=label=:key_id=${keyId.replaceAll('-', '')}:key=${key}`;
  const args = [`in=${file},stream=video,output=${output}`, '--enable_raw_key_decryption', keys, '--quiet'];
  await run(shakaPackagerOfNpm(process.platform, process.arch, resolve('package.json')), args);
  return output;
}

/** Of each picture, in the order in which it is shown. */
async function hashesOf(file: string, ...args: readonly string[]): Promise<string[]> {
  const all = ['-loglevel', 'error', ...args, '-i', file, '-map', '0:v:0', '-f', 'framemd5', '-'];
  const { stdout } = await run('ffmpeg', all, { maxBuffer: 64 * 1024 * 1024 });
  return [...stdout.matchAll(/^\d.*, *(\w+)$/gm)].map(([, hash = '']) => hash);
}
