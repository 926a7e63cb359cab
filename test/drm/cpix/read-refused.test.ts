import { gzipSync } from 'node:zlib';
import { MAX_CPIX_BYTES, readCpix } from '../../../src/drm/cpix/read';
import { cpixText, key, kidOf, plain, rule, system, toBase64 } from '../../support/cpix-text';

const one = { keys: [key(1)] };
const UNKNOWN = kidOf(9);

describe('is refused', () => {
  const text = cpixText(one);

  it.each<[string, Buffer | string, string | RegExp]>([
    ['nothing', '', 'is empty'],
    ['another text', '{"cpix": 1}', 'is not XML; it must be the text of the document, which begins with <'],
    ['what is compressed', gzipSync(text), 'is compressed by gzip; unpack it first'],
    [
      'a DASH manifest',
      '<MPD xmlns="urn:mpeg:dash:schema:mpd:2011"/>',
      'is a DASH manifest, which has no content keys; send a CPIX document',
    ],
    ['another document', '<smil/>', 'is not a CPIX document: its root element is another'],
    ['another namespace', '<CPIX xmlns="urn:other"/>', 'must have the namespace urn:dashif:org:cpix'],
    ['a prefix that is not bound', '<c:CPIX/>', /^is not well-formed XML/],
    [
      'an external entity',
      `<!DOCTYPE CPIX [<!ENTITY a SYSTEM "file:///etc/passwd">]>${text.replace('</CPIX>', '&a;</CPIX>')}`,
      'has a DOCTYPE; leave it out',
    ],
    [
      'elements too many',
      text.replace('</CPIX>', `${'<a/>'.repeat(20_001)}</CPIX>`),
      'has more than 20000 elements',
    ],
    [
      'text too long',
      text.replace('</CPIX>', `${' '.repeat(MAX_CPIX_BYTES)}</CPIX>`),
      'has more than 256 KiB, the most that a CPIX document may have',
    ],
    [
      'bytes too many',
      Buffer.alloc(2 * MAX_CPIX_BYTES + 1, ' '),
      'has more than 256 KiB, the most that a CPIX document may have',
    ],
    [
      'bytes that are no text',
      Buffer.from(text.replace('</CPIX>', '\xff</CPIX>'), 'latin1'),
      'is neither UTF-8 nor UTF-16; save it as UTF-8',
    ],
    [
      'another encoding',
      Buffer.from(
        `<?xml version="1.0" encoding="windows-1251"?>${text.replace('</CPIX>', '<!-- ж --></CPIX>')}`,
      ),
      'names another encoding than UTF-8 and UTF-16; save it as UTF-8',
    ],
    [
      'UTF-16 cut short',
      Buffer.from(text, 'utf16le').subarray(0, -1),
      'ends inside a character of UTF-16; it was cut short',
    ],

    ['a list twice', cpixText({ ...one, after: '<ContentKeyList/>' }), 'has ContentKeyList twice'],
    [
      'a list in another namespace',
      cpixText({ ...one, after: '<x:DRMSystemList xmlns:x="urn:x"/>' }),
      'has a DRMSystemList in another namespace than urn:dashif:org:cpix',
    ],
    [
      'a key in another namespace',
      text.replace('<ContentKey ', '<ContentKey xmlns="urn:x" '),
      'has a ContentKey in another namespace than urn:dashif:org:cpix',
    ],
    [
      'signalling in another namespace',
      cpixText({ ...one, systems: system('widevine', [1], '<PSSH xmlns="">AAAA</PSSH>') }),
      'has a PSSH in another namespace than urn:dashif:org:cpix',
    ],
    [
      'a value in another namespace',
      text.replace('keyprov:pskc"', 'keyprov:pskc:1.0"'),
      'has a Secret in another namespace than urn:dashif:org:cpix or urn:ietf:params:xml:ns:keyprov:pskc',
    ],
    [
      'a key id twice',
      cpixText({ keys: [key(1), { ...key(2), kid: kidOf(1).toUpperCase() }] }),
      `has the key id ${kidOf(1)} twice`,
    ],
    [
      'a DRM system of an unknown key',
      cpixText({ ...one, systems: system('widevine', [9]) }),
      `has a DRMSystem of the key id ${UNKNOWN}, which is not in its list of keys`,
    ],
    [
      'a rule of an unknown key',
      cpixText({ ...one, rules: rule(9) }),
      `has a ContentKeyUsageRule of the key id ${UNKNOWN}, which is not in its list of keys`,
    ],
    [
      'a DRM system twice',
      cpixText({
        ...one,
        systems:
          system('widevine', [1]) +
          system('widevine', [1])
            .toUpperCase()
            .replaceAll('DRMSYSTEM', 'DRMSystem')
            .replace('KID', 'kid')
            .replace('SYSTEMID', 'systemId'),
      }),
      `has the DRM system edef8ba9-79d6-4ace-a3c8-27dcd51d21ed twice for the key id ${kidOf(1)}`,
    ],

    ['a key without kid', text.replace(/kid="[^"]*"/, ''), 'has a ContentKey without kid'],
    [
      'a key id in braces',
      text.replace(kidOf(1), `{${kidOf(1)}}`),
      'has a ContentKey whose kid is not a UUID (8-4-4-4-12 hex digits, without braces)',
    ],
    [
      'a rule without kid',
      cpixText({ ...one, rules: '<ContentKeyUsageRule/>' }),
      'has a ContentKeyUsageRule without kid',
    ],
    [
      'a DRM system without systemId',
      cpixText({ ...one, systems: `<DRMSystem kid="${kidOf(1)}"/>` }),
      'has a DRMSystem whose systemId is missing or not a UUID (8-4-4-4-12 hex digits)',
    ],

    [
      'a value of 15 bytes',
      cpixText({ keys: [key(1, '', plain(Buffer.alloc(15, 1)))] }),
      `has a value of the key ${kidOf(1)} that decodes to 15 bytes; it must be base64 of 16 bytes`,
    ],
    [
      'a value of zeros',
      cpixText({ keys: [key(1, '', plain(Buffer.alloc(16)))] }),
      `has a value of the key ${kidOf(1)} that is all zeros`,
    ],
    [
      'a value of elements',
      cpixText({ keys: [key(1, '', plain('<b>AAAA</b>'))] }),
      `has a value of the key ${kidOf(1)} that holds elements where base64 belongs`,
    ],
    [
      'two values',
      cpixText({
        keys: [key(1, '', plain('AAAA').replace('</pskc:Secret>', '<pskc:PlainValue/></pskc:Secret>'))],
      }),
      'has PlainValue twice in one Secret',
    ],
    [
      'a plain value beside an encrypted one',
      cpixText({
        keys: [key(1, '', plain('AAAA').replace('</pskc:Secret>', '<pskc:EncryptedValue/></pskc:Secret>'))],
      }),
      `has a plain value and an encrypted one of the key ${kidOf(1)}`,
    ],
    [
      'an IV of 8 bytes',
      cpixText({ keys: [key(1, 'explicitIV="AAAAAAAAAAA="')] }),
      `has an explicitIV of the key ${kidOf(1)} that decodes to 8 bytes; it must be base64 of 16 bytes`,
    ],
    [
      'a scheme that is none',
      cpixText({ keys: [key(1, 'commonEncryptionScheme="aes"')] }),
      `names a scheme for the key ${kidOf(1)} that is none of cenc, cens, cbc1, cbcs`,
    ],
    [
      'a key that depends on another',
      cpixText({ keys: [key(1, `dependsOnKey="${kidOf(2)}"`), key(2)] }),
      `says that the key ${kidOf(1)} depends on another (dependsOnKey); key hierarchies are not supported`,
    ],

    [
      'a PSSH twice',
      cpixText({ ...one, systems: system('widevine', [1], '<PSSH/><PSSH/>') }),
      'has PSSH twice in one DRMSystem',
    ],
    [
      'an address that is no text',
      cpixText({ ...one, systems: system('fairplay', [1], '<URIExtXKey>/////w==</URIExtXKey>') }),
      'has a URIExtXKey of the DRM system 94ce86fb-07ff-4f43-adb8-93d2fa968ca2 that is no text in UTF-8',
    ],
    [
      'playlist lines twice',
      cpixText({
        ...one,
        systems: system('fairplay', [1], '<HLSSignalingData/><HLSSignalingData playlist="media"/>'),
      }),
      'has HLSSignalingData twice for one playlist in the DRM system 94ce86fb-07ff-4f43-adb8-93d2fa968ca2',
    ],
    [
      'an unknown playlist',
      cpixText({ ...one, systems: system('fairplay', [1], '<HLSSignalingData playlist="x"/>') }),
      'has HLSSignalingData in the DRM system 94ce86fb-07ff-4f43-adb8-93d2fa968ca2 for a playlist other than media, master and multiVariant',
    ],
  ])('%s', (_, input, sentence) => {
    expect(readCpix(input)).toEqual({
      ok: false,
      problem: {
        code: 'invalid_cpix',
        description: typeof sentence === 'string' ? sentence : expect.stringMatching(sentence),
      },
    });
  });

  it('quotes nothing of the document but key ids', () => {
    const secret = toBase64(Buffer.alloc(15, 7));
    const read = readCpix(cpixText({ keys: [key(1, `explicitIV="${secret}"`, plain(secret))] }));
    expect(JSON.stringify(read)).not.toContain(secret);
  });
});
