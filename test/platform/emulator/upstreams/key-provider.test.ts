import fc from 'fast-check';
import { openEnvelope } from '../../../../src/drm/envelope';
import { type ContentKeys, deriveKeys } from '../../../../src/platform/emulator/upstreams/key-provider';
import { onceForAll } from '../../../support/after-test';
import { anyCharacter } from '../../../support/any-character';
import { errorBody } from '../../../support/error-body';
import { rawRequest } from '../../../support/raw-http';
import { right } from '../../../support/right';
import { startEmulator, type TestEmulator } from '../../../support/start-emulator';

const shared = onceForAll(() => startEmulator());

const KEY = 'demo-client-api-key';
const PLAYREADY_URL = 'https://playready-license.example.com/rightsmanager.asmx';
const WIDEVINE_URL = 'https://widevine-license.example.com/proxy';

/** The answers for the content `demo` of the default client: its keys are the same today as ever. */
const ANSWERS = {
  cenc: {
    key_id_big: 'Dlj11ea0QZepsUOGRu9HZQ==',
    key_id_hex: '0E58F5D5E6B44197A9B1438646EF4765',
    content_key: 'SvEMxZMGndWHIqCMoD45YA==',
    content_key_hex: '4AF10CC593069DD58722A08CA03E3960',
    playready_key_iv: '3c7016e458e02000',
    playready_laurl: PLAYREADY_URL,
    playready_checksum: 'Dxfit8olywo=',
    widevine_drm_specific_data: 'IgRkZW1vSOPclZsG',
    widevine_laurl: WIDEVINE_URL,
  },
  fairplay: {
    key_hex: 'E6B073C959B1C944FFDCEFF8200D8308',
    iv_hex: 'EC8180E2BD03752DD1D768E2705BBB3E',
    laurl: 'skd://fairplay-license.example.com/license/demo',
  },
  widevine: {
    key_id: 'Dlj11ea0QZepsUOGRu9HZQ==',
    key_id_hex: '0E58F5D5E6B44197A9B1438646EF4765',
    content_key: 'SvEMxZMGndWHIqCMoD45YA==',
    laurl: WIDEVINE_URL,
    drm_specific_data: 'EhAOWPXV5rRBl6mxQ4ZG70dlIgRkZW1vSOPclZsG',
  },
  playready: {
    key_id: '1fVYDrTml0GpsUOGRu9HZQ==',
    key_id_guid: '0e58f5d5-e6b4-4197-a9b1-438646ef4765',
    key_id_hex: 'D5F5580EB4E69741A9B1438646EF4765',
    content_key: 'SvEMxZMGndWHIqCMoD45YA==',
    laurl: PLAYREADY_URL,
    service_id: 'nTH+pxBPQe6/YRZhPmF6Ow==',
    key_iv: '3c7016e458e02000',
    checksum: 'Dxfit8olywo=',
  },
  aes: {
    key_hex: 'c2f1011fc195327e818112e469ea09aa',
    key_url: 'https://keyprovider.example.com/aes/getkey/demo/demo',
  },
};

type Kind = keyof typeof ANSWERS;
const KINDS = Object.keys(ANSWERS) as Kind[];

async function fetchEnvelope({ api, client }: TestEmulator, kind: Kind, contentId: string): Promise<string> {
  const call = api.get(`/keyprovider/${kind}/${client.name}/${contentId}`);
  const { body } = await call.expect('cache-control', 'no-store').expect(200);
  expect(body).toEqual({ key: expect.any(String) });
  return body.key;
}

async function fetchKeys(emulator: TestEmulator, kind: Kind, contentId: string) {
  const { name: client, sharedSecret } = emulator.client;
  const envelope = await fetchEnvelope(emulator, kind, contentId);
  return JSON.parse(right(openEnvelope(envelope, { client, sharedSecret })).value);
}

test.each(KINDS)('answers every field of %s in an envelope', async (kind) => {
  expect(await fetchKeys(await shared(), kind, 'demo')).toEqual(ANSWERS[kind]);
});

test('answers the same envelope after a restart', async () => {
  const before = await fetchEnvelope(await startEmulator(), 'cenc', 'film-1');
  expect(await fetchEnvelope(await startEmulator(), 'cenc', 'film-1')).toBe(before);
});

test('seals the envelope for its client alone', async () => {
  const emulator = await shared();
  const envelope = await fetchEnvelope(emulator, 'cenc', 'demo');
  const { name: client, sharedSecret } = emulator.client;
  const mismatch = { ok: false, problem: expect.objectContaining({ code: 'hash_mismatch' }) };
  expect(openEnvelope(envelope, { client: 'other', sharedSecret })).toEqual(mismatch);
  expect(openEnvelope(envelope, { client, sharedSecret: `${sharedSecret}x` })).toEqual(mismatch);
});

test.each(['a', '0', 'A-b_c.d', '...', 'x'.repeat(200)])('takes the content id %s', async (contentId) => {
  const keys = await fetchKeys(await shared(), 'fairplay', contentId);
  expect(keys.laurl).toBe(`skd://fairplay-license.example.com/license/${contentId}`);
});

test.each([
  ['with a wrong key, whatever its content id', 'fairplay/demo/a%20b', 'wrong', 401, 'api_key_refused'],
  ['for another kind of keys', 'clearkey/demo/film', KEY, 404, 'not_found'],
] as const)('answers no keys to a request %s', async (_case, path, key, status, code) => {
  const { unauthenticated } = await shared();
  const response = await unauthenticated.get(`/keyprovider/${path}`).set('API-KEY', key);
  expect([response.status, response.body.errors[0].code]).toEqual([status, code]);
});

