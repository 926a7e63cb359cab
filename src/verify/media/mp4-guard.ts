import type { Checked } from '../../drm/bytes';
import type { Problem } from '../../drm/finding';

/** The boxes that are read, and the parents that they count in. Others are passed over. */
const READ: Readonly<Record<string, readonly string[]>> = {
  '': ['ftyp', 'styp', 'moov', 'moof', 'mdat'],
  moov: ['mvhd', 'trak', 'mvex'],
  mvex: ['trex'],
  trak: ['tkhd', 'mdia'],
  mdia: ['mdhd', 'hdlr', 'minf'],
  minf: ['stbl'],
  stbl: ['stsd', 'stts', 'stsc', 'stsz', 'stco', 'co64', 'saiz', 'saio', 'sbgp', 'sgpd', 'senc'],
  moof: ['mfhd', 'traf'],
  traf: ['tfhd', 'tfdt', 'trun', 'saiz', 'saio', 'sbgp', 'sgpd', 'senc'],
};

const MAX_BOXES = 50_000;
/** Ten minutes of sound have 30,000, and half an hour in one file 140,000; each takes about 500 bytes of memory. */
const MAX_SAMPLES = 200_000;

/**
 * A copy that is safe for a trusting parser: no box reaches beyond its parent, tables have the entries that
 * they count, and other boxes are hidden (as `free`); so are sample entries, as their own boxes have tables.
 */
export function guardMp4(bytes: Buffer): Checked<{ safe: ArrayBuffer; isCutShort: boolean }> {
  const safe = new Uint8Array(bytes).buffer;
  const copy = Buffer.from(safe);
  try {
    const guard = new Guard(copy);
    guard.walk('', 0, copy.length);
    return { ok: true, value: { safe, isCutShort: guard.isCutShort } };
  } catch (error) {
    if (error instanceof Refusal) return { ok: false, problem: error.problem };
    throw error;
  }
}

class Refusal extends Error {
  constructor(readonly problem: Problem) {
    super(problem.code);
  }
}

function malformed(description: string): Refusal {
  return new Refusal({ code: 'media_malformed', description });
}

function tooLarge(description: string): Refusal {
  return new Refusal({ code: 'media_too_large', description });
}

function tooShort(type: string): Refusal {
  return malformed(`A box ${type} is too short for the content that it declares.`);
}

interface TableHead {
  readonly version: number;
  readonly flags: number;
  /** A number behind the header of the box; 0 beyond its end. */
  field(offset: number, bytes: number): number;
}

/** Where a table counts its entries, the bytes of each, and those of fields before them. */
type Layout = readonly [counted: number, each: number, more?: number];

const ones = (bits: number) => bits.toString(2).replaceAll('0', '').length;
const behindType = (flags: number) => (flags & 1 ? 12 : 4);

const TABLES: Readonly<Record<string, (head: TableHead) => Layout>> = {
  stsd: () => [4, 0],
  stts: () => [4, 8],
  stsc: () => [4, 12],
  stco: () => [4, 4],
  co64: () => [4, 8],
  stsz: ({ field }) => [8, field(4, 4) === 0 ? 4 : 0],
  trun: ({ flags }) => [4, 4 * ones(flags & 0xf00), 4 * ones(flags & 5)],
  saiz: ({ flags, field }) => [behindType(flags) + 1, field(behindType(flags), 1) === 0 ? 1 : 0],
  saio: ({ flags, version }) => [behindType(flags), version === 0 ? 4 : 8],
  sbgp: ({ version }) => [version === 1 ? 12 : 8, 8],
};
const COUNTED_AS: Readonly<Record<string, 'samples' | 'saiz'>> = {
  trun: 'samples',
  stsz: 'samples',
  saiz: 'saiz',
};

class Guard {
  isCutShort = false;
  #boxes = 0;
  readonly #counts = { samples: 0, saiz: 0 };

  constructor(private readonly bytes: Buffer) {}

