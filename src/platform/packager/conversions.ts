import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Express } from 'express';
import * as z from 'zod';
import { onlyMethods } from '../../http/app';
import { parsedOr400, readQuery } from '../../http/faults';
import { createSemaphore } from '../../http/semaphore';
import { packagerError } from './errors';
import { sendMade } from './recording';
import { runProgram, wordsOf } from './running-program';
import { type Programs, withinMemory } from './shaka-packager';
import { receive, type Streams } from './streams';

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
const OUTPUT = 'converted.mp4';

/**
 * Answers the media file of the body in another size, as MP4 with H.264 and AAC, **clear**. Nothing is kept; a caller who
 * goes away ends it.
 */
export function mountConversions(
  app: Express,
  { streams, programs }: { readonly streams: Streams; readonly programs: Programs },
): void {
  const turns = createSemaphore(CONVERSIONS);
  app
    .route('/conversions')
    .post(async (request, response) => {
      const wanted = parsedOr400(readQuery(WANTED, request.query));
      const ending = new AbortController();
      response.on('close', () => ending.abort());
      const { signal } = ending;
      const room = streams.room(Number(request.headers['content-length'] ?? 0));
      try {
        await sendMade(programs, response, OUTPUT, async (folder) => {
          const source = join(folder, 'source');
          await receive(request, source, room.take, signal);
          const leave = await turns.enter();
          try {
            signal.throwIfAborted();
            await convert(programs, folder, wanted, signal);
          } finally {
            leave();
          }
        });
      } catch (thrown) {
        // There is no one to answer.
        if (!signal.aborted) throw thrown;
      } finally {
        room.leave();
      }
    })
    .all(onlyMethods('POST'));
}

/** Readers of what a client sent: no playlist, which could name any file of this machine. */
const FORMATS = 'mov,matroska,webm,mp3,aac,wav,flac,ogg,mpegts,avi,flv';
const SOUND_KBITS = 128;
/** Of a shell whose program is not there. */
const NO_PROGRAM = [126, 127];
/**
 * Runs a program that reads and writes no pipe, so that it would not see the end of a packager that is killed: its input
 * ends then, and it is killed, too. Live streams go first (`nice`).
 */
const WHILE_WANTED = `exec 3<&0
nice -n 10 "$0" "$@" 3<&- </dev/null & program=$!
{ read -r _ <&3; kill -9 $program; } >/dev/null 2>&1 & watching=$!
wait $program; code=$?
kill $watching 2>/dev/null
exit $code`;

/** @throws HttpError when ffmpeg is missing, or can't convert the file as a whole. */
async function convert(
  { ffmpeg, env }: Programs,
  folder: string,
  { height, bitrate = 0 }: Wanted,
  signal: AbortSignal,
): Promise<void> {
  const scale = `scale=-2:'trunc(min(${height},ih)/2)*2'`;
  const rates = ['-b:v', `${bitrate}k`, '-maxrate', `${bitrate}k`, '-bufsize', `${bitrate * 2}k`];
  const args = [
    // What is damaged is not made up for: half a film that looks whole would be worse than none.
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
  throw packagerError('conversion_failed', `ffmpeg can't convert the file: ${wordsOf(end)}.`);
}
