import type { IncomingMessage } from 'node:http';
import type { Log } from '../../../http/log';
import type { FleetConfig } from '../config';
import { EngineError, type Moment } from './engine';
import { type Ask, type Credentials, createExchange, type Exchange, NoAnswer } from './etcd-exchange';
import { Failed, faultOfAnswer, faultOfNoAnswer, faultOfStranger, parseAnswer } from './etcd-faults';
import { type Fields, fields, momentOf, text } from './etcd-json';

export interface EtcdOptions extends Pick<FleetConfig, 'urls' | 'timeoutMs'> {
  /** What the connections show and trust; asked for at each new one. */
  readonly tls?: () => Credentials;
  /** Who signs in; undefined: nobody does. Asked for at each time. */
  readonly user?: () => { readonly name: string; readonly password: string } | undefined;
  readonly log: Log;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly clock: () => Date;
}

/** One server of etcd. */
export interface EtcdServer {
  readonly url: string;
  readonly exchange: Exchange;
}

export interface CallOptions {
  /** Whether it changes something: when it fails, it matters whether it may be done. */
  readonly isChange?: boolean;
}

interface OnceOptions extends CallOptions {
  readonly silenceMs: number;
}

interface Opened {
  readonly response: IncomingMessage;
  /** Has the next call sign in anew: what came over this connection says that it must. */
  readonly signInAnew: () => void;
}

/** Calls to etcd. */
export interface Calls {
  readonly servers: readonly EtcdServer[];
  /** Which one is asked first. */
  readonly current: EtcdServer;
  /** Has the next one asked first, unless this one is not asked first any more. */
  passOver(server: EtcdServer, why: string): void;
  /**
   * Asks one server after the other, until one answers or `timeoutMs` are over. Of a stream, it answers the first message.
   * @throws EngineError
   */
  call(path: string, body: object, options?: CallOptions): Promise<Fields>;
  /** The same for what a majority answers. */
  linearizable(path: string, body: object, options?: CallOptions): Promise<Told>;
  /** One attempt at one server. @throws Failed */
  once(server: EtcdServer, path: string, body: object, options: OnceOptions): Promise<Fields>;
  /** Opens an answer that does not end. @throws Failed */
  open(server: EtcdServer, path: string, body: object, silenceMs: number): Promise<Opened>;
  /** What a majority told last. */
  readonly history: History;
  clockAhead(): number | undefined;
  close(): void;
}

export interface Told {
  readonly answer: Fields;
  readonly at: Moment;
}

/** A server without a leader refuses at once then, in place of waiting for one: nothing is done, and another may have one. */
const LEADER_NEEDED = { 'grpc-metadata-hasleader': 'true' };
/** The only answer without the header that all others have. */
export const ALARM = '/v3/maintenance/alarm';
const ATTEMPT_MS = 1500;
const FIRST_WAIT_MS = 25;
const LONGEST_WAIT_MS = 400;

