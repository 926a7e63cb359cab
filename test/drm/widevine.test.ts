import fc from 'fast-check';
import { buildPsshBox } from '../../src/drm/pssh';
import {
  buildWidevinePsshData,
  encodeField,
  PROTECTION_SCHEMES,
  parseProtobuf,
  parseWidevinePsshData,
  readWidevinePsshData,
  schemeName,
  WIDEVINE_SYSTEM_ID,
  type WidevinePsshData,
  widevineFindings,
  widevinePsshDataOf,
} from '../../src/drm/widevine';
import { anyCharacter } from '../support/any-character';
import { rowsOf } from '../support/rows-of';
import invalid from '../vectors/drm-invalid.json';
import { drmVectors, keyFileSamples, widevineDataOf } from '../vectors/drm-vectors';

const { schemes, system_ids } = drmVectors.constants;

const bytes = (constraints?: fc.IntArrayConstraints) =>
  fc.uint8Array(constraints).map((array) => Buffer.from(array));
const text = fc.string({ unit: anyCharacter });
const message = fc
  .record(
    {
      algorithm: fc.nat(),
      keyIds: fc.array(bytes({ minLength: 16, maxLength: 16 }), { maxLength: 4 }),
      provider: text,
      contentId: fc.oneof(
        bytes(),
        text.map((end) => Buffer.from(`hopssh${end}`)),
      ),
      trackType: text,
      policy: text,
      cryptoPeriodIndex: fc.nat(),
      groupedLicense: bytes(),
      protectionScheme: fc.maxSafeNat(),
      cryptoPeriodSeconds: fc.nat(),
    },
    { requiredKeys: ['keyIds'] },
  )
  .filter(({ keyIds, ...rest }) => keyIds.length > 0 || Object.keys(rest).length > 0);

const readAs = (payload: string | false, data: unknown, unwrapped = false) => ({
  ok: true,
  value: { payload, data, unwrapped },
});

test('has the registered system id', () => {
  expect(WIDEVINE_SYSTEM_ID).toBe(system_ids.widevine);
});

test('knows the schemes of the standard by number and name, and no others', () => {
  const numbers = Object.entries(schemes).map(([name, { uint32 }]) => [name, uint32] as const);
  expect(PROTECTION_SCHEMES).toEqual(Object.fromEntries(numbers));
  for (const [name, uint32] of numbers) {
    expect(schemeName(uint32)).toBe(name);
    expect(Buffer.from(name).readUInt32BE()).toBe(uint32);
    expect(encodeField(9, uint32).toString('hex')).toBe(schemes[name]?.field9_hex);
  }
  expect(schemeName(0)).toBeUndefined();
});

test.each(drmVectors.widevine_pssh_data)('reads and writes $source', ({ data_b64, decoded, box_v0_b64 }) => {
  const data = widevineDataOf(decoded);
  expect(readWidevinePsshData(data_b64)).toEqual(readAs(data_b64, data));
  expect(readWidevinePsshData(box_v0_b64)).toEqual(readAs(data_b64, data, true));
  expect(buildWidevinePsshData(data).toString('base64')).toBe(data_b64);
});

test.each(keyFileSamples)('reads and makes the data of the sample %s', (_, { values, derived }) => {
  const keyId = Buffer.from(values.cenc.keyid, 'base64');
  const { psshdata } = values.widevine;
  const decoded = widevineDataOf(derived.widevine_decoded);
  expect(readWidevinePsshData(psshdata)).toEqual(readAs(psshdata, decoded));
  const ofKeyId = buildWidevinePsshData({ keyIds: [keyId] });
  expect(ofKeyId.toString('base64')).toBe(derived.widevine_kid_only_data_b64);
  const contentId = derived.contentid_from_fairplay_url;
  const payload = widevinePsshDataOf(keyId, contentId);
  const protectionScheme = PROTECTION_SCHEMES.cenc;
  const data = { keyIds: [keyId], contentId: Buffer.from(contentId), protectionScheme };
  expect(readWidevinePsshData(payload)).toEqual(readAs(payload, data));
});

