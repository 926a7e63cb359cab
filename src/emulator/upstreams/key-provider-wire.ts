import { formatUuid, swapKeyIdOrder } from '../../drm/bytes';
import { playReadyChecksum } from '../../drm/playready';
import { buildWidevinePsshData, PROTECTION_SCHEMES, widevinePsshDataOf } from '../../drm/widevine';
import type { ContentKeys } from './derive-keys';
import {
  AES_KEY_URL,
  FAIRPLAY_LICENSE_URL,
  PLAYREADY_LICENSE_URL,
  WIDEVINE_LICENSE_URL,
} from './license-addresses';

/** What an answer is made from. */
export interface Content {
  readonly client: string;
  readonly contentId: string;
  readonly keys: ContentKeys;
}

export interface KeyAnswer {
  /** The fields inside the envelope, in the letter case and byte orders of the provider's printed samples. */
  readonly fields: (content: Content) => Readonly<Record<string, string>>;
  /** Whether the answer gives out the content key under its key id. */
  readonly namesKeyId: boolean;
}

/** The five kinds of answer, by the part of the path that asks for them. */
export const KEY_ANSWERS: Readonly<
  Record<'cenc' | 'fairplay' | 'widevine' | 'playready' | 'aes', KeyAnswer>
> = {
  cenc: {
    namesKeyId: true,
    fields: ({ contentId, keys }) => ({
      key_id_big: base64(keys.keyId),
      key_id_hex: upperHex(keys.keyId),
      content_key: base64(keys.contentKey),
      content_key_hex: upperHex(keys.contentKey),
      playready_key_iv: lowerHex(keys.playReadyKeyIv),
      playready_laurl: PLAYREADY_LICENSE_URL,
      playready_checksum: playReadyChecksum(keys.keyId, keys.contentKey),
      widevine_drm_specific_data: contentIdPsshData(contentId),
      widevine_laurl: WIDEVINE_LICENSE_URL,
    }),
  },
  fairplay: {
    namesKeyId: false,
    fields: ({ contentId, keys }) => ({
      key_hex: upperHex(keys.fairPlayKey),
      iv_hex: upperHex(keys.fairPlayIv),
      laurl: `${FAIRPLAY_LICENSE_URL}/${contentId}`,
    }),
  },
  widevine: {
    namesKeyId: true,
    fields: ({ contentId, keys }) => ({
      key_id: base64(keys.keyId),
      key_id_hex: upperHex(keys.keyId),
      content_key: base64(keys.contentKey),
      laurl: WIDEVINE_LICENSE_URL,
      drm_specific_data: widevinePsshDataOf(keys.keyId, contentId),
    }),
  },
  playready: {
    namesKeyId: true,
    // Only this answer has the key id in GUID order, in its base64 and its hex.
    fields: ({ keys }) => ({
      key_id: base64(swapKeyIdOrder(keys.keyId)),
      key_id_guid: formatUuid(keys.keyId),
      key_id_hex: upperHex(swapKeyIdOrder(keys.keyId)),
      content_key: base64(keys.contentKey),
      laurl: PLAYREADY_LICENSE_URL,
      service_id: base64(keys.playReadyServiceId),
      key_iv: lowerHex(keys.playReadyKeyIv),
      checksum: playReadyChecksum(keys.keyId, keys.contentKey),
    }),
  },
  aes: {
    namesKeyId: false,
    fields: ({ client, contentId, keys }) => ({
      key_hex: lowerHex(keys.aesKey),
      key_url: `${AES_KEY_URL}/${client}/${contentId}`,
    }),
  },
};

/** The provider's CENC samples carry content id and scheme, and no key id. */
function contentIdPsshData(contentId: string): string {
  const data = { keyIds: [], contentId: Buffer.from(contentId), protectionScheme: PROTECTION_SCHEMES.cenc };
  return base64(buildWidevinePsshData(data));
}

function base64(bytes: Buffer): string {
  return bytes.toString('base64');
}

function lowerHex(bytes: Buffer): string {
  return bytes.toString('hex');
}

function upperHex(bytes: Buffer): string {
  return bytes.toString('hex').toUpperCase();
}
