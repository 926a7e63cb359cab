import * as http from 'node:http';
import * as https from 'node:https';
import { setTimeout as pause } from 'node:timers/promises';
import { isJsonObject, type JsonObject, parseJson } from '../../../drm/bytes';
import type { ClientTls } from '../../../http/client-tls';
import { systemCode } from '../../../http/errors';
import { failureCode } from '../../../http/get-request';
import type { FleetConfig } from '../config';
import type { FleetHooks } from '../fleet';
import { EngineError } from './engine';
import {
  EtcdError,
  faultOfAnswer,
  faultOfForeignAnswer,
  faultOfNoAnswer,
  fields,
  momentOf,
  text,
} from './etcd-answers';

type Shared = Pick<FleetConfig, 'urls' | 'timeoutMs'> & Pick<FleetHooks, 'log' | 'now' | 'clock'>;

export interface EtcdOptions extends Shared {
  readonly tls?: () => ClientTls;
  /** Read at each sign-in. */
  readonly user?: () => { readonly name: string; readonly password: string } | undefined;
  readonly pace?: Partial<typeof PACE>;
}

const PACE = {
  /** How long a server may be silent; after a third of it, a transaction is also sent to the next. */
  attemptMs: 1500,
  /** How often a server with a watch is asked whether it has a majority. */
  heartbeatMs: 2000,
  /** The pause before a watch without the right to it is tried again. */
  deniedMs: 3000,
};

export type Calls = ReturnType<typeof createCalls>;

interface Ask {
  readonly path: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The longest silence before the answer and between its parts, in ms. */
  readonly silenceMs: number;
  readonly onAnswer?: (() => void) | undefined;
}

const HEADERS = {
  /** A server without a leader then refuses at once instead of waiting for one; nothing is done. */
  'grpc-metadata-hasleader': 'true',
  /** Without it, and with TLS, etcd takes a call that has no token for one of its own certificate, and denies it. */
  accept: 'application/json',
};
/** Reads and changes of keys: small, so that a second server can be asked as well. */
export const TRANSACTION = '/v3/kv/txn';
/** The only answer without the header that all others have. */
export const ALARM = '/v3/maintenance/alarm';
const FIRST_WAIT_MS = 25;
const LONGEST_WAIT_MS = 800;
const MAX_FAULT = 64 * 1024;
/** More than the largest page. */
const MAX_ANSWER = 256 * 1024 * 1024;
const NO_CREDENTIALS = {};
const { why: SILENT } = faultOfNoAnswer('ETIMEDOUT', true);