test('makes data without a content id when none is known', () => {
  const keyId = Buffer.alloc(16, 1);
  expect(Buffer.from(widevinePsshDataOf(keyId, undefined), 'base64').toString('hex')).toBe(
    `1210${keyId.toString('hex')}${schemes.cenc?.field9_hex}`,
  );
});

test('takes the last of a field that may occur once, and passes over fields it does not know', () => {
  const twice = Buffer.from('2201612201625a0178', 'hex');
  expect(parseWidevinePsshData(twice)).toEqual({
    ok: true,
    value: { keyIds: [], contentId: Buffer.from('b') },
  });
});

test('reads back any data it wrote, in a box or without one', () => {
  fc.assert(
    fc.property(message, (data) => {
      const built = buildWidevinePsshData(data);
      const payload = built.toString('base64');
      expect(readWidevinePsshData(payload)).toEqual(readAs(payload, data));
      const box = buildPsshBox(WIDEVINE_SYSTEM_ID, built, data.keyIds).toString('base64');
      expect(readWidevinePsshData(box)).toEqual(readAs(payload, data, true));
    }),
    { numRuns: 300 },
  );
});

const rejects = drmVectors.widevine_pssh_data_rejects.filter(({ expect: wanted }) => wanted === 'refuse');

test.each(rejects)('refuses the published $name', ({ data_b64 }) => {
  const description = expect.stringMatching(/^is not Widevine PSSH data: /);
  const problem = { code: 'malformed_data', description };
  expect(readWidevinePsshData(data_b64)).toEqual({ ok: false, problem });
});

test.each(invalid.widevine_pssh_data)('refuses a message: $why', ({ hex, problem }) => {
  expect(parseWidevinePsshData(Buffer.from(hex, 'hex'))).toEqual({ ok: false, problem });
});

test.each(invalid.widevine_value)('refuses a value: $why', ({ text: value, problem }) => {
  expect(readWidevinePsshData(value)).toEqual({ ok: false, problem });
});

test('refuses a value of more than 16,384 characters, in a box or without one', () => {
  const value = (length: number) => buildWidevinePsshData({ keyIds: [], policy: 'p'.repeat(length) });
  const problem = { code: 'too_long', description: 'is longer than 16384 characters' };
  expect(readWidevinePsshData(value(12_285).toString('base64'))).toMatchObject({ ok: true });
  expect(readWidevinePsshData(value(12_286).toString('base64'))).toEqual({ ok: false, problem });
  const box = buildPsshBox(WIDEVINE_SYSTEM_ID, value(12_285));
  expect(readWidevinePsshData(box.toString('base64'))).toEqual({ ok: false, problem });
});

describe('the data by themselves', () => {
  const ID = Buffer.alloc(16, 1);
  const ZERO = Buffer.alloc(16);
  const content = (text: string): WidevinePsshData => ({ keyIds: [ID], contentId: Buffer.from(text) });
  const { cenc, cens, cbc1, cbcs } = PROTECTION_SCHEMES;

  test.each(
    rowsOf<WidevinePsshData>({
      'a content id': { keyIds: [], contentId: Buffer.from('show') },
      'nothing: names_nothing ': { keyIds: [] },
      'a content id without a byte: empty content_id, names_nothing ': {
        keyIds: [],
        contentId: ZERO.subarray(0, 0),
      },
      'one of several: all_zero key_id[1]': { keyIds: [ID, ZERO] },
      cenc: { keyIds: [ID], protectionScheme: cenc, algorithm: 1 },
      'cbcs as AES-CTR: scheme_mismatch protection_scheme': {
        keyIds: [ID],
        protectionScheme: cbcs,
        algorithm: 1,
      },
      'cens: unsupported_scheme protection_scheme': { keyIds: [ID], protectionScheme: cens },
      'cbc1: unsupported_scheme protection_scheme': { keyIds: [ID], protectionScheme: cbc1, algorithm: 1 },
      'no scheme: unknown_scheme protection_scheme': { keyIds: [ID], protectionScheme: 1 },
      'base64 of a text: encoded_twice content_id': content('c2hvdy0xMg=='),
      'base64 without its padding': content('c2hvdy0xMg'),
      'base64 cut short': content('2hvdy0xMg=='),
      'base64 of bytes': content('AAECAwQ='),
      'base64 of a text with a byte before it': content('AXNob3ctMQ=='),
      'base64 of a text with a byte behind it': content('c2hvdy0xAQ=='),
      'base64 in a text': content('id:c2hvdy0xMg=='),
      'base64 before a text': content('c2hvdy0xMg==:id1'),
      'hex of a text: encoded_twice content_id': content('73686f772d31'),
      'hex that is short': content('73686f772d'),
      'hex of bytes': content('000102030405'),
      'hex in a text': content('x:73686f772d31'),
      'hex before a text': content('73686f772d31:x'),
    }),
  )('are looked at: %s', (_what, data, slips) => {
    expect(widevineFindings(data, '').map(({ code, field }) => `${code} ${field ?? ''}`)).toEqual(slips);
  });
});

