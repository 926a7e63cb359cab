/** An elementary stream that the program map table lists (ISO/IEC 13818-1). */
export interface ProgramStream {
  readonly pid: number;
  readonly kind: 'video' | 'audio' | 'other';
  /** `H.264` and `AAC` are the ones that are packaged. */
  readonly codec: string;
}

/** Why a new part must begin. */
export type PartReason = 'jump' | 'parameters' | 'streams';

/** Offsets count bytes from the beginning of the input. */
export type TransportStreamEvent =
  /** Whole packets that belong to the present part, in their order. */
  | { readonly kind: 'packets'; readonly bytes: Buffer }
  /** The table of streams was read, for the first time or with other streams. */
  | { readonly kind: 'program'; readonly offset: number; readonly streams: readonly ProgramStream[] }
  /** What follows belongs to a new part; it must be given `tables` (the packets of PAT and PMT) first. */
  | {
      readonly kind: 'part';
      readonly offset: number;
      readonly reason: PartReason;
      /** For the log: what changed, and how. */
      readonly description: string;
      readonly tables: Buffer;
    }
  /** Bytes that belong to no part were left out. */
  | {
      readonly kind: 'dropped';
      readonly offset: number;
      readonly bytes: number;
      readonly reason: 'no_sync' | 'late';
    };

/** Times of a stream in the present part, in units of 1/90000 s, without the wrap at 33 bits. */
export interface StreamTimes {
  readonly firstPts: number;
  readonly lastPts: number;
  readonly firstDts: number;
  readonly lastDts: number;
}
