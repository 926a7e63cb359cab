import type { StreamId } from '../../../api/stream-id';
import { etagOf } from '../../../http/etag';
import type { KeyFileStore } from '../../storage/key-file-store';
import type { Ledger } from './ledger';
import type { LedgerRecord } from './ledger-lines';

/**
 * Checks the folder against the ledger, some files a call and then from the start again. Returns the streams whose files
 * were removed, edited or made by hand. Unreadable files are skipped.
 */
export function createFolderCheck(
  { records }: Pick<Ledger, 'records'>,
  { read }: Pick<KeyFileStore, 'read'>,
) {
  let left = records();
  return (count: number): readonly StreamId[] => {
    const found: StreamId[] = [];
    for (let step = 0; step < count; step += 1) {
      const { value, done } = left.next();
      if (done) {
        left = records();
        return found;
      }
      const [streamId, record] = value;
      try {
        if (isOther(record, read(streamId))) found.push(streamId);
      } catch {
        // The other files are checked all the same.
      }
    }
    return found;
  };
}

function isOther({ tag, kept }: LedgerRecord, bytes: Buffer | undefined): boolean {
  const present = bytes && etagOf(bytes);
  // Of a kept file it is known that it is not the fleet's: only that it is gone, or the fleet's by now, is new.
  return kept ? present === undefined || present === tag : present !== tag;
}
