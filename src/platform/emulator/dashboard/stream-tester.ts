import type { RequestListener } from 'node:http';
import { isIP } from 'node:net';
import type { Express } from 'express';
import * as z from 'zod';
import { parseUuid } from '../../../drm/bytes';
import { looksLikeKeyFile } from '../../../drm/check/key-file-text';
import { COMMON_SYSTEM_ID } from '../../../drm/pssh';
import { routeAt } from '../../../http/app';
import { HttpError } from '../../../http/errors';
import { createGet } from '../../../http/get';
import { type Get, GetFailed, whyNoAnswer } from '../../../http/get-request';
import { type Content, type Html, html } from '../../../http/html';
import type { Limits } from '../../../verify/fetches';
import type { GivenKeyFile } from '../../../verify/key-files';
import type { JudgementState } from '../../../verify/media/judgement';
import { openTester } from '../../../verify/sandboxed-tester';
import type {
  RenditionJudgement,
  RenditionReport,
  StreamReport,
  SystemReport,
} from '../../../verify/stream-report';
import { originOf } from '../addresses';
import type { EmulatorContext } from '../context';
import { WebAddress } from '../resources/fields';
import { FETCH_AGENT, lookupWithin, mayCall } from '../webhooks/receiver';
import { callPlatform } from './call-platform';
import {
  address as addressText,
  breakable,
  bytes,
  card,
  counted,
  facts,
  NOTHING,
  pill,
  section,
  table,
  time,
  type Words,
} from './elements';
import { type Asked, formCard, invalid, type PageRequest } from './forms';
import { FormBody, LongAddress, Secret, SecretLines } from './inputs';
import { layout, mountPage, type Page } from './layout';

const PATH = '/dashboard/stream-tester';

/** Far more than a test needs, and less than the command line: every user of the machine may open the page. */
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
  routeAt(app, '/verify').get((request, response) => {
    const query = new URLSearchParams(addressIn(request)).toString();
    response.redirect(302, `${PATH}${query && `?${query}`}`);
  });
  app.use(PATH, (_request, response, next) => {
    // The stream may come from anywhere.
    const policy = String(response.get('content-security-policy'));
    const anywhere = policy.replace("connect-src 'self'", "connect-src 'self' http: https:");
    response.set('content-security-policy', `${anywhere};media-src blob: http: https:`);
    next();
  });
  const none = html`<div id="report"></div>`;
  mountPage(app, PATH, (asked) => page(asked, new FormBody(addressIn(asked)), none), {
    form: 'tester',
    async change(request, sent) {
      if (running >= MAX_TESTS) {
        const description = `${MAX_TESTS} tests are under way. Wait until one of them is over.`;
        throw new HttpError(503, { code: 'tests_running', description }, { headers: { 'retry-after': '5' } });
      }
      running += 1;
      try {
        const asked = { request, query: {} };
        return layout(asked, page(asked, sent, await test(context, platform, request, sent)));
      } finally {
        running -= 1;
      }
    },
  });
}

async function test(
  context: EmulatorContext,
  platform: RequestListener,
  request: PageRequest,
  sent: FormBody,
): Promise<Html> {
  const address = sent.text('url').trim();
  if (address === '') throw invalid('Give the address of a DASH manifest (.mpd) or an HLS playlist (.m3u8).');
  const { maxLength } = LongAddress;
  if (address.length > Number(maxLength)) throw invalid(`The address has more than ${maxLength} characters.`);
  requireWebAddress('The address', address);
  const own = pasted(sent, 'key_file', 'Key file');
  const formerKeyFiles = pasted(sent, 'former', 'Former key file');
  const origin = originOf(request);
  const { get, close } = await createTesterGet(context, origin, platform);
  const tester = openTester(get, { sandbox: context.sandbox, now: context.wallClock });
  const stopped = new AbortController();
  const { signal } = stopped;
  request.res?.on('close', () => stopped.abort());
  try {
    const hasSidecar = sent.text('sidecar').trim() !== '';
    const keyFiles = hasSidecar ? [...own, await fetchKeyFile(sent, get, signal)] : own;
    const { report } = await tester.test(address, { keyFiles, formerKeyFiles, limits: LIMITS, signal });
    const item = playerItem(report, address, `${origin}/keyprovider/clearkey`);
    return reportView(report, context.wallClock(), item);
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
  const why = 'the pasted text has no line "name: value" as key files have. Paste all lines of the key file.';
  throw invalid(`${label}: ${why}`);
}

/** The page never contains a key: pasted text is not sent back. With script, the form stays filled in. */
function page(asked: Asked, filled: FormBody, report: Html): Page {
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
  return {
    intro:
      'Fetches a stream as a player does, decrypts it with the key file, and reports its faults. It also plays the stream.',
    content: html`${form}${report}
      <script src="/embed/channel.js" defer></script><script src="/embed/page.js" defer></script>`,
    scripts: ['stream-tester'],
  };
}

/** Private networks are the same for all protocols; a public stream may be fetched by http, too. */
const PROTOCOL = 'https:';
const refused = () =>
  new GetFailed(
    'ADDRESS_REFUSED',
    'it is an address of a private network, which the emulator does not call unless EMULATOR_ALLOW_HTTP_WEBHOOKS=true is set',
  );

/** It GETs where webhooks may go. @param origin the emulator's own, which is called within the process. */
async function createTesterGet({ seeds }: EmulatorContext, origin: string, platform: RequestListener) {
  const rules = { allowHttp: seeds.allowHttpWebhooks };
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
      if (isIP(host) !== 0 && !mayCall(host, PROTOCOL, rules)) throw refused();
      try {
        return await get(request);
      } catch (thrown) {
        const isRefused = thrown instanceof GetFailed && thrown.causeCode === 'address_not_allowed';
        throw isRefused ? refused() : thrown;
      }
    }) satisfies Get,
    close() {
      close();
      own.close();
    },
  };
}