// Sent as they stand: a URL parser would resolve the dots before they reach the service.
test.each(['.', '..', '%2e', '%2E%2e', 'a%2Fb', 'a%20b', 'a%00', 'caf%C3%A9', 'a+b', 'a~', 'x'.repeat(201)])(
  'answers 400 to the content id %s',
  async (contentId) => {
    const { port, client } = await shared();
    const path = `/keyprovider/cenc/${client.name}/${contentId}`;
    const { status, text } = await rawRequest(port, 'GET', path, { 'API-KEY': client.apiKey });
    const description = 'A content id is 1 to 200 letters, digits, _, - and ., and not . or ..';
    expect([status, JSON.parse(text)]).toEqual([400, errorBody('invalid_content_id', description)]);
  },
);

const CONFIG_PATH = '/config/v1/clients/demo';

const RECORD = {
  client: 'demo',
  shared_secret: 'demo-shared-secret-0123456789',
  drm_providers: ['widevine', 'playready', 'fairplay'],
  license_urls: {
    widevine: 'https://widevine-license.example.com/proxy',
    playready: 'https://playready-license.example.com/rightsmanager.asmx',
    fairplay: 'skd://fairplay-license.example.com/license',
  },
};

const MISSING = errorBody('api_key_missing', "Send the client's API key in the header API-KEY.");
const REFUSED = errorBody('api_key_refused', "The header API-KEY does not hold this client's API key.");

test.each<Record<string, string>>([{ 'API-KEY': KEY }, { API_KEY: KEY }, { 'API-KEY': KEY, API_KEY: KEY }])(
  'answers the record to the API key in %j',
  async (sent) => {
    const { status, headers, body } = await (await shared()).unauthenticated.get(CONFIG_PATH).set(sent);
    expect([status, headers['cache-control'], body]).toEqual([200, 'no-store', RECORD]);
  },
);

test.each<[string, Record<string, string>, object]>([
  ['no key', {}, MISSING],
  ['an empty key', { 'API-KEY': '' }, REFUSED],
  ['another key', { 'API-KEY': 'demo-client-api-kez' }, REFUSED],
  ['a right and a wrong key', { 'API-KEY': KEY, API_KEY: 'other' }, REFUSED],
])('answers 401 to %s', async (_case, headers, body) => {
  await (await shared()).unauthenticated.get(CONFIG_PATH).set(headers).expect(401, body);
});

test('answers 404 to the name of a client that does not exist', async () => {
  const sentence = 'There is no client of this name. The emulator knows the one that EMULATOR_CLIENT names.';
  const unknown = errorBody('client_unknown', sentence);
  await (await shared()).api.get('/config/v1/clients/nobody').expect(404, unknown);
});

test('answers the record of the client that the environment names', async () => {
  const { unauthenticated } = await startEmulator({
    EMULATOR_CLIENT: 'acme',
    EMULATOR_CLIENT_API_KEY: 'acme-key',
    EMULATOR_CLIENT_SHARED_SECRET: 'acme-shared-secret',
  });
  const response = await unauthenticated.get('/config/v1/clients/acme').set('API-KEY', 'acme-key');
  expect(response.body).toEqual({ ...RECORD, client: 'acme', shared_secret: 'acme-shared-secret' });
});

const OWNER = { name: 'demo', sharedSecret: 'demo-shared-secret-0123456789' };

function hex(keys: ContentKeys): Record<string, string> {
  return Object.fromEntries(
    Object.entries(keys).map(([name, value]: [string, Buffer]) => [name, value.toString('hex')]),
  );
}

test.each([
  ['another content id', OWNER, 'demo2'],
  ['a content id in another case', OWNER, 'Demo'],
  ['another client', { ...OWNER, name: 'demo2' }, 'demo'],
  ['another shared secret', { ...OWNER, sharedSecret: 'another-shared-secret-012345' }, 'demo'],
])('derives keys that have nothing in common for %s', (_case, owner, contentId) => {
  const { playReadyServiceId: _one, ...before } = hex(deriveKeys(OWNER, 'demo'));
  const { playReadyServiceId: _other, ...after } = hex(deriveKeys(owner, contentId));
  const values = [...Object.values(before), ...Object.values(after)];
  expect(new Set(values).size).toBe(12);
});

test('keeps the PlayReady service id over the content of a client', () => {
  const service = (name: string, contentId: string) =>
    deriveKeys({ ...OWNER, name }, contentId).playReadyServiceId;
  expect(service('demo', 'a')).toEqual(service('demo', 'b'));
  expect(service('demo', 'a')).not.toEqual(service('demo2', 'a'));
});

const TEXT = fc.string({ unit: anyCharacter, maxLength: 40 });

test('keeps client and content id apart wherever the border between them lies', () => {
  fc.assert(
    fc.property(TEXT, fc.nat(), fc.nat(), (text, first, second) => {
      const parts = (at: number): [string, string] => [text.slice(0, at), text.slice(at)];
      const [one, other] = [first % (text.length + 1), second % (text.length + 1)].map(parts);
      fc.pre(one !== undefined && other !== undefined && one[0] !== other[0]);
      const keyOf = ([name, contentId]: [string, string]) => deriveKeys({ ...OWNER, name }, contentId).keyId;
      expect(keyOf(one)).not.toEqual(keyOf(other));
    }),
  );
});
