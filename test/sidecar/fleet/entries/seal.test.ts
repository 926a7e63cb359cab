import { createCipheriv, hkdfSync, randomBytes } from 'node:crypto';
import * as fc from 'fast-check';
import type { StreamId } from '../../../../src/api/stream-id';
import type { Entry } from '../../../../src/sidecar/fleet/entries/seal';
import { createSeal } from '../../../../src/sidecar/fleet/entries/seal';
import { anyCharacter } from '../../../support/any-character';

const SECRET = '0123456789abcdef0123456789abcdef';
const OTHER = 'fedcba9876543210fedcba9876543210';
const KEY = 'packagerdrmapi/keys/site/live';
const STREAM = 'site/live' as StreamId;
const counted = (bytes: number) => Buffer.from(Array.from({ length: bytes }, (_, index) => index + 1));

const entryOf = (change: Partial<Entry> = {}): Entry => ({
  streamId: STREAM,
  id: '00000000-0000-4000-8000-000000000001',
  version: 1_790_000_000_000,
  bytes: Buffer.from('the key file\n'),
  at: 1_790_000_000_001,
  by: { key: 'default', address: '127.0.0.1', requestId: 'request 1' },
  from: 'packager-1',
  awaited: false,
  isFound: false,
  ...change,
});

/** Seals any plaintext by the format with the secret. */
function sealedPlain(plain: Buffer): Buffer {
  const derive = (purpose: string, bytes: number) =>
    Buffer.from(hkdfSync('sha256', SECRET, 'packager-drm-api fleet 1', purpose, bytes));
  const nonce = counted(12);
  const cipher = createCipheriv('aes-256-gcm', derive('aes-256-gcm', 32), nonce);
  cipher.setAAD(Buffer.concat([Buffer.from([1, 1]), Buffer.from(KEY)]));
  const sealed = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([Buffer.from([1]), derive('key id', 4), nonce, sealed, cipher.getAuthTag()]);
}

function headed(header: unknown, bytes = Buffer.alloc(0)): Buffer {
  const json = Buffer.from(typeof header === 'string' ? header : JSON.stringify(header));
  const length = Buffer.alloc(2);
  length.writeUInt16BE(json.length);
  return Buffer.concat([length, json, bytes]);
}

const FIELDS = ['id', 1, 2, 'key', 'address', 'request', 'packager', 0, 0];

const anyEntry: fc.Arbitrary<Entry> = fc
  .record({
    id: fc.string({ unit: anyCharacter, minLength: 1 }),
    version: fc.nat(Number.MAX_SAFE_INTEGER),
    bytes: fc.option(
      fc.uint8Array({ maxLength: 3000 }).map((bytes) => Buffer.from(bytes)),
      { nil: undefined },
    ),
    at: fc.nat(Number.MAX_SAFE_INTEGER),
    by: fc.record({ key: fc.string(), address: fc.string(), requestId: fc.string({ unit: anyCharacter }) }),
    from: fc.string({ unit: anyCharacter }),
    awaited: fc.boolean(),
    isFound: fc.boolean(),
  })
  .map((fields) => ({ streamId: STREAM, ...fields }));

test('stays as it is: what is sealed today is opened by every release', () => {
  const seal = createSeal([SECRET], counted);
  const entry =
    '01d11047a50102030405060708090a0b0ca3357ee5306b62dce7c0221cf26752414c540d7e582eb13ae5d252aefdc2db8d35403251b86f2ef49b93108561fe0e5f1a5ee38741726b1da537998c9fe869b2c49a2e923ca6f962bda419601a3520139126bd8b21981ba422acf21c9a8dd10ffccd4bb95b5bb08e8de30cc36874d011890e4effafb78eb7fc597f08bbe0f03b998da4b1decb4577b2649904b064c3880257211860dc';
  expect(seal.seal(KEY, entryOf()).toString('hex')).toBe(entry);
  expect(seal.sealText(KEY, 'the fleet').toString('hex')).toBe(
    '01d11047a50102030405060708090a0b0cd72a40e766373789a362761ff417fd74cf719031083b4f34e0',
  );
  expect(seal.open(KEY, Buffer.from(entry, 'hex'), STREAM)).toEqual(entryOf());
});

test('opens any entry and any text as it was sealed', () => {
  const seal = createSeal([SECRET, OTHER], randomBytes);
  fc.assert(
    fc.property(anyEntry, fc.string({ unit: anyCharacter }), fc.string(), (entry, text, key) => {
      expect(seal.open(key, seal.seal(key, entry), STREAM)).toEqual(entry);
      expect(seal.openText(key, seal.sealText(key, text))).toBe(text);
    }),
    { numRuns: 100 },
  );
});

