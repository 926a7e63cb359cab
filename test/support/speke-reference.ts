import {
  constants,
  createCipheriv,
  createHash,
  createHmac,
  publicEncrypt,
  randomBytes,
  X509Certificate,
} from 'node:crypto';
import type { SpekeVersion } from '../../src/drm/cpix/speke';
import type { Received } from './fake-upstream';

/**
 * A SPEKE provider that answers as AWS's reference server (awslabs/speke-reference-server) does: the document that it is
 * asked with, filled in. Other values stay empty; an IV that is not requested is the key; with
 * PlayReady in a document, all of its plain keys are one that it is configured with.
 */
export interface SpekeReference {
  readonly version: SpekeVersion;
  /** Its constants, for the requested key id. */
  readonly playReadyHeader: (keyId: Buffer) => Buffer;
}

/** Of a content with the id "somecontentid", under cenc. */
export const WIDEVINE_DATA = Buffer.from('Ig1zb21lY29udGVudGlkSOPclZsG', 'base64');
export const PLAYREADY_KEY = Buffer.from('00112233445566778899aabbccddeeff', 'hex');
export const FAIRPLAY_ADDRESS = 'skd://fairplay.example/license/somecontentid';

const SYSTEMS = {
  widevine: 'edef8ba9-79d6-4ace-a3c8-27dcd51d21ed',
  playready: '9a04f079-9840-4286-ab92-e65be0885f95',
  fairplay: '94ce86fb-07ff-4f43-adb8-93d2fa968ca2',
} as const;

/** Whether a request asks for FairPlay, and so under `cbcs`. */
export const asksFairPlay = ({ body }: Received) => body.includes(SYSTEMS.fairplay);

/** The key of a content and a key id. */
export function referenceKey(contentId: string, keyId: string): Buffer {
  return createHash('sha256').update(`${contentId} ${keyId}`).digest().subarray(0, 16);
}

/** The WRMHEADER of a key, as a PlayReady object. */
export function playReadyHeader(
  keyId: Buffer,
  address = '<LA_URL>https://playready.example/rights</LA_URL>',
) {
  const guid = Buffer.from(keyId);
  guid.subarray(0, 4).reverse();
  guid.subarray(4, 6).reverse();
  guid.subarray(6, 8).reverse();
  const kid = guid.toString('base64');
  const text = `<WRMHEADER xmlns="http://schemas.microsoft.com/DRM/2007/03/PlayReadyHeader" version="4.0.0.0"><DATA><PROTECTINFO><KEYLEN>16</KEYLEN><ALGID>AESCTR</ALGID></PROTECTINFO><KID>${kid}</KID>${address}</DATA></WRMHEADER>`;
  const header = Buffer.from(text, 'utf16le');
  const head = Buffer.alloc(10);
  head.writeUInt32LE(header.length + 10, 0);
  head.writeUInt16LE(1, 4);
  head.writeUInt16LE(1, 6);
  head.writeUInt16LE(header.length, 8);
  return Buffer.concat([head, header]);
}

/** Makes what answers the requests. */
export function spekeReference({ version, playReadyHeader: header }: SpekeReference) {
  return (request: Received) => {
    const contentId = new RegExp(version === 1 ? ' id="([^"]*)"' : ' contentId="([^"]*)"').exec(
      request.body,
    )?.[1];
    if (contentId === undefined) return { status: 500, body: 'no content id' };
    const body = fillIn(request.body, { contentId, version, header });
    const agent = 'SPEKE Reference Server';
    return {
      headers: {
        'content-type': 'application/xml',
        ...(version === 1
          ? { 'speke-user-agent': agent }
          : { 'x-speke-user-agent': agent, 'x-speke-version': version.toFixed(1) }),
      },
      body,
    };
  };
}

interface Filling {
  readonly contentId: string;
  readonly version: SpekeVersion;
  readonly header: (keyId: Buffer) => Buffer;
}

