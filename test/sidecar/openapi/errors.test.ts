import { join } from 'node:path';
import fs from 'fs-extra';
import type { FleetState } from '../../../src/api/fleet';
import { errorBody, toHttpError } from '../../../src/http/errors';
import { requireAllStreams, requireWrite } from '../../../src/sidecar/access/api-key';
import { ALL_ERRORS, apiError, type ErrorCode, sentenceOf } from '../../../src/sidecar/errors';
import { FROM_PROVIDER, fileOf, SUPPLIED, SWAPPED } from '../../../src/sidecar/openapi/examples';
import { objections } from '../../support/accepts-schema';
import { cpixVector, recipientNamed } from '../../support/cpix';
import { CPIX_OF_TRACKS } from '../../support/cpix-of-tracks';
import { rawExchange, rawRequest } from '../../support/raw-http';
import { type Described, DOCUMENT, OPERATIONS, startDescribed } from '../../support/start-described';
import { API_KEY, startSidecar } from '../../support/start-sidecar';

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** Makes the service answer with an error. */
type Provoke = (described: Described) => Promise<Answer> | Answer;

const KEY_FILE = '/api/keyfile/news';
const KID = '44da52ef-4523-098e-6854-777ee322681d';
const { cenc, playready, fairplay } = SUPPLIED;

const get =
  (path: string): Provoke =>
  ({ sidecar }) =>
    sidecar.api.get(path);
const post =
  (body: object, path = KEY_FILE): Provoke =>
  ({ sidecar }) =>
    sidecar.api.post(path).send(body);

const importing =
  (lines: string, query = ''): Provoke =>
  ({ sidecar }) =>
    sidecar.api.post(`${KEY_FILE}${query}`).type('text/plain').send(lines);

/** A request while the fleet fails so. */
const inFleet =
  (code: ErrorCode, ask: Provoke): Provoke =>
  (described) => {
    described.fleet.fail(apiError(code, sentenceOf(code)));
    return ask(described);
  };

/** A sidecar of a fleet that should get no requests. */
const unready =
  (code: ErrorCode, state: FleetState): Provoke =>
  ({ sidecar, fleet }) => {
    fleet.setState(state, apiError(code, sentenceOf(code)));
    return sidecar.api.get('/readyz');
  };

const CMAF_KEYS = `\
cmafstreaming-cenc-key-id: ${cenc.keyid}
cmafstreaming-cenc-content-key: ${cenc.contentkey}
`;

/** A POST whose keys are fetched, while an upstream answers so. */
const provision =
  (path: string, status: number): Provoke =>
  async ({ sidecar, upstream }) => {
    upstream.on(path, { status });
    return sidecar.api.post(KEY_FILE).send(FROM_PROVIDER);
  };

const thrown = (error: unknown): Answer => {
  const found = toHttpError(error);
  return { status: found.status, body: errorBody(found) };
};

/** The answer to what is no HTTP for a client library. */
async function exchange(port: number, text: string): Promise<Answer> {
  const received = await rawExchange(port, text, /\]\}$/);
  const [, status, body = ''] = /^HTTP\/1\.1 (\d+) .*?\r\n\r\n(.*)$/s.exec(received) ?? [];
  return { status: Number(status), body: JSON.parse(body) };
}

/** A POST that announces no body; client libraries announce an empty one. */
const CHECK_OF_NOTHING = `POST /api/check HTTP/1.1\r\nhost: localhost\r\nx-api-key: ${API_KEY}\r\n\r\n`;

/** What a right that is missing is answered with. */
function refusal(require: () => void): Answer {
  try {
    require();
  } catch (error) {
    return thrown(error);
  }
  throw new Error('The key has the right');
}

/** A POST of a CPIX document that something is replaced in. */
const sending =
  (from: string | RegExp, to: string): Provoke =>
  ({ sidecar }) =>
    sidecar.api.post(KEY_FILE).type('application/cpix+xml').send(CPIX_OF_TRACKS.replaceAll(from, to));

