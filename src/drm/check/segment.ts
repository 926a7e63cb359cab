import { isZero } from '../bytes';
import type { Subject } from '../finding';
import { below, boxesIn, describeBoxList, FULL_BOX, type Mp4Box } from './boxes';
import {
  cipherOf,
  compareBoxes,
  compareTrack,
  describeProtections,
  joinSignalling,
  type KeySignallingAt,
  type Protection,
} from './protection';
import type { CheckKind, Report } from './report';
import { readKeyGroups, readTrackEncryption } from './sample-protection';
import { keyIdField } from './values';

const THE_SEGMENT: Subject = { called: 'The segment' };
/** Fragments of one key count as one; the keys of a whole day are not needed. */
const MAX_FRAGMENTS = 10;

/** The types by which a segment or a file of media begins, with a size that one may have. */
const FIRST_TYPE = /^(?:ftyp|styp|moov|moof|sidx|emsg|prft|pdin|mdat|free|skip|wide)$/;

export function looksLikeSegment(bytes: Buffer): boolean {
  return FIRST_TYPE.test(bytes.toString('latin1', 4, 8)) && (bytes[0] ?? 0) < 0x20;
}

/** Two packets of it. */
export function looksLikeTransportStream(bytes: Buffer): boolean {
  return bytes[0] === 0x47 && bytes[188] === 0x47;
}

export function describeSegment(report: Report, bytes: Buffer): CheckKind {
  const segment = readSegment(report, bytes);
  const { protections, hasMovie, hasMedia } = segment;
  const fragments = segment.fragments.slice(0, MAX_FRAGMENTS);
  const all = byContent([...segment.boxes, ...fragments.flatMap(({ boxes }) => boxes)]);
  const named = describeBoxList(report, [...all.values()]);
  const contents = [...all.keys()];
  const namedOf = (boxes: readonly Buffer[]) => {
    const own = byContent(boxes);
    return named.filter((_, index) => own.has(contents[index] ?? ''));
  };
  const ofMovie = namedOf(segment.boxes);
  const rotates = findRotation(report, segment, ofMovie);
  compareBoxes(report, ofMovie, protections);
  describeProtections(report, protections, named, { rotates, hasAllBoxes: true });
  fragments.forEach(({ keyIds, boxes }, index) => {
    const at = fragments.length > 1 ? `fragment[${index}]` : 'fragment';
    const own = joinSignalling(namedOf(boxes));
    describeFragment(report, keyIds, { at, ...(own.keyIds.length > 0 ? own : joinSignalling(ofMovie)) });
  });
  if (segment.fragments.length > fragments.length) {
    const note = `the first ${MAX_FRAGMENTS} are shown`;
    report.field('fragments', `${segment.fragments.length} with keys of their own`, note);
  }
  reportProtection(report, segment, named, rotates);
  if (!hasMovie) return 'media_segment';
  return hasMedia ? 'media_file' : 'init_segment';
}

/** Whether fragments have the keys; an init segment without a key and a box of one can be meant for that only. */
function findRotation(report: Report, segment: Segment, ofMovie: readonly KeySignallingAt[]): boolean {
  const isProven = segment.fragments.some(({ keyIds }) => keyIds.length > 0);
  const ofTracks = segment.protections.flatMap(({ keyId }) => keyId ?? []);
  const isUnnamed =
    ofTracks.length > 0 &&
    ofTracks.every(isZero) &&
    !segment.hasFragments &&
    joinSignalling(ofMovie).keyIds.length === 0;
  // With the IV of a key, it is for FairPlay, whose key has no id, as of nginx-vod-module.
  const isMeant = isUnnamed && !segment.protections.some(({ hasIv }) => hasIv);
  if (isProven || isMeant) report.claim({ of: 'rotation', at: 'key_rotation', isProven });
  if (isProven) report.field('key_rotation', 'yes', 'the fragments have their own keys (seig)');
  else if (isMeant)
    report.field('key_rotation', 'expected', 'the init segment has no key; check a fragment, too');
  return isProven || isUnnamed;
}

function describeFragment(report: Report, keyIds: readonly Buffer[], boxes: KeySignallingAt): void {
  keyIds.forEach((keyId, index) => {
    const name = `${boxes.at}.key_id${keyIds.length > 1 ? `[${index}]` : ''}`;
    keyIdField(report, name, keyId);
    report.claim({ of: 'track', at: name, scheme: undefined, keyId });
    if (boxes.keyIds.length > 0) compareTrack(report, name, keyId, boxes, 'error');
  });
}

