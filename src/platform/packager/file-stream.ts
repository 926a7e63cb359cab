import { execFile } from 'node:child_process';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import fs from 'fs-extra';
import { type Checked, refused } from '../../drm/bytes';
import type { Problem } from '../../http/faults';
import { endText } from './running-program';
import {
  type Programs,
  type ShakaJob,
  type ShakaStream,
  type StreamKeys,
  type System,
  startShakaPackager,
  systemsOf,
  withinMemory,
  writtenSeconds,
} from './shaka-packager';

export interface FileStream {
  readonly programs: Programs;
  readonly source: string;
  /** Must not exist yet. Gets `dash` and `hls` with their files, and is removed if packaging fails. */
  readonly folder: string;
  readonly keys: StreamKeys;
  readonly signal: AbortSignal;
}

type PackagedFile =
  | { readonly ok: true; readonly seconds: number; readonly systems: readonly System[] }
  | ReturnType<typeof refused>;

const CODECS = { video: /^avc[13]\./, audio: /^mp4a\.40\./ };

/**
 * Packages the first video track and all sound of a file, for each system with keys: `dash/manifest.mpd`
 * (static, `cenc`) and `hls/master.m3u8` (VOD, `cbcs`). @throws when aborted.
 */
export async function packageFile(file: FileStream): Promise<PackagedFile> {
  const { folder, keys, signal } = file;
  const read = await readTracks(file);
  if (!read.ok) return read;
  const job = { keys, streams: read.value, live: false, signal };
  const jobs = systemsOf(keys).map((system): ShakaJob => ({ ...job, system, folder: join(folder, system) }));
  try {
    for (const each of jobs) await fs.ensureDir(each.folder);
    const faults = await Promise.all(jobs.map((each) => run(file, each)));
    signal.throwIfAborted();
    const fault = faults.find((each) => each !== undefined);
    if (fault) {
      await fs.remove(folder);
      return { ok: false, problem: fault };
    }
    const seconds = jobs.flatMap((each) => writtenSeconds(each.folder, each.system));
    return { ok: true, seconds: Math.max(0, ...seconds), systems: jobs.map(({ system }) => system) };
  } catch (thrown) {
    await fs.remove(folder);
    throw thrown;
  }
}

async function readTracks(file: FileStream): Promise<Checked<readonly ShakaStream[]>> {
  const { source, signal } = file;
  const text = await dumpStreams(file);
  signal.throwIfAborted();
  // shaka-packager packages a truncated file without an error.
  const broken = await faultOfBoxes(source);
  if (broken) return { ok: false, problem: broken };
  const found = readStreamInfo(text);
  if (found.length === 0) {
    return refused(
      'media_unreadable',
      'This is no media file that can be read, or a MOV with sound. Upload an MP4 with H.264 and AAC.',
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
  const ofSounds = sounds.map(({ number, language }, index): ShakaStream => {
    const name = index === 0 ? 'audio' : `audio-${index + 1}`;
    // Titles must differ within a group.
    const title = sounds.length === 1 ? 'Audio' : `Audio ${index + 1}${language ? ` (${language})` : ''}`;
    return { input: source, select: number, name, kind: 'audio', title };
  });
  const ofVideo = { input: source, name: 'video', kind: 'video', title: 'Video' } as const;
  return { ok: true, value: [...(video ? [{ ...ofVideo, select: video.number }] : []), ...ofSounds] };
}

const BOX_HEADER_BYTES = 16;
const SIZE_TO_THE_END = 0;
const SIZE_IS_LARGE = 1;
const BOX = /^[\w ©-]{4}$/;
/** Words of a text could be any box. */
const FIRST_BOX = /^(?:ftyp|styp|moov|moof|mdat|sidx|pdin|free|skip|wide|pnot|uuid)$/;
/** More boxes than two days in fragments of half a second have. */
const MAX_BOXES = 1_000_000;

/** Whether an MP4 file (ISO/IEC 14496-12) is as long as its boxes say; undefined for a file of another kind, too. */
async function faultOfBoxes(source: string): Promise<Problem | undefined> {
  const file = await open(source);
  try {
    const { size: end } = await file.stat();
    const header = Buffer.alloc(BOX_HEADER_BYTES);
    let at = 0;
    for (let count = 0; at < end; count += 1) {
      const { bytesRead } = await file.read(header, 0, BOX_HEADER_BYTES, at);
      const type = header.toString('latin1', 4, 8);
      const isBox = bytesRead >= 8 && (at === 0 ? FIRST_BOX : BOX).test(type);
      if (!isBox) return at > 0 && bytesRead < 8 ? CUT_OFF : undefined;
      const size = header.readUInt32BE(0);
      if (size === SIZE_TO_THE_END) return undefined;
      const isLarge = size === SIZE_IS_LARGE;
      if (isLarge && bytesRead < BOX_HEADER_BYTES) return CUT_OFF;
      const length = isLarge ? Number(header.readBigUInt64BE(8)) : size;
      // A box without a length would be read for ever.
      if (length < (isLarge ? BOX_HEADER_BYTES : 8) || count === MAX_BOXES) return BROKEN_BOXES;
      at += length;
    }
    return at > end ? CUT_OFF : undefined;
  } finally {
    await file.close();
  }
}

const CUT_OFF: Problem = {
  code: 'media_incomplete',
  description: 'The file ends before its last box does. Upload the whole file.',
};
const BROKEN_BOXES: Problem = {
  code: 'media_unreadable',
  description:
    'The file has a box that is shorter than its own header, or over a million boxes. Write the file again.',
};

const MAX_DUMP_BYTES = 1024 * 1024;

function dumpStreams({ programs: { shakaPackager, env }, source, signal }: FileStream): Promise<string> {
  return new Promise((resolve) => {
    // Its errors name paths and bytes. An empty list of streams is enough to report an unreadable file.
    const limited = withinMemory(shakaPackager, ['--quiet', '--dump_stream_info', `in=${source}`]);
    const options = { env, maxBuffer: MAX_DUMP_BYTES, signal };
    execFile(...limited, options, (_, stdout) => resolve(stdout));
  });
}

function readStreamInfo(text: string) {
  return text.split(/^(?=Stream \[)/m).flatMap((block) => {
    const head = /^Stream \[(\d+)\] type: (Video|Audio|Text)/.exec(block);
    if (!head) return [];
    const field = (name: string) => new RegExp(`^ ${name}: (.*)$`, 'm').exec(block)?.[1]?.trim();
    const language = field('language');
    return {
      number: Number(head[1]),
      kind: head[2]?.toLowerCase() as 'video' | 'audio' | 'text',
      /** RFC 6381, such as `avc1.64001f`. */
      codecs: field('codec_string') ?? '',
      language: language === 'und' ? undefined : language,
      encrypted: field('is_encrypted') === 'true',
    };
  });
}

async function run({ programs }: FileStream, job: ShakaJob): Promise<Problem | undefined> {
  const end = await startShakaPackager(programs, job).ended;
  if (end.code === 0) return undefined;
  const description = `shaka-packager can't package the file: ${endText(end)}.`;
  return { code: 'packaging_failed', description };
}
