import { boxesIn, FULL_BOX } from '../../drm/check/boxes';
import type { Resource } from '../fetches';

interface IndexReference {
  readonly resource: Resource & { readonly range: { readonly first: number; readonly last: number } };
  readonly isIndex: boolean;
  readonly seconds: number;
}

interface SegmentIndex {
  /** Where it stands in the file; what is before it is the init segment. */
  readonly start: number;
  readonly references: readonly IndexReference[];
}

/** No segment index of a day has as many. */
const MAX_REFERENCES = 65_535;

/** Reads the first whole `sidx` box (ISO/IEC 14496-12 § 8.16.3) in bytes that stand at `at` in their file. */
export function readSegmentIndex(bytes: Buffer, url: string, at: number): SegmentIndex | undefined {
  let start = at;
  for (const { type, bytes: whole, body } of boxesIn(bytes)) {
    const references = type === 'sidx' ? referencesOf(body, url, start + whole.length) : undefined;
    if (references) return { start, references };
    start += whole.length;
  }
  return undefined;
}

function referencesOf(body: Buffer, url: string, end: number): IndexReference[] | undefined {
  const isLong = body[0] === 1;
  const fixed = FULL_BOX + 8 + (isLong ? 16 : 8);
  if (body.length < fixed + 4) return undefined;
  const timescale = body.readUInt32BE(FULL_BOX + 4) || 1;
  const offset = isLong ? Number(body.readBigUInt64BE(FULL_BOX + 16)) : body.readUInt32BE(FULL_BOX + 12);
  const count = Math.min(body.readUInt16BE(fixed + 2), MAX_REFERENCES);
  if (body.length < fixed + 4 + 12 * count) return undefined;
  let first = end + offset;
  return Array.from({ length: count }, (_, index) => {
    const entry = fixed + 4 + 12 * index;
    const word = body.readUInt32BE(entry);
    const size = word & 0x7fffffff;
    const range = { first, last: first + Math.max(size, 1) - 1 };
    first += size;
    return {
      resource: { url, range },
      isIndex: word >>> 31 === 1,
      seconds: body.readUInt32BE(entry + 4) / timescale,
    };
  });
}
