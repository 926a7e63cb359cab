import { createReadStream } from 'node:fs';
import http, { type Agent, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import https from 'node:https';
import { pipeline } from 'node:stream';
import { json } from 'node:stream/consumers';
import * as z from 'zod';
import { parseUuid } from '../../../drm/bytes';
import { systemCode } from '../../../http/errors';
import type { Problem } from '../../../http/faults';
import { failureOf } from '../webhooks/receiver';

export interface PackagerAddress {
  /** An `http:` or `https:` address without a slash at its end. */
  readonly url: string;
  readonly apiKey: string | undefined;
  /** Where the packager pulls live streams, without a slash at its end; undefined when it can pull none. */
  readonly rtmpUrl: string | undefined;
}

/** How long a socket may be without traffic, in milliseconds of real time. */
export const PACKAGER_LIMITS = {
  callMs: 5_000,
  /** While a live stream ends, or a viewer is answered. */
  idleMs: 60_000,
  /** While a file is packaged or a recording is made. */
  fileMs: 600_000,
};
type PackagerLimits = Readonly<typeof PACKAGER_LIMITS>;

const keyIds = z.array(z.string().refine((text) => parseUuid(text).ok));
/** Below `/media/<id>/`. */
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
  seconds: z.number(),
  dash: Delivered,
  hls: Delivered,
});

export type StreamDocument = z.output<typeof StreamDocument>;

/** Whether a stream does not change any more by itself. */
export function isDone({ state }: StreamDocument): boolean {
  return state === 'ended' || state === 'failed' || state === 'refused';
}

const StreamList = z.object({ streams: z.array(StreamDocument) });

/** The reason that a call failed. `absent`: the packager has no such stream, or no such call. */
export interface Failed {
  readonly ok: false;
  readonly problem: Problem;
  readonly absent: boolean;
}
export type Outcome<T> = { readonly ok: true; readonly value: T } | Failed;

interface Call {
  readonly method: string;
  readonly path: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: object;
  /** In place of it; the size in bytes. */
  readonly file?: { readonly path: string; readonly size: number };
  readonly signal?: AbortSignal;
  readonly timeout?: number;
}

const UNREACHABLE = 'packager_unreachable';

/** Calls of the packager. None of them rejects, and none waits longer than the limits, or `timeout`, say. */
export class PackagerClient {
  readonly #protocol: typeof http | typeof https;
  readonly #calls: Agent;
  /** Viewers don't wait for the calls that bring streams to the packager. */
  readonly #viewers: Agent;

  constructor(
    private readonly address: PackagerAddress,
    readonly limits: PackagerLimits,
  ) {
    this.#protocol = address.url.startsWith('https:') ? https : http;
    this.#calls = new this.#protocol.Agent({ keepAlive: true, maxSockets: 16 });
    this.#viewers = new this.#protocol.Agent({ keepAlive: true, maxFreeSockets: 16 });
  }

  ask(call: Call): Promise<Outcome<StreamDocument>> {
    return this.#call(call, async (answer) => StreamDocument.parse(await json(answer)));
  }

  list(): Promise<Outcome<readonly StreamDocument[]>> {
    const call = { method: 'GET', path: '/streams' };
    return this.#call(call, async (answer) => StreamList.parse(await json(answer)).streams);
  }

