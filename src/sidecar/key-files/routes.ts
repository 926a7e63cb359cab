import { isUtf8 } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import express, { type Express, type Request, type RequestHandler, type Response } from 'express';
import * as z from 'zod';
import { cpixQuery, exportQuery, MAX_BODY_BYTES, sizeOf } from '../../api/key-file-request';
import { lineChanges, renderLineChanges } from '../../api/line-changes';
import {
  type ProviderRules,
  parseKeyFileRequest,
  readCpixBody,
  readKeyFileLines,
} from '../../api/read-key-file-request';
import { parseStreamId, type StreamId } from '../../api/stream-id';
import { etagOf } from '../../drm/bytes';
import { MAX_CPIX_BYTES } from '../../drm/cpix/read';
import { EXPORT_NAMES, EXPORT_SCHEMES } from '../../drm/export/names';
import { type Finding, problemsOf, sentenceOf } from '../../drm/finding';
import { parseKeyFile } from '../../drm/key-file';
import { addressOf, type LoggedResponse, requireType, routeAt } from '../../http/app';
import { HttpError, toHttpError } from '../../http/errors';
import { parsedOr400, querySwitch, readQuery } from '../../http/faults';
import { requireUtf8 } from '../../http/receive-body';
import type { Provision } from '../../provider/provision';
import { callerOf, requireRead, requireWrite } from '../api-key';
import { apiError } from '../errors';
import type { FleetWait } from '../fleet/wait';
import { type Conditions, type FleetChange, isWeakMatch, type KeyFileStore } from '../storage/key-file-store';
import type { Actor, KeyFileChanges, PutOutcome } from './changes';
import { exportKeyFile } from './export';

export interface KeyFileContext {
  readonly store: KeyFileStore;
  readonly changes: KeyFileChanges;
  readonly provision: Provision;
  readonly wait: FleetWait;
  readonly rules: ProviderRules;
}

export const KEY_FILE_PATH = '/api/keyfile/:streamid';
const TEXT = 'text/plain';
const JSON_TYPE = 'application/json';
/** As answers declare them: some clients name the charset in `accept`. */
const TEXT_ANSWER = `${TEXT}; charset=utf-8`;
const JSON_ANSWER = `${JSON_TYPE}; charset=utf-8`;
/** `application/xml` and `text/xml` are the same (RFC 7303 § 9.2). */
export const CPIX_TYPES = ['application/cpix+xml', 'application/xml', 'text/xml'];
const EXPORT_VALUES: readonly string[] = [...EXPORT_NAMES, ...EXPORT_SCHEMES];
const WHICH_TYPES =
  'Send the body as JSON, with content-type: application/json, the lines of a key file as text/plain, or a CPIX document as application/cpix+xml.';

export const dryRunSwitch = querySwitch.describe(
  '`true`: nothing is written, and the answer reports what would be.',
);

/** Without a default: Swagger UI sends it, and other bodies refuse it. */
export const keepUnknownSwitch = z
  .enum(['true', 'false'], 'must be true or false')
  .optional()
  .transform((text) => text === 'true')
  .describe(
    'Only with a body of `text/plain`. `true`: lines with unknown names are kept as they are, after the others; otherwise they are refused.',
  );

