import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { systemCode } from '../../../http/errors';
import { Failure } from './failure';

/** How much of an input is looked at to know its kind. */
const HEAD = 64 * 1024;
/** The longest text that is read as a whole: a command, an address or a program. */
const MAX_TEXT = 16 * 1024 * 1024;

/** An input in pieces, of which the first have been looked at. */
export interface Pieces {
  /** The beginning, for knowing the kind. */
  readonly head: Buffer;
  /** All of it, from the beginning. */
  readonly all: AsyncIterable<Buffer>;
}

/** Opens an input; what is compressed by gzip is decompressed. @throws Failure when it can't be read. */
export async function openPieces(source: AsyncIterable<Buffer>, name: string): Promise<Pieces> {
  const given = await withHead(source, name);
  const isGzip = given.head[0] === 0x1f && given.head[1] === 0x8b;
  return isGzip
    ? withHead(
        pipeline(given.all, createGunzip(), () => undefined),
        name,
      )
    : given;
}

export function fileStream(path: string): AsyncIterable<Buffer> {
  return createReadStream(path, { highWaterMark: 256 * 1024 });
}

async function withHead(source: AsyncIterable<Buffer>, name: string): Promise<Pieces> {
  const pieces = readable(source, name);
  let first = Buffer.alloc(0);
  let next = await pieces.next();
  for (; !next.done; next = await pieces.next()) {
    first = Buffer.concat([first, next.value]);
    if (first.length >= HEAD) break;
  }
  async function* all() {
    yield first;
    yield* pieces;
  }
  return { head: first.subarray(0, HEAD), all: all() };
}

/** The same pieces; an error of the system becomes one of the input. */
async function* readable(pieces: AsyncIterable<Buffer>, name: string): AsyncGenerator<Buffer> {
  try {
    for await (const piece of pieces) yield Buffer.from(piece);
  } catch (thrown) {
    if (thrown instanceof Failure) throw thrown;
    const code = systemCode(thrown);
    throw new Failure('unreadable_input', `${name} can't be read${code === undefined ? '' : ` (${code})`}.`);
  }
}

/** A whole input as text. @throws Failure when it is too long. */
export async function wholeText({ all }: Pieces, name: string): Promise<string> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of all) {
    length += piece.length;
    if (length > MAX_TEXT) {
      throw new Failure(
        'unusable_input',
        `${name} is larger than ${MAX_TEXT / 1024 / 1024} MiB; only logs and HAR files may be. Say --from log or --from har if it is one.`,
      );
    }
    pieces.push(piece);
  }
  return Buffer.concat(pieces)
    .toString()
    .replace(/^\ufeff/, '');
}