test('opens with every secret, seals with the first, and says which one was used', () => {
  const [before, during, after] = [[OTHER], [SECRET, OTHER], [SECRET]].map((secrets) =>
    createSeal(secrets, randomBytes),
  );
  if (!before || !during || !after) throw new Error('There are three.');
  const old = before.seal(KEY, entryOf());
  const fresh = during.seal(KEY, entryOf());
  expect(during.open(KEY, old, STREAM)).toEqual(entryOf());
  expect([during.isCurrent(old), during.isCurrent(fresh)]).toEqual([false, true]);
  expect([after.open(KEY, old, STREAM), after.missingSecret(old)]).toEqual([
    undefined,
    old.toString('hex', 1, 5),
  ]);
  expect(after.openText(KEY, before.sealText(KEY, 'text'))).toBeUndefined();
  expect([during, after].map((seal) => seal.missingSecret(fresh))).toEqual([undefined, undefined]);
  expect(after.open(KEY, fresh, STREAM)).toEqual(entryOf());
  expect(before.open(KEY, fresh, STREAM)).toBeUndefined();
});

test('never seals twice alike, and files of one length to one length', () => {
  const seal = createSeal([SECRET], randomBytes);
  const sealed = Array.from({ length: 20 }, (_, index) =>
    seal.seal(KEY, entryOf({ bytes: Buffer.alloc(1300, index), awaited: index % 2 === 0 })),
  );
  expect(new Set(sealed.map((value) => value.toString('hex', 5, 17))).size).toBe(20);
  expect(new Set(sealed.map(({ length }) => length)).size).toBe(1);
});

test('is garbage under another key of the engine, as another kind, and with any byte changed', () => {
  const seal = createSeal([SECRET], randomBytes);
  const value = seal.seal(KEY, entryOf());
  expect(seal.open(`${KEY}2`, value, STREAM)).toBeUndefined();
  expect(seal.openText(KEY, value)).toBeUndefined();
  expect(seal.open(KEY, seal.sealText(KEY, 'text'), STREAM)).toBeUndefined();
  for (const [index, byte] of value.entries()) {
    const changed = Buffer.from(value);
    changed[index] = byte ^ 1;
    expect(seal.open(KEY, changed, STREAM)).toBeUndefined();
    const isOfSecret = index >= 1 && index < 5;
    expect(seal.missingSecret(changed)).toBe(isOfSecret ? changed.toString('hex', 1, 5) : undefined);
  }
  for (let length = 0; length < value.length; length += 1) {
    expect(seal.open(KEY, value.subarray(0, length), STREAM)).toBeUndefined();
    expect(seal.isCurrent(value.subarray(0, length))).toBe(length >= 33);
  }
});

test.each([
  ['nothing', Buffer.alloc(0)],
  ['one byte', Buffer.alloc(1)],
  ['a header that is longer than all', Buffer.from([255, 255, 91, 93])],
  ['no JSON', headed('[1,')],
  ['no array', headed('{}')],
  ['too few fields', headed(FIELDS.slice(0, 8))],
  ['an empty id', headed(['', ...FIELDS.slice(1)])],
  ['a version with a fraction', headed(['id', 1.5, ...FIELDS.slice(2)])],
  ['a version beyond exact numbers', headed(['id', 2 ** 53, ...FIELDS.slice(2)])],
  ['a negative time', headed(['id', 1, -1, ...FIELDS.slice(3)])],
  ['a name that is none', headed(['id', 1, 2, null, ...FIELDS.slice(4)])],
  ['a flag that is none', headed([...FIELDS.slice(0, 8), true])],
  ['bytes of a file that was deleted', headed(FIELDS, Buffer.from('x'))],
])('is garbage when who has the secret sealed %s', (_what, plain) => {
  const seal = createSeal([SECRET], randomBytes);
  expect(seal.open(KEY, sealedPlain(plain), STREAM)).toBeUndefined();
});

test('passes over what a later release adds to the header', () => {
  const value = sealedPlain(headed([...FIELDS, { more: 1 }]));
  const by = { key: 'key', address: 'address', requestId: 'request' };
  expect(createSeal([SECRET], randomBytes).open(KEY, value, STREAM)).toEqual(
    entryOf({ id: 'id', version: 1, at: 2, bytes: undefined, by, from: 'packager' }),
  );
});

test('never throws, whatever the engine holds, and opens none of it', () => {
  const seal = createSeal([SECRET, OTHER], randomBytes);
  const start = seal.seal(KEY, entryOf()).subarray(0, 5);
  const anyValue = fc
    .tuple(fc.boolean(), fc.uint8Array({ maxLength: 200 }))
    .map(([isOurs, bytes]) => (isOurs ? Buffer.concat([start, bytes]) : Buffer.from(bytes)));
  fc.assert(
    fc.property(anyValue, (value) => {
      expect(seal.open(KEY, value, STREAM)).toBeUndefined();
      expect(seal.openText(KEY, value)).toBeUndefined();
      seal.isCurrent(value);
    }),
    { numRuns: 300 },
  );
});

test('needs a secret', () => {
  expect(() => createSeal([], randomBytes)).toThrow(new RangeError('A seal needs a secret'));
});
