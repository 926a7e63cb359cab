import { isZero } from '../bytes';
import { keyIdField } from './block';
import { describeBoxList } from './boxes';
import {
  compareBoxes,
  compareTrack,
  describeProtections,
  joinNamed,
  type NamedAt,
  type Protection,
} from './named';
import type { CheckKind, Report } from './report';
import { readSegment, type Segment } from './segment';

/** Fragments of one key are one; nobody reads the keys of a whole day. */
const MAX_FRAGMENTS = 10;

/** The types by which a segment or a file of media begins, with a size that one may have. */
const FIRST_TYPE = /^(?:ftyp|styp|moov|moof|sidx|emsg|prft|pdin|mdat|free|skip|wide)$/;

/** Whether bytes begin as an init segment, a media segment or an mp4 file does. */
export function looksLikeSegment(bytes: Buffer): boolean {
  return FIRST_TYPE.test(bytes.toString('latin1', 4, 8)) && (bytes[0] ?? 0) < 0x20;
}

/** Shows how the tracks and fragments are encrypted, and every `pssh` box; says where these contradict each other. */
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
    const own = joinNamed(namedOf(boxes));
    describeFragment(
      report,
      at,
      keyIds,
      own.keyIds.length > 0 ? { at, ...own } : { at, ...joinNamed(ofMovie) },
    );
  });
  if (segment.fragments.length > fragments.length) {
    const note = `the first ${MAX_FRAGMENTS} are shown`;
    report.field('fragments', `${segment.fragments.length} with keys of their own`, note);
  }
  tellProtection(report, segment, named, rotates);
  if (!hasMovie) return 'media_segment';
  return hasMedia ? 'media_file' : 'init_segment';
}

/**
 * Whether fragments bring the keys. An init segment alone proves nothing; but one that names neither a key nor a box of
 * one can be meant for that only.
 */
function findRotation(report: Report, segment: Segment, ofMovie: readonly NamedAt[]): boolean {
  const isProven = segment.fragments.some(({ keyIds }) => keyIds.length > 0);
  const ofTracks = segment.protections.flatMap(({ keyId }) => keyId ?? []);
  const isMeant =
    ofTracks.length > 0 &&
    ofTracks.every(isZero) &&
    !segment.hasFragments &&
    joinNamed(ofMovie).keyIds.length === 0;
  if (isProven || isMeant) report.claim({ of: 'rotation', at: 'key_rotation', isProven });
  if (isProven) report.field('key_rotation', 'yes', 'fragments bring keys of their own (seig)');
  else if (isMeant) {
    const note = 'no key in the init segment: the fragments bring them (seig, pssh in moof); check one, too';
    report.field('key_rotation', 'expected', note);
  }
  return isProven || isMeant;
}

function describeFragment(report: Report, at: string, keyIds: readonly Buffer[], boxes: NamedAt): void {
  keyIds.forEach((keyId, index) => {
    const name = `${at}.key_id${keyIds.length > 1 ? `[${index}]` : ''}`;
    keyIdField(report, name, keyId);
    report.claim({ of: 'track', at: name, scheme: undefined, keyId });
    if (boxes.keyIds.length > 0) compareTrack(report, name, keyId, boxes, 'error');
  });
}

function tellProtection(report: Report, segment: Segment, named: readonly NamedAt[], rotates: boolean): void {
  const { protections, hasMovie, hasEncryptedSamples, fragments } = segment;
  if (!hasMovie) {
    if (fragments.length > 0) return;
    report.field('protection', hasEncryptedSamples ? 'encrypted samples' : 'not told here');
    const sentence = 'has no moov box, which says how it is encrypted; check its init segment, too';
    report.warning('no_init_segment', 'The segment', sentence);
  } else if (protections.length === 0) {
    report.claim({ of: 'clear', at: 'protection' });
    const sentence =
      named.length > 0
        ? 'has pssh boxes, but no track of it is encrypted: it is not protected'
        : 'has no encrypted track and no pssh box: it is not protected';
    report.warning('not_protected', segment.hasMedia ? 'The file' : 'The segment', sentence);
  } else if (named.length === 0 && !rotates) tellWithoutBoxes(report, protections);
}

/** FairPlay's key stands in the playlist: a segment for Apple's players alone has no box. */
function tellWithoutBoxes(report: Report, protections: readonly Protection[]): void {
  if (protections.every(({ scheme }) => scheme === 'cbcs')) {
    const note =
      "right for FairPlay, whose key is named in the playlist's EXT-X-KEY; for Widevine and PlayReady the manifest must bring the boxes";
    report.field('protection', 'cbcs without a pssh box', note);
    return;
  }
  const sentence = 'holds no pssh box; its tracks are encrypted, and the manifest must bring the boxes';
  report.warning('no_pssh_box', 'The segment', sentence);
}

/** Each box once: fragments of one key repeat theirs. */
function byContent(boxes: readonly Buffer[]): Map<string, Buffer> {
  return new Map(boxes.map((box) => [box.toString('latin1'), box]));
}
