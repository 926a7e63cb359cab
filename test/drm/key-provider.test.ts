import { decodeBase64Block, decodeHexBlock, formatUuid, swapKeyIdOrder } from '../../src/drm/bytes';
import { crossCheck } from '../../src/drm/cross-check';
import { checkPlayReadyChecksum, playReadyChecksum } from '../../src/drm/playready';
import { readWidevinePsshData } from '../../src/drm/widevine';
import { drmVectors, widevineDataOf } from '../vectors/drm-vectors';

/*
 * The key provider's published answers in plain text. envelope.test.ts opens two of them from their envelopes.
 */

const { plain_texts, checks } = drmVectors.key_provider;
const published = drmVectors.playready_checksum.vectors;

function block(text: string | undefined): Buffer {
  const decoded = decodeBase64Block(text ?? '');
  if (!decoded.ok) throw new Error(`A published value ${decoded.problem.description}`);
  return decoded.value;
}

describe.each(Object.entries(plain_texts))('the answer %s', (_, answer) => {
  test('has the same key in hex and base64', () => {
    const { content_key, content_key_hex, key_id, key_id_big, key_id_hex } = answer;
    if (content_key_hex)
      expect(decodeHexBlock(content_key_hex)).toEqual({ ok: true, value: block(content_key) });
    if (key_id_hex)
      expect(decodeHexBlock(key_id_hex)).toEqual({ ok: true, value: block(key_id ?? key_id_big) });
  });
});

describe('the cenc answer', () => {
  const { cenc = {}, fairplay = {} } = plain_texts;
  const keyId = block(cenc.key_id_big);
  const key = block(cenc.content_key);

  test('has a big-endian key id', () => {
    const hex = decodeHexBlock(cenc.key_id_hex ?? '');
    expect(hex.ok && hex.value.equals(keyId)).toBe(checks.cenc_key_id_hex_equals_big_endian_bytes);
    expect(formatUuid(keyId)).toBe(checks.cenc_kid_uuid);
  });

  test('has a checksum of the key id in GUID order', () => {
    const verdict = checkPlayReadyChecksum(cenc.playready_checksum ?? '', keyId, key);
    expect(verdict).toBe(checks.cenc_checksum_needs_swap ? 'match' : 'key_id_byte_order');
    expect(checkPlayReadyChecksum(checks.cenc_checksum_if_not_swapped, keyId, key)).toBe('key_id_byte_order');
  });

  test('has Widevine data as described', () => {
    const payload = cenc.widevine_drm_specific_data ?? '';
    const data = widevineDataOf(checks.cenc_widevine_decoded);
    expect(readWidevinePsshData(payload)).toEqual({ ok: true, value: { payload, data, unwrapped: false } });
  });

  test('makes a key file with the fairplay answer that agrees with itself', () => {
    const keyFile = {
      cenc: { keyId: cenc.key_id_big ?? '', contentKey: cenc.content_key ?? '' },
      widevine: { psshData: cenc.widevine_drm_specific_data ?? '' },
      playready: { licenseUrl: cenc.playready_laurl ?? '', checksum: cenc.playready_checksum ?? '' },
      fairplay: { licenseUrl: fairplay.laurl ?? '', key: fairplay.key_hex ?? '', iv: fairplay.iv_hex ?? '' },
    };
    expect(crossCheck(keyFile, checks.cenc_widevine_decoded.content_id)).toEqual([]);
  });
});

describe('the playready answer', () => {
  const { playready = {}, cenc_2018_no_checksum: older = {} } = plain_texts;
  const keyId = block(playready.key_id);

  test('has a key id in GUID order, whatever its name says', () => {
    const verdict = checkPlayReadyChecksum(playready.checksum ?? '', keyId, block(playready.content_key));
    expect(verdict).toBe(checks.playready_key_id_is_little_endian ? 'key_id_byte_order' : 'match');
    expect(formatUuid(swapKeyIdOrder(keyId))).toBe(playready.key_id_guid);
  });

  test('has the key of the older cenc answer, whose missing checksum can be computed', () => {
    expect(block(older.key_id_big)).toEqual(swapKeyIdOrder(keyId));
    expect(older.content_key).toBe(playready.content_key);
    const checksum = playReadyChecksum(block(older.key_id_big), block(older.content_key));
    expect(checksum).toBe(playready.checksum);
    expect(published.map((vector) => vector.checksum)).toContain(checksum);
  });
});

test('the widevine answer has data that names its key id', () => {
  const { widevine = {} } = plain_texts;
  const payload = widevine.drm_specific_data ?? '';
  const data = widevineDataOf(checks.widevine_decoded);
  expect(readWidevinePsshData(payload)).toEqual({ ok: true, value: { payload, data, unwrapped: false } });
  expect(data.keyIds).toEqual([block(widevine.key_id)]);
});
