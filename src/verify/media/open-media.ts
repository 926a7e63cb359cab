import { readAdtsHeader } from '../../codecs/aac-frame';
import { ac3FrameLength } from '../../codecs/ac3-frame';
import { nalUnitsOf, START_CODE } from '../../codecs/nal-units';
import { refused } from '../../drm/bytes';
import { looksLikeSegment } from '../../drm/check/segment';
import type { Problem } from '../../drm/finding';
import { ivOfSequence } from './decrypt';
import type {
  HlsEncryption,
  MediaKind,
  MediaSample,
  MediaScheme,
  MediaTrack,
  Opened,
  SampleEncryption,
  SampleFormat,
} from './judgement';
import { openMp4 } from './mp4-samples';

/**
 * Reads the samples of a segment and how they are encrypted; nothing is decrypted yet. Takes mp4 (ISO/IEC
 * 14496-12, 23001-7), MPEG transport streams and packed audio (RFC 8216 § 3). Hostile bytes make a fault,
 * never an exception, and no more work than their length allows.
 * @param hls the encryption in the playlist, since transport streams do not signal SAMPLE-AES; a segment under AES-128
 *   is unknown before `judgeMedia` decrypts it
 */
export function openMedia(init: Buffer | undefined, segment: Buffer, hls?: HlsEncryption): Opened {
  if (segment.length === 0) return refused('no_samples', 'The segment is empty.');
  const foreign = foreignFormat(segment);
  if (foreign !== undefined) return refused('not_media', `The segment is ${foreign}.`);
  const [whole] = /^AES-(?:128$|256)/.exec(hls?.method ?? '') ?? [];
  if (whole) return openEncrypted(init, segment, ivOf(hls), whole === 'AES-128' ? 'aes-128' : 'aes-256');
  const encryption = hls && /^SAMPLE-AES/.test(hls.method) ? hls : undefined;
  if (looksLikeTransportStream(segment)) return openTransportStream(segment, encryption);
  if (init || looksLikeSegment(segment)) return openMp4(init, segment);
  const packed = openPacked(segment, encryption);
  if (packed) return packed;
  return refused(
    'not_media',
    'The segment is neither mp4, MPEG transport stream nor packed audio; it may be encrypted as a whole (AES-128), or an error page.',
  );
}

/** The first bytes of a header, and of a cluster (RFC 8794, RFC 9559). */
const WEBM = ['1a45dfa3', '1f43b675'];

const PAGE = /^(?:\xef\xbb\xbf)?\s*(?:<(?:!doctype html|html|head|body|\?xml|error)\b|[\t\n\r -~]*$)/i;

/** The kind of bytes in place of media, if known: `a web page …`. */
export function foreignFormat(bytes: Buffer): string | undefined {
  if (bytes.length === 0) return 'empty; check whether the packager still writes it';
  if (!isText(bytes) && PAGE.test(bytes.toString('latin1', 0, 100)))
    return 'a web page or another text instead of media; open its address in a browser: usually it is the error of a server or CDN';
  if (WEBM.includes(bytes.toString('hex', 0, 4)))
    return 'WebM, whose encryption cannot be tested; test the renditions in mp4';
  return undefined;
}

function ivOf(hls: HlsEncryption | undefined): Buffer {
  return hls?.iv ?? ivOfSequence(hls?.sequence ?? 0);
}

function openEncrypted(init: Buffer | undefined, segment: Buffer, iv: Buffer, scheme: MediaScheme): Opened {
  const samples = [{ data: segment, encryption: undefined }];
  const track: MediaTrack = {
    id: 0,
    kind: 'other',
    codec: 'unknown',
    scheme,
    keyIds: [],
    constantIv: iv,
    samples: 1,
    encryptedSamples: 1,
    seconds: 0,
    content: { format: { codec: 'unknown' }, samples, init },
  };
  return { ok: true, value: { container: 'encrypted_segment', tracks: [track], problems: [] } };
}

const PACKET = 188;
const SYNC = 0x47;
const MAX_STREAMS = 64;

interface StreamType {
  readonly kind: MediaKind;
  readonly codec: string;
  readonly format: SampleFormat;
  readonly isEncrypted?: true;
}

const ADTS: SampleFormat = { codec: 'aac', adts: true, config: undefined };
const H264: SampleFormat = { codec: 'h264', lengthSize: 0, parameterSets: [] };
const H265: SampleFormat = { codec: 'h265', lengthSize: 0, parameterSets: [] };
const UNKNOWN: SampleFormat = { codec: 'unknown' };
const MPEG_VIDEO: StreamType = { kind: 'video', codec: 'mp4v.61', format: UNKNOWN };
const MPEG_AUDIO: StreamType = { kind: 'audio', codec: 'mp4a.40.34', format: UNKNOWN };
const TEXT: StreamType = { kind: 'text', codec: 'wvtt', format: UNKNOWN };