export function createCalls(options: EtcdOptions) {
  const { urls, timeoutMs, tls = () => NO_CREDENTIALS, log, now } = options;
  const [nearest] = urls;
  if (nearest === undefined) throw new RangeError('An engine needs an address');
  const connections = createConnections(nearest.startsWith('https:'), tls);
  const pace = { ...PACE, ...options.pace };
  const attemptMs = Math.min(timeoutMs / 3, pace.attemptMs);
  const clock = createClockCheck(options);
  /** Servers are tried in the order of their addresses: one is kept while it answers. */
  let current = nearest;
  /** Whether a server has answered since the last loss: each loss is logged once. */
  let hasAnswered = true;
  let isClosed = false;

  const after = (server: string) => urls[urls.indexOf(server) + 1] ?? nearest;
  /** Makes the next server the first one, unless another call has done so. */
  const skip = (server: string, why: string): void => {
    if (server !== current || isClosed) return;
    current = after(server);
    if (hasAnswered) log.warn("a server of the fleet's engine does not answer", { server, why });
    hasAnswered = false;
  };

  const ask = async (server: string, asked: Ask): Promise<JsonObject> => {
    const began = now();
    const response = await connections.send(server, asked, true);
    const body = await bodyOf(response, MAX_ANSWER).catch((thrown: unknown) => {
      throw new EtcdError(server, faultOfNoAnswer(systemCode(thrown) ?? 'ECONNRESET', true));
    });
    const { statusCode = 0, headers } = response;
    const json = parseJson(body);
    if (statusCode !== 200 || !isJsonObject(json) || json.error !== undefined)
      throw new EtcdError(server, faultOfAnswer(statusCode, body));
    // The gateway puts the messages of a stream into `result`.
    const answer = fields(json.result ?? json);
    if (asked.path !== ALARM && momentOf(answer) === undefined)
      throw new EtcdError(server, faultOfForeignAnswer(statusCode));
    clock.learn(headers.date, now() - began);
    hasAnswered ||= server === current;
    return answer;
  };

  const tokens = createTokens(options, ask);

  /** @throws Failed */
  const callServer = async (
    server: string,
    path: string,
    body: object,
    silenceMs = pace.attemptMs,
    onAnswer?: () => void,
  ): Promise<JsonObject> => {
    for (let isFirst = true; ; isFirst = false) {
      const token = tokens.current(server, silenceMs);
      const headers = headersWith(await token);
      try {
        return await ask(server, { path, body: JSON.stringify(body), headers, silenceMs, onAnswer });
      } catch (thrown) {
        const mustSignIn = thrown instanceof EtcdError && thrown.fault.signIn && options.user !== undefined;
        if (mustSignIn) tokens.drop(token);
        if (!mustSignIn || !isFirst) throw thrown;
      }
    }
  };

  /**
   * Asks one server after the other until one answers or `timeoutMs` are over; for a change perhaps one of them twice.
   * `isChange`: a failed call may have changed something. @throws EngineError
   */
  const call = async (path: string, body: object, isChange = false): Promise<JsonObject> => {
    const deadline = now() + timeoutMs;
    const token = tokens.held();
    const silentMs = path === TRANSACTION ? attemptMs / 3 : attemptMs;
    const attempts: Promise<JsonObject>[] = [];
    const asked: { readonly server: string; isSilent: boolean }[] = [];
    for (let server = current; !isClosed; server = after(server)) {
      // A pause may take longer than asked for.
      const left = Math.max(1, deadline - now());
      // The last attempt gets all remaining time: two short ones would find less.
      const silenceMs = left < 2 * attemptMs ? left : attemptMs;
      const before = [...asked];
      const mine = { server, isSilent: true };
      asked.push(mine);
      const hear = () => {
        mine.isSilent = false;
      };
      const own = callServer(server, path, body, silenceMs, hear).then(
        (answer) => {
          for (const each of before) if (each.isSilent) skip(each.server, SILENT);
          return answer;
        },
        (thrown: unknown) => {
          hear();
          if (thrown instanceof EtcdError && thrown.fault.canRetry) skip(mine.server, thrown.fault.why);
          throw thrown;
        },
      );
      attempts.push(own);
      // The server may be dead, or its leader is. A late answer counts as well.
      const silence = pause(silentMs, undefined, { ref: false }).then(() =>
        mine.isSilent ? undefined : own,
      );
      const outcome = await Promise.race([own, Promise.any(attempts), silence]).catch((thrown: unknown) => {
        if (thrown instanceof EtcdError) return thrown;
        throw thrown;
      });
      if (outcome && !(outcome instanceof EtcdError)) return outcome;
      const wait = outcome ? pauseBefore(attempts.length - urls.length) : 0;
      if ((outcome && !outcome.fault.canRetry) || now() + wait >= deadline) break;
      const late = wait > 0 && (await Promise.any([...attempts, pause(wait, undefined, { ref: false })]));
      if (late) return late;
    }
    return Promise.any(attempts).catch(({ errors }: AggregateError) => {
      const failures: readonly unknown[] = errors;
      const mayBeDone = failures.some((each) => each instanceof EtcdError && each.fault.mayBeDone);
      // A restored etcd does not answer to a token of before.
      if (mayBeDone) tokens.drop(token);
      const failed =
        failures.at(-1) ?? new EngineError('unavailable', 'The connections to the engine are closed');
      if (failed instanceof EtcdError && isChange && mayBeDone)
        throw new EngineError('unknown', `It is not known whether the change was made: ${failed.message}`);
      throw failed;
    });
  };

  return {
    servers: urls,
    pace,
    get current() {
      return current;
    },
    skip,
    call,
    callServer,
    /** Opens an endless answer. `signInAgain` makes the next call sign in. @throws Failed */
    async open(server: string, path: string, body: object) {
      const silenceMs = pace.attemptMs;
      const token = tokens.current(server, silenceMs);
      const asked = { path, body: JSON.stringify(body), headers: headersWith(await token), silenceMs };
      const response = await connections.send(server, asked, false);
      const signInAgain = () => tokens.drop(token);
      if (response.statusCode === 200) return { response: response.setTimeout(0), signInAgain };
      const fault = faultOfAnswer(
        response.statusCode ?? 0,
        await bodyOf(response, MAX_FAULT).catch(() => ''),
      );
      if (fault.signIn) signInAgain();
      throw new EtcdError(server, fault);
    },
    /** For pages of the server outside its API. @throws Failed */
    async page(server: string, path: string): Promise<string> {
      return bodyOf(await connections.send(server, { path, silenceMs: pace.attemptMs }, true), MAX_ANSWER);
    },
    clockAhead: clock.ahead,
    close() {
      isClosed = true;
      connections.close();
    },
  };
}

function headersWith(token: string | undefined): Readonly<Record<string, string>> {
  return { ...HEADERS, ...(token !== undefined && { authorization: token }) };
}

/** In ms; 0 until every server was asked. */
export function pauseBefore(round: number): number {
  return round < 0 ? 0 : Math.min(FIRST_WAIT_MS * 2 ** round, LONGEST_WAIT_MS);
}

const MAX_CONNECTIONS = 64;