export function keyFileRoutes(app: Express, context: KeyFileContext): void {
  const { store, changes, provision, wait, rules } = context;
  const removalQuery = z.strictObject({ wait: wait.parameter });
  const changeQuery = z.strictObject({ dryrun: dryRunSwitch, ...removalQuery.shape });
  const linesQuery = changeQuery.extend({ keepunknown: keepUnknownSwitch });
  const documentQuery = cpixQuery.extend(changeQuery.shape);

  const get: RequestHandler = async (request, response) => {
    const streamId = streamIdOf(request.params.streamid, response);
    requireRead(callerOf(response), streamId);
    const { query } = request;
    // Other parameters are ignored, unless their value shows that one of these is misspelt.
    const isExport = Object.entries(query).some(
      ([name, value]) => Object.hasOwn(exportQuery.shape, name) || EXPORT_VALUES.includes(String(value)),
    );
    const asked = isExport ? readQuery(exportQuery, query) : undefined;
    const bytes = store.read(streamId);
    if (!bytes) throw apiError('key_file_not_found');
    if (asked) await sendExport(request, response, { streamId, bytes, asked });
    else if (isUnchanged(request, etagOf(bytes))) sendUnchanged(response, etagOf(bytes), []);
    else sendKeyFile(request, response, streamId, bytes, []);
  };

  const post: RequestHandler = async (request, response) => {
    // The stream id comes first: a body that can't be read is an attempt to change that stream.
    const streamId = streamIdOf(request.params.streamid, response);
    const actor = actorOf(request, response);
    requireWrite(actor.apiKey, streamId);
    const { dryrun: dryRun, wait: seconds, asked } = await readRequest(request, response);
    const conditions = conditionsIn(request.headers);
    const provisioned = await provision(parsedOr400(asked), actor.by.requestId);
    const options = { ...conditions, dryRun, awaited: seconds !== undefined };
    const outcome = await changes.put(streamId, provisioned, actor, options);
    if (dryRun) sendDryRun(request, response, streamId, outcome);
    else await sendChange(request, response, streamId, outcome, seconds);
  };

  const readRequest = async (request: Request, response: Response) => {
    const type = requireType(request, [JSON_TYPE, TEXT, ...CPIX_TYPES], WHICH_TYPES) ?? JSON_TYPE;
    if (type === JSON_TYPE) {
      const body = await readJson(request, response);
      return { ...readChangeQuery(changeQuery, request), asked: parseKeyFileRequest(body, { rules }) };
    }
    if (type === TEXT) {
      const body = await readLines(request, response);
      const { keepunknown, ...query } = readChangeQuery(linesQuery, request);
      return { ...query, asked: readKeyFileLines(body, keepunknown) };
    }
    const body = await readDocument(request, response);
    const { dryrun, wait: seconds, ...fields } = readChangeQuery(documentQuery, request);
    return { dryrun, wait: seconds, asked: readCpixBody(body, fields) };
  };

  const remove: RequestHandler = async (request, response) => {
    const streamId = streamIdOf(request.params.streamid, response);
    const actor = actorOf(request, response);
    requireWrite(actor.apiKey, streamId);
    const { wait: seconds } = readChangeQuery(removalQuery, request);
    const options = { ...conditionsIn(request.headers), awaited: seconds !== undefined };
    // A file that can't be in the answer is not removed.
    if (prefersJson(request)) linesOf(store.read(streamId) ?? Buffer.alloc(0));
    const { bytes, ...outcome } = await changes.remove(streamId, actor, options);
    if (!bytes) throw apiError('key_file_not_found');
    await sendChange(request, response, streamId, { bytes, ...outcome }, seconds);
  };

  const sendChange = async (
    request: Request,
    response: Response,
    streamId: StreamId,
    { bytes, warnings, fleet }: Pick<PutOutcome, 'bytes' | 'warnings'> & { fleet?: FleetChange | undefined },
    seconds: number | undefined,
  ): Promise<void> => {
    const settled =
      fleet && (await wait.awaitOutcome([{ streamId, fleet }], seconds, response.locals.requestId));
    if (settled) response.set(settled.headers).status(settled.status);
    sendKeyFile(request, response, streamId, bytes, [...warnings, ...(settled?.warnings ?? [])]);
  };

  // One route for all methods: each route that is passed over costs every request a match.
  routeAt(app, KEY_FILE_PATH).get(get).post(post).delete(remove);
  app.all('/api/keyfile', () => {
    throw apiError(
      'invalid_stream_id',
      'The stream id is missing: it is the last part of the path, /api/keyfile/{streamid}.',
    );
  });
  app.all('/api/keyfile/*rest', () => {
    throw apiError('invalid_stream_id', 'Write the slashes of a stream id as %2F.');
  });
}

/** @throws HttpError 400. */
export function streamIdOf(given: unknown, response: Response): StreamId {
  const parsed = parseStreamId(typeof given === 'string' ? given : '');
  if (!parsed.ok) throw apiError('invalid_stream_id', sentenceOf(parsed.problem));
  response.locals.logFields = { streamId: parsed.value };
  return parsed.value;
}

export function actorOf(request: Request, response: Response): Actor {
  const apiKey = callerOf(response);
  const { requestId } = response.locals;
  return { apiKey, by: { key: apiKey.name, address: addressOf(request), requestId } };
}

