import { parseKeyFileRequest } from '../../api/read-key-file-request';
import { keyFileLines, renderKeyFile } from '../../drm/key-file';

/** The stream of the examples. */
export const STREAM = 'news';

/** The published sample of Vualto's packaging guide for Wowza. */
export const SUPPLIED = {
  cenc: { keyid: 'RNpS70UjCY5oVHd+4yJoHQ==', contentkey: 'lnA03mLuxnL3toiRMxV4Zw==' },
  playready: {
    laurl: 'https://playready-license.vudrm.tech/rightsmanager.asmx',
    checksum: 'pcTs6CEp98A=',
  },
  widevine: { psshdata: 'IiRkN2EyOTk1Ni0yOTgwLTQzMzgtYjYyNy04N2MxZjA3OWUwOTFI49yVmwY=' },
  fairplay: {
    key: 'CBF76BB43B9A54254A5FC20074A3A53B',
    iv: '1A3F2AA76D84742DD123E3E50E7BC681',
    laurl: 'skd://fairplay-license.vudrm.tech/license/d7a29956-2980-4338-b627-87c1f079e091',
  },
};

/** The same with its key id in the byte order of PlayReady. */
export const SWAPPED = { ...SUPPLIED, cenc: { ...SUPPLIED.cenc, keyid: '71LaRCNFjgloVHd+4yJoHQ==' } };

export const FROM_PROVIDER = {
  client: 'demo',
  clientApiKey: 'demo-client-api-key',
  contentId: 'somecontentid',
};

/** The key file of a body that supplies its keys. */
export function fileOf(body: unknown): string {
  const parsed = parseKeyFileRequest(body);
  if (!parsed.ok || parsed.value.source !== 'supplied') throw new TypeError('The sample supplies no keys');
  return renderKeyFile(keyFileLines(parsed.value.keyFile));
}
