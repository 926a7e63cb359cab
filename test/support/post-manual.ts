import { keyFileSamples } from '../vectors/drm-vectors';

const sample = keyFileSamples.find(([name]) => name === 'post_manual')?.[1];
if (!sample?.request_body) throw new Error('drm-vectors.json has no post_manual request');

/** The published POST body with keys supplied by hand. */
export const POST_MANUAL = sample.request_body;
/** The content id that its Widevine data and its FairPlay address name. */
export const POST_MANUAL_CONTENT_ID = 'd7a29956-2980-4338-b627-87c1f079e091';
/** The key id of its `cenc` in the byte order of PlayReady. */
export const SWAPPED_KEY_ID = sample.derived.kid_le_b64;

/** Its key file: the published values in the order, and with the constants, of the specification's table. */
export const POST_MANUAL_FILE = `\
mpegdashstreaming-cenc-key-id: RNpS70UjCY5oVHd+4yJoHQ==
mpegdashstreaming-cenc-content-key: lnA03mLuxnL3toiRMxV4Zw==
mpegdashstreaming-cenc-algorithm: AESCTR
mpegdashstreaming-cenc-keyserver-widevine: true
mpegdashstreaming-cenc-keyserver-widevine-system-id: edef8ba9-79d6-4ace-a3c8-27dcd51d21ed
mpegdashstreaming-cenc-keyserver-widevine-pssh-data: IiRkN2EyOTk1Ni0yOTgwLTQzMzgtYjYyNy04N2MxZjA3OWUwOTFI49yVmwY=
mpegdashstreaming-cenc-keyserver-playready: true
mpegdashstreaming-cenc-keyserver-playready-system-id: 9a04f079-9840-4286-ab92-e65be0885f95
mpegdashstreaming-cenc-keyserver-playready-license-url: https://playready-license.vudrm.tech/rightsmanager.asmx
mpegdashstreaming-cenc-keyserver-playready-checksum: pcTs6CEp98A=
cupertinostreaming-aes128-method: SAMPLE-AES
cupertinostreaming-aes128-url: skd://fairplay-license.vudrm.tech/license/d7a29956-2980-4338-b627-87c1f079e091
cupertinostreaming-aes128-key: CBF76BB43B9A54254A5FC20074A3A53B
cupertinostreaming-aes128-iv: 1A3F2AA76D84742DD123E3E50E7BC681
cupertinostreaming-aes128-iv-include-in-chunklist: false
cupertinostreaming-aes128-key-format: com.apple.streamingkeydelivery
cupertinostreaming-aes128-key-format-version: 1
`;

/** `cenc` alone, and its key file. */
export const CENC_ONLY = { cenc: POST_MANUAL.cenc };
export const CENC_ONLY_FILE = POST_MANUAL_FILE.split('\n').slice(0, 3).join('\n').concat('\n');

/** A body that nothing is odd about, and its key file: `cenc` and PlayReady. */
export const PLAIN = { cenc: POST_MANUAL.cenc, playready: POST_MANUAL.playready };
export const PLAIN_FILE = POST_MANUAL_FILE.split('\n')
  .filter((_line, index) => index < 3 || (index > 5 && index < 10))
  .join('\n')
  .concat('\n');

/** The lines of a FairPlay key as a key file has them. */
export const fairPlayLinesOf = (url: string, key: Buffer, iv: Buffer) => `\
cupertinostreaming-aes128-method: SAMPLE-AES
cupertinostreaming-aes128-url: ${url}
cupertinostreaming-aes128-key: ${key.toString('hex').toUpperCase()}
cupertinostreaming-aes128-iv: ${iv.toString('hex').toUpperCase()}
cupertinostreaming-aes128-iv-include-in-chunklist: false
cupertinostreaming-aes128-key-format: com.apple.streamingkeydelivery
cupertinostreaming-aes128-key-format-version: 1
`;
