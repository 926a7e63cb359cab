import { createHmac } from 'node:crypto';
import type { Express } from 'express';
import { formatUuid, swapKeyIdOrder } from '../../../drm/bytes';
import type { ClearKey } from '../../../drm/clearkey';
import { sealEnvelope } from '../../../drm/envelope';
import { fairPlayKeyId } from '../../../drm/packaging';
import { playReadyChecksum } from '../../../drm/playready';
import { buildWidevinePsshData, PROTECTION_SCHEMES, widevinePsshDataOf } from '../../../drm/widevine';
import { routeAt } from '../../../http/app';
import type { IssuedKeys } from './clearkey-license';
import {
  AES_KEY_URL,
  authorizedClient,
  type Client,
  type Clients,
  FAIRPLAY_LICENSE_URL,
  PLAYREADY_LICENSE_URL,
  requireContentId,
  WIDEVINE_LICENSE_URL,
} from './config-service';

export interface ProviderParts {
  readonly clients: Clients;
  readonly issuedKeys: IssuedKeys;
}

export function mountKeyProvider(app: Express, { clients, issuedKeys }: ProviderParts): void {
  for (const [kind, { fields, gives }] of Object.entries(KEY_ANSWERS)) {
    routeAt(app, `/keyprovider/${kind}/:client/:contentId`).get(({ params, headers }, response) => {
      const { name: client, sharedSecret } = authorizedClient(clients, params.client, headers);
      const contentId = requireContentId(params.contentId);
      const content = { client, contentId, keys: deriveKeys({ name: client, sharedSecret }, contentId) };
      const issued = gives?.(content);
      if (issued) issuedKeys.remember(issued);
      const key = sealEnvelope(JSON.stringify(fields(content)), { client, sharedSecret });
      response.set('cache-control', 'no-store').json({ key });
    });
  }
}

interface Content {
  readonly client: string;
  readonly contentId: string;
  readonly keys: ContentKeys;
}

interface KeyAnswer {
  /** The fields inside the envelope, in the letter case and byte orders of the provider's printed samples. */
  readonly fields: (content: Content) => Readonly<Record<string, string>>;
  /** The key of the answer, under the id that media names; an AES key has none. */
  readonly gives?: (content: Content) => ClearKey;
}

export const KEY_ANSWERS: Readonly<
  Record<'cenc' | 'fairplay' | 'widevine' | 'playready' | 'aes', KeyAnswer>
> = {
  cenc: {
    gives: contentKeyOf,
    fields: ({ contentId, keys }) => ({
      key_id_big: base64(keys.keyId),
      key_id_hex: upperHex(keys.keyId),
      content_key: base64(keys.contentKey),
      content_key_hex: upperHex(keys.contentKey),
      playready_key_iv: lowerHex(keys.playReadyKeyIv),
      playready_laurl: PLAYREADY_LICENSE_URL,
      playready_checksum: playReadyChecksum(keys.keyId, keys.contentKey),
      widevine_drm_specific_data: base64(widevineDataOf(contentId, 'cenc')),
      widevine_laurl: WIDEVINE_LICENSE_URL,
    }),
  },
  fairplay: {
    gives: ({ contentId, keys }) => ({
      keyId: fairPlayKeyId(fairPlayLicenseUrl(contentId)),
      key: keys.fairPlayKey,
    }),
    fields: ({ contentId, keys }) => ({
      key_hex: upperHex(keys.fairPlayKey),
      iv_hex: upperHex(keys.fairPlayIv),
      laurl: fairPlayLicenseUrl(contentId),
    }),
  },
  widevine: {
    gives: contentKeyOf,
    fields: ({ contentId, keys }) => ({
      key_id: base64(keys.keyId),
      key_id_hex: upperHex(keys.keyId),
      content_key: base64(keys.contentKey),
      laurl: WIDEVINE_LICENSE_URL,
      drm_specific_data: widevinePsshDataOf(keys.keyId, contentId),
    }),
  },
  playready: {
    gives: contentKeyOf,
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
    fields: ({ client, contentId, keys }) => ({
      key_hex: lowerHex(keys.aesKey),
      key_url: `${AES_KEY_URL}/${client}/${contentId}`,
    }),
  },
};

function contentKeyOf({ keys }: Content): ClearKey {
  return { keyId: keys.keyId, key: keys.contentKey };
}

export function fairPlayLicenseUrl(contentId: string): string {
  return `${FAIRPLAY_LICENSE_URL}/${contentId}`;
}

/** The data of a Widevine box. The provider's CENC samples carry content id and scheme, and no key id. */
export function widevineDataOf(contentId: string, scheme: 'cenc' | 'cbcs'): Buffer {
  const protectionScheme = PROTECTION_SCHEMES[scheme];
  return buildWidevinePsshData({ keyIds: [], contentId: Buffer.from(contentId), protectionScheme });
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

export type ContentKeys = ReturnType<typeof deriveKeys>;
type KeyOwner = Pick<Client, 'name' | 'sharedSecret'>;

/**
 * Derives the keys of a client's content: the same client, secret and content id give the same keys, always.
 * Every value is HMAC-SHA256 under the shared secret, so that none can be computed from the others or without it. Key ids
 * are big endian; everything is 16 bytes but `playReadyKeyIv`, which is 8.
 */
export function deriveKeys(owner: KeyOwner, contentId: string) {
  const block = (purpose: string) => derive(owner, contentId, purpose);
  return {
    /** Shared with `contentKey` by CENC, PlayReady and Widevine. Its bits are those of a random UUID. */
    keyId: shapeAsUuid(block('key id')),
    contentKey: block('content key'),
    playReadyKeyIv: block('playready key iv').subarray(0, 8),
    /** The same for all content of a client. */
    playReadyServiceId: shapeAsUuid(derive(owner, null, 'playready service id')),
    fairPlayKey: block('fairplay key'),
    fairPlayIv: block('fairplay iv'),
    aesKey: block('aes key'),
  };
}

const LABEL = 'packager-drm-api emulator keys v1';

function derive(owner: KeyOwner, contentId: string | null, purpose: string): Buffer {
  // JSON separates the parts, so no two inputs give the same text.
  const input = JSON.stringify([LABEL, owner.name, contentId, purpose]);
  return createHmac('sha256', owner.sharedSecret).update(input, 'utf8').digest().subarray(0, 16);
}

/** Sets version 4 and the variant of RFC 9562: tools that read a key id as a UUID check them. */
function shapeAsUuid(block: Buffer): Buffer {
  block.writeUInt8((block.readUInt8(6) & 0x0f) | 0x40, 6);
  block.writeUInt8((block.readUInt8(8) & 0x3f) | 0x80, 8);
  return block;
}
