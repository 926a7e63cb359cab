import { join } from 'node:path';
import type { Express } from 'express';
import fs from 'fs-extra';
import request from 'supertest';
import type * as httpApp from '../../../src/http/app';
import { ALL_ERRORS, apiError, type ErrorCode } from '../../../src/sidecar/errors';
import {
  CPIX_DOCUMENT,
  FROM_PROVIDER,
  fileOf,
  SUPPLIED,
  SWAPPED,
} from '../../../src/sidecar/openapi/examples';
import { onceForAll } from '../../support/after-test';
import { CPIX_OF_TRACKS } from '../../support/cpix-sample';
import { itDescribesAnApi, validateOpenApi } from '../../support/describes-api';
import { readCurl } from '../../support/read-curl';
import {
  addressOf,
  type Described,
  DOCUMENT,
  OPERATIONS,
  objections,
  startDescribed,
} from '../../support/start-described';
import { answersFor } from '../../support/start-provisioning';
import { API_KEY, startSidecar } from '../../support/start-sidecar';

interface Oddity {
  /** In place of the stream of the examples. */
  readonly streamid?: string;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly type?: string;
  readonly body?: string | object;
}

/** Odd requests to an operation, refused or not. */
const ODDITIES: [what: string, oddity: Oddity][] = [
  ['nothing but what must be sent', {}],
  ['another stream', { streamid: 'absent' }],
  ['a stream id with an encoding that is none', { streamid: '%ff' }],
  ['a parameter that there is none of', { query: '?unknown=1' }],
  ['a dry run', { query: '?dryrun=true', body: SUPPLIED }],
  ['a dry run of no clear meaning', { query: '?dryrun=yes', body: SUPPLIED }],
  ['a limit out of bounds', { query: '?limit=1001' }],
  ['a prefix against the rule', { query: '?prefix=..' }],
  ['key material to be shown', { query: '?reveal=true', body: SUPPLIED }],
  ['the wish to wait for all packagers', { query: '?wait=1', body: SUPPLIED }],
  ['a wait without end', { query: '?wait=forever', body: SUPPLIED }],
  ['the wish to found the fleet', { query: '?found=true' }],
  ['an export', { query: '?as=cpix' }],
  ['an export that there is none of', { query: '?as=another&scheme=cens' }],
  ['no API key', { headers: { 'x-api-key': '' } }],
  ['an entity tag of another file', { headers: { 'if-match': '"another"' }, body: SUPPLIED }],
  ['the wish for no file', { headers: { 'if-none-match': '*' }, body: SUPPLIED }],
  ['the wish for JSON', { headers: { accept: 'application/json' }, body: SUPPLIED }],
  ['the wish for what there is none of', { headers: { accept: 'image/png' }, body: SUPPLIED }],
  ['an empty object', { body: {} }],
  ['a field that there is none of', { body: { ...SUPPLIED, widevin: {}, stream: [] } }],
  ['fields of other types', { body: { cenc: 1, streams: 'x', groups: 7, value: [] } }],
  [
    'a batch of one that is at fault',
    { body: { streams: [{ streamid: '.a' }, 7, { streamid: 'b', cenc: {} }] } },
  ],
  ['a batch of groups at fault', { body: { groups: [7, { members: [] }, { smil: '<smil' }] } }],
  ['JSON that is none', { type: 'application/json', body: '{"cenc":' }],
  ['an empty body', { type: 'application/json', body: '' }],
  ['lines of a key file', { type: 'text/plain', body: 'vendor-tier: gold\nno line\n' }],
  ['a CPIX document', { query: '?laurl=https://a/', type: 'application/cpix+xml', body: CPIX_DOCUMENT }],
  ['no CPIX document', { type: 'text/xml', body: '<CPIX' }],
  [
    'a batch of tracks',
    { body: { streams: [{ cpix: CPIX_OF_TRACKS, tracks: { SD: 'a', UHD: ['b', 7] } }, { tracks: [] }] } },
  ],
  ['a body of another type', { type: 'text/html', body: '<p>' }],
  ['a compressed body', { type: 'application/json', headers: { 'content-encoding': 'gzip' }, body: '{}' }],
  [
    'a body of 70,000 bytes',
    { type: 'application/json', body: JSON.stringify({ cenc: 'x'.repeat(70_000) }) },
  ],
];

