import { lookup } from 'node:dns';
import { Agent, type ClientRequest, request } from 'node:http';
import { Agent as SecureAgent, request as secureRequest } from 'node:https';
import type { LookupFunction } from 'node:net';
import type { RequestHandler } from 'express';
import { HttpError, systemCode } from '../../../http/errors';
import type { SignedNotification } from './notification';
import { mayCall, type ReceiverRules } from './receiver-address';

/** How a try to deliver ended: the receiver's status, or what kept it from answering. */
export type Answer = { readonly status: number } | { readonly failure: string };

/** What every webhook call says of its sender. Who registers a webhook has no say in it. */
const WEBHOOK_AGENT = 'packager-drm-emulator-webhook';
/** The same for a file that is fetched from an address that a client gave. */
export const FETCH_AGENT = 'packager-drm-emulator-fetch';

/**
 * Refuses webhook calls and fetches of any emulator: a client that may register a webhook, or have a file fetched, chooses
 * where that goes, and what asks for no credential would obey it.
 */
export const refuseWebhooks: RequestHandler = (request, _response, next) => {
  const agent = request.get('user-agent') ?? '';
  if (agent.startsWith(WEBHOOK_AGENT)) {
    const description = 'A webhook may not be sent here. Give it the address of a receiver of your own.';
    throw new HttpError(403, { code: 'webhook_refused', description });
  }
  if (agent.startsWith(FETCH_AGENT)) {
    const description = 'No file is fetched from here. Give an address of your own.';
    throw new HttpError(403, { code: 'fetch_refused', description });
  }
  next();
};

const MAX_ANSWER_BYTES = 16_384;
/** Shorter than receivers keep an idle connection, so that nothing is sent into a closing one. */
const AGENT = { keepAlive: true, timeout: 1_000, noDelay: true };

/** Calls receivers over kept-alive connections. A redirect is an answer like any other. */
export class ReceiverCalls {
  readonly #settings: ReceiverRules & { readonly timeoutMs: number };
  readonly #plain = new Agent(AGENT);
  readonly #secure = new SecureAgent(AGENT);

  /** @param settings with the time that a whole call may take. */
  constructor(settings: ReceiverRules & { readonly timeoutMs: number }) {
    this.#settings = settings;
  }

  /** POSTs a notification. The answer never rejects; its status decides, even when the rest of it never comes. */
  post(url: string, { body, token }: SignedNotification) {
    const { protocol } = new URL(url);
    const [open, agent] = protocol === 'https:' ? [secureRequest, this.#secure] : [request, this.#plain];
    const headers = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      authorization: `Bearer ${token}`,
      'user-agent': WEBHOOK_AGENT,
    };
    const lookup = lookupWithin(protocol, this.#settings);
    const outgoing = open(url, { method: 'POST', headers, agent, lookup });
    const answer = answerOf(outgoing, this.#settings.timeoutMs);
    outgoing.end(body);
    return { answer, cut: () => void outgoing.destroy() };
  }

  close(): void {
    this.#plain.destroy();
    this.#secure.destroy();
  }
}

function answerOf(outgoing: ClientRequest, timeoutMs: number): Promise<Answer> {
  return new Promise((resolve) => {
    let answer: Answer | undefined;
    // In real time: an emulated hour that passes at once must not fail a receiver that is about to answer.
    const timer = setTimeout(() => {
      answer ??= { failure: 'timeout' };
      outgoing.destroy();
    }, timeoutMs);
    outgoing.on('response', (response) => {
      answer ??= { status: response.statusCode ?? 0 };
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > MAX_ANSWER_BYTES) outgoing.destroy();
      });
      response.on('error', () => undefined);
    });
    outgoing.on('error', (thrown) => {
      answer ??= { failure: failureOf(systemCode(thrown)) };
    });
    // Only now is the connection free for the next call.
    outgoing.on('close', () => {
      clearTimeout(timer);
      resolve(answer ?? { failure: 'connection_reset' });
    });
  });
}

/** Looks a name up and keeps the addresses that may be called: the name alone says nothing of where it leads. */
export function lookupWithin(protocol: string, rules: ReceiverRules): LookupFunction {
  return (hostname, options, done) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error) return done(error, []);
      const allowed = found.filter(({ address }) => mayCall(address, protocol, rules));
      const [first] = allowed;
      if (!first) return done(Object.assign(new Error('address not allowed'), { code: NOT_ALLOWED }), []);
      if (options.all) return done(null, allowed);
      return done(null, first.address, first.family);
    });
  };
}

const NOT_ALLOWED = 'address_not_allowed';

const FAILURES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection_refused',
  ECONNRESET: 'connection_reset',
  EPIPE: 'connection_reset',
  ENOTFOUND: 'host_not_found',
  EAI_AGAIN: 'host_not_found',
  [NOT_ALLOWED]: NOT_ALLOWED,
};

/** Why a connection or a call failed, by the code of the system's error. */
export function failureOf(code = 'unknown'): string {
  const known = FAILURES[code];
  if (known) return known;
  if (code.startsWith('HPE_')) return 'not_http';
  if (/CERT|TLS|SSL|EPROTO|SELF_SIGNED/.test(code)) return 'tls_failed';
  return 'network_failure';
}
