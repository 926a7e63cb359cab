import { fairPlayKeyId } from '../../../../src/drm/packaging';
import { IssuedKeys } from '../../../../src/platform/emulator/upstreams/clearkey-license';
import { deriveKeys } from '../../../../src/platform/emulator/upstreams/key-provider';
import { onceForAll } from '../../../support/after-test';
import { errorBody, invalidBody } from '../../../support/error-body';
import { startEmulator, type TestEmulator } from '../../../support/start-emulator';

const shared = onceForAll(() => startEmulator());

const PATH = '/keyprovider/clearkey';
/** Key id and content key of the default client's content `demo`, base64url. */
const KEY_ID = 'Dlj11ea0QZepsUOGRu9HZQ';
const CONTENT_KEY = 'SvEMxZMGndWHIqCMoD45YA';
const OTHER_KEY_ID = 'AAAAAAAAAAAAAAAAAAAAAA';

const ask = ({ unauthenticated }: TestEmulator, ...kids: string[]) =>
  unauthenticated.post(PATH).send({ kids, type: 'temporary' });

const issue = ({ api, client }: TestEmulator, kind: string) =>
  api.get(`/keyprovider/${kind}/${client.name}/demo`).expect(200);

const unknownKeys = (...keyIds: string[]) =>
  errorBody(
    'key_unknown',
    ...keyIds.map(
      (keyId) =>
        `The key provider has given out no key with the id ${keyId} since its start. Ask it for the keys first; send supplied keys by POST /clearkey/keys on the control port.`,
    ),
  );

test.each(['cenc', 'playready', 'widevine'])(
  'answers the license of a key that %s gave out, without a credential',
  async (kind) => {
    const emulator = await startEmulator();
    await issue(emulator, kind);
    const { headers, body } = await ask(emulator, KEY_ID).expect(200);
    // Pages of any origin may ask.
    expect(headers).toMatchObject({ 'cache-control': 'no-store', 'access-control-allow-origin': '*' });
    expect(body).toEqual({ keys: [{ kty: 'oct', k: CONTENT_KEY, kid: KEY_ID }], type: 'temporary' });
  },
);

test('answers a license request whatever a player declares it as', async () => {
  const emulator = await startEmulator();
  await issue(emulator, 'cenc');
  const post = emulator.unauthenticated.post(PATH).type('text/plain;charset=UTF-8');
  await post.send(JSON.stringify({ kids: [KEY_ID], type: 'temporary' })).expect(200);
});

test('answers the license of a key that fairplay gave out, under the id of its license address', async () => {
  const emulator = await startEmulator();
  await issue(emulator, 'fairplay');
  const kid = fairPlayKeyId('skd://fairplay-license.example.com/license/demo').toString('base64url');
  const { body } = await ask(emulator, kid);
  const k = deriveKeys(emulator.client, 'demo').fairPlayKey.toString('base64url');
  expect(body).toEqual({ keys: [{ kty: 'oct', k, kid }], type: 'temporary' });
});

test.each(['fairplay', 'aes'])('answers 404 to a key id that %s alone was asked for', async (kind) => {
  const emulator = await startEmulator();
  await issue(emulator, kind);
  await ask(emulator, KEY_ID).expect(404, unknownKeys(KEY_ID));
});

test('answers the keys that were given out, and 404 that names each key id when none was', async () => {
  const emulator = await startEmulator();
  await issue(emulator, 'cenc');
  const third = 'AAAAAAAAAAAAAAAAAAAAAQ';
  const some = await ask(emulator, OTHER_KEY_ID, KEY_ID, third).expect(200);
  expect(some.body.keys).toEqual([{ kty: 'oct', k: CONTENT_KEY, kid: KEY_ID }]);
  await ask(emulator, OTHER_KEY_ID, third).expect(404, unknownKeys(OTHER_KEY_ID, third));
});

test.each<[string, object, string[]]>([
  ['an array', [], ['Invalid input: expected object, received array']],
  ['no kids', {}, ['kids: is missing']],
  ['no key id', { kids: [] }, ['kids: names no key id']],
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
  const { unauthenticated } = await shared();
  const refused = invalidBody(...descriptions);
  await unauthenticated.post(PATH).send(body).expect(400, refused);
});

test('refuses a license request that is too large', async () => {
  const { body } = await ask(await shared(), 'A'.repeat(16_384)).expect(413);
  expect(body.errors[0].code).toBe('body_too_large');
});

test('drops the oldest key over its limit, of which one that is given out again is none', () => {
  const keys = new IssuedKeys(2);
  const keyIdOf = (number: number) => Buffer.alloc(16, number);
  for (const [at, number] of [1, 2, 1, 3].entries())
    keys.remember({ keyId: keyIdOf(number), key: Buffer.alloc(16, at) });
  // The newest of two keys with one id counts.
  expect([1, 2, 3].map((number) => keys.find(keyIdOf(number))?.key[0])).toEqual([2, undefined, 3]);
});