/** stream_type by ISO/IEC 13818-1 table 2-34 and ATSC A/53; from 0xc0 on by Apple, for SAMPLE-AES. */
const STREAM_TYPES: Readonly<Record<number, StreamType>> = {
  1: MPEG_VIDEO,
  2: MPEG_VIDEO,
  3: MPEG_AUDIO,
  4: MPEG_AUDIO,
  15: { kind: 'audio', codec: 'mp4a.40.2', format: ADTS },
  17: { kind: 'audio', codec: 'mp4a.40.2', format: UNKNOWN },
  27: { kind: 'video', codec: 'avc1', format: H264 },
  36: { kind: 'video', codec: 'hvc1', format: H265 },
  129: { kind: 'audio', codec: 'ac-3', format: { codec: 'ac3' } },
  135: { kind: 'audio', codec: 'ec-3', format: { codec: 'ac3' } },
  193: { kind: 'audio', codec: 'ac-3', format: { codec: 'ac3' }, isEncrypted: true },
  194: { kind: 'audio', codec: 'ec-3', format: { codec: 'ac3' }, isEncrypted: true },
  207: { kind: 'audio', codec: 'mp4a.40.2', format: ADTS, isEncrypted: true },
  219: { kind: 'video', codec: 'avc1', format: H264, isEncrypted: true },
};

function looksLikeTransportStream(bytes: Buffer): boolean {
  return bytes.length >= PACKET && bytes[0] === SYNC && (bytes.length < 2 * PACKET || bytes[PACKET] === SYNC);
}

/** Reads an MPEG transport stream (ISO/IEC 13818-1); `encryption` is that of all samples, where a playlist names one. */
function openTransportStream(bytes: Buffer, encryption: HlsEncryption | undefined): Opened {
  const streams = new Map<number, { readonly type: StreamType; readonly packets: Buffer[][] }>();
  let tablesAt = -1;
  let broken = 0;
  const whole = bytes.length - (bytes.length % PACKET);
  for (let at = 0; at < whole; at += PACKET) {
    const packet = bytes.subarray(at, at + PACKET);
    if (packet[0] !== SYNC) broken += 1;
    const payload = packet[0] === SYNC ? payloadOf(packet) : undefined;
    if (!payload) continue;
    const pid = packet.readUInt16BE(1) & 0x1fff;
    const begins = (packet.readUInt8(1) & 0x40) !== 0;
    if (pid === 0 && begins) tablesAt = programMapOf(payload) ?? tablesAt;
    else if (pid === tablesAt && begins) {
      for (const { id, type } of streamsOf(payload)) {
        if (!streams.has(id) && streams.size < MAX_STREAMS) streams.set(id, { type, packets: [] });
      }
    } else if (begins) streams.get(pid)?.packets.push([pesPayload(payload)]);
    else streams.get(pid)?.packets.at(-1)?.push(payload);
  }
  const problems: Problem[] = [];
  if (broken > 0) {
    const description = `${broken} packets of the transport stream do not begin with their sync byte.`;
    problems.push({ code: 'media_malformed', description });
  }
  if (whole < bytes.length) {
    problems.push({ code: 'media_cut_short', description: 'The transport stream ends within a packet.' });
  }
  const tracks = [...streams].map(([id, { type, packets }]) =>
    trackOf(
      id,
      type,
      packets.map((parts) => Buffer.concat(parts)),
      encryption,
    ),
  );
  if (tracks.every(({ samples }) => samples === 0)) {
    const description = 'The transport stream has no program map with video or audio, or no packets of them.';
    return refused('no_samples', description);
  }
  return { ok: true, value: { container: 'mpegts', tracks, problems } };
}

/** Reads packed audio: frames one behind the other, after ID3 tags (RFC 8216 § 3.4), or a text. Undefined if it is none. */
function openPacked(bytes: Buffer, encryption: HlsEncryption | undefined): Opened | undefined {
  let from = 0;
  while (bytes.toString('latin1', from, from + 3) === 'ID3' && from + 10 <= bytes.length) {
    const size = [6, 7, 8, 9].reduce((sum, at) => (sum << 7) | ((bytes[from + at] ?? 0) & 0x7f), 0);
    from += 10 + size;
  }
  const payload = bytes.subarray(from);
  const type = isText(payload) ? TEXT : STREAM_TYPES[packedType(payload)];
  if (!type) return undefined;
  const tracks = [trackOf(0, type, [payload], encryption)];
  return { ok: true, value: { container: 'packed', tracks, problems: [] } };
}

function packedType(frames: Buffer): number {
  if (readAdtsHeader(frames)) return 15;
  // By bsid.
  if (ac3FrameLength(frames)) return frames.readUInt8(5) >> 3 > 10 ? 135 : 129;
  // Layers, bit rates and frequencies of MPEG audio that there are.
  const header = frames.length < 4 ? 0 : frames.readUInt32BE();
  const isMpeg = header >>> 21 === 0x7ff && (header & 0x60000) !== 0;
  return isMpeg && (header & 0xf000) !== 0xf000 && (header & 0xc00) !== 0xc00 ? 3 : -1;
}

