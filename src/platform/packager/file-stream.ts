import { execFile } from 'node:child_process';
import { mkdir, open, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PackagingKeys } from '../../drm/packaging';
import { joinManifests, secondsOfManifest } from './playlists/dash-manifest';
import { joinMediaPlaylists, masterPlaylist, secondsOfPlaylist } from './playlists/hls-playlists';
import {
  ENTRY_FILES,
  type InputStream,
  readStreamInfo,
  type ShakaJob,
  type ShakaStream,
  startShakaPackager,
  withinMemory,
} from './shaka-packager';

/** Why a file can't be packaged, in whole sentences that say what to do. */
interface FileProblem {
  readonly code:
    | 'media_unreadable'
    | 'media_unsupported'
    | 'media_encrypted'
    | 'media_incomplete'
    | 'packaging_failed'
    | 'cancelled';
  readonly description: string;
}

export interface FileStream {
  /** Path of shaka-packager's binary. */
  readonly binary: string;
  /** All variables of its processes; see `startShakaPackager`. */
  readonly env: Readonly<Record<string, string>>;
  /** The whole media file; stays as it is. */
  readonly source: string;
  /** Must not exist yet. `dash` and `hls` are made in it, with what they name, and nothing is left of it if that fails. */
  readonly folder: string;
  /** What the key file has; clear when told `none`, and in no other case. */
  readonly keys: PackagingKeys | 'none';
  readonly now: Date;
  readonly signal?: AbortSignal;
}

type PackagedFile =
  | { readonly ok: true; readonly seconds: number; readonly outputs: readonly ShakaJob['output'][] }
  | { readonly ok: false; readonly problem: FileProblem };

const CODECS = { video: /^avc[13]\./, audio: /^mp4a\.40\./ };

/**
 * Packages a media file: `<folder>/dash/manifest.mpd` (static, `cenc`) and `<folder>/hls/master.m3u8` (VOD, `cbcs`), each
 * one if there are keys for it. Takes the first video track and all sound tracks.
 */
export async function packageFile(file: FileStream): Promise<PackagedFile> {
  const { folder, signal } = file;
  const read = await readTracks(file);
  if (!read.ok) return read;
  const jobs = jobsOf(file, read.streams);
  try {
    for (const job of jobs) await mkdir(job.folder, { recursive: true });
    const faults = await Promise.all(jobs.map((job) => run(file, job)));
    const fault = faults.find((each) => each !== undefined);
    if (fault !== undefined || signal?.aborted) {
      await rm(folder, { recursive: true, force: true });
      if (fault === undefined || signal?.aborted) return cancelled();
      const said = fault.replace(/\.$/, '');
      return refused('packaging_failed', `shaka-packager can't package the file: ${said}.`);
    }
    let seconds = 0;
    for (const job of jobs) seconds = Math.max(seconds, await finish(job, file.now));
    return { ok: true, seconds, outputs: jobs.map(({ output }) => output) };
  } catch (thrown) {
    await rm(folder, { recursive: true, force: true });
    throw thrown;
  }
}

type Tracks =
  | { readonly ok: true; readonly streams: readonly ShakaStream[] }
  | { readonly ok: false; readonly problem: FileProblem };

async function readTracks(file: FileStream): Promise<Tracks> {
  const { source, signal } = file;
  if (source.includes(',')) throw new Error('shaka-packager takes no path with a comma');
  if (signal?.aborted) return cancelled();
  const text = await dumpStreams(file);
  if (signal?.aborted) return cancelled();
  // It takes what there is of a file that was cut off, and says nothing.
  const broken = await faultOfBoxes(source, signal);
  if (broken) return { ok: false, problem: broken };
  const found = readStreamInfo(text);
  if (found.length === 0) {
    return refused(
      'media_unreadable',
      'This is no media file that can be read. Upload an MP4 or MOV with H.264 and AAC.',
    );
  }
  if (found.some(({ encrypted }) => encrypted)) {
    return refused('media_encrypted', 'The file is encrypted already. Upload the clear one.');
  }
  const tracks = found.filter(({ kind }) => kind !== 'text');
  const foreign = tracks.find(({ kind, codecs }) => kind !== 'text' && !CODECS[kind].test(codecs));
  if (foreign) {
    const wanted = foreign.kind === 'video' ? 'H.264' : 'AAC';
    const name = /^\w+\./.test(foreign.codecs) ? foreign.codecs : 'a codec that shaka-packager does not know';
    return refused('media_unsupported', `The file has ${foreign.kind} in ${name}. Encode it as ${wanted}.`);
  }
  if (tracks.length === 0) return refused('media_unsupported', 'The file has neither video nor sound.');
  const video = tracks.find(({ kind }) => kind === 'video');
  const sounds = tracks.filter(({ kind }) => kind === 'audio');
  return {
    ok: true,
    streams: [
      ...(video ? [streamOf(source, video, 'video', undefined)] : []),
      ...sounds.map((sound, index) =>
        streamOf(
          source,
          sound,
          index === 0 ? 'audio' : `audio-${index + 1}`,
          soundTitle(sound, index, sounds.length),
        ),
      ),
    ],
  };
}

const BOX_HEADER_BYTES = 16;
const SIZE_TO_THE_END = 0;
const SIZE_IS_LARGE = 1;
const BOX = /^[\w ©-]{4}$/;
/** Words of a text could be any box. */
const FIRST_BOX = /^(?:ftyp|styp|moov|moof|mdat|sidx|pdin|free|skip|wide|pnot|uuid)$/;
/** Two days in fragments of half a second have fewer. */
const MAX_BOXES = 1_000_000;

