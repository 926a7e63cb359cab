/** In words of 16 bits at 48 kHz, by half of frmsizecod (table 4.13). */
const WORDS_48 = [
  64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024, 1152, 1280,
];
const WORDS_44 = [
  69, 87, 104, 121, 139, 174, 208, 243, 278, 348, 417, 487, 557, 696, 835, 975, 1114, 1253, 1393,
];

/** The length in bytes, with the sync word, of a frame of AC-3 or E-AC-3; undefined for other bytes. */
export function ac3FrameLength(bytes: Buffer, at = 0): number | undefined {
  if (at + 6 > bytes.length || bytes.readUInt16BE(at) !== 0x0b77) return undefined;
  const version = bytes.readUInt8(at + 5) >> 3;
  if (version > 10 && version <= 16) return 2 * ((bytes.readUInt16BE(at + 2) & 0x7ff) + 1);
  const frequency = bytes.readUInt8(at + 4) >> 6;
  const size = bytes.readUInt8(at + 4) & 63;
  const words = [
    WORDS_48[size >> 1],
    (WORDS_44[size >> 1] ?? 0) + (size & 1),
    ((WORDS_48[size >> 1] ?? 0) * 3) / 2,
  ][frequency];
  return version <= 8 && words !== undefined && size < 38 ? 2 * words : undefined;
}

/**
 * Whether frames one behind the other have correct checksums (CRC-16 of 0x8005, § 6.1.7.2): of AC-3 over the whole frame
 * behind the sync word, as crc1 makes that of its first part zero, and crc2 that of all; of E-AC-3 likewise.
 */
export function hasRightChecksums(bytes: Buffer): boolean {
  let at = 0;
  while (at < bytes.length) {
    const length = ac3FrameLength(bytes, at);
    if (length === undefined || at + length > bytes.length) return false;
    if (crc16(bytes.subarray(at + 2, at + length)) !== 0) return false;
    at += length;
  }
  return at > 0;
}

const CRC_TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x8000 ? ((crc << 1) ^ 0x8005) & 0xffff : crc << 1;
  return crc;
});

function crc16(bytes: Buffer): number {
  let crc = 0;
  for (const byte of bytes) crc = ((crc << 8) & 0xffff) ^ (CRC_TABLE[(crc >> 8) ^ byte] ?? 0);
  return crc;
}
