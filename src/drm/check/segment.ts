import { cipherOf, type Protection } from './named';
import type { Report } from './report';

interface Mp4Box {
  readonly type: string;
  readonly body: Buffer;
}

/** No segment has as many. */
const MOST_ENTRIES = 100;
/** From a track down to what its samples are. */
const TO_SAMPLES = ['trak', 'mdia', 'minf', 'stbl', 'stsd'];
/** Before the boxes in `stsd` stand its version and their count, before the scheme in `schm` its version. */
const FULL_BOX = 4;

/** How the samples of an init segment's tracks are encrypted (ISO/IEC 23001-7 § 4, 8.2); clear tracks are left out. */
export function readProtections(report: Report, bytes: Buffer): Protection[] {
  return boxesIn(bytes)
    .filter(({ type }) => type === 'moov')
    .flatMap((moov) => below([moov], TO_SAMPLES))
    .flatMap(({ body }) => boxesIn(body.subarray(FULL_BOX + 4)))
    .slice(0, MOST_ENTRIES)
    .flatMap((entry) => protectionOf(report, entry));
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

/** The boxes at the end of a path below some boxes. */
function below(boxes: readonly Mp4Box[], path: readonly string[]): Mp4Box[] {
  return path.reduce<Mp4Box[]>(
    (found, step) => found.flatMap(({ body }) => boxesIn(body).filter(({ type }) => type === step)),
    [...boxes],
  );
}

function boxesIn(bytes: Buffer): Mp4Box[] {
  const found: Mp4Box[] = [];
  for (let at = 0; at + 8 <= bytes.length; ) {
    const announced = bytes.readUInt32BE(at);
    const end = announced < 8 ? bytes.length : Math.min(at + announced, bytes.length);
    found.push({ type: bytes.toString('latin1', at + 4, at + 8), body: bytes.subarray(at + 8, end) });
    at = end;
  }
  return found;
}
