import type { RequestListener } from 'node:http';
import { isIP } from 'node:net';
import type { Express, RequestHandler } from 'express';
import * as z from 'zod';
import { looksLikeKeyFile } from '../../../drm/check/key-file-lines';
import { onlyMethods } from '../../../http/app';
import { HttpError } from '../../../http/errors';
import { createGet } from '../../../http/get';
import { type Get, GetFailed, whyNoAnswer } from '../../../http/get-request';
import { type Html, html } from '../../../http/html';
import { openTester } from '../../../verify/fenced-tester';
import type { Limits } from '../../../verify/fetches';
import type { GivenKeyFile } from '../../../verify/key-files';
import { originOf } from '../addresses';
import type { EmulatorContext } from '../context';
import { WebAddress } from '../resources/fields';
import { FETCH_AGENT, lookupWithin, mayCall, type ReceiverRules } from '../webhooks/receiver';
import { callPlatform } from './call-platform';
import { type Asked, formCard, invalid, mountPage, type PageRequest } from './forms';
import { FormBody, LongAddress, Secret, SecretLines } from './inputs';
import { layout } from './layout';
import { reportView } from './tester-report';

const PATH = '/dashboard/stream-tester';

/** Far more than a test needs, and less than the command line: anybody on the machine may open the page. */
const LIMITS: Partial<Limits> = {
  totalBytes: 128 * 1024 * 1024,
  segmentBytes: 32 * 1024 * 1024,
  requests: 200,
  totalMs: 60_000,
  renditions: 20,
  periods: 10,
};
/** For all clients together. */
const MAX_TESTS = 3;

const STREAM = {
  url: {
    schema: LongAddress,
    required: true,
    says: 'Such as https://cdn.example.com/live/news/manifest.mpd',
  },
  key_file: {
    schema: SecretLines,
    says: 'Paste its lines, which are not kept, to have the stream decrypted.',
  },
} as const;
const MORE_KEYS = {
  sidecar: { schema: WebAddress, says: 'It has the key file of the stream.' },
  stream_id: { schema: z.string(), says: 'Stream id' },
  api_key: { schema: Secret, says: 'A key with read rights is enough.' },
  former: {
    schema: SecretLines,
    says: 'Paste the key file that the stream had before: the test then reports whether the packager still uses it.',
  },
} as const;

/** The stream tester: it fetches a stream as any player does, decrypts it and plays it. No key is kept or shown. */
export function mountStreamTester(app: Express, context: EmulatorContext, platform: RequestListener): void {
  let running = 0;
  const addressIn = ({ query: { url } }: Pick<Asked, 'query'>) => (typeof url === 'string' ? { url } : {});
  app.get('/verify', (request, response) => {
    const query = new URLSearchParams(addressIn(request)).toString();
    response.redirect(302, `${PATH}${query && `?${query}`}`);
  });
  app.all('/verify', onlyMethods('GET'));
  app.use(PATH, playerHeaders);
  const emptyForm = (asked: Asked) =>
    page(asked, new FormBody(addressIn(asked)), html`<div id="report"></div>`);
  mountPage(app, PATH, emptyForm, {
    form: 'tester',
    async change(request, sent) {
      if (running >= MAX_TESTS) throw tooManyTests();
      running += 1;
      try {
        return page({ request, query: {} }, sent, await test(context, platform, request, sent));
      } finally {
        running -= 1;
      }
    },
  });
}

/** The stream may come from anywhere. */
const playerHeaders: RequestHandler = (_request, response, next) => {
  const policy = String(response.get('content-security-policy'));
  const anywhere = policy.replace("connect-src 'self'", "connect-src 'self' http: https:");
  response.set('content-security-policy', `${anywhere};media-src blob: http: https:`);
  next();
};

function tooManyTests(): HttpError {
  const description = `${MAX_TESTS} tests are under way. Wait until one of them is over.`;
  return new HttpError(503, { code: 'tests_running', description }, { headers: { 'retry-after': '5' } });
}

/** @throws HttpError 400 when the form can't be used. */
async function test(
  context: EmulatorContext,
  platform: RequestListener,
  request: PageRequest,
  sent: FormBody,
): Promise<Html> {
  const [address = '', sidecar = '', streamId = '', apiKey = ''] = [
    'url',
    'sidecar',
    'stream_id',
    'api_key',
  ].map((name) => sent.text(name).trim());
  if (address === '') throw invalid('Give the address of a DASH manifest (.mpd) or an HLS playlist (.m3u8).');
  if (!LongAddress.safeParse(address).success)
    throw invalid(`The address has more than ${LongAddress.maxLength} characters.`);
  if (!isWebAddress(address))
    throw invalid('The address must be a whole one, which begins with https:// or http://.');
  const own = pasted(sent, 'key_file', 'Key file');
  const formerKeyFiles = pasted(sent, 'former', 'Former key file');
  const origin = originOf(request);
  const rules = { allowHttp: context.seeds.allowHttpWebhooks };
  const { get, close } = await createTesterGet({ rules, origin, platform });
  const tester = openTester(get, { fence: context.fence, now: context.wallClock });
  const stopped = new AbortController();
  request.res?.on('close', () => stopped.abort());
  const { signal } = stopped;
  try {
    const of = { address: sidecar, streamId, apiKey };
    const keyFiles = sidecar === '' ? own : [...own, await fetchKeyFile(of, { get, signal })];
    const { report } = await tester.test(address, { keyFiles, formerKeyFiles, limits: LIMITS, signal });
    const tested = context.wallClock();
    return reportView({ report, address, tested, clearKeyUrl: `${origin}/keyprovider/clearkey` });
  } finally {
    tester.close();
    close();
  }
}

function pasted(sent: FormBody, name: string, label: string): GivenKeyFile[] {
  const text = sent.text(name);
  if (text.trim() === '') return [];
  // A form drops the line break at the end, without which a key file counts as cut off.
  const whole = text.endsWith('\n') ? text : `${text}\n`;
  if (looksLikeKeyFile(whole)) return [{ name: `${name}.key`, text: whole }];
  throw invalid(
    `${label}: what was pasted has no line "name: value" as key files have. Paste all lines of the key file.`,
  );
}

/** The page never holds a key: what was pasted is not sent back. With script, the form stays as it is filled in. */
function page(asked: Asked, filled: FormBody, report: Html): string {
  const form = formCard(asked, 'The stream', {
    id: 'tester',
    path: PATH,
    submit: 'Test',
    fields: STREAM,
    filled,
    more: { 'Key file from the sidecar, former key file': MORE_KEYS },
    buttons: html`<span class="muted" id="progress" role="status"></span>`,
    attributes: html` class="form" data-tester`,
  });
  return layout({
    asked,
    title: 'Stream tester',
    section: PATH,
    intro:
      'Fetches a stream as a player does, decrypts it with the key file, and reports what is wrong with it. It also plays the stream.',
    content: html`${form}${report}
      <script src="/embed/channel.js" defer></script><script src="/embed/page.js" defer></script>`,
    scripts: ['stream-tester'],
  });
}

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
async function createTesterGet({ rules, origin, platform }: TesterGetOptions) {
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
async function fetchKeyFile(
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

function isWebAddress(address: string): boolean {
  return URL.canParse(address) && /^https?:$/.test(new URL(address).protocol);
}
