import { formatUuid } from '../../../../src/drm/bytes';
import { fairPlayKeyId } from '../../../../src/drm/packaging';
import { onceForAll } from '../../../support/after-test';
import { startEmulator } from '../../../support/start-emulator';

const KEY_ID = '0e58f5d5-e6b4-4197-a9b1-438646ef4765';
const KEY = '00112233445566778899aabbccddeeff';
const LICENSE_URL = 'skd://fairplay.example.com/news';
const bytes = (hex: string) => Buffer.from(hex.replaceAll('-', ''), 'hex');
const base64 = (hex: string) => bytes(hex).toString('base64');
const base64url = (hex: string) => bytes(hex).toString('base64url');

const platform = onceForAll(() => startEmulator());

test.each([
  ['a UUID and hex', KEY_ID, KEY],
  ['hex in capitals', KEY_ID.replaceAll('-', '').toUpperCase(), KEY.toUpperCase()],
  ['base64', base64(KEY_ID), base64(KEY)],
])('gives licenses for a supplied key that is told as %s', async (_what, key_id, content_key) => {
  const { control, unauthenticated } = await startEmulator();
  const told = await control.post('/clearkey/keys').send({ keys: [{ key_id, content_key }] });
  expect([told.status, told.body]).toEqual([200, { keys: [{ key_id: KEY_ID }] }]);
  const license = await unauthenticated.post('/keyprovider/clearkey').send({ kids: [base64url(KEY_ID)] });
  const keys = [{ kty: 'oct', k: base64url(KEY), kid: base64url(KEY_ID) }];
  expect([license.status, license.body]).toEqual([200, { keys, type: 'temporary' }]);
});

test('gives licenses for a supplied FairPlay key under the id of its license address, until a reset', async () => {
  const { control, unauthenticated } = await startEmulator();
  const keyId = fairPlayKeyId(LICENSE_URL);
  const body = { keys: [{ fairplay: { license_url: LICENSE_URL, key: KEY } }] };
  const told = await control.post('/clearkey/keys').send(body);
  expect([told.status, told.body]).toEqual([200, { keys: [{ key_id: formatUuid(keyId) }] }]);
  const ask = () =>
    unauthenticated.post('/keyprovider/clearkey').send({ kids: [keyId.toString('base64url')] });
  expect((await ask()).body.keys).toEqual([
    { kty: 'oct', k: base64url(KEY), kid: keyId.toString('base64url') },
  ]);
  await control.post('/reset').expect(204);
  expect((await ask()).status).toBe(404);
});

test('takes the newest of two keys with one id', async () => {
  const { control, unauthenticated } = await startEmulator();
  const other = 'ffeeddccbbaa99887766554433221100';
  for (const content_key of [KEY, other])
    await control
      .post('/clearkey/keys')
      .send({ keys: [{ key_id: KEY_ID, content_key }] })
      .expect(200);
  const license = await unauthenticated.post('/keyprovider/clearkey').send({ kids: [base64url(KEY_ID)] });
  expect(license.body.keys[0].k).toBe(base64url(other));
});

test.each<[unknown, ...string[]]>([
  [[], 'The body must be a JSON object with keys.'],
  [{}, 'keys: is missing'],
  [{ keys: {} }, 'keys: must be an array'],
  [{ keys: [] }, 'keys: names no key'],
  [{ keys: [{}] }, 'keys.0: must have key_id and content_key, or fairplay'],
  [{ keys: [7] }, 'keys.0: must be an object'],
  [{ keys: [{ key_id: KEY_ID }] }, 'keys.0.content_key: is missing'],
  [{ keys: [{ content_key: KEY }] }, 'keys.0.key_id: is missing'],
  [{ keys: [{ key_id: 1, content_key: KEY }] }, 'keys.0.key_id: must be a string'],
  [
    { keys: [{ key_id: KEY_ID, content_key: 'abc' }] },
    'keys.0.content_key: has 3 hex digits; it must have 32 (16 bytes)',
  ],
  [
    { keys: [{ key_id: KEY_ID, content_key: KEY_ID.replaceAll('-', '') }] },
    'keys.0.content_key: is the same as key_id; send the content key',
  ],
  [
    { keys: [{ key_id: '0'.repeat(32), content_key: KEY }] },
    'keys.0.key_id: is all zeros; give the key its own id',
  ],
  [
    { keys: [{ key_id: KEY_ID, content_key: KEY, kid: 'x' }] },
    'keys.0.kid is not a field of this request. Fields of keys.0: key_id, content_key, fairplay.',
  ],
  [
    { keys: [{ fairplay: { license_url: 'fairplay.example.com', key: KEY } }] },
    'keys.0.fairplay.license_url: must be an address that starts with skd:// or https:// or http://',
  ],
  [
    { keys: [{ fairplay: { key: KEY, license_url: LICENSE_URL, iv: KEY } }] },
    'keys.0.fairplay.iv is not a field of this request. Fields of keys.0.fairplay: license_url, key.',
  ],
  [
    { keys: [{ key_id: KEY_ID, content_key: KEY, fairplay: { license_url: LICENSE_URL, key: KEY } }] },
    'keys.0.fairplay: is a key of its own; put key_id and content_key into another one',
  ],
  [{ keys: Array(101).fill({ key_id: KEY_ID, content_key: KEY }) }, 'keys: names more than 100 keys'],
])('refuses the body %j, and takes none of its keys', async (body, ...descriptions) => {
  const { control, context } = await platform();
  const { status, body: answer } = await control.post('/clearkey/keys').send(body as object);
  const errors = descriptions.map((description) => ({ code: 'invalid_body', description }));
  expect([status, answer]).toEqual([400, { errors }]);
  expect(context.issuedKeys.find(bytes(KEY_ID))).toBeUndefined();
  expect(JSON.stringify(answer)).not.toContain(KEY);
});

test('takes no key of a request of which one is wrong', async () => {
  const { control, context } = await startEmulator();
  const keys = [{ key_id: KEY_ID, content_key: KEY }, { key_id: 'x' }];
  await control.post('/clearkey/keys').send({ keys }).expect(400);
  expect(context.issuedKeys.find(bytes(KEY_ID))).toBeUndefined();
});
