import { HttpError } from '../../../http/errors';
import { createSemaphore } from '../../../http/semaphore';
import { MAX_FILE_BYTES } from '../resources/content';
import type { WantedRecording } from '../resources/events';
import type { Uploads } from '../uploads/uploads';
import { isDone, type PackagerClient } from './packager-client';
import type { Packaged, Packaging } from './packaging';

interface Waiting extends WantedRecording {
  readonly ending: AbortController;
  busy: boolean;
  /** Rounds to wait before it is tried again, and how many it was the last time. */
  wait: number;
  lastWait: number;
}

/** How many are fetched at a time. */
const FETCHES = 2;
const LONGEST_WAIT = 64;
/** What the packager answers when a recording has nothing of what is asked for. */
const NOTHING = 'nothing_recorded';

/** Fetches recordings of events from the packager, as soon as they are complete. */
export class Recordings {
  readonly #packaging: Packaging;
  readonly #uploads: Uploads;
  readonly #waiting = new Set<Waiting>();
  readonly #fetches = createSemaphore(FETCHES);

  constructor(packaging: Packaging, uploads: Uploads) {
    this.#packaging = packaging;
    this.#uploads = uploads;
    packaging.afterRounds(() => this.#look());
  }

  /** Whether there is a packager that records. */
  get areMade(): boolean {
    return this.#packaging.client !== undefined;
  }

  want(wanted: WantedRecording): void {
    this.#waiting.add({ ...wanted, ending: new AbortController(), busy: false, wait: 0, lastWait: 0 });
  }

  /** Nobody waits any more. */
  reset(): void {
    for (const { ending } of this.#waiting) ending.abort();
    this.#waiting.clear();
  }

  #look(): void {
    const { client } = this.#packaging;
    if (!client) return;
    for (const waiting of this.#waiting) {
      if (!waiting.isWanted()) {
        waiting.ending.abort();
        this.#waiting.delete(waiting);
        continue;
      }
      waiting.wait = Math.max(waiting.wait - 1, 0);
      if (waiting.busy || waiting.wait > 0) continue;
      const state = stateOf(this.#packaging.find(waiting.eventId), waiting.piece?.to);
      if (state === 'absent') this.#end(waiting, waiting.absent);
      else if (state === 'complete') void this.#fetch(client, waiting);
    }
  }

  async #fetch(client: PackagerClient, waiting: Waiting): Promise<void> {
    const { eventId, piece, ending, take, absent, problem } = waiting;
    waiting.busy = true;
    const leave = await this.#fetches.enter();
    try {
      const told = await client.record(eventId, piece, ending.signal);
      if (!this.#waiting.has(waiting)) {
        if (told.ok) told.value.destroy();
        return;
      }
      if (!told.ok) {
        if (told.absent || told.problem.code === NOTHING) this.#end(waiting, absent);
        else this.#tryAgain(waiting, told.problem.description);
        return;
      }
      const file = await this.#uploads.keep(told.value, { maxBytes: MAX_FILE_BYTES });
      if (!this.#waiting.has(waiting) || !waiting.isWanted()) {
        await this.#uploads.remove(file);
        return;
      }
      this.#waiting.delete(waiting);
      await take({ ...file, declaredType: 'video/mp4' });
    } catch (thrown) {
      if (!this.#waiting.has(waiting)) return;
      const [first] = thrown instanceof HttpError ? thrown.problems : [];
      const isFull = thrown instanceof HttpError && thrown.status !== 400;
      if (isFull && first) this.#end(waiting, () => problem(first.description, true));
      else this.#tryAgain(waiting, 'The recording broke off on its way from the packager.');
    } finally {
      waiting.busy = false;
      leave();
    }
  }

  #tryAgain(waiting: Waiting, description: string): void {
    waiting.lastWait = Math.min(Math.max(waiting.lastWait * 2, 1), LONGEST_WAIT);
    waiting.wait = waiting.lastWait;
    waiting.problem(description, false);
  }

  #end(waiting: Waiting, tell: () => void): void {
    this.#waiting.delete(waiting);
    tell();
  }
}

/** Whether a recording holds what is wanted of it, up to a second. */
function stateOf(packaged: Packaged | undefined, to: number | undefined): 'absent' | 'coming' | 'complete' {
  if (!packaged || packaged.isGone) return 'absent';
  const { document } = packaged;
  if (!document) return 'coming';
  const { started, problem, seconds } = document;
  const isOver = isDone(document);
  // An encoder without media, such as a simulated one.
  if (started === null && (isOver || problem !== null)) return 'absent';
  return isOver || (to !== undefined && seconds >= to) ? 'complete' : 'coming';
}