const nothing = Buffer.alloc(0);

const number = fc.integer({ min: 1, max: 0x1fffffff });
const field = fc.oneof(
  fc.record({ number, wireType: fc.constant(0), varint: fc.maxSafeNat(), bytes: fc.constant(nothing) }),
  fc.record({
    number,
    wireType: fc.constant(2),
    bytes: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
  }),
);

test.each(invalid.protobuf)('refuses a message: $why', ({ hex, problem }) => {
  expect(parseProtobuf(Buffer.from(hex, 'hex'))).toEqual({ ok: false, problem });
});

test.each([
  ['of 64 bits', '090102030405060708', { wireType: 1, bytes: Buffer.from('0102030405060708', 'hex') }],
  ['of 32 bits', '0d0a0b0c0d', { wireType: 5, bytes: Buffer.from('0a0b0c0d', 'hex') }],
  // As other decoders do.
  ['longer than it need be', '08818000', { wireType: 0, varint: 1, bytes: nothing }],
  ['as large as is exact', '08ffffffffffffff0f', { wireType: 0, varint: 2 ** 53 - 1, bytes: nothing }],
])('reads a number that is %s', (_what, hex, field) => {
  const value = [{ number: 1, ...field }];
  expect(parseProtobuf(Buffer.from(hex, 'hex'))).toEqual({ ok: true, value });
});

test('writes nothing for an absent value, and an empty field for empty bytes', () => {
  expect(encodeField(4, undefined)).toEqual(nothing);
  expect(encodeField(4, nothing)).toEqual(Buffer.from('2200', 'hex'));
});

test('reads back any fields it encoded, in their order', () => {
  fc.assert(
    fc.property(fc.array(field, { maxLength: 8 }), (fields) => {
      const message = fields.map((each) =>
        encodeField(each.number, 'varint' in each ? each.varint : each.bytes),
      );
      expect(parseProtobuf(Buffer.concat(message))).toEqual({ ok: true, value: fields });
    }),
  );
});

test('refuses more than a thousand fields, before it has read them', () => {
  const message = (count: number) => Buffer.from('4801'.repeat(count), 'hex');
  expect(parseProtobuf(message(1000))).toMatchObject({ ok: true, value: { length: 1000 } });
  expect(parseProtobuf(message(1001))).toEqual({
    ok: false,
    problem: { code: 'malformed_data', description: 'it has more than 1000 fields' },
  });
});

test('writes numbers around the end of a byte, and reads the largest field number', () => {
  const hex = (value: number) => encodeField(1, value).toString('hex');
  expect([127, 128, 129, 16_384].map(hex)).toEqual(['087f', '088001', '088101', '08808001']);
  const [field] = [parseProtobuf(encodeField(0x1fffffff, 7))].flatMap((read) => (read.ok ? read.value : []));
  expect(field).toMatchObject({ number: 0x1fffffff, varint: 7 });
});
