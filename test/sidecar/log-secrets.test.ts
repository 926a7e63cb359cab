import { CENC_ONLY, POST_MANUAL, SWAPPED_KEY_ID } from '../support/post-manual';
import { rawRequest } from '../support/raw-http';
import {
  PATHS,
  PLAIN_CENC,
  PLAIN_FAIRPLAY,
  PROVIDED,
  provisioningForAll,
  SHARED_SECRET,
  sealed,
  startProvisioning,
} from '../support/start-provisioning';
import { API_KEY, type TestSidecar } from '../support/start-sidecar';
import { until } from '../support/until';
import { drmVectors } from '../vectors/drm-vectors';

const PATH = '/api/keyfile/demo';
const WRONG_API_KEY = 'a-wrong-api-key-that-someone-sent';
const CLIENT_API_KEY = PROVIDED.clientApiKey;

/** A key in every form it may be written in. */
function formsOf(base64: string): string[] {
  const hex = Buffer.from(base64, 'base64').toString('hex');
  return [base64, base64.replaceAll('=', ''), hex, hex.toUpperCase(), Buffer.from(base64).toString('base64')];
}

const SECRETS: readonly string[] = [
  API_KEY,
  WRONG_API_KEY,
  CLIENT_API_KEY,
  SHARED_SECRET,
  SHARED_SECRET.slice(0, 16),
  ...formsOf(POST_MANUAL.cenc.contentkey),
  ...formsOf(PLAIN_CENC.content_key ?? ''),
  ...[POST_MANUAL.fairplay.key, POST_MANUAL.fairplay.iv].flatMap((hex) => [hex, hex.toLowerCase()]),
  ...[PLAIN_FAIRPLAY.key_hex ?? '', PLAIN_FAIRPLAY.iv_hex ?? ''].flatMap((hex) => [hex, hex.toLowerCase()]),
  ...Object.values(drmVectors.envelope.negative).map(({ key }) => key.slice(0, 40)),
];

/** The secrets that a text gives away, whole or by their first 12 characters. */
function secretsIn(text: string): string[] {
  return SECRETS.filter((secret) => text.includes(secret.slice(0, 12)));
}

const { cenc, fairplay } = POST_MANUAL;

const GOOD: [what: string, body: object][] = [
  ['keys in the body', POST_MANUAL],
  ['keys from the provider', PROVIDED],
  ["keys in the body next to a provider's content", { ...PROVIDED, ...POST_MANUAL }],
  ['drmjson that holds the keys', { ...CENC_ONLY, drmJson: JSON.stringify(POST_MANUAL) }],
];

const BAD: [what: string, body: string | object][] = [
  ['cut off', JSON.stringify(POST_MANUAL).slice(0, -2)],
  ['a key alone', cenc.contentkey],
  ['a stray comma behind a key', `{"cenc":{"contentkey":"${cenc.contentkey}",,}}`],
  ['a client key in a broken body', `{"clientApiKey":"${CLIENT_API_KEY}"`],
  ['hex where base64 belongs', { cenc: { ...cenc, contentkey: '967034de62eec672f7b6889133157867' } }],
  ['a key where an address belongs', { cenc, playready: { laurl: cenc.contentkey } }],
  ['a key where Widevine data belongs', { cenc, widevine: { psshdata: cenc.contentkey } }],
  ['a key in place of an object', { cenc: cenc.contentkey }],
  ['a key in a misspelt field', { cenc: { keyid: cenc.keyid, contentKey: cenc.contentkey } }],
  ['a swapped key id', { ...POST_MANUAL, cenc: { ...cenc, keyid: SWAPPED_KEY_ID } }],
  ['a client key as client', { ...PROVIDED, client: `${CLIENT_API_KEY}/` }],
];

