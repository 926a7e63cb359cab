import type { StreamId } from '../../../api/stream-id';
import { etagOf } from '../../../drm/bytes';
import { isSameKeyFile } from '../../../drm/key-file';
import { HttpError, toHttpError } from '../../../http/errors';
import { apiError } from '../../errors';
import {
  type Change,
  type ChangeContext,
  type ChangedBy,
  type Conditions,
  type FleetChange,
  type KeyFileStore,
  queueByName,
  requireMatch,
} from '../../storage/key-file-store';
import { type StoredValue, toFleetError } from '../engine/engine';
import type { FleetParts } from '../fleet';
import type { Identity } from '../identity';
import type { Applied, ChangeLog } from './apply';
import type { Entry } from './seal';

interface FleetStoreOptions extends FleetParts {
  readonly changes: Pick<ChangeLog, 'asked' | 'givenUp'>;
  readonly identity: () => Promise<Identity>;
  readonly apply: (entry: Entry, revision: number) => Promise<Applied>;
}

interface Present {
  readonly stored: StoredValue | undefined;
  /** undefined: there is none, or it can't be opened. */
  readonly entry: Entry | undefined;
  readonly revision: number;
  /** Of the servers that answered. */
  readonly cluster: string;
}

const MAX_TRIES = 20;
const DAY_MS = 24 * 60 * 60_000;

const UNKNOWN: ChangeContext = { by: { key: '', address: '', requestId: '' }, awaited: false };

