import { mkdtemp, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Express, Response } from 'express';
import fs from 'fs-extra';
import * as z from 'zod';
import { routeAt } from '../../http/app';
import { readQuery } from '../../http/faults';
import { createSemaphore } from '../../http/semaphore';
import { packagerError } from './errors';
import { RECORDING } from './live/part';
import { endText, runProgram } from './running-program';
import { type Programs, withinMemory } from './shaka-packager';
import { receive, type Stream, type Streams, sizeOf } from './streams';

interface Parts {
  readonly streams: Streams;
  readonly programs: Programs;
}

const seconds = z
  .string()
  .regex(/^\d{1,7}(?:\.\d{1,6})?$/, 'must be a number of seconds, such as 12.5')
  .transform(Number);
const CUT = z
  .strictObject({ from: seconds.optional(), to: seconds.optional() })
  .refine(({ from = 0, to }) => to === undefined || to > from, {
    path: ['to'],
    message: 'must be a later time than the cut begins at',
  });

/**
 * Serves a stream as it came, as one clear MP4 file: for the platform, never for players of viewers. A cut
 * has the media from the key frame at or before `from` on, and is shown from `from` on.
 */
export function mountRecordings(app: Express, { streams, programs }: Parts): void {
  routeAt(app, '/streams/:id/recording').get(async ({ params, query }, response) => {
    const { from, to } = readQuery(CUT, query);
    const stream = streams.get(params.id);
    const total = stream.record.kind === 'live' ? stream.document().seconds : 0;
    const pieces = piecesOf(stream, total, from, to);
    if (pieces.length === 0) {
      const asked = from === undefined && to === undefined ? '' : `, and nothing from ${from ?? 0} on`;
      throw packagerError('nothing_recorded', `The stream has ${total} seconds of recorded media${asked}.`);
    }
    await sendMade(programs, response, (folder) => write(programs, folder, pieces, from, to));
  });
}

const OUTPUT = 'made.mp4';

async function sendMade(
  programs: Programs,
  response: Response,
  make: (folder: string) => Promise<void>,
): Promise<void> {
  const root = await mkdtemp(join(programs.folder, 'made-'));
  const remove = () => fs.remove(root);
  try {
    await make(root);
  } catch (thrown) {
    await remove();
    throw thrown;
  }
  response.set({ 'content-type': 'video/mp4', 'cache-control': 'no-store' });
  response.sendFile(OUTPUT, { root, cacheControl: false, etag: false }, () => {
    if (!response.writableEnded) response.destroy();
    void remove();
  });
}

/** The recording of a part, and where it is in the stream, in seconds. */
interface Piece {
  readonly path: string;
  readonly start: number;
  readonly seconds: number;
}

function piecesOf(
  { folder, record: { parts } }: Stream,
  total: number,
  from = 0,
  to = Number.POSITIVE_INFINITY,
): Piece[] {
  const pieces: Piece[] = [];
  let start = 0;
  for (const part of parts) {
    const seconds = part.isDone ? part.seconds : total - start;
    const path = join(folder, part.name, RECORDING);
    if (sizeOf(path) > 0 && start + seconds > from && start < to) pieces.push({ path, start, seconds });
    start += seconds;
  }
  return pieces;
}

/** In seconds; no encoder sends key frames more rarely. */
const LONGEST_GROUP = 60;

async function write(
  { ffmpeg, env }: Programs,
  folder: string,
  pieces: readonly Piece[],
  from = 0,
  to?: number,
): Promise<void> {
  const start = pieces[0]?.start ?? 0;
  const begin = Math.max(0, from - start);
  const early = Math.max(0, begin - LONGEST_GROUP);
  const list = pieces.flatMap(({ path, seconds }) => [
    `file '${path.replaceAll("'", "'\\''")}'`,
    // Only with the length of each file does ffmpeg seek in a list.
    ...(early > 0 ? [`duration ${seconds}`] : []),
  ]);
  await writeFile(join(folder, 'list'), ['ffconcat version 1.0', ...list].join('\n'));
  const make = async (target: string, at: number, ...input: readonly string[]) => {
    const end = to === undefined ? [] : ['-t', String(to - start - at)];
    const args = [
      ...['-hide_banner', '-nostdin', '-loglevel', 'error', '-y', '-ss', String(at), ...end, ...input],
      ...['-c', 'copy', ...(target === OUTPUT ? ['-movflags', '+faststart'] : []), '-f', 'mp4', target],
    ];
    const program = runProgram(ffmpeg, args, { cwd: folder, env });
    program.stdin.end();
    program.stdout.resume();
    const { code, notStarted, lastWords } = await program.ended;
    if (code === 0) return;
    const why =
      notStarted === undefined
        ? lastWords
        : `${ffmpeg} can't be started (${notStarted}). Set PACKAGER_FFMPEG`;
    throw packagerError('recording_failed', `The recording could not be written: ${why}.`);
  };
  const joined = begin === 0 ? OUTPUT : 'joined.mp4';
  await make(joined, early, '-copyts', '-f', 'concat', '-safe', '0', '-i', 'list');
  // In a transport stream, ffmpeg finds the key frame behind a time; in MP4 the one before, and hides what is too early.
  if (begin > 0) await make(OUTPUT, begin, '-seek_timestamp', '1', '-i', joined);
}

