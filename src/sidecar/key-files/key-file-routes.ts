import express, { type Express, type Request, type RequestHandler, type Response } from 'express';
import { parseKeyFileRequest, readKeyFileLines } from '../../api/read-key-file-request';
import { parseStreamId, type StreamId } from '../../api/stream-id';
import type { Finding } from '../../drm/cross-check';
import { addressOf } from '../../http/address';
import { onlyMethods } from '../../http/app';
import { HttpError, toHttpError } from '../../http/errors';
import { requireRead } from '../access/api-key';
import type { KeyFileStore } from '../storage/key-file-store';
import { isDryRun, isKeepUnknown, refuseQuery } from './dry-run';
import { etagOf, isUnchanged, preconditionOf } from './etag';
import { answerDryRun, answerKeyFile, answerUnchanged, warningHeader } from './key-file-answer';
import type { Actor, KeyFileChanges } from './key-file-changes';

export interface KeyFileContext {
  readonly store: KeyFileStore;
  readonly changes: KeyFileChanges;
}

export const KEY_FILE_PATH = '/api/keyfile/:streamid';

/** The most that the body of a POST can have. */
export const MAX_BODY_BYTES = 64 * 1024;

// Behind requireJsonOrLines, which has looked at the type.
const parseJson = express.json({ limit: MAX_BODY_BYTES, type: () => true });
const parseLines = express.raw({ limit: MAX_BODY_BYTES, type: () => true });

/** GET, POST and DELETE of a stream's key file. Every answer is the file's lines. */
export function keyFileRoutes(app: Express, { store, changes }: KeyFileContext): void {
  // One route for all methods: each route that is passed over costs every request a match.
  const route = app.route(KEY_FILE_PATH);

  route.get((request, response) => {
    const streamId = streamIdOf(request, response);
    requireRead(response.locals.apiKey, streamId);
    const bytes = store.read(streamId);
    if (!bytes) throw noKeyFile();
    const etag = etagOf(bytes);
    if (isUnchanged(request.headers['if-none-match'], etag)) answerUnchanged(response, etag);
    else answerKeyFile(request, response, streamId, { bytes, etag });
  });

  // The stream id comes first: a body that can't be read is an attempt to change that stream.
  route.post(nameStream, requireJsonOrLines, parseEither, async (request, response) => {
    const streamId = streamIdOf(request, response);
    const { query } = request;
    const body: unknown = request.body;
    const isLines = Buffer.isBuffer(body);
    const dryRun = isDryRun(query, ...(isLines ? ['keepunknown'] : []));
    const keepUnknown = isLines && isKeepUnknown(query);
    const read = () => (isLines ? readKeyFileLines(body, keepUnknown) : parseKeyFileRequest(body));
    const options = { precondition: preconditionOf(request.headers), dryRun };
    const outcome = await changes.put(streamId, read, actorOf(request, response), options);
    warn(response, outcome.warnings);
    if (dryRun) answerDryRun(request, response, streamId, outcome);
    else answerKeyFile(request, response, streamId, outcome);
  });

  route.delete(async (request, response) => {
    const streamId = streamIdOf(request, response);
    refuseQuery(request.query);
    const precondition = preconditionOf(request.headers);
    const { bytes, warnings } = await changes.remove(streamId, actorOf(request, response), precondition);
    if (!bytes) throw noKeyFile();
    warn(response, warnings);
    answerKeyFile(request, response, streamId, { bytes, etag: etagOf(bytes) });
  });

  route.all(onlyMethods('GET', 'HEAD', 'POST', 'DELETE'));

  app.all('/api/keyfile', () => {
    throw invalidStreamId(
      'The stream id is missing: it is the last part of the path, /api/keyfile/{streamid}.',
    );
  });
  app.all('/api/keyfile/*rest', () => {
    throw invalidStreamId('Write the slashes of a stream id as %2F.');
  });
}

const PLAIN_TEXT = 'text/plain';

/** Refuses a body that is declared as another thing than JSON or text; a request that announces no body passes. */
const requireJsonOrLines: RequestHandler = (request, _response, next) => {
  // What nearly all send needs no parsing of media types.
  const plain = request.headers['content-type'] === 'application/json';
  if (!plain && request.is(['application/json', PLAIN_TEXT]) === false) {
    const description =
      'Send the body as JSON, with content-type: application/json, or the lines of a key file as text/plain.';
    throw new HttpError(415, { code: 'unsupported_media_type', description });
  }
  next();
};

const parseEither: RequestHandler = (request, response, next) => {
  if (request.is(PLAIN_TEXT) !== PLAIN_TEXT) {
    parseJson(request, response, next);
    return;
  }
  const [, charset = 'utf-8'] = /;\s*charset="?([^\s";]+)/i.exec(request.headers['content-type'] ?? '') ?? [];
  if (!/^(?:utf-?8|us-ascii)$/i.test(charset)) throw toHttpError({ type: 'charset.unsupported' });
  parseLines(request, response, next);
};

function streamIdOf(request: Request, response: Response): StreamId {
  const { streamid } = request.params;
  const parsed = parseStreamId(typeof streamid === 'string' ? streamid : '');
  if (!parsed.ok) throw invalidStreamId(parsed.fault);
  response.locals.logFields = { streamId: parsed.value };
  return parsed.value;
}

const nameStream: RequestHandler = (request, response, next) => {
  streamIdOf(request, response);
  next();
};

/** On whose behalf a request changes key files. */
export function actorOf(request: Request, response: Response): Actor {
  const { apiKey, requestId } = response.locals;
  return { apiKey, requestId, address: addressOf(request) };
}

function warn(response: Response, warnings: readonly Finding[]): void {
  for (const finding of warnings) response.append('Warning', warningHeader(finding));
}

function noKeyFile(): HttpError {
  return new HttpError(404, { code: 'key_file_not_found', description: 'This stream has no key file.' });
}

function invalidStreamId(description: string): HttpError {
  return new HttpError(400, { code: 'invalid_stream_id', description });
}
