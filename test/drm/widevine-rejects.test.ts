import { buildPsshBox, parsePsshBox } from '../../src/drm/pssh';
import {
  buildWidevinePsshData,
  parseWidevinePsshData,
  readWidevinePsshData,
  schemeName,
  WIDEVINE_SYSTEM_ID,
} from '../../src/drm/widevine';
import invalid from '../vectors/drm-invalid.json';
import { drmVectors, widevineDataOf } from '../vectors/drm-vectors';

const rejects = drmVectors.widevine_pssh_data_rejects;
const isWholeBox = ({ expect: wanted }: { expect: string }) => wanted.startsWith('detect');

describe('the published rejects', () => {
  test.each(rejects.filter(isWholeBox))('unwraps $name', ({ data_b64 }) => {
    const whole = Buffer.from(data_b64, 'base64');
    expect(parseWidevinePsshData(whole).ok).toBe(false);
    const box = parsePsshBox(whole);
    const data = box.ok && parseWidevinePsshData(box.value.data);
    expect(readWidevinePsshData(data_b64)).toEqual({
      ok: true,
      value: {
        payload: box.ok && box.value.data.toString('base64'),
        data: data && (data.ok ? data.value : data.fault.sentence),
        unwrapped: true,
      },
    });
  });

  test.each(rejects.filter(({ expect: wanted }) => wanted === 'refuse'))('refuses $name', ({ data_b64 }) => {
    expect(readWidevinePsshData(data_b64)).toEqual({
      ok: false,
      fault: {
        code: 'malformed_data',
        sentence: expect.stringMatching(/^is not Widevine PSSH data: /),
      },
    });
  });

  test.each(rejects.filter(({ decoded }) => decoded))('reads $name', ({ data_b64, decoded = {} }) => {
    const data = widevineDataOf(decoded);
    expect(readWidevinePsshData(data_b64)).toEqual({
      ok: true,
      value: { payload: data_b64, data, unwrapped: false },
    });
    expect(buildWidevinePsshData(data).toString('base64')).toBe(data_b64);
    expect(schemeName(data.protectionScheme ?? 0)).toBe(decoded.protection_scheme?.fourcc);
  });

  test('are each unwrapped, refused or warned of (cross-check.test.ts)', () => {
    const known = rejects.filter(
      (entry) => isWholeBox(entry) || entry.expect === 'refuse' || entry.expect.startsWith('warn'),
    );
    expect(rejects).toEqual(known);
  });
});

test.each(invalid.widevine_pssh_data)('refuses a message: $why', ({ hex, fault }) => {
  expect(parseWidevinePsshData(Buffer.from(hex, 'hex'))).toEqual({ ok: false, fault });
});

test.each(invalid.widevine_value)('refuses a value: $why', ({ text: value, fault }) => {
  expect(readWidevinePsshData(value)).toEqual({ ok: false, fault });
});

test('refuses a value of more than 16,384 characters, in a box or without one', () => {
  const value = (length: number) => buildWidevinePsshData({ keyIds: [], policy: 'p'.repeat(length) });
  const fault = { code: 'too_long', sentence: 'is longer than 16384 characters' };
  expect(readWidevinePsshData(value(12_285).toString('base64'))).toMatchObject({ ok: true });
  expect(readWidevinePsshData(value(12_286).toString('base64'))).toEqual({ ok: false, fault });
  const box = buildPsshBox(WIDEVINE_SYSTEM_ID, value(12_285));
  expect(readWidevinePsshData(box.toString('base64'))).toEqual({ ok: false, fault });
});
