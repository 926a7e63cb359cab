import { isUtf8 } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import accepts from 'accepts';
import { cpixQuery, MAX_BODY_BYTES } from '../../api/key-file-request';
import {
  type KeyFileRequest,
  type ProviderRules,
  parseKeyFileRequest,
  readCpixBody,
  readKeyFileLines,
} from '../../api/read-key-file-request';
import type { StreamId } from '../../api/stream-id';
import { MAX_CPIX_BYTES } from '../../drm/cpix/read';
import type { Finding } from '../../drm/finding';
import { parseKeyFile } from '../../drm/key-file';
import { addressOf } from '../../http/address';
import type { Exchange } from '../../http/app';
import { createReadBytes, createReadText, requireType } from '../../http/body';
import { type HttpError, parsedOr400 } from '../../http/errors';
import { etagOf } from '../../http/etag';
import type { Parsed } from '../../http/faults';
import { type ApiKey, requireRead, requireWrite } from '../access/api-key';
import { apiError } from '../errors';
import { type FleetWait, WAIT } from '../fleet/wait';
import type { Provision } from '../provisioning/provision';
import { CPIX_TYPES, createReadRequest } from '../request-body';
import { conditionsIn, isDryRun, isKeepUnknown, isUnchanged, refuseQuery } from '../storage/conditions';
import type { FleetChange, KeyFileStore } from '../storage/key-file-store';
import type { Actor, KeyFileChanges, PutOutcome } from './changes';
import { lineChanges, renderLineChanges } from './dry-run';
import { type ExportAnswer, exportKeyFile, exportQueryOf } from './exports';

interface KeyFileContext {
  readonly store: KeyFileStore;
  readonly changes: KeyFileChanges;
  readonly provision: Provision;
  readonly wait: FleetWait;
  /** The fields that the key provider needs and takes. */
  readonly rules?: ProviderRules | undefined;
}

