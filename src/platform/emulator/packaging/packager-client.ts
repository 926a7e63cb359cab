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

/** Timeouts in milliseconds of real time. */
export interface PackagerLimits {
  /** Of a call that answers a document. */
  readonly callMs: number;
  /** Of the end of a live stream: the last segments are written. */
  readonly endMs: number;
  /** Of a socket without traffic while a viewer's request is answered. */
  readonly idleMs: number;
  /** Of a socket without traffic while a file is packaged or a recording is made. */
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

const StreamList = z.object({ streams: z.array(StreamDocument) }).transform(({ streams }) => streams);

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

/** The result of a call. `absent`: the packager has no such stream. */
export type Told<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problem: Problem; readonly absent: boolean };

interface Call {
  readonly method: string;
  readonly path: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | FileOrder;
  readonly signal: AbortSignal;
  readonly idleMs?: number;
}

const UNREACHABLE = 'packager_unreachable';
/** A document has some hundred bytes. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

class CallFailure extends Error {
  constructor(
    readonly problem: Problem,
    readonly absent = false,
  ) {
    super(problem.code);
  }
}

/** Calls of the packager. None of them rejects, and none waits longer than the limits say. */
export class PackagerClient {
  readonly #address: PackagerAddress;
  readonly #limits: PackagerLimits;
  readonly #isSecure: boolean;
  /** Viewers don't wait for the calls that bring streams to the packager. */
  readonly #agents: { readonly calls: Agent; readonly viewers: Agent };

