import type * as z from 'zod';
import { batchAnswer, dryRunAnswer, type ListAnswer, listAnswer, readyAnswer } from '../api/answers';
import type { ERRORS } from '../api/errors';
import {
  fleetAnswer,
  fleetImportAnswer,
  fleetResealAnswer,
  fleetRetireAnswer,
  fleetStreamAnswer,
} from '../api/fleet-answers';
import { MAX_ENTRIES } from '../api/list';
import { parseStreamId } from '../api/stream-id';
import { parseJson } from '../drm/bytes';
import { sentenceOf } from '../drm/finding';
import type { Problem } from '../http/errors';
import { errorsAnswer } from '../http/faults';
import { createGet } from '../http/get';
import { type Get, type GetAnswer, GetFailed, whyNoAnswer } from '../http/get-request';
import { maskerOf } from '../http/secret';
import type { Progress } from '../terminal/progress';
import { answerOrError, CliError, EXIT, interrupted, usageError } from './cli-error';
import type { CliDependencies } from './context';

export interface Connection {
  readonly url: URL;
  /** The source of the address, for a message: `--url`, a variable, a file. */
  readonly urlFrom: string;
  readonly apiKey: string;
  readonly apiKeyFrom: string;
  /** PEM texts. */
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly certKey: string | undefined;
  readonly warnings: readonly string[];
}

/** Of a change: the ETag that the key file must have, or that there must be none. */
export interface Precondition {
  readonly ifMatch?: string | undefined;
  readonly createOnly?: boolean | undefined;
}

/** The key-file API of a sidecar. Every call rejects with a CliError that says what to do. */
export type SidecarApi = ReturnType<typeof createSidecarApi>;

export interface FleetStep {
  readonly after: string | undefined;
  readonly limit: number;
}

/** The sidecar can't be reached, or is too busy: a later try may succeed. */
export class SidecarUnavailable extends CliError {}

const SINGLE_MS = 60_000;
const BATCH_MS = 600_000;

/** Several times the answer to a batch of 10,000 streams. */
const MAX_BYTES = 64 * 1024 * 1024;

/** A proxy may forget a connection that waits longer for the next call. */
const IDLE_MS = 15_000;

