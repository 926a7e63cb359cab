import { readBoxHeader } from './boxes';

/** Bytes that are read once, from the first to the last. Both reject when the source fails. */
export interface ForwardReader {
  /** The next bytes; fewer only at the end. */
  read(length: number): Promise<Buffer>;
  skip(length: number): Promise<number>;
}

/** The handling of a box: read all of it, keep only its header, or read its children. */
type Step = 'keep' | 'sign' | Steps;
interface Steps {
  readonly [type: string]: Step;
}

const TRACK: Steps = { mdia: { minf: { stbl: { stsd: 'keep', sgpd: 'keep' } } } };
const STEPS: Steps = {
  ftyp: 'keep',
  styp: 'keep',
  pssh: 'keep',
  mdat: 'sign',
  moov: { pssh: 'keep', trak: TRACK },
  moof: { pssh: 'keep', traf: { sgpd: 'keep', senc: 'sign' } },
};

/** A box that is kept has rarely a tenth of it. */
const MAX_OF_BOX = 64 * 1024;
const MAX_BYTES = 512 * 1024;
/** A day of fragments of two seconds has half of it, with all boxes in them. */
const MAX_BOXES = 1_000_000;

/** Reads the boxes of an mp4 file or segment that say how it is protected, as a small file. Bounded for any sizes. */
export async function outlineMedia(reader: ForwardReader, mostBoxes = MAX_BOXES) {
  const outliner = new Outliner(reader, mostBoxes);
  const boxes = await outliner.file();
  return { bytes: Buffer.concat(boxes), isWhole: !outliner.isCut };
}

class Outliner {
  isCut = false;
  #boxes = 0;
  #bytes = 0;

  constructor(
    private readonly reader: ForwardReader,
    private readonly mostBoxes: number,
  ) {}

  /** The kept boxes of a whole file. A day of fragments has one key, or some dozens: each is kept once. */
  async file(): Promise<Buffer[]> {
    const seen = new Set<string>();
    return this.#boxesIn(STEPS, Number.POSITIVE_INFINITY, (box) => {
      const content = box.toString('latin1');
      const isNew = !seen.has(content);
      if (isNew) seen.add(content);
      else this.#bytes -= box.length;
      return isNew;
    });
  }

  async #boxesIn(steps: Steps, room: number, isKept: (box: Buffer) => boolean): Promise<Buffer[]> {
    const kept: Buffer[] = [];
    let left = room;
    while (left >= 8 && !this.isCut) {
      const head = await this.reader.read(8);
      if (head.length < 8) break;
      const isLarge = head.readUInt32BE(0) === 1 && left >= 16;
      const header = isLarge ? Buffer.concat([head, await this.reader.read(8)]) : head;
      const { headerLength, length = left } = readBoxHeader(header);
      const inside = Math.max(0, Math.min(length, left) - headerLength);
      left -= headerLength + inside;
      this.#boxes += 1;
      const box = await this.#box(steps[head.toString('latin1', 4, 8)], header, inside);
      if (box && isKept(box)) kept.push(box);
      this.isCut ||= this.#boxes >= this.mostBoxes || this.#bytes > MAX_BYTES;
    }
    if (Number.isFinite(left) && !this.isCut) await this.reader.skip(left);
    return kept;
  }

  async #box(step: Step | undefined, header: Buffer, inside: number): Promise<Buffer | undefined> {
    const type = header.subarray(4, 8);
    if (typeof step === 'object') {
      this.#bytes += 8;
      return boxOf(type, await this.#boxesIn(step, inside, () => true));
    }
    if (step !== 'keep') {
      await this.reader.skip(inside);
      if (step === 'sign') this.#bytes += 8;
      return step === 'sign' ? boxOf(type, []) : undefined;
    }
    const body = await this.reader.read(Math.min(inside, MAX_OF_BOX));
    this.#bytes += 8 + body.length;
    if (body.length === inside) return boxOf(type, [body]);
    // Kept with its declared size, which shows that it was cut.
    if (body.length === MAX_OF_BOX) await this.reader.skip(inside - body.length);
    return Buffer.concat([header, body]);
  }
}

function boxOf(type: Buffer, parts: readonly Buffer[]): Buffer {
  const size = Buffer.alloc(4);
  size.writeUInt32BE(8 + parts.reduce((sum, { length }) => sum + length, 0));
  return Buffer.concat([size, type, ...parts]);
}

/** Elements that only name segments; a manifest of a day has them by the ten thousand. */
const SEGMENTS = /<(?:[\w-]{1,20}:)?(?:S|SegmentURL|c)\b[^<>]{0,2000}\/\s*>\s*/g;
const KEPT_LINE =
  /^#EXTM3U|^#EXT-X-(?:SESSION-)?KEY:|^#EXT-X-(?:STREAM-INF|MEDIA|I-FRAME-STREAM-INF|MAP|VERSION|DEFINE):|^#EXT-X-TARGETDURATION/;
const BEFORE_URI = /^#EXT-X-STREAM-INF:/;

export function beginsAsManifest(text: string): boolean {
  return /^\ufeff?\s*(?:#EXTM3U|<)/.test(text);
}

export function outlineManifest(text: string): string {
  if (!/^\ufeff?\s*#/.test(text)) return text.replaceAll(SEGMENTS, '');
  const kept: string[] = [];
  const keys = new Set<string>();
  let takesUri = false;
  for (const line of text.replace(/^\ufeff/, '').split(/\r?\n/)) {
    const own = line.trim();
    const isUri = own !== '' && !own.startsWith('#');
    if (isUri ? takesUri : KEPT_LINE.test(own) && !keys.has(own)) kept.push(`${own}\n`);
    takesUri = BEFORE_URI.test(own) || (takesUri && !isUri);
    if (!takesUri) keys.add(own);
  }
  return kept.join('');
}
