import type { RequestListener } from 'node:http';
import { type Express, type Request, type RequestHandler, type Response, urlencoded } from 'express';
import { looksLikeKeyFile } from '../../../../drm/check/key-file-lines';
import { onlyMethods } from '../../../../http/app';
import { HttpError } from '../../../../http/errors';
import { type Content, type Html, html } from '../../../../http/html';
import type { Limits } from '../../../../verify/fetches';
import type { GivenKeyFile } from '../../../../verify/key-files';
import { verifyStream } from '../../../../verify/verify-stream';
import { originOf } from '../../addresses';
import type { EmulatorContext } from '../../context';
import { addressKey } from '../../rate-limit';
import { FormBody, textField } from '../forms';
import { layout } from '../layout';
import { fetchKeyFile } from './fetch-key-file';
import { createTesterGet } from './tester-get';
import { reportView } from './tester-report';

const PATH = '/dashboard/stream-tester';

/** Far more than a test needs: a page that anybody on the machine may open fetches less than the command line. */
const LIMITS: Partial<Limits> = {
  totalBytes: 128 * 1024 * 1024,
  segmentBytes: 32 * 1024 * 1024,
  requests: 200,
  totalMs: 60_000,
  renditions: 20,
  periods: 10,
};
/** Of all clients together. */
const MAX_TESTS = 3;

/** The stream tester: it fetches a stream as any player would, decrypts it and plays it. No key is kept or shown. */
export function mountStreamTester(app: Express, context: EmulatorContext, platform: RequestListener): void {
  const running = new Set<string>();
  app
    .route('/verify')
    .get((request, response) => {
      const { url } = request.query;
      const query = typeof url === 'string' ? `?${new URLSearchParams({ url })}` : '';
      response.redirect(302, `${PATH}${query}`);
    })
    .all(onlyMethods('GET'));

  app
    .route(PATH)
    .get(playerHeaders, (request, response) => {
      const { url } = request.query;
      const sent = new FormBody(typeof url === 'string' ? { url } : {});
      response.send(page(sent, { problems: [], report: undefined }));
    })
    .post(readKeys, playerHeaders, async (request, response) => {
      const sent = new FormBody(request.body);
      const client = addressKey(request);
      refuseMoreThanOne(running, client);
      running.add(client);
      try {
        const { status, problems, report } = await test(context, platform, { request, response, sent });
        if (!response.destroyed) response.status(status).send(page(sent, { problems, report }));
      } finally {
        running.delete(client);
      }
    })
    .all(onlyMethods('GET', 'POST'));
}

/** A key file has a few kilobytes. */
const readKeys: RequestHandler = urlencoded({ extended: false, limit: '128kb', parameterLimit: 20 });

/** The stream may come from anywhere. */
const playerHeaders: RequestHandler = (_request, response, next) => {
  const policy = String(response.get('content-security-policy'));
  response.set(
    'content-security-policy',
    `${policy.replace("connect-src 'self'", "connect-src 'self' http: https:")};media-src blob: http: https:`,
  );
  next();
};

function refuseMoreThanOne(running: ReadonlySet<string>, client: string): void {
  const headers = { 'retry-after': '5' };
  if (running.has(client)) {
    const description = 'A test of yours is under way. Wait until it is over.';
    throw new HttpError(429, { code: 'test_running', description }, { headers });
  }
  if (running.size >= MAX_TESTS) {
    const description = `${MAX_TESTS} tests are under way. Wait until one of them is over.`;
    throw new HttpError(503, { code: 'tests_running', description }, { headers });
  }
}

interface Asked {
  readonly request: Request;
  readonly response: Response;
  readonly sent: FormBody;
}

interface Outcome {
  readonly status: number;
  readonly problems: readonly string[];
  readonly report: Html | undefined;
}

async function test(context: EmulatorContext, platform: RequestListener, asked: Asked): Promise<Outcome> {
  const { request, response, sent } = asked;
  const refused = (...problems: string[]) => ({ status: 400, problems, report: undefined });
  const address = sent.text('url').trim();
  const fault = addressFault(address);
  if (fault !== undefined) return refused(fault);
  const foreign = PASTED.filter(({ name }) => pasted(sent, name).some(({ text }) => !looksLikeKeyFile(text)));
  if (foreign.length > 0) return refused(...foreign.map(({ label }) => noKeyFile(label)));
  const origin = originOf(request);
  const rules = { allowHttp: context.seeds.allowHttpWebhooks };
  const { get, close } = createTesterGet({ rules, origin, platform });
  const stopped = new AbortController();
  response.on('close', () => stopped.abort());
  try {
    const keyFiles = await keyFilesOf(sent, { get, signal: stopped.signal });
    if (!keyFiles.ok) return refused(...keyFiles.problems);
    const report = await verifyStream(address, {
      get,
      keyFiles: keyFiles.given,
      formerKeyFiles: pasted(sent, 'former'),
      limits: LIMITS,
      signal: stopped.signal,
      now: context.wallClock,
    });
    const clearKeyUrl = `${origin}/keyprovider/clearkey`;
    const shown = reportView({ report, address, tested: context.wallClock(), clearKeyUrl });
    return { status: 200, problems: [], report: shown };
  } finally {
    close();
  }
}

const MAX_ADDRESS_LENGTH = 4000;