/** A call of the path below the sidecar's address, with its query; GET unless given. */
interface Call {
  readonly method?: 'HEAD' | 'POST' | 'DELETE';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** Makes the calls to a sidecar over kept connections. With `--ca`, no public authority is trusted. */
export function createHttpCall({ ca, cert, certKey }: Connection): Get {
  const tls = {
    ...(ca !== undefined && { ca, allowPartialTrustChain: true }),
    ...(cert !== undefined && { cert, key: certKey }),
  };
  return createGet({ tls: () => tls, idleMs: IDLE_MS }).get;
}

/** All calls of a run share `send`, and with it the connections. */
export function createSidecarApi(connection: Connection, signal: AbortSignal, send: Get) {
  const address = connection.url.href.replace(/\/$/, '');
  const place = { ...connection, address };
  const hide = maskerOf([connection.apiKey]);
  // The sentences of a server of another kind may quote the API key.
  const jsonOf = ({ body }: GetAnswer) =>
    parseJson(body.toString(), (name, value) => (name === 'description' ? hide(`${value}`) : value));

  const call = async (request: Call, timeoutMs = SINGLE_MS): Promise<GetAnswer> => {
    const { method = 'GET', path, headers, body } = request;
    const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body), 'utf8');
    const isChange = !['GET', 'HEAD'].includes(method) && !path.includes('dryrun=');
    const answer = await send({
      method,
      url: address + path,
      headers: {
        'x-api-key': connection.apiKey,
        ...(bytes && { 'content-type': 'application/json' }),
        ...headers,
      },
      body: bytes,
      maxBytes: MAX_BYTES,
      timeoutMs,
      signal,
    }).catch((thrown: unknown) => {
      if (signal.aborted) throw interrupted(isChange ? `Stopped. ${MAYBE_DONE}.` : undefined);
      throw thrown instanceof GetFailed ? noAnswer(thrown.causeCode, place, isChange) : thrown;
    });
    if (answer.isCut) throw unreachable("the answer does not end, or is larger than a sidecar's", place);
    if (answer.status === 200 || answer.status === 202)
      return { ...answer, headers: { ...answer.headers, warning: hide(answer.headers.warning ?? '') } };
    // The refusal of a HEAD has no words.
    if (method === 'HEAD') return call({ path }, timeoutMs);
    throw refusal(answer, jsonOf(answer), place, isChange);
  };

  const read = <Output>(schema: z.ZodType<Output>, answer: GetAnswer): Output => {
    const parsed = schema.safeParse(jsonOf(answer));
    if (!parsed.success) throw notASidecar(answer, address);
    return parsed.data;
  };

  const json = async <Output>(schema: z.ZodType<Output>, request: Call, timeoutMs?: number) =>
    read(schema, await call(request, timeoutMs));

  const post = <Output>(schema: z.ZodType<Output>, path: string) =>
    json(schema, { method: 'POST', path }, BATCH_MS);

  /** `waitSeconds`: how long the sidecar may wait until every packager of a fleet has the change. */
  const change = async (
    { streamId, ...request }: { method: 'POST' | 'DELETE'; streamId: string; body?: unknown },
    precondition: Precondition | undefined,
    waitSeconds: number | undefined,
  ) => {
    const path = `${keyFile(streamId)}${queryOf({ wait: waitSeconds })}`;
    return stored(await call({ ...request, path, headers: headersOf(precondition) }), address);
  };

  return {
    address,
    get: async (streamId: string) => stored(await call({ path: keyFile(streamId) }), address),
    /** Undefined: the stream has no key file. */
    find: async (streamId: string): Promise<ReturnType<typeof stored> | undefined> => {
      const answer = await answerOrError(call({ path: keyFile(streamId) }));
      if (!(answer instanceof CliError)) return stored(answer, address);
      if (answer.problems[0]?.code === 'key_file_not_found') return undefined;
      throw answer;
    },
    /** Requests no key material. Undefined: the sidecar gives no ETag. */
    etagOf: async (streamId: string): Promise<string | undefined> =>
      (await call({ method: 'HEAD', path: keyFile(streamId) })).headers.etag,
    put: (streamId: string, body: unknown, precondition?: Precondition, waitSeconds?: number) =>
      change({ method: 'POST', streamId, body }, precondition, waitSeconds),
    dryRun: (streamId: string, body: unknown, precondition?: Precondition) => {
      const path = `${keyFile(streamId)}?dryrun=true`;
      const headers = { ...headersOf(precondition), accept: 'application/json' };
      return json(dryRunAnswer, { method: 'POST', path, body, headers });
    },
    remove: (streamId: string, precondition?: Precondition, waitSeconds?: number) =>
      change({ method: 'DELETE', streamId }, precondition, waitSeconds),
    /** Resolves when a key file could be written, with the folder (undefined: the sidecar does not say). */
    ready: () => json(readyAnswer, { path: '/readyz' }),
    list: (query: { prefix?: string | undefined; limit: number; cursor?: string | undefined }) =>
      json(listAnswer, { path: `/api/keyfiles${queryOf(query)}` }),
    /** @throws SidecarUnavailable, which is worth another try. */
    batch: async (body: unknown, dryRun: boolean, waitSeconds?: number) => {
      const path = `/api/keyfiles${queryOf({ dryrun: dryRun || undefined, wait: waitSeconds })}`;
      const answer = await call({ method: 'POST', path, body }, BATCH_MS);
      return { ...read(batchResults, answer), revision: revisionOf(answer.headers) };
    },
    fleet: {
      status: () => json(fleetAnswer, { path: FLEET }),
      streamStatus: (streamId: string) => json(fleetStreamAnswer, { path: `${FLEET}/${idPart(streamId)}` }),
      /** @param step `found`: the fleet is founded again first. @throws SidecarUnavailable, as the other step. */
      importStep: (step: FleetStep & { readonly found?: boolean }) =>
        post(fleetImportAnswer, `${FLEET}/import${queryOf({ ...step })}`),
      resealStep: (step: FleetStep) => post(fleetResealAnswer, `${FLEET}/reseal${queryOf({ ...step })}`),
      retire: (name: string) =>
        json(fleetRetireAnswer, { method: 'DELETE', path: `${FLEET}/packagers/${encodeURIComponent(name)}` }),
    },
  };
}