const inStream = (fields: object) => ({ streams: [{ streamid: 'a', ...fields }] });
const inGroup = (fields: object) => ({ groups: [{ members: ['a'], ...fields }] });
const KEY_IN_SMIL = `<smil><body><video src="a?key=${fairplay.key}"/></body></smil>`;
const KEY_AS_CONTENT = {
  ...PROVIDED,
  keys: 'each',
  members: [{ streamid: 'a', contentId: cenc.contentkey }],
};

const BATCHES: [what: string, batch: object][] = [
  ['good keys', { ...inStream(POST_MANUAL), groups: [{ members: ['b'], ...POST_MANUAL }] }],
  ['provisioned keys', { ...inStream(PROVIDED), groups: [{ members: ['b'], ...PROVIDED }] }],
  ['a key as stream id', inStream({ streamid: cenc.contentkey, ...CENC_ONLY })],
  ['a key as entry', { streams: [cenc.contentkey] }],
  ['a key as member', inGroup({ members: [cenc.contentkey, { streamid: cenc.contentkey }], ...CENC_ONLY })],
  ['a key as kind of keys', inGroup({ keys: cenc.contentkey, ...CENC_ONLY })],
  ['a key as document', { groups: [{ smil: cenc.contentkey, ...CENC_ONLY }] }],
  ['a key in a document', { groups: [{ smil: KEY_IN_SMIL }] }],
  ['a key as content id', inGroup(KEY_AS_CONTENT)],
  ['a checksum of another key', inStream({ ...POST_MANUAL, cenc: { ...cenc, keyid: SWAPPED_KEY_ID } })],
];

const start = provisioningForAll();

/** What is logged of so many requests. */
async function logOf({ logged }: TestSidecar, requests: number, ask: () => Promise<unknown>) {
  const before = logged().length;
  await ask();
  const log = () => logged().slice(before);
  await until(() => (log().match(/"message":"request"/g) ?? []).length === requests);
  return log();
}

