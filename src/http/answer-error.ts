import type { IncomingMessage, ServerResponse } from 'node:http';
import { describeThrown, errorBody, type HttpError, toHttpError } from './errors';
import type { Log } from './log';

export interface ErrorAnswerOptions {
  readonly log: Log;
  /** Takes every error that is answered. Must not throw. */
  readonly onError?:
    | ((error: HttpError, request: IncomingMessage, response: ServerResponse) => void)
    | undefined;
}

/** Answers a request with what was thrown. The request id is that of its log line. */
export type AnswerError = (
  request: IncomingMessage,
  response: ServerResponse,
  requestId: string,
  thrown: unknown,
) => void;

/** The one writer of errors: in the JSON form of all, with the cause of a failure in the log and nowhere else. */
export function createErrorAnswer({ log, onError }: ErrorAnswerOptions): AnswerError {
  return (request, response, requestId, thrown) => {
    const error = toHttpError(thrown);
    onError?.(error, request, response);
    if (error.status >= 500) {
      const cause = error.cause === undefined ? undefined : describeThrown(error.cause);
      const codes = error.problems.map((problem) => problem.code);
      const fields = { requestId, status: error.status, codes, cause };
      // 503 is a state that lasts and that probes ask for; the others are failures.
      if (error.status === 503) log.warn('not available', fields);
      else log.error('request failed', fields);
    }
    if (request.socket.destroyed && !request.complete) {
      // The client went away amid its request: there is nobody to answer, and the log should not say so.
      response.destroy();
      return;
    }
    if (response.headersSent) {
      // Half an answer is out: only a cut connection tells that it isn't whole.
      response.destroy();
      return;
    }
    const body = JSON.stringify(errorBody(error));
    response.statusCode = error.status;
    for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value);
    response.setHeader('content-type', 'application/json; charset=utf-8');
    response.setHeader('content-length', Buffer.byteLength(body));
    response.end(body);
  };
}