const FLEET = '/api/fleet';

function keyFile(streamId: string): string {
  return `/api/keyfile/${idPart(streamId)}`;
}

function idPart(streamId: string): string {
  const parsed = parseStreamId(streamId);
  if (!parsed.ok) throw usageError(sentenceOf(parsed.problem));
  return encodeURIComponent(streamId);
}

function queryOf(fields: Readonly<Record<string, string | number | boolean | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) query.set(name, String(value));
  return query.size === 0 ? '' : `?${query}`;
}

/** Where the calls go, for messages. */
type Place = Pick<Connection, 'urlFrom' | 'apiKeyFrom'> & { readonly address: string };

function noAnswer(code: string, place: Place, isChange: boolean): CliError {
  const why = whyNoAnswer(code, {
    untrusted: 'give the authority that issued it with --ca',
    tls: 'check the files of --ca, --cert and --cert-key',
  });
  const isLost = isChange && ['ECONNRESET', 'EPIPE', 'ETIMEDOUT'].includes(code);
  const error = unreachable(isLost ? `${why}. ${MAYBE_DONE}` : why, place);
  // A server of another protocol stays one.
  return code.startsWith('HPE_') ? error : new SidecarUnavailable(error.exitCode, error.problems);
}

const MAYBE_DONE = 'The change may have been made all the same; look before you repeat it';

function unreachable(why: string, { address, urlFrom }: Place): CliError {
  return new CliError(EXIT.unreachable, {
    code: 'sidecar_unreachable',
    description: `No answer from ${address}: ${why}. The address comes from ${urlFrom}; change it with --url or PACKAGERDRM_URL.`,
  });
}

function headersOf({ ifMatch, createOnly }: Precondition = {}): Record<string, string> {
  if (createOnly) return { 'if-none-match': '*' };
  if (ifMatch === undefined) return {};
  return { 'if-match': quotedEtag(ifMatch) };
}

/** The value of `If-Match` that a user gave. A shell takes the quotes that belong to an entity tag. */
export function quotedEtag(ifMatch: string): string {
  return ifMatch === '*' || ifMatch.startsWith('"') ? ifMatch : `"${ifMatch}"`;
}

function stored(answer: GetAnswer, address: string) {
  if (!/^text\/plain\b/.test(answer.headers['content-type'] ?? '')) throw notASidecar(answer, address);
  const { status, headers, body: bytes } = answer;
  return {
    bytes,
    etag: headers.etag,
    warnings: warningsOf(headers),
    /** A change that a fleet has accepted, and that is still missing at a packager. */
    isPending: status === 202,
    /** The fleet's revision from which on a packager has the change; undefined without a fleet. */
    revision: revisionOf(headers),
  };
}

function revisionOf(headers: GetAnswer['headers']): number | undefined {
  const revision = String(headers['x-fleet-revision'] ?? '');
  return /^\d{1,15}$/.test(revision) ? Number(revision) : undefined;
}

/** The problems in `Warning: 299 - "code: description"`. */
function warningsOf({ warning }: GetAnswer['headers']): Problem[] {
  return [...(warning ?? '').matchAll(/299 - "(?:([a-z_]*): )?([^"]*)"/g)].map(
    ([, code = 'warning', description = '']) => ({ code, description }),
  );
}

