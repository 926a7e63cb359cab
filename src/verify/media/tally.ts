import { nalUnitsOf } from '../../codecs/nal-units';
import { protectedRanges } from './decrypt';
import { isEncryptedNal } from './sample-aes';
import { sampleCheckOf } from './sample-check';
import type { MediaSample, SampleFormat } from './track-content';

/** What samples were found to be. */
export interface Tally {
  readonly samples: number;
  readonly valid: number;
  readonly broken: number;
  readonly undecided: number;
  /** How unlikely it is that noise looks so valid: the binary logarithm. */
  readonly weight: number;
  /** One whole sentence. */
  readonly evidence: string;
}

/** Samples that are looked at, as long as they are small. */
const MOST = 240;
/** Large ones are enough of evidence each. */
const MOST_BYTES = 600_000;
const AT_LEAST = 8;

/**
 * Of 40,000 pictures of H.264 that were noise, 10 with fewer than 1,000 encrypted bytes were valid, and none with more;
 * of 45,000 of H.265 none was.
 */
const WEIGHT = 10;
const WEIGHT_OF_LARGE = 20;
const LARGE = 1024;
const SURE = 20;

/**
 * Looks at samples, spread over all of them.
 *
 * @param most how many at most
 * @param isClear whether to look at those without an encrypted byte too, which say nothing of a key
 */
export function tallySamples(
  samples: readonly MediaSample[],
  format: SampleFormat,
  decrypt: (sample: MediaSample) => Buffer,
  most = MOST,
  isClear = false,
): Tally {
  const check = sampleCheckOf(format);
  const counts = { valid: 0, broken: 0, undecided: 0 };
  let weight = 0;
  let bytes = 0;
  let looked = 0;
  let clear = 0;
  const total = samples.reduce((sum, { data }) => sum + data.length, 0);
  const affordable = Math.max(AT_LEAST, Math.floor((samples.length * MOST_BYTES) / Math.max(total, 1)));
  const step = Math.max(1, Math.ceil(samples.length / Math.max(1, Math.min(most, affordable))));
  for (let index = 0; index < samples.length && looked < most; index += step) {
    const sample = samples[index];
    if (!sample) break;
    const encrypted = isClear ? sample.data.length : encryptedBytesOf(sample, format);
    if (encrypted === 0) {
      clear += 1;
      continue;
    }
    if (looked >= AT_LEAST && bytes > MOST_BYTES) break;
    const outcome = check.check(decrypt(sample));
    counts[outcome] += 1;
    looked += 1;
    bytes += sample.data.length;
    if (outcome === 'valid') weight += check.isCertain || encrypted >= LARGE ? WEIGHT_OF_LARGE : WEIGHT;
  }
  const { called, proof } = check;
  return { samples: looked, ...counts, weight, evidence: evidenceOf(called, proof, looked, counts, clear) };
}

function evidenceOf(
  called: string,
  proof: string,
  looked: number,
  { valid, broken, undecided }: { valid: number; broken: number; undecided: number },
  clear: number,
): string {
  if (looked === 0) {
    return clear > 0 ? `None of the ${called} has an encrypted byte.` : `No ${called} were looked at.`;
  }
  if (undecided === looked) return `${looked} ${called} were looked at, of which nothing can be told.`;
  const more = undecided > 0 ? `, and of ${undecided} nothing can be told` : '';
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

/** What a tally proves: nearly all are valid, by more than chance, or most are broken. */
export function verdictOf({ valid, broken, weight }: Tally): 'valid' | 'broken' | 'undecided' {
  if (valid >= 9 * broken && weight >= SURE) return 'valid';
  return broken >= 2 && broken > valid ? 'broken' : 'undecided';
}

/** How many bytes of a sample a cipher changes. */
export function encryptedBytesOf({ data, encryption }: MediaSample, format: SampleFormat): number {
  if (!encryption) return 0;
  const { scheme, subsamples, pattern } = encryption;
  if (scheme === 'sample-aes') {
    if (format.codec !== 'h264') return Math.max(0, data.length - 25);
    return (nalUnitsOf(data, 0) ?? []).reduce(
      (sum, nal) => sum + (isEncryptedNal(nal) ? Math.ceil((nal.length - 48) / 160) * 16 : 0),
      0,
    );
  }
  const share = pattern ? pattern.crypt / (pattern.crypt + pattern.skip) : 1;
  return protectedRanges(subsamples, data.length).reduce((sum, { from, to }) => {
    const length = to - from;
    return sum + (scheme === 'cenc' ? length : length < 16 ? 0 : Math.max(16, Math.floor(length * share)));
  }, 0);
}
