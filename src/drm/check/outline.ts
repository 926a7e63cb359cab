import { boxesIn, type Mp4Box, readBoxHeader } from './boxes';

/** Bytes that are read once, from the first to the last. Both reject when the source fails. */
export interface ForwardReader {
  /** The next bytes; fewer than asked for at the end alone. */
  read(length: number): Promise<Buffer>;
  skip(length: number): Promise<number>;
}

interface MediaOutline {
  readonly bytes: Buffer;
  readonly isWhole: boolean;
}

/** What is kept of a box: all of it, its type, or what its children say. */
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
/** The tables of a day in one file have half of it. */
const MAX_INDEX = 64 * 1024 * 1024;
/** A day of fragments of two seconds has a tenth of it. */
const MAX_BOXES = 1_000_000;

/** Reads the boxes of an mp4 file or segment that say how it is protected, as a small file. Bounded, whatever sizes say. */
export async function outlineMedia(reader: ForwardReader, mostBoxes = MAX_BOXES): Promise<MediaOutline> {
  // A day of fragments has one key, or some dozens: each is kept once.
  const kept = new Map<string, Buffer>();
  let size = 0;
  for (let boxes = 0; boxes < mostBoxes && size <= MAX_BYTES; boxes += 1) {
    const head = await reader.read(8);
    if (head.length < 8) return { bytes: Buffer.concat([...kept.values()]), isWhole: true };
    const isLarge = head.readUInt32BE(0) === 1;
    const header = isLarge ? Buffer.concat([head, await reader.read(8)]) : head;
    const { headerLength, length = Number.POSITIVE_INFINITY } = readBoxHeader(header);
    const type = head.toString('latin1', 4, 8);
    const step = STEPS[type];
    const isPassed = step === undefined || step === 'sign';
    const body = await reader.read(isPassed ? 0 : Math.min(length - headerLength, MAX_INDEX));
    const rest = length - headerLength - body.length;
    if (isPassed || body.length === MAX_INDEX) await reader.skip(rest);
    for (const box of outlineOf({ type, bytes: Buffer.concat([header, body]), body }, step)) {
      const content = box.toString('latin1');
      if (kept.has(content)) continue;
      size += box.length;
      if (size <= MAX_BYTES) kept.set(content, box);
    }
  }
  return { bytes: Buffer.concat([...kept.values()]), isWhole: false };
}

/** What is kept of a box; one that is cut is known by its size, which stays. */
function outlineOf({ type, bytes, body }: Mp4Box, step: Step | undefined): Buffer[] {
  if (step === undefined) return [];
  if (step === 'keep') return [bytes.subarray(0, MAX_OF_BOX)];
  const children =
    step === 'sign' ? [] : boxesIn(body).flatMap((child) => outlineOf(child, step[child.type]));
  const size = Buffer.alloc(4);
  size.writeUInt32BE(8 + children.reduce((sum, { length }) => sum + length, 0));
  return [Buffer.concat([size, Buffer.from(type, 'latin1'), ...children])];
}

/** Elements that only name segments; a manifest of a day has them by the ten thousand. */
const SEGMENTS = /<(?:[\w-]{1,20}:)?(?:S|SegmentURL|c)\b[^<>]{0,2000}\/\s*>\s*/g;
/** Lines of a playlist that name keys, or the playlists behind it. */
const KEPT_LINE =
  /^#EXTM3U|^#EXT-X-(?:SESSION-)?KEY:|^#EXT-X-(?:STREAM-INF|MEDIA|I-FRAME-STREAM-INF|MAP):|^#EXT-X-TARGETDURATION/;
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
