import { createReadStream } from 'node:fs';
import { Agent, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http';
import { Agent as SecureAgent, request as secureRequest } from 'node:https';
import { pipeline } from 'node:stream';
import * as z from 'zod';
import { parseUuid } from '../../../drm/bytes';
import { systemCode } from '../../../http/errors';
import type { Problem } from '../../../http/faults';
import { failureOf } from '../webhooks/receiver-call';

/** Where the packager is, as the variables say. */
export interface PackagerAddress {
  /** An `http:` or `https:` address without a slash at its end. */
  readonly url: string;
  readonly apiKey: string | undefined;
  /** Where the packager pulls live streams, without a slash at its end; undefined when it can pull none. */
  readonly rtmpUrl: string | undefined;
}

/** How long the packager may take, in milliseconds of real time. */
export interface PackagerLimits {
  /** For an answer of some lines. */
  readonly callMs: number;
  /** For the end of a live stream: the last segments are written. */
  readonly endMs: number;
  /** How long nothing may move while a viewer's request is answered. */
  readonly idleMs: number;
  /** For a file that is packaged, and for a recording that is made. */
  readonly fileMs: number;
}

const keyIds = z.array(z.string().refine((text) => parseUuid(text).ok));
/** Below `/media/<id>/`; nothing that leads out of it. */
const path = z.string().regex(/^\/media\/[\w-]+(?:\/\w[\w.-]*)+$/);
const Delivered = z.object({ path, keyIds }).nullable();

const StreamDocument = z.object({
  id: z.string(),
  kind: z.enum(['live', 'file']),
  keyFile: z.string().nullish(),
  protection: z.enum(['key_file', 'none']),
  state: z.enum(['starting', 'running', 'interrupted', 'refused', 'ended', 'failed']),
  problem: z.object({ code: z.string(), description: z.string() }).nullable(),
  started: z.string().nullable(),
  /** How much can be played. */
  seconds: z.number(),
  dash: Delivered,
  hls: Delivered,
});

/** What the packager says of a stream. */
export type StreamDocument = z.output<typeof StreamDocument>;

/** Whether nothing more comes of a stream by itself. */
export function isDone({ state }: StreamDocument): boolean {
  return state === 'ended' || state === 'failed' || state === 'refused';
}

const StreamList = z.union([
  z.array(StreamDocument),
  z.object({ streams: z.array(StreamDocument) }).transform(({ streams }) => streams),
]);

/** A live stream as the packager is to have it. */
export interface LiveOrder {
  readonly source: string;
  readonly keyFile: string;
  readonly simulcast: readonly { readonly url: string }[];
}

/** A media file as the packager is to have it; without a key file it is packaged in the clear. */
export interface FileOrder {
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  readonly keyFile: string | undefined;
}

/** What came of a call. `absent`: the packager has no such stream. `unsent`: the packager can't have heard of it. */
export type Told<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problem: Problem; readonly absent: boolean; readonly unsent: boolean };

/** A request that the packager is to answer to a viewer. */
interface Forwarded {
  readonly method: 'GET' | 'HEAD';
  readonly headers: OutgoingHttpHeaders;
  readonly signal: AbortSignal;
}

interface Call {
  readonly method: string;
  readonly path: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | FileOrder;
  readonly signal: AbortSignal;
  readonly idleMs?: number;
}

const UNREACHABLE = 'packager_unreachable';

/** Why there is no answer. */
class CallFailure extends Error {
  constructor(
    readonly problem: Problem,
    readonly about: { readonly absent?: boolean; readonly unsent?: boolean } = {},
  ) {
    super(problem.code);
  }
}

/** A document has some hundred bytes. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

/** Calls of the packager. None of them rejects, and none waits longer than the limits say. */
export class PackagerClient {
  readonly #address: PackagerAddress;
  readonly #limits: PackagerLimits;
  readonly #agent: Agent;
  readonly #isSecure: boolean;

  constructor(address: PackagerAddress, limits: PackagerLimits) {
    this.#address = address;
    this.#limits = limits;
    this.#isSecure = address.url.startsWith('https:');
    this.#agent = new (this.#isSecure ? SecureAgent : Agent)({ keepAlive: true, maxFreeSockets: 16 });
  }

