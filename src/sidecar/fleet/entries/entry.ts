import type { StreamId } from '../../../api/stream-id';
import type { ChangedBy } from '../../storage/key-file-store';

/** An entry of the fleet, sealed in the engine: the key file of a stream, or its tombstone. */
export interface Entry {
  readonly streamId: StreamId;
  /** Unguessable, so that a change whose answer was lost is recognised. */
  readonly id: string;
  /**
   * What is newer has a higher one: at least the milliseconds since 1970 by the clock of the sidecar that made the
   * change, and always more than every version which that sidecar had seen. One that replaces an entry which could not be
   * opened is a day ahead of that clock: the clock of that entry's sidecar may have been ahead.
   */
  readonly version: number;
  /** The key file; undefined: it was deleted. */
  readonly bytes: Buffer | undefined;
  /** When the change was accepted, by the clock of the sidecar that made it: milliseconds since 1970. */
  readonly at: number;
  readonly by: ChangedBy;
  /** The packager whose sidecar took the request. */
  readonly from: string;
  /** Whether a client waits for all packagers to have it: they report at once. */
  readonly awaited: boolean;
  /** Whether it comes from an import: unlike what a client sends, it replaces no file made by hand. */
  readonly isFound: boolean;
}

/** The versions of entries: a new one is higher than all that were seen, and at least the milliseconds since 1970. */
export interface Versions {
  readonly highest: number;
  see(version: number): void;
  /** @param aheadMs by how much it is at least ahead of the clock. */
  next(aheadMs?: number): number;
}

/** The result of opening a sealed value. */
export type Opened =
  | { readonly ok: true; readonly entry: Entry }
  /** `secret`: it was sealed with another secret. `garbage`: it was sealed for another key, or is damaged. */
  | { readonly ok: false; readonly why: 'secret' | 'garbage' };

/** Seals with the first secret, and opens with any. */
export interface Seal {
  /** Seals an entry for its key in the engine. */
  seal(key: string, entry: Entry): Buffer;
  /** `streamId` is what the key says. */
  open(key: string, value: Buffer, streamId: StreamId): Opened;
  /** The same of a small text that is no entry: the description of the fleet. */
  sealText(key: string, text: string): Buffer;
  openText(
    key: string,
    value: Buffer,
  ):
    | { readonly ok: true; readonly text: string }
    | { readonly ok: false; readonly why: 'secret' | 'garbage' };
  /** Whether it was sealed with the secret that seals now. */
  isCurrent(value: Buffer): boolean;
  /** The id of the secret that it was sealed with, 8 hexadecimal digits; it reveals nothing of the secret. */
  secretId(value: Buffer): string;
}
