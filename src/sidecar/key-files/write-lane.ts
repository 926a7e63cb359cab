import type { IncomingMessage, RequestListener } from 'node:http';
import { parseKeyFileRequest } from '../../api/read-key-file-request';
import { addressOf } from '../../http/address';
import { createErrorAnswer, type ErrorAnswerOptions } from '../../http/answer-error';
import { toHttpError } from '../../http/errors';
import { type RequestLogOptions, requestLog } from '../../http/request-log';
import { API_HEADERS, securityHeaders } from '../../http/security-headers';
import type { FindApiKey } from '../access/api-key';
import type { Refusals } from '../observe/refusals';
import { preconditionOf } from './etag';
import { KEY_FILE_HEADERS, warningHeader } from './key-file-answer';
import { type Actor, attemptOf, type KeyFileChanges } from './key-file-changes';
import { KEY_FILE_PATH, MAX_BODY_BYTES } from './key-file-routes';
import { type PlainRequest, readPlainRequest } from './plain-request';

/**
 * Answers the plain POST of a key file without the way through Express and its body parser, a third of the processor
 * time of a durable write, and hands every other request on: another media type, a body in chunks or compressed, a
 * query. What it answers, errors, headers and log line included, is what the route would: a test compares the two.
 */
export function withWriteLane(
  app: RequestListener,
  findApiKey: FindApiKey,
  changes: KeyFileChanges,
  refusals: Refusals,
  options: RequestLogOptions & ErrorAnswerOptions,
): RequestListener {
  const follow = requestLog(options);
  const answerError = createErrorAnswer(options);
  const common = securityHeaders(API_HEADERS);
  const fixed = [...common, ...KEY_FILE_HEADERS].flat();
  return (request, response) => {
    const started = options.now();
    const found = find(request, findApiKey);
    if (!found) {
      app(request, response);
      return;
    }
    const { plain, length } = found;
    const { path, streamId, apiKey } = plain;
    const facts = () => ({ route: KEY_FILE_PATH, path, fields: { streamId } });
    const requestId = follow(request, response, facts, started);
    const actor: Actor = { apiKey, requestId, address: addressOf(request) };
    const put = async () => {
      const body = parseJson(await readBody(request, length));
      const precondition = preconditionOf(request.headers);
      return changes.put(streamId, () => parseKeyFileRequest(body), actor, { precondition });
    };
    put().then(
      ({ bytes, etag, warnings }) => {
        const warned = warnings.flatMap((finding) => ['warning', warningHeader(finding)]);
        const own = ['etag', etag, 'content-length', String(bytes.length)];
        response.writeHead(200, ['x-request-id', requestId, ...fixed, ...warned, ...own]);
        response.end(bytes.toString('latin1'), 'latin1');
      },
      (thrown: unknown) => {
        const error = refusals.refused(thrown, attemptOf(actor, streamId));
        // A body that came too late has been answered by the server.
        if (!response.headersSent) {
          response.setHeader('x-request-id', requestId);
          for (const [name, value] of common) response.setHeader(name, value);
        }
        answerError(request, response, requestId, error);
      },
    );
  };
}

function find(
  request: IncomingMessage,
  findApiKey: FindApiKey,
): { plain: PlainRequest; length: number } | undefined {
  const { headers } = request;
  if (headers['content-type'] !== 'application/json' || headers['content-encoding'] !== undefined)
    return undefined;
  const length = Number(headers['content-length'] ?? Number.NaN);
  // An empty body and one that is too long are the route's.
  if (!(length > 0 && length <= MAX_BODY_BYTES)) return undefined;
  const plain = readPlainRequest(request, 'POST', findApiKey);
  return plain && { plain, length };
}

/** Node's parser sees to it that the body has the length that was announced; a client may go away before. */
function readBody(request: IncomingMessage, length: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.once('end', () => {
      const [first] = chunks;
      const whole = first?.length === length ? first : Buffer.concat(chunks);
      resolve(whole.toString('utf8'));
    });
    const aborted = () => {
      // An error keeps its stack, which costs more than all else here.
      if (!request.readableEnded) reject(toHttpError({ type: 'request.aborted' }));
    };
    request.once('error', aborted);
    // A request that the server has answered for is destroyed without an error.
    request.once('close', aborted);
  });
}

/** As body-parser reads it: an object or a list, behind a byte order mark or white space. */
function parseJson(text: string): unknown {
  const json = text.startsWith('\ufeff') ? text.slice(1) : text;
  try {
    if (/^[ \t\r\n]*[[{]/.test(json)) return JSON.parse(json);
  } catch {
    // V8's message quotes what it chokes on.
  }
  throw toHttpError({ type: 'entity.parse.failed' });
}
