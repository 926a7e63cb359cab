import { type AacSetup, readAacConfig, readAacFrame, readAdtsHeader } from '../../codecs/aac-frame';
import { hasRightChecksums } from '../../codecs/ac3-frame';
import { SyntaxBroken } from '../../codecs/bit-reader';
import { HevcPictureCheck } from '../../codecs/hevc-picture-check';
import { type Outcome, PictureCheck } from '../../codecs/picture-check';
import { boxesIn } from '../../drm/check/boxes';
import type { SampleFormat } from './track-content';

/** Looks at the decrypted samples of one track, in their order. */
interface SampleCheck {
  /** What samples are called, and what valid ones do: `AAC frames`, `decode to their last bit`. */
  readonly called: string;
  readonly proof: string;
  /** Whether noise never looks like one valid sample, as it does not make XML. */
  readonly isCertain?: true;
  check(sample: Buffer): Outcome;
}

/** What samples of a format are checked by. */
export function sampleCheckOf(format: SampleFormat): SampleCheck {
  if (format.codec === 'h264') {
    const pictures = new PictureCheck(format.lengthSize, format.parameterSets);
    return {
      called: 'pictures',
      proof: 'can be read by the rules of H.264 to the last bit',
      check: (sample) => pictures.check(sample),
    };
  }
  if (format.codec === 'h265') {
    const pictures = new HevcPictureCheck(format.lengthSize, format.parameterSets);
    return {
      called: 'pictures',
      proof: 'can be read by the rules of H.265 to the last bit',
      check: (sample) => pictures.check(sample),
    };
  }
  if (format.codec === 'aac') {
    const setup = format.config && readAacConfig(format.config);
    return {
      called: 'AAC frames',
      proof: 'can be read by the rules of AAC to the last bit',
      check: (sample) => (format.adts ? checkAdts(sample) : setup ? checkAac(sample, setup) : 'undecided'),
    };
  }
  if (format.codec === 'ac3') {
    return {
      called: 'AC-3 frames',
      proof: 'have right checksums',
      check: (sample) => (hasRightChecksums(sample) ? 'valid' : 'broken'),
    };
  }
  if (format.codec === 'ttml') {
    return { called: 'texts', proof: 'are XML in UTF-8', isCertain: true, check: checkXml };
  }
  if (format.codec === 'webvtt') {
    return { called: 'texts', proof: 'are made of WebVTT boxes', isCertain: true, check: checkCues };
  }
  return { called: 'samples', proof: 'can be read', check: () => 'undecided' };
}

function checkAac(frame: Buffer, setup: AacSetup, blocks = 1): Outcome {
  try {
    readAacFrame(frame, setup, blocks);
    return 'valid';
  } catch (error) {
    if (error instanceof SyntaxBroken) return 'broken';
    throw error;
  }
}

function checkAdts(frame: Buffer): Outcome {
  const header = readAdtsHeader(frame);
  if (!header) return 'broken';
  // Between several blocks under a checksum stand their positions.
  if (header.blocks > 1 && header.headerLength > 7) return 'undecided';
  if (![1, 2, 4].includes(header.setup.objectType)) return 'undecided';
  return checkAac(frame.subarray(header.headerLength), header.setup, header.blocks);
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