/** Each error provoked, and in whose description it is looked up: an operation's, or everyone's. */
const PROVOKED: [code: ErrorCode, operationId: string, provoke: Provoke][] = [
  ['invalid_stream_id', 'readKeyFile', get('/api/keyfile/.news')],
  ['invalid_path', 'readKeyFile', get('/api/keyfile/%ff')],
  ['invalid_query', 'writeKeyFile', post(SUPPLIED, `${KEY_FILE}?dryrun=yes`)],
  ['invalid_query', 'writeKeyFiles', post({}, '/api/keyfiles?dryrun=yes')],
  ['invalid_query', 'listKeyFiles', get('/api/keyfiles?limit=0')],
  ['invalid_query', 'checkKeyMaterial', post(SUPPLIED, '/api/check?reveal=yes')],
  ['invalid_body', 'writeKeyFile', post({ cenc: { ...cenc, keyid: '44da52ef4523098e6854777ee322681d' } })],
  ['invalid_body', 'writeKeyFiles', post({}, '/api/keyfiles')],
  ['invalid_body', 'checkKeyMaterial', ({ sidecar }) => exchange(sidecar.port, CHECK_OF_NOTHING)],
  ['unknown_field', 'writeKeyFile', post({ cenc, widevin: {} })],
  ['unknown_field', 'writeKeyFiles', post({ stream: [] }, '/api/keyfiles')],
  ['unknown_line', 'writeKeyFile', importing(`${fileOf(SUPPLIED)}vendor-tier: gold\n`)],
  ['missing_line', 'writeKeyFile', importing(`${CMAF_KEYS}`)],
  ['wrong_constant', 'writeKeyFile', importing(`${CMAF_KEYS}cmafstreaming-cenc-algorithm: AES\n`)],
  [
    'cmaf_disagrees',
    'writeKeyFile',
    importing(`\
${fileOf(SUPPLIED)}${CMAF_KEYS.replace(cenc.contentkey, 'SvEMxZMGndWHIqCMoD45YA==')}cmafstreaming-cenc-algorithm: AESCTR
`),
  ],
  ['no_lines', 'writeKeyFile', importing('vendor-tier: gold\n', '?keepunknown=true')],
  ['malformed_json', 'writeKeyFile', ({ sidecar }) => sidecar.api.post(KEY_FILE).type('json').send('{')],
  [
    'malformed_json',
    'checkKeyMaterial',
    ({ sidecar }) => sidecar.api.post('/api/check').type('json').send('{'),
  ],
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
  ['all_zero', 'writeKeyFile', post({ cenc: { ...cenc, contentkey: 'AAAAAAAAAAAAAAAAAAAAAA==' } })],
  [
    'session_id_in_address',
    'writeKeyFile',
    post({ fairplay: { ...fairplay, laurl: 'skd://a/b?sessionid=1' } }),
  ],
  ['unknown_scheme', 'writeKeyFile', post({ cenc, widevine: { psshdata: 'IgRzaG93SAE=' } })],
  ['escaped_ampersand', 'writeKeyFile', post({ cenc, playready: { laurl: 'https://a/b?c=1&amp;d=2' } })],
  ['invalid_cpix', 'writeKeyFile', sending('a8c4ee9a-4cf9-76b8-1bba-c598f9f8b92c', KID)],
  ['cpix_choice', 'writeKeyFile', sending('', '')],
  [
    'cpix_not_usable',
    'writeKeyFile',
    ({ sidecar }) =>
      sidecar.api.post(KEY_FILE).send({ cpix: CPIX_OF_TRACKS, track: 'SD', systems: ['playready'] }),
  ],
  [
    'cpix_not_opened',
    'writeKeyFile',
    async () => {
      const { api } = await startSidecar({}, undefined, { cpixRecipient: () => recipientNamed('Cert1') });
      const wrong = cpixVector('Invalid_WrongMac.xml');
      return api.post(KEY_FILE).type('application/cpix+xml').send(wrong);
    },
  ],
  ['bad_request', 'readKeyFile', ({ sidecar }) => exchange(sidecar.port, 'HELLO\r\n\r\n')],
  ['unauthorized', 'readKeyFile', ({ sidecar }) => sidecar.unauthenticated.get(KEY_FILE)],
  ['key_file_not_found', 'readKeyFile', get('/api/keyfile/absent')],
  ['key_file_not_found', 'removeKeyFile', ({ sidecar }) => sidecar.api.delete('/api/keyfile/absent')],
  ['cursor_expired', 'listKeyFiles', get('/api/keyfiles?cursor=gone.2')],
  ['body_too_large', 'writeKeyFile', post({ drmjson: 'x'.repeat(64 * 1024) })],
  ['body_too_large', 'checkKeyMaterial', post({ value: 'x'.repeat(64 * 1024) }, '/api/check')],
  ['body_too_large', 'writeKeyFiles', post({ streams: 'x'.repeat(16 * 1024 * 1024) }, '/api/keyfiles')],
  ['client_unknown', 'writeKeyFile', provision('/config/demo', 404)],
  ['client_api_key_refused', 'writeKeyFile', provision('/config/demo', 403)],
  ['config_service_failed', 'writeKeyFile', provision('/config/demo', 500)],
  ['key_provider_failed', 'writeKeyFile', provision('/keys/cenc/demo/somecontentid', 500)],
  [
    'forbidden',
    'writeKeyFile',
    () => refusal(() => requireWrite({ name: 'monitoring', scope: 'read', streams: undefined }, 'news')),
  ],
  [
    'not_a_key_file',
    'readKeyFile',
    ({ sidecar }) => {
      fs.symlinkSync('news.key', join(sidecar.folder, 'link.key'));
      return sidecar.api.get('/api/keyfile/link');
    },
  ],
  [
    'key_file_malformed',
    'readKeyFile',
    ({ sidecar }) => {
      fs.writeFileSync(join(sidecar.folder, 'odd.key'), 'a: b\nc: d\nno line\n');
      return sidecar.api.get('/api/keyfile/odd').accept('application/json');
    },
  ],
  [
    'keys_missing',
    'readKeyFile',
    ({ sidecar }) => {
      fs.writeFileSync(join(sidecar.folder, 'odd.key'), fileOf({ cenc }));
      return sidecar.api.get('/api/keyfile/odd?as=cpix&scheme=cbcs');
    },
  ],
  ['invalid_query', 'readKeyFile', get(`${KEY_FILE}?as=shakka`)],
  [
    'precondition_failed',
    'writeKeyFile',
    ({ sidecar }) => sidecar.api.post(KEY_FILE).set('if-match', '"another"').send(SUPPLIED),
  ],
  [
    'unsupported_media_type',
    'writeKeyFile',
    ({ sidecar }) => sidecar.api.post(KEY_FILE).type('text/html').send('x'),
  ],
  [
    'unsupported_media_type',
    'writeKeyFiles',
    ({ sidecar }) => sidecar.api.post('/api/keyfiles').type('text/plain').send('x'),
  ],
  [
    'unsupported_media_type',
    'checkKeyMaterial',
    ({ sidecar }) => sidecar.api.post('/api/check').type('text/html').send('x'),
  ],
  [
    'too_many_attempts',
    'readKeyFile',
    async ({ sidecar }) => {
      const ask = () => sidecar.unauthenticated.get(KEY_FILE).set('x-api-key', 'wrong');
      for (let attempt = 0; attempt < 10; attempt += 1) await ask().expect(401);
      return ask();
    },
  ],
  [
    'request_header_fields_too_large',
    'readKeyFile',
    async ({ sidecar }) => {
      const headers = { 'x-long': 'x'.repeat(20_000) };
      const { status, text } = await rawRequest(sidecar.port, 'GET', KEY_FILE, headers);
      return { status, body: JSON.parse(text) };
    },
  ],
  [
    'provisioning_not_configured',
    'writeKeyFile',
    async () => {
      const { api } = await startSidecar();
      return api.post(KEY_FILE).send(FROM_PROVIDER);
    },
  ],
  [
    'invalid_header',
    'writeKeyFile',
    ({ sidecar }) => sidecar.api.post(KEY_FILE).set('if-match', 'no tag').send(SUPPLIED),
  ],
  [
    'invalid_header',
    'removeKeyFile',
    ({ sidecar }) => sidecar.api.delete(KEY_FILE).set('if-match', 'no tag'),
  ],
  ['invalid_query', 'removeKeyFile', ({ sidecar }) => sidecar.api.delete(`${KEY_FILE}?dryrun=true`)],
  [
    'invalid_header',
    'writeKeyFiles',
    ({ sidecar }) => sidecar.api.post('/api/keyfiles').set('if-match', '*').send({ streams: [] }),
  ],
  [
    'fleet_not_configured',
    'readFleet',
    async () => {
      const { api } = await startSidecar();
      return api.get('/api/fleet');
    },
  ],
  ['fleet_entry_not_found', 'readFleetStream', get('/api/fleet/archive')],
  [
    'packager_not_found',
    'retirePackager',
    async ({ sidecar }) => {
      await sidecar.api.delete('/api/fleet/packagers/origin-9').expect(200);
      return sidecar.api.delete('/api/fleet/packagers/origin-9');
    },
  ],
  ['fleet_entry_unreadable', 'writeKeyFile', inFleet('fleet_entry_unreadable', post(SUPPLIED))],
  ['fleet_unavailable', 'writeKeyFile', inFleet('fleet_unavailable', post(SUPPLIED))],
  ['fleet_denied', 'readFleetStream', inFleet('fleet_denied', get('/api/fleet/news'))],
  ['fleet_wrong_secret', 'resealFleet', inFleet('fleet_wrong_secret', post({}, '/api/fleet/reseal'))],
  ['fleet_other', 'importIntoFleet', inFleet('fleet_other', post({}, '/api/fleet/import'))],
  ['fleet_lost', 'isReady', unready('fleet_lost', 'lost_fleet')],
  ['fleet_name_taken', 'isReady', unready('fleet_name_taken', 'name_taken')],
  ['fleet_joining', 'isReady', unready('fleet_joining', 'joining')],
  [
    'fleet_outcome_unknown',
    'removeKeyFile',
    inFleet('fleet_outcome_unknown', ({ sidecar }) => sidecar.api.delete(KEY_FILE)),
  ],
  ['fleet_full', 'writeKeyFile', inFleet('fleet_full', post(SUPPLIED))],
  [
    'forbidden',
    'readFleet',
    () => refusal(() => requireAllStreams({ name: 'site-a', scope: 'write', streams: ['a/'] })),
  ],
  ['invalid_query', 'readFleet', get('/api/fleet?prefix=news')],
  ['invalid_query', 'importIntoFleet', post({}, '/api/fleet/import?limit=1001')],
  [
    'invalid_query',
    'retirePackager',
    ({ sidecar }) => sidecar.api.delete('/api/fleet/packagers/origin-9?force=true'),
  ],
  [
    'too_many_batches',
    'writeKeyFiles',
    async ({ sidecar, upstream }) => {
      upstream.on('/config/demo', 'hang');
      const batch = { streams: [{ streamid: 'a', ...FROM_PROVIDER }] };
      const send = () => sidecar.api.post('/api/keyfiles').send(batch);
      const underWay = Array.from({ length: 4 }, () => send().catch(() => undefined));
      while (upstream.received.filter(({ path }) => path === '/config/demo').length < 4) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      const answer = await send();
      void Promise.allSettled(underWay);
      return answer;
    },
  ],
];

it.each(PROVOKED)('%s of %s is answered as it is described', async (code, operationId, provoke) => {
  const found = OPERATIONS.find(({ operation }) => operation.operationId === operationId);
  const { status, body } = await provoke(await startDescribed());
  const { schema = {} } = found?.operation.responses[status]?.content?.['application/json'] ?? {};
  expect([status, Object(body).errors?.[0]?.code, objections(schema, body)]).toEqual([status, code, []]);
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
  const all = [
    ...OPERATIONS.flatMap(({ operation }) => Object.values(operation.responses)),
    ...Object.values(responses),
  ];
  const described = all.flatMap(({ description }) =>
    [...description.matchAll(/^`(\w+)`: /gm)].map(([, code]) => code),
  );
  // It is a warning only.
  expect([...new Set([...described, 'fleet_kept'])].sort()).toEqual(Object.keys(ALL_ERRORS).sort());
});