/** WebVTT and TTML next to the media; subtitles are never encrypted like this. Other XML is the error of a server. */
export function isText(body: Buffer): boolean {
  return /^(?:\xef\xbb\xbf)?(?:WEBVTT|(?:<\?xml[\s\S]*)?<(?:\w+:)?tt[\s>])/.test(
    body.toString('latin1', 0, 4096),
  );
}

function payloadOf(packet: Buffer): Buffer | undefined {
  const control = (packet.readUInt8(3) >> 4) & 3;
  if ((control & 1) === 0) return undefined;
  const from = control & 2 ? 5 + packet.readUInt8(4) : 4;
  return from < PACKET ? packet.subarray(from) : undefined;
}

function programMapOf(payload: Buffer): number | undefined {
  const section = sectionOf(payload);
  for (let at = 8; section && at + 4 <= section.length - 4; at += 4) {
    if (section.readUInt16BE(at) !== 0) return section.readUInt16BE(at + 2) & 0x1fff;
  }
  return undefined;
}

function sectionOf(payload: Buffer): Buffer | undefined {
  const section = payload.subarray(1 + (payload[0] ?? 0));
  if (section.length < 12) return undefined;
  const whole = section.subarray(0, 3 + (section.readUInt16BE(1) & 0xfff));
  return whole.length < 12 ? undefined : whole;
}

function streamsOf(payload: Buffer): { id: number; type: StreamType }[] {
  const section = sectionOf(payload);
  if (section?.[0] !== 2) return [];
  const found: { id: number; type: StreamType }[] = [];
  let at = 12 + (section.readUInt16BE(10) & 0xfff);
  while (at + 5 <= section.length - 4) {
    const type = STREAM_TYPES[section.readUInt8(at)];
    if (type) found.push({ id: section.readUInt16BE(at + 1) & 0x1fff, type });
    at += 5 + (section.readUInt16BE(at + 3) & 0xfff);
  }
  return found;
}

function trackOf(
  id: number,
  type: StreamType,
  payloads: readonly Buffer[],
  given: HlsEncryption | undefined,
): MediaTrack {
  // SAMPLE-AES leaves other codecs as they are.
  const isEncrypted = (given !== undefined && type.format !== UNKNOWN) || type.isEncrypted === true;
  const scheme: MediaScheme | undefined = isEncrypted ? 'sample-aes' : undefined;
  const encryption: SampleEncryption | undefined = isEncrypted
    ? { scheme: 'sample-aes', keyId: undefined, iv: ivOf(given), subsamples: undefined, pattern: undefined }
    : undefined;
  const { format } = type;
  const frames = () => (format === UNKNOWN ? payloads : framesOf(Buffer.concat(payloads), format));
  const all = type.kind === 'video' ? picturesOf(payloads) : frames();
  const samples: MediaSample[] = all.map((data) => ({ data, encryption }));
  return {
    id,
    kind: type.kind,
    codec: type.codec === 'avc1' ? avcCodec(samples) : type.codec,
    scheme,
    keyIds: [],
    constantIv: given?.iv,
    samples: samples.length,
    encryptedSamples: isEncrypted ? samples.length : 0,
    seconds: 0,
    content: { format, samples },
  };
}

function pesPayload(packet: Buffer): Buffer {
  if (packet.length < 9 || packet.readUIntBE(0, 3) !== 1) return packet;
  return packet.subarray(9 + packet.readUInt8(8));
}

/** The pictures that begin in the packets; the last NAL unit of one may go on in the next packet. */
function picturesOf(payloads: readonly Buffer[]): Buffer[] {
  const bytes = Buffer.concat(payloads);
  const starts = new Set<number>();
  let [at, start] = [0, -1];
  for (const { length } of payloads) {
    // A start code may begin in the packet before.
    const from = Math.max(0, at - 2);
    if (start < from) start = bytes.indexOf(START_CODE, from);
    if (start < 0) break;
    starts.add(start);
    at += length;
  }
  const all = [...starts, bytes.length];
  return all.slice(1).map((end, index) => bytes.subarray(all[index], end));
}

function framesOf(bytes: Buffer, format: SampleFormat): Buffer[] {
  const frames: Buffer[] = [];
  for (let at = 0; at + 7 <= bytes.length; ) {
    const length = format.codec === 'aac' ? readAdtsHeader(bytes, at)?.length : ac3FrameLength(bytes, at);
    if (length === undefined) {
      const next = bytes.indexOf(format.codec === 'aac' ? 0xff : 0x0b, at + 1);
      if (next < 0) break;
      at = next;
      continue;
    }
    // A frame that goes on in the next segment is not whole.
    if (at + length <= bytes.length) frames.push(bytes.subarray(at, at + length));
    at += length;
  }
  return frames;
}

function avcCodec(samples: readonly MediaSample[]): string {
  for (const { data } of samples.slice(0, 8)) {
    const sequence = nalUnitsOf(data, 0)?.find((nal) => ((nal[0] ?? 0) & 31) === 7);
    if (sequence && sequence.length >= 4) return `avc1.${sequence.toString('hex', 1, 4)}`;
  }
  return 'avc1';
}