export function createCalls(options: EtcdOptions): Calls {
  const { urls, timeoutMs, tls = () => ({}), log, now } = options;
  const servers = urls.map((url): EtcdServer => ({ url, exchange: createExchange(url, tls) }));
  const attemptMs = Math.min(timeoutMs / 3, ATTEMPT_MS);
  const clock = createClockCheck(options);
  const history = createHistory();
  let first = 0;
  /** Whether the server that is asked first, or one before it, has answered since the last loss. */
  let hasAnswered = true;
  let isClosed = false;

  const current = (): EtcdServer => {
    const server = servers[first];
    if (server === undefined) throw new RangeError('An engine needs an address');
    return server;
  };

  const passOver = (server: EtcdServer, why: string) => {
    if (server !== current() || isClosed) return;
    first = (first + 1) % servers.length;
    // Once for each loss, and not for each attempt while nothing answers.
    if (hasAnswered) log.warn("a server of the fleet's engine does not answer", { server: server.url, why });
    hasAnswered = false;
  };

  const ask = async (server: EtcdServer, asked: Ask): Promise<Fields> => {
    const began = now();
    const { status, date, body } = await server.exchange.ask(asked).catch(toFailed(server));
    const json = parseAnswer(body);
    if (status !== 200 || json === undefined || json.error !== undefined)
      throw new Failed(server.url, faultOfAnswer(status, body));
    const answer = fields(json.result ?? json);
    if (asked.path !== ALARM && momentOf(answer) === undefined)
      throw new Failed(server.url, faultOfStranger(status));
    clock.learn(date, now() - began);
    hasAnswered ||= server === current();
    return answer;
  };

  const tokens = createTokens(options, ask);

  const once = async (
    server: EtcdServer,
    path: string,
    body: object,
    { silenceMs, isChange = false }: OnceOptions,
  ): Promise<Fields> => {
    const sent = JSON.stringify(body);
    let isRepeated = false;
    let isSignedIn = false;
    for (;;) {
      const token = await tokens.current(server, silenceMs);
      try {
        return await ask(server, { path, body: sent, headers: headersWith(token), silenceMs });
      } catch (thrown) {
        const { isStale = false, signIn = false } = thrown instanceof Failed ? thrown.fault : {};
        if (isStale && !isChange && !isRepeated && !isClosed) isRepeated = true;
        else if (signIn && tokens.isNeeded && !isSignedIn) isSignedIn = true;
        else throw thrown;
        if (signIn) tokens.drop(token);
      }
    }
  };

  const call = async (
    path: string,
    body: object,
    { isChange = false }: CallOptions = {},
  ): Promise<Fields> => {
    const began = now();
    let mayBeDone = false;
    for (let attempt = 1; ; attempt++) {
      if (isClosed) throw new EngineError('unavailable', 'The connections to the engine are closed');
      const left = timeoutMs - (now() - began);
      // The last attempt has what is left: two short ones would find out less.
      const silenceMs = left < 2 * attemptMs ? left : attemptMs;
      const server = current();
      try {
        return await once(server, path, body, { silenceMs, isChange });
      } catch (thrown) {
        if (!(thrown instanceof Failed)) throw thrown;
        const { again, isStale = false, why } = thrown.fault;
        mayBeDone ||= isChange && thrown.fault.mayBeDone;
        if (again && !isStale) passOver(server, why);
        const wait = waitAfter(attempt - servers.length);
        if (!again || isClosed || now() - began + wait >= timeoutMs) throw lastError(thrown, mayBeDone);
        if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
      }
    }
  };

  return {
    servers,
    get current() {
      return current();
    },
    passOver,
    call,
    async linearizable(path, body, callOptions) {
      const mark = history.mark();
      const answer = await call(path, body, callOptions);
      return { answer, at: history.learn(mark, answer) };
    },
    once,
    async open(server, path, body, silenceMs) {
      const token = await tokens.current(server, silenceMs);
      const asked = { path, body: JSON.stringify(body), headers: headersWith(token), silenceMs };
      const response = await server.exchange.open(asked).catch(toFailed(server));
      const signInAnew = () => tokens.drop(token);
      if (response.statusCode === 200) return { response, signInAnew };
      const fault = faultOfAnswer(response.statusCode ?? 0, await beginningOf(response));
      if (fault.signIn) signInAnew();
      throw new Failed(server.url, fault);
    },
    history,
    clockAhead: clock.ahead,
    close() {
      isClosed = true;
      for (const { exchange } of servers) exchange.close();
    },
  };
}

function headersWith(token: string | undefined): Readonly<Record<string, string>> {
  return token === undefined ? LEADER_NEEDED : { ...LEADER_NEEDED, authorization: token };
}

const toFailed = (server: EtcdServer) => (thrown: unknown) => {
  throw thrown instanceof NoAnswer ? new Failed(server.url, faultOfNoAnswer(thrown)) : thrown;
};

/** 0 while there are servers that were not asked yet. */
function waitAfter(round: number): number {
  return round < 0 ? 0 : Math.min(FIRST_WAIT_MS * 2 ** round, LONGEST_WAIT_MS);
}

