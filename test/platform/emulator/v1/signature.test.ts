import fc from 'fast-check';
import {
  isSignature,
  readParameters,
  signatureOf,
  stringToSign,
} from '../../../../src/platform/emulator/v1/signature';
import { percentEncode, queryOf, sha1, type V1Pairs, v1Signature } from '../../../support/sign-v1';

const SECRET = 'uA96CFtJa138E2T5GhKfngml';
const parametersOf = (query: string) => readParameters(query) ?? [];

const DOCUMENTED =
  'text=d%C3%A9mo&api_format=xml&api_key=XOqEAfxj&api_nonce=80684843&api_timestamp=1237387851';

test('the documented example gives the documented signature', () => {
  const parameters = parametersOf(DOCUMENTED);
  expect(stringToSign(parameters)).toBe(
    'api_format=xml&api_key=XOqEAfxj&api_nonce=80684843&api_timestamp=1237387851&text=d%C3%A9mo',
  );
  const documented = 'fbdee51a45980f9876834dc5ee1ec5e93f67cb89';
  expect(signatureOf(parameters, SECRET)).toBe(documented);
  expect(isSignature(documented, parameters, SECRET)).toBe(true);
  expect(isSignature(documented.toUpperCase(), parameters, SECRET)).toBe(true);
});

test.each([
  ['another secret', DOCUMENTED, 'uA96CFtJa138E2T5GhKfngmL'],
  ['another value', DOCUMENTED.replace('xml', 'json'), SECRET],
  ['a parameter more', `${DOCUMENTED}&title=x`, SECRET],
  ['a parameter less', DOCUMENTED.replace('text=d%C3%A9mo&', ''), SECRET],
])('a signature does not hold for %s', (_what, query, secret) => {
  expect(isSignature('fbdee51a45980f9876834dc5ee1ec5e93f67cb89', parametersOf(query), secret)).toBe(false);
});

test.each(['', 'xyz', 'f'.repeat(39), `${'f'.repeat(40)}0`, 'g'.repeat(40)])(
  'what is no SHA-1 in hex is no signature: %s',
  (signature) => {
    expect(isSignature(signature, parametersOf(DOCUMENTED), SECRET)).toBe(false);
  },
);

test.each([
  // Sorted by names as a locale does, where `a` is before `B`.
  ['the order and the encoding of what is sent', 'custom.a=1&custom.B=it%27s', 'custom.a=1&custom.B=it%27s'],
  // encodeURIComponent, sent unsorted.
  ["!'()* left as they are", "title=a!'()*b&api_key=k", "api_key=k&title=a!'()*b"],
  ["!'()* left as they are, and has some encoded", 'title=a!%27()*b&api_key=k', "api_key=k&title=a!'()*b"],
  ['names that are sent as they are', 'search:title=a%20b&a=1', 'a=1&search:title=a%20b'],
  ['names that are encoded only on sending', 'search%3Atitle=a+b&a=1', 'a=1&search:title=a%20b'],
  ['nothing encoded', 'title=a+b%26c&a=%C3%A9', 'a=é&title=a b&c'],
  ['nothing between the values of a name', 'tags=x&a=1&tags=y&z=2', 'a=1&tags=xtags=y&z=2'],
  ['the values of a name in their order', 'tags=y&tags=x&a=1', 'a=1&tags=y&tags=x'],
])('the signature of a client that signs %s holds', (_what, query, signed) => {
  expect(isSignature(sha1(signed + SECRET), parametersOf(query), SECRET)).toBe(true);
  expect(isSignature(sha1(`${signed}&${SECRET}`), parametersOf(query), SECRET)).toBe(false);
});

test('what is not UTF-8 behind its percent-encoding is not read', () => {
  expect(['a=%', 'a=%zz', 'a=%ff', 'a=%C3', '%E9=1'].map(readParameters)).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});

test('names without a value, empty pairs and further equals signs are read', () => {
  expect(parametersOf('&a&b=&=c&d=e=f&&').map(({ name, value }) => [name, value])).toEqual([
    ['a', ''],
    ['b', ''],
    ['', 'c'],
    ['d', 'e=f'],
  ]);
});

const text = fc.string({ unit: 'grapheme' }).map((drawn) => Buffer.from(drawn).toString());
const pairs: fc.Arbitrary<V1Pairs> = fc.array(fc.tuple(text, text), { maxLength: 12 });

test('any parameters that another implementation signs hold, whatever order they are sent in', () => {
  fc.assert(
    fc.property(pairs, fc.string(), fc.boolean(), (drawn, secret, plus) => {
      const named = drawn.filter(([name, value]) => name !== '' || value !== '');
      const query = plus ? queryOf(named).replaceAll('%20', '+') : queryOf(named);
      return isSignature(v1Signature(named, secret), parametersOf(query), secret);
    }),
  );
});

test('a signature never holds once a value has changed', () => {
  fc.assert(
    fc.property(pairs, text, text, fc.string(), (drawn, name, value, secret) => {
      const signature = v1Signature([...drawn, [name, value]], secret);
      const query = queryOf([...drawn, [name, `${value}x`]]);
      return !isSignature(signature, parametersOf(query), secret);
    }),
  );
});

test('encoding is that of OAuth for any text', () => {
  fc.assert(
    fc.property(text, (drawn) => stringToSign([{ name: 'n', value: drawn }]) === `n=${percentEncode(drawn)}`),
  );
});
