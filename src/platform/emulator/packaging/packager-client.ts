import { createReadStream } from 'node:fs';
import { Agent, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http';
import { Agent as SecureAgent, request as secureRequest } from 'node:https';
import { pipeline } from 'node:stream';
import { json } from 'node:stream/consumers';
import * as z from 'zod';
import { parseUuid } from '../../../drm/bytes';
import { systemCode } from '../../../http/errors';
import type { Problem } from '../../../http/faults';
import { failureOf } from '../webhooks/receiver-call';

export interface PackagerAddress {
  /** An `http:` or `https:` address without a slash at its end. */
  readonly url: string;
  readonly apiKey: string | undefined;
  /** Where the packager pulls live streams, without a slash at its end; undefined when it can pull none. */
  readonly rtmpUrl: string | undefined;
}

/** How long a socket may be without traffic, in milliseconds of real time. */
export const PACKAGER_LIMITS = {
  /** While a call is answered that takes no work. */
  callMs: 5_000,
  /** While a live stream ends, or a viewer is answered. */
  idleMs: 60_000,
  /** While a file is packaged or a recording is made. */
  fileMs: 600_000,
};
type PackagerLimits = Readonly<typeof PACKAGER_LIMITS>;

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

export type StreamDocument = z.output<typeof StreamDocument>;

/** Whether nothing more comes of a stream by itself. */
export function isDone({ state }: StreamDocument): boolean {
  return state === 'ended' || state === 'failed' || state === 'refused';
}

const StreamList = z.object({ streams: z.array(StreamDocument) });

export interface LiveOrder {
  readonly source: string;
  readonly keyFile: string;
  readonly simulcast: readonly { readonly url: string }[];
  readonly latency?: 'low';
}

/** A media file as the packager is to have it; without a key file it is packaged in the clear. */
export interface FileOrder {
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  readonly keyFile: string | undefined;
}

/** The result of a call. `absent`: the packager has no such stream. */
export type Outcome<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problem: Problem; readonly absent: boolean };

interface Call {
  readonly method: string;
  readonly path: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Pick<FileOrder, 'path' | 'size'>;
  readonly signal?: AbortSignal;
  readonly timeout?: number;
  /** It comes from a viewer, who gets the answer whatever its status. */
  readonly isForwarded?: boolean;
}

/** How long a conversion may take with those before it, in milliseconds. */
const CONVERSION_MS = 12 * 60 * 60 * 1000;

const UNREACHABLE = 'packager_unreachable';

/** Calls of the packager. None of them rejects, and none waits longer than the limits say. */
export class PackagerClient {
  readonly #address: PackagerAddress;
  readonly #limits: PackagerLimits;
  readonly #isSecure: boolean;
  readonly #calls: Agent;
  /** Viewers don't wait for the calls that bring streams to the packager. */
  readonly #viewers: Agent;

  constructor(address: PackagerAddress, limits: PackagerLimits) {
    this.#address = address;
    this.#limits = limits;
    this.#isSecure = address.url.startsWith('https:');
    const agent = this.#isSecure ? SecureAgent : Agent;
    this.#calls = new agent({ keepAlive: true, maxSockets: 16 });
    this.#viewers = new agent({ keepAlive: true, maxFreeSockets: 16 });
  }

  /** Starts a live stream; changes nothing when it runs. */
  putLive(id: string, order: LiveOrder): Promise<Outcome<StreamDocument>> {
    const body = JSON.stringify({ ...order, protection: 'key_file' });
    return this.#ask({ method: 'PUT', path: `/streams/${id}`, body }, documentIn);
  }

