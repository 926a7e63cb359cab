import fc from 'fast-check';
import { check } from '../../../src/api/check';
import { summariseKeyFile } from '../../../src/drm/check/key-file-text';
import { playReadyObjectOf } from '../../../src/drm/playready';
import { anyCharacter } from '../../support/any-character';
import { POST_MANUAL, POST_MANUAL_FILE } from '../../support/post-manual';
import { drmVectors } from '../../vectors/drm-vectors';
import { segments } from '../../vectors/init-segments.json';
import { expectHidden } from './checked';

const OBJECT = drmVectors.playready_object_self_made;
const GOOD = [
  POST_MANUAL_FILE,
  JSON.stringify(POST_MANUAL),
  OBJECT.pro_b64,
  OBJECT.xml,
  ...drmVectors.pssh_boxes.map(({ b64 }) => b64),
  ...drmVectors.widevine_pssh_data.map(({ data_b64 }) => data_b64),
  Buffer.from(OBJECT.pro_b64, 'base64').toString('hex'),
  ...segments.map(({ b64 }) => b64),
  `<ContentProtection value="cbcs" cenc:default_KID="44da52ef-4523-098e-6854-777ee322681d"><mspr:pro>${OBJECT.pro_b64}</mspr:pro></ContentProtection>`,
  '#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://a/b?wowzasessionid=1",KEYFORMAT="com.apple.streamingkeydelivery"',
  'https://license.example/?a=1&amp;b=2',
];

const good = fc.constantFrom(...GOOD);
const bytes = fc.uint8Array({ maxLength: 300 }).map((value) => Buffer.from(value));

/** A known-good text with a piece replaced, cut out or put in. */
const mutated = fc
  .tuple(
    good,
    fc.nat(),
    fc.nat(40),
    fc.oneof(fc.string({ unit: anyCharacter, maxLength: 20 }), fc.constantFrom('', '\n', '=', '<', '\0')),
  )
  .map(([text, at, length, piece]) => {
    const start = at % (text.length + 1);
    return text.slice(0, start) + piece + text.slice(start + length);
  });

/** Bytes of a known-good value, mutated below its encoding. */
const mutatedBytes = fc
  .tuple(fc.constantFrom(OBJECT.pro_b64, ...GOOD.slice(4, 6)), fc.nat(), fc.nat(255), fc.nat(40))
  .map(([text, at, byte, cut]) => {
    const copy = Buffer.from(text, 'base64');
    copy[at % copy.length] = byte;
    return copy.subarray(0, copy.length - (cut > 30 ? cut : 0)).toString('base64');
  });

const anyText = fc.oneof(
  mutated,
  mutatedBytes,
  fc.string({ unit: anyCharacter, maxLength: 200 }),
  bytes.map((value) => value.toString('base64')),
  bytes.map((value) => value.toString('hex')),
  bytes.map((value) =>
    Buffer.concat([Buffer.from([0, 0, 0, value.length + 8]), Buffer.from('pssh'), value]).toString('base64'),
  ),
  fc.array(good, { maxLength: 3 }).map((texts) => texts.join('')),
);

it('every fault of any input has a code of one form and one whole sentence, and an unknown one has one', () => {
  const anything = fc.oneof({ weight: 2, arbitrary: anyText }, fc.jsonValue(), fc.anything());
  fc.assert(
    fc.property(anything, (input) => {
      const { kind, faults } = check(input);
      if (kind === 'unknown' && faults.length === 0) throw new Error('unknown without a fault');
      for (const { code, description } of faults) {
        if (!/^[a-z0-9_]+$/.test(code) || !/[.?]$/.test(description))
          throw new Error(`${code}: ${description}`);
      }
      if (typeof input === 'string') summariseKeyFile(input);
    }),
    { numRuns: 1500 },
  );
});