  constructor(address: PackagerAddress, limits: PackagerLimits) {
    this.#address = address;
    this.#limits = limits;
    this.#isSecure = address.url.startsWith('https:');
    const agent = (maxSockets: number) =>
      new (this.#isSecure ? SecureAgent : Agent)({ keepAlive: true, maxSockets, maxFreeSockets: 16 });
    this.#agents = { calls: agent(16), viewers: agent(Number.POSITIVE_INFINITY) };
  }

  /** Starts a live stream; changes nothing when it runs. */
  putLive(id: string, order: LiveOrder): Promise<Told<StreamDocument>> {
    const body = JSON.stringify({ ...order, protection: 'key_file' });
    return this.#ask(StreamDocument, { method: 'PUT', path: `/streams/${id}`, body });
  }

  /** Sends a media file, in place of what was packaged under the id before. */
  putFile(id: string, order: FileOrder, signal: AbortSignal): Promise<Told<StreamDocument>> {
    const { keyFile } = order;
    const query = keyFile === undefined ? 'protection=none' : `keyFile=${encodeURIComponent(keyFile)}`;
    const path = `/streams/${id}/file?${query}`;
    return this.#ask(StreamDocument, {
      method: 'PUT',
      path,
      body: order,
      signal,
      idleMs: this.#limits.fileMs,
    });
  }

  list(): Promise<Told<readonly StreamDocument[]>> {
    return this.#ask(StreamList, { method: 'GET', path: '/streams' });
  }

  /** Ends a live stream; what was packaged stays. */
  end(id: string): Promise<Told<StreamDocument>> {
    const signal = AbortSignal.timeout(this.#limits.endMs);
    return this.#ask(StreamDocument, { method: 'POST', path: `/streams/${id}/end`, signal });
  }

  /** Stops a stream and removes its files. */
  remove(id: string): Promise<Told<undefined>> {
    const signal = AbortSignal.timeout(this.#limits.callMs);
    return this.#told(async () => {
      const answer = await this.#open({ method: 'DELETE', path: `/streams/${id}`, signal });
      (await this.#accepted(answer)).resume();
      return undefined;
    });
  }

  /** The recording of a stream in the clear, or the piece between two seconds. */
  record(
    id: string,
    piece: { readonly from: number; readonly to: number } | undefined,
    signal: AbortSignal,
  ): Promise<Told<IncomingMessage>> {
    const path = `/streams/${id}/recording${piece ? `?from=${piece.from}&to=${piece.to}` : ''}`;
    const call = { method: 'GET', path, signal, idleMs: this.#limits.fileMs };
    return this.#told(async () => this.#accepted(await this.#open(call)));
  }

  /**
   * The packager's answer to a viewer's request, whatever its status. It is requested once more when the packager has
   * closed the kept connection.
   * @param call its path is below `/media`, with its query.
   */
  async forward(call: Pick<Call, 'method' | 'path' | 'signal' | 'headers'>): Promise<Told<IncomingMessage>> {
    const told = await this.#told(() => this.#open(call, this.#agents.viewers));
    return told.ok || told.problem.code !== UNREACHABLE
      ? told
      : this.#told(() => this.#open(call, this.#agents.viewers));
  }

  /** Closes the idle connections. */
  stop(): void {
    this.#agents.calls.destroy();
    this.#agents.viewers.destroy();
  }

  #ask<Schema extends z.ZodType>(
    schema: Schema,
    { signal = AbortSignal.timeout(this.#limits.callMs), ...call }: Omit<Call, 'signal'> & Partial<Call>,
  ): Promise<Told<z.output<Schema>>> {
    return this.#told(async () => {
      const answer = await this.#accepted(await this.#open({ ...call, signal }));
      const text = await textOf(answer, MAX_ANSWER_BYTES).catch((thrown) => {
        throw this.#failed(thrown, signal);
      });
      return schema.parse(JSON.parse(text));
    });
  }

  async #told<T>(call: () => Promise<T>): Promise<Told<T>> {
    try {
      return { ok: true, value: await call() };
    } catch (thrown) {
      if (thrown instanceof CallFailure) return { ok: false, problem: thrown.problem, absent: thrown.absent };
      const description = `What answers at ${this.#address.url} is no packager. Correct EMULATOR_PACKAGERURL.`;
      return { ok: false, problem: { code: 'packager_foreign', description }, absent: false };
    }
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
    const failed = { code: 'packager_failed', description: `The packager answered ${statusCode}.` };
    throw new CallFailure(problem ?? failed, statusCode === 404);
  }

  #open(call: Call, agent = this.#agents.calls): Promise<IncomingMessage> {
    const { url, apiKey } = this.#address;
    const { method, body, signal, idleMs: timeout = this.#limits.idleMs } = call;
    const headers = {
      ...call.headers,
      ...(typeof body === 'string' && {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      }),
      ...(typeof body === 'object' && {
        'content-type': 'application/octet-stream',
        'content-length': body.size,
      }),
      ...(apiKey !== undefined && { 'x-api-key': apiKey }),
    };
    return new Promise((resolve, reject) => {
      const options = { method, agent, headers, signal, timeout };
      const outgoing = (this.#isSecure ? secureRequest : request)(`${url}${call.path}`, options);
      outgoing.on('timeout', () => outgoing.destroy(this.#late()));
      outgoing.on('response', (answer) => {
        // Its reader gets the error.
        answer.on('error', () => undefined);
        resolve(answer);
      });
      outgoing.on('error', (thrown) => {
        reject(thrown instanceof CallFailure ? thrown : this.#failed(thrown, signal));
      });
      if (typeof body !== 'object') outgoing.end(body);
      // The answer may come before the end of the file; then the rest is not sent.
      else pipeline(createReadStream(body.path), outgoing, () => undefined);
    });
  }

  #failed(thrown: unknown, signal: AbortSignal): CallFailure {
    if (signal.aborted) return signal.reason?.name === 'TimeoutError' ? this.#late() : ENDED;
    const failure = failureOf(systemCode(thrown)).replaceAll('_', ' ');
    const description = `The packager at ${this.#address.url} does not answer (${failure}). Start it, or correct EMULATOR_PACKAGERURL.`;
    return new CallFailure({ code: UNREACHABLE, description });
  }

  #late(): CallFailure {
    const description = `The packager at ${this.#address.url} does not answer in time. Look at its log, and at the load of its machine.`;
    return new CallFailure({ code: 'packager_late', description });
  }
}

/** The emulator ended it: the answer is of no use any more. */
const ENDED = new CallFailure({ code: 'call_ended', description: 'The call was ended.' });

const Refused = z.object({ errors: z.array(z.object({ code: z.string(), description: z.string() })).min(1) });

/** The first error of an answer, or undefined when it has none that can be read. */
async function problemIn(answer: IncomingMessage): Promise<Problem | undefined> {
  try {
    return Refused.parse(JSON.parse(await textOf(answer, 64 * 1024))).errors[0];
  } catch {
    return undefined;
  }
}

/** The text of an answer. More than `maxBytes` are cut off, which makes the JSON invalid. */
async function textOf(answer: IncomingMessage, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > maxBytes) break;
  }
  return Buffer.concat(chunks).toString();
}
