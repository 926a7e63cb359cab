import type { IncomingMessage } from 'node:http';
import { HttpError } from '../../../http/errors';
import type { Problem } from '../../../http/faults';
import { createSemaphore, type Semaphore } from '../../../http/semaphore';
import { MAX_FILE_BYTES } from '../resources/content';
import type { WantedRecording } from '../resources/events';
import type { WantedConversion } from '../resources/renditions';
import type { Uploads } from '../uploads/uploads';
import { isDone, type Outcome, type PackagerClient } from './packager-client';
import type { Packaged, Packaging } from './packaging';

/** How many are fetched at a time, and how many rounds lie between two tries. */
const FETCHES = 2;
const ROUNDS = 4;

/** A call of the packager that answers a file. */
interface WantedFile extends Pick<WantedRecording, 'isWanted' | 'take' | 'problem'> {
  readonly call: (client: PackagerClient) => Promise<Outcome<IncomingMessage>>;
  /** Answers whether there is no more to try. */
  readonly refused: (problem: Problem, isAbsent: boolean) => boolean;
}

/** Fetches what the packager makes of media: recordings of events, as soon as they are complete, and conversions. */
export class Recordings {
  readonly #packaging: Packaging;
  readonly #uploads: Uploads;
  readonly #fetches = createSemaphore(FETCHES);
  /** Next to them: a conversion takes long. */
  readonly #conversions = createSemaphore(1);
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

  convert(wanted: WantedConversion): void {
    void this.#convert(wanted, AbortSignal.any([this.#ending.signal, wanted.signal]));
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
      const { eventId, piece, absent, problem } = wanted;
      const file: WantedFile = {
        ...wanted,
        call: (client) => client.record(eventId, piece, signal),
        refused({ code, description }, isUnknown) {
          const isAbsent = isUnknown || code === 'nothing_recorded';
          if (isAbsent) absent();
          else problem(description, false);
          return isAbsent;
        },
      };
      isOver = await this.#fetch(file, this.#fetches, signal);
      for (let round = 1; !isOver && round < ROUNDS; round += 1) await this.#packaging.nextRound();
    }
  }

  async #convert(wanted: WantedConversion, signal: AbortSignal): Promise<void> {
    const { file, order, unconverted, problem } = wanted;
    const conversion: WantedFile = {
      ...wanted,
      isWanted: () => true,
      call: (client) => client.convert(file, order, signal),
      refused({ code, description }, isUnknown) {
        const isAway = code.startsWith('packager_');
        // An earlier packager has no such call.
        if (isUnknown || code === 'ffmpeg_missing') unconverted(description);
        else problem(description, !isAway);
        return !isAway;
      },
    };
    for (let isOver = false; !isOver && !signal.aborted; ) {
      isOver = await this.#fetch(conversion, this.#conversions, signal);
      for (let round = 0; !isOver && round < ROUNDS; round += 1) await this.#packaging.nextRound();
    }
  }

  /** Answers whether there is no more to try. */
  async #fetch(wanted: WantedFile, turns: Semaphore, signal: AbortSignal): Promise<boolean> {
    const { client } = this.#packaging;
    const { call, take, refused, problem } = wanted;
    const leave = await turns.enter();
    try {
      if (!client || signal.aborted) return true;
      const outcome = await call(client);
      if (signal.aborted) return true;
      if (!outcome.ok) return refused(outcome.problem, outcome.absent);
      const file = await this.#uploads.keep(outcome.value, { maxBytes: MAX_FILE_BYTES });
      if (signal.aborted || !wanted.isWanted()) await this.#uploads.remove(file);
      else await take({ ...file, declaredType: 'video/mp4' });
      return true;
    } catch (thrown) {
      if (signal.aborted) return true;
      const full = thrown instanceof HttpError && thrown.status !== 400 ? thrown.problems[0] : undefined;
      problem(full?.description ?? 'The file broke off on its way from the packager.', !!full);
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
