import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { shakaFlags } from '../../drm/export/forms';
import type { DashKeys, HlsKeys } from '../../drm/packaging';
import { SEGMENT_SECONDS } from './playlists/hls-playlists';

/** An elementary stream of the input, which becomes a folder's `<name>_init.mp4` and `<name>_1.m4s` onwards. */
export interface ShakaStream {
  /** A file or a FIFO. */
  readonly input: string;
  /** Which stream of the input: the first one of a kind, or the one of this number. */
  readonly select: 'video' | 'audio' | number;
  /** Names the files and the media playlist (`<name>.m3u8`), so that no two streams of a job may have the same. */
  readonly name: string;
  /** Whether it is listed as a rendition of sound: HLS groups those, and shows `title`. */
  readonly kind: 'video' | 'audio';
  /** RFC 5646; by default what the input says. */
  readonly language?: string;
  readonly title?: string;
}

/** What one process of shaka-packager makes: `manifest.mpd` or `master.m3u8`, and what they name, in one folder. */
export type ShakaJob = {
  readonly streams: readonly ShakaStream[];
  /** Exists, and holds nothing of another job. */
  readonly folder: string;
  /** Whether the input goes on while its segments are played already. */
  readonly live: boolean;
} & (
  | {
      readonly output: 'dash' /** Left clear when told `none`, and in no other case. */;
      readonly keys: DashKeys | 'none';
    }
  | { readonly output: 'hls'; readonly keys: HlsKeys | 'none' }
);

/** The file of each output that names all others, in the folder of a job. */
export const ENTRY_FILES = { dash: 'manifest.mpd', hls: 'master.m3u8' } as const;

/**
 * Keeps every segment listed and on disk for as long as the input goes on: the replay is made of them, and the window is
 * cut when the parts are joined. Of HLS the type EVENT has this effect (LIVE lists the window of DASH alone).
 */
const KEEP_ALL_SEGMENTS: { readonly [output in ShakaJob['output']]: readonly string[] } = {
  // In seconds; more than three years.
  dash: ['--time_shift_buffer_depth=100000000', '--preserved_segments_outside_live_window=0'],
  hls: ['--hls_playlist_type=EVENT'],
};

/** Its 32 MiB for every open file, all of it touched, would be seven tenths of the memory of a process. */
const CACHE_BYTES = 1024 * 1024;
/** It waits until so much has come, 64 KiB by default: of sound alone, that would be many seconds. */
const LIVE_BLOCK_BYTES = 10 * 188;

/** The flags of a job that name no key. */
function flagsOf(job: ShakaJob): string[] {
  const { output, folder, live } = job;
  const entry = join(folder, ENTRY_FILES[output]);
  const outputFlag = output === 'dash' ? `--mpd_output=${entry}` : `--hls_master_playlist_output=${entry}`;
  const replay = output === 'dash' ? ['--generate_static_live_mpd'] : ['--hls_playlist_type=VOD'];
  return [
    '--quiet',
    `--io_cache_size=${CACHE_BYTES}`,
    `--segment_duration=${SEGMENT_SECONDS}`,
    outputFlag,
    ...(live ? [...KEEP_ALL_SEGMENTS[output], `--io_block_size=${LIVE_BLOCK_BYTES}`] : replay),
  ];
}

/** The flags that encrypt and signal: secrets, so that they go through a file that has no name any more. */
function protectionFlagsOf(job: ShakaJob): string[] {
  if (job.keys === 'none') return [];
  if (job.output === 'dash') {
    const { keyId, contentKey: key, boxes } = job.keys;
    return shakaFlags({ scheme: 'cenc', keyId, key, boxes });
  }
  return shakaFlags({ scheme: 'cbcs', ...job.keys });
}

