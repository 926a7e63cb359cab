import { HttpError, toHttpError } from '../../kernel/errors';

/** After so many answers in a row that came too late, an upstream is not asked for the rest of a batch. */
const MOST_LATE = 24;

/** Runs what asks upstreams, as long as they answer in time: ten thousand timeouts would take hours. */
export type Patience = <T>(ask: () => Promise<T>) => Promise<T>;

export function createPatience(): Patience {
  let late = 0;
  let last: HttpError | undefined;
  return async (ask) => {
    if (last && late >= MOST_LATE) throw notAsked(last);
    try {
      const answer = await ask();
      late = 0;
      return answer;
    } catch (thrown) {
      const error = toHttpError(thrown);
      if (error.status === 504) {
        late += 1;
        last = error;
      } else {
        late = 0;
      }
      throw thrown;
    }
  };
}

function notAsked({ status, problems }: HttpError): HttpError {
  const description = `Not tried: ${MOST_LATE} streams of this batch in a row were not provisioned in time. No key file was changed; send the batch again later.`;
  return new HttpError(status, { code: problems[0]?.code ?? 'key_provider_failed', description });
}
