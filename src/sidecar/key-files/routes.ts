import { isUtf8 } from 'node:buffer';
import type { Express, Request, RequestHandler, Response } from 'express';
import * as z from 'zod';
import { cpixQuery, exportQuery } from '../../api/key-file-request';
import {
  type KeyFileRequest,
  type ProviderRules,
  parseKeyFileRequest,
  readCpixBody,
  readKeyFileLines,
} from '../../api/read-key-file-request';
import { parseStreamId, type StreamId } from '../../api/stream-id';
import type { ExportedKeys } from '../../drm/export/export-key-file';
import { EXPORT_NAMES, EXPORT_SCHEMES, type ExportName } from '../../drm/export/names';
import { type Finding, sentenceOf } from '../../drm/finding';
import { parseKeyFile } from '../../drm/key-file';
import { addressOf, onlyMethods, requireType } from '../../http/app';
import { type HttpError, parsedOr400 } from '../../http/errors';
import { etagOf } from '../../http/etag';
import { type Parsed, readQuery } from '../../http/faults';
import type { Provision } from '../../provider/provision';
import { callerOf, requireRead, requireWrite } from '../access/api-key';
import { apiError } from '../errors';
import type { FleetWait } from '../fleet/wait';
import {
  CPIX_TYPES,
  conditionsIn,
  dryRunSwitch,
  readChangeQuery,
  readDocument,
  readJson,
  readLines,
} from '../read-request';
import { type FleetChange, isNamed, type KeyFileStore } from '../storage/key-file-store';
import { type Actor, type KeyFileChanges, lineChanges, type PutOutcome, renderLineChanges } from './changes';

export interface KeyFileContext {
  readonly store: KeyFileStore;
  readonly changes: KeyFileChanges;
  readonly provision: Provision;
  readonly wait: FleetWait;
  /** The fields that the key provider needs and takes. */
  readonly rules?: ProviderRules | undefined;
}

const TEXT = 'text/plain';
const JSON_TYPE = 'application/json';
const EXPORT_VALUES: readonly string[] = [...EXPORT_NAMES, ...EXPORT_SCHEMES];
const WHICH_TYPES =
  'Send the body as JSON, with content-type: application/json, the lines of a key file as text/plain, or a CPIX document as application/cpix+xml.';

