import { type FileHandle, open } from 'node:fs/promises';

/** The properties of a file by its bytes; undefined where they don't show one. */
interface FileFacts {
  readonly mimeType: string;
  readonly mediaType?: 'video' | 'audio';
  /** Seconds. */
  readonly duration?: number | undefined;
  /** Pixels, as it is to be shown. */
  readonly width?: number | undefined;
  readonly height?: number | undefined;
}

const HEAD_BYTES = 16_384;

/**
 * Recognizes MP4, QuickTime, JPEG, PNG, GIF, WebP, SVG, WebVTT and SubRip by their bytes, of which it reads
 * few. Undefined for any other file, and for one that can't be read.
 */
export async function probe({ path }: { readonly path: string }): Promise<FileFacts | undefined> {
  // It may have been deleted meanwhile.
  const file = await open(path, 'r').catch(() => undefined);
  try {
    return file && (await factsOf(file));
  } catch {
    return undefined;
  } finally {
    await file?.close();
  }
}

async function factsOf(file: FileHandle): Promise<FileFacts | undefined> {
  const { size } = await file.stat();
  const bytes = new Bytes(file, size);
  const head = await bytes.read(0, HEAD_BYTES);
  return (await movieFacts(head, bytes)) ?? typeOf(head);
}

/** How often a file is read: a file may be made of the smallest boxes, or of ones that lead in a ring. */
const MAX_READS = 2000;

class Bytes {
  #reads = 0;

  constructor(
    private readonly file: FileHandle,
    readonly size: number,
  ) {}

