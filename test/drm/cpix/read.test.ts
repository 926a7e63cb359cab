import { gzipSync } from 'node:zlib';
import { type CpixDocument, EMPTY_DOCUMENT, NO_FILTERS } from '../../../src/drm/cpix/document';
import { looksLikeCpix, MAX_CPIX_BYTES, readCpix } from '../../../src/drm/cpix/read';
import { writeCpix } from '../../../src/drm/cpix/write';
import { documentOf } from '../../support/cpix';
import {
  contentKeyOf,
  cpixText,
  ivOf,
  key,
  keyIdOf,
  kidOf,
  plain,
  rule,
  system,
  toBase64,
} from '../../support/cpix-text';

const NAMESPACES = 'xmlns="urn:dashif:org:cpix" xmlns:pskc="urn:ietf:params:xml:ns:keyprov:pskc"';
const one = { keys: [key(1)] };
const two = { keys: [key(1), key(2)] };

/** The values of a document, in short. */
const valuesOf = (input: Buffer | string) =>
  documentOf(input).keys.map(({ keyId, value }) => [
    keyId.toString('hex').slice(0, 1),
    value?.kind === 'plain' ? value.bytes : value,
  ]);
const bothKeys = [
  ['1', contentKeyOf(1)],
  ['2', contentKeyOf(2)],
];