const NO_BODY = ['get', 'delete'];

it.each(OPERATIONS)(
  '$title answers nothing that its description does not name',
  async ({ method, path, operation }) => {
    const { sidecar } = await startDescribed();
    const statuses = new Set<number>();
    const found: object[] = [];
    const names = operation.parameters.map(({ name }) => name);
    for (const [what, oddity] of ODDITIES) {
      const { streamid = 'news', query = '', headers = {}, type, body } = oddity;
      const target = addressOf(path, streamid) + query;
      // Without a body, some are alike.
      const isAlike =
        NO_BODY.includes(method) && body !== undefined && query === '' && !('headers' in oddity);
      if (isAlike) continue;
      // HTTP itself answers 304 where nothing is said of it (RFC 9110 § 13.1.2: something is there).
      if (headers['if-none-match'] !== undefined && !names.includes('If-None-Match')) continue;
      const sent = request(sidecar.url)
        [method](target)
        .set({ 'x-api-key': API_KEY, ...headers });
      if (body !== undefined && !NO_BODY.includes(method))
        void sent.type(type ?? 'application/json').send(body);
      const answer = await sent.buffer(true);
      statuses.add(answer.status);
      const documented = operation.responses[answer.status];
      const content = documented?.content?.[answer.type];
      const isNamed = documented && (content || !documented.content);
      const given = answer.type === 'application/json' ? answer.body : answer.text;
      const faults = (['described', 'any'] as const).map((fields) =>
        content ? objections(content.schema, given, fields) : [],
      );
      const headersNamed = Object.keys(documented?.headers ?? {}).map((header) => header.toLowerCase());
      const silent = ['etag', 'warning', 'retry-after', 'x-fleet-revision'].filter(
        (name) => answer.headers[name] !== undefined && !headersNamed.includes(name),
      );
      if (!isNamed || [...faults.flat(), ...silent].length > 0)
        found.push({ what, status: answer.status, type: answer.type, faults, silent });
    }
    expect(found).toEqual([]);
    // It was no single refusal that answered all of them.
    expect(statuses.size).toBeGreaterThan(path.startsWith('/api') ? 2 : 0);
  },
);

const EXAMPLES = OPERATIONS.flatMap(({ operation, ...described }) =>
  (operation['x-codeSamples'] ?? []).map(({ label, source }) => ({ ...described, operation, label, source })),
);

/** For examples that only read. */
const shared = onceForAll(startDescribed);

it.each(EXAMPLES)('$title, $label: is answered as its description says', async (example) => {
  const { method, path, operation, label, source } = example;
  const sent = readCurl(source, { PACKAGERDRM_URL: '', PACKAGERDRM_APIKEY: API_KEY });
  expect([sent.method, sent.target.split('?')[0]]).toEqual([method.toUpperCase(), addressOf(path)]);
  const body = operation.requestBody?.content[sent.headers['content-type'] ?? ''];
  const { value: described } = body?.examples?.[label] ?? {};
  expect(described).toEqual(typeof described === 'object' ? JSON.parse(sent.body ?? '') : sent.body);
  if (body) expect(objections(body.schema, described, 'any')).toEqual([]);
  const names = operation.parameters.map(({ name }) => name);
  const asked = [...new URLSearchParams(sent.target.split('?')[1]).keys()];
  expect(names).toEqual(expect.arrayContaining(asked));

  const { sidecar } = await (method === 'get' ? shared() : startDescribed());
  const answer = await request(sidecar.url)[method](sent.target).set(sent.headers).send(sent.body).buffer();
  const { schema = {}, examples } = operation.responses[200]?.content?.[answer.type] ?? {};
  const given = answer.type === 'application/json' ? answer.body : answer.text;
  expect([answer.status, objections(schema, given)]).toEqual([200, []]);
  const { value = given } = examples?.[label] ?? {};
  expect(given).toEqual(value);
});

