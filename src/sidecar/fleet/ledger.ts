import type { StreamId } from '../../api/stream-id';

/** What this packager last took from the fleet of a stream. */
export interface LedgerRecord {
  /** The version of the entry. */
  readonly version: number;
  /** The engine's revision of the entry. */
  readonly revision: number;
  /** The entity tag of the key file that the fleet wants here; undefined: none, it was deleted. */
  readonly tag: string | undefined;
  /**
   * The tag of the fleet's file before, which stands there still when the change was interrupted; undefined: none, or
   * it is of no use any more.
   */
  readonly former?: string | undefined;
  /** Set when the file here is somebody else's and stays until a newer entry replaces it. */
  readonly kept?: true;
}

/** What is known of the fleet beside the streams. */
export interface LedgerHead {
  /** Names this folder among all packagers: it was drawn when the ledger was made. */
  readonly id: string;
  /** The fleet that this packager joined; undefined: none yet. */
  readonly fleet?: string;
  /**
   * Set when it has once had every key file that the fleet wanted here: the beginnings of stream ids that it took then, with
   * commas between; empty: all streams.
   */
  readonly levelled?: string;
  /** The highest version that was ever seen. */
  readonly highest: number;
}

/**
 * What the files in the folder are the fleet's, on disk: `<keys>/.packagerdrmapi-fleet/ledger`, without key material.
 * Held in memory as a whole; 100,000 streams take some 20 MB.
 */
export interface Ledger {
  readonly head: LedgerHead;
  get(streamId: StreamId): LedgerRecord | undefined;
  /** How many streams have a record. */
  readonly size: number;
  records(): IterableIterator<readonly [StreamId, LedgerRecord]>;
  /**
   * Notes a record, at once for readers; resolves when it would survive a power cut. Who asks while a sync is under way shares
   * the next one. Rejects with the system's error; readers see the former record then.
   */
  note(streamId: StreamId, record: LedgerRecord): Promise<void>;
  /** Forgets a record; it need not survive a power cut. */
  forget(streamId: StreamId): void;
  /** Notes what changes of the head, as `note` does. */
  noteHead(change: Partial<Omit<LedgerHead, 'id'>>): Promise<void>;
  /** Writes what is not written yet. */
  close(): Promise<void>;
}