describe('a document', () => {
  it('is read with all that it says', () => {
    const text = cpixText({
      attributes: ' id="doc" contentId="news" version="2.3"',
      keys: [key(1, `explicitIV="${toBase64(ivOf(1))}" commonEncryptionScheme="cenc"`), key(2, '', '')],
      systems:
        system('widevine', [1], '<PSSH>AAAA</PSSH><ContentProtectionData/>') +
        system(
          'fairplay',
          [2],
          `<URIExtXKey>${toBase64('skd://a')}</URIExtXKey><HLSSignalingData playlist="media">${toBase64('#a')}</HLSSignalingData><HLSSignalingData playlist="master"/>`,
        ),
      periods: ['p1/0'],
      rules:
        rule(
          1,
          ' HD ',
          '<KeyPeriodFilter periodId="p1"/><LabelFilter label="main"/><VideoFilter minPixels="589825" color="red"/><VideoFilter/><BitrateFilter/>',
        ) + rule(2, undefined, '<AudioFilter maxChannels="2"/><OtherFilter/>'),
      after: '<UpdateHistoryItemList/><x:Extension xmlns:x="urn:x"/>',
    });
    const expected: CpixDocument = {
      ...EMPTY_DOCUMENT,
      id: 'doc',
      contentId: 'news',
      version: '2.3',
      keys: [
        {
          keyId: keyIdOf(1),
          value: { kind: 'plain', bytes: contentKeyOf(1) },
          explicitIv: ivOf(1),
          scheme: 'cenc',
        },
        { keyId: keyIdOf(2) },
      ],
      systems: [
        {
          systemId: 'edef8ba9-79d6-4ace-a3c8-27dcd51d21ed',
          keyId: keyIdOf(1),
          pssh: Buffer.alloc(3),
          asked: ['contentProtectionData'],
        },
        {
          systemId: '94ce86fb-07ff-4f43-adb8-93d2fa968ca2',
          keyId: keyIdOf(2),
          uriExtXKey: 'skd://a',
          hlsMedia: '#a',
          asked: ['hlsMultivariant'],
        },
      ],
      periods: [{ id: 'p1', index: '0' }],
      rules: [
        {
          ...NO_FILTERS,
          keyId: keyIdOf(1),
          intendedTrackType: 'HD',
          periods: ['p1'],
          labels: ['main'],
          video: [{ minPixels: '589825' }, {}],
          isOfBitrates: true,
        },
        {
          ...NO_FILTERS,
          keyId: keyIdOf(2),
          intendedTrackType: undefined,
          audio: [{ maxChannels: '2' }],
          unknownFilters: ['OtherFilter'],
        },
      ],
    };
    expect(readCpix(text)).toEqual({ ok: true, value: expected });
  });

  it('is read with its recipients, document keys for some content keys and MAC keys of both forms', () => {
    const cipher = (bytes: string, name = 'pskc:EncryptedValue') =>
      `<${name}><e:EncryptionMethod Algorithm="urn:a"/><e:CipherData><e:CipherValue>${bytes}</e:CipherValue></e:CipherData></${name}>`;
    const delivery = (mac: string) =>
      '<DeliveryData><DeliveryKey><d:X509Data><d:X509Certificate>Y2Vy\n dA==</d:X509Certificate><d:X509Certificate>Y2E=</d:X509Certificate></d:X509Data></DeliveryKey>' +
      `<DocumentKey Algorithm="urn:d" encryptsKey="${kidOf(1)} ${kidOf(2).toUpperCase()}"><Data><pskc:Secret>${cipher('a2V5')}</pskc:Secret></Data></DocumentKey>` +
      `<MACMethod Algorithm="urn:m">${mac}</MACMethod></DeliveryData>`;
    const secret = `<Data><pskc:Secret>${cipher('dmFs')}<pskc:ValueMAC>bWFj</pskc:ValueMAC></pskc:Secret></Data>`;
    const text = cpixText({
      keys: [key(1, '', secret), key(2, '', secret)],
      attributes: ' xmlns:e="http://www.w3.org/2001/04/xmlenc#" xmlns:d="http://www.w3.org/2000/09/xmldsig#"',
      before: `<DeliveryDataList>${delivery(cipher('bWs=', 'Key'))}${delivery(`<Key>${cipher('bWs=')}</Key>`)}${delivery(`<pskc:MACKey>${cipher('bWs=')}</pskc:MACKey>`)}${delivery('')}</DeliveryDataList>`,
    });
    const { deliveries, keys } = documentOf(text);
    const read = (mac: object) => ({
      certificate: Buffer.from('cert'),
      documentKeys: [
        {
          algorithm: 'urn:d',
          value: { algorithm: 'urn:a', cipher: Buffer.from('key') },
          keyIds: [keyIdOf(1), keyIdOf(2)],
        },
      ],
      mac: { algorithm: 'urn:m', ...mac },
    });
    const withKey = read({ key: { algorithm: 'urn:a', cipher: Buffer.from('mk') } });
    expect(deliveries).toEqual([withKey, withKey, withKey, read({ key: undefined })]);
    expect(keys.map(({ value }) => value)).toEqual(
      Array(2).fill({
        kind: 'encrypted',
        mac: Buffer.from('mac'),
        algorithm: 'urn:a',
        cipher: Buffer.from('val'),
      }),
    );
  });

  it('may have lists that are empty or missing', () => {
    expect(readCpix(`<CPIX ${NAMESPACES}/>`)).toEqual({ ok: true, value: EMPTY_DOCUMENT });
    const names = ['DeliveryData', 'ContentKey', 'DRMSystem', 'ContentKeyPeriod', 'ContentKeyUsageRule'];
    const lists = names.map((name) => `<${name}List></${name}List>`).join('');
    expect(readCpix(`<CPIX ${NAMESPACES}>${lists}</CPIX>`)).toEqual({ ok: true, value: EMPTY_DOCUMENT });
  });
});