it('shows an example of every operation', () => {
  const shown = EXAMPLES.map(({ title }) => title);
  expect(OPERATIONS.filter(({ title }) => !shown.includes(title))).toEqual([]);
});

itDescribesAnApi(DOCUMENT);

it('has the version that it is given', () => {
  expect(DOCUMENT.info.version).toBe('1.2.3');
});

it('the validator refuses a document with a reference to nothing', () => {
  expect(validateOpenApi({ ...DOCUMENT, components: {} })).toMatchObject({ valid: false });
});

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** Makes the service answer with an error. */
type Provoke = (described: Described) => PromiseLike<Answer>;

const KEY_FILE = '/api/keyfile/news';
const { cenc, playready, fairplay } = SUPPLIED;

const get =
  (path: string): Provoke =>
  ({ sidecar }) =>
    sidecar.api.get(path);
const post =
  (body: object | string, path = KEY_FILE, type = 'application/json'): Provoke =>
  ({ sidecar }) =>
    sidecar.api.post(path).type(type).send(body);
const remove =
  (path: string): Provoke =>
  ({ sidecar }) =>
    sidecar.api.delete(path);
const importing = (lines: string, query = '') => post(lines, KEY_FILE + query, 'text/plain');

/** A POST whose keys are fetched, while an upstream answers so. */
const provision =
  (path: string, status: number): Provoke =>
  ({ sidecar, upstream }) => {
    upstream.on(path, { status });
    return sidecar.api.post(KEY_FILE).send(FROM_PROVIDER);
  };

/** A request while a file is in the folder. */
const withFile =
  (name: string, text: string, path: string): Provoke =>
  async ({ sidecar }) => {
    await fs.writeFile(join(sidecar.folder, name), text);
    return sidecar.api.get(path).accept('application/json');
  };

/** A request to a sidecar without upstreams and fleet. */
const alone =
  (ask: (api: Described['sidecar']['api']) => PromiseLike<Answer>): Provoke =>
  async () =>
    ask((await startSidecar()).api);

/** A request while the fleet fails so. */
const inFleet =
  (code: ErrorCode, ask: Provoke): Provoke =>
  (described) => {
    described.fleet.fault = apiError(code, 'The engine fails.');
    return ask(described);
  };

const CMAF_KEYS = `\
cmafstreaming-cenc-key-id: ${cenc.keyid}
cmafstreaming-cenc-content-key: ${cenc.contentkey}
`;
const OTHER_CMAF_KEY = CMAF_KEYS.replace(cenc.contentkey, 'SvEMxZMGndWHIqCMoD45YA==');
const ALGORITHM = 'cmafstreaming-cenc-algorithm';
const ZERO = 'AAAAAAAAAAAAAAAAAAAAAA==';

/**
 * Each error provoked that no odd request is answered with, and the operation whose description must name it. Connections and
 * time have tests of their own.
 */
