import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Log } from './log';

export interface RequestLogOptions {
  readonly log: Log;
  /** A new, unguessable request id. */
  readonly newId: () => string;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Paths that machines ask for every few seconds; they and what is below them are logged at `debug`. */
  readonly quietPaths?: readonly string[];
  /** Takes the figures of every request when its answer is done. Must not throw. */
  readonly observe?: ((answered: AnsweredRequest) => void) | undefined;
}

/** The figures of one request. */
export interface AnsweredRequest {
  readonly method: string;
  /** The route's pattern, or `unmatched`. */
  readonly route: string;
  /** `CLIENT_GONE` when the connection ended before there was an answer. */
  readonly status: number;
  readonly ms: number;
  /** Whether the connection ended before the answer did. */
  readonly aborted: boolean;
}

/** What an answer's log line says beside status and duration. Read when the answer is done. */
export interface RequestFacts {
  /** The route's pattern, not the path: a path is a stranger's text. */
  readonly route: string;
  readonly path: string;
  /** What the handler adds. Never a secret. */
  readonly fields: Readonly<Record<string, unknown>> | undefined;
}

export type FollowRequest = (
  request: IncomingMessage,
  response: ServerResponse,
  facts: () => RequestFacts,
  /** When the request began, in the milliseconds of `now`, if not just now. */
  started?: number,
) => string;

/** What nginx logs for a client that went away before its answer. */
export const CLIENT_GONE = 499;

const REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/**
 * Follows a request to its log line, and answers its id: the caller's `x-request-id` when it is fit for a log, else a
 * new one.
 */
export function requestLog({ log, newId, now, quietPaths = [], observe }: RequestLogOptions): FollowRequest {
  const isQuiet = (path: string) =>
    quietPaths.some((quiet) => path === quiet || path.startsWith(quiet.endsWith('/') ? quiet : `${quiet}/`));
  return (request, response, facts, started = now()) => {
    const given = request.headers['x-request-id'];
    const requestId = typeof given === 'string' && REQUEST_ID.test(given) ? given : newId();
    response.on('close', () => {
      const { route, path, fields } = facts();
      const aborted = !response.writableFinished;
      const status = aborted && !response.headersSent ? CLIENT_GONE : response.statusCode;
      const ms = Math.round((now() - started) * 100) / 100;
      const { method = '' } = request;
      const entry = { requestId, method, route, status, ms, ...(aborted && { aborted }), ...fields };
      if (status < 400 && isQuiet(path)) log.debug('request', entry);
      else log.info('request', entry);
      observe?.({ method, route, status, ms, aborted });
    });
    return requestId;
  };
}
