import { fork } from 'node:child_process';
import { join } from 'node:path';
import { followed, start } from '../processes';
import { BODY, pathOf } from '../sidecar';
import type { Deeds, Order } from './attacker';
import type { Attack, UpstreamMode } from './kinds';
import { ask, type Reply } from './rightful';
import type { Victim } from './victim';
import { sleep, within } from './waiting';

/** An attack under way. */
export interface Assault {
  /** Resolves when the attack has been done as it is meant; it goes on until its end. */
  readonly over: Promise<void>;
  /** What the attackers say of it. */
  tell(): Promise<Record<string, unknown>>;
  /** Takes every attacker and connection away. */
  end(): Promise<void>;
}

/** How long an assault may go on when it is not ended. */
const SPARE_SECONDS = 60;

export function beginAssault(victim: Victim, attack: Attack, seconds: number): Assault {
  return attack.upstream ? askForKeys(victim) : connectMany(victim, attack, seconds);
}

function connectMany({ port }: Victim, { parts }: Attack, seconds: number): Assault {
  const child = followed(fork(join(__dirname, 'attacker.js'), [], { env: { PATH: process.env.PATH } }));
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  // An interrupt may have ended it before it is told or asked something.
  child.on('error', () => undefined);
  const order: Order = { port, parts, mostSeconds: seconds + SPARE_SECONDS };
  child.send(order);
  return {
    over: sleep(seconds * 1000),
    async tell() {
      if (!child.connected) return { attackers: 'gone' };
      let deeds: Deeds | undefined;
      const answer = new Promise<void>((resolve) => {
        child.once('message', (told: Deeds) => {
          deeds = told;
          resolve();
        });
      });
      child.send('tell');
      await within(5000, Promise.race([answer, gone]));
      return deeds ? { ...deeds } : { attackers: 'too busy to tell' };
    },
    async end() {
      child.kill('SIGKILL');
      await gone;
    },
  };
}

const POSTS = 8;
/** As many as the sidecar takes at a time. */
const BATCHES = 4;
const CLIENT = '127.0.0.2';
const GIVE_UP_MS = 20_000;
const FROM_PROVIDER = { client: 'bench', clientApiKey: 'bench-client-api-key', contentId: 'bench' };

/** Asks for key files whose keys come from the hostile upstream: single ones, then batches, then one that needs none. */
function askForKeys(victim: Victim): Assault {
  const post = (path: string, body: unknown) =>
    ask(victim, {
      path,
      from: CLIENT,
      method: 'POST',
      body: JSON.stringify(body),
      giveUpMs: GIVE_UP_MS,
    });
  const batch = (streamid: string, request: object) =>
    post('/api/keyfiles', { streams: [{ streamid, ...request }] });
  let singles: Reply[] = [];
  let batches: Reply[] = [];
  let afterwards: Reply | undefined;
  const run = async () => {
    singles = await Promise.all(count(POSTS, (index) => post(pathOf(`asked-${index}`), FROM_PROVIDER)));
    batches = await Promise.all(count(BATCHES, (index) => batch(`many-${index}`, FROM_PROVIDER)));
    afterwards = await batch('afterwards', JSON.parse(BODY));
  };
  return {
    over: run(),
    tell: async () => ({
      singles: summary(singles),
      batches: summary(batches),
      batchAfterwards: afterwards && `${afterwards.what} in ${Math.round(afterwards.ms)} ms`,
    }),
    // Each call has its own end, and the upstream goes with it.
    end: async () => undefined,
  };
}

const count = <T>(times: number, make: (index: number) => T): T[] =>
  Array.from({ length: times }, (_none, index) => make(index));

function summary(replies: readonly Reply[]): string {
  const answered = replies.filter(({ outcome, what }) => outcome !== 'timedOut' && /^\d/.test(what)).length;
  const what = [...new Set(replies.map((reply) => reply.what))].join(', ');
  const longest = Math.round(Math.max(0, ...replies.map(({ ms }) => ms)));
  return `${answered} of ${replies.length} answered (${what}), longest ${longest} ms`;
}

/** Starts a hostile upstream and answers the variables that point a sidecar at it. */
export async function startUpstream(mode: UpstreamMode) {
  const upstream = await start('bench/attacks/hostile-upstream.js', { BENCH_MODE: mode }, '/ready');
  const env = {
    PACKAGERDRMAPI_GRANDCENTRALURL: `${upstream.url}/clients`,
    PACKAGERDRMAPI_KEYPROVIDERURL: `${upstream.url}/keys`,
    PACKAGERDRMAPI_UPSTREAMTIMEOUTMS: '2000',
  };
  return { env, stop: () => upstream.stop() };
}
