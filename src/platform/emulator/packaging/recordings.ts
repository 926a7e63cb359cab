import type { IncomingMessage } from 'node:http';
import { HttpError } from '../../../http/errors';
import { createSemaphore, type Semaphore } from '../../../http/semaphore';
import { MAX_FILE_BYTES } from '../resources/content';
import type { WantedRecording } from '../resources/events';
import type { WantedConversion } from '../resources/renditions';
import type { Uploads } from '../uploads/uploads';
import { type Failed, failed, isDone, type Outcome, type PackagerClient } from './packager-client';
import type { Packaged, Packaging } from './packaging';

/** How many are fetched at a time, and the rounds between two tries. */
const FETCHES = 2;
const ROUNDS = 4;
/** How long a conversion may take with those before it, in milliseconds. */
const CONVERSION_MS = 12 * 60 * 60 * 1000;

type Wanted = Pick<WantedRecording, 'take' | 'problem'> & Partial<Pick<WantedRecording, 'isWanted'>>;

/** Fetches recordings of events, as soon as they are complete, and conversions from the packager. */
export class Recordings {
  readonly #fetches = createSemaphore(FETCHES);
  /** Next to them: a conversion takes long. */
  readonly #conversions = createSemaphore(1);
  #ending = new AbortController();

  constructor(
    private readonly packaging: Packaging,
    private readonly uploads: Uploads,
  ) {}

  get areMade(): boolean {
    return this.packaging.client !== undefined;
  }

  /** Without a packager, its absence is reported at once. */
  want(wanted: WantedRecording): void {
    const { client } = this.packaging;
    if (client) void this.#follow(client, wanted, this.#ending.signal);
    else wanted.absent();
  }

  convert(wanted: WantedConversion): void {
    const { client } = this.packaging;
    if (client) void this.#convert(client, wanted, AbortSignal.any([this.#ending.signal, wanted.signal]));
  }

  reset(): void {
    this.#ending.abort();
    this.#ending = new AbortController();
  }

  async #follow(client: PackagerClient, wanted: WantedRecording, signal: AbortSignal): Promise<void> {
    const { eventId, piece } = wanted;
    const path = `/streams/${eventId}/recording${piece ? `?from=${piece.from}&to=${piece.to}` : ''}`;
    for (;;) {
      await this.packaging.nextRound();
      if (signal.aborted || !wanted.isWanted()) return;
      const state = stateOf(this.packaging.find(eventId), piece?.to);
      if (state === 'coming') continue;
      if (state === 'absent') return wanted.absent();
      const call = () => client.open({ method: 'GET', path, signal, timeout: client.limits.fileMs });
      const refused = await this.#fetch(wanted, call, this.#fetches, signal);
      if (!refused) return;
      if (refused.absent || refused.problem.code === 'nothing_recorded') return wanted.absent();
      wanted.problem(refused.problem.description, false);
      for (let round = 1; round < ROUNDS; round += 1) await this.packaging.nextRound();
    }
  }

  /** Fetches a media file in another size: in pixels, at most, and in kbit/s of the picture; sound alone without both. */
  async #convert(client: PackagerClient, wanted: WantedConversion, signal: AbortSignal): Promise<void> {
    const { file, order, unconverted, problem } = wanted;
    const query = Object.entries(order).map(([name, value]) => `${name}=${value}`);
    const path = `/conversions?${query.join('&')}`;
    for (;;) {
      const call = () => client.open({ method: 'POST', path, file, signal, timeout: CONVERSION_MS });
      const refused = await this.#fetch(wanted, call, this.#conversions, signal);
      if (!refused) return;
      const { code, description } = refused.problem;
      const isAway = code.startsWith('packager_');
      // An earlier packager has no such call.
      if (refused.absent || code === 'ffmpeg_missing') unconverted(description);
      else problem(description, !isAway);
      if (!isAway) return;
      for (let round = 0; round < ROUNDS; round += 1) await this.packaging.nextRound();
    }
  }

  /** Returns the reason that there is no file; undefined when there is no more to try. */
  async #fetch(
    wanted: Wanted,
    call: () => Promise<Outcome<IncomingMessage>>,
    turns: Semaphore,
    signal: AbortSignal,
  ): Promise<Failed | undefined> {
    using _turn = await turns.enter();
    try {
      const outcome = await call();
      if (!outcome.ok) return signal.aborted ? undefined : outcome;
      const file = await this.uploads.files.receive(outcome.value, { maxBytes: MAX_FILE_BYTES });
      if (signal.aborted || wanted.isWanted?.() === false) await this.uploads.files.remove(file);
      else await wanted.take({ ...file, declaredType: 'video/mp4' });
      return undefined;
    } catch (thrown) {
      if (signal.aborted) return undefined;
      const full = thrown instanceof HttpError && thrown.status !== 400 ? thrown.problems[0] : undefined;
      if (!full) return failed('packager_broke_off', 'The file broke off on its way from the packager.');
      wanted.problem(full.description, true);
      return undefined;
    }
  }
}

/** Whether a recording contains the wanted piece, up to a second. */
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
