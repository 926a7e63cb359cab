import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import fs from 'fs-extra';
import { shakaPackagerOfNpm } from '../../src/platform/packager/shaka-packager';
import { afterAllTests, temporaryFolder } from './after-test';

const run = promisify(execFile);

export const SHAKA_PACKAGER = shakaPackagerOfNpm(process.platform, process.arch, __filename);

/** The media to package: six seconds of picture and sound. */
export const SOURCE = join(__dirname, '../vectors/media/stream.mp4');

export interface Packaging {
  readonly scheme: 'cenc' | 'cbcs' | 'cens' | 'cbc1';
  /** 32 hex digits each. */
  readonly keyId: string;
  readonly key: string;
  readonly iv?: string;
  /** Whole pssh boxes, hex. */
  readonly pssh?: string;
}

export interface PackageOptions {
  /** `SOURCE`, unless it is another. */
  readonly source?: string;
  /** None: clear. */
  readonly packaging?: Packaging | undefined;
  readonly flags?: readonly string[];
  /** Names of init segments, and patterns of media segments; `.ts` makes transport streams. */
  readonly extension?: 'm4s' | 'ts';
  readonly playlists?: 'dash' | 'hls';
  /** One file a track, with an index, in place of segments. */
  readonly single?: boolean;
}

/**
 * Packages the source with shaka-packager: `v` is the picture and `a` the sound, as `v.mp4`, `v1.m4s`; the manifest is
 * `m.mpd`, or `master.m3u8`, `v.m3u8` and `a.m3u8`.
 */
async function packageStream(
  folder: string,
  { source = SOURCE, packaging, flags = [], extension = 'm4s', playlists = 'dash', single }: PackageOptions,
): Promise<string> {
  const streams = (['video', 'audio'] as const).map((kind) => {
    const name = join(folder, kind[0] ?? '');
    const files = single
      ? `output=${name}.mp4`
      : extension === 'ts'
        ? `segment_template=${name}$Number$.ts`
        : `init_segment=${name}.mp4,segment_template=${name}$Number$.m4s`;
    const playlist = playlists === 'hls' ? `,playlist_name=${kind[0]}.m3u8` : '';
    const group = playlists === 'hls' && kind === 'audio' ? ',hls_group_id=sound,hls_name=main' : '';
    return `in=${source},stream=${kind},${files}${playlist}${group}`;
  });
  const flagFile = join(folder, 'flags');
  await fs.writeFile(flagFile, flagsOf(packaging).join('\n'));
  const output =
    playlists === 'dash'
      ? [`--mpd_output=${join(folder, 'm.mpd')}`, ...(single ? [] : ['--generate_static_live_mpd'])]
      : [`--hls_master_playlist_output=${join(folder, 'master.m3u8')}`];
  // Without it, the times of pictures that are shown in another order than they are coded would be negative.
  const ofTs = extension === 'ts' ? ['--transport_stream_timestamp_offset_ms=1000'] : [];
  const args = [
    ...streams,
    ...output,
    '--segment_duration=2',
    ...ofTs,
    `--flagfile=${flagFile}`,
    '--quiet',
    ...flags,
  ];
  await run(SHAKA_PACKAGER, args);
  await fs.remove(flagFile);
  if (playlists === 'hls')
    await Promise.all(['v', 'a'].map((name) => dropIdentity(join(folder, `${name}.m3u8`))));
  return folder;
}

const packaged = new Map<string, Promise<string>>();

/** The folder of a stream that is packaged once for all tests of a file. */
export function packagedOnce(options: PackageOptions): Promise<string> {
  const key = JSON.stringify(options);
  const known =
    packaged.get(key) ?? temporaryFolder(afterAllTests).then((folder) => packageStream(folder, options));
  packaged.set(key, known);
  return known;
}

/** It writes the key of FairPlay as one that is simply fetched, too, which no player can do. */
async function dropIdentity(path: string): Promise<void> {
  const text = await fs.readFile(path, 'utf8');
  await fs.writeFile(path, text.replaceAll(/^#EXT-X-KEY:.*KEYFORMAT="identity".*\n/gm, ''));
}

function flagsOf(packaging: Packaging | undefined): string[] {
  if (!packaging) return [];
  const { scheme, keyId, key, iv, pssh } = packaging;
  return [
    '--enable_raw_key_encryption',
    `--keys=label=:key_id=${keyId}:key=${key}`,
    `--protection_scheme=${scheme}`,
    '--clear_lead=0',
    ...(iv ? [`--iv=${iv}`] : []),
    ...(pssh ? [`--pssh=${pssh}`] : []),
    '',
  ];
}