describe('is accepted', () => {
  const text = cpixText(two);
  const utf16 = Buffer.from(text, 'utf16le');
  const withMark = Buffer.from(`\ufeff${text}`, 'utf16le');
  const odd = text.replace('xmlns="', 'xmlns:ключ="').replaceAll(/<(\/?)(?=[A-Z])/g, '<$1ключ:');

  it.each<[string, Buffer | string]>([
    ['as text', text],
    ['with a byte order mark', Buffer.from(`\ufeff${text}`)],
    ['with a declaration', Buffer.from(`<?xml version="1.0" encoding="utf-8" standalone="yes"?>\r\n${text}`)],
    [
      'in ASCII that names another encoding',
      Buffer.from(`<?xml version="1.0" encoding='ISO-8859-1'?>${text}`),
    ],
    ['with an odd prefix', odd],
    ['in UTF-8 that names UTF-16', Buffer.from(`<?xml version="1.0" encoding="utf-16"?>${odd}`)],
    ['in UTF-16 with a mark', withMark],
    ['in UTF-16 with a mark, big endian', Buffer.from(withMark).swap16()],
    ['in UTF-16 without a mark', utf16],
    ['in UTF-16 without a mark, big endian', Buffer.from(utf16).swap16()],
    ['in UTF-16 behind white space', Buffer.from(`\r\n ${text}`, 'utf16le').swap16()],
    ['with another prefix for PSKC', text.replaceAll('pskc:', 'q:').replace('xmlns:pskc', 'xmlns:q')],
    ['with comments everywhere', `<!-- <CPIX> -->${text.replaceAll('><', '><!-- a > b --><')}<!-- end -->`],
    [
      'with upper-case key ids',
      text.replaceAll(/kid="([^"]*)"/g, (_, kid: string) => `kid=" ${kid.toUpperCase()} "`),
    ],
    ['with CDATA', text.replaceAll(/<pskc:PlainValue>([^<]*)</g, '<pskc:PlainValue><![CDATA[$1]]><')],
    [
      'with white space in base64',
      text.replaceAll(/<pskc:PlainValue>(.{7})([^<]*)</g, '<pskc:PlainValue>\n\t$1 \r\n&#13;$2\n<'),
    ],
    ['with all of Secret in CPIX', text.replaceAll('pskc:', '')],
    ['with Data in PSKC', text.replaceAll('<Data>', '<pskc:Data>').replaceAll('</Data>', '</pskc:Data>')],
  ])('%s', (_, input) => {
    expect(valuesOf(input)).toEqual(bothKeys);
  });
});

it('the content of an unknown system is passed over', () => {
  const systemId = '81376844-f976-481e-a84e-cc25d39b0b33';
  const other = `<DRMSystem kid="${kidOf(1)}" systemId="${systemId}"><PSSH>?</PSSH><PSSH/><URIExtXKey>a b</URIExtXKey><HLSSignalingData playlist="x"/></DRMSystem>`;
  const systems = [{ systemId, keyId: keyIdOf(1), asked: [] }];
  expect(documentOf(cpixText({ ...one, systems: other }))).toMatchObject({ systems });
});

it('a protection header is that of CPIX, else of SPEKE v1', () => {
  const header = (content: string) =>
    documentOf(cpixText({ ...one, systems: system('playready', [1], content) })).systems[0]?.protectionHeader;
  const speke = '<s:ProtectionHeader xmlns:s="urn:aws:amazon:com:speke">c3Bla2U=</s:ProtectionHeader>';
  const own = '<SmoothStreamingProtectionHeaderData>Y3BpeA==</SmoothStreamingProtectionHeaderData>';
  expect(header(own + speke)).toEqual(Buffer.from('cpix'));
  expect(header(`<SmoothStreamingProtectionHeaderData/>${speke}`)).toEqual(Buffer.from('speke'));
  expect(header('')).toBeUndefined();
});

it.each([
  ['<CPIX xmlns="urn:dashif:org:cpix"/>', true],
  [`\ufeff<?xml version="1.0"?><!-- a --> <cpix:CPIX xmlns:cpix="">`, true],
  ['<ключ:CPIX>', true],
  ['<!-- <a> --><?b <c> ?><!DOCTYPE d [<!ENTITY e "<f>">]><g:CPIX/>', true],
  ['<CPIXList/>', false],
  ['<html><body><!-- you sent --><cpix:CPIX xmlns:cpix="urn:dashif:org:cpix"/></body></html>', false],
  ['<!-- <CPIX> --><MPD/>', false],
  ['<MPD/>', false],
  ['CPIX', false],
])('distinguishes a CPIX document from other text: %s', (text, expected) => {
  expect(looksLikeCpix(text)).toBe(expected);
});

it('keeps the method of HLS that it names in place of a scheme (CPIX 2.4)', () => {
  const text = cpixText({
    keys: ['SAMPLE-AES', 'AES-128'].map((method, at) => key(at + 1, `commonEncryptionScheme="${method}"`)),
  });
  const { keys } = documentOf(text);
  expect(keys.map(({ scheme, method }) => [scheme, method])).toEqual([
    ['cbcs', 'SAMPLE-AES'],
    ['cbc1', 'AES-128'],
  ]);
  expect(documentOf(writeCpix(documentOf(text))).keys).toEqual(keys);
});

