import { isUtf8 } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import accepts from 'accepts';
import { MAX_BODY_BYTES } from '../../api/key-file-request';
import { parseKeyFileRequest, readKeyFileLines } from '../../api/read-key-file-request';
import type { StreamId } from '../../api/stream-id';
import type { Finding } from '../../drm/cross-check';
import { parseKeyFile } from '../../drm/key-file';
import { addressOf } from '../../http/address';
import { createReadJson, createReadText, requireType } from '../../http/body';
import type { HttpError } from '../../http/errors';
import { type ApiKey, requireRead } from '../access/api-key';
import { apiError } from '../errors';
import type { KeyFileStore } from '../storage/key-file-store';
import type { KeyFileChanges, PutOutcome } from './changes';
import { isDryRun, isKeepUnknown, lineChanges, refuseQuery, renderLineChanges } from './dry-run';
import { etagOf, isUnchanged, preconditionOf } from './etag';

interface KeyFileContext {
  readonly store: KeyFileStore;
  readonly changes: KeyFileChanges;
}

/** What is known of a request when its handler is called: whoever dispatches has read path, key and query. */
interface KeyFileCall {
  readonly streamId: StreamId;
  readonly apiKey: ApiKey;
  readonly requestId: string;
  readonly query: Readonly<Record<string, unknown>>;
}

export type KeyFileHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  call: KeyFileCall,
) => void | Promise<void>;

/** GET, POST and DELETE of a stream's key file. Every answer is the file's lines. */
export interface KeyFileHandlers {
  readonly get: KeyFileHandler;
  readonly post: KeyFileHandler;
  readonly delete: KeyFileHandler;
}

const TEXT = 'text/plain';
const JSON_TYPE = 'application/json';

const WHICH_TYPES =
  'Send the body as JSON, with content-type: application/json, or the lines of a key file as text/plain.';

export function createKeyFileHandlers({ store, changes }: KeyFileContext): KeyFileHandlers {
  const readJson = createReadJson(MAX_BODY_BYTES);
  const readText = createReadText(MAX_BODY_BYTES);
  const actorOf = (request: IncomingMessage, { apiKey, requestId }: KeyFileCall) => ({
    apiKey,
    requestId,
    address: addressOf(request),
  });
  return {
    get(request, response, { streamId, apiKey }) {
      requireRead(apiKey, streamId);
      const bytes = store.read(streamId);
      if (!bytes) throw apiError('key_file_not_found');
      const etag = etagOf(bytes);
      if (isUnchanged(request.headers['if-none-match'], etag)) answerUnchanged(response, etag);
      else answerKeyFile(request, response, streamId, { bytes, etag });
    },

    async post(request, response, call) {
      const { streamId, query } = call;
      const isLines = requireType(request, [JSON_TYPE, TEXT], WHICH_TYPES) === TEXT;
      const body = isLines ? await readText(request, response) : await readJson(request, response);
      const dryRun = isDryRun(query, ...(isLines ? ['keepunknown'] : []));
      const keepUnknown = isLines && isKeepUnknown(query);
      const read = () =>
        Buffer.isBuffer(body) ? readKeyFileLines(body, keepUnknown) : parseKeyFileRequest(body);
      const options = { precondition: preconditionOf(request.headers), dryRun };
      const outcome = await changes.put(streamId, read, actorOf(request, call), options);
      warn(response, outcome.warnings);
      if (dryRun) answerDryRun(request, response, streamId, outcome);
      else answerKeyFile(request, response, streamId, outcome);
    },

    async delete(request, response, call) {
      const { streamId, query } = call;
      refuseQuery(query);
      const precondition = preconditionOf(request.headers);
      const { bytes, warnings } = await changes.remove(streamId, actorOf(request, call), precondition);
      if (!bytes) throw apiError('key_file_not_found');
      warn(response, warnings);
      answerKeyFile(request, response, streamId, { bytes, etag: etagOf(bytes) });
    },
  };
}

/** The file byte for byte, or its lines as JSON for a client that asks for JSON. */
function answerKeyFile(
  request: IncomingMessage,
  response: ServerResponse,
  streamId: StreamId,
  { bytes, etag }: Pick<PutOutcome, 'bytes' | 'etag'>,
): void {
  const lines = prefersJson(request) ? linesOf(bytes) : undefined;
  response.setHeader('cache-control', 'no-store');
  response.setHeader('etag', etag);
  if (lines) {
    answerJson(response, { streamid: streamId, lines });
    return;
  }
  response.setHeader('content-type', 'text/plain; charset=utf-8');
  response.setHeader('content-length', bytes.length);
  // As a one-byte string the file leaves together with the headers; a Buffer would be a second piece.
  response.end(bytes.toString('latin1'), 'latin1');
}

/** The contract's text, unless JSON is what the client would rather have: one that takes either as gladly gets text. */
function prefersJson(request: IncomingMessage): boolean {
  const { accept = '' } = request.headers;
  // Most clients send */* or nothing; only a header that speaks of JSON is worth weighing.
  if (!/json|application\/\*/i.test(accept) || /text\/plain\s*(?:,|$)/i.test(accept)) return false;
  return accepts(request).types([TEXT, JSON_TYPE]) === JSON_TYPE;
}

/** @throws HttpError 409 when the file is not lines of `name: value`. */
function linesOf(bytes: Buffer) {
  if (!isUtf8(bytes)) throw malformed('The key file is not UTF-8. Read it as text/plain, or write it again.');
  const { lines, unreadable } = parseKeyFile(bytes.toString('utf8'));
  if (unreadable.length > 0)
    throw malformed(
      `Line ${unreadable[0]} of the key file is not "name: value". Read the file as text/plain, or write it again.`,
    );
  return lines;
}

/** The answer to a GET whose `If-None-Match` names the file: the client has it. */
function answerUnchanged(response: ServerResponse, etag: string): void {
  response.setHeader('cache-control', 'no-store');
  response.setHeader('etag', etag);
  response.statusCode = 304;
  response.end();
}

/** What a POST would write, as JSON, or for a client that asks for text, as a diff. */
function answerDryRun(
  request: IncomingMessage,
  response: ServerResponse,
  streamId: StreamId,
  { bytes, former, etag, result, warnings }: PutOutcome,
): void {
  response.setHeader('cache-control', 'no-store');
  const lines = lineChanges(bytes.toString('utf8'), former);
  if (accepts(request).types([JSON_TYPE, TEXT]) === TEXT) {
    send(response, 'text/plain; charset=utf-8', renderLineChanges(lines));
    return;
  }
  answerJson(response, {
    streamid: streamId,
    dryrun: true,
    result,
    etag,
    present_etag: former ? etagOf(former) : null,
    lines,
    warnings: warnings.map(({ code, description }) => ({ code, description })),
  });
}

function answerJson(response: ServerResponse, value: unknown): void {
  send(response, 'application/json; charset=utf-8', JSON.stringify(value));
}

function send(response: ServerResponse, type: string, text: string): void {
  response.setHeader('content-type', type);
  response.setHeader('content-length', Buffer.byteLength(text));
  response.end(text);
}

/** What is odd about a key file that was written (RFC 7234 § 5.5: 299, a persistent warning). */
function warn(response: ServerResponse, warnings: readonly Finding[]): void {
  if (warnings.length === 0) return;
  response.setHeader(
    'warning',
    warnings.map(({ code, description }) => `299 - "${code}: ${description}"`),
  );
}

function malformed(description: string): HttpError {
  return apiError('key_file_malformed', description);
}
