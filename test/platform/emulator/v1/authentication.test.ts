import fc from 'fast-check';
import { toV1Error } from '../../../../src/platform/emulator/v1/errors';
import {
  authenticate,
  isSignature,
  readParameters,
  signatureOf,
  stringToSign,
} from '../../../../src/platform/emulator/v1/signed-call';
import { onceForAll } from '../../../support/after-test';
import {
  percentEncode,
  queryOf,
  START,
  sha1,
  signedPairs,
  signedPath,
  type V1Pairs,
  v1Signature,
} from '../../../support/sign-v1';
import { startEmulator } from '../../../support/start-emulator';

const HOUR = 3600;
/** A call that v2 does not support, to test the authentication alone. */
const STATUS = '/v1/status';

/** For calls that leave nothing behind but their signature. */
const shared = onceForAll(() => startEmulator());

const codeOf = ({ status, body }: { status: number; body: { code?: string } }) => [status, body.code];

test('a signed call gets through, by GET and by POST, with and without a slash', async () => {
  const { unauthenticated } = await shared();
  const answers = [
    await unauthenticated.get(signedPath(STATUS)),
    await unauthenticated.get(signedPath(`${STATUS}/`)),
    await unauthenticated.post(STATUS).send(queryOf(signedPairs())),
    await unauthenticated.post(`${STATUS}/`).send(queryOf(signedPairs())),
    await unauthenticated.post(signedPath(STATUS)),
  ];
  expect(answers.map(codeOf)).toEqual(Array(5).fill([405, 'NotSupported']));
});

test('a signed set that is sent twice, in the query and as a form, counts once', async () => {
  const { unauthenticated } = await shared();
  const query = queryOf(signedPairs({ 'custom.a': "it's (1)" }));
  expect(codeOf(await unauthenticated.get(`${STATUS}?${query}`).send(query))).toEqual([405, 'NotSupported']);
  // Another client repeats a part of it.
  const whole = queryOf(signedPairs({ title: 'a', tags: 'b' }));
  const repeated = await unauthenticated.post(`${STATUS}?${whole}`).send('title=a&tags=b');
  expect(codeOf(repeated)).toEqual([405, 'NotSupported']);
});

const without = (name: string) => queryOf(signedPairs().filter(([other]) => other !== name));
const withEmpty = (name: string) =>
  queryOf(signedPairs().map(([other, value]) => [other, other === name ? '' : value]));

test.each([
  ['api_key', 'ApiKey', 'User Key', "Send the site's id as api_key."],
  ['api_timestamp', 'Timestamp', 'Timestamp', 'Send the time in seconds since 1970.'],
  ['api_nonce', 'Nonce', 'Nonce', 'Send a random number of 8 digits.'],
  ['api_signature', 'Signature', 'Signature', 'Send the SHA-1 of all parameters.'],
])('a call without %s says so', async (name, kind, title, advice) => {
  const { unauthenticated } = await shared();
  const { status, body, headers } = await unauthenticated.get(`${STATUS}?${without(name)}`);
  const message = `${name} is missing. ${advice}`;
  const code = `${kind}Missing`;
  expect([status, body]).toEqual([400, { status: 'error', code, title: `${title} Missing`, message }]);
  expect(headers['content-type']).toBe('application/json; charset=utf-8');
  expect(codeOf(await unauthenticated.get(`${STATUS}?${withEmpty(name)}`))).toEqual([400, code]);
});

test.each([
  ['a key that is no site', { api_key: 'nosite00' }, 400, 'ApiKeyInvalid'],
  ['a timestamp that is no number', { api_timestamp: '2030-01-01' }, 400, 'TimestampInvalid'],
  ['a timestamp in milliseconds', { api_timestamp: `${START}000` }, 400, 'TimestampInvalid'],
  ['a timestamp 21 hours ahead', { api_timestamp: String(START + 21 * HOUR) }, 405, 'NotSupported'],
  ['one further ahead', { api_timestamp: String(START + 21 * HOUR + 1) }, 400, 'TimestampInvalid'],
  ['a nonce of 10 digits', { api_nonce: '0123456789' }, 405, 'NotSupported'],
  ['a nonce of letters', { api_nonce: 'abcdefgh' }, 400, 'NonceInvalid'],
  ['a nonce of 11 digits', { api_nonce: '12345678901' }, 400, 'NonceInvalid'],
  ['another secret', { secret: 'demo-api-secret-012345678X' }, 400, 'SignatureInvalid'],
])('with %s a call is answered as it deserves', async (_what, credentials, status, code) => {
  const { unauthenticated } = await shared();
  expect(codeOf(await unauthenticated.get(signedPath(STATUS, {}, credentials)))).toEqual([status, code]);
});

test('a wrong signature is answered with the string to sign, and without the secret', async () => {
  const { unauthenticated } = await shared();
  const path = signedPath(STATUS, { text: 'démo' }, { secret: 'wrong', api_nonce: '7' });
  expect((await unauthenticated.get(path)).body).toEqual({
    ...{ status: 'error', code: 'SignatureInvalid', title: 'Signature Invalid' },
    message: `api_signature is not the SHA-1 of the parameters and the API secret. The string to sign, before the secret, is: api_key=demosite&api_nonce=7&api_timestamp=${START}&text=d%C3%A9mo`,
  });
});

test('a parameter of the protocol that is given twice is refused', async () => {
  const { unauthenticated } = await shared();
  const answer = await unauthenticated.get(`${signedPath(STATUS)}&api_key=othrsite`);
  expect(codeOf(answer)).toEqual([400, 'ApiKeyInvalid']);
});

