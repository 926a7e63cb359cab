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

export type Versions = ReturnType<typeof createVersions>;

/** The versions of entries: a new one is higher than all that were seen, and at least the milliseconds since 1970. */
export function createVersions(clock: () => Date) {
  let highest = 0;
  return {
    get highest() {
      return highest;
    },
    see(version: number) {
      highest = Math.max(highest, version);
    },
    /** @param aheadMs by how much it is at least ahead of the clock. */
    next(aheadMs = 0) {
      highest = Math.max(highest + 1, clock().getTime() + aheadMs);
      return highest;
    },
  };
}
