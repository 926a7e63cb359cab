import type { IncomingMessage, ServerResponse } from 'node:http';
import { addressOf } from '../../http/address';
import { type HttpError, toHttpError } from '../../http/errors';
import { API } from '../access/api-key';
import type { Audit } from './audit';

/** Who tried what, as far as it was read. */
export interface Attempt {
  readonly key: string | undefined;
  readonly address: string;
  readonly streamId: string | undefined;
  readonly requestId: string;
}

/** Sees to it that every refused attempt has one line in the audit, wherever it is refused. */
export interface Refusals {
  /** Audits an attempt that failed, and answers the error to throw on. */
  refused(thrown: unknown, attempt: Attempt): HttpError;
  /** Audits a request that is answered with an error, unless that is done or it tried to change nothing. */
  answered(error: HttpError, request: IncomingMessage, response: ServerResponse): void;
}

/** What Express keeps of a request beside its response. */
interface WithLocals {
  readonly locals?: Partial<Express.Locals>;
}

const CHANGES = /^\/api\/keyfiles?(?:\/|\?|$)/i;
const CHANGING = new Set(['POST', 'DELETE']);
/** What a dry run is refused for changes nothing. */
const DRY_RUN = /[?&]dryrun=true\b/;
/** What is refused for who asks, and not for what. */
const FOR_THE_CALLER = new Set([401, 403, 429]);

export function createRefusals(audit: Audit): Refusals {
  // The members of a group may fail by one error: it is audited once for each stream.
  const done = new WeakMap<HttpError, Set<string | undefined>>();
  const refused = (thrown: unknown, { key, address, streamId, requestId }: Attempt) => {
    const error = toHttpError(thrown);
    const streams = done.get(error) ?? new Set();
    if (streams.has(streamId)) return error;
    done.set(error, streams.add(streamId));
    const result = error.problems[0]?.code ?? 'server_error';
    audit({
      action: 'refused',
      key,
      address,
      streamId,
      result,
      oldKeyId: undefined,
      newKeyId: undefined,
      requestId,
    });
    return error;
  };
  return {
    refused,
    answered(error, request, response) {
      const { url = '', method = '' } = request;
      const isAttempt = FOR_THE_CALLER.has(error.status)
        ? API.test(url)
        : CHANGING.has(method) && CHANGES.test(url) && !DRY_RUN.test(url);
      if (!isAttempt || done.has(error)) return;
      const { apiKey, logFields, requestId = '' } = (response as WithLocals).locals ?? {};
      const streamId = logFields?.streamId;
      refused(error, {
        key: apiKey?.name,
        address: addressOf(request),
        streamId: typeof streamId === 'string' ? streamId : undefined,
        requestId,
      });
    },
  };
}