function fillIn(asked: string, { contentId, version, header }: Filling): string {
  const certificate = /<ds:X509Certificate>\s*([^<]*?)\s*<\/ds:X509Certificate>/.exec(asked)?.[1];
  const sealing = certificate === undefined ? undefined : createSealing(certificate);
  const isOfPlayReady = asked.includes(SYSTEMS.playready);
  const withKeys = asked.replaceAll(
    /<cpix:ContentKey ([^>]*?)\s*(?:\/>|>\s*<\/cpix:ContentKey>)/g,
    (_all, attributes: string) => {
      const keyId = /kid="([^"]*)"/.exec(attributes)?.[1] ?? '';
      const key = referenceKey(contentId, keyId);
      const needsIv = asked.includes(SYSTEMS.fairplay) && !attributes.includes('explicitIV');
      const iv = needsIv ? ` explicitIV="${key.toString('base64')}"` : '';
      const plain = (isOfPlayReady ? PLAYREADY_KEY : key).toString('base64');
      const secret = sealing ? sealing.value(key) : `<pskc:PlainValue>${plain}</pskc:PlainValue>`;
      return `<cpix:ContentKey ${attributes}${iv}><cpix:Data><pskc:Secret>${secret}</pskc:Secret></cpix:Data></cpix:ContentKey>`;
    },
  );
  const withSystems = withKeys.replaceAll(/<cpix:DRMSystem [\s\S]*?<\/cpix:DRMSystem>/g, (system) => {
    const keyId = Buffer.from(/kid="([^"]*)"/.exec(system)?.[1]?.replaceAll('-', '') ?? '', 'hex');
    return fillSystem(system, version, header(keyId));
  });
  return sealing
    ? withSystems.replace('</cpix:DeliveryKey>', `</cpix:DeliveryKey>${sealing.delivery}`)
    : withSystems;
}

function fillSystem(system: string, version: SpekeVersion, header: Buffer): string {
  const put = (xml: string, name: string, value: string | Buffer, attributes = '') =>
    xml.replace(
      new RegExp(`<${name}${attributes}\\s*(?:/>|>\\s*</${name}>)`),
      `<${name}${attributes}>${Buffer.from(value).toString('base64')}</${name}>`,
    );
  if (system.includes(SYSTEMS.fairplay)) {
    if (version === 1) {
      const named = put(system, 'cpix:URIExtXKey', FAIRPLAY_ADDRESS);
      return put(named, 'speke:KeyFormat', 'com.apple.streamingkeydelivery');
    }
    const line = `METHOD=SAMPLE-AES,URI="${FAIRPLAY_ADDRESS}",KEYFORMAT="com.apple.streamingkeydelivery",KEYFORMATVERSIONS="1"`;
    const media = put(system, 'cpix:HLSSignalingData', `#EXT-X-KEY:${line}`, ' playlist="media"');
    return put(media, 'cpix:HLSSignalingData', `#EXT-X-SESSION-KEY:${line}`, ' playlist="master"');
  }
  const isWidevine = system.includes(SYSTEMS.widevine);
  const data = isWidevine ? WIDEVINE_DATA : header;
  const boxed = put(system, 'cpix:PSSH', box(isWidevine ? SYSTEMS.widevine : SYSTEMS.playready, data));
  return version === 1 && !isWidevine ? put(boxed, 'speke:ProtectionHeader', header) : boxed;
}

export function box(systemId: string, data: Buffer): Buffer {
  const head = Buffer.alloc(32);
  head.writeUInt32BE(32 + data.length, 0);
  head.write('pssh', 4, 'latin1');
  Buffer.from(systemId.replaceAll('-', ''), 'hex').copy(head, 12);
  head.writeUInt32BE(data.length, 28);
  return Buffer.concat([head, data]);
}

/** The encryption of keys for one certificate, as CPIX has it. */
function createSealing(certificate: string) {
  const key = new X509Certificate(Buffer.from(certificate, 'base64')).publicKey;
  const oaep = { key, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha1' };
  const [documentKey, macKey] = [randomBytes(32), randomBytes(64)];
  const encrypted = (algorithm: string, bytes: Buffer) =>
    `<pskc:EncryptedValue><enc:EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#${algorithm}"/><enc:CipherData><enc:CipherValue>${bytes.toString('base64')}</enc:CipherValue></enc:CipherData></pskc:EncryptedValue><pskc:ValueMAC>${createHmac('sha512', macKey).update(bytes).digest('base64')}</pskc:ValueMAC>`;
  const ofKey = (bytes: Buffer) => encrypted('rsa-oaep-mgf1p', publicEncrypt(oaep, bytes));
  return {
    delivery: `<cpix:DocumentKey Algorithm="http://www.w3.org/2001/04/xmlenc#aes256-cbc"><cpix:Data><pskc:Secret>${ofKey(documentKey)}</pskc:Secret></cpix:Data></cpix:DocumentKey><cpix:MACMethod Algorithm="http://www.w3.org/2001/04/xmldsig-more#hmac-sha512"><cpix:Key>${ofKey(macKey)}</cpix:Key></cpix:MACMethod>`,
    value(bytes: Buffer) {
      const iv = randomBytes(16);
      const cipher = createCipheriv('aes-256-cbc', documentKey, iv);
      return encrypted('aes256-cbc', Buffer.concat([iv, cipher.update(bytes), cipher.final()]));
    },
  };
}