const PROVOKED: [code: ErrorCode, operationId: string, provoke: Provoke][] = [
  ['invalid_stream_id', 'readKeyFile', get('/api/keyfile/.news')],
  ['missing_line', 'writeKeyFile', importing(CMAF_KEYS)],
  ['wrong_constant', 'writeKeyFile', importing(`${CMAF_KEYS}${ALGORITHM}: AES\n`)],
  ['cmaf_disagrees', 'writeKeyFile', importing(`${fileOf(SUPPLIED)}${OTHER_CMAF_KEY}${ALGORITHM}: AESCTR\n`)],
  ['no_lines', 'writeKeyFile', importing('vendor-tier: gold\n', '?keepunknown=true')],
  ['key_id_byte_order', 'writeKeyFile', post(SWAPPED)],
  [
    'checksum_mismatch',
    'writeKeyFile',
    post({ cenc, playready: { ...playready, checksum: 'j+7cluk2J58=' } }),
  ],
  [
    'key_and_key_id_swapped',
    'writeKeyFile',
    post({ cenc: { keyid: cenc.contentkey, contentkey: cenc.keyid }, playready }),
  ],
  ['all_zero', 'writeKeyFile', post({ cenc: { ...cenc, contentkey: ZERO } })],
  [
    'content_key_in_address',
    'writeKeyFile',
    post({ fairplay: { ...fairplay, laurl: `skd://a/${fairplay.key.toLowerCase()}` } }),
  ],
  [
    'session_id_in_address',
    'writeKeyFile',
    post({ fairplay: { ...fairplay, laurl: 'skd://a/b?sessionid=1' } }),
  ],
  ['unknown_scheme', 'writeKeyFile', post({ cenc, widevine: { psshdata: 'IgRzaG93SAE=' } })],
  ['escaped_ampersand', 'writeKeyFile', post({ cenc, playready: { laurl: 'https://a/b?c=1&amp;d=2' } })],
  ['cpix_choice', 'writeKeyFile', post(CPIX_OF_TRACKS, KEY_FILE, 'application/cpix+xml')],
  ['cpix_not_usable', 'writeKeyFile', post({ cpix: CPIX_OF_TRACKS, track: 'SD', systems: ['playready'] })],
  ['key_file_malformed', 'readKeyFile', withFile('odd.key', 'a: b\nno line\n', '/api/keyfile/odd')],
  ['keys_missing', 'readKeyFile', withFile('a.key', fileOf({ cenc }), '/api/keyfile/a?as=cpix&scheme=cbcs')],
  ['cursor_expired', 'listKeyFiles', get('/api/keyfiles?cursor=gone.2')],
  ['client_unknown', 'writeKeyFile', provision('/config/demo', 404)],
  ['client_api_key_refused', 'writeKeyFile', provision('/config/demo', 403)],
  ['config_service_failed', 'writeKeyFile', provision('/config/demo', 500)],
  ['key_provider_failed', 'writeKeyFile', provision('/keys/cenc/demo/somecontentid', 500)],
  ['provisioning_not_configured', 'writeKeyFile', alone((api) => api.post(KEY_FILE).send(FROM_PROVIDER))],
  ['fleet_not_configured', 'readFleet', alone((api) => api.get('/api/fleet'))],
  ['packager_live', 'retirePackager', remove('/api/fleet/packagers/origin-1')],
  ['fleet_entry_unreadable', 'writeKeyFile', inFleet('fleet_entry_unreadable', post(SUPPLIED))],
  ['fleet_unavailable', 'writeKeyFile', inFleet('fleet_unavailable', post(SUPPLIED))],
  ['fleet_denied', 'readFleetStream', inFleet('fleet_denied', get('/api/fleet/news'))],
  ['fleet_wrong_secret', 'resealFleet', inFleet('fleet_wrong_secret', post({}, '/api/fleet/reseal'))],
  ['fleet_other', 'importIntoFleet', inFleet('fleet_other', post({}, '/api/fleet/import'))],
  ['fleet_outcome_unknown', 'removeKeyFile', inFleet('fleet_outcome_unknown', remove(KEY_FILE))],
  ['fleet_full', 'writeKeyFile', inFleet('fleet_full', post(SUPPLIED))],
  ['fleet_missing_secret', 'isReady', inFleet('fleet_missing_secret', get('/readyz'))],
  ['fleet_lost', 'isReady', inFleet('fleet_lost', get('/readyz'))],
  ['fleet_name_taken', 'isReady', inFleet('fleet_name_taken', get('/readyz'))],
  ['fleet_joining', 'isReady', inFleet('fleet_joining', get('/readyz'))],
];