describe('the log and the answers give no secret away', () => {
  it.each(GOOD)('when a POST brings %s, and GET and DELETE follow', async (_what, body) => {
    const { sidecar } = await start();
    const log = await logOf(sidecar, 3, async () => {
      await sidecar.api.post(PATH).send(body).expect(200);
      await sidecar.api.get(PATH).expect(200);
      await sidecar.api.delete(PATH).expect(200);
    });
    expect(secretsIn(log)).toEqual([]);
  });

  it.each(BAD)('when a POST brings %s', async (_what, body) => {
    const { sidecar } = await start();
    const log = await logOf(sidecar, 1, async () => {
      const answer = await sidecar.api.post(PATH).type('json').send(body).expect(400);
      expect(secretsIn(JSON.stringify([answer.text, answer.headers]))).toEqual([]);
    });
    expect(log).toContain('"status":400');
    expect(secretsIn(log)).toEqual([]);
  });

  it.each(BATCHES)('when a batch brings %s', async (_what, batch) => {
    const { sidecar } = await start();
    const log = await logOf(sidecar, 2, async () => {
      for (const query of ['?dryrun=true', '']) {
        const { text, headers } = await sidecar.api.post(`/api/keyfiles${query}`).send(batch).expect(200);
        expect(secretsIn(JSON.stringify([text, headers]))).toEqual([]);
      }
    });
    expect(log.match(/"message":"batch"/g)).toHaveLength(2);
    expect(secretsIn(log)).toEqual([]);
  });

  it('when checks only warn', async () => {
    const { sidecar } = await startProvisioning({ checks: 'warn' });
    const body = { ...POST_MANUAL, cenc: { ...cenc, keyid: SWAPPED_KEY_ID }, contentId: 'another' };
    const answer = await sidecar.api.post(PATH).send(body).expect(200);
    expect(secretsIn(JSON.stringify(answer.headers))).toEqual([]);
    const log = await sidecar.logText();
    expect(log).toContain('"level":"warn"');
    expect(secretsIn(log)).toEqual([]);
  });

  it('when keys are sent wrongly: in another header, twice, in the path or in the query', async () => {
    const { sidecar } = await startProvisioning();
    const { port } = sidecar;
    const key = cenc.contentkey;
    const answers = [
      await rawRequest(port, 'GET', PATH, { 'x-api-key': WRONG_API_KEY }),
      await rawRequest(port, 'GET', PATH, { 'x-api-key': [API_KEY, API_KEY] }),
      await rawRequest(port, 'GET', PATH, { 'api-key': API_KEY, authorization: `Bearer ${API_KEY}` }),
      await rawRequest(port, 'GET', `${PATH}?x-api-key=${API_KEY}&key=${key}`, {}),
      await rawRequest(port, 'GET', `/api/${API_KEY}/${key}`, { 'x-api-key': API_KEY }),
      await rawRequest(port, 'GET', `/api/keyfile/${encodeURIComponent(key)}%00`, { 'x-api-key': API_KEY }),
      await rawRequest(port, 'GET', `/api/keyfile/%E0%A4%A${key}`, { 'x-api-key': API_KEY }),
      await rawRequest(port, 'GET', PATH, { 'x-api-key': API_KEY, 'x-request-id': `${key} ${key}` }),
      await rawRequest(port, 'POST', PATH, { 'x-api-key': API_KEY, 'content-type': key }, key),
      await rawRequest(port, key.replaceAll(/[^A-Z]/g, ''), PATH, { 'x-api-key': API_KEY }).catch(
        () => undefined,
      ),
    ];
    expect(secretsIn(JSON.stringify(answers))).toEqual([]);
    expect(secretsIn(await sidecar.logText())).toEqual([]);
  });

  const negatives = Object.entries(drmVectors.envelope.negative);
  const SCRIPTS = [
    ...negatives.map(([name, body]): [string, string, Parameters<typeof sealed>[0]] => [
      name,
      PATHS.cenc,
      { body },
    ]),
    ['plain CENC keys', PATHS.cenc, { body: PLAIN_CENC }],
    ['a 500 that quotes keys', PATHS.cenc, { status: 500, body: PLAIN_CENC }],
    ['broken JSON with keys in it', PATHS.cenc, { body: `${JSON.stringify(PLAIN_CENC)},` }],
    ['broken JSON in an envelope', PATHS.cenc, sealed(`${PLAIN_CENC.content_key} is the key`)],
    [
      'a key with a stray byte',
      PATHS.cenc,
      sealed({ ...PLAIN_CENC, content_key: `${PLAIN_CENC.content_key}A` }),
    ],
    ['a checksum of another key', PATHS.cenc, sealed({ ...PLAIN_CENC, playready_checksum: 'pcTs6CEp98A=' })],
    [
      'a redirect with a key in it',
      PATHS.cenc,
      { status: 302, headers: { location: `/${PLAIN_CENC.content_key}` } },
    ],
    ['a request id that is a sentence', PATHS.cenc, { headers: { 'x-request-id': `key: ${SHARED_SECRET}` } }],
    ['a cut connection', PATHS.cenc, 'reset'],
    ['a client record that is broken JSON', PATHS.config, { body: `{"shared_secret":"${SHARED_SECRET}",}` }],
    ['a client record that is a list', PATHS.config, { body: [SHARED_SECRET] }],
    ['a shared secret too short', PATHS.config, { body: { shared_secret: SHARED_SECRET.slice(0, 15) } }],
    ['a refusal that quotes the client key', PATHS.config, { status: 401, body: CLIENT_API_KEY }],
  ] as [what: string, path: string, script: ReturnType<typeof sealed>][];

  it.each(SCRIPTS)('when an upstream answers with %s', async (_what, path, script) => {
    const { sidecar, upstream } = await start();
    upstream.on(path, script);
    const log = await logOf(sidecar, 1, async () => {
      const answer = await sidecar.api.post(PATH).send(PROVIDED);
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(secretsIn(JSON.stringify([answer.text, answer.headers]))).toEqual([]);
    });
    expect(log).toContain('"message":"upstream call"');
    expect(secretsIn(log)).toEqual([]);
  });
});
