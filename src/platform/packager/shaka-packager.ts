import { closeSync, existsSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { formatUuid } from '../../drm/bytes';
import { shakaFlags } from '../../drm/export/forms';
import { boxesOf, type StreamKey } from '../../drm/packaging';
import { ConfigError } from '../../http/config';
import { secondsOfManifest } from './playlists/dash-manifest';
import {
  type Latency,
  mediaPlaylistsOf,
  SEGMENT_SECONDS,
  secondsOfPlaylist,
} from './playlists/hls-playlists';
import { type RunningProgram, runProgram } from './running-program';

/** The outputs, each packaged by its own process with its own key. */
export const SYSTEMS = ['dash', 'hls'] as const;
export type System = (typeof SYSTEMS)[number];

/** The keys of a stream: a system without keys is left out; `none` leaves it clear. */
export type StreamKeys = { readonly [system in System]: StreamKey | 'none' | undefined };

export const CLEAR: StreamKeys = { dash: 'none', hls: 'none' };

export function systemsOf(keys: StreamKeys): readonly System[] {
  return SYSTEMS.filter((system) => keys[system] !== undefined);
}

/** The key ids of each system, as UUIDs; none where it is clear, null without the system. */
export function keyIdsOf(keys: StreamKeys): { readonly [system in System]: string[] | null } {
  const of = (system: System) => {
    const own = keys[system];
    return own === undefined ? null : own === 'none' ? [] : [formatUuid(own.keyId)];
  };
  return { dash: of('dash'), hls: of('hls') };
}

export interface Programs {
  readonly ffmpeg: string;
  readonly shakaPackager: string;
  readonly env: Readonly<Record<string, string>>;
  /** Where they run: on the file system of the media, and emptied when a packager starts. */
  readonly folder: string;
}

/** An elementary stream of the input, which becomes a folder's `<name>_init.mp4` and `<name>_1.m4s` onwards. */
export interface ShakaStream {
  readonly input: string;
  readonly select: 'video' | 'audio' | number;
  /** Names the files and the media playlist (`<name>.m3u8`), so that no two streams of a job may have the same. */
  readonly name: string;
  /** HLS groups renditions of sound, and shows `title`; DASH shows it for one of several. */
  readonly kind: 'video' | 'audio';
  readonly title: string;
}

/** The output of one shaka-packager process: `manifest.mpd` or `master.m3u8` and the files it names, in one folder. */
export interface ShakaJob {
  readonly system: System;
  readonly keys: StreamKeys;
  readonly streams: readonly ShakaStream[];
  /** Exists, and holds nothing of another job. */
  readonly folder: string;
  /** Whether its segments are played while the input goes on. */
  readonly live: boolean;
  readonly latency?: Latency;
  readonly signal?: AbortSignal;
}

export const ENTRY_FILES = { dash: 'manifest.mpd', hls: 'master.m3u8' } as const;

/**
 * Every segment stays listed and on disk while the input goes on: the replay is made of them, and the window
 * is cut when parts are joined. For HLS, the type EVENT does this; LIVE would list the window of DASH alone.
 */
const KEEP_ALL_SEGMENTS: { readonly [system in System]: readonly string[] } = {
  // In seconds; more than three years.
  dash: ['--time_shift_buffer_depth=100000000', '--preserved_segments_outside_live_window=0'],
  hls: ['--hls_playlist_type=EVENT'],
};

/** The default, 32 MiB for every open file, would be seven tenths of the memory of a process. */
const CACHE_BYTES = 1024 * 1024;
/** Bytes to read before it starts. The default, 64 KiB, is many seconds of an audio-only stream. */
const LIVE_BLOCK_BYTES = 10 * 188;

function flagsOf({ system, folder, live, latency = 'default' }: ShakaJob): string[] {
  const entry = join(folder, ENTRY_FILES[system]);
  const replay = system === 'dash' ? ['--generate_static_live_mpd'] : ['--hls_playlist_type=VOD'];
  return [
    '--quiet',
    `--io_cache_size=${CACHE_BYTES}`,
    `--segment_duration=${SEGMENT_SECONDS[latency]}`,
    system === 'dash' ? `--mpd_output=${entry}` : `--hls_master_playlist_output=${entry}`,
    ...(live ? [...KEEP_ALL_SEGMENTS[system], `--io_block_size=${LIVE_BLOCK_BYTES}`] : replay),
  ];
}

/** The flags that encrypt and signal: secrets, so that they go through a file that has no name any more. */
function protectionFlagsOf({ system, keys }: ShakaJob): string[] {
  const own = keys[system];
  if (own === undefined) throw new TypeError(`There are no keys for ${system}`);
  return own === 'none' ? [] : shakaFlags(own, boxesOf(own, true));
}

/** The descriptors of a job's streams. A comma would begin another field. */
function descriptorsOf({ system, folder, streams }: ShakaJob): string[] {
  const hasChoice = streams.filter(({ kind }) => kind === 'audio').length > 1;
  return streams.map(({ input, select, name, kind, title }) => {
    const fields = [
      ['in', input],
      ['stream', String(select)],
      ['init_segment', join(folder, `${name}_init.mp4`)],
      ['segment_template', join(folder, `${name}_$Number$.m4s`)],
      ...(system === 'hls' ? [['playlist_name', `${name}.m3u8`]] : []),
      ...(system === 'hls' && kind === 'audio'
        ? [['hls_group_id', 'audio'] as const, ['hls_name', title]]
        : []),
      // Those of one language would be in one AdaptationSet: players take them for bit rates of the same sound.
      ...(system === 'dash' && kind === 'audio' && hasChoice ? [['dash_label', title]] : []),
    ];
    const broken = fields.find(([, value]) => value?.includes(','));
    if (broken) throw new Error(`shaka-packager takes no ${broken[0]} with a comma`);
    return fields.map((pair) => pair.join('=')).join(',');
  });
}

/** In KiB. A file of one day needs a tenth of it. */
const FILE_MEMORY = 4 * 1024 * 1024;
/** The output limit of a program, in units of 512 bytes: twice its input, and at least this. */
const LEAST_OUTPUT = 64 * 1024 * 2;

/**
 * The command that runs a program on an uploaded file with a memory limit: a table that claims four thousand
 * million samples would take all memory of the machine.
 * @param size bytes of the input, if the program writes one file; without it, the output is not limited
 */
export function withinMemory(
  binary: string,
  args: readonly string[],
  size?: number,
): [path: string, args: string[]] {
  const output = size === undefined ? '' : `ulimit -f ${Math.max(Math.ceil(size / 256), LEAST_OUTPUT)}; `;
  const script = `${output}ulimit -v ${FILE_MEMORY} 2>/dev/null; exec "$0" "$@"`;
  return ['/bin/sh', ['-c', script, binary, ...args]];
}

/**
 * The keys are in no argument, and on the disk only for the moment in which a file of flags (mode 0600) is
 * created, opened and unlinked. The next start of the packager removes the file that a killed one left.
 * @throws the system's error if the file of flags can't be written
 */
export function startShakaPackager({ shakaPackager, env, folder }: Programs, job: ShakaJob): RunningProgram {
  const secrets = protectionFlagsOf(job);
  const descriptor = secrets.length > 0 ? openUnlinked(folder, `${secrets.join('\n')}\n`) : undefined;
  try {
    // The path of the inherited descriptor 3.
    const flags = descriptor === undefined ? [] : ['--flagfile=/dev/fd/3'];
    const args = [...flags, ...flagsOf(job), ...descriptorsOf(job)];
    const [path, all] = job.live ? [shakaPackager, args] : withinMemory(shakaPackager, args);
    const inputs = job.streams.map(({ input }) => input);
    const paths = [job.folder, ...inputs, ...inputs.map((input) => dirname(input))];
    const program = runProgram(path, all, { cwd: folder, env, descriptor, signal: job.signal, paths });
    program.stdin.end();
    program.stdout.resume();
    return program;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

let flagFiles = 0;

/** In no folder of its own: it could not be removed where a file keeps a name until it is closed, as on NFS and FUSE. */
function openUnlinked(folder: string, text: string): number {
  flagFiles += 1;
  const path = join(folder, `.flags-${flagFiles}`);
  try {
    writeFileSync(path, text, { mode: 0o600, flag: 'wx' });
    return openSync(path, 'r');
  } finally {
    rmSync(path, { force: true });
  }
}

/** The length of each track that shaka-packager has written to a folder, 0 for one without a segment; none before it has. */
export function writtenSeconds(folder: string, system: System): number[] {
  const textOf = (file: string) =>
    existsSync(join(folder, file)) ? readFileSync(join(folder, file), 'utf8') : '';
  const entry = textOf(ENTRY_FILES[system]);
  if (system === 'dash') return secondsOfManifest(entry);
  return mediaPlaylistsOf(entry).map((file) => secondsOfPlaylist(textOf(file)));
}

/** The npm package's program for this machine. @throws ConfigError if there is none. */
export function shakaPackagerOfNpm(platform: NodeJS.Platform, arch: string, beside: string): string {
  const system = platform === 'darwin' ? 'osx' : platform;
  try {
    return createRequire(beside).resolve(`shaka-packager/bin/packager-${system}-${arch}`);
  } catch {
    const fault =
      'PACKAGER_SHAKAPACKAGER: is not set, and the npm package shaka-packager is not installed for this machine; install it, or set the path of its program';
    throw new ConfigError([fault]);
  }
}
