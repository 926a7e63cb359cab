import type { RequestListener } from 'node:http';
import type { Express } from 'express';
import { parseJson } from '../../../drm/bytes';
import type { GetAnswer } from '../../../http/get-request';
import { type Content, type Html, html } from '../../../http/html';
import { AUTHENTICATION } from '../../migration/mapping/fields';
import { findRoute, type HttpMethod } from '../../migration/mapping/routes';
import { isObject, isPlaceholder, type Json, type JsonObject } from '../../migration/mapping/values';
import {
  type Migration,
  migrateCall,
  type Note,
  type V1Call,
  type V2Call,
  type Verdict,
} from '../../migration/migrate-call';
import { changeCustom, readParameters } from '../../migration/parameters';
import { readCurl } from '../../migration/read-calls/curl';
import { readUrl, UnreadableInput } from '../../migration/read-calls/found-call';
import { asCurl } from '../../migration/render';
import { originOf } from '../addresses';
import { reachesSite } from '../auth';
import type { EmulatorContext } from '../context';
import { signatureOf } from '../v1/signed-call';
import { callPlatform } from './call-platform';
import { card, copyableLines, pill, type Words } from './elements';
import { type Asked, formCard, invalid, type PageRequest } from './forms';
import { Lines } from './inputs';
import { credentialsFor, layout, mountPage, type Page, requireRole } from './layout';
import { requireSite, siteField } from './resource-pages';

const PATH = '/dashboard/migration';

export function mountMigrationPage(app: Express, context: EmulatorContext, platform: RequestListener): void {
  const form = {
    id: 'v1-call',
    path: PATH,
    submit: 'Show the v2 call',
    fields: {
      call: { schema: Lines, required: true, says: CALL_HINT },
      ...siteField(context.seeds.siteIds),
    },
    buttons: html`<button class="outline" name="do" value="run">Run both here</button>`,
  } as const;
  const page = (asked: Asked, result?: Html): Page => ({
    intro: 'Translates a call of Management API v1 to v2, and shows the answers of both here.',
    content: html`${formCard(asked, 'A call of v1', form)}${result}`,
  });
  mountPage(app, PATH, page, {
    form: 'v1-call',
    async change(request, sent) {
      const isRun = sent.text('do') === 'run';
      if (isRun) requireRole(request, 'editor');
      const call = readV1Call(sent.text('call'));
      const site = requireSite(context, sent.text('site'));
      const migration = migrateCall(call, site);
      const runner = { context, platform, request, site };
      const answers = isRun ? await runBoth(runner, call, migration) : undefined;
      // The form stays filled in.
      const asked = { request, query: {}, refused: { form: 'v1-call', sent, problems: [] } };
      return layout(asked, page(asked, resultOf(call, migration, originOf(request), answers)));
    },
  });
}

const CALL_HINT =
  'Such as `curl https://api.jwplatform.com/v1/videos/list?search=news`; the page signs it with the secret of the site.';

/** Reads a curl command, or an address with its query. The signature is dropped: the page makes its own. */
function readV1Call(text: string): V1Call {
  if (text.trim() === '') throw invalid('Paste a call first: a curl command, or its address.');
  const { calls, commands, fromFiles } = commandsIn(text);
  const [call, ...others] = commands > 0 ? calls : [readUrl(text)].flatMap((each) => each ?? []);
  if (!call)
    throw invalid('This has no call of Management API v1: its address has /v1/ in it, as /v1/videos/list.');
  if (others.length > 0) throw invalid('These are several calls. Paste one at a time.');
  if (fromFiles.length > 0)
    throw invalid('A part of this call comes from a file. Paste the content of the file.');
  const parameters = Object.entries(call.parameters).filter(([name]) => !AUTHENTICATION.includes(name));
  return { route: call.route, parameters: Object.fromEntries(parameters) };
}

