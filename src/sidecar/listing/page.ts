import { statSync } from 'node:fs';
import type { StreamId } from '../../api/stream-id';
import { describeKeyFile, type KeyFileEntry, type Summarise } from './entry';
import type { Walk } from './walk';

/** What a walk went past for one page. */
export interface Collected {
  readonly entries: readonly KeyFileEntry[];
  /** Whether the walk is over. */
  readonly ended: boolean;
}

/** Goes on with a walk until so many key files are described, or enough entries were looked at. */
export type Collect = (
  walk: Walk,
  limit: number,
  isWanted: (streamId: StreamId) => boolean,
) => Promise<Collected>;

/** How many folder entries a page looks at before it is answered with what was found, few or none. */
const MAX_LOOKED_AT = 20_000;
/** How long a page is worked on before others have their turn. */
const SLICE_MS = 4;

/**
 * Makes pages of the key files under `folder`. Files are read at once, as for a GET (`read-file.ts` says why), but in
 * slices: however many pages are under way, each turn of the event loop holds one slice at most. `now` answers
 * monotonic milliseconds.
 */
export function createCollect(folder: string, summarise: Summarise, now: () => number): Collect {
  let turn: Promise<void> = Promise.resolve();
  const nextTurn = () => {
    turn = turn.then(() => new Promise((resolve) => setImmediate(resolve)));
    return turn;
  };

  return async (walk, limit, isWanted) => {
    const entries: KeyFileEntry[] = [];
    let ended = false;
    await nextTurn();
    let since = now();
    for (let lookedAt = 0; entries.length < limit && lookedAt < MAX_LOOKED_AT; lookedAt += 1) {
      if (now() - since >= SLICE_MS) {
        await nextTurn();
        since = now();
      }
      const { done, value: streamId } = walk.next();
      if (done) {
        ended = true;
        break;
      }
      if (streamId === undefined || !isWanted(streamId)) continue;
      const entry = describeKeyFile(folder, streamId, summarise);
      if (entry) entries.push(entry);
    }
    // A folder that has vanished must not pass for one without key files.
    statSync(`${folder}/.`);
    return { entries, ended };
  };
}
