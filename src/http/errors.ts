import { STATUS_CODES } from 'node:http';
import type { Parsed, Problem } from './faults';

export type { Problem };

/** The one error that becomes an answer: an HTTP status and every problem found, in the order they were found. */
export class HttpError extends Error {
  readonly status: number;
  readonly problems: readonly Problem[];
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    problems: Problem | readonly Problem[],
    options: { cause?: unknown; headers?: Record<string, string> } = {},
  ) {
    const list: readonly Problem[] = 'code' in problems ? [problems] : problems;
    super(list.map((problem) => problem.code).join(', '), { cause: options.cause });
    this.name = 'HttpError';
    this.status = status;
    this.problems = list;
    this.headers = options.headers ?? {};
  }
}

/** What was parsed. @throws HttpError 400 with every problem. */
export function parsedOr400<T>(parsed: Parsed<T>): T {
  if (parsed.ok) return parsed.value;
  throw new HttpError(400, parsed.problems);
}

const SERVER_ERROR: Problem = {
  code: 'server_error',
  description: 'The service failed. The cause is in its log under the request id of this answer.',
};

const UNDECODABLE_PATH: Problem = {
  code: 'invalid_path',
  description: 'The path holds a percent-encoding that is not UTF-8. Encode each part of it once.',
};

/** What body-parser and Express raise themselves. Their messages quote the request, so none of them is passed on. */
const FOREIGN: Readonly<Record<string, [status: number, problem: Problem]>> = {
  'entity.parse.failed': [
    400,
    { code: 'malformed_json', description: 'The body is not valid JSON. Send one JSON object.' },
  ],
  'entity.too.large': [
    413,
    { code: 'body_too_large', description: 'The body is larger than this route takes.' },
  ],
  'encoding.unsupported': [
    415,
    { code: 'unsupported_media_type', description: 'Send the body without that content-encoding.' },
  ],
  'charset.unsupported': [415, { code: 'unsupported_media_type', description: 'Send the body as UTF-8.' }],
  'request.size.invalid': [
    400,
    { code: 'invalid_body', description: 'The body is not as long as its content-length says.' },
  ],
  'request.aborted': [400, { code: 'invalid_body', description: 'The request ended before its body did.' }],
};

/**
 * Turns whatever was thrown into the error to answer with. A foreign error keeps its 4xx status at most: its text
 * may quote a request body or a file, so neither goes further than the log.
 */
export function toHttpError(thrown: unknown): HttpError {
  if (thrown instanceof HttpError) return thrown;
  const foreign = FOREIGN[textProperty(thrown, 'type') ?? ''];
  if (foreign) return new HttpError(foreign[0], withLimit(foreign[1], numberProperty(thrown, 'limit')));
  if (textProperty(thrown, 'name') === 'URIError') return new HttpError(400, UNDECODABLE_PATH);
  const status = numberProperty(thrown, 'status');
  if (status !== undefined && status >= 400 && status < 500) {
    const name = STATUS_CODES[status] ?? 'Bad Request';
    const code = name.toLowerCase().replaceAll(/[^a-z]+/g, '_');
    return new HttpError(status, { code, description: `The request can't be read: ${name.toLowerCase()}.` });
  }
  return new HttpError(500, SERVER_ERROR, { cause: thrown });
}

/** Says how much a route takes where body-parser tells it (in bytes). */
function withLimit({ code, description }: Problem, limit: number | undefined): Problem {
  if (limit === undefined) return { code, description };
  return { code, description: `${description.slice(0, -1)}: ${limit / 1024} KiB.` };
}

/** The error body of every answer that isn't a success. */
export function errorBody(error: HttpError): { errors: Problem[] } {
  return { errors: error.problems.map(({ code, description }) => ({ code, description })) };
}

/** A thrown value as plain data for a log line, without the messages that quote what was being parsed. */
export function describeThrown(thrown: unknown, depth = 0): Record<string, unknown> {
  const name = textProperty(thrown, 'name') ?? typeof thrown;
  const stack = textProperty(thrown, 'stack');
  const cause = property(thrown, 'cause');
  // V8's JSON messages quote the text they choke on, which may be key material.
  const quotes = name === 'SyntaxError';
  return {
    name,
    ...present('code', textProperty(thrown, 'code')),
    ...present('syscall', textProperty(thrown, 'syscall')),
    ...present('message', quotes ? undefined : textProperty(thrown, 'message')),
    ...present('stack', stack === undefined ? undefined : framesOf(stack)),
    ...present('cause', cause === undefined || depth > 3 ? undefined : describeThrown(cause, depth + 1)),
  };
}

/** `error.code` of a system error (`ENOENT`). Not `instanceof Error`: that fails across realms. */
export function systemCode(thrown: unknown): string | undefined {
  return textProperty(thrown, 'code');
}

function framesOf(stack: string): string[] {
  return stack
    .split('\n')
    .filter((line) => line.startsWith('    at '))
    .map((line) => line.trim());
}

function present(name: string, value: unknown): Record<string, unknown> {
  return value === undefined ? {} : { [name]: value };
}

function property(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

function textProperty(value: unknown, name: string): string | undefined {
  const found = property(value, name);
  return typeof found === 'string' ? found : undefined;
}

function numberProperty(value: unknown, name: string): number | undefined {
  const found = property(value, name);
  return typeof found === 'number' ? found : undefined;
}
