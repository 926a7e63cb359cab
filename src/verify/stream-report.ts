import type { CheckField } from '../drm/check/report';
import type { Finding } from '../drm/finding';
import type { Judgement, MediaKind, TrackJudgement } from './media/judgement';

export interface SystemReport {
  /** As registered, lower case; undefined for a key that is simply fetched (`identity`). */
  readonly systemId: string | undefined;
  /** `Widevine`; the id, for a system that is not known. */
  readonly name: string;
  readonly in: readonly string[];
  /** The fields of its box, or of its line in the playlist; none: it is only named. */
  readonly fields: readonly CheckField[];
}

interface FetchedFile {
  readonly url: string;
  readonly bytes: number;
}

export interface RenditionJudgement extends Judgement {
  readonly tracks: readonly (Omit<TrackJudgement, 'keyId'> & { readonly keyId: string | null })[];
}

export interface RenditionReport {
  readonly name: string;
  readonly kind: MediaKind;
  /** Of the media, else of the manifest; empty where neither says it. */
  readonly codec: string;
  /** How its samples are encrypted: `cenc`, `cbcs`, `sample-aes`, `aes-128`, `aes-256`; null for clear ones, or without a segment. */
  readonly scheme: string | null;
  readonly keyIds: readonly string[];
  readonly init: FetchedFile | null;
  /** The newest; `seconds` is 0 where that is not known. */
  readonly segment: (FetchedFile & { readonly seconds: number; readonly number: number | null }) | null;
  readonly judgement: RenditionJudgement | null;
}

/** The result of a test of a stream. It holds no key. */
export interface StreamReport {
  /** The final address of the manifest, without its query. */
  readonly url: string;
  readonly type: 'dash' | 'hls' | 'unknown';
  readonly live: boolean;
  readonly decrypted: boolean;
  readonly systems: readonly SystemReport[];
  readonly renditions: readonly RenditionReport[];
  readonly faults: readonly Finding[];
  readonly fetched: { readonly requests: number; readonly bytes: number; readonly ms: number };
}