it('ignores a key hierarchy only where it answers SPEKE, which says so', () => {
  const text = cpixText({ keys: [key(1, `dependsOnKey="${kidOf(2)}"`), key(2)] });
  expect(readCpix(text).ok).toBe(false);
  expect(readCpix(text, { isSpeke: true })).toEqual(readCpix(cpixText({ keys: [key(1), key(2)] })));
});

const text = cpixText(one);
const ending = (end: string) => text.replace('</CPIX>', `${end}</CPIX>`);
const withMore = (more: Partial<Parameters<typeof cpixText>[0]>) => cpixText({ ...one, ...more });
const widevine = (content: string) => withMore({ systems: system('widevine', [1], content) });
const fairplay = (content: string) => withMore({ systems: system('fairplay', [1], content) });
const ofKey = (attributes: string, data?: string) => cpixText({ keys: [key(1, attributes, data), key(2)] });
const ofBytes = (length: number, byte: number) => ofKey('', plain(Buffer.alloc(length, byte)));
const secrets = (...more: string[]) =>
  ofKey('', plain('AAAA').replace('</pskc:Secret>', `${more.join('')}</pskc:Secret>`));
const widevineTwice = system('widevine', [1]) + system('widevine', [1]).replace('edef8ba9', 'EDEF8BA9');
const NO_SYSTEM_ID = `<DRMSystem kid="${kidOf(1)}"/>`;
const DEPENDS = `dependsOnKey="${kidOf(2)}"`;
const CYRILLIC = `<?xml version="1.0" encoding="windows-1251"?>${ending('<!-- ж -->')}`;
const ENTITY = '<!DOCTYPE CPIX [<!ENTITY a SYSTEM "file:///etc/passwd">]>';
const FAIRPLAY = 'the DRM system 94ce86fb-07ff-4f43-adb8-93d2fa968ca2';
const NOT_CPIX = 'in another namespace than urn:dashif:org:cpix';
const KEY_1 = `the key ${kidOf(1)}`;
const NO_UUID = 'not a UUID (8-4-4-4-12 hex digits';
const NOT_LISTED = `of the key id ${kidOf(9)}, which is not in its list of keys`;

