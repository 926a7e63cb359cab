import { boxesIn, FULL_BOX, type Mp4Box } from '../../drm/check/boxes';
import { readTrackEncryption } from '../../drm/check/sample-protection';
import type { MediaKind, SampleFormat } from './judgement';

export type SampleEntry = ReturnType<typeof readSampleEntry>;

/** The bytes before the boxes of an entry, by the kind of its track. */
const BEFORE_BOXES: Readonly<Record<MediaKind, number>> = { video: 78, audio: 28, text: 8, other: 8 };
/** Of versions 1 and 2 of sound in QuickTime. */
const MORE_OF_SOUND: readonly number[] = [0, 16, 36];

export function kindOf(handler: string): MediaKind {
  if (handler === 'vide') return 'video';
  if (handler === 'soun') return 'audio';
  return ['text', 'subt', 'sbtl', 'clcp'].includes(handler) ? 'text' : 'other';
}

/** Reads the sample entries of a box `stsd`, given from its version on. */
export function readSampleEntries(body: Buffer, kind: MediaKind): SampleEntry[] {
  return boxesIn(body.subarray(FULL_BOX + 4))
    .slice(0, 100)
    .map((entry) => readSampleEntry(entry, kind));
}

function readSampleEntry({ type, body }: Mp4Box, kind: MediaKind) {
  const isSound = kind === 'audio' && body.length >= 28;
  const more = isSound ? (MORE_OF_SOUND[body.readUInt16BE(8)] ?? 0) : 0;
  let boxes = boxesIn(body.subarray(BEFORE_BOXES[kind] + more));
  // Entries of subtitles have texts before their boxes.
  const info = body.indexOf('sinf', 8, 'latin1') - 4;
  if (info >= 4 && !boxes.some((box) => box.type === 'sinf'))
    boxes = [...boxes, ...boxesIn(body.subarray(info))];
  const sinf = boxes.find((box) => box.type === 'sinf');
  const within = sinf ? boxesIn(sinf.body) : [];
  const described = describeFormat(bodyOf(within, 'frma')?.toString('latin1', 0, 4) ?? type, boxes);
  if (!sinf) return { ...described, protection: undefined };
  const scheme = bodyOf(within, 'schm')?.toString('latin1', FULL_BOX, FULL_BOX + 4);
  const track = bodyOf(boxesIn(bodyOf(within, 'schi') ?? ABSENT), 'tenc');
  return { ...described, protection: { scheme, track: track && readTrackEncryption(track) } };
}

const ABSENT = Buffer.alloc(0);

function bodyOf(boxes: readonly Mp4Box[], type: string): Buffer | undefined {
  return boxes.find((box) => box.type === type)?.body;
}

function describeFormat(type: string, boxes: readonly Mp4Box[]): { codec: string; format: SampleFormat } {
  if (/^avc[1-4]$/.test(type)) {
    const config = bodyOf(boxes, 'avcC') ?? ABSENT;
    const profile = config.toString('hex', 1, 4);
    const lengthSize = ((config[4] ?? 3) & 3) + 1;
    const format: SampleFormat = { codec: 'h264', lengthSize, parameterSets: avcParameterSets(config) };
    return { codec: profile ? `${type}.${profile}` : type, format };
  }
  if (/^(?:hvc1|hev1|dvh1|dvhe)$/.test(type)) {
    const config = bodyOf(boxes, 'hvcC') ?? ABSENT;
    const lengthSize = ((config[21] ?? 3) & 3) + 1;
    return { codec: type, format: { codec: 'h265', lengthSize, parameterSets: hevcParameterSets(config) } };
  }
  if (type === 'mp4a') {
    const { objectType, config } = readDescriptors(bodyOf(boxes, 'esds') ?? ABSENT);
    if (objectType === 0xa5 || objectType === 0xa6) return { codec: 'mp4a.a5', format: { codec: 'ac3' } };
    if (objectType !== 0x40 && objectType !== 0)
      return { codec: `mp4a.${objectType.toString(16)}`, format: { codec: 'unknown' } };
    const [first = 0, second = 0] = config ?? [];
    // 31 is for the types from 32 on, in six more bits (ISO/IEC 14496-3 § 1.6.2.1).
    const audioType = first >> 3 === 31 ? 32 + ((first & 7) << 3) + (second >> 5) : first >> 3;
    const format: SampleFormat = { codec: 'aac', adts: false, config };
    return { codec: config ? `mp4a.40.${audioType}` : 'mp4a', format };
  }
  const codec = SIMPLE[type] ?? 'unknown';
  return { codec: codec === 'opus' ? 'opus' : type, format: { codec } };
}

const SIMPLE: Readonly<Record<string, 'ac3' | 'opus' | 'flac' | 'ttml' | 'webvtt'>> = {
  'ac-3': 'ac3',
  'ec-3': 'ac3',
  Opus: 'opus',
  fLaC: 'flac',
  stpp: 'ttml',
  wvtt: 'webvtt',
};

/** ISO/IEC 14496-15 § 5.3.3.1. */
function avcParameterSets(config: Buffer): Buffer[] {
  const sequences = setsAt(config, 6, (config[5] ?? 0) & 0x1f);
  const pictures = setsAt(config, sequences.end + 1, config[sequences.end] ?? 0);
  return [...sequences.sets, ...pictures.sets];
}

/** ISO/IEC 14496-15 § 8.3.3.1. */
function hevcParameterSets(config: Buffer): Buffer[] {
  const sets: Buffer[] = [];
  let at = 23;
  for (let left = config[22] ?? 0; left > 0 && at + 3 <= config.length; left -= 1) {
    const found = setsAt(config, at + 3, config.readUInt16BE(at + 1));
    sets.push(...found.sets);
    at = found.end;
  }
  return sets;
}

function setsAt(config: Buffer, start: number, count: number): { sets: Buffer[]; end: number } {
  const sets: Buffer[] = [];
  let end = start;
  for (let left = count; left > 0 && end + 2 <= config.length; left -= 1) {
    const from = end + 2;
    end = from + config.readUInt16BE(end);
    sets.push(config.subarray(from, end));
  }
  return { sets, end };
}

/** The object type and the AudioSpecificConfig of an `esds` box (ISO/IEC 14496-1 § 7.2.6). */
function readDescriptors(body: Buffer): { objectType: number; config: Buffer | undefined } {
  let at = FULL_BOX;
  let objectType = 0;
  for (let depth = 0; depth < 8 && at < body.length; depth += 1) {
    const tag = body[at];
    const most = body.subarray(at + 1, at + 5);
    const size = most.subarray(0, most.findIndex((byte) => byte < 0x80) + 1 || most.length);
    const length = size.reduce((sum, byte) => (sum << 7) | (byte & 0x7f), 0);
    at += 1 + size.length;
    if (tag === 3) {
      const flags = body[at + 2] ?? 0;
      at += flags & 0x80 ? 5 : 3;
      if (flags & 0x40) at += 1 + (body[at] ?? 0);
      if (flags & 0x20) at += 2;
    } else if (tag === 4) {
      objectType = body[at] ?? 0;
      at += 13;
    } else if (tag === 5) return { objectType, config: body.subarray(at, at + length) };
    else break;
  }
  return { objectType, config: undefined };
}
