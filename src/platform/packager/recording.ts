import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Express, Response } from 'express';
import * as z from 'zod';
import { readOnly } from '../../http/app';
import { parsedOr400, readQuery } from '../../http/faults';
import { packagerError } from './errors';
import { RECORDING } from './live/part';
import { runProgram } from './running-program';
import type { Programs } from './shaka-packager';
import { type Stream, type Streams, sizeOf } from './streams';

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
 * The stream as it came, as one MP4 file: for what is made of it within the platform, and never for players, as it is
 * clear. A cut begins at the key frame at or before it; players start where it was asked for.
 */
export function mountRecordings(
  app: Express,
  { streams, programs }: { readonly streams: Streams; readonly programs: Programs },
): void {
  readOnly(app)('/streams/:id/recording', async ({ params, query }, response) => {
    const { from, to } = parsedOr400(readQuery(CUT, query));
    const stream = streams.get(params.id);
    const { seconds: total } = stream.document();
    const pieces = piecesOf(stream, total, from, to);
    if (pieces.length === 0) {
      const asked = from === undefined && to === undefined ? '' : `, and nothing from ${from ?? 0} on`;
      throw packagerError('nothing_recorded', `The stream has ${total} seconds of recorded media${asked}.`);
    }
    await sendMade(programs, response, 'recording.mp4', (folder) => write(programs, folder, pieces));
  });
}

/** Makes an MP4 file in a new folder and sends it. Nothing is left of it. @throws what `make` throws. */
export async function sendMade(
  programs: Programs,
  response: Response,
  name: string,
  make: (folder: string) => Promise<void>,
): Promise<void> {
  const root = await mkdtemp(join(programs.folder, 'made-'));
  const remove = () => rm(root, { recursive: true, force: true });
  try {
    await make(root);
  } catch (thrown) {
    await remove();
    throw thrown;
  }
  response.set({ 'content-type': 'video/mp4', 'cache-control': 'no-store' });
  response.sendFile(name, { root, cacheControl: false, etag: false }, () => {
    if (!response.writableEnded) response.destroy();
    void remove();
  });
}

interface Piece {
  readonly path: string;
  /** In seconds of the part; undefined for its beginning or end. */
  readonly from: number | undefined;
  readonly to: number | undefined;
}

/** What of each part lies between two times of the whole. */
function piecesOf(
  { folder, record: { parts } }: Stream,
  total: number,
  from = 0,
  to = Number.POSITIVE_INFINITY,
): Piece[] {
  const pieces: Piece[] = [];
  let start = 0;
  for (const part of parts) {
    const length = part.isDone ? part.seconds : total - start;
    const end = start + length;
    const path = join(folder, part.name, RECORDING);
    if (sizeOf(path) > 0 && end > from && start < to) {
      pieces.push({
        path,
        from: from > start ? from - start : undefined,
        to: to < end ? to - start : undefined,
      });
    }
    start = end;
  }
  return pieces;
}

async function write(programs: Programs, folder: string, pieces: readonly Piece[]): Promise<void> {
  const { ffmpeg, env } = programs;
  const always = ['-hide_banner', '-nostdin', '-loglevel', 'error', '-y'];
  const toMp4 = ['-c', 'copy', '-movflags', '+faststart', '-f', 'mp4', 'recording.mp4'];
  const cuts: string[] = [];
  for (const [index, { path, from, to }] of pieces.entries()) {
    const name = `${index}.ts`;
    const begin = from === undefined ? [] : ['-ss', String(from)];
    const end = to === undefined ? [] : ['-t', String(to - (from ?? 0))];
    // One piece is cut straight into the file: then the times before the cut are kept out by its edit list.
    const target = pieces.length === 1 ? toMp4 : ['-c', 'copy', '-f', 'mpegts', name];
    await run(ffmpeg, [...always, ...begin, '-i', path, ...end, ...target], folder, env);
    cuts.push(name);
  }
  if (pieces.length === 1) return;
  await writeFile(
    join(folder, 'list'),
    ['ffconcat version 1.0', ...cuts.map((name) => `file ${name}`)].join('\n'),
  );
  await run(ffmpeg, [...always, '-f', 'concat', '-i', 'list', ...toMp4], folder, env);
}

async function run(
  ffmpeg: string,
  args: readonly string[],
  cwd: string,
  env: Programs['env'],
): Promise<void> {
  const program = runProgram(ffmpeg, args, { cwd, env });
  program.stdin.end();
  program.stdout.resume();
  const { code, notStarted, lastWords } = await program.ended;
  if (notStarted !== undefined) {
    const description = `The recording could not be written: ${ffmpeg} can't be started (${notStarted}). Set PACKAGER_FFMPEG.`;
    throw packagerError('recording_failed', description);
  }
  if (code !== 0)
    throw packagerError('recording_failed', `The recording could not be written: ${lastWords}.`);
}