function commandsIn(text: string): ReturnType<typeof readCurl> {
  try {
    return readCurl(text);
  } catch (thrown) {
    throw thrown instanceof UnreadableInput ? invalid(`The text ${thrown.message}.`) : thrown;
  }
}

interface Runner {
  readonly context: EmulatorContext;
  readonly platform: RequestListener;
  readonly request: PageRequest;
  readonly site: string;
}

interface Answered {
  readonly name: string;
  readonly answer?: GetAnswer;
  readonly instead?: string;
}

const LIMITS = { maxBytes: 16 * 1024 * 1024, timeoutMs: 60_000 };

/** Makes the call of v1, and then those of v2 in their order, each with the answers of those before. */
async function runBoth(runner: Runner, call: V1Call, migration: Migration) {
  const { context, request, site } = runner;
  const own = await callPlatform(runner.platform);
  const host = request.get('host') ?? '';
  const run = async (
    method: HttpMethod,
    target: string,
    headers: object,
    body?: string,
  ): Promise<Answered> => {
    const name = `${method} ${target}`;
    const given = body === undefined ? undefined : Buffer.from(body);
    try {
      const sent = { method, headers: { host, ...headers }, body: given, ...LIMITS };
      return { name, answer: await own.call(target, sent) };
    } catch {
      return { name, instead: 'The connection broke before there was an answer.' };
    }
  };
  const admin = credentialsFor(request, context.state).find(
    (each) => each.permission === 'Admin' && reachesSite(each, site),
  );
  const runV2 = async ({ method, path, query, body }: V2Call): Promise<Answered> => {
    const search = new URLSearchParams(query).toString();
    const target = search === '' ? path : `${path}?${search}`;
    const name = `${method} ${target}`;
    if (!admin) return { name, instead: 'No Admin credential reaches this site.' };
    if ([path, body, query].some(hasPlaceholder))
      return { name, instead: 'This was not called: replace the words in braces by hand.' };
    const authorization = `Bearer ${admin.secret}`;
    return run(method, target, { authorization }, body && JSON.stringify(body));
  };
  try {
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    const v1 = await run('POST', call.route, form, signedBody(runner, call));
    const v2: Answered[] = [];
    let known: JsonObject = {};
    for (const each of migration.calls) {
      const made = await runV2(completed(each, call, known));
      v2.push(made);
      const answered = parseJson(made.answer?.body.toString() ?? '') as Json | undefined;
      if (isObject(answered)) known = { ...known, ...answered };
    }
    return { v1, v2 };
  } finally {
    own.close();
  }
}

function signedBody({ context, site }: Runner, { parameters }: V1Call): string {
  const { wallClock, newBytes, seeds } = context;
  const nonce = newBytes(4).readUInt32BE() % 100_000_000;
  const all = {
    ...parameters,
    api_format: 'json',
    api_key: site,
    api_nonce: String(nonce).padStart(8, '0'),
    api_timestamp: String(Math.floor(wallClock().getTime() / 1000)),
  };
  const signed = Object.entries(all).flatMap(([name, value]) =>
    [value].flat().map((each) => ({ name, value: each })),
  );
  const pairs = [...signed, { name: 'api_signature', value: signatureOf(signed, seeds.v1Secret) }];
  return new URLSearchParams(pairs.map(({ name, value }): [string, string] => [name, value])).toString();
}

/** Fills in values of earlier answers: the type of a playlist, a new thumbnail, the custom parameters that stay. */
function completed(call: V2Call, { route, parameters }: V1Call, known: JsonObject): V2Call {
  const { playlist_type, id, metadata: before } = known;
  const fill = (path: string, name: string, value: Json | undefined) =>
    typeof value === 'string' ? path.replace(`{${name}}`, encodeURIComponent(value)) : path;
  const path = fill(fill(call.path, 'playlist_type', playlist_type), 'thumbnail_id', id);
  const mapping = findRoute(route);
  const metadata = call.body?.metadata;
  if (!mapping || !isObject(before) || !isObject(metadata) || !hasPlaceholder(metadata.custom_params)) {
    return { ...call, path };
  }
  const params = isObject(before.custom_params) ? before.custom_params : {};
  const texts = Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)]));
  const custom_params = changeCustom(texts, readParameters(mapping, parameters).custom);
  return { ...call, path, body: { ...call.body, metadata: { ...metadata, custom_params } } };
}

