/** A box of the ISO base media file format (ISO/IEC 14496-12 § 4.2), as far as its bytes are there. */
export interface Mp4Box {
  readonly type: string;
  /** With its header. */
  readonly bytes: Buffer;
  readonly body: Buffer;
}

/** Before what a full box holds stand its version and flags. */
export const FULL_BOX = 4;

/** The boxes one after another. A size that is none, or beyond the end, is taken for "up to the end". */
export function boxesIn(bytes: Buffer): Mp4Box[] {
  const found: Mp4Box[] = [];
  for (let at = 0; at + 8 <= bytes.length; ) {
    const { headerLength, length } = readBoxHeader(bytes.subarray(at));
    const end = length === undefined ? bytes.length : Math.min(at + length, bytes.length);
    found.push({
      type: bytes.toString('latin1', at + 4, at + 8),
      bytes: bytes.subarray(at, end),
      body: bytes.subarray(Math.min(at + headerLength, end), end),
    });
    at = end;
  }
  return found;
}

/** The boxes at the end of a path below some boxes. */
export function below(boxes: readonly Mp4Box[], path: readonly string[]): Mp4Box[] {
  return path.reduce<Mp4Box[]>(
    (found, step) => found.flatMap(({ body }) => boxesIn(body).filter(({ type }) => type === step)),
    [...boxes],
  );
}

/** The size of a box by its first 8 or 16 bytes; `length` is undefined where the box goes on to the end. */
export function readBoxHeader(bytes: Buffer): { headerLength: number; length: number | undefined } {
  const announced = bytes.readUInt32BE(0);
  if (announced !== 1) return { headerLength: 8, length: announced < 8 ? undefined : announced };
  if (bytes.length < 16) return { headerLength: 8, length: undefined };
  const large = Number(bytes.readBigUInt64BE(8));
  return { headerLength: 16, length: large < 16 || !Number.isSafeInteger(large) ? undefined : large };
}
