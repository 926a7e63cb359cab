import { createHmac } from 'node:crypto';

/** All key material of one content. Key ids are big endian; everything is 16 bytes but `playReadyKeyIv`, which is 8. */
export interface ContentKeys {
  /** Shared with `contentKey` by CENC, PlayReady and Widevine. Its bits are those of a random UUID. */
  readonly keyId: Buffer;
  readonly contentKey: Buffer;
  readonly playReadyKeyIv: Buffer;
  /** The same for all content of a client. */
  readonly playReadyServiceId: Buffer;
  readonly fairPlayKey: Buffer;
  readonly fairPlayIv: Buffer;
  readonly aesKey: Buffer;
}

interface KeyOwner {
  readonly name: string;
  readonly sharedSecret: string;
}

/**
 * Derives the keys of a client's content: the same client, secret and content id give the same keys, always.
 * Every value is HMAC-SHA256 under the shared secret, so that none can be computed from the others or without it.
 */
export function deriveKeys(owner: KeyOwner, contentId: string): ContentKeys {
  const block = (purpose: string) => derive(owner, contentId, purpose);
  return {
    keyId: shapeAsUuid(block('key id')),
    contentKey: block('content key'),
    playReadyKeyIv: block('playready key iv').subarray(0, 8),
    playReadyServiceId: shapeAsUuid(derive(owner, null, 'playready service id')),
    fairPlayKey: block('fairplay key'),
    fairPlayIv: block('fairplay iv'),
    aesKey: block('aes key'),
  };
}

const LABEL = 'packager-drm-api emulator keys v1';

function derive(owner: KeyOwner, contentId: string | null, purpose: string): Buffer {
  // JSON keeps the parts apart whatever they hold: no two inputs give the same text.
  const input = JSON.stringify([LABEL, owner.name, contentId, purpose]);
  return createHmac('sha256', owner.sharedSecret).update(input, 'utf8').digest().subarray(0, 16);
}

/** Sets version 4 and the variant of RFC 9562: tools that read a key id as a UUID check them. */
function shapeAsUuid(block: Buffer): Buffer {
  block.writeUInt8((block.readUInt8(6) & 0x0f) | 0x40, 6);
  block.writeUInt8((block.readUInt8(8) & 0x3f) | 0x80, 8);
  return block;
}
