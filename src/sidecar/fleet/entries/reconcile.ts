import type { LedgerRecord } from '../ledger/ledger';

interface Wanted {
  readonly version: number;
  /** undefined: the key file was deleted. */
  readonly tag: string | undefined;
  readonly isFound: boolean;
}

/** `note`: only record the entry in the ledger. */
export type FileAction = 'write' | 'remove' | 'note' | 'keep' | 'older' | 'nothing';

/**
 * A file is the fleet's if its bytes have the tag in the ledger. Other files are never removed, and only
 * replaced by a client's file that is newer than the entry that found them.
 */
export function reconcile(
  record: LedgerRecord | undefined,
  wanted: Wanted,
  /** The entity tag of the file that is there. */
  present: string | undefined,
  /** Whether this packager had all of the fleet once: then an entry without a record is new. */
  hasLevelled: boolean,
): FileAction {
  if (!record) {
    if (present === wanted.tag) return 'note';
    if (present === undefined) return 'write';
    return wanted.tag !== undefined && hasLevelled && !wanted.isFound ? 'write' : 'keep';
  }
  if (wanted.version < record.version) return 'older';
  if (wanted.version === record.version) return reconcileSameVersion(record, wanted, present);
  if (present === wanted.tag) return 'note';
  const isFree = present === undefined || (!record.kept && isOurs(record, present));
  if (wanted.tag !== undefined) return isFree || !wanted.isFound ? 'write' : 'keep';
  return isFree ? 'remove' : 'keep';
}

/** The entry is the one in the ledger; its file may have changed since. */
function reconcileSameVersion(record: LedgerRecord, wanted: Wanted, present: string | undefined): FileAction {
  if (present === wanted.tag) return record.kept ? 'note' : 'nothing';
  if (wanted.tag !== undefined && present === undefined) return 'write';
  // The file before the change is still there: the change was interrupted.
  if (!record.kept && present === record.former) return wanted.tag === undefined ? 'remove' : 'write';
  return 'keep';
}

function isOurs({ tag, former }: LedgerRecord, present: string | undefined): boolean {
  return present === tag || (former !== undefined && present === former);
}
