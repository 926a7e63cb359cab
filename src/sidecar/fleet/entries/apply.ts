import type { LackReason } from '../../../api/fleet';
import type { StreamId } from '../../../api/stream-id';
import { etagOf } from '../../../drm/bytes';
import { describeThrown, HttpError, toHttpError } from '../../../http/errors';
import { keyIdOf } from '../../key-files/changes';
import type { AuditEntry } from '../../observe/audit';
import { queueByName } from '../../storage/key-file-store';
import { toStorageError } from '../../storage/open-file';
import type { EntryResult, FleetHooks, FleetParts } from '../fleet';
import type { Ledger, LedgerRecord } from '../ledger/ledger';
import { reconcile } from './reconcile';
import type { Entry } from './seal';

type Lack = Exclude<LackReason, 'behind'>;

export interface Applied {
  readonly result: EntryResult;
  /** The file before, when the folder was changed. */
  readonly former?: Buffer | undefined;
  /** Why the file could not be written or removed, or the entry noted. */
  readonly cause?: unknown;
}

/** A read of all (`level`), a reported change (`watched`), a read of some (`reread`), or made here (`local`). */
export type Origin = 'level' | 'watched' | 'reread' | 'local';

export type Apply = ReturnType<typeof createApply>;

interface ApplyOptions extends Pick<FleetParts, 'local' | 'log' | 'observer'> {
  readonly changes: Pick<ChangeLog, 'applied'>;
  readonly ledger: Ledger;
  readonly hasLevelled: () => boolean;
  /** Changes that fail at the end of the process are made after the next start, so they are not logged. */
  readonly isEnding: () => boolean;
}

/** Streams are applied in parallel, the entries of one stream in order. */
export function createApply(options: ApplyOptions) {
  const { local, ledger, hasLevelled, isEnding, log, observer, changes } = options;
  const queue = queueByName();
  const lacks = new Map<StreamId, Lack>();

  const setLack = (streamId: StreamId, lack: Lack | undefined) => {
    // At the end of the order: a file that can never be written must not delay others.
    lacks.delete(streamId);
    if (lack !== undefined) lacks.set(streamId, lack);
  };

  /** Undefined: the file was changed meanwhile. */
  const step = async (entry: Entry, revision: number): Promise<Applied | undefined> => {
    const { streamId, version, bytes, isFound } = entry;
    const former = local.read(streamId);
    const present = former && etagOf(former);
    const tag = bytes && etagOf(bytes);
    const record = ledger.get(streamId);
    const action = reconcile(record, { version, tag, isFound }, present, hasLevelled());
    const next: LedgerRecord = { version, revision, tag };
    switch (action) {
      case 'nothing':
        if (record?.revision !== revision && record) await ledger.note(streamId, { ...record, revision });
        return { result: 'unchanged' };
      case 'older':
        return { result: 'older' };
      case 'note':
        await ledger.note(streamId, next);
        return { result: 'unchanged' };
      case 'keep':
        if (record?.version !== version || !record.kept) await ledger.note(streamId, { ...next, kept: true });
        return { result: 'kept' };
      case 'write':
      case 'remove':
        // Before the file is changed: after a crash the ledger knows the old and the new file as the fleet's.
        await ledger.note(streamId, { ...next, former: present });
        break;
    }
    const isSame = present === undefined ? { ifNoneMatch: '*' } : { ifMatch: present };
    try {
      await (bytes ? local.write(streamId, bytes, isSame) : local.remove(streamId, isSame));
    } catch (thrown) {
      if (thrown instanceof HttpError && thrown.status === 412) return undefined;
      throw thrown;
    }
    // From now on the former file, put back by hand, is kept.
    if (present !== undefined) void ledger.note(streamId, next).catch(() => undefined);
    return { result: bytes ? 'written' : 'removed', former };
  };

  /** At the first join, an unreadable file counts as made by hand, so that it stays when it can be read. */
  const keepUnseen = async ({ streamId, version, bytes }: Entry, revision: number): Promise<void> => {
    if (hasLevelled() || ledger.get(streamId)) return;
    const record = { version, revision, tag: bytes && etagOf(bytes), kept: true } as const;
    await ledger.note(streamId, record).catch(() => undefined);
  };

  /** Undefined: this sidecar made the entry, and has applied it before. */
  const applyOne = async (entry: Entry, revision: number, origin: Origin): Promise<Applied | undefined> => {
    const { streamId } = entry;
    // A late older entry may have passed for the engine's: apply it again.
    if (origin === 'watched' && !lacks.has(streamId) && isNoted(ledger.get(streamId), entry, revision))
      return undefined;
    try {
      let applied: Applied | undefined;
      while (!applied) applied = await step(entry, revision);
      const { result } = applied;
      // A newer entry was applied in between: its result counts.
      const isPassed =
        result === 'older' && (origin === 'local' || (origin === 'reread' && !lacks.has(streamId)));
      if (!isPassed) setLack(streamId, result === 'kept' || result === 'older' ? result : undefined);
      return applied;
    } catch (thrown) {
      const cause = toStorageError('write', thrown);
      if (lacks.get(streamId) !== 'failed' && !isEnding())
        log.error('a key file of the fleet could not be written here; the sidecar retries', {
          streamId,
          code: toHttpError(cause).problems[0]?.code,
          cause: describeThrown(thrown),
        });
      setLack(streamId, 'failed');
      await keepUnseen(entry, revision);
      return { result: 'failed', cause };
    }
  };

  return {
    lacks,
    /** Never rejects: a failure is the result `failed`, with its `cause`. */
    async entry(entry: Entry, revision: number, origin: Origin): Promise<Applied> {
      const applied = await queue(entry.streamId, () => applyOne(entry, revision, origin));
      if (applied) changes.applied(entry, applied, origin);
      return applied ?? { result: 'unchanged' };
    },
    /** Whether there are unreadable files without a record in the ledger. */
    hasUnseen: () => [...lacks].some(([streamId, why]) => why === 'failed' && !ledger.get(streamId)),
    /** Undefined: there is no entry any more. */
    async withoutEntry(streamId: StreamId, lack: 'unreadable' | undefined): Promise<void> {
      await queue(streamId, async () => setLack(streamId, lack));
      if (lack) observer.entry(lack);
    },
  };
}