/** The descriptors of a job's streams. A comma would begin another field. */
function descriptorsOf({ output, folder, streams }: ShakaJob): string[] {
  return streams.map(({ input, select, name, kind, language, title }) => {
    const fields: Readonly<Record<string, string | undefined>> = {
      in: input,
      stream: String(select),
      init_segment: join(folder, `${name}_init.mp4`),
      segment_template: join(folder, `${name}_$Number$.m4s`),
      language,
      ...(output === 'hls' ? { playlist_name: `${name}.m3u8` } : {}),
      ...(output === 'hls' && kind === 'audio' ? { hls_group_id: 'audio', hls_name: title ?? name } : {}),
    };
    const given = Object.entries(fields).flatMap(([field, value]) =>
      value === undefined ? [] : [[field, value]],
    );
    const broken = given.find(([, value]) => value?.includes(','));
    if (broken) throw new Error(`shaka-packager can't be told a ${broken[0]} with a comma`);
    return given.map((pair) => pair.join('=')).join(',');
  });
}

/** In KiB. A file of a day takes a tenth. */
const FILE_MEMORY = 4 * 1024 * 1024;

/**
 * What runs a program on a file that somebody sent. A table of it that says it has four thousand million samples would
 * take all memory of the machine; so the process has a limit, and ends at it.
 */
export function withinMemory(binary: string, args: readonly string[]): [path: string, args: string[]] {
  return ['/bin/sh', ['-c', `ulimit -v ${FILE_MEMORY} 2>/dev/null; exec "$0" "$@"`, binary, ...args]];
}

/** How a process of shaka-packager ended. */
interface ShakaEnd {
  /** Whether everything was written. */
  readonly ok: boolean;
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** What it said last, a line an element, without keys, paths and bytes of the media. */
  readonly lines: readonly string[];
}

/** A running process of shaka-packager. */
export interface ShakaProcess {
  readonly pid: number;
  /** Resolves once it has ended, however that came; never rejects. */
  readonly ended: Promise<ShakaEnd>;
  /** Ends it at once. What it was about to write is lost; the end of its input ends it in good order. */
  kill(): void;
}

/**
 * Starts shaka-packager. The keys are in no argument, and on the disk for the moment only in which its file of flags is
 * created (mode 0600), opened and unlinked.
 *
 * @param env all its variables; its playlists are written to `TMPDIR` first, which must be on the file system of the
 * folder. The file of flags is there too: what a killed packager leaves of it goes with the folder at the next start.
 * @throws the system's error if the binary can't be started or the file of flags not be written
 */
export async function startShakaPackager(
  binary: string,
  job: ShakaJob,
  env: Readonly<Record<string, string>>,
): Promise<ShakaProcess> {
  const secrets = protectionFlagsOf(job);
  const hidden = job.keys === 'none' ? [] : hiddenOf(secrets);
  const flagFile =
    secrets.length > 0 ? await openFlagFile(env.TMPDIR ?? dirname(job.folder), secrets) : undefined;
  try {
    const flags = flagFile ? [`--flagfile=${flagFile.path}`] : [];
    const args = [...flags, ...flagsOf(job), ...descriptorsOf(job)];
    return await start(
      ...(job.live ? ([binary, args] as const) : withinMemory(binary, args)),
      flagFile?.handle.fd,
      (line) => cleanLine(line, hidden, job),
      env,
    );
  } finally {
    await flagFile?.handle.close();
  }
}

interface FlagFile {
  readonly handle: Awaited<ReturnType<typeof open>>;
  /** Under which the process that inherits it as descriptor 3 finds it. */
  readonly path: string;
}

async function openFlagFile(parent: string, flags: readonly string[]): Promise<FlagFile> {
  const folder = await mkdtemp(join(parent, '.flags-'));
  try {
    const path = join(folder, 'flags');
    const written = await open(path, 'wx', 0o600);
    await written.writeFile(`${flags.join('\n')}\n`).finally(() => written.close());
    return { handle: await open(path, 'r'), path: '/dev/fd/3' };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const LINES_KEPT = 20;
const LINE_CHARACTERS = 500;

function start(
  binary: string,
  args: readonly string[],
  flagDescriptor: number | undefined,
  clean: (line: string) => string | undefined,
  env: Readonly<Record<string, string>>,
): Promise<ShakaProcess> {
  return new Promise((resolve, reject) => {
    const stdio = ['ignore', 'ignore', 'pipe', flagDescriptor ?? 'ignore'] as const;
    const child: ChildProcess = spawn(binary, args, { env, stdio: [...stdio] });
    const lines: string[] = [];
    let rest = '';
    const take = (line: string) => {
      const cleaned = clean(line);
      if (cleaned === undefined) return;
      lines.push(cleaned);
      if (lines.length > LINES_KEPT) lines.shift();
    };
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      const pieces = (rest + text).split('\n');
      // A line that never ends would be kept whole.
      rest = (pieces.pop() ?? '').slice(0, 64 * 1024);
      pieces.forEach(take);
    });
    const ended = new Promise<ShakaEnd>((end) => {
      child.once('close', (code, signal) => {
        take(rest);
        end({ ok: code === 0, code, signal, lines });
      });
    });
    child.once('error', reject);
    child.once('spawn', () => {
      child.on('error', () => undefined);
      resolve({ pid: child.pid ?? 0, ended, kill: () => void child.kill('SIGKILL') });
    });
  });
}

