import {
  checkAacFrame,
  checkByteValues,
  END_BITS,
  type FrameEnds,
  hasRawDataBlocks,
  readAdtsHeader,
  START_BITS,
} from '../../codecs/aac-frame';
import { hasRightChecksums } from '../../codecs/ac3-frame';
import { HevcPictureCheck } from '../../codecs/hevc-picture-check';
import { type Outcome, PictureCheck } from '../../codecs/picture-check';
import { boxesIn } from '../../drm/check/boxes';
import { protectedRanges } from './decrypt';
import type { MediaSample, SampleFormat } from './judgement';
import { encryptedBytesOf, soundBytesOf } from './sample-aes';

export interface Tally {
  readonly samples: number;
  readonly valid: number;
  readonly broken: number;
  readonly undecided: number;
  /** The binary logarithm of how unlikely it is that noise looks valid. */
  readonly weight: number;
  readonly evidence: string;
}

const MOST = 240;
/** A few large ones are enough evidence. */
const MOST_BYTES = 600_000;
const AT_LEAST = 8;

const SURE = 10;

/** Looks at `first` samples, spread over all; `isClear` at those without an encrypted byte, too. */
export function tallySamples(
  samples: readonly MediaSample[],
  format: SampleFormat,
  decrypt: (sample: MediaSample) => Buffer,
  first = MOST,
  isClear = false,
): Tally {
  const check = sampleCheckOf(format);
  // Both ends of most frames are clear then: only the byte values of all frames prove something.
  const isSparse = !isClear && format.codec === 'aac' && samples[0]?.encryption?.scheme === 'sample-aes';
  const most = isSparse && first > 0 ? MOST : first;
  const { chosen, clear } = chooseSamples(samples, most, (sample) =>
    isClear ? { bytes: sample.data.length, start: true, end: true } : encryptedPartOf(sample, format),
  );
  const looked = chosen.length;
  const counts = { valid: 0, broken: 0, undecided: 0 };
  let weight = 0;
  if (isSparse) {
    const sound = chosen.map(({ sample }) => soundBytesOf(decrypt(sample), format));
    const outcome = checkByteValues(Buffer.concat(sound));
    counts[outcome] = looked;
    weight = outcome === 'valid' ? SURE : 0;
  }
  let next = 0;
  for (const { index, sample, part } of isSparse ? [] : chosen) {
    for (const { data } of samples.slice(next, index)) check.passOver?.(data);
    next = index + 1;
    const outcome = check.check(decrypt(sample), part);
    counts[outcome] += 1;
    if (outcome === 'valid') weight += check.weightOf(part);
  }
  const { called } = check;
  const isAll = looked === 0 || looked + clear === samples.length;
  const proof = isSparse ? 'have the byte values of audio' : check.proof;
  const named = isAll ? called : `${called}, taken from ${samples.length},`;
  const evidence = evidenceOf(named, proof, looked, counts, clear);
  return { samples: Math.min(looked, first), ...counts, weight, evidence };
}

/** At most `most` samples with bytes to look at, spread over all, and the number of those without. */
function chooseSamples(
  samples: readonly MediaSample[],
  most: number,
  partOf: (sample: MediaSample) => EncryptedPart,
) {
  const total = samples.reduce((sum, { data }) => sum + data.length, 0);
  const affordable = Math.max(AT_LEAST, Math.floor((samples.length * MOST_BYTES) / Math.max(total, 1)));
  const step = Math.max(1, Math.ceil(samples.length / Math.max(1, Math.min(most, affordable))));
  const chosen: { index: number; sample: MediaSample; part: EncryptedPart }[] = [];
  let [clear, bytes] = [0, 0];
  for (const [index, sample] of samples.entries()) {
    if (index % step !== 0) continue;
    if (chosen.length >= most) break;
    const part = partOf(sample);
    if (part.bytes === 0) clear += 1;
    else if (chosen.length >= AT_LEAST && bytes > MOST_BYTES) break;
    else {
      chosen.push({ index, sample, part });
      bytes += sample.data.length;
    }
  }
  return { chosen, clear };
}

function evidenceOf(
  called: string,
  proof: string,
  looked: number,
  { valid, broken, undecided }: { valid: number; broken: number; undecided: number },
  clear: number,
): string {
  if (looked === 0)
    return clear > 0 ? `None of the ${called} has an encrypted byte.` : `No ${called} were checked.`;
  if (undecided === looked) return `${looked} ${called} were checked: too little data to decide.`;
  const more = undecided > 0 ? `; for ${undecided} there is too little data to decide` : '';
  if (broken === 0 || valid > broken) return `${valid} of ${looked} ${called} ${proof}${more}.`;
  return `${broken} of ${looked} ${called} are noise: ${valid === 0 ? 'none' : `only ${valid}`} ${proof}${more}.`;
}

export function addTallies(tallies: readonly Tally[]): Tally {
  const sum = (of: 'samples' | 'valid' | 'broken' | 'undecided' | 'weight') =>
    tallies.reduce((total, tally) => total + tally[of], 0);
  return {
    samples: sum('samples'),
    valid: sum('valid'),
    broken: sum('broken'),
    undecided: sum('undecided'),
    weight: sum('weight'),
    evidence: tallies.map(({ evidence }) => evidence).join(' '),
  };
}

