import fc from 'fast-check';
import {
  decodeBase64,
  decodeBase64Block,
  decodeHexBlock,
  formatUuid,
  isRandomUuid,
  looksSwapped,
  parseUuid,
  swapKeyIdOrder,
  uuidOfName,
} from '../../src/drm/bytes';
import { sentenceOf } from '../../src/drm/finding';
import invalid from '../vectors/drm-invalid.json';
import { drmVectors, keyFileSamples } from '../vectors/drm-vectors';

const block = fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes));
const anyText = fc.array(fc.nat(0xffff)).map((units) => String.fromCharCode(...units));
/** Texts near base64: the alphabet, the other alphabet, padding and blanks, in any order. */
const nearBase64 = fc.array(fc.constantFrom(...'AQgw9+/-_= \n,')).map((characters) => characters.join(''));
const nearHex = fc
  .array(fc.constantFrom(...'09afAFgx-'), { minLength: 30, maxLength: 34 })
  .map((characters) => characters.join(''));
const ids = [
  ...drmVectors.playready_checksum.vectors,
  ...keyFileSamples.map(([name, { derived }]) => ({ source: name, ...derived })),
];

describe('decodeBase64', () => {
  test.each(invalid.base64)('refuses a text: $why', ({ text, problem }) => {
    expect(decodeBase64(text)).toEqual({ ok: false, problem });
  });

  test('gives back the bytes of a text that they encode to again, and of no other', () => {
    fc.assert(
      fc.property(fc.oneof(nearBase64, fc.base64String(), anyText), (text) => {
        const value = Buffer.from(text, 'base64');
        const canonical = text !== '' && value.toString('base64') === text;
        const expected = canonical ? { ok: true, value } : expect.objectContaining({ ok: false });
        expect(decodeBase64(text)).toEqual(expected);
      }),
      { numRuns: 1000 },
    );
  });
});

describe('decodeBase64Block', () => {
  test.each(invalid.base64_block)('refuses a text: $why', ({ text, problem }) => {
    expect(decodeBase64Block(text)).toEqual({ ok: false, problem });
  });

  test('accepts the base64 of 16 bytes and of no other number of bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        const text = Buffer.from(bytes).toString('base64');
        expect(decodeBase64Block(text).ok).toBe(bytes.length === 16);
      }),
    );
  });
});

describe('decodeHexBlock', () => {
  test.each(invalid.hex_block)('refuses a text: $why', ({ text, problem }) => {
    expect(decodeHexBlock(text)).toEqual({ ok: false, problem });
  });

  test('gives back the bytes of 32 hex digits in either case, and of nothing else', () => {
    const right = block.map((value) => value.toString('hex'));
    const upper = right.map((hex) => hex.toUpperCase());
    fc.assert(
      fc.property(fc.oneof(right, upper, nearHex, nearBase64, anyText), (text) => {
        const isRight = text.length === 32 && /^[0-9a-f]+$/i.test(text);
        const value = Buffer.from(text, 'hex');
        const expected = isRight ? { ok: true, value } : expect.objectContaining({ ok: false });
        expect(decodeHexBlock(text)).toEqual(expected);
      }),
      { numRuns: 1000 },
    );
  });
});

test.each(ids)('a key id has both byte orders and a UUID that agree: $source', (vector) => {
  const bigEndian = Buffer.from(vector.kid_be_b64, 'base64');
  expect(decodeBase64Block(vector.kid_be_b64)).toEqual({ ok: true, value: bigEndian });
  expect(swapKeyIdOrder(bigEndian).toString('base64')).toBe(vector.kid_le_b64);
  expect(formatUuid(bigEndian)).toBe(vector.kid_uuid);
  expect(parseUuid(vector.kid_uuid)).toEqual({ ok: true, value: bigEndian });
});

describe('parseUuid', () => {
  test.each(invalid.uuid)('refuses a text: $why', ({ text, problem }) => {
    expect(parseUuid(text)).toEqual({ ok: false, problem });
  });

  test('reads back any key id, in braces and upper case too', () => {
    fc.assert(
      fc.property(block, (value) => {
        const text = formatUuid(value);
        expect(parseUuid(text)).toEqual({ ok: true, value });
        expect(parseUuid(`{${text.toUpperCase()}}`)).toEqual({ ok: true, value });
      }),
    );
  });
});

test('a text around a value is not passed over', () => {
  const UUID = '313f2322-dce1-57e6-b2fb-7404b68c88c5';
  const codes = [
    parseUuid(`${UUID}0`),
    parseUuid(`0${UUID}`),
    decodeHexBlock('24F790750x974B8E1BC8AF576925B845'),
    decodeHexBlock('zz24:F7:90'),
    decodeHexBlock('24:F7:90zz'),
  ].map((decoded) => !decoded.ok && decoded.problem.code);
  expect(codes).toEqual(['not_uuid', 'not_uuid', 'not_hex', 'not_hex', 'not_hex']);
});

describe('a key id in the other byte order', () => {
  const swappedId = (uuid: string) => swapKeyIdOrder(Buffer.from(uuid.replaceAll('-', ''), 'hex'));

  test('is suspected where it reads as a random UUID by version and variant', () => {
    expect(looksSwapped(swappedId('44da52ef-4523-498e-9854-777ee322681d'))).toBe(true);
    expect(looksSwapped(swappedId('44da52ef-4523-198e-9854-777ee322681d'))).toBe(false);
    expect(looksSwapped(swappedId('44da52ef-4523-498e-5854-777ee322681d'))).toBe(false);
  });

  test('is none when it is made of a name, as those that SPEKE providers are asked for', () => {
    const ids = Array.from({ length: 300 }, (_, index) =>
      uuidOfName(Buffer.alloc(16, 7), `content-${index}`),
    );
    expect(ids.filter((id) => isRandomUuid(swapKeyIdOrder(id))).length).toBeGreaterThan(0);
    expect(ids.filter(looksSwapped)).toEqual([]);
  });

  test('is none when it reads so in both, nor in 17 bytes', () => {
    expect(looksSwapped(Buffer.from('44da52ef452348409854777ee322681d', 'hex'))).toBe(false);
    expect(isRandomUuid(Buffer.from('44da52ef4523498e9854777ee322681d00', 'hex'))).toBe(false);
  });
});

test('a description is a whole sentence about its subject, or by itself', () => {
  expect(sentenceOf({ description: 'is not hex' }, 'fairplay.key')).toBe('fairplay.key is not hex.');
  expect(sentenceOf({ description: 'The key is lost.' })).toBe('The key is lost.');
  expect(sentenceOf({ description: 'was it lost?' }, 'The key')).toBe('The key was it lost?');
});