function lastError(failed: Failed, mayBeDone: boolean): EngineError {
  if (!mayBeDone) return failed.toEngineError();
  return new EngineError('unknown', `It is not known whether the change was made: ${failed.message}`);
}

/** What of an answer is enough to see what is wrong. */
async function beginningOf(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of response.setTimeout(ATTEMPT_MS, () => response.destroy())) {
      chunks.push(chunk);
      if (chunks.length >= 4) break;
    }
  } catch {
    // Its status says enough.
  }
  return Buffer.concat(chunks);
}

interface Tokens {
  /** Whether there is somebody who signs in. */
  readonly isNeeded: boolean;
  /** Signs in where that is needed; undefined: no token is needed. @throws Failed */
  current(server: EtcdServer, silenceMs: number): Promise<string | undefined>;
  /** Has the next one sign in anew, unless that was done since. */
  drop(token: string | undefined): void;
}

interface SignIn {
  readonly token: Promise<string | undefined>;
  /** Once it is there. */
  value?: string | undefined;
}

/** A sign-in that was refused is not tried again for so long: each one costs the server as much as 1,000 reads. */
const REFUSAL_KEPT_MS = 1000;

function createTokens(
  { user, log, now }: EtcdOptions,
  ask: (server: EtcdServer, asked: Ask) => Promise<Fields>,
): Tokens {
  let held: SignIn | undefined;
  let refusal: { readonly thrown: unknown; readonly at: number } | undefined;

  const signIn = async (server: EtcdServer, silenceMs: number, who: { name: string; password: string }) => {
    if (refusal && now() - refusal.at < REFUSAL_KEPT_MS) throw refusal.thrown;
    try {
      const body = JSON.stringify(who);
      const answer = await ask(server, { path: '/v3/auth/authenticate', body, silenceMs });
      return text(answer.token);
    } catch (thrown) {
      if (!(thrown instanceof Failed)) throw thrown;
      if (/authentication is not enabled/.test(thrown.fault.why)) {
        log.warn("the fleet's engine has no users: nobody has to sign in", { server: server.url });
        return undefined;
      }
      // Of what is to be done with the token, nothing is done.
      const failed = new Failed(server.url, { ...thrown.fault, mayBeDone: false, signIn: false });
      if (!failed.fault.again) refusal = { thrown: failed, at: now() };
      throw failed;
    }
  };

  return {
    isNeeded: user !== undefined,
    current(server, silenceMs) {
      const who = user?.();
      if (who === undefined) return Promise.resolve(undefined);
      if (held) return held.token;
      const made: SignIn = { token: signIn(server, silenceMs, who) };
      held = made;
      made.token.then(
        (value) => {
          made.value = value;
        },
        () => {
          if (held === made) held = undefined;
        },
      );
      return made.token;
    },
    drop(token) {
      if (held?.value === token) held = undefined;
    },
  };
}

/** What a majority told, to see that the engine was restored or replaced. */
export interface History {
  /** To be taken before a question. */
  mark(): Moment | undefined;
  /** Takes the answer, and answers its moment. */
  learn(mark: Moment | undefined, answer: Fields): Moment;
  readonly newest: Moment | undefined;
}

function createHistory(): History {
  let newest: Moment | undefined;
  return {
    mark: () => newest,
    learn(mark, answer) {
      const at = momentOf(answer) ?? { cluster: '', term: 0, revision: 0 };
      // An answer may be older than what was learned while it was on its way.
      if (isOfHistory(at, newest)) newest = at;
      else if (mark === newest) newest = at;
      return at;
    },
    get newest() {
      return newest;
    },
  };
}

/** Whether a moment can come after another one: neither another cluster's, nor of an earlier term or revision. */
export function isOfHistory(at: Moment, former: Moment | undefined): boolean {
  if (former === undefined) return true;
  return at.cluster === former.cluster && at.term >= former.term && at.revision >= former.revision;
}

const CLOCK_SAMPLES = 5;
const CLOCK_EVERY_MS = 1000;

/** Compares the clock here with the one of the servers' answers, whose header has whole seconds. */
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