  /** Fewer bytes than asked for at the end of the file, none behind it or when it was read too often. */
  async read(at: number, length: number): Promise<Buffer> {
    this.#reads += 1;
    const wanted = Math.min(length, this.size - at);
    if (this.#reads > MAX_READS || wanted <= 0) return Buffer.alloc(0);
    const { buffer, bytesRead } = await this.file.read(Buffer.alloc(wanted), 0, wanted, at);
    return buffer.subarray(0, bytesRead);
  }
}

/** A box of ISO/IEC 14496-12 (an atom of QuickTime): where its content is. */
interface Box {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}

const FIRST_BOXES = ['ftyp', 'moov', 'mdat', 'wide', 'free', 'skip', 'pnot'];
/** The boxes whose content is read, by the one that they are in. */
const CONTAINERS: Readonly<Record<string, readonly string[]>> = { moov: ['trak', 'mvex'], trak: ['mdia'] };

async function movieFacts(head: Buffer, bytes: Bytes): Promise<FileFacts | undefined> {
  const first = head.toString('latin1', 4, 8);
  if (!FIRST_BOXES.includes(first)) return undefined;
  const isQuickTime = first !== 'ftyp' || head.toString('latin1', 8, 12) === 'qt  ';
  let times: Awaited<ReturnType<typeof timesOf>>;
  let inFragments: number | undefined;
  const tracks: Track[] = [];
  for await (const box of boxesIn(bytes, { type: '', start: 0, end: bytes.size })) {
    if (box.type !== 'moov') continue;
    for await (const inner of boxesWithin(bytes, box)) {
      const track = tracks.at(-1) ?? {};
      if (inner.type === 'mvhd') times = await timesOf(bytes, inner);
      if (inner.type === 'mehd') inFragments = await fragmentsDuration(bytes, inner, times?.timescale ?? 0);
      if (inner.type === 'trak') tracks.push({});
      if (inner.type === 'tkhd') track.size = await sizeOf(bytes, inner);
      if (inner.type === 'hdlr')
        track.handler ??= (await bytes.read(inner.start, 12)).toString('latin1', 8, 12);
    }
    break;
  }
  const video = tracks.find(({ handler }) => handler === 'vide');
  if (!video && !tracks.some(({ handler }) => handler === 'soun')) return undefined;
  const mediaType = video ? 'video' : 'audio';
  const mimeType = isQuickTime ? 'video/quicktime' : `${mediaType}/mp4`;
  // Of a fragmented movie, the whole length is in a box of its own.
  return { mimeType, mediaType, duration: times?.duration ?? inFragments, ...video?.size };
}

async function* boxesIn(bytes: Bytes, { start, end }: Box): AsyncGenerator<Box> {
  for (let at = start; at + 8 <= end; ) {
    const head = await bytes.read(at, 16);
    if (head.length < 8) return;
    let length = head.readUInt32BE(0);
    let headLength = 8;
    if (length === 1 && head.length === 16) {
      // Numbers up to 2^53 are exact; a longer box is beyond every end.
      length = Number(head.readBigUInt64BE(8));
      headLength = 16;
    } else if (length === 0) length = end - at;
    if (length < headLength || length > end - at) return;
    yield { type: head.toString('latin1', 4, 8), start: at + headLength, end: at + length };
    at += length;
  }
}

/** The boxes in one, each with those in it behind it. */
async function* boxesWithin(bytes: Bytes, box: Box): AsyncGenerator<Box> {
  for await (const inner of boxesIn(bytes, box)) {
    yield inner;
    if (CONTAINERS[box.type]?.includes(inner.type)) yield* boxesWithin(bytes, inner);
  }
}

/** Of `mvhd`: how many units a second has, and the length in seconds. */
async function timesOf(bytes: Bytes, { start }: Box) {
  const box = await bytes.read(start, 32);
  if (box.length < 32) return undefined;
  const isLong = box[0] === 1;
  const timescale = box.readUInt32BE(isLong ? 20 : 12);
  const units = isLong ? box.readBigUInt64BE(24) : BigInt(box.readUInt32BE(16));
  const isUnknown = units === 0n || units === (isLong ? 0xffff_ffff_ffff_ffffn : 0xffff_ffffn);
  return { timescale, duration: isUnknown ? undefined : seconds(units, timescale) };
}

async function fragmentsDuration(bytes: Bytes, { start }: Box, timescale: number) {
  const box = await bytes.read(start, 12);
  if (box.length < (box[0] === 1 ? 12 : 8)) return undefined;
  return seconds(box[0] === 1 ? box.readBigUInt64BE(4) : BigInt(box.readUInt32BE(4)), timescale);
}

/** No film lasts more than a year: such a length is a fault of the file. */
const MAX_SECONDS = 366 * 24 * 60 * 60;

function seconds(units: bigint, timescale: number): number | undefined {
  const duration = Number(units) / timescale;
  return duration > 0 && duration <= MAX_SECONDS ? duration : undefined;
}

interface Track {
  handler?: string;
  size?: { readonly width: number; readonly height: number } | undefined;
}

/** Of `tkhd`: the size as it is shown, so of a film that is turned on its side, the other way round. */
async function sizeOf(bytes: Bytes, { start, end }: Box): Promise<Track['size']> {
  const box = await bytes.read(start, Math.min(end - start, 96));
  const matrix = box[0] === 1 ? 52 : 40;
  if (box.length < matrix + 44) return undefined;
  const isTurned = box.readInt32BE(matrix) === 0 && box.readInt32BE(matrix + 16) === 0;
  const [across, down] = [matrix + 36, matrix + 40].map((at) => Math.round(box.readUInt32BE(at) / 65_536));
  if (!across || !down) return undefined;
  return isTurned ? { width: down, height: across } : { width: across, height: down };
}

/** The marks of PNG (W3C), GIF89a, WebP (RFC 9649) and JPEG (ITU-T T.81). */
const PICTURES: readonly (readonly [mark: string, at: number, mimeType: string])[] = [
  ['\x89PNG\r\n\x1a\n', 0, 'image/png'],
  ['GIF8', 0, 'image/gif'],
  ['WEBP', 8, 'image/webp'],
  ['\xff\xd8\xff', 0, 'image/jpeg'],
];
const TIMING = /^\d{1,4}:\d\d:\d\d[,.]\d{1,3} *--> *\d{1,4}:\d\d:\d\d[,.]\d{1,3}/;
/** The part of an XML document before its first element. */
const PROLOG = /^(?:\s*(?:<\?[\s\S]*?\?>|<!--[\s\S]*?-->|<!DOCTYPE[^>]*>))*\s*/;

function typeOf(head: Buffer): FileFacts | undefined {
  const first = head.toString('latin1', 0, 12);
  const [, , picture] = PICTURES.find(([mark, at]) => first.startsWith(mark, at)) ?? [];
  if (picture !== undefined) return { mimeType: picture };
  if (head.includes(0)) return undefined;
  const text = head.toString('utf8').replace(/^\ufeff/, '');
  if (/^WEBVTT(?:[ \t\r\n]|$)/.test(text)) return { mimeType: 'text/vtt' };
  const [number = '', timing = ''] = text.trimStart().split(/\r\n|\r|\n/, 2);
  if (/^\d{1,9} *$/.test(number) && TIMING.test(timing)) return { mimeType: 'application/x-subrip' };
  return /^<svg[\s/>]/.test(text.replace(PROLOG, '')) ? { mimeType: 'image/svg+xml' } : undefined;
}
