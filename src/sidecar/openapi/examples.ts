import { parseKeyFileRequest } from '../../api/read-key-file-request';
import { keyFileLines, renderKeyFile } from '../../drm/key-file';

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

export const AES_128 = {
  aes: { key: SUPPLIED.fairplay.key, url: 'https://keys.example.com/news', iv: SUPPLIED.fairplay.iv },
};

/** The sample with its key id in the byte order of PlayReady. */
export const SWAPPED = { ...SUPPLIED, cenc: { ...SUPPLIED.cenc, keyid: '71LaRCNFjgloVHd+4yJoHQ==' } };

export const FROM_PROVIDER = {
  client: 'demo',
  clientApiKey: 'demo-client-api-key',
  contentId: 'somecontentid',
};

export function fileOf(body: unknown): string {
  const parsed = parseKeyFileRequest(body);
  if (!parsed.ok || parsed.value.source !== 'supplied') throw new TypeError('The sample supplies no keys');
  return renderKeyFile(keyFileLines(parsed.value.keyFile));
}

const base64 = (hex: string) => Buffer.from(hex, 'hex').toString('base64');
const { cenc, fairplay } = SUPPLIED;

/** As a DRM service exports it: the keys of the sample, and no PlayReady address. */
export const CPIX_DOCUMENT = `<?xml version="1.0" encoding="UTF-8"?>
<CPIX xmlns="urn:dashif:org:cpix" xmlns:pskc="urn:ietf:params:xml:ns:keyprov:pskc" version="2.3">
  <ContentKeyList>
    <ContentKey kid="44da52ef-4523-098e-6854-777ee322681d" commonEncryptionScheme="cenc">
      <Data><pskc:Secret><pskc:PlainValue>${cenc.contentkey}</pskc:PlainValue></pskc:Secret></Data>
    </ContentKey>
    <ContentKey kid="d7a29956-2980-4338-b627-87c1f079e091" commonEncryptionScheme="cbcs"
      explicitIV="${base64(fairplay.iv)}">
      <Data><pskc:Secret><pskc:PlainValue>${base64(fairplay.key)}</pskc:PlainValue></pskc:Secret></Data>
    </ContentKey>
  </ContentKeyList>
  <DRMSystemList>
    <DRMSystem kid="44da52ef-4523-098e-6854-777ee322681d" systemId="edef8ba9-79d6-4ace-a3c8-27dcd51d21ed">
      <PSSH>AAAATHBzc2gAAAAA7e+LqXnWSs6jyCfc1R0h7QAAACwiJGQ3YTI5OTU2LTI5ODAtNDMzOC1iNjI3LTg3YzFmMDc5ZTA5MUjj3JWbBg==</PSSH>
    </DRMSystem>
    <DRMSystem kid="44da52ef-4523-098e-6854-777ee322681d" systemId="9a04f079-9840-4286-ab92-e65be0885f95"/>
    <DRMSystem kid="d7a29956-2980-4338-b627-87c1f079e091" systemId="94ce86fb-07ff-4f43-adb8-93d2fa968ca2">
      <URIExtXKey>${Buffer.from(fairplay.laurl).toString('base64')}</URIExtXKey>
    </DRMSystem>
  </DRMSystemList>
</CPIX>
`;