  /** Wants a live stream, also again and again. */
  putLive(id: string, order: LiveOrder): Promise<Told<StreamDocument>> {
    const body = JSON.stringify({ ...order, protection: 'key_file' });
    return this.#ask('PUT', `/streams/${id}`, { body });
  }

  /** Sends a media file; what was packaged under the id before is replaced. */
  putFile(id: string, order: FileOrder, signal: AbortSignal): Promise<Told<StreamDocument>> {
    const { keyFile } = order;
    const query = keyFile === undefined ? 'protection=none' : `keyFile=${encodeURIComponent(keyFile)}`;
    return this.#told(async () => {
      const { fileMs: idleMs } = this.#limits;
      const call = { method: 'PUT', path: `/streams/${id}/file?${query}`, body: order, signal, idleMs };
      return StreamDocument.parse(await this.#json(call));
    });
  }

  find(id: string): Promise<Told<StreamDocument>> {
    return this.#ask('GET', `/streams/${id}`);
  }

  list(): Promise<Told<readonly StreamDocument[]>> {
    return this.#told(async () => {
      const signal = AbortSignal.timeout(this.#limits.callMs);
      return StreamList.parse(await this.#json({ method: 'GET', path: '/streams', signal }));
    });
  }

  /** Ends a live stream; what was packaged stays. */
  end(id: string): Promise<Told<StreamDocument>> {
    return this.#ask('POST', `/streams/${id}/end`, { ms: this.#limits.endMs });
  }

  /** Stops a stream and removes its files. */
  remove(id: string): Promise<Told<undefined>> {
    return this.#told(async () => {
      const signal = AbortSignal.timeout(this.#limits.callMs);
      const answer = await this.#open({ method: 'DELETE', path: `/streams/${id}`, signal });
      await this.#accepted(answer);
      answer.resume();
      return undefined;
    });
  }

  /** The recording of a stream in the clear, or the piece between two seconds. */
  record(
    id: string,
    piece: { readonly from: number; readonly to: number } | undefined,
    signal: AbortSignal,
  ): Promise<Told<IncomingMessage>> {
    const query = piece ? `?from=${piece.from}&to=${piece.to}` : '';
    const { fileMs: idleMs } = this.#limits;
    return this.#told(async () => {
      const call = { method: 'GET', path: `/streams/${id}/recording${query}`, signal, idleMs };
      return this.#accepted(await this.#open(call));
    });
  }

  /**
   * The packager's answer to a viewer's request, whatever its status. A kept connection that the packager closes at this
   * moment costs the viewer nothing: the request is made once more.
   * @param path below `/media`, with its query.
   */
  async forward(path: string, { method, headers, signal }: Forwarded): Promise<Told<IncomingMessage>> {
    const call = { method, path, headers, signal, idleMs: this.#limits.idleMs };
    const told = await this.#told(() => this.#open(call));
    const isBroken = !told.ok && !told.unsent && told.problem.code === UNREACHABLE;
    return isBroken ? this.#told(() => this.#open(call)) : told;
  }

  /** Closes the connections on which nothing happens. */
  stop(): void {
    this.#agent.destroy();
  }

  #ask(
    method: string,
    path: string,
    { body, ms = this.#limits.callMs }: { readonly body?: string; readonly ms?: number } = {},
  ): Promise<Told<StreamDocument>> {
    return this.#told(async () => {
      const signal = AbortSignal.timeout(ms);
      return StreamDocument.parse(
        await this.#json({ method, path, signal, ...(body !== undefined && { body }) }),
      );
    });
  }

  async #told<T>(call: () => Promise<T>): Promise<Told<T>> {
    try {
      return { ok: true, value: await call() };
    } catch (thrown) {
      const { problem, about } = thrown instanceof CallFailure ? thrown : this.#foreign();
      return { ok: false, problem, absent: about.absent === true, unsent: about.unsent === true };
    }
  }

  /** What answers is something else. */
  #foreign(): CallFailure {
    const description = `What answers at ${this.#address.url} is no packager. Correct EMULATOR_PACKAGERURL.`;
    return new CallFailure({ code: 'packager_foreign', description });
  }

  async #json(call: Call): Promise<unknown> {
    const answer = await this.#accepted(await this.#open(call));
    const chunks: Buffer[] = [];
    let bytes = 0;
    try {
      for await (const chunk of answer as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > MAX_ANSWER_BYTES) throw this.#foreign();
        chunks.push(chunk);
      }
    } catch (thrown) {
      throw thrown instanceof CallFailure ? thrown : this.#failed(thrown, call.signal);
    }
    return JSON.parse(Buffer.concat(chunks).toString());
  }

  /** The answer, when it is one of success. @throws CallFailure */
  async #accepted(answer: IncomingMessage): Promise<IncomingMessage> {
    const { statusCode = 0 } = answer;
    if (statusCode >= 200 && statusCode < 300) return answer;
    const problem = await problemIn(answer);
    if (statusCode === 401 || statusCode === 403) {
      const description =
        "The packager refuses the API key. Set EMULATOR_PACKAGERAPIKEY to the packager's PACKAGER_APIKEY.";
      throw new CallFailure({ code: 'packager_refused_api_key', description });
    }
    const said = problem ?? { code: 'packager_failed', description: `The packager answered ${statusCode}.` };
    throw new CallFailure(said, { absent: statusCode === 404 });
  }

  #open(call: Call): Promise<IncomingMessage> {
    const { url, apiKey } = this.#address;
    const { method, body, signal, idleMs = this.#limits.idleMs } = call;
    const ofBody =
      body === undefined
        ? {}
        : typeof body === 'string'
          ? { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
          : { 'content-type': 'application/octet-stream', 'content-length': body.size };
    return new Promise((resolve, reject) => {
      const outgoing = (this.#isSecure ? secureRequest : request)(`${url}${call.path}`, {
        method,
        agent: this.#agent,
        headers: { ...call.headers, ...ofBody, ...(apiKey !== undefined && { 'x-api-key': apiKey }) },
        signal,
        timeout: idleMs,
      });
      outgoing.on('timeout', () => outgoing.destroy(this.#late()));
      outgoing.on('response', (answer) => {
        // Whoever reads it is told; nobody else is to be.
        answer.on('error', () => undefined);
        resolve(answer);
      });
      outgoing.on('error', (thrown) => {
        reject(thrown instanceof CallFailure ? thrown : this.#failed(thrown, signal));
      });
      if (body === undefined || typeof body === 'string') outgoing.end(body);
      // An answer may come amid the file; then the rest is not sent.
      else pipeline(createReadStream(body.path), outgoing, () => undefined);
    });
  }

  #failed(thrown: unknown, signal: AbortSignal): CallFailure {
    if (signal.aborted) return isTimeout(signal) ? this.#late() : ENDED;
    const code = systemCode(thrown);
    const unsent = code === 'ECONNREFUSED' || code === 'ENOTFOUND' || code === 'EAI_AGAIN';
    const failure = failureOf(code).replaceAll('_', ' ');
    const description = `The packager at ${this.#address.url} does not answer (${failure}). Start it, or correct EMULATOR_PACKAGERURL.`;
    return new CallFailure({ code: UNREACHABLE, description }, { unsent });
  }

  #late(): CallFailure {
    const description = `The packager at ${this.#address.url} does not answer in time. Look at its log, and at the load of its machine.`;
    return new CallFailure({ code: 'packager_late', description });
  }
}

/** By the emulator itself, as nobody waits for the answer any more. */
const ENDED = new CallFailure({ code: 'call_ended', description: 'The call was ended.' });

function isTimeout({ reason }: AbortSignal): boolean {
  return typeof reason === 'object' && reason !== null && Reflect.get(reason, 'name') === 'TimeoutError';
}

const Refused = z.object({ errors: z.array(z.object({ code: z.string(), description: z.string() })).min(1) });

/** What the packager says is wrong, read as far as a description goes. */
async function problemIn(answer: IncomingMessage): Promise<Problem | undefined> {
  let text = '';
  try {
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      text += chunk.toString();
      if (text.length > 64 * 1024) break;
    }
    const [first] = Refused.parse(JSON.parse(text)).errors;
    return first;
  } catch {
    return undefined;
  }
}