test('a hundred thousand signatures are remembered, and the oldest is forgotten for more', () => {
  const signatures = new Map(Array.from({ length: 100_000 }, (_, at) => [`${at}`, START + HOUR]));
  const parameters = readParameters(queryOf(signedPairs()));
  const now = new Date(START * 1000);
  authenticate(parameters, { secretOf: () => 'demo-api-secret-0123456789', signatures, now });
  expect([signatures.size, signatures.has('0'), signatures.has('1')]).toEqual([100_000, false, true]);
});

/** Sends one signed call again and again, at these seconds after the start, and answers what each met. */
function repeated(seconds: readonly number[], timestamp = START): readonly string[] {
  const pairs = signedPairs({}, { api_timestamp: String(timestamp) });
  const parameters = readParameters(queryOf(pairs));
  const signatures = new Map<string, number>();
  return seconds.map((second) => {
    const now = new Date((START + second) * 1000);
    try {
      authenticate(parameters, { secretOf: () => 'demo-api-secret-0123456789', signatures, now });
      return 'taken';
    } catch (thrown) {
      return toV1Error(thrown).message;
    }
  });
}

test('a replayed call is refused until its timestamp has expired, and is expired from then on', () => {
  const met = ['taken', 'SignatureInvalid', 'SignatureInvalid', 'TimestampExpired'];
  expect(repeated([0, 0, 27 * HOUR, 27 * HOUR + 1])).toEqual(met);
});

test('a signature from the future is remembered for 48 hours, as long as it could be replayed', () => {
  const met = ['taken', 'SignatureInvalid', 'TimestampExpired'];
  expect(repeated([0, 48 * HOUR, 48 * HOUR + 1], START + 21 * HOUR)).toEqual(met);
});

test('a client that signs with its own clock goes on when the clock of the platform is advanced', async () => {
  const { unauthenticated, advance } = await startEmulator();
  for (const api_nonce of ['1', '2']) {
    const answer = await unauthenticated.get(signedPath(STATUS, {}, { api_nonce }));
    expect(codeOf(answer)).toEqual([405, 'NotSupported']);
    await advance(100 * 24 * HOUR);
  }
});

test('a replayed call is refused, in capitals, too', async () => {
  const { unauthenticated } = await shared();
  const pairs = signedPairs();
  await unauthenticated.get(`${STATUS}?${queryOf(pairs)}`);
  const capitals = pairs.map(
    ([name, value]) => [name, name === 'api_signature' ? value.toUpperCase() : value] as const,
  );
  const { status, body } = await unauthenticated.get(`${STATUS}?${queryOf(capitals)}`);
  const message = 'This signature was used before. Sign each call again, with another api_nonce.';
  const title = 'Signature Invalid';
  expect([status, body]).toEqual([400, { status: 'error', code: 'SignatureInvalid', title, message }]);
});

test('only valid signatures are remembered', async () => {
  const { unauthenticated, context } = await startEmulator();
  for (const secret of ['wrong', 'false']) await unauthenticated.get(signedPath(STATUS, {}, { secret }));
  await unauthenticated.get(signedPath(STATUS, {}, { api_nonce: 'x' }));
  expect(context.state.signatures.size).toBe(0);
});

test('every site signs with the secret of v1, when there is one', async () => {
  const secret = 'a-secret-of-version-1';
  const { unauthenticated } = await startEmulator({
    EMULATOR_SITE_ID: 'site0001,site0002',
    EMULATOR_V1_SECRET: secret,
  });
  const call = async (credentials: object) =>
    codeOf(await unauthenticated.get(signedPath(STATUS, {}, credentials)));
  for (const api_key of ['site0001', 'site0002']) {
    expect(await call({ api_key, secret })).toEqual([405, 'NotSupported']);
    expect(await call({ api_key })).toEqual([400, 'SignatureInvalid']);
  }
});

const SECRET = 'uA96CFtJa138E2T5GhKfngml';

const DOCUMENTED =
  'text=d%C3%A9mo&api_format=xml&api_key=XOqEAfxj&api_nonce=80684843&api_timestamp=1237387851';

test('the documented example gives the documented signature', () => {
  const parameters = readParameters(DOCUMENTED);
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
  expect(isSignature('fbdee51a45980f9876834dc5ee1ec5e93f67cb89', readParameters(query), secret)).toBe(false);
});

test.each(['', 'xyz', 'f'.repeat(39), `${'f'.repeat(40)}0`, 'g'.repeat(40)])(
  'text other than a SHA-1 in hex is no signature: %s',
  (signature) => {
    expect(isSignature(signature, readParameters(DOCUMENTED), SECRET)).toBe(false);
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
  expect(isSignature(sha1(signed + SECRET), readParameters(query), SECRET)).toBe(true);
  expect(isSignature(sha1(`${signed}&${SECRET}`), readParameters(query), SECRET)).toBe(false);
});

test.each(['a=%', 'a=%zz', 'a=%ff', 'a=%C3', '%E9=1'])(
  '%s, which is not UTF-8 when decoded, is not read',
  (text) => {
    expect(() => readParameters(text)).toThrow('ParameterEncodingError');
  },
);

test('names without a value, empty pairs and further equals signs are read', () => {
  expect(readParameters('&a&b=&=c&d=e=f&&').map(({ name, value }) => [name, value])).toEqual([
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
      return isSignature(v1Signature(named, secret), readParameters(query), secret);
    }),
  );
});

test('encoding is that of OAuth for any text', () => {
  fc.assert(
    fc.property(text, (drawn) => stringToSign([{ name: 'n', value: drawn }]) === `n=${percentEncode(drawn)}`),
  );
});
