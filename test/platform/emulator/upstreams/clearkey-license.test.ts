import { fairPlayKeyId } from '../../../../src/drm/packaging';
import { IssuedKeys } from '../../../../src/platform/emulator/upstreams/clearkey-license';
import { deriveKeys } from '../../../../src/platform/emulator/upstreams/key-provider';
import { startEmulator, type TestEmulator } from '../../../support/start-emulator';

const PATH = '/keyprovider/clearkey';
/** Key id and content key of the default client's content `demo`, base64url. */
const KEY_ID = 'Dlj11ea0QZepsUOGRu9HZQ';
const CONTENT_KEY = 'SvEMxZMGndWHIqCMoD45YA';
const OTHER_KEY_ID = 'AAAAAAAAAAAAAAAAAAAAAA';

async function issue({ api, client }: TestEmulator, kind: string): Promise<void> {
  const response = await api.get(`/keyprovider/${kind}/${client.name}/demo`);
  expect(response.status).toBe(200);
}

function unknownKey(keyId: string): object {
  return {
    code: 'key_unknown',
    description: `The key provider has given out no key with the id ${keyId} since its start. Ask it for the keys first; tell it supplied keys by POST /clearkey/keys on the control port.`,
  };
}

test.each(['cenc', 'playready', 'widevine'])(
  'answers the license of a key that %s gave out, without a credential',
  async (kind) => {
    const emulator = await startEmulator();
    await issue(emulator, kind);
    const response = await emulator.unauthenticated.post(PATH).send({ kids: [KEY_ID], type: 'temporary' });
    expect(response.status).toBe(200);
    expect(response.headers['cache-control']).toBe('no-store');
    expect(response.body).toEqual({ keys: [{ kty: 'oct', k: CONTENT_KEY, kid: KEY_ID }], type: 'temporary' });
  },
);

test('lets pages of any origin ask', async () => {
  const { unauthenticated } = await startEmulator();
  const asked = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' };
  const { headers } = await unauthenticated.options(PATH).set(asked).expect(204);
  expect(headers).toMatchObject({
    'access-control-allow-origin': '*',
    'access-control-allow-methods': 'POST',
    'access-control-allow-headers': 'content-type',
  });
});

test('forgets the keys that were given out on a reset of the control port', async () => {
  const emulator = await startEmulator();
  await issue(emulator, 'cenc');
  await emulator.control.post('/reset').expect(204);
  const response = await emulator.unauthenticated.post(PATH).send({ kids: [KEY_ID], type: 'temporary' });
  expect([response.status, response.body]).toEqual([404, { errors: [unknownKey(KEY_ID)] }]);
});

test.each([undefined, 'application/octet-stream', 'text/plain;charset=UTF-8'])(
  'answers a license request that a player declares as %s',
  async (mediaType) => {
    const emulator = await startEmulator();
    await issue(emulator, 'cenc');
    const post = emulator.unauthenticated.post(PATH);
    if (mediaType !== undefined) post.set('content-type', mediaType);
    const response = await post.send(Buffer.from(JSON.stringify({ kids: [KEY_ID], type: 'temporary' })));
    expect(response.status).toBe(200);
  },
);

test('answers the license of a key that fairplay gave out, under the id of its license address', async () => {
  const emulator = await startEmulator();
  await issue(emulator, 'fairplay');
  const kid = fairPlayKeyId('skd://fairplay-license.example.com/license/demo').toString('base64url');
  const { body } = await emulator.unauthenticated.post(PATH).send({ kids: [kid] });
  const { fairPlayKey } = deriveKeys(emulator.client, 'demo');
  expect(body).toEqual({
    keys: [{ kty: 'oct', k: fairPlayKey.toString('base64url'), kid }],
    type: 'temporary',
  });
});

test.each(['fairplay', 'aes'])('answers 404 to a key id that %s alone was asked for', async (kind) => {
  const emulator = await startEmulator();
  await issue(emulator, kind);
  const response = await emulator.unauthenticated.post(PATH).send({ kids: [KEY_ID], type: 'temporary' });
  expect(response.status).toBe(404);
  expect(response.body).toEqual({ errors: [unknownKey(KEY_ID)] });
});

test('answers the keys that were given out, and 404 that names each key id when none was', async () => {
  const emulator = await startEmulator();
  await issue(emulator, 'cenc');
  const third = 'AAAAAAAAAAAAAAAAAAAAAQ';
  const { unauthenticated } = emulator;
  const some = await unauthenticated.post(PATH).send({ kids: [OTHER_KEY_ID, KEY_ID, third] });
  expect([some.status, some.body.keys]).toEqual([200, [{ kty: 'oct', k: CONTENT_KEY, kid: KEY_ID }]]);
  const response = await unauthenticated.post(PATH).send({ kids: [OTHER_KEY_ID, third], type: 'temporary' });
  expect(response.status).toBe(404);
  expect(response.body).toEqual({ errors: [unknownKey(OTHER_KEY_ID), unknownKey(third)] });
});

test.each<[string, unknown, string[]]>([
  ['nothing', undefined, ['kids: is missing']],
  ['an array', [], ['Invalid input: expected object, received array']],
  ['no kids', {}, ['kids: is missing']],
  ['no key id', { kids: [] }, ['kids: names no key id']],
  ['a number for a key id', { kids: [1] }, ['kids.0: Invalid input: expected string, received number']],
  ['101 key ids', { kids: Array(101).fill(KEY_ID) }, ['kids: names more than 100 key ids']],
  [
    'several faults',
    { kids: ['', '!'], type: 'persistent-license' },
    [
      'kids.0: is not base64url without padding',
      'kids.1: is not base64url without padding',
      'type: only temporary licenses are given',
    ],
  ],
])('answers 400 to a license request with %s', async (_case, body, descriptions) => {
  const response = await (await startEmulator()).unauthenticated
    .post(PATH)
    .set('content-type', 'application/json')
    .send(body === undefined ? undefined : JSON.stringify(body));
  expect(response.status).toBe(400);
  expect(response.body).toEqual({
    errors: descriptions.map((description) => ({ code: 'invalid_body', description })),
  });
});

test.each<[number, string, string]>([
  [400, 'malformed_json', '{"kids":'],
  [413, 'body_too_large', JSON.stringify({ kids: ['A'.repeat(16_384)] })],
])('answers %i %s', async (status, code, body) => {
  const response = await (await startEmulator()).unauthenticated
    .post(PATH)
    .set('content-type', 'application/json')
    .send(body);
  expect([response.status, response.body.errors[0].code]).toEqual([status, code]);
});

test('drops the oldest key over its limit, of which one that is given out again is none', () => {
  const keys = new IssuedKeys(2);
  const keyIdOf = (number: number) => Buffer.alloc(16, number);
  for (const number of [1, 2, 1, 3])
    keys.remember({ keyId: keyIdOf(number), key: Buffer.alloc(16, number + 100) });
  expect([1, 2, 3].filter((number) => keys.find(keyIdOf(number)))).toEqual([1, 3]);
});
