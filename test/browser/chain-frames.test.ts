import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readPackagingKeys } from '../../src/drm/packaging';
import { shakaPackagerOfNpm } from '../../src/platform/packager/shaka-packager';
import { chainForAll } from '../support/real-chain';
import { pictureArguments } from '../support/real-encoder';

jest.setTimeout(120_000);

const chain = chainForAll();

const ffmpeg = (...args: string[]): Buffer =>
  execFileSync('ffmpeg', ['-hide_banner', '-loglevel', 'error', '-y', ...args]);

/** The hash of each picture of a file as it is shown, or of each piece of sound as it is encoded. */
function hashesOf(file: string, kind: 'video' | 'audio'): string[] {
  const map = kind === 'video' ? ['-map', '0:v:0'] : ['-map', '0:a:0', '-c', 'copy'];
  return ffmpeg('-i', file, ...map, '-f', 'framemd5', '-')
    .toString()
    .split('\n')
    .filter((line) => /^\d/.test(line))
    .map((line) => line.split(',').at(-1)?.trim() ?? '');
}

interface SystemKey {
  readonly id: Buffer;
  readonly key: Buffer;
}

/** The keys of a key file: of DASH, and of HLS. */
function keysOf(streamId: string): { readonly dash: SystemKey; readonly hls: SystemKey } {
  const read = readPackagingKeys(readFileSync(chain.keyFilePath(streamId), 'utf8'));
  if (!read.ok || !read.keys.dash || !read.keys.hls) throw new Error('The key file has not both keys.');
  const { dash, hls } = read.keys;
  return { dash: { id: dash.keyId, key: dash.contentKey }, hls: { id: hls.keyId, key: hls.key } };
}

/** The segments of a rendition as viewers of the replay get them, each behind its initialization, in their order. */
async function segmentsOf(event: string, system: 'dash' | 'hls', kind: 'video' | 'audio'): Promise<Buffer[]> {
  const place = `${chain.url('emulator')}/manifests/${event}`;
  // Both systems have the same parts and segments, and the playlist is easier to read than the manifest.
  const { text } = await chain.get(`/manifests/${event}/hls/${kind}.m3u8`);
  const segments: Buffer[] = [];
  let initialization = Buffer.alloc(0);
  for (const [, uri = ''] of text.matchAll(/^(?:#EXT-X-MAP:URI="|)([\w-]+\/\w+\.(?:mp4|m4s))/gm)) {
    const bytes = Buffer.from(await (await fetch(`${place}/${system}/${uri}`)).arrayBuffer());
    if (uri.endsWith('.mp4')) initialization = bytes;
    else segments.push(Buffer.concat([initialization, bytes]));
  }
  return segments;
}

/** What all segments of a rendition hold when they are decrypted, each one by itself. */
async function decrypted(
  event: string,
  system: 'dash' | 'hls',
  kind: 'video' | 'audio',
  { id, key }: SystemKey,
) {
  const segments = await segmentsOf(event, system, kind);
  return segments.flatMap((bytes, index) => {
    const path = join(chain.home, `${system}-${kind}-${index}.mp4`);
    writeFileSync(path, bytes);
    execFileSync(shakaPackagerOfNpm(process.platform, process.arch, __filename), [
      `in=${path},stream=${kind},output=${path}.clear.mp4`,
      '--enable_raw_key_decryption',
      `--keys=label=:key_id=${id.toString('hex')}:key=${key.toString('hex')}`,
      '--quiet',
    ]);
    return hashesOf(`${path}.clear.mp4`, kind);
  });
}

test('every picture and sound of an encoder, from where the packager pulls it, is in the replay, DASH and HLS, decrypted with the key file', async () => {
  const source = join(chain.home, 'source.flv');
  ffmpeg(...pictureArguments({ seconds: 8 }), source);
  const channel = await chain.channel({ title: 'Frames' });
  await chain.provision(channel.id);
  const encoder = chain.ffmpeg(['-re', '-i', source, '-c', 'copy'], channel);
  const event = await chain.event(channel);
  await chain.untilPackaged(event, ({ state }) => state === 'running');
  expect(await encoder.exit).toBe(0);
  await chain.advance(61);
  await chain.untilPackaged(event, ({ state }) => state === 'ended');
  const keys = keysOf(channel.id);
  for (const kind of ['video', 'audio'] as const) {
    const wanted = hashesOf(source, kind);
    for (const system of ['dash', 'hls'] as const) {
      const found = await decrypted(event, system, kind, keys[system]);
      // Who pulls a live stream begins at the newest key frame; from there on, nothing may be missing.
      expect(found).toEqual(wanted.slice(wanted.length - found.length));
      expect(found.length / wanted.length).toBeGreaterThan(0.7);
    }
  }
});