function addressFault(address: string): string | undefined {
  if (address === '') return 'Give the address of a DASH manifest (.mpd) or an HLS playlist (.m3u8).';
  if (address.length > MAX_ADDRESS_LENGTH)
    return `The address has more than ${MAX_ADDRESS_LENGTH} characters.`;
  if (!URL.canParse(address) || !/^https?:$/.test(new URL(address).protocol))
    return 'The address must be a whole one, which begins with https:// or http://.';
  return undefined;
}

const PASTED = [
  { name: 'key_file', label: 'Key file' },
  { name: 'former', label: 'Former key file' },
] as const;

function noKeyFile(label: string): string {
  return `${label}: what was pasted has no line "name: value" as key files have. Paste all lines of the key file.`;
}

function pasted(sent: FormBody, name: (typeof PASTED)[number]['name']): GivenKeyFile[] {
  const text = sent.text(name).replaceAll('\r\n', '\n');
  if (text.trim() === '') return [];
  // A form drops the line break at the end, without which a key file counts as cut off.
  const whole = text.endsWith('\n') ? text : `${text}\n`;
  return [{ name: name === 'former' ? 'former.key' : 'pasted.key', text: whole }];
}

type KeyFiles =
  | { readonly ok: true; readonly given: readonly GivenKeyFile[] }
  | { readonly ok: false; readonly problems: readonly string[] };

async function keyFilesOf(
  sent: FormBody,
  { get, signal }: Pick<Parameters<typeof fetchKeyFile>[1], 'get' | 'signal'>,
): Promise<KeyFiles> {
  const own = pasted(sent, 'key_file');
  const sidecar = sent.text('sidecar').trim();
  if (sidecar === '') return { ok: true, given: own };
  const streamId = sent.text('stream_id').trim();
  const fetched = await fetchKeyFile(sidecar, { streamId, apiKey: sent.text('api_key').trim(), get, signal });
  if (!fetched.ok) return { ok: false, problems: [fetched.problem] };
  return { ok: true, given: [...own, fetched.keyFile] };
}

interface Shown {
  readonly problems: readonly string[];
  readonly report: Html | undefined;
}

/** The page never holds a key: what was pasted is not sent back. With script, the form stays as it is filled in. */
function page(sent: FormBody, { problems, report }: Shown): string {
  return layout({
    title: 'Stream tester',
    section: PATH,
    intro:
      'Fetches a stream as a player does, decrypts it with the key file, and says what is wrong with it. It plays here, too.',
    content: html`${testForm(sent, problems)}${report ?? html`<div id="report"></div>`}
      <script src="/embed/channel.js" defer></script>`,
    styles: ['stream-tester'],
    scripts: ['stream-tester'],
  });
}

function testForm(sent: FormBody, problems: readonly string[]): Html {
  return html`<section class="card" id="tester" aria-labelledby="tester-title">
    <h2 id="tester-title">The stream</h2>
    <div id="problems">${
      problems.length > 0 &&
      html`<div class="message message-bad" role="alert"><ul>${problems.map((each) => html`<li>${each}</li>`)}</ul></div>`
    }</div>
    <form method="post" action="${PATH}" class="form" data-tester>
      <div class="fields">
        <div class="field field-wide">
          <label for="field-url">Address of the manifest or playlist</label>
          <input id="field-url" name="url" type="url" required maxlength="${MAX_ADDRESS_LENGTH}" value="${sent.text('url')}" placeholder="https://cdn.example.com/live/news/manifest.mpd" autocomplete="off" spellcheck="false">
        </div>
      </div>
      ${keysOf(sent)}
      <p class="actions"><button class="button button-main">Test</button>
      <label class="box repeat"><input type="checkbox" name="repeat" value="on" data-repeat> <span>Repeat every 10 s</span></label>
      <span class="muted" id="progress" role="status"></span></p>
    </form>
  </section>`;
}

function keysOf(sent: FormBody): Html {
  const isOpen = ['sidecar', 'stream_id'].some((name) => sent.text(name) !== '');
  const keyFile = (name: string, label: string, hint: Content) => html`<div class="field field-wide">
      <label for="field-${name}">${label}</label>
      <textarea id="field-${name}" class="code" name="${name}" rows="4" spellcheck="false" autocomplete="off" aria-describedby="hint-${name}"></textarea>
      <p class="hint" id="hint-${name}">${hint}</p>
    </div>`;
  return html`<div class="fields">${keyFile('key_file', 'Key file', 'Paste its lines to have the stream decrypted. They are not kept.')}</div>
    <details id="more-keys"${isOpen && html` open`}>
      <summary class="link">Key file from the sidecar, former key file</summary>
      <div class="fields">
        ${textField({ name: 'sidecar', label: 'Address of the sidecar', type: 'url', value: sent.text('sidecar'), hint: 'It has the key file of the stream.' })}
        ${textField({ name: 'stream_id', label: 'Stream id', value: sent.text('stream_id') })}
        <div class="field">
          <label for="field-api_key">API key</label>
          <input id="field-api_key" name="api_key" type="password" autocomplete="off" aria-describedby="hint-api_key">
          <p class="hint" id="hint-api_key">A key with read rights is enough.</p>
        </div>
        ${keyFile('former', 'Former key file', 'Paste the key file that the stream had before: the test then tells whether the packager still uses it.')}
      </div>
    </details>`;
}
