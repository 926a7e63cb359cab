import { errorText } from '../../src/provider/upstream';
import { processorMs } from '../support/processor-time';
import { CONTENT_ID, SPEKE_PATH, startSpeke } from '../support/start-speke';

const KEY = '7f9a5b1c2d3e4f60718293a4b5c6d7e8';
const say = (text: string | Buffer, secrets: readonly string[] = [], headers = {}) =>
  errorText({ headers, body: Buffer.from(text) }, secrets);

it.each<[what: string, text: string, shown: string]>([
  ['a sentence', 'Missing CPIX version', 'Missing CPIX version'],
  [
    "CPIX's names, codes and paths",
    'commonEncryptionScheme of the ContentKeyUsageRule: CONTENT_KEY_NOT_FOUND at /key/generator/content-keys',
    'commonEncryptionScheme of the ContentKeyUsageRule: CONTENT_KEY_NOT_FOUND at /key/generator/content-keys',
  ],
  ['a UUID', 'kid 6bac8ec3-0ee3-379f-3d21-290b3a2bc9c3 is unknown', 'kid *** is unknown'],
  ['hex', `key ${KEY} refused`, 'key *** refused'],
  ['16 hex digits', 'key 7f9a5b1c2d3e4f60!', 'key ***!'],
  ['15 of them', 'trace 7f9a5b1c2d3e4f6!', 'trace 7f9a5b1c2d3e4f6!'],
  ['bytes with separators', 'key 7f:9a:5b:1c:2d:3e:4f:60 or 7F 9A 5B 1C 2D 3E 4F 60', 'key *** or ***'],
  ['base64', 'iv S2ljHDlFRStjCuOpN8I7+w== and', 'iv *** and'],
  ['base64 in JSON', '{"key":"S2ljHDl\\/FRStjCuOpN\\/8I7+w=="}', '{"key":"***"}'],
  ['base64 in a query', 'key=S2ljHDl%2FFRStj%2BuOpN%3D', '***'],
  ['base64 of URLs', 'key S2ljHDl-FRStjCu_OpN8I7', 'key ***'],
  ['a letter run', 'key abcdefghijklmnop', 'key ***'],
  ['controls and white space', 'a\u001b[2J\r\n\t b\u202ec\u0000', 'a [2J bc'],
  [
    'bytes in decimal',
    'key [203, 247, 107, 180, 59, 154, 84, 37] or -53,-9,107,-76,59,-102,84,37',
    'key [***] or ***',
  ],
  [
    'bytes as programs write them',
    'key 0x7f, 0x9a, 0x5b, 0x1c, 0x2d, 0x3e, 0x4f, 0x60 or \\x7f\\x9a\\x5b\\x1c\\x2d\\x3e\\x4f\\x60',
    'key *** or ***',
  ],
  [
    'characters as JSON and XML write them',
    `key ${'\\u0037'.repeat(16)} or ${'&#55;'.repeat(16)}`,
    'key *** or ***',
  ],
  [
    'hex with zeros and unseen signs in it',
    `key ${[...KEY].join('\0')} or ${[...KEY].join('\u200b')}`,
    'key *** or ***',
  ],
  ['a date and a few numbers', 'at 2026-11-26 10:15, 3 of 4, 5', 'at 2026-11-26 10:15, 3 of 4, 5'],
  ['200 characters', 'word '.repeat(100), 'word '.repeat(40)],
])('shows of %s what is no key', (_what, text, shown) => {
  expect(say(text)).toBe(shown);
});

it('hides each secret that was sent, in each of its forms', () => {
  const basic = `Basic ${Buffer.from('tenant:pass:word').toString('base64')}`;
  const secrets = ['Bearer tok-en"1', basic, 'p&ss', 'us%20er'];
  expect(
    say(
      'tok-en"1 tok-en\\"1 tok-en%221 tenant pass:word tenant:pass:word p&ss p%26ss p&amp;ss us er ok',
      secrets,
    ),
  ).toBe('*** *** *** *** *** *** *** *** *** *** ok');
  expect(say('version 2 is not 1', ['2', '1'])).toBe('version 2 is not 1');
});

it("says what Axinom's header does, and nothing of a packed or empty body", () => {
  const headers = { 'x-axdrm-errormessage': 'Tenant not found' };
  expect(say('{"a":1}', [], headers)).toBe('Tenant not found | {"a":1}');
  expect(say('packed', [], { ...headers, 'content-encoding': 'gzip' })).toBe('Tenant not found');
  expect(say(' \n')).toBeUndefined();
});

it.each(['a', 'Aa', 'a-', '/', '%2', '0 ', 'aA0', '&#5', '\\u0', '-1 '])(
  'takes little time for a body of %j',
  async (piece) => {
    const text = piece.repeat(256 * 1024);
    expect(await processorMs(() => say(text))).toBeLessThan(500);
  },
);

describe("a provider's error text", () => {
  it('is in the log at level debug, and in no answer', async () => {
    const token = 'Bearer secret-of-the-tests';
    const { upstream } = await startSpeke();
    const path = `${SPEKE_PATH}?p=pass.word`;
    const { sidecar } = await startSpeke({
      config: { keyProviderUrl: upstream.url + path },
      dependencies: { providerHeaders: () => ({ authorization: token }) },
    });
    const clientApiKey = 'key.of.a.client';
    const body = `Mismatched contentId ${CONTENT_ID}: key ${KEY}, ${token}, ${clientApiKey}, pass.word`;
    const headers = { 'x-axdrm-errormessage': 'Bad request', 'x-request-id': clientApiKey };
    upstream.on(path, { status: 422, headers, body });
    const asked = { client: 'demo', clientApiKey, contentId: CONTENT_ID };
    const answer = await sidecar.api.post('/api/keyfile/demo').send(asked).expect(502);
    expect(answer.text).not.toMatch(/Mismatched|Bad request/);
    const entries = await sidecar.logEntries();
    const text = `Bad request | Mismatched contentId ${CONTENT_ID}: key ***, ***, ***, ***`;
    // The other of the two calls may be cut by the first failure.
    expect(entries.find(({ message }) => message === 'upstream error')).toMatchObject({
      ...{ level: 'debug', upstream: 'key provider', status: 422, text },
    });
    for (const secret of [KEY, 'secret-of-the-tests', clientApiKey, 'pass.word'])
      expect(JSON.stringify(entries)).not.toContain(secret);
  });

  it.each([
    [
      'Digest realm="keys", nonce="x"',
      502,
      /^The key provider answered 401 and asks for HTTP digest authentication, which is not supported; /,
    ],
    ['Basic realm="keys", Digest realm="keys"', 422, /clientApiKey/],
    ['Bearer', 422, /clientApiKey/],
  ])('says of a 401 that asks by %s what it wants', async (challenge, status, why) => {
    const { sidecar, upstream } = await startSpeke({});
    upstream.on(SPEKE_PATH, { status: 401, headers: { 'www-authenticate': challenge } });
    const body = { contentId: CONTENT_ID, clientApiKey: 'client-api-key-0123456789' };
    const answer = await sidecar.api.post('/api/keyfile/demo').send(body).expect(status);
    expect(answer.body.errors[0].description).toMatch(why);
  });
});
