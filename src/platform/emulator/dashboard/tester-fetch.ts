import type { RequestListener } from 'node:http';
import { isIP } from 'node:net';
import { createGet } from '../../../http/get';
import { type Get, GetFailed, whyNoAnswer } from '../../../http/get-request';
import type { GivenKeyFile } from '../../../verify/key-files';
import { mayCall, type ReceiverRules } from '../webhooks/receiver-address';
import { FETCH_AGENT, lookupWithin } from '../webhooks/receiver-call';
import { callPlatform } from './call-platform';
import { invalid } from './forms';

interface TesterGetOptions {
  readonly rules: ReceiverRules;
  /** Where the client has reached the emulator: its own addresses are called within the process. */
  readonly origin: string;
  readonly platform: RequestListener;
}

/** Private networks are the same for all protocols; a public stream may be fetched by http, too. */
const PROTOCOL = 'https:';

const REFUSED = 'ADDRESS_REFUSED';
const WHY =
  'it is an address of a private network, which the emulator does not call unless EMULATOR_ALLOW_HTTP_WEBHOOKS=true is set';

/** Makes the GETs of a stream test: they go where webhooks may go, and to the emulator itself. */
export async function createTesterGet({ rules, origin, platform }: TesterGetOptions) {
  const { get, close } = createGet({ userAgent: FETCH_AGENT, lookup: lookupWithin(PROTOCOL, rules) });
  const own = await callPlatform(platform);
  return {
    get: (async (request) => {
      const url = new URL(request.url);
      // The name by which a client calls it, through a proxy or a container's port, may lead elsewhere from here.
      if (url.origin === new URL(origin).origin) {
        const headers = { ...request.headers, host: url.host, 'user-agent': FETCH_AGENT };
        return own.call(`${url.pathname}${url.search}`, { ...request, headers });
      }
      // A name is checked against the rules when it is looked up; an address is not looked up.
      const host = url.hostname.replace(/^\[|\]$/g, '');
      if (isIP(host) !== 0 && !mayCall(host, PROTOCOL, rules)) throw new GetFailed(REFUSED, WHY);
      try {
        return await get(request);
      } catch (thrown) {
        if (thrown instanceof GetFailed && thrown.causeCode === 'address_not_allowed')
          throw new GetFailed(REFUSED, WHY);
        throw thrown;
      }
    }) satisfies Get,
    close() {
      close();
      own.close();
    },
  };
}

interface Sidecar {
  readonly address: string;
  readonly streamId: string;
  readonly apiKey: string;
}

/** The sidecar writes no larger key files. */
const MAX_BYTES = 64 * 1024;
const TIMEOUT_MS = 10_000;

/** Reads the key file of a stream from a sidecar. No redirect is followed with its API key. @throws HttpError 400 */
export async function fetchKeyFile(
  { address, streamId, apiKey }: Sidecar,
  { get, signal }: { readonly get: Get; readonly signal: AbortSignal },
): Promise<GivenKeyFile> {
  if (!isWebAddress(address))
    throw invalid('The address of the sidecar must be a whole one, which begins with https:// or http://.');
  if (streamId === '') throw invalid('Give the stream id by which the sidecar has the key file.');
  if (!/^[\x21-\x7e]+$/.test(apiKey)) throw invalid('Give the API key of the sidecar: printable ASCII.');
  const url = new URL(`api/keyfile/${encodeURIComponent(streamId)}`, address.replace(/\/?$/, '/')).href;
  const headers = { 'x-api-key': apiKey, accept: 'text/plain' };
  const limits = { maxBytes: MAX_BYTES, timeoutMs: TIMEOUT_MS, signal };
  const answer = await get({ url, headers, ...limits }).catch((thrown: unknown) => {
    if (!(thrown instanceof GetFailed)) throw thrown;
    const remedies = {
      untrusted: 'give the emulator its authority by NODE_EXTRA_CA_CERTS',
      tls: 'look at the TLS settings of the sidecar',
    };
    throw invalid(`The sidecar does not answer: ${thrown.why ?? whyNoAnswer(thrown.causeCode, remedies)}.`);
  });
  const { status, body, headers: answered } = answer;
  const reason = REFUSALS[status]?.replace('{id}', streamId);
  if (reason !== undefined) throw invalid(`${reason} (${status}).`);
  if (status !== 200 || !/^text\/plain\b/.test(answered['content-type'] ?? ''))
    throw invalid(`The service at this address is no sidecar: it answered ${status}.`);
  return { name: `${streamId}.key`, text: body.toString() };
}

const REFUSALS: Readonly<Record<number, string>> = {
  401: 'The sidecar refuses the API key',
  403: 'The API key may not read this key file',
  404: 'The sidecar has no key file for the stream {id}',
};

export function isWebAddress(address: string): boolean {
  return URL.canParse(address) && /^https?:$/.test(new URL(address).protocol);
}
