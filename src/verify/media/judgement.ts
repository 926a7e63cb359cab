import type { Checked } from '../../drm/bytes';
import type { Problem } from '../../drm/finding';

export type MediaKind = 'video' | 'audio' | 'text' | 'other';

/** A scheme of ISO/IEC 23001-7, Apple's `sample-aes`, or `aes-128` (RFC 8216 § 4.3.2.4) or `aes-256` over the whole segment. */
export type MediaScheme = 'cenc' | 'cens' | 'cbc1' | 'cbcs' | 'sample-aes' | 'aes-128' | 'aes-256';

export interface HlsEncryption {
  readonly method: string;
  /** 16 bytes. Without one, AES-128 and SAMPLE-AES take the media sequence number. */
  readonly iv?: Buffer | undefined;
  readonly sequence?: number | undefined;
}

export interface MediaTrack {
  /** `track_ID` of an mp4 file, the PID of a transport stream; 0 where neither is known. */
  readonly id: number;
  readonly kind: MediaKind;
  /** As in RFC 6381 where it is known so far (`avc1.64001f`, `mp4a.40.2`, `ec-3`), else the name of the sample entry. */
  readonly codec: string;
  /** Undefined where no encryption is signalled. */
  readonly scheme: MediaScheme | undefined;
  /** The key ids of encrypted samples, each once, 16 bytes big endian. SAMPLE-AES and AES-128 name none. */
  readonly keyIds: readonly Buffer[];
  /** The IV that all samples have, of `tenc`, `seig` or the playlist; undefined where each sample has its own. */
  readonly constantIv: Buffer | undefined;
  readonly samples: number;
  /** Those of `samples` that are said to be encrypted. Fewer than all: a clear lead, or clear parts. */
  readonly encryptedSamples: number;
  /** How long the samples play; 0 where that is not known: of transport streams, the playlist says it. */
  readonly seconds: number;
  readonly content: TrackContent;
}

export interface OpenedMedia {
  readonly container: 'fmp4' | 'mp4' | 'mpegts' | 'packed' | 'encrypted_segment';
  /** In the order of the file. A segment under `aes-128` or `aes-256` shows one track of the kind `other` until it is decrypted. */
  readonly tracks: readonly MediaTrack[];
  /** Faults of the container, though samples could be read: cut short, samples outside the file, and so on. */
  readonly problems: readonly Problem[];
}

export type Opened = Checked<OpenedMedia>;

export interface MediaKey {
  /** 16 bytes, big endian: the samples that it is for. Without one, it is for all. */
  readonly keyId?: Buffer | undefined;
  /** 16 bytes. */
  readonly key: Buffer;
  /** 16 bytes, as the key file has it for FairPlay; tried in addition to the IV that the media name. */
  readonly iv?: Buffer | undefined;
}

/**
 * `garbage`: a key makes noise of it. `clear`: it is valid as it is. `no_key`: none of the keys is for the key id of
 * the samples. `unknown`: too little to decide.
 */
export type JudgementState = 'decrypts' | 'garbage' | 'clear' | 'no_key' | 'unknown';

export type JudgementCause =
  | 'wrong_key'
  | 'wrong_iv'
  | 'wrong_pattern'
  | 'key_byte_order'
  | 'encrypted_twice'
  /** Nothing says that it is encrypted, and it is no valid picture or sound. */
  | 'not_signalled'
  /** Of `decrypts`, and of `unknown` where there are many: some samples do not. */
  | 'partly_noise'
  /** Of `unknown`: of pictures, nothing says which bytes are encrypted. */
  | 'no_subsamples'
  /** Of `clear`: something says that it is encrypted. The others are of `garbage`. */
  | 'not_encrypted';

export interface Judgement {
  readonly state: JudgementState;
  readonly cause?: JudgementCause | undefined;
  /** The kind of the track; `other` where tracks of several kinds were judged together and agree. */
  readonly kind: MediaKind;
  readonly samples: number;
  readonly description: string;
  /** One whole sentence: the counts (`62 of 62 AAC frames begin and end as valid AAC.`). */
  readonly evidence: string;
}

/** The judgement of one track; where its own samples decide nothing, it has that of the tracks with the same key id. */
export interface TrackJudgement extends Judgement {
  readonly track: number;
  readonly keyId: Buffer | undefined;
}

/** The judgement of a segment: its worst track, in the order garbage, clear against what is said, no_key, unknown, decrypts, clear. */
export interface MediaJudgement extends Judgement {
  readonly tracks: readonly TrackJudgement[];
}

export interface SampleEncryption {
  readonly scheme: Exclude<MediaScheme, `aes-${string}`>;
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
  /** Undefined where the sample is said to be clear. */
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
      readonly adts: boolean;
      /** The AudioSpecificConfig of `esds`. */
      readonly config: Buffer | undefined;
    }
  | { readonly codec: 'ac3' | 'opus' | 'flac' | 'ttml' | 'webvtt' | 'unknown' };

interface TrackContent {
  readonly format: SampleFormat;
  readonly samples: readonly MediaSample[];
  readonly init?: Buffer | undefined;
}
