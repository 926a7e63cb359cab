import { type FileHandle, open } from 'node:fs/promises';

/** What the bytes of a file say of it. What they leave open is undefined. */
interface FileFacts {
  readonly mimeType: string;
  /** Of a movie only. */
  readonly mediaType?: 'video' | 'audio';
  /** Seconds. */
  readonly duration?: number | undefined;
  /** Pixels, as the file is to be shown. */
  readonly width?: number | undefined;
  readonly height?: number | undefined;
}

/** How much of the beginning is read at once, in bytes. */
const HEAD_BYTES = 16_384;

/**
 * Recognizes MP4 and QuickTime, JPEG, PNG, GIF, WebP and SVG, WebVTT and SubRip by their bytes. It reads a little, however
 * large the file is and whatever is in it. Of any other file, and of one that can't be read, the answer is undefined.
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
  return (
    pngFacts(head) ??
    gifFacts(head) ??
    webpFacts(head) ??
    (await jpegFacts(head, bytes)) ??
    (await movieFacts(head, bytes)) ??
    textFacts(head)
  );
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

function image(mimeType: string, width: number, height: number): FileFacts {
  const known = width > 0 && height > 0;
  return known ? { mimeType, width, height } : { mimeType };
}

/** PNG (W3C) § 11.2.2: the first chunk is IHDR. */
function pngFacts(head: Buffer): FileFacts | undefined {
  if (head.length < 24 || head.toString('latin1', 0, 8) !== '\x89PNG\r\n\x1a\n') return undefined;
  if (head.toString('latin1', 12, 16) !== 'IHDR') return undefined;
  return image('image/png', head.readUInt32BE(16), head.readUInt32BE(20));
}

/** GIF89a § 18: the logical screen. */
function gifFacts(head: Buffer): FileFacts | undefined {
  if (head.length < 10 || !/^GIF8[79]a$/.test(head.toString('latin1', 0, 6))) return undefined;
  return image('image/gif', head.readUInt16LE(6), head.readUInt16LE(8));
}

/** WebP (RFC 9649) § 2: simple lossy, simple lossless, and extended. */
function webpFacts(head: Buffer): FileFacts | undefined {
  if (head.length < 30 || head.toString('latin1', 0, 4) !== 'RIFF') return undefined;
  if (head.toString('latin1', 8, 12) !== 'WEBP') return undefined;
  const type = 'image/webp';
  switch (head.toString('latin1', 12, 16)) {
    case 'VP8 ':
      if (head.readUIntBE(23, 3) !== 0x9d012a) return image(type, 0, 0);
      return image(type, head.readUInt16LE(26) & 0x3fff, head.readUInt16LE(28) & 0x3fff);
    case 'VP8L': {
      if (head[20] !== 0x2f) return image(type, 0, 0);
      const sizes = head.readUInt32LE(21);
      return image(type, (sizes & 0x3fff) + 1, ((sizes >>> 14) & 0x3fff) + 1);
    }
    case 'VP8X':
      return image(type, head.readUIntLE(24, 3) + 1, head.readUIntLE(27, 3) + 1);
    default:
      return image(type, 0, 0);
  }
}

/** JPEG (ITU-T T.81) Annex B: the frame header, behind segments of up to 64 KiB each. */
async function jpegFacts(head: Buffer, bytes: Bytes): Promise<FileFacts | undefined> {
  if (head.length < 4 || head.readUIntBE(0, 3) !== 0xffd8ff) return undefined;
  const type = 'image/jpeg';
  for (let at = 2; ; ) {
    const segment = await bytes.read(at, 9);
    const [mark, marker = 0] = segment;
    if (segment.length < 9 || mark !== 0xff) return image(type, 0, 0);
    if (marker === 0xff) {
      // Fill bytes may stand before a marker.
      at += 1;
      continue;
    }
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) return image(type, segment.readUInt16BE(7), segment.readUInt16BE(5));
    const hasLength = marker > 0x01 && !(marker >= 0xd0 && marker <= 0xd9);
    const length = segment.readUInt16BE(2);
    if (marker === 0xda || (hasLength && length < 2)) return image(type, 0, 0);
    at += hasLength ? 2 + length : 2;
  }
}

/** A box of ISO/IEC 14496-12 (an atom of QuickTime): where its content is. */
interface Box {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}

const FIRST_BOXES = ['ftyp', 'moov', 'mdat', 'wide', 'free', 'skip', 'pnot'];

