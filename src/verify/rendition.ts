import type { Resource } from './fetches';
import type { HlsEncryption, MediaKind } from './media/judgement';

export interface SegmentSource extends Resource {
  readonly seconds: number | undefined;
  /** Identifies it among the others of its rendition, in their order. */
  readonly number: number | undefined;
  /** Of a live period whose end is known: since its end; below 0 if listed before its time, as those of an advertisement. */
  readonly secondsOver?: number | undefined;
  readonly init?: Resource | undefined;
  readonly keys?: readonly KeyLine[] | undefined;
}

export interface KeyLine {
  readonly line: string;
  readonly method: string;
  /** `identity` where none is said. */
  readonly format: string;
  readonly uri: string | undefined;
  /** The address of the playlist, to which a relative one belongs. */
  readonly base: string;
  /** 16 bytes. */
  readonly iv: Buffer | undefined;
}

export interface Segments {
  readonly first: SegmentSource | undefined;
  /** The newest, and those before it for the case that the newest is not there yet; the newest first. */
  readonly newest: readonly SegmentSource[];
  /** Whether clear segments end a stream on demand whose others are protected; `newest` are protected then. */
  readonly hasClearEnd?: boolean;
}

/** A file with an index (`sidx`) that says where its segments are; the index may have to be looked for. */
export interface IndexedFile {
  readonly file: Resource;
  readonly index: Resource | undefined;
}

export interface Rendition {
  /** Unique in its stream: `video 640x360 257 kb/s`. */
  readonly name: string;
  readonly kind: MediaKind;
  readonly codec: string | undefined;
  /** The manifest or media playlist that signals its protection: its name, and the signalling as a text to check. */
  readonly signalling: { readonly name: string; readonly text: string };
  readonly init: Resource | undefined;
  readonly segments: Segments | IndexedFile;
}

export interface StreamOutline {
  readonly type: 'dash' | 'hls';
  readonly live: boolean;
  /** When its newest part (period, or after a discontinuity) began, if it is live and that is known. */
  readonly started: Date | undefined;
  readonly renditions: readonly Rendition[];
}

export function encryptionOf({ keys = [], number }: SegmentSource): HlsEncryption | undefined {
  const [first] = keys;
  if (!first) return undefined;
  const iv = keys.find((key) => key.iv)?.iv;
  return { method: first.method, ...(iv && { iv }), ...(number !== undefined && { sequence: number }) };
}
