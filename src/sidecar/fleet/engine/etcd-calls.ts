import type { IncomingMessage } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import type { Log } from '../../../http/log';
import type { FleetConfig } from '../config';
import { EngineError } from './engine';
import { Failed, faultOfAnswer, faultOfForeignAnswer, faultOfNoAnswer, parseAnswer } from './etcd-faults';
import { type Ask, type Credentials, createEtcdHttp } from './etcd-http';
import { type Fields, fields, momentOf, text } from './etcd-json';

export interface EtcdOptions extends Pick<FleetConfig, 'urls' | 'timeoutMs'> {
  /** Another object after each change of the files. */
  readonly tls?: () => Credentials;
  /** The etcd user, read at each sign-in; undefined: there is none. */
  readonly user?: () => { readonly name: string; readonly password: string } | undefined;
  readonly log: Log;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly clock: () => Date;
  readonly pace?: Partial<typeof PACE>;
}

const PACE = {
  /** How long a server may be silent before it is given up; after a third of it, the next one is asked for a transaction as well. */
  attemptMs: 1500,
  /** How often a server with a watch is asked whether it has a majority. */
  heartbeatMs: 2000,
  /** The pause before a watch is tried again whose right is missing. */
  deniedMs: 3000,
};

export type Calls = ReturnType<typeof createCalls>;

/** A server without a leader then refuses at once instead of waiting for one; nothing is done. */
const LEADER_NEEDED = { 'grpc-metadata-hasleader': 'true' };
/** Reads and changes of keys, which clients wait for: small, so that a second server can be asked as well. */
export const TRANSACTION = '/v3/kv/txn';
/** The only answer without the header that all others have. */
export const ALARM = '/v3/maintenance/alarm';
const FIRST_WAIT_MS = 25;
const LONGEST_WAIT_MS = 800;
const NO_CREDENTIALS = {};
const { why: SILENT } = faultOfNoAnswer('ETIMEDOUT', true);