  /** Sends a media file, in place of what was packaged under the id before. */
  putFile(id: string, order: FileOrder, signal: AbortSignal): Promise<Outcome<StreamDocument>> {
    const { keyFile } = order;
    const query = keyFile === undefined ? 'protection=none' : `keyFile=${encodeURIComponent(keyFile)}`;
    const path = `/streams/${id}/file?${query}`;
    const call = { method: 'PUT', path, body: order, signal, timeout: this.#limits.fileMs };
    return this.#ask(call, documentIn);
  }

  list(): Promise<Outcome<readonly StreamDocument[]>> {
    return this.#ask({ method: 'GET', path: '/streams' }, async (answer) => {
      return StreamList.parse(await json(answer)).streams;
    });
  }

  /** Ends a live stream; what was packaged stays. */
  end(id: string): Promise<Outcome<StreamDocument>> {
    const call = { method: 'POST', path: `/streams/${id}/end`, timeout: this.#limits.idleMs };
    return this.#ask(call, documentIn);
  }

  /** Removes a stream. One that the packager does not have counts as removed. */
  async remove(id: string): Promise<Outcome<unknown>> {
    const removed = await this.#ask({ method: 'DELETE', path: `/streams/${id}` }, (answer) =>
      answer.resume(),
    );
    return removed.ok || !removed.absent ? removed : { ok: true, value: undefined };
  }

  /** The recording of a stream in the clear, or the piece between two seconds. */
  record(
    id: string,
    piece: { readonly from: number; readonly to: number } | undefined,
    signal: AbortSignal,
  ): Promise<Outcome<IncomingMessage>> {
    const path = `/streams/${id}/recording${piece ? `?from=${piece.from}&to=${piece.to}` : ''}`;
    const call = { method: 'GET', path, signal, timeout: this.#limits.fileMs };
    return this.#ask(call, (answer) => answer);
  }

  /** A media file in another size: in pixels, at most, and in kbit/s of the picture; of sound alone without both. */
  convert(
    body: Pick<FileOrder, 'path' | 'size'>,
    order: { readonly height?: number; readonly bitrate?: number },
    signal: AbortSignal,
  ): Promise<Outcome<IncomingMessage>> {
    const query = Object.entries(order).map(([name, value]) => `${name}=${value}`);
    const path = `/conversions?${query.join('&')}`;
    return this.#ask({ method: 'POST', path, body, signal, timeout: CONVERSION_MS }, (answer) => answer);
  }

  /**
   * The packager's answer to a viewer's request, whatever its status. It is requested once more when the packager has
   * closed the kept connection.
   * @param call its path is below `/media`, with its query.
   */
  async forward(
    call: Pick<Call, 'method' | 'path' | 'signal' | 'headers'>,
  ): Promise<Outcome<IncomingMessage>> {
    const forwarded = { ...call, timeout: this.#limits.idleMs, isForwarded: true };
    const outcome = await this.#ask(forwarded, (answer) => answer);
    return outcome.ok || outcome.problem.code !== UNREACHABLE
      ? outcome
      : this.#ask(forwarded, (answer) => answer);
  }

  stop(): void {
    this.#calls.destroy();
    this.#viewers.destroy();
  }

  /** Reads the answer of a call, when it is one of success. */
  async #ask<T>(call: Call, read: (answer: IncomingMessage) => T | Promise<T>): Promise<Outcome<T>> {
    try {
      const answer = await this.#open(call);
      const { statusCode = 0 } = answer;
      if (!call.isForwarded && (statusCode < 200 || statusCode >= 300)) return refusedBy(answer, statusCode);
      return { ok: true, value: await read(answer) };
    } catch (thrown) {
      return { ok: false, problem: this.#problemOf(systemCode(thrown), call.signal), absent: false };
    }
  }

  #open(call: Call): Promise<IncomingMessage> {
    const agent = call.isForwarded ? this.#viewers : this.#calls;
    const { url, apiKey } = this.#address;
    const { method, body, signal, timeout = this.#limits.callMs } = call;
    const isFile = typeof body === 'object';
    const headers = {
      ...call.headers,
      ...(body !== undefined && {
        'content-type': isFile ? 'application/octet-stream' : 'application/json',
        'content-length': isFile ? body.size : Buffer.byteLength(body),
      }),
      ...(apiKey !== undefined && { 'x-api-key': apiKey }),
    };
    return new Promise((resolve, reject) => {
      const options = { method, agent, headers, timeout, ...(signal && { signal }) };
      const outgoing = (this.#isSecure ? secureRequest : request)(`${url}${call.path}`, options);
      outgoing.on('timeout', () => {
        outgoing.destroy(Object.assign(new Error('no answer in time'), { code: 'ETIMEDOUT' }));
      });
      outgoing.on('response', (answer) => {
        // Its reader gets the error.
        answer.on('error', () => undefined);
        resolve(answer);
      });
      outgoing.on('error', reject);
      if (!isFile) outgoing.end(body);
      // The answer may come before the end of the file; then the rest is not sent.
      else pipeline(createReadStream(body.path), outgoing, () => undefined);
    });
  }

  #problemOf(code: string | undefined, signal: AbortSignal | undefined): Problem {
    const { url } = this.#address;
    if (signal?.aborted) return { code: 'call_ended', description: 'The call was ended.' };
    if (code === undefined) {
      const description = `The server at ${url} is not a packager. Correct EMULATOR_PACKAGERURL.`;
      return { code: 'packager_foreign', description };
    }
    if (code === 'ETIMEDOUT') {
      const description = `The packager at ${url} does not answer in time. See its log, and the load of its machine.`;
      return { code: 'packager_late', description };
    }
    const failure = failureOf(code).replaceAll('_', ' ');
    const description = `The packager at ${url} does not answer (${failure}). Start it, or correct EMULATOR_PACKAGERURL.`;
    return { code: UNREACHABLE, description };
  }
}

async function documentIn(answer: IncomingMessage): Promise<StreamDocument> {
  return StreamDocument.parse(await json(answer));
}

const Refused = z.object({ errors: z.array(z.object({ code: z.string(), description: z.string() })).min(1) });

/** Why a call failed, by the first error of the answer if it has one. */
async function refusedBy(answer: IncomingMessage, status: number): Promise<Outcome<never>> {
  if (status === 401 || status === 403) {
    answer.resume();
    const description =
      "The packager refuses the API key. Set EMULATOR_PACKAGERAPIKEY to the packager's PACKAGER_APIKEY.";
    return { ok: false, problem: { code: 'packager_refused_api_key', description }, absent: false };
  }
  const failed = { code: 'packager_failed', description: `The packager answered ${status}.` };
  const body = await json(answer).catch(() => undefined);
  const problem = Refused.safeParse(body).data?.errors[0] ?? failed;
  return { ok: false, problem, absent: status === 404 };
}