const whole = (unit: string) =>
  z
    .string()
    .regex(/^[1-9]\d{0,5}$/, `must be a whole number of ${unit}, from 1 to 999999`)
    .transform(Number)
    .optional();
const WANTED = z
  .strictObject({ height: whole('pixels'), bitrate: whole('kbit/s') })
  .refine(({ height, bitrate }) => (height === undefined) === (bitrate === undefined), {
    path: ['bitrate'],
    message: 'must come with height, or both be left out for sound alone',
  });
type Wanted = z.output<typeof WANTED>;

/** One at a time takes all processors that live streams leave. */
const CONVERSIONS = 1;
/** A film of two hours takes less on two processors. */
const LONGEST_MS = 2 * 60 * 60 * 1000;

/** Answers the media file of the body in another size: MP4 with H.264 and AAC, **clear**. Keeps no file. */
export function mountConversions(app: Express, { streams, programs }: Parts): void {
  const turns = createSemaphore(CONVERSIONS);
  routeAt(app, '/conversions').post(async (request, response) => {
    const wanted = readQuery(WANTED, request.query);
    const ending = new AbortController();
    response.on('close', () => ending.abort());
    const { signal } = ending;
    const room = streams.room(Number(request.headers['content-length'] ?? 0));
    try {
      await sendMade(programs, response, async (folder) => {
        const source = join(folder, 'source');
        await receive(request, source, room.take, signal);
        using _turn = await turns.enter();
        signal.throwIfAborted();
        await convert(programs, folder, wanted, signal);
      });
    } catch (thrown) {
      if (!signal.aborted) throw thrown;
    } finally {
      room.leave();
    }
  });
}

/** The input formats: no playlist, which could name any file of this machine. */
const FORMATS = 'mov,matroska,webm,mp3,aac,wav,flac,ogg,mpegts,avi,flv';
const SOUND_KBITS = 128;
/** The exit code of a shell for a missing program. */
const NO_PROGRAM = [126, 127];
/**
 * A program that reads and writes no pipe goes on when the packager is killed. The input of this shell ends
 * then, and the shell kills the program. Live streams go first (`nice`).
 */
const WHILE_WANTED = `exec 3<&0
nice -n 10 "$0" "$@" 3<&- </dev/null & program=$!
{ read -r _ <&3; kill -9 $program; } >/dev/null 2>&1 & watching=$!
wait $program; code=$?
kill $watching 2>/dev/null
exit $code`;

async function convert(
  { ffmpeg, env }: Programs,
  folder: string,
  { height, bitrate = 0 }: Wanted,
  signal: AbortSignal,
): Promise<void> {
  const scale = `scale=-2:'trunc(min(${height},ih)/2)*2'`;
  const rates = ['-b:v', `${bitrate}k`, '-maxrate', `${bitrate}k`, '-bufsize', `${bitrate * 2}k`];
  const args = [
    // Damaged input fails: half a film that looks complete would be worse than none.
    ...['-hide_banner', '-nostdin', '-loglevel', 'error', '-xerror', '-y'],
    ...['-protocol_whitelist', 'file', '-format_whitelist', FORMATS, '-i', 'source'],
    ...(height === undefined ? [] : ['-map', '0:V:0?', '-vf', scale, '-c:v', 'libx264', ...rates]),
    ...(height === undefined ? [] : ['-preset', 'veryfast', '-pix_fmt', 'yuv420p']),
    ...['-map', '0:a:0?', '-c:a', 'aac', '-b:a', `${SOUND_KBITS}k`, '-ac', '2'],
    ...['-movflags', '+faststart', '-f', 'mp4', OUTPUT],
  ];
  const { size } = await stat(join(folder, 'source'));
  const limited = withinMemory('/bin/sh', ['-c', WHILE_WANTED, ffmpeg, ...args], size);
  const options = { cwd: folder, env, paths: [folder], signal, timeout: LONGEST_MS };
  const program = runProgram(...limited, options);
  program.stdout.resume();
  const end = await program.ended;
  if (end.code === 0) return;
  if (NO_PROGRAM.includes(end.code ?? 0)) throw packagerError('ffmpeg_missing');
  throw packagerError('conversion_failed', `ffmpeg can't convert the file: ${endText(end)}.`);
}
