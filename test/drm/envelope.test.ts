import { createCipheriv, createHash } from 'node:crypto';
import fc from 'fast-check';
import { CLIENT_API_KEY, openEnvelope, PROVIDER_ID, sealEnvelope } from '../../src/drm/envelope';
import { anyCharacter } from '../support/any-character';
import invalid from '../vectors/drm-invalid.json';
import { drmVectors } from '../vectors/drm-vectors';

const { form: _form, status: _status, shared_secret, client, negative, ...responses } = drmVectors.envelope;
const secret = { client, sharedSecret: shared_secret };
const plainTexts = drmVectors.key_provider.plain_texts;

const refused = (code: string) => ({ ok: false, problem: expect.objectContaining({ code }) });

/** An envelope whose hash holds, around any bytes: what only someone with the secret can make. */
function sealBytes(bytes: Uint8Array): string {
  const cipher = createCipheriv('aes-128-ecb', shared_secret.slice(0, 16), null);
  const blob = Buffer.concat([cipher.update(bytes), cipher.final()]).toString('base64');
  return withHash(blob);
}

function withHash(blob: string): string {
  return `${blob}|${createHash('sha1')
    .update(shared_secret + client + blob)
    .digest('hex')}`;
}

test.each(Object.entries(responses))(
  'opens the published %s, and seals it character for character',
  (name, { key }) => {
    const text = JSON.stringify(plainTexts[name.replace('_response', '')]);
    expect(openEnvelope(key, secret)).toEqual({ ok: true, value: text });
    expect(sealEnvelope(text, secret)).toBe(key);
    const [blob, hash = ''] = key.split('|');
    expect(openEnvelope(`${blob}|${hash.toUpperCase()}`, secret)).toEqual({ ok: true, value: text });
  },
);

/** The outcome of each published negative. `not_json_inside` is a whole envelope whose content is no JSON object. */
const outcomes: Record<string, object> = {
  wrong_hash: refused('hash_mismatch'),
  no_pipe: refused('malformed'),
  hash_of_another_client: refused('hash_mismatch'),
  not_json_inside: { ok: true, value: '"plain text"' },
};

test.each(Object.entries(negative))('comes to the known outcome for the negative %s', (name, { key }) => {
  expect(openEnvelope(key, secret)).toEqual(outcomes[name]);
});

test.each(invalid.envelope)('refuses a text: $why', ({ text, fault }) => {
  expect(openEnvelope(text, secret)).toEqual(refused(fault));
});

test('says that a shared secret is too short to open with, and throws when sealing with it', () => {
  const short = { client, sharedSecret: 'fifteen letters' };
  expect(openEnvelope(sealEnvelope('{}', secret), short)).toEqual(refused('secret_too_short'));
  expect(() => sealEnvelope('{}', short)).toThrow(
    new RangeError('The shared secret is shorter than 16 bytes'),
  );
});

test.each([
  ['half a cipher block', withHash(Buffer.alloc(8).toString('base64'))],
  ['padding that is no padding', withHash(Buffer.alloc(16).toString('base64'))],
  ['text that is no UTF-8', sealBytes(Uint8Array.of(0x22, 0xff, 0x22))],
])('says that %s under a right hash cannot be decrypted', (_, envelope) => {
  expect(openEnvelope(envelope, secret)).toEqual(refused('undecryptable'));
});

const text = fc.string({ unit: anyCharacter });
const secrets = fc.record({ client: text, sharedSecret: fc.string({ unit: anyCharacter, minLength: 16 }) });

test('opens what it sealed, whatever the text and the secret', () => {
  const marked = text.map((value) => `\uFEFF${value}`);
  fc.assert(
    fc.property(fc.oneof(text, marked), secrets, (value, key) => {
      expect(openEnvelope(sealEnvelope(value, key), key)).toEqual({ ok: true, value: value });
    }),
  );
});

test('refuses an envelope with any one character changed, but for the case of the hash', () => {
  const character = fc.oneof(
    fc.constantFrom(...'|=+/aAfF09\n'),
    fc.string({ minLength: 1, maxLength: 1, unit: anyCharacter }),
  );
  fc.assert(
    fc.property(text, fc.nat(), character, (value, position, other) => {
      const envelope = sealEnvelope(value, secret);
      const at = position % envelope.length;
      const changed = envelope.slice(0, at) + other + envelope.slice(at + 1);
      const opened = openEnvelope(changed, secret);
      const pipe = envelope.indexOf('|');
      const sameHash = at > pipe && other.toLowerCase() === envelope[at];
      if (changed === envelope || sameHash) expect(opened).toEqual({ ok: true, value: value });
      else expect(['hash_mismatch', 'malformed']).toContain(!opened.ok && opened.problem.code);
    }),
    { numRuns: 1000 },
  );
});

test('refuses an envelope behind other text', () => {
  expect(openEnvelope(` ${sealEnvelope('{}', secret)}`, secret)).toEqual(refused('malformed'));
});

test('clients and contents are named by what can be a part of a path', () => {
  const takes = (text: string) => PROVIDER_ID.pattern.test(text);
  expect(['a', '...', '.a', 'a.b_c-D9', 'a'.repeat(200)].filter(takes)).toHaveLength(5);
  expect(['', '.', '..', 'a/b', 'a b', '\na', 'a\n', 'a'.repeat(201)].filter(takes)).toEqual([]);
});

test('a client key is printable ASCII without spaces', () => {
  const takes = (text: string) => CLIENT_API_KEY.pattern.test(text);
  expect(['!', '~', 'x'.repeat(1000)].filter(takes)).toHaveLength(3);
  expect(['', 'a b', ' a', 'a ', 'é', 'x'.repeat(1001)].filter(takes)).toEqual([]);
});