/** GET, POST and DELETE of a stream's key file, behind the guard. Every answer is the file's lines. */
export function keyFileRoutes(app: Express, context: KeyFileContext): void {
  const { store, changes, provision, wait, rules } = context;
  const removalQuery = z.strictObject({ wait: wait.parameter });
  const changeQuery = z.strictObject({ dryrun: dryRunSwitch, ...removalQuery.shape });
  const queries: Readonly<Record<Body['type'], z.ZodType<ChangeQuery>>> = {
    json: changeQuery,
    lines: changeQuery.extend({ keepunknown: keepUnknownSwitch }),
    cpix: z.strictObject({ ...readLater(cpixQuery), ...changeQuery.shape }),
  };

  const get: RequestHandler = async (request, response) => {
    const streamId = streamIdOf(request, response);
    requireRead(callerOf(response), streamId);
    const { query } = request;
    // Other parameters are ignored, unless their value shows that one of these is misspelt.
    const isExport = Object.entries(query).some(
      ([name, value]) => name in exportQuery.shape || EXPORT_VALUES.includes(String(value)),
    );
    const asked = isExport ? parsedOr400(readQuery(exportQuery, query)) : undefined;
    const bytes = store.read(streamId);
    if (!bytes) throw apiError('key_file_not_found');
    if (!asked) {
      if (isUnchanged(request, etagOf(bytes))) sendUnchanged(response, etagOf(bytes), []);
      else sendKeyFile(request, response, streamId, bytes, []);
      return;
    }
    await sendExport(request, response, { streamId, bytes, asked });
  };

  const post: RequestHandler = async (request, response) => {
    // The stream id comes first: a body that can't be read is an attempt to change that stream.
    const streamId = streamIdOf(request, response);
    const actor = actorOf(request, response);
    requireWrite(actor.apiKey, streamId);
    const body = await readBody(request, response);
    const { dryrun: dryRun, wait: seconds, ...query } = readChangeQuery(queries[body.type], request);
    const conditions = conditionsIn(request.headers);
    const asked = parsedOr400(requestIn(body, query, rules));
    const provisioned = await provision(asked, actor.requestId);
    const options = { ...conditions, dryRun, awaited: seconds !== undefined };
    const outcome = await changes.put(streamId, provisioned, actor, options);
    if (dryRun) sendDryRun(request, response, streamId, outcome);
    else await sendChange(request, response, streamId, outcome, seconds);
  };

  const remove: RequestHandler = async (request, response) => {
    const streamId = streamIdOf(request, response);
    const actor = actorOf(request, response);
    requireWrite(actor.apiKey, streamId);
    const { wait: seconds } = readChangeQuery(removalQuery, request);
    const options = { ...conditionsIn(request.headers), awaited: seconds !== undefined };
    const { bytes, ...outcome } = await changes.remove(streamId, actor, options);
    if (!bytes) throw apiError('key_file_not_found');
    await sendChange(request, response, streamId, { bytes, ...outcome }, seconds);
  };

  /** Answers what was changed, for a fleet when its packagers have it or after so many seconds. */
  const sendChange = async (
    request: Request,
    response: Response,
    streamId: StreamId,
    { bytes, warnings, fleet }: Pick<PutOutcome, 'bytes' | 'warnings'> & { fleet?: FleetChange | undefined },
    seconds: number | undefined,
  ): Promise<void> => {
    const accepted = fleet ? [{ streamId, fleet }] : [];
    const settled = await wait.settle(accepted, seconds, response.locals.requestId);
    response.set(settled.headers).status(settled.status);
    sendKeyFile(request, response, streamId, bytes, [...warnings, ...settled.warnings]);
  };

  // One route for all methods: each route that is passed over costs every request a match.
  app
    .route('/api/keyfile/:streamid')
    .get(get)
    .post(post)
    .delete(remove)
    .all(onlyMethods('GET', 'HEAD', 'POST', 'DELETE'));
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

/** The stream of a path with `:streamid`. @throws HttpError 400. */
export function streamIdOf(request: Request, response: Response): StreamId {
  const { streamid } = request.params;
  const parsed = parseStreamId(typeof streamid === 'string' ? streamid : '');
  if (!parsed.ok) throw apiError('invalid_stream_id', sentenceOf(parsed.problem));
  response.locals.logFields = { streamId: parsed.value };
  return parsed.value;
}

/** The client of a request behind the guard. */
export function actorOf(request: Request, response: Response): Actor {
  const apiKey = callerOf(response);
  const { requestId } = response.locals;
  return { apiKey, key: apiKey.name, address: addressOf(request), requestId };
}

type Body =
  | { readonly type: 'json'; readonly value: unknown }
  | { readonly type: 'lines' | 'cpix'; readonly bytes: Buffer };

async function readBody(request: Request, response: Response): Promise<Body> {
  const type = requireType(request, [JSON_TYPE, TEXT, ...CPIX_TYPES], WHICH_TYPES);
  if (type === TEXT) return { type: 'lines', bytes: await readLines(request, response) };
  if (type !== undefined && CPIX_TYPES.includes(type))
    return { type: 'cpix', bytes: await readDocument(request, response) };
  return { type: 'json', value: await readJson(request, response) };
}

type ChangeQuery = Readonly<Record<string, unknown>> & {
  readonly dryrun: boolean;
  readonly wait?: number | undefined;
};

/** The names of a query that is read with the body. */
function readLater({ shape }: z.ZodObject) {
  return Object.fromEntries(Object.keys(shape).map((name) => [name, z.unknown().optional()]));
}

/** Whether lines with unknown names are kept. Without a default: Swagger UI sends it, and other bodies refuse it. */
export const keepUnknownSwitch = z
  .enum(['true', 'false'], 'must be true or false')
  .optional()
  .transform((text) => text === 'true')
  .meta({
    description:
      'Only with a body of `text/plain`. `true`: lines with unknown names are kept as they are, after the others; otherwise they are refused.',
  });

/** Reads the request that a body makes, with the rest of its query. */
function requestIn(
  body: Body,
  query: Readonly<Record<string, unknown>>,
  rules: ProviderRules | undefined,
): Parsed<KeyFileRequest> {
  if (body.type === 'json') return parseKeyFileRequest(body.value, { rules });
  if (body.type === 'lines') return readKeyFileLines(body.bytes, query.keepunknown === true);
  return readCpixBody(body.bytes, query);
}

/** Not left to Express, which sends all of it to a client with `cache-control: no-cache`, as fetch() is one. */
function isUnchanged({ headers }: Request, etag: string): boolean {
  const { 'if-none-match': given } = headers;
  return given !== undefined && isNamed(given, etag);
}

function sendUnchanged(response: Response, etag: string, warnings: readonly Finding[]): void {
  setCommon(response, warnings).set('etag', etag).status(304).end();
}

/** The file byte for byte, or its lines as JSON for a client that asks for JSON. */
function sendKeyFile(
  request: Request,
  response: Response,
  streamid: StreamId,
  bytes: Buffer,
  warnings: readonly Finding[],
): void {
  const json = prefersJson(request) ? { streamid, lines: linesOf(bytes) } : undefined;
  setCommon(response, warnings).set('etag', etagOf(bytes));
  if (json) response.json(json);
  else response.type(TEXT).send(bytes);
}

/** Answers what a POST would write, as JSON or, for a client that asks for text, as a diff. */
function sendDryRun(
  request: Request,
  response: Response,
  streamid: StreamId,
  { bytes, former, etag, result, warnings }: PutOutcome,
): void {
  const lines = lineChanges(bytes.toString('utf8'), former);
  setCommon(response, warnings);
  if (request.accepts([JSON_TYPE, TEXT]) === TEXT) {
    response.type(TEXT).send(renderLineChanges(lines));
    return;
  }
  response.json({
    streamid,
    dryrun: true,
    result,
    etag,
    present_etag: former ? etagOf(former) : null,
    lines,
    warnings: warnings.map(({ code, description }) => ({ code, description })),
  });
}

/** Sets what every answer has, and the warnings (RFC 7234 § 5.5: 299, a persistent warning). */
export function setCommon(response: Response, warnings: readonly Finding[]): Response {
  response.set('cache-control', 'no-store');
  return warnings.length === 0 ? response : response.set('warning', warnings.map(warningText));
}

/** A value of the header `warning`. */
export function warningText({ code, description }: Finding): string {
  return `299 - "${code}: ${description}"`;
}

/** The contract's text, unless JSON is what the client would rather have: one that takes either as gladly gets text. */
function prefersJson(request: Request): boolean {
  const { accept = '' } = request.headers;
  // Most clients send */* or nothing; only a header that speaks of JSON is worth weighing.
  if (!/json|application\/\*/i.test(accept) || /text\/plain\s*(?:,|$)/i.test(accept)) return false;
  return request.accepts([TEXT, JSON_TYPE]) === JSON_TYPE;
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

function malformed(description: string): HttpError {
  return apiError('key_file_malformed', description);
}

interface ExportRequest {
  readonly streamId: StreamId;
  /** The key file. */
  readonly bytes: Buffer;
  readonly asked: z.output<typeof exportQuery>;
}

/** Answers a key file as another packager takes it. @throws HttpError 409 when it does not have what the export needs. */
export async function sendExport(
  request: Request,
  response: Response,
  { streamId, bytes, asked }: ExportRequest,
): Promise<void> {
  response.locals.logFields = { streamId, as: asked.as };
  const { etag, mediaType, extension, warnings, ...made } = await exportKeyFile(bytes, asked);
  if (isUnchanged(request, etag)) {
    sendUnchanged(response, etag, warnings);
    return;
  }
  // A stream id has no character that means something in a quoted string.
  const name = `${streamId.split('/').at(-1)}.${extension}`;
  response.set({ 'content-disposition': `attachment; filename="${name}"`, etag });
  setCommon(response, warnings).type(mediaType).send(made.bytes);
}

/** A key file as another packager takes it. */
type ExportAnswer = Awaited<ReturnType<typeof answerOf>>;

/** As many as a large packager has streams, each of a few KiB. */
const MAX_EXPORTS = 1000;
const EXPORT_MS = 60_000;
/** The last exports. Packagers that pull ask for the same again and again, and to make one takes twice as long as to send it. */
const lastExports = new Map<string, ExportAnswer>();

/** {@link exportLines} of a file on the disk, which is kept in memory for a minute: a file that is deleted leaves no key there. */
export async function exportKeyFile(
  bytes: Buffer,
  asked: z.output<typeof exportQuery>,
): Promise<ExportAnswer> {
  // By the content of the file, so that an export never outlives it.
  const name = `${etagOf(bytes)} ${asked.as} ${asked.scheme}`;
  const known = lastExports.get(name);
  if (known) return known;
  const answer = await exportLines(bytes, asked);
  const [oldest] = lastExports.keys();
  if (oldest !== undefined && lastExports.size >= MAX_EXPORTS) lastExports.delete(oldest);
  lastExports.set(name, answer);
  setTimeout(() => lastExports.delete(name), EXPORT_MS).unref();
  return answer;
}

/** Exports a key file. @throws HttpError 409 when it does not have what the export needs. */
export async function exportLines(
  bytes: Buffer,
  { as, scheme }: z.output<typeof exportQuery>,
): Promise<ExportAnswer> {
  if (!isUtf8(bytes))
    throw apiError(
      'key_file_malformed',
      'The key file is not UTF-8, so it cannot be exported. Write it again.',
    );
  // Few sidecars export, and what writes the forms would make the start of each longer.
  const { exportKeyFile: exportText } = await import('../../drm/export/export-key-file');
  const exported = exportText(bytes.toString('utf8'), as, scheme);
  if (exported.ok) return await answerOf(exported, as);
  throw apiError(CODES[exported.problem.code], `The key file ${exported.problem.description}.`);
}

export async function answerOf({ text, keys, findings }: ExportedKeys, as: ExportName) {
  const { EXPORT_FORMS } = await import('../../drm/export/forms');
  const { mediaType, extension } = EXPORT_FORMS[as];
  const bytes = Buffer.from(text);
  return { keys, bytes, etag: etagOf(bytes), mediaType, extension, warnings: findings };
}

const CODES = {
  key_file_torn: 'key_file_malformed',
  key_file_foreign: 'key_file_malformed',
  key_file_incomplete: 'keys_missing',
  keys_missing: 'keys_missing',
} as const;
