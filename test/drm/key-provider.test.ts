import { decodeBase64Block, formatUuid, swapKeyIdOrder } from '../../src/drm/bytes';
import { crossCheck } from '../../src/drm/cross-check';
import { checkPlayReadyChecksum, playReadyChecksum } from '../../src/drm/playready';
import { readWidevinePsshData } from '../../src/drm/widevine';
import { drmVectors, widevineDataOf } from '../vectors/drm-vectors';

/*
 * The key provider's published answers in plain text. envelope.test.ts opens two of them from their envelopes.
 */

const { plain_texts, checks } = drmVectors.key_provider;
const {
  cenc = {},
  fairplay = {},
  playready = {},
  widevine = {},
  cenc_2018_no_checksum: older = {},
} = plain_texts;

function block(text: string | undefined): Buffer {
  const decoded = decodeBase64Block(text ?? '');
  if (!decoded.ok) throw new Error(`A published value ${decoded.problem.description}`);
  return decoded.value;
}

test('the cenc answer makes a key file with the fairplay answer that agrees with itself', () => {
  const keyFile = {
    cenc: { keyId: cenc.key_id_big ?? '', contentKey: cenc.content_key ?? '' },
    widevine: { psshData: cenc.widevine_drm_specific_data ?? '' },
    playready: { licenseUrl: cenc.playready_laurl ?? '', checksum: cenc.playready_checksum ?? '' },
    fairplay: { licenseUrl: fairplay.laurl ?? '', key: fairplay.key_hex ?? '', iv: fairplay.iv_hex ?? '' },
  };
  expect(crossCheck(keyFile, checks.cenc_widevine_decoded.content_id)).toEqual([]);
  expect(formatUuid(block(cenc.key_id_big))).toBe(checks.cenc_kid_uuid);
});

test('the playready answer has a key id in GUID order, whatever its name says', () => {
  const keyId = block(playready.key_id);
  const verdict = checkPlayReadyChecksum(playready.checksum ?? '', keyId, block(playready.content_key));
  expect(verdict).toBe(checks.playready_key_id_is_little_endian ? 'key_id_byte_order' : 'match');
  expect(formatUuid(swapKeyIdOrder(keyId))).toBe(playready.key_id_guid);
});

test('the older cenc answer has the key of the playready answer, whose checksum can be computed', () => {
  const keyId = block(older.key_id_big);
  expect(keyId).toEqual(swapKeyIdOrder(block(playready.key_id)));
  expect(playReadyChecksum(keyId, block(older.content_key))).toBe(playready.checksum);
});

test('the widevine answer has data that names its key id', () => {
  const payload = widevine.drm_specific_data ?? '';
  const data = widevineDataOf(checks.widevine_decoded);
  expect(readWidevinePsshData(payload)).toEqual({ ok: true, value: { payload, data, unwrapped: false } });
  expect(data.keyIds).toEqual([block(widevine.key_id)]);
});