/** Calls to the servers of etcd, which are named by their addresses. */
export function createCalls(options: EtcdOptions) {
  const { urls, timeoutMs, tls = () => NO_CREDENTIALS, log, now } = options;
  const [nearest] = urls;
  if (nearest === undefined) throw new RangeError('An engine needs an address');
  const http = createEtcdHttp(nearest.startsWith('https:'), tls);
  const pace = { ...PACE, ...options.pace };
  const attemptMs = Math.min(timeoutMs / 3, pace.attemptMs);
  const clock = createClockCheck(options);
  let current = nearest;
  /** Whether a server has answered since the last loss: a loss is logged once. */
  let hasAnswered = true;
  let isClosed = false;

  const after = (server: string) => urls[urls.indexOf(server) + 1] ?? nearest;
  /** Makes the next server the first one, unless that was done since. */
  const skip = (server: string, why: string): void => {
    if (server !== current || isClosed) return;
    current = after(server);
    if (hasAnswered) log.warn("a server of the fleet's engine does not answer", { server, why });
    hasAnswered = false;
  };

  const ask = async (server: string, asked: Ask): Promise<Fields> => {
    const began = now();
    const { status, date, body } = await http.ask(server, asked);
    const json = parseAnswer(body);
    if (status !== 200 || json === undefined || json.error !== undefined)
      throw new Failed(server, faultOfAnswer(status, body));
    // The gateway puts the messages of a stream into `result`.
    const answer = fields(json.result ?? json);
    if (asked.path !== ALARM && momentOf(answer) === undefined)
      throw new Failed(server, faultOfForeignAnswer(status));
    clock.learn(date, now() - began);
    hasAnswered ||= server === current;
    return answer;
  };

  const tokens = createTokens(options, ask);

  const attempt = async (
    server: string,
    path: string,
    body: object,
    silenceMs: number,
    onAnswer?: () => void,
  ): Promise<Fields> => {
    for (let isFirst = true; ; isFirst = false) {
      const token = tokens.current(server, silenceMs);
      const headers = headersWith(await token);
      const asked = { path, body: JSON.stringify(body), headers, silenceMs, ...(onAnswer && { onAnswer }) };
      try {
        return await ask(server, asked);
      } catch (thrown) {
        const mustSignIn = thrown instanceof Failed && thrown.fault.signIn && options.user !== undefined;
        if (mustSignIn) tokens.drop(token);
        if (!mustSignIn || !isFirst) throw thrown;
      }
    }
  };

  /**
   * Asks one server after the other until one answers or `timeoutMs` are over. The server may be asked twice for one change.
   * @param isChange whether it matters, when it fails, that it may have been done
   * @throws EngineError
   */
  const call = (path: string, body: object, isChange = false): Promise<Fields> => {
    const deadline = now() + timeoutMs;
    const attempts: Promise<Fields | Failed>[] = [];
    let isOver = false;
    const silentMs = path === TRANSACTION ? attemptMs / 3 : attemptMs;
    /** Asks a server. When it fails, and also while it is silent, the next one is asked. */
    const askFrom = async (server: string): Promise<Fields> => {
      if (isClosed || isOver)
        throw new EngineError('unavailable', 'The connections to the engine are closed');
      // A pause may take longer than it was to.
      const left = Math.max(1, deadline - now());
      // The last attempt has all that is left: two short ones would find out less.
      const silenceMs = left < 2 * attemptMs ? left : attemptMs;
      let isSilent = true;
      const onAnswer = () => {
        isSilent = false;
      };
      const own = attempt(server, path, body, silenceMs, onAnswer).catch((thrown: unknown) => {
        if (!(thrown instanceof Failed)) throw thrown;
        if (thrown.fault.again) skip(server, thrown.fault.why);
        return thrown;
      });
      attempts.push(own);
      // It may be dead, or have passed the change on to a leader that is. Its answer counts also when it comes late.
      const silence = pause(silentMs).then(() => (isSilent ? undefined : own));
      const first = await Promise.race([own, silence]);
      if (first && !(first instanceof Failed)) return first;
      const wait = first ? pauseBefore(attempts.length - urls.length) : 0;
      if (first?.fault.again === false || isClosed || now() + wait >= deadline) {
        let failed = first;
        let mayBeDone = false;
        for (const outcome of await Promise.all(attempts)) {
          if (!(outcome instanceof Failed)) return outcome;
          failed ??= outcome;
          mayBeDone ||= isChange && outcome.fault.mayBeDone;
        }
        if (failed && mayBeDone)
          throw new EngineError('unknown', `It is not known whether the change was made: ${failed.message}`);
        if (failed) throw failed.toEngineError();
      }
      if (wait > 0) await pause(wait);
      const rest = askFrom(after(server));
      if (first) return rest;
      const later = rest.then((answer) => {
        if (isSilent) skip(server, SILENT);
        return answer;
      });
      return Promise.race([later, own.then((late) => (late instanceof Failed ? rest : late))]);
    };
    return askFrom(current).finally(() => {
      isOver = true;
    });
  };

  return {
    servers: urls,
    http,
    pace,
    /** The server that is asked first. */
    get current() {
      return current;
    },
    skip,
    call,
    /** One attempt at one server. @throws Failed */
    once: (server: string, path: string, body: object) => attempt(server, path, body, pace.attemptMs),
    /** Opens an endless answer; `signInAgain` makes the next call sign in. @throws Failed */
    async open(server: string, path: string, body: object) {
      const silenceMs = pace.attemptMs;
      const token = tokens.current(server, silenceMs);
      const asked = { path, body: JSON.stringify(body), headers: headersWith(await token), silenceMs };
      const response = await http.open(server, asked);
      const signInAgain = () => tokens.drop(token);
      if (response.statusCode === 200) return { response, signInAgain };
      const fault = faultOfAnswer(response.statusCode ?? 0, await startOf(response, silenceMs));
      if (fault.signIn) signInAgain();
      throw new Failed(server, fault);
    },
    clockAhead: clock.ahead,
    close() {
      isClosed = true;
      http.close();
    },
  };
}

