import { isUtf8 } from 'node:buffer';
import express, { type Express, type Request, type Response } from 'express';
import { keyFileLines, parseKeyFile, renderKeyFile } from '../drm/key-file';
import { onlyMethods, requireJson } from '../kernel/app';
import { HttpError } from '../kernel/errors';
import type { Log } from '../kernel/log';
import { parseKeyFileRequest } from './key-file-request';
import type { KeyFileStore } from './key-file-store';
import type { Provision } from './provision';
import { parseStreamId, type StreamId } from './stream-id';

export interface KeyFileContext {
  readonly store: KeyFileStore;
  readonly provision: Provision;
  readonly log: Log;
}

export const KEY_FILE_PATH = '/api/keyfile/:streamid';

/** The headers of an answer that is a key file; its length comes with the bytes. */
export const KEY_FILE_HEADERS: readonly (readonly [name: string, value: string])[] = [
  ['cache-control', 'no-store'],
  ['content-type', 'text/plain; charset=utf-8'],
];

/** An `Accept` header for which JSON may be the answer. */
export const SPEAKS_OF_JSON = /json|application\/\*/i;

// Behind requireJson, which has looked at the type.
const parseJson = express.json({ limit: '64kb', type: () => true });

/** GET, POST and DELETE of a stream's key file. Every answer is the file's lines. */
export function keyFileRoutes(app: Express, { store, provision, log }: KeyFileContext): void {
  // One route for all methods: each route that is passed over costs every request a match.
  const route = app.route(KEY_FILE_PATH);

  route.get((request, response) => {
    const streamId = streamIdOf(request, response);
    const bytes = store.read(streamId);
    if (!bytes) throw noKeyFile();
    answer(request, response, streamId, bytes);
  });

  route.post(requireJson, parseJson, async (request, response) => {
    const streamId = streamIdOf(request, response);
    const parsed = parseKeyFileRequest(request.body);
    if (!parsed.ok) throw new HttpError(400, parsed.problems);
    const { requestId } = response.locals;
    const { keyFile, warnings } = await provision(parsed.value, requestId);
    const text = renderKeyFile(keyFileLines(keyFile));
    await store.write(streamId, text);
    for (const { code, description } of warnings) {
      log.warn('key file written with a warning', { requestId, streamId, code, description });
      response.append('Warning', `299 - "${code}: ${description}"`);
    }
    answer(request, response, streamId, Buffer.from(text, 'utf8'));
  });

  route.delete(async (request, response) => {
    const streamId = streamIdOf(request, response);
    const bytes = await store.remove(streamId);
    if (!bytes) throw noKeyFile();
    answer(request, response, streamId, bytes);
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

/** The file byte for byte, or its lines as JSON for a client that asks for JSON. */
function answer(request: Request, response: Response, streamId: StreamId, bytes: Buffer): void {
  if (wantsJson(request)) {
    if (!isUtf8(bytes)) {
      const description = 'The key file is not UTF-8. Read it as text/plain, or write it again.';
      throw new HttpError(409, { code: 'key_file_malformed', description });
    }
    const { lines, unreadable } = parseKeyFile(bytes.toString('utf8'));
    if (unreadable.length > 0) {
      const description = `Line ${unreadable[0]} of the key file is not "name: value". Read the file as text/plain, or write it again.`;
      throw new HttpError(409, { code: 'key_file_malformed', description });
    }
    response.setHeader('cache-control', 'no-store');
    response.json({ streamid: streamId, lines });
    return;
  }
  for (const [name, value] of KEY_FILE_HEADERS) response.setHeader(name, value);
  response.setHeader('content-length', bytes.length);
  // As a one-byte string the file leaves together with the headers; a Buffer would be a second piece.
  response.end(bytes.toString('latin1'), 'latin1');
}

/** The contract's text, unless JSON is what the client would rather have: one that takes either as gladly gets text. */
function wantsJson(request: Request): boolean {
  const accept = request.headers.accept ?? '';
  // Most clients send */* or nothing; only a header that speaks of JSON is worth weighing.
  if (!SPEAKS_OF_JSON.test(accept) || /text\/plain\s*(?:,|$)/i.test(accept)) return false;
  return request.accepts(['text/plain', 'application/json']) === 'application/json';
}

function noKeyFile(): HttpError {
  return new HttpError(404, { code: 'key_file_not_found', description: 'This stream has no key file.' });
}

function invalidStreamId(description: string): HttpError {
  return new HttpError(400, { code: 'invalid_stream_id', description });
}
