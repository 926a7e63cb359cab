import express, { type Express, type Request, type RequestHandler, type Response } from 'express';
import type { Finding } from '../../drm/cross-check';
import { parseStreamId, type StreamId } from '../../drm/stream-id';
import { addressOf } from '../../kernel/address';
import { onlyMethods, requireJson } from '../../kernel/app';
import { HttpError } from '../../kernel/errors';
import { requireRead } from '../access/api-key';
import type { KeyFileStore } from '../storage/key-file-store';
import { isDryRun, refuseQuery } from './dry-run';
import { etagOf, isUnchanged, preconditionOf } from './etag';
import { answerDryRun, answerKeyFile, answerUnchanged, warningHeader } from './key-file-answer';
import type { Actor, KeyFileChanges } from './key-file-changes';
import { readKeyFileRequest } from './key-file-request';

export interface KeyFileContext {
  readonly store: KeyFileStore;
  readonly changes: KeyFileChanges;
}

export const KEY_FILE_PATH = '/api/keyfile/:streamid';

/** The most that the body of a POST can have. */
export const MOST_BODY_BYTES = 64 * 1024;

// Behind requireJson, which has looked at the type.
const parseJson = express.json({ limit: MOST_BODY_BYTES, type: () => true });

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
  route.post(nameStream, requireJson, parseJson, async (request, response) => {
    const streamId = streamIdOf(request, response);
    const dryRun = isDryRun(request.query);
    const read = () => readKeyFileRequest(request.body);
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
