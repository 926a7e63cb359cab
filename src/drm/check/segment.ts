import { below, boxesIn, FULL_BOX, type Mp4Box } from './mp4-boxes';
import { cipherOf, type Protection } from './named';
import type { Report } from './report';

/** What is known of how a segment, or a whole file, is protected. */
export interface Segment {
  /** Whether it has a `moov`, which says how its tracks are encrypted. */
  readonly hasMovie: boolean;
  readonly hasMedia: boolean;
  /** Clear tracks are left out. */
  readonly protections: readonly Protection[];
  /** The `pssh` boxes of its `moov`, and those beside it. */
  readonly boxes: readonly Buffer[];
  /** Those fragments that bring keys or boxes, each once. */
  readonly fragments: readonly Fragment[];
  readonly hasFragments: boolean;
  /** Whether samples of a fragment are encrypted, as its `senc` tells. */
  readonly hasEncryptedSamples: boolean;
}

export interface Fragment {
  /** The keys that its sample groups (`seig`) put in place of the track's. */
  readonly keyIds: readonly Buffer[];
  readonly boxes: readonly Buffer[];
}

/** No segment has as many. */
const MAX_ENTRIES = 100;
/** From a track down to what its samples are. */
const TO_SAMPLES = ['trak', 'mdia', 'minf', 'stbl'];

/** Reads how an init segment, a media segment or a whole file is protected (ISO/IEC 23001-7). */
export function readSegment(report: Report, bytes: Buffer): Segment {
  const top = boxesIn(bytes);
  const movies = top.filter(({ type }) => type === 'moov');
  const fragments = top.filter(({ type }) => type === 'moof');
  const psshIn = (box: Mp4Box) => below([box], ['pssh']).map((pssh) => pssh.bytes);
  const groups = below(movies, [...TO_SAMPLES, 'sgpd']).flatMap(readKeyGroup);
  return {
    hasMovie: movies.length > 0,
    hasMedia: fragments.length > 0 || top.some(({ type }) => type === 'mdat'),
    protections: below(movies, [...TO_SAMPLES, 'stsd'])
      .flatMap(({ body }) => boxesIn(body.subarray(FULL_BOX + 4)))
      .slice(0, MAX_ENTRIES)
      .flatMap((entry) => protectionOf(report, entry)),
    boxes: [
      ...movies.flatMap(psshIn),
      ...top.filter(({ type }) => type === 'pssh').map((pssh) => pssh.bytes),
    ],
    fragments: distinct([
      { keyIds: groups, boxes: [] },
      ...fragments.map((fragment) => ({
        keyIds: below([fragment], ['traf', 'sgpd']).flatMap(readKeyGroup),
        boxes: psshIn(fragment),
      })),
    ]),
    hasFragments: fragments.length > 0,
    hasEncryptedSamples: below(fragments, ['traf', 'senc']).length > 0,
  };
}

function distinct(fragments: readonly Fragment[]): Fragment[] {
  const found = new Map<string, Fragment>();
  for (const { keyIds, boxes } of fragments) {
    const key = [...keyIds, ...boxes].map((bytes) => bytes.toString('base64')).join();
    if (key !== '' && !found.has(key)) found.set(key, { keyIds, boxes });
  }
  return [...found.values()];
}

function protectionOf(report: Report, { type, body }: Mp4Box): Protection[] {
  // How much of its own stands before a sample entry's boxes differs between picture, sound and text.
  const at = body.indexOf('sinf') - 4;
  const info = boxesIn(at < 0 ? Buffer.alloc(0) : body.subarray(at)).filter((box) => box.type === 'sinf');
  const schemeBox = below(info, ['schm'])[0]?.body;
  const scheme = schemeBox && /^[\x21-\x7e]{4}/.exec(schemeBox.toString('latin1', FULL_BOX))?.[0];
  const track = below(info, ['schi', 'tenc'])[0]?.body;
  if (track && track.length >= FULL_BOX + 20) {
    const isProtected = track[FULL_BOX + 2] === 1;
    return [{ scheme, keyId: isProtected ? track.subarray(FULL_BOX + 4, FULL_BOX + 20) : undefined }];
  }
  if (/^enc[avstu]$/.test(type) && (scheme === undefined || cipherOf(scheme))) {
    const sentence =
      'has an encrypted track without a tenc box that names its key id; no player can decrypt it';
    report.error('no_tenc_box', 'The segment', sentence);
  }
  return scheme === undefined ? [] : [{ scheme, keyId: undefined }];
}

/** The key ids of a sample group description of the type `seig` (ISO/IEC 23001-7 § 6): a box `sgpd`. */
function readKeyGroup({ body }: Mp4Box): Buffer[] {
  if (body.length < 16 || body.toString('latin1', 4, 8) !== 'seig') return [];
  const version = body.readUInt8(0);
  const fixed = version === 1 ? body.readUInt32BE(8) : 0;
  const counted = version === 0 ? 8 : 12;
  const count = Math.min(body.readUInt32BE(counted), MAX_ENTRIES);
  const keyIds: Buffer[] = [];
  for (let at = counted + 4; keyIds.length < count; ) {
    const hasLength = version === 1 && fixed === 0;
    const entry = body.subarray(hasLength ? at + 4 : at);
    if (entry.length < 20) break;
    const [, , isProtected, ivLength] = entry;
    // Entries of clear samples name no key, and yet count.
    keyIds.push(isProtected === 1 ? entry.subarray(4, 20) : Buffer.alloc(0));
    const own = isProtected === 1 && ivLength === 0 ? 21 + (entry[20] ?? 0) : 20;
    at += fixed || (hasLength ? 4 + Math.max(20, body.readUInt32BE(at)) : own);
  }
  return keyIds.filter(({ length }) => length > 0);
}