const forAll = onceForAll(startDescribed);

it.each(PROVOKED)('%s of %s is answered as it is described', async (code, operationId, provoke) => {
  const found = OPERATIONS.find(({ operation }) => operation.operationId === operationId);
  const described = await forAll();
  described.upstream.onEach(answersFor('demo'));
  described.fleet.fault = undefined;
  const { status, body } = await provoke(described);
  const { schema = {} } = found?.operation.responses[status]?.content?.['application/json'] ?? {};
  expect([Object(body).errors?.[0]?.code, objections(schema, body)]).toEqual([code, []]);
});

it.each([
  ['get', '/nothing', DOCUMENT.components.responses.NoSuchPath],
  ['put', KEY_FILE, DOCUMENT.components.responses.NoSuchMethod],
] as const)('%s %s is answered as it is described', async (method, path, { content }) => {
  const { sidecar } = await startDescribed();
  const { body } = await sidecar.api[method](path);
  expect(objections(content?.['application/json']?.schema ?? {}, body)).toEqual([]);
});

it('describes every error of the catalogue, and no other', () => {
  const { responses } = DOCUMENT.components;
  const all = [...OPERATIONS.flatMap(({ operation }) => Object.values(operation.responses))];
  const described = [...all, ...Object.values(responses)].flatMap(({ description }) =>
    [...description.matchAll(/^`(\w+)`: /gm)].map(([, code]) => code),
  );
  // It is a warning only.
  expect([...new Set([...described, 'fleet_kept'])].sort()).toEqual(Object.keys(ALL_ERRORS).sort());
});

let app: Express | undefined;

jest.mock('../../../src/http/app', () => {
  const actual = jest.requireActual<typeof httpApp>('../../../src/http/app');
  const createApp: typeof actual.createApp = (shell, mount) =>
    actual.createApp(shell, (routes) => {
      app = routes;
      mount(routes);
    });
  return { ...actual, createApp };
});

/** Routes that do nothing but refuse every method. */
const REFUSALS = ['/api/keyfile', '/api/keyfile/*rest', '/api/fleet/*rest'];

/** The files of the pages. */
const PAGE_FILES = /^\/(?:docs|fleet)\//;

interface Layer {
  /** The path of what refuses OPTIONS everywhere is a pattern. */
  readonly route?: {
    readonly path: string | RegExp;
    readonly stack: readonly { readonly method?: string }[];
  };
}

async function routes(): Promise<string[]> {
  await startSidecar();
  const layers: readonly Layer[] = app?.router.stack ?? [];
  return layers.flatMap(({ route }) => {
    const { path, stack = [] } = route ?? {};
    if (typeof path !== 'string' || REFUSALS.includes(path) || PAGE_FILES.test(path)) return [];
    const methods = new Set(stack.flatMap(({ method }) => method ?? []));
    return [...methods].map((method) => `${method.toUpperCase()} ${path.replace(/:(\w+)/g, '{$1}')}`);
  });
}

it('describes every route of the service, and no other', async () => {
  const described = OPERATIONS.map(({ title }) => title);
  expect([...new Set(await routes())].sort()).toEqual(described.sort());
});

it.each(REFUSALS)('%s is no route to describe: it refuses whatever comes', async (path) => {
  const { api } = await startSidecar();
  const target = path.replace('*rest', 'a/b');
  for (const method of ['get', 'post', 'delete'] as const) await api[method](target).expect(400);
});

it('needs the API key exactly where it says so', async () => {
  const { unauthenticated } = await startSidecar();
  for (const { title, method, path, operation } of OPERATIONS) {
    const { status } = await unauthenticated[method](addressOf(path));
    expect([title, status === 401 || status === 429]).toEqual([title, operation.security.length > 0]);
  }
});