/** In JSON, a line feed or a quote of a document takes two bytes. */
const MAX_JSON_BYTES = MAX_BODY_BYTES + 2 * MAX_CPIX_BYTES;

type WithBody = IncomingMessage & { body?: unknown };

const parseJson = promisify(
  express.json({
    limit: MAX_JSON_BYTES,
    type: () => true,
    verify: (_request, _response, body, encoding) => {
      requireUtf8(body, encoding);
      if (body.length > MAX_BODY_BYTES && !body.includes('"cpix"')) throw tooLarge(inKib(MAX_BODY_BYTES));
    },
  }),
);
const parseLines = promisify(express.raw({ limit: MAX_BODY_BYTES, type: () => true }));
const parseDocument = promisify(express.raw({ limit: MAX_CPIX_BYTES, type: () => true }));

/**
 * The text in `cpix` does not count for the limit of the body, and has one of its own. Undefined: no body is announced.
 * The caller has checked the media type. @throws HttpError 400, 413, 415.
 */
export async function readJson(request: WithBody, response: ServerResponse): Promise<unknown> {
  await parseJson(request, response).catch((thrown: unknown) => {
    if (thrown instanceof HttpError || toHttpError(thrown).status !== 413) throw thrown;
    throw tooLarge(`${inKib(MAX_BODY_BYTES)}, or ${inKib(MAX_JSON_BYTES)} with a CPIX document`);
  });
  const { body } = request;
  if (isSmall(request)) return body;
  const { fields, document } = sizeOf(body);
  if (fields > MAX_BODY_BYTES) throw tooLarge(inKib(MAX_BODY_BYTES));
  if (document > MAX_CPIX_BYTES) throw tooLarge(`${inKib(MAX_CPIX_BYTES)} for a CPIX document`);
  return body;
}

async function readLines(request: WithBody, response: ServerResponse): Promise<Buffer> {
  const { 'content-type': type = '' } = request.headers;
  const [, charset = 'utf-8'] = /;\s*charset="?([^\s";]+)/i.exec(type) ?? [];
  if (!/^(?:utf-?8|us-ascii)$/i.test(charset)) throw toHttpError({ type: 'charset.unsupported' });
  await parseLines(request, response);
  return bytesOf(request);
}

/** The document states its own encoding, as XML does. @throws HttpError 413. */
export async function readDocument(request: WithBody, response: ServerResponse): Promise<Buffer> {
  await parseDocument(request, response);
  return bytesOf(request);
}

function bytesOf({ body }: WithBody): Buffer {
  return Buffer.isBuffer(body) ? body : Buffer.alloc(0);
}

export function inKib(bytes: number): string {
  return `${bytes / 1024} KiB`;
}

export function tooLarge(limits: string): HttpError {
  return apiError('body_too_large', `The body is larger than this route accepts: ${limits}.`);
}

/** False for a body in chunks, or in `gzip`, which does not say how long it is. */
export function isSmall({ headers }: Pick<Request, 'headers'>): boolean {
  const { 'content-length': length, 'content-encoding': coding = 'identity' } = headers;
  return coding === 'identity' && Number(length ?? Number.NaN) <= MAX_BODY_BYTES;
}

/** Refuses unknown parameters: one might be a misspelt dry run, which would write. @throws HttpError 400. */
export function readChangeQuery<Output>(schema: z.ZodType<Output>, { query }: Request): Output {
  return readQuery(schema, query, 'Nothing was changed.');
}

/** @throws HttpError 400. */
function conditionsIn(headers: Request['headers']): Pick<Conditions, 'ifMatch' | 'ifNoneMatch'> {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = headers;
  for (const [name, value] of Object.entries({ 'If-Match': ifMatch, 'If-None-Match': ifNoneMatch })) {
    if (value === undefined || TAGS.test(value)) continue;
    const description = `${name} must be * or entity tags in their quotes, as received: ${name}: "…". Nothing was changed.`;
    throw apiError('invalid_header', description);
  }
  return { ifMatch, ifNoneMatch };
}

const TAGS = /^\s*(?:\*|(?:W\/)?"[\x21\x23-\x7e]*"(?:\s*,\s*(?:W\/)?"[\x21\x23-\x7e]*")*)\s*$/;