function isNoted(record: LedgerRecord | undefined, { version }: Entry, revision: number): boolean {
  return record?.version === version && record.revision === revision;
}

export type ChangeLog = ReturnType<typeof createChangeLog>;

const MAX_PENDING = 10_000;
const MAX_PROPAGATION = 50;

export function createChangeLog({ audit, observer, clock }: FleetHooks) {
  /** Ids of changes that this sidecar sent, whose requests write the audit lines: with those of the watch, if it was faster. */
  const pending = new Map<string, AuditEntry | undefined>();
  /** Milliseconds from the acceptance of the last changes anywhere to the file here. */
  const propagation: number[] = [];

  return {
    asked(id: string): void {
      pending.set(id, undefined);
      if (pending.size > MAX_PENDING) pending.delete(pending.keys().next().value ?? '');
    },
    /** The request does not know of the change as made. */
    givenUp(id: string): void {
      const line = pending.get(id);
      pending.delete(id);
      if (line) audit(line);
    },
    applied(entry: Entry, { result, former }: Applied, origin: Origin): void {
      observer.entry(result);
      if (origin === 'local') pending.delete(entry.id);
      if (result !== 'written' && result !== 'removed') return;
      const { streamId, bytes, by, from } = entry;
      if (origin === 'local' || origin === 'watched') {
        const ms = Math.max(0, clock().getTime() - entry.at);
        observer.applied(ms / 1000);
        propagation.push(ms);
        if (propagation.length > MAX_PROPAGATION) propagation.shift();
      }
      if (origin === 'local') return;
      const line: AuditEntry = {
        action: bytes ? 'put' : 'delete',
        ...by,
        streamId,
        result: result === 'removed' ? 'deleted' : former ? 'changed' : 'created',
        oldKeyId: keyIdOf(former),
        newKeyId: keyIdOf(bytes),
        from,
      };
      if (pending.has(entry.id)) pending.set(entry.id, line);
      else audit(line);
    },
    get propagation(): readonly number[] {
      return [...propagation];
    },
  };
}
