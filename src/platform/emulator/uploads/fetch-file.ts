import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { request as secureRequest } from 'node:https';
import { describeThrown, HttpError, systemCode } from '../../../http/errors';
import type { Log } from '../../../http/log';
import {
  FETCH_AGENT,
  failureOf,
  lookupWithin,
  type ReceiverRules,
  receiverUrlFaults,
} from '../webhooks/receiver';
import type { FileStore } from './file-store';
import type { StoredFile } from './uploads';

/** The result of a fetch; `problem` is a sentence for a person. */
export type Fetched =
  | { readonly ok: true; readonly file: StoredFile }
  | { readonly ok: false; readonly problem: string };

export interface FetchSettings extends ReceiverRules {
  /** How long nothing may come, in milliseconds of real time. */
  readonly idleMs: number;
}

interface FetchTask {
  readonly store: FileStore;
  readonly log: Log;
  readonly maxBytes: number;
  /** Ends the fetch; nothing is kept then. */
  readonly signal: AbortSignal;
  readonly settings: FetchSettings;
}

const MAX_REDIRECTS = 3;
const REDIRECTS = [301, 302, 303, 307, 308];

class FetchFailure extends Error {}

/** GETs a file, from addresses that a webhook may call; this also applies to each redirect. Never rejects. */
export async function fetchFile(address: string, given: FetchTask): Promise<Fetched> {
  const silence = new AbortController();
  const task = { ...given, signal: AbortSignal.any([given.signal, silence.signal]) };
  try {
    const answer = await follow(address, task, silence);
    return { ok: true, file: await keep(answer, task) };
  } catch (thrown) {
    if (given.signal.aborted) return { ok: false, problem: 'The fetch was ended.' };
    return { ok: false, problem: problemOf(silence.signal.aborted ? silence.signal.reason : thrown, task) };
  }
}

function problemOf(thrown: unknown, { log }: FetchTask): string {
  if (thrown instanceof FetchFailure) return thrown.message;
  if (thrown instanceof HttpError) {
    const [problem] = thrown.problems;
    const isOfTheFile = thrown.status === 413 || thrown.status === 507;
    return isOfTheFile && problem ? problem.description : 'The connection ended before the file had come.';
  }
  log.error('fetched file not kept', { cause: describeThrown(thrown) });
  return "The file could not be kept. The emulator's log has the cause.";
}

/** The answer that holds the file, behind the redirects. @param silence aborted when nothing comes for too long. */
async function follow(address: string, task: FetchTask, silence: AbortController): Promise<IncomingMessage> {
  let url = address;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const subject = redirects === 0 ? 'The address' : 'The address that it is redirected to';
    const faults = receiverUrlFaults(url, task.settings);
    if (faults.length > 0) throw new FetchFailure(`${subject} ${faults.join(', and ')}.`);
    const answer = await get(new URL(url), task, silence);
    const { statusCode = 0, headers } = answer;
    if (statusCode === 200) return answer;
    answer.destroy();
    if (!REDIRECTS.includes(statusCode)) throw new FetchFailure(`${subject} answered ${statusCode}.`);
    if (headers.location === undefined || !URL.canParse(headers.location, url))
      throw new FetchFailure(`${subject} answered ${statusCode} without a location to go to.`);
    url = new URL(headers.location, url).href;
  }
  throw new FetchFailure(`The address is redirected more than ${MAX_REDIRECTS} times.`);
}

async function get(
  url: URL,
  { settings, signal }: FetchTask,
  silence: AbortController,
): Promise<IncomingMessage> {
  const outgoing = (url.protocol === 'https:' ? secureRequest : request)(url, {
    agent: false,
    headers: { 'user-agent': FETCH_AGENT, accept: '*/*', 'accept-encoding': 'identity' },
    lookup: lookupWithin(url.protocol, settings),
    signal,
    timeout: settings.idleMs,
  });
  outgoing.on('timeout', () => {
    silence.abort(new FetchFailure(`Nothing came from the address for ${settings.idleMs / 1000} s.`));
  });
  // The body reports failures after the start of the answer.
  outgoing.on('error', () => undefined).end();
  try {
    const [answer] = await once(outgoing, 'response');
    return answer;
  } catch (thrown) {
    const failure = failureOf(systemCode(thrown)).replaceAll('_', ' ');
    throw new FetchFailure(`The file could not be fetched: ${failure}.`);
  }
}

async function keep(answer: IncomingMessage, { store, maxBytes, signal }: FetchTask): Promise<StoredFile> {
  const {
    'content-encoding': encoding = 'identity',
    'content-length': length,
    'content-type': declaredType,
  } = answer.headers;
  answer.on('error', () => undefined);
  try {
    if (encoding !== 'identity')
      throw new FetchFailure('The address sends the file compressed, although it was asked not to.');
    const announced = length === undefined ? undefined : Number(length);
    const received = await store.receive(answer, { maxBytes, length: announced }, signal);
    if (received.size > 0 && !signal.aborted) return { ...received, declaredType };
    await store.remove(received);
    throw new FetchFailure('The address answered with an empty file.');
  } finally {
    answer.destroy();
  }
}