export function verdictOf({ valid, broken, weight }: Tally): 'valid' | 'broken' | 'undecided' {
  if (valid >= 9 * broken && weight >= SURE) return 'valid';
  // So many valid ones are no noise: of some samples, the key is right.
  const isMixed = weight >= SURE + valid + broken;
  return broken >= 2 && broken > valid && !isMixed ? 'broken' : 'undecided';
}

/** The encrypted part of a sample: how many bytes, and whether it has the first (after a header) and the last. */
export function encryptedPartOf({ data, encryption }: MediaSample, format: SampleFormat): EncryptedPart {
  if (!encryption) return { bytes: 0, start: false, end: false };
  const { scheme, subsamples, pattern } = encryption;
  if (scheme === 'sample-aes') return { bytes: encryptedBytesOf(data, format), start: false, end: false };
  const share = pattern ? pattern.crypt / (pattern.crypt + pattern.skip) : 1;
  const ranges = protectedRanges(subsamples, data.length);
  const bytes = ranges.reduce((sum, { from, to }) => {
    const length = to - from;
    return sum + (scheme === 'cenc' ? length : length < 16 ? 0 : Math.max(16, Math.floor(length * share)));
  }, 0);
  const last = ranges.at(-1);
  const isToEnd = last?.to === data.length && !pattern;
  return {
    bytes,
    start: bytes > 0 && ranges[0]?.from === 0,
    end: isToEnd && (scheme === 'cenc' || (last.to - last.from) % 16 === 0),
  };
}

interface EncryptedPart extends FrameEnds {
  readonly bytes: number;
}

interface SampleCheck {
  readonly called: string;
  readonly proof: string;
  check(sample: Buffer, part: EncryptedPart): Outcome;
  /** Takes the parameter sets, which are never encrypted, of a sample that is not checked. */
  passOver?(sample: Buffer): void;
  /** The binary logarithm, at most, of how unlikely it is that noise looks like one valid sample. */
  weightOf(part: EncryptedPart): number;
}

/** Of 40,000 noise pictures of H.264, 10 with fewer than 1,000 encrypted bytes were valid; of 45,000 of H.265 none. */
const byLength = ({ bytes }: EncryptedPart) => (bytes >= 1024 ? 10 : 5);
/** Noise is never XML. */
const certain = () => 10;

function sampleCheckOf(format: SampleFormat): SampleCheck {
  if (format.codec === 'h264' || format.codec === 'h265') {
    const [Check, name] = format.codec === 'h264' ? [PictureCheck, 'H.264'] : [HevcPictureCheck, 'H.265'];
    const pictures = new Check(format.lengthSize, format.parameterSets);
    return {
      called: 'pictures',
      proof: `are valid ${name} to the last bit`,
      check: (sample) => pictures.check(sample),
      passOver: (sample) => pictures.passOver(sample),
      weightOf: byLength,
    };
  }
  if (format.codec === 'aac') {
    const isKnown = format.adts || (format.config !== undefined && hasRawDataBlocks(format.config));
    return {
      called: 'AAC frames',
      proof: 'begin and end as valid AAC',
      check: (sample, part) => (isKnown ? checkAac(sample, format.adts, part) : 'undecided'),
      weightOf: ({ start, end }) => (start ? START_BITS : 0) + (end ? END_BITS : 0),
    };
  }
  if (format.codec === 'ac3') {
    return {
      called: 'AC-3 frames',
      proof: 'have correct checksums',
      check: (sample) => (hasRightChecksums(sample) ? 'valid' : 'broken'),
      weightOf: byLength,
    };
  }
  if (format.codec === 'ttml')
    return { called: 'texts', proof: 'are XML in UTF-8', check: checkXml, weightOf: certain };
  if (format.codec === 'webvtt')
    return { called: 'texts', proof: 'are made of WebVTT boxes', check: checkCues, weightOf: certain };
  return { called: 'samples', proof: 'can be read', check: () => 'undecided', weightOf: () => 0 };
}

function checkAac(sample: Buffer, adts: boolean, part: EncryptedPart): Outcome {
  if (!adts) return checkAacFrame(sample, part);
  const header = readAdtsHeader(sample);
  return header ? checkAacFrame(sample.subarray(header.headerLength), part) : 'broken';
}

function checkXml(sample: Buffer): Outcome {
  const text = sample.toString('utf8');
  if (text.includes('\ufffd')) return 'broken';
  return /^\s*<[\s\S]*>\s*$/.test(text.replace(/^\ufeff/, '')) ? 'valid' : 'broken';
}

function checkCues(sample: Buffer): Outcome {
  const boxes = boxesIn(sample);
  const isWhole = boxes.reduce((sum, { bytes }) => sum + bytes.length, 0) === sample.length;
  const known = ['vttc', 'vtte', 'vtta', 'vsid'];
  return isWhole && boxes.length > 0 && boxes.every(({ type }) => known.includes(type)) ? 'valid' : 'broken';
}
