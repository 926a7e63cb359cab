import { lookup } from 'node:dns';
import { Agent, type ClientRequest, request } from 'node:http';
import { Agent as SecureAgent, request as secureRequest } from 'node:https';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import type { RequestHandler } from 'express';
import { HttpError, systemCode } from '../../../http/errors';
import type { SignedNotification } from './notification';

/** Private, shared, link-local, benchmark, relay, multicast and reserved networks: nothing there is on the internet. */
const NOT_PUBLIC = blockList('ipv4', [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
]);

/**
 * The global unicast addresses. Outside of them are the unique local, link-local, site-local, discard
 * and multicast networks, and the forms that hold an IPv4 address: compatible, translated and NAT64.
 */
const GLOBAL_IPV6 = blockList('ipv6', [['2000::', 3]]);
/** Protocol assignments (Teredo, benchmarks, ORCHID) and 6to4. Documentation networks lead nowhere, so they may stay. */
const NOT_PUBLIC_IPV6 = blockList('ipv6', [
  ['2001::', 23],
  ['2002::', 16],
]);
const IPV4 = blockList('ipv4', [['0.0.0.0', 0]]);
const LOOPBACK = blockList('ipv4', [['127.0.0.0', 8]]);
const LOOPBACK_IPV6 = blockList('ipv6', [['::1', 128]]);

function blockList(family: 'ipv4' | 'ipv6', networks: readonly (readonly [string, number])[]): BlockList {
  const list = new BlockList();
  for (const [network, prefix] of networks) list.addSubnet(network, prefix, family);
  return list;
}

type Reach = 'loopback' | 'public' | 'not_public';

/** Where an IP address leads. An IPv4-mapped one leads where the IPv4 address in it does: the lists of IPv4 have it, too. */
function reachOf(address: string): Reach {
  const isIn = (list: BlockList) => list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
  if (isIn(LOOPBACK) || isIn(LOOPBACK_IPV6)) return 'loopback';
  const isPublic = isIn(IPV4) ? !isIn(NOT_PUBLIC) : isIn(GLOBAL_IPV6) && !isIn(NOT_PUBLIC_IPV6);
  return isPublic ? 'public' : 'not_public';
}

const MAX_URL_LENGTH = 2000;
const SWITCH = 'EMULATOR_ALLOW_HTTP_WEBHOOKS=true';

/** The addresses that may be called: without `allowHttp`, https on the internet, and anything on this machine. */
export interface ReceiverRules {
  readonly allowHttp: boolean;
}

/** Whether an IP address may be called with this protocol (`http:`, `https:`). */
export function mayCall(address: string, protocol: string, { allowHttp }: ReceiverRules): boolean {
  if (allowHttp) return true;
  const reach = reachOf(address);
  return reach === 'loopback' || (reach === 'public' && protocol === 'https:');
}

/** All faults. A name is not looked up: it may exist later, and is checked at each connection. */
export function receiverUrlFaults(text: string, rules: ReceiverRules): string[] {
  if (text.length > MAX_URL_LENGTH) return [`is longer than ${MAX_URL_LENGTH} characters`];
  // The URL parser would drop line breaks, tabs and spaces around the address without an error.
  if (!URL.canParse(text) || !/^[\x21-\x7e]+$/.test(text)) return ['must be an absolute https address'];
  const { protocol, hostname, username, password } = new URL(text);
  const faults: string[] = [];
  if (username !== '' || password !== '') {
    faults.push('must not hold a user name or password: the token is in the Authorization header');
  }
  if (protocol !== 'https:' && protocol !== 'http:') return [...faults, 'must be an https address'];
  const host = hostname.replace(/^\[|\]$/g, '');
  if (protocol === 'http:' && !rules.allowHttp && !isThisMachine(host)) {
    faults.push(`must be an https address; http is for loopback, or for every host with ${SWITCH}`);
  } else if (isIP(host) !== 0 && !mayCall(host, protocol, rules)) {
    faults.push(`must not be an address of a private network, unless ${SWITCH} is set`);
  }
  return faults;
}

function isThisMachine(host: string): boolean {
  if (isIP(host) !== 0) return reachOf(host) === 'loopback';
  return host === 'localhost' || host.endsWith('.localhost');
}

export type Answer = { readonly status: number } | { readonly failure: string };

/** The user agent of every webhook call, which no client can choose. */
const WEBHOOK_AGENT = 'packager-drm-emulator-webhook';
export const FETCH_AGENT = 'packager-drm-emulator-fetch';

/** Refuses webhooks and fetches of emulators: clients choose the address, and no credential is asked for. */
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
  readonly #plain = new Agent(AGENT);
  readonly #secure = new SecureAgent(AGENT);

  constructor(private readonly settings: ReceiverRules & { readonly timeoutMs: number }) {}

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
    const lookup = lookupWithin(protocol, this.settings);
    const outgoing = open(url, { method: 'POST', headers, agent, lookup });
    const answer = answerOf(outgoing, this.settings.timeoutMs);
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

/** Keeps only addresses that may be called, so that no name leads into a private network. */
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