/** Express ignores the condition with `cache-control: no-cache`, which fetch() may send. */
function isUnchanged({ headers }: IncomingMessage, etag: string): boolean {
  const { 'if-none-match': given } = headers;
  return given !== undefined && isWeakMatch(given, etag);
}

function sendUnchanged(response: ServerResponse, etag: string, warnings: readonly Finding[]): void {
  setCommon(response, warnings).setHeader('etag', etag);
  response.statusCode = 304;
  response.end();
}

function sendKeyFile(
  request: Request,
  response: Response,
  streamid: StreamId,
  bytes: Buffer,
  warnings: readonly Finding[],
): void {
  const json = prefersJson(request) ? { streamid, lines: linesOf(bytes) } : undefined;
  setCommon(response, warnings);
  if (json) response.set('etag', etagOf(bytes)).json(json);
  else sendBytes(response, bytes);
}

export function sendBytes(
  response: ServerResponse,
  bytes: Buffer,
  type = TEXT_ANSWER,
  etag = etagOf(bytes),
): void {
  response.setHeader('etag', etag);
  response.setHeader('Content-Type', type);
  response.setHeader('Content-Length', bytes.length);
  // Latin-1 keeps every byte, and for a string Node writes the head and the body at once.
  response.end(bytes.toString('latin1'), 'latin1');
}

function sendDryRun(
  request: Request,
  response: Response,
  streamid: StreamId,
  { bytes, former, etag, result, warnings }: PutOutcome,
): void {
  const lines = lineChanges(bytes.toString('utf8'), former);
  setCommon(response, warnings);
  if (request.accepts([JSON_ANSWER, TEXT_ANSWER]) === TEXT_ANSWER) {
    response.type(TEXT).send(renderLineChanges(lines));
    return;
  }
  const present = former ? etagOf(former) : null;
  const answer = { streamid, dryrun: true, result, etag, present_etag: present, lines };
  response.json({ ...answer, warnings: problemsOf(warnings) });
}

/** @throws HttpError 409 when the key file does not have what the export needs. */
export async function sendExport(
  request: IncomingMessage,
  response: LoggedResponse,
  { streamId, bytes, asked }: { streamId: StreamId; bytes: Buffer; asked: z.output<typeof exportQuery> },
): Promise<void> {
  response.locals.logFields = { streamId, as: asked.as };
  const { etag, mediaType, extension, warnings, ...made } = await exportKeyFile(bytes, asked);
  if (isUnchanged(request, etag)) {
    sendUnchanged(response, etag, warnings);
    return;
  }
  // A stream id has no character that means something in a quoted string.
  const name = `${streamId.split('/').at(-1)}.${extension}`;
  response.setHeader('content-disposition', `attachment; filename="${name}"`);
  sendBytes(setCommon(response, warnings), made.bytes, mediaType, etag);
}

/** Warnings have the code 299, persistent (RFC 7234 § 5.5). */
export function setCommon<Answer extends ServerResponse>(
  response: Answer,
  warnings: readonly Finding[],
): Answer {
  response.setHeader('cache-control', 'no-store');
  const texts = warnings.map(({ code, description }) => `299 - "${code}: ${description}"`);
  return texts.length === 0 ? response : response.setHeader('warning', texts);
}

/** Without a preference the client gets the contract's text. */
function prefersJson(request: Request): boolean {
  const { accept = '' } = request.headers;
  if (!mayPreferJson(accept) || /text\/plain\s*(?:;\s*charset=utf-8\s*)?(?:,|$)/i.test(accept)) return false;
  return request.accepts([TEXT_ANSWER, JSON_ANSWER]) === JSON_ANSWER;
}

/** Most clients accept anything; only a header that speaks of JSON is worth weighing. */
export function mayPreferJson(accept: string): boolean {
  return /json|application\/\*/i.test(accept);
}

/** @throws HttpError 409 when the file is not lines of `name: value`. */
function linesOf(bytes: Buffer) {
  const malformed = (why: string, how = 'Read the file') =>
    apiError('key_file_malformed', `${why} ${how} as text/plain, or write it again.`);
  if (!isUtf8(bytes)) throw malformed('The key file is not UTF-8.', 'Read it');
  const { lines, unreadable } = parseKeyFile(bytes.toString('utf8'));
  if (unreadable.length > 0) throw malformed(`Line ${unreadable[0]} of the key file is not "name: value".`);
  return lines;
}