/** A request after its path, API key and query were read. */
interface KeyFileCall {
  readonly streamId: StreamId;
  readonly apiKey: ApiKey;
  readonly exchange: Exchange;
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
  'Send the body as JSON, with content-type: application/json, the lines of a key file as text/plain, or a CPIX document as application/cpix+xml.';

type Body =
  | { readonly type: 'json'; readonly value: unknown }
  | { readonly type: 'lines' | 'cpix'; readonly bytes: Buffer };

/** The query parameters of each body. */
const PARAMETERS: Readonly<Record<Body['type'], readonly string[]>> = {
  json: [],
  lines: ['keepunknown'],
  cpix: Object.keys(cpixQuery.shape),
};

/** Reads the request that a body and its query make. */
function requestIn(
  body: Body,
  query: KeyFileCall['query'],
  rules: ProviderRules | undefined,
): Parsed<KeyFileRequest> {
  if (body.type === 'json') return parseKeyFileRequest(body.value, { rules });
  if (body.type === 'lines') return readKeyFileLines(body.bytes, isKeepUnknown(query));
  const { dryrun: _, [WAIT]: __, ...choice } = query;
  return readCpixBody(body.bytes, choice);
}

export function createKeyFileHandlers({
  store,
  changes,
  provision,
  wait,
  rules,
}: KeyFileContext): KeyFileHandlers {
  const readJson = createReadRequest();
  const readText = createReadText(MAX_BODY_BYTES);
  const readDocument = createReadBytes(MAX_CPIX_BYTES);
  const actorOf = (request: IncomingMessage, { apiKey, exchange }: KeyFileCall): Actor => ({
    apiKey,
    requestId: exchange.requestId,
    address: addressOf(request),
  });
  const readBody = async (request: IncomingMessage, response: ServerResponse): Promise<Body> => {
    const type = requireType(request, [JSON_TYPE, TEXT, ...CPIX_TYPES], WHICH_TYPES);
    if (type === TEXT) return { type: 'lines', bytes: await readText(request, response) };
    if (type !== undefined && CPIX_TYPES.includes(type))
      return { type: 'cpix', bytes: await readDocument(request, response) };
    return { type: 'json', value: await readJson(request, response) };
  };
  /** Answers what was changed, for a fleet when its packagers have it or after so many seconds. */
  const answerChange = async (
    request: IncomingMessage,
    response: ServerResponse,
    call: KeyFileCall,
    change: KeyFileAnswer & {
      readonly fleet?: FleetChange | undefined;
      readonly seconds: number | undefined;
    },
  ): Promise<void> => {
    const { fleet, seconds, warnings = [] } = change;
    if (!fleet) {
      answerKeyFile(request, response, call, change);
      return;
    }
    const { streamId, exchange } = call;
    const settled = await wait.settle([{ streamId, fleet }], seconds, exchange.requestId);
    answerKeyFile(request, response, call, {
      ...change,
      ...settled,
      warnings: [...warnings, ...settled.warnings],
    });
  };
  return {
    get(request, response, call) {
      const { streamId, apiKey, query } = call;
      requireRead(apiKey, streamId);
      const isExport = (query.as ?? query.scheme) !== undefined;
      const asked = isExport ? exportQueryOf(query) : undefined;
      const bytes = store.read(streamId);
      if (!bytes) throw apiError('key_file_not_found');
      if (asked) {
        call.exchange.logFields = { streamId, as: asked.as };
        return exportKeyFile(bytes, asked).then((made) => answerExport(request, response, call, made));
      }
      const etag = etagOf(bytes);
      const ifNoneMatch = request.headers['if-none-match'];
      if (ifNoneMatch !== undefined && isUnchanged(ifNoneMatch, etag))
        return answer(response, 304, [...NOT_STORED, 'etag', etag], '');
      return answerKeyFile(request, response, call, { bytes, etag });
    },

    async post(request, response, call) {
      const { streamId, query } = call;
      requireWrite(call.apiKey, streamId);
      const body = await readBody(request, response);
      const dryRun = isDryRun(query, WAIT, ...PARAMETERS[body.type]);
      const seconds = wait.secondsOf(query);
      const conditions = { ...conditionsIn(request.headers), dryRun };
      const asked = parsedOr400(requestIn(body, query, rules));
      const provisioned = await provision(asked, call.exchange.requestId);
      const options = { ...conditions, awaited: seconds !== undefined };
      const outcome = await changes.put(streamId, provisioned, actorOf(request, call), options);
      if (dryRun) answerDryRun(request, response, call, outcome);
      else await answerChange(request, response, call, { ...outcome, seconds });
    },

    async delete(request, response, call) {
      const { streamId, query } = call;
      requireWrite(call.apiKey, streamId);
      refuseQuery(query, WAIT);
      const seconds = wait.secondsOf(query);
      const options = { ...conditionsIn(request.headers), awaited: seconds !== undefined };
      const { bytes, ...outcome } = await changes.remove(streamId, actorOf(request, call), options);
      if (!bytes) throw apiError('key_file_not_found');
      await answerChange(request, response, call, { bytes, etag: etagOf(bytes), ...outcome, seconds });
    },
  };
}

const NOT_STORED = ['cache-control', 'no-store'];
const AS_TEXT = ['content-type', 'text/plain; charset=utf-8'];
const AS_JSON = ['content-type', 'application/json; charset=utf-8'];

/** As a one-byte string a file leaves together with the headers; a Buffer would be a second piece. */
function answer(
  response: ServerResponse,
  status: number,
  headers: readonly (string | string[])[],
  body: string,
  encoding: 'utf8' | 'latin1' = 'utf8',
): void {
  response.writeHead(status, [...headers]);
  response.end(body, encoding);
}

interface KeyFileAnswer {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly warnings?: readonly Finding[];
  readonly status?: number;
  /** More headers: names and values by turns. */
  readonly headers?: readonly string[];
}

/** The file byte for byte, or its lines as JSON for a client that asks for JSON. */
function answerKeyFile(
  request: IncomingMessage,
  response: ServerResponse,
  call: KeyFileCall,
  { bytes, etag, warnings = [], status = 200, headers: more = [] }: KeyFileAnswer,
): void {
  const headers = [...warningHeaders(warnings), ...more, ...NOT_STORED, 'etag', etag];
  if (prefersJson(request)) {
    answerJson(response, headers, { streamid: call.streamId, lines: linesOf(bytes) }, status);
    return;
  }
  headers.push(...AS_TEXT, 'content-length', String(bytes.length));
  answer(response, status, headers, bytes.toString('latin1'), 'latin1');
}

/** Answers an export, which has an entity tag of its own. */
function answerExport(
  request: IncomingMessage,
  response: ServerResponse,
  call: KeyFileCall,
  { text, length, etag, mediaType, extension, warnings }: ExportAnswer,
): void {
  const headers = [...warningHeaders(warnings), ...NOT_STORED, 'etag', etag];
  const ifNoneMatch = request.headers['if-none-match'];
  if (ifNoneMatch !== undefined && isUnchanged(ifNoneMatch, etag)) {
    answer(response, 304, headers, '');
    return;
  }
  // A stream id has no character that means something in a quoted string.
  const name = `${call.streamId.split('/').at(-1)}.${extension}`;
  headers.push('content-type', mediaType, 'content-disposition', `attachment; filename="${name}"`);
  headers.push('content-length', String(length));
  // Of ASCII alone, as it nearly always is, a string of one byte a character needs no encoding.
  answer(response, 200, headers, text, length === text.length ? 'latin1' : 'utf8');
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

/** Answers what a POST would write, as JSON or, for a client that asks for text, as a diff. */
function answerDryRun(
  request: IncomingMessage,
  response: ServerResponse,
  call: KeyFileCall,
  { bytes, former, etag, result, warnings }: PutOutcome,
): void {
  const headers = [...warningHeaders(warnings), ...NOT_STORED];
  const lines = lineChanges(bytes.toString('utf8'), former);
  if (accepts(request).types([JSON_TYPE, TEXT]) === TEXT) {
    const diff = renderLineChanges(lines);
    headers.push(...AS_TEXT, 'content-length', String(Buffer.byteLength(diff)));
    answer(response, 200, headers, diff);
    return;
  }
  answerJson(response, headers, {
    streamid: call.streamId,
    dryrun: true,
    result,
    etag,
    present_etag: former ? etagOf(former) : null,
    lines,
    warnings: warnings.map(({ code, description }) => ({ code, description })),
  });
}

function answerJson(
  response: ServerResponse,
  headers: readonly (string | string[])[],
  value: unknown,
  status = 200,
): void {
  const json = JSON.stringify(value);
  const own = [...headers, ...AS_JSON, 'content-length', String(Buffer.byteLength(json))];
  answer(response, status, own, json);
}

/** The warnings about a key file that was written (RFC 7234 § 5.5: 299, a persistent warning). */
function warningHeaders(warnings: readonly Finding[]): (string | string[])[] {
  if (warnings.length === 0) return [];
  // One name with all values: of a name that is there twice, `writeHead` keeps the last where Express has set headers.
  return ['warning', warnings.map(warningText)];
}

/** A value of the header `warning`. */
export function warningText({ code, description }: Finding): string {
  return `299 - "${code}: ${description}"`;
}

function malformed(description: string): HttpError {
  return apiError('key_file_malformed', description);
}
