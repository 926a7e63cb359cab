import type { RequestListener } from 'node:http';
import { isIP } from 'node:net';
import { createGet } from '../../../../http/get';
import { type Get, type GetAnswer, GetFailed, type GetRequest } from '../../../../http/get-request';
import { mayCall, type ReceiverRules } from '../../webhooks/receiver-address';
import { FETCH_AGENT, lookupWithin } from '../../webhooks/receiver-call';
import { callPlatform } from '../call-platform';

interface TesterGetOptions {
  readonly rules: ReceiverRules;
  /** Where whoever asks has reached the emulator: its own addresses are called within the process. */
  readonly origin: string;
  readonly platform: RequestListener;
}

/** Private networks are the same for all protocols; a stream that is public may be fetched by http, too. */
const PROTOCOL = 'https:';

const REFUSED = 'ADDRESS_REFUSED';
const WHY =
  'it is an address of a private network, which the emulator does not call unless EMULATOR_ALLOW_HTTP_WEBHOOKS=true is set';

/** Makes the GETs of a stream test: they go where webhooks may go, and to the emulator itself. */
export function createTesterGet({ rules, origin, platform }: TesterGetOptions): { get: Get; close(): void } {
  const { get, close } = createGet({ userAgent: FETCH_AGENT, lookup: lookupWithin(PROTOCOL, rules) });
  return {
    async get(request) {
      const url = new URL(request.url);
      if (url.origin === new URL(origin).origin) return getOwn(platform, url, request);
      // A name is looked up, and held to the rules, as it is called; an address is not looked up.
      const host = url.hostname.replace(/^\[|\]$/g, '');
      if (isIP(host) !== 0 && !mayCall(host, PROTOCOL, rules)) throw new GetFailed(REFUSED, WHY);
      try {
        return await get(request);
      } catch (thrown) {
        if (thrown instanceof GetFailed && thrown.causeCode === 'address_not_allowed')
          throw new GetFailed(REFUSED, WHY);
        throw thrown;
      }
    },
    close,
  };
}

/** The name by which a client calls the emulator, through a proxy or a container's port, may lead elsewhere from here. */
async function getOwn(
  platform: RequestListener,
  { host, pathname, search }: URL,
  { headers, maxBytes, timeoutMs, signal }: GetRequest,
): Promise<GetAnswer> {
  const deadline = AbortSignal.timeout(timeoutMs);
  const answer = await callPlatform(platform, {
    method: 'GET',
    target: `${pathname}${search}`,
    headers: { ...headers, host, 'user-agent': FETCH_AGENT },
    maxBytes,
    signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
  });
  if (answer) return answer;
  throw new GetFailed(signal?.aborted ? 'ABORT_ERR' : deadline.aborted ? 'ETIMEDOUT' : 'ECONNRESET');
}