/** Refused documents, by the sentence with the reason. */
const REFUSED: Readonly<Record<string, Buffer | string>> = {
  'is empty': '',
  'is not XML; it must be the text of the document, which begins with <': '{"cpix": 1}',
  'is compressed by gzip; unpack it first': gzipSync(text),
  'is a DASH manifest, which has no content keys; send a CPIX document': '<MPD xmlns="urn:mpeg"/>',
  'is not a CPIX document: its root element is another': '<smil/>',
  'must have the namespace urn:dashif:org:cpix': '<CPIX xmlns="urn:other"/>',
  'is not well-formed XML: see line 1': '<c:CPIX/>',
  'has a DOCTYPE; leave it out': `${ENTITY}${ending('&a;')}`,
  'has more than 20000 elements': ending('<a/>'.repeat(20_001)),
  'has more than 256 KiB, the most that a CPIX document may have': ending(' '.repeat(MAX_CPIX_BYTES)),
  'is neither UTF-8 nor UTF-16; save it as UTF-8': Buffer.from(ending('\xff'), 'latin1'),
  'names an encoding other than UTF-8 and UTF-16; save it as UTF-8': Buffer.from(CYRILLIC),
  'ends inside a character of UTF-16; it was cut short': Buffer.from(text, 'utf16le').subarray(0, -1),

  'has ContentKeyList twice': withMore({ after: '<ContentKeyList/>' }),
  [`has a DRMSystemList ${NOT_CPIX}`]: withMore({ after: '<x:DRMSystemList xmlns:x="urn:x"/>' }),
  [`has a ContentKey ${NOT_CPIX}`]: text.replace('<ContentKey ', '<ContentKey xmlns="urn:x" '),
  [`has a PSSH ${NOT_CPIX}`]: widevine('<PSSH xmlns="">AAAA</PSSH>'),
  [`has a Secret ${NOT_CPIX} or urn:ietf:params:xml:ns:keyprov:pskc`]: text.replace('pskc"', 'pskc:1.0"'),
  [`has the key id ${kidOf(1)} twice`]: cpixText({ keys: [key(1), key(1)] }),
  [`has a DRMSystem ${NOT_LISTED}`]: withMore({ systems: system('widevine', [9]) }),
  [`has a ContentKeyUsageRule ${NOT_LISTED}`]: withMore({ rules: rule(9) }),
  [`has the DRM system edef8ba9-79d6-4ace-a3c8-27dcd51d21ed for the key id ${kidOf(1)} twice`]: withMore({
    systems: widevineTwice,
  }),

  'has a ContentKey without kid': text.replace(/kid="[^"]*"/, ''),
  [`has a ContentKey whose kid is ${NO_UUID}, without braces)`]: text.replace(kidOf(1), `{${kidOf(1)}}`),
  'has a ContentKeyUsageRule without kid': withMore({ rules: '<ContentKeyUsageRule/>' }),
  [`has a DRMSystem whose systemId is missing or ${NO_UUID})`]: withMore({ systems: NO_SYSTEM_ID }),

  [`has a value of ${KEY_1} that decodes to 15 bytes; it must be base64 of 16 bytes`]: ofBytes(15, 1),
  [`has a value of ${KEY_1} that is all zeros`]: ofBytes(16, 0),
  [`has a value of ${KEY_1} that holds elements where base64 belongs`]: ofKey('', plain('<b>AAAA</b>')),
  'has PlainValue twice in one Secret': secrets('<pskc:PlainValue/>'),
  [`has a plain value and an encrypted one of ${KEY_1}`]: secrets('<pskc:EncryptedValue/>'),
  [`has an encrypted value of ${KEY_1} that is not base64`]: text.replace(
    /<pskc:PlainValue>.*?<\/pskc:PlainValue>/,
    '<pskc:EncryptedValue><CipherData xmlns="http://www.w3.org/2001/04/xmlenc#"><CipherValue>?</CipherValue></CipherData></pskc:EncryptedValue>',
  ),
  [`names a scheme for ${KEY_1} that is not one of cenc, cens, cbc1, cbcs, SAMPLE-AES-CTR, SAMPLE-AES, AES-128`]:
    ofKey('commonEncryptionScheme="aes"'),
  [`says that ${KEY_1} depends on another (dependsOnKey); key hierarchies are not supported`]: ofKey(DEPENDS),

  'has PSSH twice in one DRMSystem': widevine('<PSSH/><PSSH/>'),
  [`has a URIExtXKey of ${FAIRPLAY} that is not UTF-8 text`]: fairplay('<URIExtXKey>/////w==</URIExtXKey>'),
  [`has HLSSignalingData twice for one playlist in ${FAIRPLAY}`]: fairplay(
    '<HLSSignalingData/><HLSSignalingData playlist="media"/>',
  ),
  [`has HLSSignalingData in ${FAIRPLAY} for a playlist other than media, master and multiVariant`]: fairplay(
    '<HLSSignalingData playlist="x"/>',
  ),
};

const refused = (description: string) => ({ ok: false, problem: { code: 'invalid_cpix', description } });

it.each(Object.entries(REFUSED))('is refused: %s', (sentence, input) => {
  expect(readCpix(input)).toEqual(refused(sentence));
});

it('too many bytes are refused before they are decoded', () => {
  const sentence = 'has more than 256 KiB, the most that a CPIX document may have';
  expect(readCpix(Buffer.from(' '.repeat(MAX_CPIX_BYTES / 2 + 1), 'utf16le'))).toEqual(refused(sentence));
});

it('quotes nothing of the document but key ids', () => {
  const secret = toBase64(Buffer.alloc(15, 7));
  const read = readCpix(cpixText({ keys: [key(1, `explicitIV="${secret}"`, plain(secret))] }));
  expect(JSON.stringify(read)).not.toContain(secret);
});
