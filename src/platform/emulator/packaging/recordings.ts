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

/** Why there is no file yet, or none at all; `absent`: the packager has no such stream, or no such call. */
type Refusal = Pick<Extract<Outcome<never>, { ok: false }>, 'problem' | 'absent'>;

type Wanted = Pick<WantedRecording, 'take' | 'problem'> & Partial<Pick<WantedRecording, 'isWanted'>>;

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

  /** Without a packager, its absence is reported at once. */
  want(wanted: WantedRecording): void {
    if (!this.areMade) wanted.absent();
    else void this.#follow(wanted, this.#ending.signal);
  }

  convert(wanted: WantedConversion): void {
    void this.#convert(wanted, AbortSignal.any([this.#ending.signal, wanted.signal]));
  }

  reset(): void {
    this.#ending.abort();
    this.#ending = new AbortController();
  }

  async #follow(wanted: WantedRecording, signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#packaging.nextRound();
      if (signal.aborted || !wanted.isWanted()) return;
      const state = stateOf(this.#packaging.find(wanted.eventId), wanted.piece?.to);
      if (state === 'coming') continue;
      if (state === 'absent') return wanted.absent();
      const call = (client: PackagerClient) => client.record(wanted.eventId, wanted.piece, signal);
      const refused = await this.#fetch(wanted, call, this.#fetches, signal);
      if (!refused) return;
      if (refused.absent || refused.problem.code === 'nothing_recorded') return wanted.absent();
      wanted.problem(refused.problem.description, false);
      for (let round = 1; round < ROUNDS; round += 1) await this.#packaging.nextRound();
    }
  }

  async #convert(wanted: WantedConversion, signal: AbortSignal): Promise<void> {
    const { file, order, unconverted, problem } = wanted;
    const call = (client: PackagerClient) => client.convert(file, order, signal);
    for (;;) {
      const refused = await this.#fetch(wanted, call, this.#conversions, signal);
      if (!refused) return;
      const { code, description } = refused.problem;
      const isAway = code.startsWith('packager_');
      // An earlier packager has no such call.
      if (refused.absent || code === 'ffmpeg_missing') unconverted(description);
      else problem(description, !isAway);
      if (!isAway) return;
      for (let round = 0; round < ROUNDS; round += 1) await this.#packaging.nextRound();
    }
  }

  /** Answers why there is no file; undefined when there is no more to try. */
  async #fetch(
    wanted: Wanted,
    call: (client: PackagerClient) => Promise<Outcome<IncomingMessage>>,
    turns: Semaphore,
    signal: AbortSignal,
  ): Promise<Refusal | undefined> {
    const { client } = this.#packaging;
    const leave = await turns.enter();
    try {
      if (!client || signal.aborted) return undefined;
      const outcome = await call(client);
      if (signal.aborted) return undefined;
      if (!outcome.ok) return outcome;
      const file = await this.#uploads.files.receive(outcome.value, { maxBytes: MAX_FILE_BYTES });
      if (signal.aborted || wanted.isWanted?.() === false) await this.#uploads.files.remove(file);
      else await wanted.take({ ...file, declaredType: 'video/mp4' });
      return undefined;
    } catch (thrown) {
      if (signal.aborted) return undefined;
      const full = thrown instanceof HttpError && thrown.status !== 400 ? thrown.problems[0] : undefined;
      if (!full) return { problem: BROKE_OFF, absent: false };
      wanted.problem(full.description, true);
      return undefined;
    } finally {
      leave();
    }
  }
}

const BROKE_OFF: Problem = {
  code: 'packager_broke_off',
  description: 'The file broke off on its way from the packager.',
};

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
