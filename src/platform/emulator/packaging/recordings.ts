import { HttpError } from '../../../http/errors';
import { createSemaphore } from '../../../http/semaphore';
import { MAX_FILE_BYTES } from '../resources/content';
import type { WantedRecording } from '../resources/events';
import type { Uploads } from '../uploads/uploads';
import { isDone } from './packager-client';
import type { Packaged, Packaging } from './packaging';

/** How many are fetched at a time, and how many rounds lie between two tries. */
const FETCHES = 2;
const ROUNDS = 4;

/** Fetches recordings of events from the packager, as soon as they are complete. */
export class Recordings {
  readonly #packaging: Packaging;
  readonly #uploads: Uploads;
  readonly #fetches = createSemaphore(FETCHES);
  #ending = new AbortController();

  constructor(packaging: Packaging, uploads: Uploads) {
    this.#packaging = packaging;
    this.#uploads = uploads;
  }

  get areMade(): boolean {
    return this.#packaging.client !== undefined;
  }

  want(wanted: WantedRecording): void {
    void this.#follow(wanted, this.#ending.signal);
  }

  reset(): void {
    this.#ending.abort();
    this.#ending = new AbortController();
  }

  async #follow(wanted: WantedRecording, signal: AbortSignal): Promise<void> {
    for (let isOver = false; !isOver; ) {
      await this.#packaging.nextRound();
      if (signal.aborted || !wanted.isWanted()) return;
      const state = stateOf(this.#packaging.find(wanted.eventId), wanted.piece?.to);
      if (state === 'coming') continue;
      if (state === 'absent') return wanted.absent();
      isOver = await this.#fetch(wanted, signal);
      for (let round = 1; !isOver && round < ROUNDS; round += 1) await this.#packaging.nextRound();
    }
  }

  /** Answers whether there is no more to try. */
  async #fetch(wanted: WantedRecording, signal: AbortSignal): Promise<boolean> {
    const { client } = this.#packaging;
    const { eventId, piece, take, absent, problem } = wanted;
    const leave = await this.#fetches.enter();
    try {
      const outcome = await client?.record(eventId, piece, signal);
      if (!outcome || signal.aborted) return true;
      if (!outcome.ok) {
        const isAbsent = outcome.absent || outcome.problem.code === 'nothing_recorded';
        if (isAbsent) absent();
        else problem(outcome.problem.description, false);
        return isAbsent;
      }
      const file = await this.#uploads.keep(outcome.value, { maxBytes: MAX_FILE_BYTES });
      if (signal.aborted || !wanted.isWanted()) await this.#uploads.remove(file);
      else await take({ ...file, declaredType: 'video/mp4' });
      return true;
    } catch (thrown) {
      if (signal.aborted) return true;
      const full = thrown instanceof HttpError && thrown.status !== 400 ? thrown.problems[0] : undefined;
      problem(full?.description ?? 'The recording broke off on its way from the packager.', !!full);
      return full !== undefined;
    } finally {
      leave();
    }
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