it.each([
  ['hex digits', 'a'.repeat(64_000)],
  ['base64', Buffer.alloc(48_000, 7).toString('base64')],
  ['signs of a pattern', 'é('.repeat(20_000)],
])('a key of 64,000 %s throws nothing and is not shown', (_what, huge) => {
  const { cenc, fairplay } = POST_MANUAL;
  const bodies = [
    { cenc: { ...cenc, contentkey: huge }, fairplay: { ...fairplay, key: huge, iv: huge } },
    { client: 'c', contentId: 'i', clientApiKey: huge },
    POST_MANUAL_FILE.replace(cenc.contentkey, huge),
  ];
  for (const body of bodies) {
    const said = JSON.stringify(check(body));
    expect(said).toContain('********');
    expect(said).not.toContain(huge.slice(0, 100));
  }
});

it('an input of 64 KiB makes no answer far larger than it is', () => {
  const inputs = [
    Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`f${index}`, 1])),
    'xx-cenc-yy: x\n'.repeat(4600),
    `<WRMHEADER version="4.2.0.0"><DATA><PROTECTINFO><KIDS>${'<KID></KID>'.repeat(5000)}</KIDS></PROTECTINFO></DATA></WRMHEADER>`,
    Buffer.concat(Array<Buffer>(2600).fill(Buffer.from(`1210${'03'.repeat(16)}`, 'hex'))).toString('base64'),
    '['.repeat(64_000),
    '<!--'.repeat(16_000),
    `<pssh>x</pssh>${'<!--'.repeat(15_000)}`,
    '<pssh>AAAA</pssh><pro>AAAA</pro>'.repeat(2000),
    Array.from({ length: 1600 }, (_, index) => `#EXT-X-KEY:METHOD=AES-128,URI="${index}"`).join('\n'),
    Array.from(
      { length: 700 },
      (_, index) =>
        `<ContentProtection cenc:default_KID="${String(index).padStart(8, '0')}-0000-4000-8000-000000000000"/>`,
    ).join(''),
  ];
  for (const input of inputs) expect(JSON.stringify(check(input)).length).toBeLessThan(64 * 1024);
});

/** How a key gets mangled on its way; each still shows the key to a reader. */
const FORMS: readonly ((key: Buffer) => string)[] = [
  (key) => key.toString('base64'),
  (key) => key.toString('base64').replaceAll('=', ''),
  (key) => key.toString('base64url'),
  (key) => key.toString('hex'),
  (key) => key.toString('hex').toUpperCase(),
  (key) => `0x${key.toString('hex')}`,
  (key) => (key.toString('hex').match(/../g) ?? []).join(':'),
  (key) => key.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'),
  (key) => `${key.toString('base64')} `,
  (key) => key.toString('base64').replace(/^.{10}/, '$&\n'),
  (key) => Buffer.from(key.toString('base64')).toString('base64'),
  (key) => Buffer.from(key.toString('hex')).toString('base64'),
  (key) => `${key.toString('base64').slice(0, -2)}`,
  (key) => `x${key.toString('base64')}`,
];

const key = fc
  .uint8Array({ minLength: 16, maxLength: 16 })
  .map((value) => Buffer.from(value))
  .filter((value) => new Set(value).size > 8);

const expectNotReported = (secret: Buffer, result: unknown) => expectHidden(secret, JSON.stringify(result));