async function pause(ms: number): Promise<undefined> {
  await setTimeout(ms, undefined, { ref: false });
}

function headersWith(token: string | undefined): Readonly<Record<string, string>> {
  return token === undefined ? LEADER_NEEDED : { ...LEADER_NEEDED, authorization: token };
}

/** The pause before an attempt, in ms: 0 until every server was asked. */
export function pauseBefore(round: number): number {
  return round < 0 ? 0 : Math.min(FIRST_WAIT_MS * 2 ** round, LONGEST_WAIT_MS);
}

/** Enough of an answer to see the fault. */
async function startOf(response: IncomingMessage, silenceMs: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of response.setTimeout(silenceMs, () => response.destroy())) {
      chunks.push(chunk);
      if (chunks.length >= 4) break;
    }
  } catch {
    // The status is enough.
  }
  return Buffer.concat(chunks);
}

/** A refused sign-in is not repeated for so long: each one costs the server as much as 1,000 reads. */
const REFUSAL_KEPT_MS = 1000;

type Token = Promise<string | undefined>;

/** The token of the user, which all calls share. */
function createTokens({ user, log, now }: EtcdOptions, ask: (server: string, asked: Ask) => Promise<Fields>) {
  let held: Token | undefined;
  let refusal: { readonly thrown: unknown; readonly at: number } | undefined;

  const signIn = async (server: string, silenceMs: number, who: { name: string; password: string }) => {
    if (refusal && now() - refusal.at < REFUSAL_KEPT_MS) throw refusal.thrown;
    try {
      const body = JSON.stringify(who);
      return text((await ask(server, { path: '/v3/auth/authenticate', body, silenceMs })).token);
    } catch (thrown) {
      if (!(thrown instanceof Failed)) throw thrown;
      if (/authentication is not enabled/.test(thrown.fault.why)) {
        log.warn("the fleet's engine has no users: the sidecar does not sign in", { server });
        return undefined;
      }
      // The call that needed the token was not sent.
      const failed = new Failed(server, { ...thrown.fault, mayBeDone: false, signIn: false });
      if (!failed.fault.again) refusal = { thrown: failed, at: now() };
      throw failed;
    }
  };

  return {
    /** Signs in if needed; undefined: no token is needed. @throws Failed */
    current(server: string, silenceMs: number): Token {
      const who = user?.();
      if (who === undefined) return Promise.resolve(undefined);
      if (held) return held;
      const made = signIn(server, silenceMs, who);
      held = made;
      made.catch(() => {
        if (held === made) held = undefined;
      });
      return made;
    },
    /** Makes the next call sign in again, unless that was done since. */
    drop(token: Token): void {
      if (held === token) held = undefined;
    },
  };
}

const CLOCK_SAMPLES = 5;
const CLOCK_EVERY_MS = 1000;

/** Compares this machine's clock with the `Date` of the answers, which has whole seconds. */
function createClockCheck({ now, clock }: EtcdOptions) {
  const samples: number[] = [];
  let last: number | undefined;
  return {
    learn(date: string | undefined, tookMs: number): void {
      if (date === undefined || (last !== undefined && now() - last < CLOCK_EVERY_MS)) return;
      const theirs = Date.parse(date) + 500;
      if (Number.isNaN(theirs)) return;
      last = now();
      samples.push(clock().getTime() - tookMs / 2 - theirs);
      if (samples.length > CLOCK_SAMPLES) samples.shift();
    },
    ahead(): number | undefined {
      const middle = samples.toSorted((one, other) => one - other)[Math.floor(samples.length / 2)];
      return middle === undefined ? undefined : Math.round(middle);
    },
  };
}
