import { HttpError, toHttpError } from '../../http/errors';
import { RefusalError } from '../provisioning/upstream';

/** After so many answers in a row that came too late, an upstream is not asked for the rest of a batch. */
const MAX_LATE = 24;
/** After so many refusals of a client in a row, nothing more is asked in its name. */
const MAX_REFUSED = 5;
const REFUSALS: readonly (string | undefined)[] = ['client_unknown', 'client_api_key_refused'];

/** In whose name upstreams are asked, as far as a request says it. */
interface Asking {
  readonly client?: unknown;
  readonly clientApiKey?: unknown;
}

/**
 * Runs what asks upstreams, as long as they answer in time and take the client: ten thousand timeouts would take hours,
 * and as many refusals minutes.
 */
type CircuitBreaker = <T>(asking: Asking, ask: () => Promise<T>) => Promise<T>;

export function createCircuitBreaker(): CircuitBreaker {
  const late = createStreak(MAX_LATE);
  const refused = new Map<string, Streak>();
  return async ({ client, clientApiKey }, ask) => {
    const name = [client, clientApiKey].map((part) => (typeof part === 'string' ? part : '')).join('\n');
    const refusals = refused.get(name) ?? createStreak(MAX_REFUSED);
    refused.set(name, refusals);
    const tooLate = late.end();
    if (tooLate)
      throw notAsked(tooLate, `${MAX_LATE} streams of this batch in a row were not provisioned in time`);
    const refusal = refusals.end();
    if (refusal) {
      const whom = refusal instanceof RefusalError ? 'what it is asked with' : 'this client';
      throw notAsked(refusal, `an upstream refused ${whom} ${MAX_REFUSED} times in a row`);
    }
    const note = (error?: HttpError) => {
      late.note(error?.status === 504 ? error : undefined);
      refusals.note(isRefusal(error) ? error : undefined);
    };
    try {
      const answer = await ask();
      note();
      return answer;
    } catch (thrown) {
      note(toHttpError(thrown));
      throw thrown;
    }
  };
}

function isRefusal(error: HttpError | undefined): boolean {
  return error instanceof RefusalError || REFUSALS.includes(error?.problems[0]?.code);
}

/** Counts failures of a kind that follow each other. */
interface Streak {
  /** Takes a failure, or what is none of its kind. */
  note(error: HttpError | undefined): void;
  /** The last failure, when there were too many. */
  end(): HttpError | undefined;
}

function createStreak(most: number): Streak {
  let count = 0;
  let last: HttpError | undefined;
  return {
    note(error) {
      count = error ? count + 1 : 0;
      last = error;
    },
    end: () => (count >= most ? last : undefined),
  };
}

function notAsked({ status, problems }: HttpError, why: string): HttpError {
  const advice =
    ADVICE[status] ?? 'correct the headers that the key provider wants, and send the batch again';
  const description = `Not tried: ${why}. No key file was changed; ${advice}.`;
  return new HttpError(status, { code: problems[0]?.code ?? 'key_provider_failed', description });
}

const ADVICE: Readonly<Record<number, string>> = {
  422: 'check client and clientApiKey, and send the batch again',
  504: 'send the batch again later',
};
