import { createReadStream } from 'node:fs';
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

/** Opens an input; what is compressed by gzip is read as what it was. @throws Failure when it can't be read. */
export async function openPieces(source: AsyncIterable<Buffer>, name: string): Promise<Pieces> {
  const pieces = told(source, name)[Symbol.asyncIterator]();
  const first = await firstOf(pieces);
  const rest = joined(first, pieces);
  if (!(first[0] === 0x1f && first[1] === 0x8b)) return { head: first.subarray(0, HEAD), all: rest };
  const unpacked = told(unzipped(rest), name)[Symbol.asyncIterator]();
  const start = await firstOf(unpacked);
  return { head: start.subarray(0, HEAD), all: joined(start, unpacked) };
}

export function fileStream(path: string): AsyncIterable<Buffer> {
  return createReadStream(path, { highWaterMark: 256 * 1024 });
}

async function firstOf(pieces: AsyncIterator<Buffer>): Promise<Buffer> {
  const first: Buffer[] = [];
  let length = 0;
  while (length < HEAD) {
    const { value, done } = await pieces.next();
    if (done) break;
    first.push(value);
    length += value.length;
  }
  return Buffer.concat(first);
}

async function* joined(first: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield first;
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
}

async function* unzipped(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const gunzip = createGunzip({ chunkSize: 256 * 1024 });
  let failed: unknown;
  const fed = (async () => {
    for await (const piece of pieces) {
      if (gunzip.destroyed) return;
      if (!gunzip.write(piece))
        await new Promise((resolve) => gunzip.once('drain', resolve).once('close', resolve));
    }
    gunzip.end();
  })().catch((thrown: unknown) => {
    failed = thrown;
    gunzip.destroy();
  });
  for await (const piece of gunzip) yield piece;
  await fed;
  if (failed !== undefined) throw failed;
}

/** The same pieces; an error of the system is told as one of the input. */
async function* told(pieces: AsyncIterable<Buffer>, name: string): AsyncGenerator<Buffer> {
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
