import type { MediaScheme } from './judgement';

export interface SampleEncryption {
  readonly scheme: Exclude<MediaScheme, 'aes-128'>;
  /** 16 bytes, big endian; SAMPLE-AES names none. */
  readonly keyId: Buffer | undefined;
  /** 16 bytes; one of 8 is followed by zeros. Undefined where it is nowhere. */
  readonly iv: Buffer | undefined;
  /** Clear and protected bytes in turn; the whole sample is protected without any. */
  readonly subsamples: readonly Subsample[] | undefined;
  /** Blocks of 16 bytes; undefined where all are encrypted. */
  readonly pattern: { readonly crypt: number; readonly skip: number } | undefined;
}

export interface Subsample {
  readonly clear: number;
  readonly protected: number;
}

export interface MediaSample {
  readonly data: Buffer;
  /** Undefined where it is said to be clear. */
  readonly encryption: SampleEncryption | undefined;
}

export type SampleFormat =
  | {
      readonly codec: 'h264' | 'h265';
      /** Bytes of each NAL unit's length; 0 where start codes separate them (ISO/IEC 14496-10 Annex B). */
      readonly lengthSize: number;
      /** VPS, SPS and PPS of the sample entry; there may be more in the samples. */
      readonly parameterSets: readonly Buffer[];
    }
  | {
      readonly codec: 'aac';
      /** Whether each frame has an ADTS header. */
      readonly adts: boolean;
      /** The AudioSpecificConfig of `esds`. */
      readonly config: Buffer | undefined;
    }
  | { readonly codec: 'ac3' | 'opus' | 'flac' | 'ttml' | 'webvtt' | 'unknown' };

export interface TrackContent {
  readonly format: SampleFormat;
  readonly samples: readonly MediaSample[];
  readonly init?: Buffer | undefined;
}