/** Reads the key file of a stream from a sidecar. No redirect is followed with its API key. @throws HttpError 400 */
async function fetchKeyFile(sent: FormBody, get: Get, signal: AbortSignal): Promise<GivenKeyFile> {
  const [address = '', streamId = '', apiKey = ''] = ['sidecar', 'stream_id', 'api_key'].map((name) =>
    sent.text(name).trim(),
  );
  requireWebAddress('The address of the sidecar', address);
  if (streamId === '') throw invalid('Give the stream id by which the sidecar has the key file.');
  if (!/^[\x21-\x7e]+$/.test(apiKey)) throw invalid('Give the API key of the sidecar: printable ASCII.');
  const url = new URL(`api/keyfile/${encodeURIComponent(streamId)}`, address.replace(/\/?$/, '/')).href;
  const { status, body, headers } = await get({
    url,
    headers: { 'x-api-key': apiKey, accept: 'text/plain' },
    // The sidecar writes no larger key files.
    maxBytes: 64 * 1024,
    timeoutMs: 10_000,
    signal,
  }).catch((thrown: unknown) => {
    if (!(thrown instanceof GetFailed)) throw thrown;
    const remedies = {
      untrusted: 'give the emulator its authority by NODE_EXTRA_CA_CERTS',
      tls: 'look at the TLS settings of the sidecar',
    };
    throw invalid(`The sidecar does not answer: ${thrown.why ?? whyNoAnswer(thrown.causeCode, remedies)}.`);
  });
  const reason = REFUSALS[status]?.replace('{id}', streamId);
  if (reason !== undefined) throw invalid(`${reason} (${status}).`);
  if (status !== 200 || !/^text\/plain\b/.test(headers['content-type'] ?? ''))
    throw invalid(`The service at this address is no sidecar: it answered ${status}.`);
  return { name: `${streamId}.key`, text: body.toString() };
}

const REFUSALS: Readonly<Record<number, string>> = {
  401: 'The sidecar refuses the API key',
  403: 'The API key may not read this key file',
  404: 'The sidecar has no key file for the stream {id}',
};

/** @throws HttpError 400 */
function requireWebAddress(what: string, address: string): void {
  if (URL.canParse(address) && /^https?:$/.test(new URL(address).protocol)) return;
  throw invalid(`${what} must be a whole one, which begins with https:// or http://.`);
}

function reportView(report: StreamReport, tested: Date, item: object): Html {
  const { renditions, systems, type } = report;
  const none = html`<p class="muted">None is signalled.</p>`;
  const stage = html`<div id="stage" data-options="${JSON.stringify({ item })}"></div>
    <p class="muted" id="playback">Without script, the stream is not played.</p>`;
  return html`<div id="report">
    ${verdict(report)}
    <div class="tested">${card('findings', 'Findings', findings(report))}${type !== 'unknown' && card('player', 'In the browser', stage)}</div>
    ${renditions.length > 0 && section('renditions', 'Renditions', renditionTable(report))}
    ${card('systems', 'DRM systems', systems.length > 0 ? systems.map(systemView) : none)}
    ${card('test', 'The test', testFacts(report, tested))}
  </div>`;
}

function summaryOf(faults: StreamReport['faults']): string {
  const errors = faults.filter(({ severity }) => severity === 'error').length;
  const warnings = faults.length - errors;
  const parts = [errors > 0 && counted(errors, 'fault'), warnings > 0 && counted(warnings, 'warning')];
  return parts.filter(Boolean).join(', ') || 'Nothing wrong was found';
}

function verdict({ faults, renditions, decrypted }: StreamReport): Html {
  const hasErrors = faults.some(({ severity }) => severity === 'error');
  const tone = hasErrors ? 'danger' : faults.length > 0 ? 'warning' : 'success';
  const proven = renditions.filter(({ judgement }) => judgement?.state === 'decrypts').length;
  const encrypted = renditions.filter(({ scheme }) => scheme !== null).length;
  const how =
    proven > 0
      ? `${counted(proven, 'rendition')} of ${renditions.length} decrypted to valid picture, sound or text.`
      : encrypted > 0 && !decrypted
        ? 'Nothing was decrypted: paste the key file to have the content key tested, too.'
        : undefined;
  return html`<div class="message" id="verdict" data-variant="${tone}"><p><b>${summaryOf(faults)}.</b> ${how}</p></div>`;
}

