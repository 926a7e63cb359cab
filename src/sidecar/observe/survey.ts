import { setTimeout as wait } from 'node:timers/promises';
import type { StreamId } from '../../api/stream-id';
import { summariseKeyFile } from '../../drm/check/key-file-text';
import type { Finding } from '../../drm/finding';
import { keysIn } from '../../drm/key-file';
import { describeThrown } from '../../http/errors';
import type { Log } from '../../http/log';
import { indexedKeysIn, type KeyIndex } from '../key-files/key-index';
import { describeKeyFile, listStreamIds, type Summarise } from '../listing/folder';
import { isLeftAlone } from '../storage/conditions';
import type { KeyFileStore } from '../storage/key-file-store';

/** How many key files have an error, and how many have warnings alone. */
export interface FaultyKeyFiles extends Readonly<Record<'error' | 'warning', number>> {}

/** Counts the key files that have faults, and keeps the key index up to date with the files of the start and with removals. */
interface Survey {
  /** Undefined until the files that were there at the start are read. What was written is counted a little later. */
  counts(): FaultyKeyFiles | undefined;
  /** The same store, whose changes are followed. */
  follow(store: KeyFileStore): KeyFileStore;
  /** Reads all key files in the background, at most 2,000 a second. Never rejects. */
  run(): Promise<void>;
  close(): void;
}

/** More of them need no exact number; their names would take the memory. */
const MAX_FAULTY = 50_000;
/** As many files take a millisecond or two. */
const FILES_AT_A_STRETCH = 20;
const REST_MS = 10;
/** A written file is looked at later, and hardly while more is written: a look takes a fifth of the time of a write. */
const BUSY_REST_MS = 50;
/** Of a batch of a fleet, writes come in groups: so many rests without one say that it is over. */
const QUIET_RESTS = 4;
/** Beyond so many streams each is looked at at once. */
const MAX_WAITING = 100_000;

export function createSurvey(folder: string, log: Log, index: KeyIndex): Survey {
  const faulty = new Map<StreamId, keyof FaultyKeyFiles>();
  const written = new Set<StreamId>();
  /** How many files were written since the last rest. */
  let writes = 0;
  let isLooking = false;
  let isComplete = false;
  let isClosed = false;

  const note = (streamId: StreamId, faults: readonly Finding[]) => {
    faulty.delete(streamId);
    if (faults.length === 0 || faulty.size >= MAX_FAULTY) return;
    faulty.set(streamId, faults.some(({ severity }) => severity === 'error') ? 'error' : 'warning');
  };

  /** Read and noted in one turn: what a change notes later is newer. */
  const look = (streamId: StreamId, summarise: Summarise = summariseKeyFile) => {
    const entry = describeKeyFile(folder, streamId, summarise);
    if (entry) note(streamId, entry.faults);
  };

  /** The index knows the keys of what is written here, but not of what was there at the start. */
  const summariseAndIndex: Summarise = (text, streamId) => {
    index.set(streamId, indexedKeysIn(keysIn(text)));
    return summariseKeyFile(text);
  };

  const runAll = async (): Promise<void> => {
    let steps = 0;
    for (const streamId of await listStreamIds(folder)) {
      if (isClosed) return;
      look(streamId, summariseAndIndex);
      steps += 1;
      if (steps % FILES_AT_A_STRETCH === 0) await wait(REST_MS, undefined, { ref: false });
    }
    isComplete = true;
  };

  const lookAtWritten = async (): Promise<void> => {
    isLooking = true;
    let quiet = 0;
    while (written.size > 0 && !isClosed) {
      quiet = writes > 0 ? 0 : quiet + 1;
      const isBusy = quiet < QUIET_RESTS;
      writes = 0;
      await wait(isBusy ? BUSY_REST_MS : REST_MS, undefined, { ref: false });
      let count = isBusy ? 1 : FILES_AT_A_STRETCH;
      for (const streamId of written) {
        if (count === 0) break;
        written.delete(streamId);
        look(streamId);
        count -= 1;
      }
    }
    isLooking = false;
  };

  const failed = (thrown: unknown) => {
    isLooking = false;
    log.warn('key files can not be surveyed', { cause: describeThrown(thrown) });
  };

  return {
    counts() {
      if (!isComplete) return undefined;
      const counts = { error: 0, warning: 0 };
      for (const severity of faulty.values()) counts[severity] += 1;
      return counts;
    },
    follow: (store) => ({
      ...store,
      async write(streamId, bytes, conditions = {}, context) {
        const change = await store.write(streamId, bytes, conditions, context);
        if (isLeftAlone(conditions, change.former, bytes)) return change;
        writes += 1;
        if (written.size < MAX_WAITING) written.add(streamId);
        else look(streamId);
        if (!isLooking) lookAtWritten().catch(failed);
        return change;
      },
      async remove(streamId, conditions, context) {
        const change = await store.remove(streamId, conditions, context);
        written.delete(streamId);
        faulty.delete(streamId);
        index.set(streamId, undefined);
        return change;
      },
    }),
    run: () => runAll().catch(failed),
    close() {
      isClosed = true;
    },
  };
}
