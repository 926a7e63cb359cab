import { readAdtsHeader } from '../../codecs/aac-frame';
import { rbspOf } from '../../codecs/bit-reader';
import { nalUnitsOf } from '../../codecs/nal-units';
import type { SampleFormat } from './judgement';

const BLOCK = 16;
/** Of pictures, one block of ten is encrypted. */
const PERIOD = 10 * BLOCK;
/** NAL units up to this length are clear. */
const SHORT_NAL = 48;
const CLEAR_OF_NAL = 32;
const CLEAR_OF_SOUND = 16;

/**
 * Decrypts a sample by Apple's "MPEG-2 Stream Encryption Format for HTTP Live Streaming". Each NAL unit and
 * each frame begins with the IV. A NAL unit is encrypted with its emulation prevention bytes in place, and
 * then gets such bytes once more; the latter alone are taken out. `decrypt` is AES-128-CBC over whole blocks.
 */
export function decryptSampleAes(
  sample: Buffer,
  format: SampleFormat,
  decrypt: (blocks: Buffer) => Buffer,
): Buffer {
  if (format.codec === 'h264') return decryptPicture(sample, decrypt);
  if (format.codec !== 'aac' && format.codec !== 'ac3') return sample;
  const { from, length } = soundPartOf(sample, format);
  if (length <= 0) return sample;
  const clear = Buffer.from(sample);
  decrypt(sample.subarray(from, from + length)).copy(clear, from);
  return clear;
}

/** Where a frame of sound is encrypted: in whole blocks behind its header. */
function soundPartOf(sample: Buffer, { codec }: SampleFormat): { from: number; length: number } {
  const header = codec === 'aac' ? (readAdtsHeader(sample)?.headerLength ?? 0) : 0;
  const from = header + CLEAR_OF_SOUND;
  return { from, length: sample.length - from - ((sample.length - from) % BLOCK) };
}

export function soundBytesOf(sample: Buffer, format: SampleFormat): Buffer {
  const { from, length } = soundPartOf(sample, format);
  return sample.subarray(from, from + Math.max(0, length));
}

export function encryptedBytesOf(sample: Buffer, format: SampleFormat): number {
  if (format.codec !== 'h264') return Math.max(0, sample.length - 25);
  return (nalUnitsOf(sample, 0) ?? []).reduce(
    (sum, nal) => sum + (isEncryptedNal(nal) ? Math.ceil((nal.length - SHORT_NAL) / PERIOD) * BLOCK : 0),
    0,
  );
}

function decryptPicture(sample: Buffer, decrypt: (blocks: Buffer) => Buffer): Buffer {
  const parts: Buffer[] = [];
  for (const nal of nalUnitsOf(sample, 0) ?? []) {
    parts.push(START_CODE, isEncryptedNal(nal) ? decryptNal(rbspOf(nal), decrypt) : nal);
  }
  return Buffer.concat(parts);
}

const START_CODE = Buffer.from([0, 0, 0, 1]);

/** Slices are encrypted, if they are long enough; and of them the length counts with emulation prevention bytes. */
function isEncryptedNal(nal: Buffer): boolean {
  const type = (nal[0] ?? 0) & 31;
  return (type === 1 || type === 5) && nal.length > SHORT_NAL;
}

function decryptNal(nal: Buffer, decrypt: (blocks: Buffer) => Buffer): Buffer {
  const offsets: number[] = [];
  // A last block that ends with the NAL unit is clear.
  for (let at = CLEAR_OF_NAL; nal.length - at > BLOCK; at += PERIOD) offsets.push(at);
  const plain = decrypt(Buffer.concat(offsets.map((at) => nal.subarray(at, at + BLOCK))));
  const clear = Buffer.from(nal);
  offsets.forEach((at, index) => {
    plain.copy(clear, at, index * BLOCK, (index + 1) * BLOCK);
  });
  return clear;
}