function refusal(answer: GetAnswer, json: unknown, place: Place, isChange: boolean): CliError {
  const { address, apiKeyFrom } = place;
  const problems = errorsAnswer.safeParse(json).data?.errors ?? [];
  const [{ code, description } = { code: 'not_found', description: '' }] = problems;
  // `not_found` is no stream's: the path itself is unknown there.
  if (code === 'not_found') return notASidecar(answer, address, isChange);
  const refused = `${address} refused the API key of ${apiKeyFrom}: ${description}`;
  if (code === 'unauthorized' || code === 'too_many_attempts')
    return new CliError(EXIT.unreachable, { code, description: refused });
  if (code === 'client_certificate_required' || code === 'client_certificate_refused')
    return new CliError(EXIT.unreachable, problems);
  const passes = (answer.status === 503 && !LASTING.has(code)) || code === 'fleet_outcome_unknown';
  return passes ? new SidecarUnavailable(EXIT.failed, problems) : new CliError(EXIT.failed, problems);
}

/** Codes that do not pass without a correction, unlike the others of their status. */
const LASTING: ReadonlySet<string> = new Set<keyof typeof ERRORS>([
  'provisioning_not_configured',
  'fleet_denied',
  'fleet_wrong_secret',
  'fleet_missing_secret',
  'fleet_other',
  'fleet_lost',
]);

function notASidecar({ status, headers }: GetAnswer, address: string, isChange = false): CliError {
  const away = status === 502 || status === 503 || status === 504;
  const problem = {
    code: 'not_a_sidecar',
    description: away
      ? `The proxy in front of the sidecar at ${address} can't reach it (status ${status}).${isChange ? ` ${MAYBE_DONE}.` : ''}`
      : `The server at ${address} does not answer as this version's key-file API (status ${status}, ${headers['content-type'] ?? 'no content-type'}). Check the address.`,
  };
  return away ? new SidecarUnavailable(EXIT.unreachable, problem) : new CliError(EXIT.unreachable, problem);
}

/** The summary of a batch follows from its results. */
const batchResults = batchAnswer.pick({ results: true });

/** The pages of a sidecar's list, each of at most `room` key files. @throws CliError when it has no end. */
export async function* listPages(
  sidecar: Pick<SidecarApi, 'address' | 'list'>,
  query: { readonly prefix?: string | undefined; readonly room?: () => number } = {},
): AsyncGenerator<ListAnswer, void, undefined> {
  const { prefix, room = () => MAX_ENTRIES } = query;
  const seen = new Set<string | undefined>();
  let cursor: string | undefined;
  do {
    if (seen.has(cursor)) {
      const description = `The server at ${sidecar.address} returned the same cursor twice: its list does not end. Check the address, and any proxy in front of the sidecar.`;
      throw new CliError(EXIT.unreachable, { code: 'not_a_sidecar', description });
    }
    seen.add(cursor);
    const page = await sidecar.list({ prefix, limit: Math.min(MAX_ENTRIES, room()), cursor });
    yield page;
    cursor = page.cursor ?? undefined;
  } while (cursor !== undefined);
}

const PAUSES_MS = [1000, 2000, 4000, 8000, 16_000];

/** Repeats a call for half a minute while the sidecar is away or busy. @throws SidecarUnavailable after the last try. */
export async function withRetries<Result>(
  { interrupted: signal, wait }: Pick<CliDependencies, 'interrupted' | 'wait'>,
  progress: Pick<Progress, 'pause'>,
  call: () => Promise<Result>,
): Promise<Result> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await call();
    } catch (thrown) {
      const pause = PAUSES_MS[tries];
      if (!(thrown instanceof SidecarUnavailable) || pause === undefined) throw thrown;
      progress.pause(`The sidecar cannot be reached or is busy, next try in ${pause / 1000} s.`);
      await wait(pause, signal);
      if (signal.aborted) throw interrupted();
      progress.pause(undefined);
    }
  }
}