describe('a content key is never shown unasked', () => {
  const { cenc, playready, fairplay } = POST_MANUAL;
  it('where it belongs, nor elsewhere, however it is written', () => {
    const places: ((text: string) => unknown)[] = [
      (text) => ({ ...POST_MANUAL, cenc: { ...cenc, contentkey: text } }),
      (text) => ({ ...POST_MANUAL, fairplay: { ...fairplay, key: text } }),
      (text) => POST_MANUAL_FILE.replace(cenc.contentkey, text).replace(fairplay.key, text),
      (text) => ({ ...POST_MANUAL, unknown: text }),
      (text) => ({ ...POST_MANUAL, [text]: 1 }),
      (text) => ({ ...POST_MANUAL, cenc: { ...cenc, key: text } }),
      (text) => ({ ...POST_MANUAL, cenc: text }),
      (text) => ({ ...POST_MANUAL, drmjson: text, client: text, clientApiKey: text }),
      (text) => ({ client: 'c', contentId: 'i', clientApiKey: text }),
      (text) => ({ cenc, playready: { ...playready, checksum: text } }),
      (text) => ({ cenc, widevine: { psshdata: text } }),
      (text) => ({
        cenc,
        playready: { laurl: `https://a.example/?cfg=(contentkey:${encodeURIComponent(text)})` },
      }),
      (text) => ({ cenc: { keyid: cenc.keyid, contentkey: text }, contentId: text }),
      (text) => ({ cenc: { keyid: text, contentkey: text } }),
      (text) => ({ fairplay: { ...fairplay, key: text, laurl: `skd://${encodeURIComponent(text)}` } }),
      (text) => `${POST_MANUAL_FILE}${text}\n`,
      (text) => `${POST_MANUAL_FILE}${text}: x\n`,
      (text) => `${POST_MANUAL_FILE}note: ${text}\n`,
      (text) => POST_MANUAL_FILE.replace('AESCTR', text),
      (text) => POST_MANUAL_FILE.replace('SAMPLE-AES', text),
      (text) => POST_MANUAL_FILE.replace(cenc.contentkey, text).replace(cenc.keyid, text),
      (text) => POST_MANUAL_FILE.replace(playready.laurl, text),
      (text) => `{"cenc":{"contentkey":"${text}",}}`,
      (text) => `https://a.example/?token=${encodeURIComponent(text)}`,
      (text) => `#EXT-X-KEY:METHOD=AES-128,URI="data:text/plain;base64,${text}"`,
      (text) => `#EXT-X-KEY:METHOD=${text},KEYFORMAT="${text}",URI="skd://a",IV=${text}`,
      (text) =>
        `<ContentProtection cenc:default_KID="x" value="${text}"><pssh>%${text}</pssh></ContentProtection>`,
    ];
    fc.assert(
      fc.property(key, (secret) => {
        for (const input of FORMS.flatMap((write) => places.map((place) => place(write(secret))))) {
          expectNotReported(secret, check(input));
          if (typeof input === 'string') expectNotReported(secret, summariseKeyFile(input));
        }
      }),
      // Every form in every place each time.
      { numRuns: 2 },
    );
  });

  it('in Widevine data or a PlayReady address next to it', () => {
    fc.assert(
      fc.property(key, (secret) => {
        const keyId = Buffer.from(cenc.keyid, 'base64');
        const named = Buffer.concat([Buffer.from([0x22, 16]), secret]).toString('base64');
        const body = {
          cenc: { ...cenc, contentkey: secret.toString('base64') },
          widevine: { psshdata: named },
        };
        expectNotReported(secret, check(body));
        const address = `https://a.example/?cfg=(contentkey:${secret.toString('base64url')})`;
        expectNotReported(secret, check(playReadyObjectOf(keyId, secret, address).toString('base64')));
      }),
    );
  });
});

it('a content key with a line break in it is hidden in an address, too', () => {
  const { fairplay } = POST_MANUAL;
  const key = `${fairplay.key.slice(0, 10)}\n${fairplay.key.slice(10)}`;
  const address = encodeURIComponent(key);
  const { fields } = check({ fairplay: { ...fairplay, key, laurl: `skd://${address}` } });
  expect(fields).toContainEqual({ name: 'fairplay.laurl', value: 'skd://********' });
});

it("a key id that is FairPlay's IV, too, is shown, and one that is its key is not", () => {
  const hex = Buffer.from(POST_MANUAL.cenc.keyid, 'base64').toString('hex');
  const withValues = (values: object) =>
    JSON.stringify(check({ ...POST_MANUAL, fairplay: { ...POST_MANUAL.fairplay, ...values } }).fields);
  expect(withValues({ iv: hex })).toContain(POST_MANUAL.cenc.keyid);
  expect(withValues({ iv: hex, key: hex })).not.toContain(POST_MANUAL.cenc.keyid);
});

it('everything is shown when asked', () => {
  const { fields } = check(POST_MANUAL, { reveal: true });
  const values = Object.fromEntries(fields.map(({ name, value }) => [name, value]));
  expect(values).toMatchObject({
    'cenc.contentkey': POST_MANUAL.cenc.contentkey,
    'fairplay.key': POST_MANUAL.fairplay.key,
    'fairplay.iv': POST_MANUAL.fairplay.iv,
  });
});
