import { swapKeyIdOrder } from '../../../../src/drm/bytes';
import { openEnvelope } from '../../../../src/drm/envelope';
import { checkPlayReadyChecksum } from '../../../../src/drm/playready';
import { PROTECTION_SCHEMES, readWidevinePsshData } from '../../../../src/drm/widevine';
import { rawRequest } from '../../../support/raw-http';
import { startEmulator, type TestEmulator } from '../../../support/start-emulator';

const PLAYREADY_URL = 'https://playready-license.example.com/rightsmanager.asmx';
const WIDEVINE_URL = 'https://widevine-license.example.com/proxy';

/** The answers for the content `demo` of the default client, the keys those of `derive-keys.test.ts`. */
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
  const response = await api.get(`/keyprovider/${kind}/${client.name}/${contentId}`);
  expect(response.status).toBe(200);
  expect(response.headers['cache-control']).toBe('no-store');
  expect(response.body).toEqual({ key: expect.any(String) });
  return response.body.key;
}

async function fetchKeys(
  emulator: TestEmulator,
  kind: Kind,
  contentId: string,
): Promise<Record<string, string>> {
  const { name: client, sharedSecret } = emulator.client;
  const opened = openEnvelope(await fetchEnvelope(emulator, kind, contentId), { client, sharedSecret });
  if (!opened.ok) throw new Error(opened.fault);
  return JSON.parse(opened.text);
}

test.each(KINDS)('answers every field of %s in an envelope', async (kind) => {
  expect(await fetchKeys(await startEmulator(), kind, 'demo')).toEqual(ANSWERS[kind]);
});

test.each(KINDS)('answers the same %s envelope after a restart', async (kind) => {
  const before = await fetchEnvelope(await startEmulator(), kind, 'film-1');
  expect(await fetchEnvelope(await startEmulator(), kind, 'film-1')).toBe(before);
});

test('gives CENC, PlayReady and Widevine of a content one key id and one content key', async () => {
  const emulator = await startEmulator();
  const cenc = await fetchKeys(emulator, 'cenc', 'film-1');
  const playready = await fetchKeys(emulator, 'playready', 'film-1');
  const widevine = await fetchKeys(emulator, 'widevine', 'film-1');
  const bigEndian = swapKeyIdOrder(Buffer.from(playready.key_id ?? '', 'base64')).toString('base64');
  expect([bigEndian, widevine.key_id]).toEqual([cenc.key_id_big, cenc.key_id_big]);
  expect([playready.content_key, widevine.content_key]).toEqual([cenc.content_key, cenc.content_key]);
  expect(playready.checksum).toBe(cenc.playready_checksum);
});

test('answers a checksum and Widevine data that hold for the key id and content id', async () => {
  const cenc = await fetchKeys(await startEmulator(), 'cenc', 'film-1');
  const keyId = Buffer.from(cenc.key_id_big ?? '', 'base64');
  const contentKey = Buffer.from(cenc.content_key ?? '', 'base64');
  expect(checkPlayReadyChecksum(cenc.playready_checksum ?? '', keyId, contentKey)).toBe('match');
  expect(readWidevinePsshData(cenc.widevine_drm_specific_data ?? '')).toEqual({
    ok: true,
    value: {
      payload: cenc.widevine_drm_specific_data,
      data: { keyIds: [], contentId: Buffer.from('film-1'), protectionScheme: PROTECTION_SCHEMES.cenc },
      unwrapped: false,
    },
  });
});

test('seals the envelope for its client alone', async () => {
  const emulator = await startEmulator();
  const envelope = await fetchEnvelope(emulator, 'cenc', 'demo');
  const { name: client, sharedSecret } = emulator.client;
  const mismatch = { ok: false, fault: 'hash_mismatch' };
  expect(openEnvelope(envelope, { client: 'other', sharedSecret })).toEqual(mismatch);
  expect(openEnvelope(envelope, { client, sharedSecret: `${sharedSecret}x` })).toEqual(mismatch);
});

test.each(['a', '0', 'A-b_c.d', '...', 'x'.repeat(200)])('takes the content id %s', async (contentId) => {
  const keys = await fetchKeys(await startEmulator(), 'fairplay', contentId);
  expect(keys.laurl).toBe(`skd://fairplay-license.example.com/license/${contentId}`);
});

describe('a request that is refused', () => {
  const refusals: [string, string, Record<string, string>, number, object][] = [
    [
      'without a key',
      '/keyprovider/cenc/demo/film',
      {},
      401,
      { code: 'api_key_missing', description: "Send the client's API key in the header API-KEY." },
    ],
    [
      'with a wrong key, whatever its content id',
      '/keyprovider/fairplay/demo/a%20b',
      { API_KEY: 'wrong' },
      401,
      { code: 'api_key_refused', description: "The header API-KEY does not hold this client's API key." },
    ],
    [
      'for a client that does not exist',
      '/keyprovider/aes/nobody/film',
      { 'API-KEY': 'demo-client-api-key' },
      404,
      {
        code: 'client_unknown',
        description:
          'There is no client of this name. The emulator knows the one that EMULATOR_CLIENT names.',
      },
    ],
    [
      'for another kind of keys',
      '/keyprovider/clearkey/demo/film',
      { 'API-KEY': 'demo-client-api-key' },
      404,
      { code: 'not_found', description: 'There is nothing at this path.' },
    ],
  ];

  test.each(refusals)('answers no keys to one %s', async (_case, path, headers, status, problem) => {
    const response = await (await startEmulator()).unauthenticated.get(path).set(headers);
    expect(response.status).toBe(status);
    expect(response.body).toEqual({ errors: [problem] });
  });

  // Sent as they stand: a URL parser would resolve the dots before they reach the service.
  test.each([
    '.',
    '..',
    '%2e',
    '%2E%2e',
    'a%2Fb',
    'a%20b',
    'a%00',
    'caf%C3%A9',
    'a+b',
    'a~',
    'x'.repeat(201),
  ])('answers 400 to the content id %s', async (contentId) => {
    const { port, client } = await startEmulator();
    const path = `/keyprovider/cenc/${client.name}/${contentId}`;
    const { status, text } = await rawRequest(port, 'GET', path, { 'API-KEY': client.apiKey });
    expect(status).toBe(400);
    expect(JSON.parse(text)).toEqual({
      errors: [
        {
          code: 'invalid_content_id',
          description: 'A content id is 1 to 200 letters, digits, _, - and ., and not . or ..',
        },
      ],
    });
  });
});