async function movieFacts(head: Buffer, bytes: Bytes): Promise<FileFacts | undefined> {
  const first = head.toString('latin1', 4, 8);
  if (head.length < 16 || !FIRST_BOXES.includes(first)) return undefined;
  const isQuickTime = first !== 'ftyp' || head.toString('latin1', 8, 12) === 'qt  ';
  const moov = await findBox(bytes, { start: 0, end: bytes.size }, 'moov');
  if (!moov) return undefined;
  let duration: number | undefined;
  const tracks: Track[] = [];
  let timescale = 0;
  for await (const box of boxesIn(bytes, moov)) {
    if (box.type === 'mvhd') {
      const times = await timesOf(bytes, box);
      timescale = times?.timescale ?? 0;
      duration = times?.duration;
    }
    if (box.type === 'trak') tracks.push(await readTrack(bytes, box));
    // Of a fragmented movie, the whole length stands here.
    if (box.type === 'mvex') duration ??= await fragmentsDuration(bytes, box, timescale);
  }
  const video = tracks.find(({ handler }) => handler === 'vide');
  if (!video && !tracks.some(({ handler }) => handler === 'soun')) return undefined;
  const mediaType = video ? 'video' : 'audio';
  const size = video?.size && { width: video.size.width, height: video.size.height };
  const mimeType = isQuickTime ? 'video/quicktime' : `${mediaType}/mp4`;
  return { mimeType, mediaType, duration, ...size };
}

/** The boxes between two places, as far as they can be read. */
async function* boxesIn(bytes: Bytes, { start, end }: Pick<Box, 'start' | 'end'>): AsyncGenerator<Box> {
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

async function findBox(
  bytes: Bytes,
  within: Pick<Box, 'start' | 'end'>,
  type: string,
): Promise<Box | undefined> {
  for await (const box of boxesIn(bytes, within)) if (box.type === type) return box;
  return undefined;
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

async function fragmentsDuration(bytes: Bytes, mvex: Box, timescale: number): Promise<number | undefined> {
  const mehd = await findBox(bytes, mvex, 'mehd');
  const box = mehd && (await bytes.read(mehd.start, 12));
  if (!box || box.length < (box[0] === 1 ? 12 : 8)) return undefined;
  return seconds(box[0] === 1 ? box.readBigUInt64BE(4) : BigInt(box.readUInt32BE(4)), timescale);
}

/** No film lasts more than a year: such a length is a fault of the file. */
const MAX_SECONDS = 366 * 24 * 60 * 60;

function seconds(units: bigint, timescale: number): number | undefined {
  const duration = Number(units) / timescale;
  return duration > 0 && duration <= MAX_SECONDS ? duration : undefined;
}

interface Track {
  readonly handler: string | undefined;
  readonly size: { readonly width: number; readonly height: number } | undefined;
}

async function readTrack(bytes: Bytes, trak: Box): Promise<Track> {
  let handler: string | undefined;
  let size: Track['size'];
  for await (const box of boxesIn(bytes, trak)) {
    if (box.type === 'tkhd') size = await sizeOf(bytes, box);
    if (box.type !== 'mdia') continue;
    const hdlr = await findBox(bytes, box, 'hdlr');
    handler = hdlr && (await bytes.read(hdlr.start, 12)).toString('latin1', 8, 12);
  }
  return { handler, size };
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

const TIMING = /^\d{1,4}:\d\d:\d\d[,.]\d{1,3} *--> *\d{1,4}:\d\d:\d\d[,.]\d{1,3}/;

function textFacts(head: Buffer): FileFacts | undefined {
  if (head.includes(0)) return undefined;
  const text = head.toString('utf8').replace(/^\ufeff/, '');
  if (/^WEBVTT(?:[ \t\r\n]|$)/.test(text)) return { mimeType: 'text/vtt' };
  const [number = '', timing = ''] = text.trimStart().split(/\r\n|\r|\n/, 2);
  if (/^\d{1,9} *$/.test(number) && TIMING.test(timing)) return { mimeType: 'application/x-subrip' };
  return svgFacts(text);
}

/** What may stand before the first element of an XML document. */
const PROLOG = /^(?:\s*(?:<\?[\s\S]*?\?>|<!--[\s\S]*?-->|<!DOCTYPE[^>]*>))*\s*/;

function svgFacts(text: string): FileFacts | undefined {
  const rest = text.replace(PROLOG, '');
  if (!/^<svg[\s/>]/.test(rest)) return undefined;
  const tag = rest.slice(0, rest.indexOf('>'));
  const attribute = (name: string) => new RegExp(`\\s${name}\\s*=\\s*["']([^"']*)["']`).exec(tag)?.[1] ?? '';
  const pixels = (name: string) =>
    Number(/^\s*(\d{1,6}(?:\.\d{1,6})?)(?:px)?\s*$/.exec(attribute(name))?.[1] ?? 0);
  const [, , across = 0, down = 0] = attribute('viewBox')
    .trim()
    .split(/[\s,]+/, 4)
    .map(Number);
  const [width, height] = [pixels('width'), pixels('height')];
  // What is left out follows from the shape of the view box.
  const shown =
    width || height ? [width || (height * across) / down, height || (width * down) / across] : [across, down];
  const [wide = 0, high = 0] = shown.map((length) => (length > 0 && length < 1e6 ? Math.round(length) : 0));
  return image('image/svg+xml', wide, high);
}