/** New connections use the present credentials: another object after each change of the files. */
function createConnections(isTls: boolean, credentials: () => ClientTls) {
  const { request, Agent } = isTls ? https : http;
  let used: ClientTls | undefined;
  let kept: http.Agent | undefined;

  const agent = (): http.Agent => {
    const present = credentials();
    if (kept && present === used) return kept;
    kept?.destroy();
    used = present;
    // A resumed TLS session would skip the check of the certificates.
    const sessions = { maxCachedSessions: 0 };
    kept = new Agent({ ...present, ...sessions, keepAlive: true, maxSockets: MAX_CONNECTIONS });
    return kept;
  };

  return {
    /** Resolves with the begun answer, on a kept connection or on one that ends with it. @throws Failed */
    send: (url: string, { path, body, headers, silenceMs, onAnswer }: Ask, isKept: boolean) =>
      new Promise<http.IncomingMessage>((resolve, reject) => {
        let isSent = false;
        let received: http.IncomingMessage | undefined;
        const fail = (code: string) => reject(new EtcdError(url, faultOfNoAnswer(code, isSent)));
        const sending = request(`${url}${path}`, {
          method: body === undefined ? 'GET' : 'POST',
          ...(isKept ? { agent: agent() } : { ...credentials(), agent: false }),
          timeout: silenceMs,
          headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
        });
        sending.on('socket', (socket) => {
          // Not before: Node doubles a socket's time limit while something waits to be written.
          const end = () => {
            isSent = true;
            sending.end(body);
          };
          // A kept connection that a call has waited for is no `reusedSocket`.
          if (socket.connecting) socket.once(isTls ? 'secureConnect' : 'connect', end);
          else end();
        });
        sending.on('timeout', () => {
          const silence = Object.assign(new Error('silence'), { code: 'ETIMEDOUT' });
          (received ?? sending).destroy(silence);
        });
        sending.on('response', (response) => {
          received = response;
          onAnswer?.();
          // Until the caller reads it: an error without a listener would end the process.
          response.on('error', () => undefined);
          resolve(response);
        });
        sending.on('upgrade', (_response, socket) => {
          socket.destroy();
          fail('ERROR');
        });
        sending.on('error', (thrown) => fail(failureCode(thrown)));
        sending.on('close', () => fail('ECONNRESET'));
      }),
    close: () => kept?.destroy(),
  };
}

/** Rejects with the code `TOO_LARGE` or the system's. */
async function bodyOf(response: http.IncomingMessage, most: number): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > most) throw Object.assign(new Error('too large'), { code: 'TOO_LARGE' });
  }
  return Buffer.concat(chunks, length).toString('utf8');
}

/** A refused sign-in is not repeated meanwhile: each one costs the server as much as 1,000 reads. */
const REFUSAL_KEPT_MS = 1000;

type Token = Promise<string | undefined>;

function createTokens(
  { user, log, now }: EtcdOptions,
  ask: (server: string, asked: Ask) => Promise<JsonObject>,
) {
  let held: Token | undefined;
  let refusal: { readonly failed: EtcdError; readonly at: number } | undefined;
  const drop = (token: Token | undefined): void => {
    if (held === token) held = undefined;
  };

  const signIn = async (server: string, silenceMs: number, body: string) => {
    if (refusal && now() - refusal.at < REFUSAL_KEPT_MS) throw refusal.failed;
    try {
      return text((await ask(server, { path: '/v3/auth/authenticate', body, silenceMs })).token);
    } catch (thrown) {
      if (!(thrown instanceof EtcdError)) throw thrown;
      if (/authentication is not enabled/.test(thrown.fault.why)) {
        log.warn("the fleet's engine has no users: the sidecar does not sign in", { server });
        return undefined;
      }
      // The call that needed the token was not sent.
      const failed = new EtcdError(server, { ...thrown.fault, mayBeDone: false, signIn: false });
      if (!failed.fault.canRetry) refusal = { failed, at: now() };
      throw failed;
    }
  };

  return {
    /** Undefined: no token is needed. @throws Failed */
    current(server: string, silenceMs: number): Token {
      const who = user?.();
      if (who === undefined) return Promise.resolve(undefined);
      if (held) return held;
      const made = signIn(server, silenceMs, JSON.stringify(who));
      held = made;
      made.catch(() => drop(made));
      return made;
    },
    held: () => held,
    /** Makes the next call sign in again, unless another one has done so. */
    drop,
  };
}

const CLOCK_SAMPLES = 5;
const CLOCK_EVERY_MS = 1000;

/** Compares this machine's clock with the `Date` of the answers, which has whole seconds. */
function createClockCheck({ now, clock }: EtcdOptions) {
  const samples: number[] = [];
  let last = -Infinity;
  return {
    learn(date: string | undefined, tookMs: number): void {
      const theirs = Date.parse(date ?? '') + 500;
      if (Number.isNaN(theirs) || now() - last < CLOCK_EVERY_MS) return;
      last = now();
      samples.push(clock().getTime() - tookMs / 2 - theirs);
      if (samples.length > CLOCK_SAMPLES) samples.shift();
    },
    ahead(): number | undefined {
      const middle = samples.toSorted((one, other) => one - other)[Math.floor(samples.length / 2)];
      // Milliseconds would be another report of this packager with each answer.
      return middle === undefined ? undefined : Math.round(middle / 1000) * 1000;
    },
  };
}