function findings({ faults, decrypted, renditions }: StreamReport): Html {
  if (faults.length === 0) return html`<p class="muted">None.</p>`;
  return html`<ol role="list" class="findings">${faults.map(
    ({ severity, code, field, description }) =>
      html`<li><p class="finding-head">${severity === 'error' ? pill('Fault', 'danger') : pill('Warning', 'warning')} <code>${code}</code>${
        field !== undefined && html` <code class="muted">${field}</code>`
      }</p><p>${description}</p></li>`,
  )}</ol>${
    decrypted &&
    renditions.some(({ scheme }) => scheme !== null) &&
    html`<p class="muted">The player on this page has its keys from the license server. It may play although the key file is wrong.</p>`
  }`;
}

const JUDGEMENTS: Words<JudgementState> = {
  decrypts: ['Decrypts', 'success'],
  garbage: ['Does not decrypt', 'danger'],
  clear: ['Clear', 'neutral'],
  no_key: ['No key', 'warning'],
  unknown: ['Not known', 'neutral'],
};

function judgementView(judgement: RenditionJudgement | null, decrypted: boolean): Content {
  if (!judgement) return pill('Not judged', 'neutral');
  if (judgement.state === 'no_key' && !decrypted)
    return html`${pill('Encrypted', 'neutral')}<p>No key file was given to decrypt it with.</p>`;
  const { state, cause, description, evidence } = judgement;
  const shown = cause === 'not_encrypted' ? pill('Not encrypted', 'danger') : pill(...JUDGEMENTS[state]);
  return html`${shown}<p>${description}</p><p class="muted">${evidence}</p>`;
}

function renditionTable({ renditions, decrypted }: StreamReport): Html {
  return table<RenditionReport>(
    'Renditions',
    [
      ['Rendition', ({ name, kind, codec }) => html`<b>${name}</b><p class="muted">${kind} ${codec}</p>`],
      [
        'Encryption',
        ({ scheme, keyIds, segment }) =>
          html`${scheme ?? (segment ? 'none' : 'not known')}${keyIds.map((id) => html`<p><code>${id}</code></p>`)}`,
      ],
      [
        'Newest segment',
        ({ segment }) =>
          segment
            ? html`${breakable(segment.url.split('/').at(-1) ?? '')}<p class="muted">${bytes(segment.bytes)}${segment.seconds > 0 && `, ${segment.seconds.toFixed(1)} s`}</p>`
            : NOTHING,
      ],
      ['Judgement', ({ judgement }) => judgementView(judgement, decrypted)],
    ],
    renditions,
    undefined,
  );
}

function systemView({ name, systemId, in: places, fields }: SystemReport): Html {
  return html`<div class="system"><h3>${name}</h3>
    <p class="muted">${systemId !== undefined && html`<code>${systemId}</code> `}in ${places.join(', ')}</p>
    ${
      fields.length > 0 &&
      facts(
        fields.map(({ name: field, value, note }) => [
          field,
          html`<code class="value">${breakable(value)}</code>${note !== undefined && html` <span class="muted">${note}</span>`}`,
        ]),
      )
    }
  </div>`;
}

function testFacts({ url, type, live, fetched }: StreamReport, tested: Date): Html {
  const { requests, ms } = fetched;
  const known = `${type.toUpperCase()}, ${live ? 'live' : 'on demand'}`;
  return facts([
    ['Address', addressText(url)],
    ['Type', type === 'unknown' ? 'not known' : known],
    ['Tested', time(tested)],
    ['Fetched', `${counted(requests, 'request')}, ${bytes(fetched.bytes)}, ${(ms / 1000).toFixed(1)} s`],
  ]);
}

function playerItem({ type, renditions, systems }: StreamReport, file: string, clearKeyUrl: string): object {
  const read = [...new Set(renditions.flatMap((each) => each.keyIds))].map((id) => parseUuid(id));
  const keyIds = read.flatMap((id) => (id.ok ? [id.value.toString('base64url')] : []));
  const isEncrypted = renditions.some(({ scheme }) => scheme !== null);
  // A player finds the key ids of later parts in the common box; without one, it gets those of now.
  const isFound = type === 'dash' && systems.some(({ systemId }) => systemId === COMMON_SYSTEM_ID);
  const drm = isEncrypted && {
    clearkey: { url: clearKeyUrl, ...(!isFound && keyIds.length > 0 && { keyIds }) },
  };
  const mime = type === 'dash' ? 'application/dash+xml' : 'application/vnd.apple.mpegurl';
  return { title: 'The stream', sources: [{ file, type: mime, ...(drm && { drm }) }] };
}