/** Whether an MP4 file (ISO/IEC 14496-12) is as long as its boxes say; undefined for a file of another kind, too. */
async function faultOfBoxes(
  source: string,
  signal: AbortSignal | undefined,
): Promise<FileProblem | undefined> {
  const file = await open(source);
  try {
    const { size: end } = await file.stat();
    const header = Buffer.alloc(BOX_HEADER_BYTES);
    let at = 0;
    for (let count = 0; at < end; count += 1) {
      if (signal?.aborted) return cancelled().problem;
      const { bytesRead } = await file.read(header, 0, BOX_HEADER_BYTES, at);
      const type = header.toString('latin1', 4, 8);
      const isBox = bytesRead >= 8 && (at === 0 ? FIRST_BOX : BOX).test(type);
      if (!isBox) return at > 0 && bytesRead < 8 ? CUT_OFF : undefined;
      const size = header.readUInt32BE(0);
      if (size === SIZE_TO_THE_END) return undefined;
      const isLarge = size === SIZE_IS_LARGE;
      if (isLarge && bytesRead < BOX_HEADER_BYTES) return CUT_OFF;
      const length = isLarge ? Number(header.readBigUInt64BE(8)) : size;
      // One without a length would be read again and again.
      if (length < (isLarge ? BOX_HEADER_BYTES : 8) || count === MAX_BOXES) return BROKEN_BOXES;
      at += length;
    }
    return at > end ? CUT_OFF : undefined;
  } finally {
    await file.close();
  }
}

const CUT_OFF: FileProblem = {
  code: 'media_incomplete',
  description: 'The file ends before its last box does. Upload the whole file.',
};
const BROKEN_BOXES: FileProblem = {
  code: 'media_unreadable',
  description:
    'The file has a box that is shorter than its own header, or over a million boxes. Write the file anew.',
};

function streamOf(
  input: string,
  { number, kind }: InputStream,
  name: string,
  title: string | undefined,
): ShakaStream {
  return {
    input,
    select: number,
    name,
    kind: kind === 'video' ? 'video' : 'audio',
    ...(title === undefined ? {} : { title }),
  };
}

function soundTitle({ language }: InputStream, index: number, count: number): string {
  // Names must differ within a group.
  return count === 1 ? 'Audio' : `Audio ${index + 1}${language ? ` (${language})` : ''}`;
}

function jobsOf({ folder, keys }: FileStream, streams: readonly ShakaStream[]): ShakaJob[] {
  const jobs: ShakaJob[] = [];
  const dash = keys === 'none' ? keys : keys.dash;
  const hls = keys === 'none' ? keys : keys.hls;
  if (dash) jobs.push({ output: 'dash', keys: dash, streams, folder: join(folder, 'dash'), live: false });
  if (hls) jobs.push({ output: 'hls', keys: hls, streams, folder: join(folder, 'hls'), live: false });
  return jobs;
}

const MAX_DUMP_BYTES = 1024 * 1024;

function dumpStreams({ binary, env, source, signal }: FileStream): Promise<string> {
  return new Promise((resolve) => {
    const options = { env, maxBuffer: MAX_DUMP_BYTES, ...(signal ? { signal } : {}) };
    // What it says of a file that it can't read names paths and bytes; that it lists no stream says enough.
    const limited = withinMemory(binary, ['--quiet', '--dump_stream_info', `in=${source}`]);
    execFile(...limited, options, (_, stdout) => resolve(stdout));
  });
}

/** Answers what went wrong. */
async function run({ binary, env, signal }: FileStream, job: ShakaJob): Promise<string | undefined> {
  const child = await startShakaPackager(binary, job, env);
  const kill = () => child.kill();
  signal?.addEventListener('abort', kill, { once: true });
  if (signal?.aborted) kill();
  const { ok, lines, code, signal: killedBy } = await child.ended;
  signal?.removeEventListener('abort', kill);
  if (ok) return undefined;
  return lines.at(-1) ?? `it ended with ${killedBy ?? `exit code ${code}`}`;
}

/** Brings the playlists of shaka-packager into the form of live ones: no `identity` keys, default renditions. Answers its seconds. */
async function finish({ output, folder, streams }: ShakaJob, now: Date): Promise<number> {
  const entry = join(folder, ENTRY_FILES[output]);
  const written = await readFile(entry, 'utf8');
  const whole = { ended: true, windowSeconds: undefined };
  if (output === 'dash') {
    await writeFile(entry, joinManifests([{ folder: '', text: written }], { ...whole, now }));
    return secondsOfManifest(written);
  }
  let seconds = 0;
  for (const { name } of streams) {
    const path = join(folder, `${name}.m3u8`);
    const text = await readFile(path, 'utf8');
    await writeFile(path, joinMediaPlaylists([{ folder: '', text }], whole));
    seconds = Math.max(seconds, secondsOfPlaylist(text));
  }
  await writeFile(entry, masterPlaylist([written], { windowSeconds: undefined }));
  return seconds;
}

function refused(code: FileProblem['code'], description: string): { ok: false; problem: FileProblem } {
  return { ok: false, problem: { code, description } };
}

function cancelled(): { ok: false; problem: FileProblem } {
  return refused('cancelled', 'It was cancelled before the file was packaged.');
}
