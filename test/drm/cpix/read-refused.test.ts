import { gzipSync } from 'node:zlib';
import { MAX_CPIX_BYTES, readCpix } from '../../../src/drm/cpix/read';
import { cpixText, key, kidOf, plain, rule, system, toBase64 } from '../../support/cpix-text';

const one = { keys: [key(1)] };
const text = cpixText(one);
const ending = (end: string) => text.replace('</CPIX>', `${end}</CPIX>`);
const withMore = (more: Partial<Parameters<typeof cpixText>[0]>) => cpixText({ ...one, ...more });
const widevine = (content: string) => withMore({ systems: system('widevine', [1], content) });
const fairplay = (content: string) => withMore({ systems: system('fairplay', [1], content) });
const ofKey = (attributes: string, data?: string) => cpixText({ keys: [key(1, attributes, data), key(2)] });
const secrets = (...more: string[]) =>
  ofKey('', plain('AAAA').replace('</pskc:Secret>', `${more.join('')}</pskc:Secret>`));
const widevineTwice =
  system('widevine', [1]) +
  system('widevine', [1])
    .toUpperCase()
    .replaceAll('DRMSYSTEM', 'DRMSystem')
    .replace('KID', 'kid')
    .replace('SYSTEMID', 'systemId');
const CYRILLIC = `<?xml version="1.0" encoding="windows-1251"?>${ending('<!-- ж -->')}`;
const ENTITY = '<!DOCTYPE CPIX [<!ENTITY a SYSTEM "file:///etc/passwd">]>';
const FAIRPLAY = 'the DRM system 94ce86fb-07ff-4f43-adb8-93d2fa968ca2';
const NOT_CPIX = 'in another namespace than urn:dashif:org:cpix';
const KEY_1 = `the key ${kidOf(1)}`;
const NO_UUID = 'not a UUID (8-4-4-4-12 hex digits';
const NOT_LISTED = `of the key id ${kidOf(9)}, which is not in its list of keys`;

/** What is refused, by the sentence that says why. */
const REFUSED: Readonly<Record<string, Buffer | string>> = {
  'is empty': '',
  'is not XML; it must be the text of the document, which begins with <': '{"cpix": 1}',
  'is compressed by gzip; unpack it first': gzipSync(text),
  'is a DASH manifest, which has no content keys; send a CPIX document':
    '<MPD xmlns="urn:mpeg:dash:schema:mpd:2011"/>',
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
  [`has a Secret ${NOT_CPIX} or urn:ietf:params:xml:ns:keyprov:pskc`]: text.replace(
    'keyprov:pskc"',
    'keyprov:pskc:1.0"',
  ),
  [`has the key id ${kidOf(1)} twice`]: cpixText({
    keys: [key(1), { ...key(2), kid: kidOf(1).toUpperCase() }],
  }),
  [`has a DRMSystem ${NOT_LISTED}`]: withMore({ systems: system('widevine', [9]) }),
  [`has a ContentKeyUsageRule ${NOT_LISTED}`]: withMore({ rules: rule(9) }),
  [`has the DRM system edef8ba9-79d6-4ace-a3c8-27dcd51d21ed for the key id ${kidOf(1)} twice`]: withMore({
    systems: widevineTwice,
  }),

  'has a ContentKey without kid': text.replace(/kid="[^"]*"/, ''),
  [`has a ContentKey whose kid is ${NO_UUID}, without braces)`]: text.replace(kidOf(1), `{${kidOf(1)}}`),
  'has a ContentKeyUsageRule without kid': withMore({ rules: '<ContentKeyUsageRule/>' }),
  [`has a DRMSystem whose systemId is missing or ${NO_UUID})`]: withMore({
    systems: `<DRMSystem kid="${kidOf(1)}"/>`,
  }),

  [`has a value of ${KEY_1} that decodes to 15 bytes; it must be base64 of 16 bytes`]: ofKey(
    '',
    plain(Buffer.alloc(15, 1)),
  ),
  [`has a value of ${KEY_1} that is all zeros`]: ofKey('', plain(Buffer.alloc(16))),
  [`has a value of ${KEY_1} that holds elements where base64 belongs`]: ofKey('', plain('<b>AAAA</b>')),
  'has PlainValue twice in one Secret': secrets('<pskc:PlainValue/>'),
  [`has a plain value and an encrypted one of ${KEY_1}`]: secrets('<pskc:EncryptedValue/>'),
  [`names a scheme for ${KEY_1} that is not one of cenc, cens, cbc1, cbcs, SAMPLE-AES-CTR, SAMPLE-AES, AES-128`]:
    ofKey('commonEncryptionScheme="aes"'),
  [`says that ${KEY_1} depends on another (dependsOnKey); key hierarchies are not supported`]: ofKey(
    `dependsOnKey="${kidOf(2)}"`,
  ),

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
  expect(readCpix(Buffer.alloc(2 * MAX_CPIX_BYTES + 1, ' '))).toEqual(refused(sentence));
});

it('quotes nothing of the document but key ids', () => {
  const secret = toBase64(Buffer.alloc(15, 7));
  const read = readCpix(cpixText({ keys: [key(1, `explicitIV="${secret}"`, plain(secret))] }));
  expect(JSON.stringify(read)).not.toContain(secret);
});