function hasPlaceholder(value: Json | undefined): boolean {
  if (typeof value === 'string') return /^\//.test(value) ? value.includes('{') : isPlaceholder(value);
  if (Array.isArray(value)) return value.some((each: Json) => hasPlaceholder(each));
  if (!isObject(value)) return false;
  return Object.entries(value).some(([name, each]) => isPlaceholder(name) || hasPlaceholder(each));
}

const VERDICTS: Words<Verdict> = {
  ready: ['Ready', 'success'],
  by_hand: ['To complete by hand', 'warning'],
  unsupported: ['Not supported in v2', 'danger'],
  unknown: ['Not a call of the mapping', 'danger'],
};

function resultOf(
  call: V1Call,
  { verdict, calls, notes }: Migration,
  origin: string,
  answers: Awaited<ReturnType<typeof runBoth>> | undefined,
): Html {
  const shown = calls.map((each, place) => {
    const name = calls.length === 1 ? 'The call of v2' : `Call ${place + 1} of v2`;
    const purpose = each.purpose !== undefined && html`<p>${marked(each.purpose)}</p>`;
    return html`${purpose}${copyableLines(`v2-call-${place}`, name, asCurl(each, origin))}`;
  });
  const differences =
    notes.length > 0 && html`<h3>Differences</h3><ul role="list" class="notes">${notes.map(noteOf)}</ul>`;
  const inV2 = html`<p><code>${call.route}</code> ${pill(...VERDICTS[verdict])}</p>
    ${shown}${differences}`;
  const both =
    answers &&
    card(
      'answers',
      'Answers of both here',
      html`<p class="muted">Both ran on the data of the emulator, the call of v1 first: v2 does not find a resource that v1 deleted.</p>
    <div class="answers">
      <div><h3>v1</h3>${answerText('v1', answers.v1, 0)}</div>
      <div><h3>v2</h3>${
        answers.v2.length === 0
          ? html`<p>There is no call of v2 to run.</p>`
          : answers.v2.map((each, place) => answerText('v2', each, place))
      }</div>
    </div>`,
    );
  return html`${card('v2-calls', 'In v2', inV2)}${both}`;
}

const NOTES: Words<Note['kind']> = {
  changed: ['Changed', 'neutral'],
  beware: ['Beware', 'warning'],
  removed: ['Removed', 'special'],
  unsupported: ['Not supported', 'danger'],
  unknown: ['Unknown', 'danger'],
};

function noteOf({ kind, field, sentence }: Note): Html {
  return html`<li>${pill(...NOTES[kind])} ${field !== undefined && html`<code>${field}</code> `}${marked(sentence)}</li>`;
}

function marked(sentence: string): Content {
  return sentence.split(/`([^`]+)`/).map((part, at) => (at % 2 === 1 ? html`<code>${part}</code>` : part));
}

function answerText(version: string, { name, answer, instead }: Answered, place: number): Html {
  const head = (status: Content) => html`<p><code>${name}</code> ${status}</p>`;
  if (!answer) return html`${head(undefined)}<p>${instead}</p>`;
  const text = answer.body.toString();
  const parsed = parseJson(text);
  const pretty = (parsed === undefined ? text : JSON.stringify(parsed, null, 2)) || 'No body.';
  const status = pill(String(answer.status), answer.status < 400 ? 'success' : 'danger');
  return html`${head(status)}${copyableLines(`answer-${version}-${place}`, `The answer of ${version}`, pretty)}`;
}
