import { type FileHandle, open } from 'node:fs/promises';
import { type Mp4Box, readBoxHeader } from '../../../drm/check/boxes';

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
  const head = await read(file, 0, HEAD_BYTES);
  return (await movieFacts(file, head)) ?? typeOf(head);
}

/** Fewer bytes than asked for at the end of the file. */
async function read(file: FileHandle, at: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, at);
  return buffer.subarray(0, bytesRead);
}

const FIRST_BOXES = ['ftyp', 'moov', 'mdat', 'wide', 'free', 'skip', 'pnot'];
/** A file may be made of the smallest boxes. */
const MAX_BOXES = 2000;

async function movieFacts(file: FileHandle, head: Buffer): Promise<FileFacts | undefined> {
  const first = head.toString('latin1', 4, 8);
  if (!FIRST_BOXES.includes(first)) return undefined;
  const isQuickTime = first !== 'ftyp' || head.toString('latin1', 8, 12) === 'qt  ';
  let times: ReturnType<typeof timesOf>;
  let inFragments: number | undefined;
  const tracks: Track[] = [];
  let count = 0;
  for await (const { type, body } of boxesWithin(file, 'file', 0, (await file.stat()).size)) {
    count += 1;
    if (count > MAX_BOXES) break;
    const track = tracks.at(-1) ?? {};
    if (type === 'mvhd') times = timesOf(body);
    if (type === 'mehd') inFragments = fragmentsDuration(body, times?.timescale ?? 0);
    if (type === 'trak') tracks.push({});
    if (type === 'tkhd') track.size = sizeOf(body);
    if (type === 'hdlr') track.handler ??= body.toString('latin1', 8, 12);
  }
  const video = tracks.find(({ handler }) => handler === 'vide');
  if (!video && !tracks.some(({ handler }) => handler === 'soun')) return undefined;
  const mediaType = video ? 'video' : 'audio';
  const mimeType = isQuickTime ? 'video/quicktime' : `${mediaType}/mp4`;
  // Of a fragmented movie, the whole length is in a box of its own.
  return { mimeType, mediaType, duration: times?.duration ?? inFragments, ...video?.size };
}

/** The boxes whose content is read, by the one that they are in. */
const CONTAINERS: Readonly<Record<string, readonly string[]>> = {
  file: ['moov'],
  moov: ['trak', 'mvex'],
  trak: ['mdia'],
};
/** As much of a box as has what is read of it. */
const BOX_BYTES = 112;

/** The boxes of ISO/IEC 14496-12 (atoms of QuickTime) in one, each with its first bytes, before those in it. */
async function* boxesWithin(
  file: FileHandle,
  parent: string,
  start: number,
  end: number,
): AsyncGenerator<Pick<Mp4Box, 'type' | 'body'>> {
  for (let at = start; at + 8 <= end; ) {
    const bytes = await read(file, at, BOX_BYTES);
    if (bytes.length < 8) return;
    const { headerLength, length = end - at } = readBoxHeader(bytes);
    if (length > end - at) return;
    const type = bytes.toString('latin1', 4, 8);
    yield { type, body: bytes.subarray(headerLength, length) };
    if (CONTAINERS[parent]?.includes(type)) yield* boxesWithin(file, type, at + headerLength, at + length);
    // Thousands of fragments may come behind it.
    if (type === 'moov') return;
    at += length;
  }
}

/** Of `mvhd`: how many units a second has, and the length in seconds. */
function timesOf(box: Buffer) {
  if (box.length < 32) return undefined;
  const isLong = box[0] === 1;
  const timescale = box.readUInt32BE(isLong ? 20 : 12);
  const units = isLong ? box.readBigUInt64BE(24) : BigInt(box.readUInt32BE(16));
  const isUnknown = units === 0n || units === (isLong ? 0xffff_ffff_ffff_ffffn : 0xffff_ffffn);
  return { timescale, duration: isUnknown ? undefined : seconds(units, timescale) };
}

function fragmentsDuration(box: Buffer, timescale: number): number | undefined {
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
function sizeOf(box: Buffer): Track['size'] {
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
