import { type IncomingMessage, request } from 'node:http';
import { request as secureRequest } from 'node:https';
import { describeThrown, HttpError, systemCode } from '../../../http/errors';
import type { Log } from '../../../http/log';
import { type ReceiverRules, receiverUrlFaults } from '../webhooks/receiver-address';
import { FETCH_AGENT, failureOf, lookupWithin } from '../webhooks/receiver-call';
import type { FileStore } from './file-store';
import type { StoredFile } from './upload';

/** What came of a fetch; `problem` is a sentence for a person. `ended`: by its signal or a reset, so no caller waits for it. */
export type Fetched =
  | { readonly ok: true; readonly file: StoredFile }
  | { readonly ok: false; readonly problem: string; readonly ended: boolean };

export interface FetchSettings extends ReceiverRules {
  /** How long nothing may come, in milliseconds of real time. */
  readonly idleMs: number;
}

interface FetchTask {
  readonly store: FileStore;
  readonly log: Log;
  /** The most that the file may have, in bytes. */
  readonly maxBytes: number;
  /** Ends the fetch; nothing is kept then. */
  readonly signal: AbortSignal;
  /** The header for the address itself; no address that it is redirected to gets it. */
  readonly authorization?: string | undefined;
  readonly settings: FetchSettings;
}

const MAX_REDIRECTS = 3;
const REDIRECTS = [301, 302, 303, 307, 308];

class FetchFailure extends Error {}

/**
 * Fetches a file by GET. Where it may come from is what a webhook may call, and each redirect is held to that again.
 * Never rejects.
 */
export async function fetchFile(address: string, task: FetchTask): Promise<Fetched> {
  try {
    const answer = await follow(address, task);
    return { ok: true, file: await keep(answer, task) };
  } catch (thrown) {
    const ended = task.signal.aborted;
    if (thrown instanceof FetchFailure) return { ok: false, problem: thrown.message, ended };
    task.log.error('fetched file not kept', { cause: describeThrown(thrown) });
    return { ok: false, problem: "The file could not be kept. The emulator's log has the cause.", ended };
  }
}

/** The answer that holds the file, behind the redirects. */
async function follow(address: string, task: FetchTask): Promise<IncomingMessage> {
  let url = address;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const subject = redirects === 0 ? 'The address' : 'The address that it is redirected to';
    const faults = receiverUrlFaults(url, task.settings);
    if (faults.length > 0) throw new FetchFailure(`${subject} ${faults.join(', and ')}.`);
    const answer = await get(new URL(url), redirects === 0 ? task : { ...task, authorization: undefined });
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

function get(url: URL, { settings, signal, authorization }: FetchTask): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const outgoing = (url.protocol === 'https:' ? secureRequest : request)(url, {
      agent: false,
      headers: {
        'user-agent': FETCH_AGENT,
        accept: '*/*',
        'accept-encoding': 'identity',
        ...(authorization !== undefined && { authorization }),
      },
      lookup: lookupWithin(url.protocol, settings),
      signal,
      timeout: settings.idleMs,
    });
    outgoing.on('timeout', () => outgoing.destroy(idle(settings)));
    outgoing.on('response', resolve);
    outgoing.on('error', (thrown) => {
      if (thrown instanceof FetchFailure) reject(thrown);
      else if (signal.aborted) reject(new FetchFailure(ENDED));
      else {
        const failure = failureOf(systemCode(thrown)).replaceAll('_', ' ');
        reject(new FetchFailure(`The file could not be fetched: ${failure}.`));
      }
    });
    outgoing.end();
  });
}

const ENDED = 'The fetch was ended.';

function idle({ idleMs }: FetchSettings): FetchFailure {
  return new FetchFailure(`Nothing came from the address for ${idleMs / 1000} s.`);
}

async function keep(answer: IncomingMessage, task: FetchTask): Promise<StoredFile> {
  const { 'content-encoding': encoding = 'identity', 'content-length': length } = answer.headers;
  const { store, maxBytes, signal } = task;
  let failure: FetchFailure | undefined;
  // The request ends then; why, its answer does not say.
  answer.socket.once('timeout', () => {
    failure = idle(task.settings);
  });
  answer.on('error', () => undefined);
  try {
    if (encoding !== 'identity')
      throw new FetchFailure('The address sends the file compressed, although it was asked not to.');
    const announced = length === undefined ? undefined : Number(length);
    const received = await store.receive(answer, { maxBytes, length: announced }, signal);
    if (signal.aborted || received.size === 0) {
      await store.remove(received);
      throw new FetchFailure(signal.aborted ? ENDED : 'The address answered with an empty file.');
    }
    return { ...received, declaredType: answer.headers['content-type'] };
  } catch (thrown) {
    answer.destroy();
    if (failure) throw failure;
    if (signal.aborted) throw new FetchFailure(ENDED);
    if (!(thrown instanceof HttpError)) throw thrown;
    const [problem] = thrown.problems;
    const isOfTheFile = thrown.status === 413 || thrown.status === 507;
    throw new FetchFailure(
      isOfTheFile && problem ? problem.description : 'The connection ended before the file had come.',
    );
  }
}
