import type { RequestListener } from 'node:http';
import type { Express, RequestHandler } from 'express';
import * as z from 'zod';
import { looksLikeKeyFile } from '../../../drm/check/key-file-lines';
import { HttpError } from '../../../http/errors';
import { type Content, type Html, html } from '../../../http/html';
import type { Limits } from '../../../verify/fetches';
import type { GivenKeyFile } from '../../../verify/key-files';
import { verifyStream } from '../../../verify/verify-stream';
import { originOf } from '../addresses';
import type { EmulatorContext } from '../context';
import { addressKey } from '../rate-limit';
import { WebAddress } from '../resources/fields';
import { card } from './elements';
import { type Asked, FormBody, mountPage, type PageRequest, refusalOf, sentOf } from './forms';
import { layout } from './layout';
import { inputsOf, isFilled } from './resource-form';
import { createTesterGet, fetchKeyFile, isWebAddress, refused } from './tester-fetch';
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
const MAX_ADDRESS_LENGTH = 4000;

/** The stream tester: it fetches a stream as any player does, decrypts it and plays it. No key is kept or shown. */
export function mountStreamTester(app: Express, context: EmulatorContext, platform: RequestListener): void {
  const running = new Set<string>();
  const addressIn = ({ query: { url } }: Pick<Asked, 'query'>) => (typeof url === 'string' ? { url } : {});
  app.get('/verify', (request, response) => {
    const query = new URLSearchParams(addressIn(request)).toString();
    response.redirect(302, `${PATH}${query && `?${query}`}`);
  });
  app.use(PATH, playerHeaders);
  const emptyForm = (asked: Asked) =>
    page(asked, sentOf(asked, 'tester', new FormBody(addressIn(asked))), html`<div id="report"></div>`);
  mountPage(app, PATH, emptyForm, {
    form: 'tester',
    async change(request, sent) {
      const client = addressKey(request);
      refuseMoreThanOne(running, client);
      running.add(client);
      try {
        return page({ request, query: {} }, sent, await test(context, platform, request, sent));
      } finally {
        running.delete(client);
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

/** @throws HttpError 400 when the form can't be used. */
async function test(
  context: EmulatorContext,
  platform: RequestListener,
  request: PageRequest,
  sent: FormBody,
): Promise<Html> {
  const address = sent.text('url').trim();
  if (address === '') throw refused('Give the address of a DASH manifest (.mpd) or an HLS playlist (.m3u8).');
  if (address.length > MAX_ADDRESS_LENGTH)
    throw refused(`The address has more than ${MAX_ADDRESS_LENGTH} characters.`);
  if (!isWebAddress(address))
    throw refused('The address must be a whole one, which begins with https:// or http://.');
  const own = pasted(sent, 'key_file', 'Key file');
  const former = pasted(sent, 'former', 'Former key file');
  const origin = originOf(request);
  const rules = { allowHttp: context.seeds.allowHttpWebhooks };
  const { get, close } = await createTesterGet({ rules, origin, platform });
  const stopped = new AbortController();
  request.res?.on('close', () => stopped.abort());
  const { signal } = stopped;
  try {
    const sidecar = sent.text('sidecar').trim();
    const [streamId, apiKey] = [sent.text('stream_id').trim(), sent.text('api_key').trim()];
    const fetched =
      sidecar === '' ? [] : [await fetchKeyFile({ address: sidecar, streamId, apiKey }, { get, signal })];
    const now = context.wallClock;
    const keyFiles = [...own, ...fetched];
    const report = await verifyStream(address, {
      get,
      keyFiles,
      formerKeyFiles: former,
      limits: LIMITS,
      signal,
      now,
    });
    return reportView({ report, address, tested: now(), clearKeyUrl: `${origin}/keyprovider/clearkey` });
  } finally {
    close();
  }
}

function pasted(sent: FormBody, name: string, label: string): GivenKeyFile[] {
  const text = sent.text(name);
  if (text.trim() === '') return [];
  // A form drops the line break at the end, without which a key file counts as cut off.
  const whole = text.endsWith('\n') ? text : `${text}\n`;
  if (looksLikeKeyFile(whole)) return [{ name: `${name}.key`, text: whole }];
  throw refused(
    `${label}: what was pasted has no line "name: value" as key files have. Paste all lines of the key file.`,
  );
}

/** The page never holds a key: what was pasted is not sent back. With script, the form stays as it is filled in. */
function page(asked: Asked, sent: FormBody, report: Html): string {
  return layout({
    title: 'Stream tester',
    section: PATH,
    intro:
      'Fetches a stream as a player does, decrypts it with the key file, and reports what is wrong with it. It also plays the stream.',
    content: html`${testForm(asked, sent)}${report}
      <script src="/embed/channel.js" defer></script><script src="/embed/page.js" defer></script>`,
    scripts: ['stream-tester'],
  });
}

const SIDECAR = {
  sidecar: { schema: WebAddress, says: 'It has the key file of the stream.' },
  stream_id: { schema: z.string(), says: 'Stream id' },
};

function testForm(asked: Asked, sent: FormBody): Html {
  const keyFile = (name: string, label: string, hint: Content) => html`<div class="field field-wide">
      <label for="field-${name}">${label}</label>
      <textarea id="field-${name}" class="code" name="${name}" rows="4" spellcheck="false" autocomplete="off" aria-describedby="hint-${name}"></textarea>
      <p class="hint" id="hint-${name}">${hint}</p>
    </div>`;
  return card(
    'tester',
    'The stream',
    html`<div id="problems">${refusalOf(asked, 'tester')}</div>
    <form method="post" action="${PATH}" class="form" data-tester>
      <div class="fields">
        <div class="field field-wide">
          <label for="field-url">Address of the manifest or playlist</label>
          <input id="field-url" name="url" type="url" required maxlength="${MAX_ADDRESS_LENGTH}" value="${sent.text('url')}" placeholder="https://cdn.example.com/live/news/manifest.mpd" autocomplete="off" spellcheck="false">
        </div>
        ${keyFile('key_file', 'Key file', 'Paste its lines to have the stream decrypted. They are not kept.')}
      </div>
      <details class="more" id="more-keys"${isFilled(SIDECAR, sent) && html` open`}>
        <summary class="link">Key file from the sidecar, former key file</summary>
        <div class="fields">
          ${inputsOf(SIDECAR, sent, 'tester')}
          <div class="field">
            <label for="field-api_key">API key</label>
            <input id="field-api_key" name="api_key" type="password" autocomplete="off" aria-describedby="hint-api_key">
            <p class="hint" id="hint-api_key">A key with read rights is enough.</p>
          </div>
          ${keyFile('former', 'Former key file', 'Paste the key file that the stream had before: the test then reports whether the packager still uses it.')}
        </div>
      </details>
      <p class="actions"><button>Test</button>
      <label class="box" data-scripted><input type="checkbox" name="repeat" value="on" data-repeat> Repeat every 10 s</label>
      <span class="muted" id="progress" role="status"></span></p>
    </form>`,
  );
}
