import { readFileSync } from 'node:fs';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { API_KEY } from '../load';
import { BODY, pathOf } from '../sidecar';

export interface Target {
  readonly port: number;
  /** The path of the authority's certificate; undefined: plain HTTP. */
  readonly authority: string | undefined;
}

export interface Question {
  readonly path: string;
  /** The address that the connection comes from. */
  readonly from: string;
  readonly method?: 'GET' | 'POST';
  readonly body?: string;
  readonly giveUpMs?: number;
}

export interface Reply {
  readonly outcome: 'served' | 'refused' | 'timedOut';
  /** The status, or the code of the system's error. */
  readonly what: string;
  readonly ms: number;
  readonly text: string;
}

export interface Tally {
  readonly served: number;
  readonly refused: number;
  readonly timedOut: number;
  readonly longestMs: number;
  /** What was answered or went wrong, counted. */
  readonly what: Readonly<Record<string, number>>;
}

const RIGHTFUL = '127.0.0.2';
const PROBE = '127.0.0.3';
const GIVE_UP_MS = 5000;

const authorities = new Map<string, Buffer>();
function authorityAt(path: string): Buffer {
  const known = authorities.get(path) ?? readFileSync(path);
  authorities.set(path, known);
  return known;
}

/** Asks once over a connection of its own. Never rejects. */
export function ask(
  { port, authority }: Target,
  { path, from, method = 'GET', body, giveUpMs = GIVE_UP_MS }: Question,
): Promise<Reply> {
  const begun = performance.now();
  const options = {
    host: '127.0.0.1',
    port,
    path,
    method,
    localAddress: from,
    agent: false,
    headers: {
      'x-api-key': API_KEY,
      ...(body !== undefined && {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      }),
    },
  };
  return new Promise((resolve) => {
    const outgoing =
      authority === undefined
        ? httpRequest(options)
        : httpsRequest({ ...options, ca: authorityAt(authority) });
    const timer = setTimeout(() => settle('timedOut', 'no answer'), giveUpMs);
    const settle = (outcome: Reply['outcome'], what: string, text = '') => {
      clearTimeout(timer);
      resolve({ outcome, what, text, ms: performance.now() - begun });
      outgoing.destroy();
    };
    outgoing.on('error', ({ code = 'no code' }: NodeJS.ErrnoException) => settle('refused', code));
    outgoing.on('response', (answer: IncomingMessage) => {
      const { statusCode = 0 } = answer;
      let text = '';
      answer.on('data', (chunk) => {
        text += chunk;
      });
      answer.on('end', () =>
        settle(statusCode >= 200 && statusCode < 300 ? 'served' : 'refused', `${statusCode}`, text),
      );
      answer.on('error', ({ code = 'no code' }: NodeJS.ErrnoException) => settle('refused', code));
    });
    outgoing.end(body);
  });
}

/** Writes the key file that the rightful client reads, and warms the sidecar up. @throws when it does not answer. */
export async function warmUp(target: Target): Promise<void> {
  const written = await ask(target, {
    path: pathOf('rightful'),
    from: RIGHTFUL,
    method: 'POST',
    body: BODY,
  });
  if (written.outcome !== 'served') throw new Error(`the sidecar answered ${written.what} to a POST`);
  for (let count = 0; count < 100; count += 1) await readOne(target);
}

export const readOne = (target: Target) => ask(target, { path: pathOf('rightful'), from: RIGHTFUL });

export const writeOne = (target: Target, name: string) =>
  ask(target, { path: pathOf(name), from: RIGHTFUL, method: 'POST', body: BODY });

export interface Asking {
  /** Asks no more, waits for what is under way, and answers what became of all of it. */
  stop(): Promise<Tally>;
}

/** The rightful client: every 200 ms a GET, and every tenth time a POST of a new stream. */
export function startRightful(target: Target): Asking {
  return every(200, (count) => {
    if (count % 10 !== 5) return readOne(target);
    return writeOne(target, `new-${count}`);
  });
}

/** The probe: every 500 ms `/readyz`. */
export function startProbe(target: Target): Asking {
  return every(500, () => ask(target, { path: '/readyz', from: PROBE }));
}

function every(ms: number, askOnce: (count: number) => Promise<Reply>): Asking {
  const replies: Promise<Reply>[] = [];
  const timer = setInterval(() => replies.push(askOnce(replies.length)), ms);
  return {
    async stop() {
      clearInterval(timer);
      return tally(await Promise.all(replies));
    },
  };
}

function tally(replies: readonly Reply[]): Tally {
  const what: Record<string, number> = {};
  for (const reply of replies) what[reply.what] = (what[reply.what] ?? 0) + 1;
  const count = (outcome: Reply['outcome']) => replies.filter((reply) => reply.outcome === outcome).length;
  return {
    served: count('served'),
    refused: count('refused'),
    timedOut: count('timedOut'),
    longestMs: Math.round(Math.max(0, ...replies.map(({ ms }) => ms))),
    what,
  };
}