/** Makes a change only if the fleet's entry is still the one that it was decided on. Reads are of the folder here. */
export function createFleetStore(options: FleetStoreOptions): KeyFileStore & { offer: Offer } {
  const { name, local, keys, grouped, seal, versions, changes, clock, isTaken, apply, observer } = options;
  const queue = queueByName();

  const readPresent = async (streamId: StreamId): Promise<Present> => {
    const key = keys.entry(streamId);
    const { present: stored, revision, cluster } = await grouped.read(key);
    const entry = stored && seal().open(key, stored.value, streamId);
    if (entry) versions.see(entry.version);
    return { stored, entry, revision, cluster };
  };

  /** As a condition sees it: the fleet's, or one here that the fleet knows nothing of. */
  const fileOf = (streamId: StreamId, { entry }: Present): Buffer | undefined =>
    entry?.bytes ?? (isTaken(streamId) ? local.read(streamId) : undefined);

  const isUnreadable = ({ stored, entry }: Present): boolean => stored !== undefined && entry === undefined;

  const aheadOf = (present: Present) => (isUnreadable(present) ? { aheadMs: DAY_MS } : {});

  /** Undefined: another sidecar was faster, or it is another fleet now. */
  const put = async (
    entry: Entry,
    { stored, cluster }: Pick<Present, 'stored' | 'cluster'>,
  ): Promise<number | undefined> => {
    const key = keys.entry(entry.streamId);
    const identity = await options.identity();
    const value = seal().seal(key, entry);
    const guard = await identity.guard();
    if (guard.cluster !== cluster) {
      identity.invalidate();
      return undefined;
    }
    const change = { key, expected: stored?.revision ?? 0, value };
    const answer = await grouped.change(change, guard).catch((thrown: unknown) => {
      changes.givenUp(entry.id);
      throw thrown;
    });
    if (!answer) {
      identity.invalidate();
      return undefined;
    }
    if (answer.made) return answer.revision;
    // If the answer to a first attempt was lost, the present entry is this very one, or has followed it.
    const isOurs = ({ value }: StoredValue) => seal().open(key, value, entry.streamId)?.id === entry.id;
    const { present } = answer;
    if (present && isOurs(present)) return present.revision;
    const before = present && { limit: 1, revision: present.revision - 1 };
    const page = before && (await options.engine.list({ prefix: key }, before).catch(() => undefined));
    const former = page?.values[0];
    if (former?.key === key && isOurs(former)) return former.revision;
    changes.givenUp(entry.id);
    observer.conflict();
    return undefined;
  };

  const entryOf = (
    streamId: StreamId,
    bytes: Buffer | undefined,
    { by, awaited }: ChangeContext,
    { isFound = false, aheadMs = 0 } = {},
  ): Entry => {
    const id = options.newId();
    changes.asked(id);
    const [version, at] = [versions.next(aheadMs), clock().getTime()];
    return { streamId, id, version, bytes, at, by, from: name, awaited, isFound };
  };

  const accepted = async (entry: Entry, revision: number): Promise<FleetChange> => {
    if (!isTaken(entry.streamId)) return { revision, isTaken: false };
    const { result, cause } = await apply(entry, revision);
    if (result === 'failed') return { revision, isTaken: true, notHere: toHttpError(cause) };
    if (result === 'kept') return { revision, isTaken: true, notHere: apiError('fleet_kept') };
    return { revision, isTaken: true };
  };

  const change = <Answer>(streamId: StreamId, tryOnce: () => Promise<Answer | undefined>): Promise<Answer> =>
    queue(streamId, async () => {
      try {
        for (let tries = 0; tries < MAX_TRIES; tries += 1) {
          const answer = await tryOnce();
          if (answer !== undefined) return answer;
        }
      } catch (thrown) {
        throw toFleetError(thrown);
      }
      throw apiError('fleet_unavailable');
    });

  const write: KeyFileStore['write'] = (streamId, bytes, conditions = {}, context = UNKNOWN) =>
    change(streamId, async () => {
      const present = await readPresent(streamId);
      const former = fileOf(streamId, present);
      requireMatchInFleet(streamId, conditions, present, former);
      const { stored, revision } = present;
      const { dryRun, skipUnchanged } = conditions;
      if (dryRun || (skipUnchanged && isEverywhere(streamId, bytes, present))) {
        const fleet = { revision: stored?.revision ?? revision, isTaken: isTaken(streamId) };
        return { former, notSynced: undefined, fleet };
      }
      const entry = entryOf(streamId, bytes, context, aheadOf(present));
      const made = await put(entry, present);
      if (made === undefined) return undefined;
      return { former, notSynced: undefined, fleet: await accepted(entry, made) };
    });

  const isEverywhere = (streamId: StreamId, bytes: Buffer, { entry }: Present): boolean => {
    const isSame = (other: Buffer | undefined) => other !== undefined && isSameKeyFile(other, bytes);
    return isSame(entry?.bytes) && (!isTaken(streamId) || isSame(local.read(streamId)));
  };

  /** An entry that cannot be opened meets no condition: only a change without one is made. */
  const requireMatchInFleet = (
    streamId: StreamId,
    conditions: Conditions,
    present: Present,
    former: Buffer | undefined,
  ): void => {
    if (!isUnreadable(present)) requireMatch(conditions, former, () => local.read(streamId));
    else if ((conditions.ifMatch ?? conditions.ifNoneMatch) !== undefined)
      throw apiError('fleet_entry_unreadable');
  };

  /** Undefined: the file has changed meanwhile, perhaps by the fleet. */
  const removeHere = async (streamId: StreamId, former: Buffer): Promise<Change | undefined> => {
    try {
      return await local.remove(streamId, { ifMatch: etagOf(former) });
    } catch (thrown) {
      if (thrown instanceof HttpError && thrown.status === 412) return undefined;
      throw thrown;
    }
  };

  const remove: KeyFileStore['remove'] = (streamId, conditions = {}, context = UNKNOWN) =>
    change<Change>(streamId, async () => {
      const present = await readPresent(streamId);
      const former = fileOf(streamId, present);
      requireMatchInFleet(streamId, conditions, present, former);
      if (!isUnreadable(present)) {
        if (!former) return { former, notSynced: undefined };
        // A file that the fleet never had, or no longer has, is removed from this folder alone.
        if (!present.entry?.bytes) return removeHere(streamId, former);
      }
      const entry = entryOf(streamId, undefined, context, aheadOf(present));
      const made = await put(entry, present);
      if (made === undefined) return undefined;
      const fleet = await accepted(entry, made);
      return { former: former ?? Buffer.alloc(0), notSynced: undefined, fleet };
    });

  return {
    ...local,
    write,
    remove,
    offer: (streamId, bytes, by, mayReplace) =>
      change(streamId, async () => {
        const present = await readPresent(streamId);
        const { entry } = present;
        if (isUnreadable(present)) return 'unreadable';
        if (entry && !mayReplace(entry)) {
          if (!entry.bytes) return 'deleted';
          return entry.bytes.equals(bytes) ? 'same' : 'differs';
        }
        const offered = entryOf(streamId, bytes, { by, awaited: false }, { isFound: true });
        const made = await put(offered, present);
        if (made === undefined) return undefined;
        await accepted(offered, made);
        return 'imported';
      }),
  };
}

/** Gives the fleet a key file that is here, if it has none, or one that may be replaced. */
export type Offer = (
  streamId: StreamId,
  bytes: Buffer,
  by: ChangedBy,
  mayReplace: (entry: Entry) => boolean,
) => Promise<'imported' | 'same' | 'differs' | 'deleted' | 'unreadable'>;