  walk(parent: string, start: number, end: number): void {
    for (let at = start; at < end; ) {
      if (end - at < 8) {
        // Some writers leave a few zeros at the end.
        if (this.bytes.subarray(at, end).every((byte) => byte === 0)) return;
        throw malformed(`The ${nameOf(parent)} ends within a box.`);
      }
      this.#boxes += 1;
      if (this.#boxes > MAX_BOXES) throw tooLarge(`The media have more than ${MAX_BOXES} boxes.`);
      at = this.#box(parent, at, end);
    }
  }

  #box(parent: string, at: number, end: number): number {
    const type = this.bytes.toString('latin1', at + 4, at + 8);
    const announced = this.bytes.readUInt32BE(at);
    const isLarge = announced === 1 && end - at >= 16;
    const header = isLarge ? 16 : 8;
    const isOpen = announced === 0 && parent === '';
    const size = isOpen ? end - at : isLarge ? Number(this.bytes.readBigUInt64BE(at + 8)) : announced;
    // The parser takes a size of 0, up to the end of the file, for mdat alone.
    if (isOpen) this.bytes.writeUInt32BE(size, at);
    if (size < header) throw malformed(`A box ${shown(type)} says that it is ${size} bytes long.`);
    let last = at + size;
    if (last > end) {
      if (parent !== '' || type !== 'mdat')
        throw malformed(`A box ${shown(type)} reaches beyond the end of the ${nameOf(parent)}.`);
      this.isCutShort = true;
      last = end;
      this.bytes.writeUInt32BE(last - at, at);
      if (isLarge) throw malformed('The box mdat reaches beyond the end of the media.');
    }
    if (!READ[parent]?.includes(type)) this.bytes.write('free', at + 4, 'latin1');
    else if (type in READ) this.walk(type, at + header, last);
    else this.#table(type, at, at + header, last);
    return last;
  }

  #table(type: string, box: number, at: number, end: number): void {
    const field = (offset: number, bytes: number) =>
      at + offset + bytes <= end ? this.bytes.readUIntBE(at + offset, bytes) : 0;
    const version = field(0, 1);
    if (type === 'sgpd') this.#groups(box, at, end, version);
    const layout = TABLES[type]?.({ version, flags: field(1, 3), field });
    if (!layout) return;
    const [counted, each, more = 0] = layout;
    const entries = field(counted, 4);
    const of = COUNTED_AS[type];
    if (of) this.#counts[of] += entries;
    if (Math.max(...Object.values(this.#counts)) > MAX_SAMPLES)
      throw tooLarge(`The media say that they have more than ${MAX_SAMPLES} samples.`);
    if (counted + 4 + more + each * entries > end - at) throw tooShort(type);
    if (type === 'stsd') this.#entries(entries, at + 8, end);
  }

  #entries(count: number, start: number, end: number): void {
    let at = start;
    for (let index = 0; index < count; index += 1) {
      if (end - at < 16) throw tooShort('stsd');
      const size = this.bytes.readUInt32BE(at);
      if (size < 16 || at + size > end) throw malformed('A sample entry reaches beyond its box stsd.');
      this.bytes.write('none', at + 4, 'latin1');
      at += size;
    }
  }

  #groups(box: number, at: number, end: number, version: number): void {
    const isKeys = this.bytes.toString('latin1', at + 4, at + 8) === 'seig';
    const counted = version === 0 ? 8 : 12;
    if (!isKeys) this.bytes.write('free', box + 4, 'latin1');
    else if (end - at < 16 || this.bytes.readUInt32BE(at + counted) * 20 > end - at) throw tooShort('sgpd');
  }
}

function nameOf(parent: string): string {
  return parent === '' ? 'media' : `box ${parent}`;
}

function shown(type: string): string {
  return /^[\x21-\x7e]{4}$/.test(type) ? type : `0x${Buffer.from(type, 'latin1').toString('hex')}`;
}