/** What a message may not repeat: the values of the flags, and the parts of the keys. */
function hiddenOf(flags: readonly string[]): string[] {
  return flags.flatMap((flag) => flag.split(/[=:]/)).filter((value) => /^[0-9a-f]{16,}$/i.test(value));
}

function cleanLine(
  line: string,
  hidden: readonly string[],
  { folder, streams }: ShakaJob,
): string | undefined {
  // A FIFO has no size; it says so at each start.
  if (line.trim() === '' || line.includes('Cannot get file size') || /^[IW]\d{4} /.test(line))
    return undefined;
  // Level, date, time and thread, then the place in its source.
  let cleaned = line.replace(/^[IWEF]\d{4} [\d:.]+ +\d+ [\w.]+:\d+\] /, '');
  for (const secret of hidden) cleaned = cleaned.replaceAll(new RegExp(secret, 'gi'), '…');
  for (const path of [folder, ...streams.flatMap(({ input }) => [input, dirname(input)])]) {
    if (path.length > 1) cleaned = cleaned.replaceAll(path, path.split('/').at(-1) ?? '');
  }
  return cleaned.replaceAll(/[0-9a-f]{32,}/gi, '…').slice(0, LINE_CHARACTERS);
}

/** A stream of an input, as shaka-packager tells it. */
export interface InputStream {
  /** What selects it. */
  readonly number: number;
  readonly kind: 'video' | 'audio' | 'text';
  /** RFC 6381, such as `avc1.64001f`. */
  readonly codecs: string;
  /** Without one if the input names none (`und`). */
  readonly language: string | undefined;
  /** 0 if the input doesn't say. */
  readonly seconds: number;
  readonly encrypted: boolean;
}

/** Reads what shaka-packager prints with `--dump_stream_info`. */
export function readStreamInfo(text: string): InputStream[] {
  return text.split(/^(?=Stream \[)/m).flatMap((block) => {
    const head = /^Stream \[(\d+)\] type: (Video|Audio|Text)/.exec(block);
    if (!head) return [];
    const field = (name: string) => new RegExp(`^ ${name}: (.*)$`, 'm').exec(block)?.[1]?.trim();
    const language = field('language');
    const seconds = /\(([\d.]+) seconds\)/.exec(field('duration') ?? '')?.[1];
    return {
      number: Number(head[1]),
      kind: head[2] === 'Video' ? 'video' : head[2] === 'Audio' ? 'audio' : 'text',
      codecs: field('codec_string') ?? '',
      language: language === 'und' || language === '' ? undefined : language,
      seconds: Number(seconds ?? 0),
      encrypted: field('is_encrypted') === 'true',
    };
  });
}

/**
 * The path of the binary that the npm package brings for this machine.
 *
 * @throws an Error that says what to do if there is none
 */
export function shakaPackagerOfNpm(platform: NodeJS.Platform, arch: string, beside: string): string {
  const system = ({ linux: 'linux', darwin: 'osx' } as Partial<Record<NodeJS.Platform, string>>)[platform];
  if (!system || !['x64', 'arm64'].includes(arch)) {
    throw new Error(
      `shaka-packager has no program for ${platform} on ${arch}; run the packager in a container`,
    );
  }
  const folder = dirname(createRequire(beside).resolve('shaka-packager/package.json'));
  return join(folder, 'bin', `packager-${system}-${arch}`);
}
