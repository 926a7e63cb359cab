import fc from 'fast-check';
import { type ContentKeys, deriveKeys } from '../../../../src/platform/emulator/upstreams/derive-keys';
import { anyCharacter } from '../../../support/any-character';

const OWNER = { name: 'demo', sharedSecret: 'demo-shared-secret-0123456789' };

function hex(keys: ContentKeys): Record<string, string> {
  return Object.fromEntries(
    Object.entries(keys).map(([name, value]: [string, Buffer]) => [name, value.toString('hex')]),
  );
}

test('derives the same keys today as ever', () => {
  expect(hex(deriveKeys(OWNER, 'demo'))).toEqual({
    keyId: '0e58f5d5e6b44197a9b1438646ef4765',
    contentKey: '4af10cc593069dd58722a08ca03e3960',
    playReadyKeyIv: '3c7016e458e02000',
    playReadyServiceId: '9d31fea7104f41eebf6116613e617a3b',
    fairPlayKey: 'e6b073c959b1c944ffdceff8200d8308',
    fairPlayIv: 'ec8180e2bd03752dd1d768e2705bbb3e',
    aesKey: 'c2f1011fc195327e818112e469ea09aa',
  });
});

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

test('repeats itself, and gives every value its length and the key id the bits of a UUID', () => {
  fc.assert(
    fc.property(TEXT, TEXT, TEXT, (name, sharedSecret, contentId) => {
      const keys = deriveKeys({ name, sharedSecret }, contentId);
      expect(deriveKeys({ name, sharedSecret }, contentId)).toEqual(keys);
      const { playReadyKeyIv, ...blocks } = keys;
      expect(playReadyKeyIv).toHaveLength(8);
      for (const block of Object.values(blocks)) expect(block).toHaveLength(16);
      expect(hex(keys).keyId).toMatch(/^.{12}4.{3}[89ab]/);
    }),
  );
});

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