  /** Removes a stream; it is `absent` then. */
  async remove(id: string): Promise<Failed> {
    const removed = await this.#call({ method: 'DELETE', path: `/streams/${id}` }, (answer) =>
      answer.resume(),
    );
    return removed.ok ? ABSENT : removed;
  }

  open(call: Call): Promise<Outcome<IncomingMessage>> {
    return this.#call(call, (answer) => answer);
  }

  /**
   * The packager's answer of any status to a request of a viewer. The call is made once more when the
   * packager has closed the kept connection.
   */
  async forward(call: Call): Promise<Outcome<IncomingMessage>> {
    const forwarded = { ...call, timeout: this.limits.idleMs };
    const outcome = await this.#open(forwarded, this.#viewers);
    const isToBeRepeated = !outcome.ok && outcome.problem.code === UNREACHABLE;
    return isToBeRepeated ? this.#open(forwarded, this.#viewers) : outcome;
  }

  stop(): void {
    this.#calls.destroy();
    this.#viewers.destroy();
  }

  async #call<T>(call: Call, read: (answer: IncomingMessage) => T | Promise<T>): Promise<Outcome<T>> {
    const opened = await this.#open(call, this.#calls);
    if (!opened.ok) return opened;
    const { statusCode = 0 } = opened.value;
    if (statusCode < 200 || statusCode >= 300) return refusedBy(opened.value, statusCode);
    try {
      return { ok: true, value: await read(opened.value) };
    } catch (thrown) {
      return this.#failed(thrown, call);
    }
  }

  #open(call: Call, agent: Agent): Promise<Outcome<IncomingMessage>> {
    const { url, apiKey } = this.address;
    const { method, file, signal, timeout = this.limits.callMs } = call;
    const body = call.body && JSON.stringify(call.body);
    const headers = {
      ...call.headers,
      ...(body && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
      ...(file && { 'content-type': 'application/octet-stream', 'content-length': file.size }),
      ...(apiKey !== undefined && { 'x-api-key': apiKey }),
    };
    return new Promise((resolve) => {
      const options = { method, agent, headers, timeout, ...(signal && { signal }) };
      const outgoing = this.#protocol.request(`${url}${call.path}`, options);
      outgoing.on('timeout', () => {
        outgoing.destroy(Object.assign(new Error('no answer in time'), { code: 'ETIMEDOUT' }));
      });
      outgoing.on('response', (answer) => {
        // The reader gets the error.
        answer.on('error', () => undefined);
        resolve({ ok: true, value: answer });
      });
      outgoing.on('error', (thrown) => resolve(this.#failed(thrown, call)));
      if (!file) outgoing.end(body);
      // The answer may come before the end of the file; then the rest is not sent.
      else pipeline(createReadStream(file.path), outgoing, () => undefined);
    });
  }

  #failed(thrown: unknown, { signal }: Call): Failed {
    const { url } = this.address;
    const code = systemCode(thrown);
    if (signal?.aborted) return failed('call_ended', 'The call was ended.');
    if (code === undefined)
      return failed(
        'packager_foreign',
        `The server at ${url} is not a packager. Correct EMULATOR_PACKAGERURL.`,
      );
    const advice =
      code === 'ETIMEDOUT'
        ? 'in time. See its log, and the load of its machine.'
        : `(${failureOf(code).replaceAll('_', ' ')}). Start it, or correct EMULATOR_PACKAGERURL.`;
    const description = `The packager at ${url} does not answer ${advice}`;
    return failed(code === 'ETIMEDOUT' ? 'packager_late' : UNREACHABLE, description);
  }
}

export function failed(code: string, description: string, absent = false): Failed {
  return { ok: false, problem: { code, description }, absent };
}

export const ABSENT = failed('stream_not_found', 'The packager has no such stream.', true);

const Refused = z.object({ errors: z.array(z.object({ code: z.string(), description: z.string() })).min(1) });

async function refusedBy(answer: IncomingMessage, status: number): Promise<Failed> {
  const body = await json(answer).catch(() => undefined);
  if (status === 401 || status === 403) {
    const description =
      "The packager refuses the API key. Set EMULATOR_PACKAGERAPIKEY to the packager's PACKAGER_APIKEY.";
    return failed('packager_refused_api_key', description);
  }
  const { code, description } = Refused.safeParse(body).data?.errors[0] ?? {
    code: 'packager_failed',
    description: `The packager answered ${status}.`,
  };
  return failed(code, description, status === 404);
}