function reportProtection(
  report: Report,
  segment: Segment,
  named: readonly KeySignallingAt[],
  rotates: boolean,
): void {
  const { protections, hasMovie, hasEncryptedSamples, fragments } = segment;
  if (!hasMovie) {
    if (fragments.length > 0) return;
    report.field('protection', hasEncryptedSamples ? 'encrypted samples' : 'not stated here');
    const sentence = 'has no moov box, which says how it is encrypted; check its init segment, too';
    report.warning('no_init_segment', THE_SEGMENT, sentence);
  } else if (protections.length === 0) {
    report.claim({ of: 'clear', at: 'protection' });
    const sentence = `has ${named.length > 0 ? 'pssh boxes, but no encrypted track' : 'no encrypted track and no pssh box'}: it is not protected`;
    report.warning('not_protected', segment.hasMedia ? { called: 'The file' } : THE_SEGMENT, sentence);
  } else if (named.length === 0 && !rotates) reportWithoutBoxes(report, protections);
}

/** FairPlay's key stands in the playlist: a segment for Apple's players alone has no box. */
function reportWithoutBoxes(report: Report, protections: readonly Protection[]): void {
  const note = 'right for FairPlay; for Widevine and PlayReady the manifest must have the boxes';
  const sentence = 'holds no pssh box; its tracks are encrypted, and the manifest must have the boxes';
  if (protections.every(({ scheme }) => scheme === 'cbcs'))
    report.field('protection', 'cbcs without a pssh box', note);
  else report.warning('no_pssh_box', THE_SEGMENT, sentence);
}

/** Each box once: fragments of one key repeat theirs. */
function byContent(boxes: readonly Buffer[]): Map<string, Buffer> {
  return new Map(boxes.map((box) => [box.toString('latin1'), box]));
}

interface Segment {
  readonly hasMovie: boolean;
  readonly hasMedia: boolean;
  /** Clear tracks are left out. */
  readonly protections: readonly Protection[];
  readonly boxes: readonly Buffer[];
  readonly fragments: readonly Fragment[];
  readonly hasFragments: boolean;
  readonly hasEncryptedSamples: boolean;
}

interface Fragment {
  /** The keys that its sample groups (`seig`) put in place of the track's. */
  readonly keyIds: readonly Buffer[];
  readonly boxes: readonly Buffer[];
}

/** No segment has as many. */
const MAX_ENTRIES = 100;
const TO_SAMPLES = ['trak', 'mdia', 'minf', 'stbl'];

function readSegment(report: Report, bytes: Buffer): Segment {
  const top = boxesIn(bytes);
  const movies = top.filter(({ type }) => type === 'moov');
  const fragments = top.filter(({ type }) => type === 'moof');
  const psshIn = (box: Mp4Box) => below([box], ['pssh']).map((pssh) => pssh.bytes);
  const groups = below(movies, [...TO_SAMPLES, 'sgpd']).flatMap(keyIdsOfGroups);
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
        keyIds: below([fragment], ['traf', 'sgpd']).flatMap(keyIdsOfGroups),
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
  // The bytes before a sample entry's boxes differ between picture, sound and text.
  const at = body.indexOf('sinf') - 4;
  const info = boxesIn(at < 0 ? Buffer.alloc(0) : body.subarray(at)).filter((box) => box.type === 'sinf');
  const schemeBox = below(info, ['schm'])[0]?.body;
  const scheme = schemeBox && /^[\x21-\x7e]{4}/.exec(schemeBox.toString('latin1', FULL_BOX))?.[0];
  const tenc = below(info, ['schi', 'tenc'])[0]?.body;
  const track = tenc && readTrackEncryption(tenc);
  if (track) {
    const hasIv = track.constantIv !== undefined && !isZero(track.constantIv);
    return [{ scheme, keyId: track.isProtected ? track.keyId : undefined, hasIv }];
  }
  if (/^enc[avstu]$/.test(type) && (scheme === undefined || cipherOf(scheme))) {
    const sentence = 'has an encrypted track without a tenc box with its key id; no player can decrypt it';
    report.error('no_tenc_box', THE_SEGMENT, sentence);
  }
  return scheme === undefined ? [] : [{ scheme, keyId: undefined }];
}

function keyIdsOfGroups({ body }: Mp4Box): Buffer[] {
  return readKeyGroups(body).flatMap(({ isProtected, keyId }) => (isProtected ? [keyId] : []));
}
