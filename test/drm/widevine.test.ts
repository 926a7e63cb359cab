import fc from 'fast-check';
import { buildPsshBox } from '../../src/drm/pssh';
import {
  buildWidevinePsshData,
  PROTECTION_SCHEMES,
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

test('takes the last of a field that may stand once, and passes over fields it does not know', () => {
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
  const { cenc, cbc1, cbcs } = PROTECTION_SCHEMES;

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
