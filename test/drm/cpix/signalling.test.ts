import { swapKeyIdOrder } from '../../../src/drm/bytes';
import type { CpixSystem, CpixSystemName } from '../../../src/drm/cpix/document';
import { checked } from '../../../src/drm/cpix/fault';
import * as signalling from '../../../src/drm/cpix/signalling';
import { buildPlayReadyObject, PLAYREADY_SYSTEM_ID, playReadyObjectOf } from '../../../src/drm/playready';
import { buildPsshBox } from '../../../src/drm/pssh';
import { WIDEVINE_SYSTEM_ID, widevinePsshDataOf } from '../../../src/drm/widevine';
import { contentKeyOf, cpixDocument, ivOf, key, keyIdOf, system, toBase64 } from '../../support/cpix-text';

const KEY_ID = keyIdOf(1);
const CONTENT_KEY = contentKeyOf(1);
const DATA = Buffer.from(widevinePsshDataOf(KEY_ID, 'news'), 'base64');
const ADDRESS = 'https://pr.example/rights?a=1&b=2';
const OBJECT = playReadyObjectOf(KEY_ID, CONTENT_KEY, ADDRESS);
const widevineBox = buildPsshBox(WIDEVINE_SYSTEM_ID, DATA);
const playReadyBox = buildPsshBox(PLAYREADY_SYSTEM_ID, OBJECT);

/** A system as a document has it. */
function read(name: CpixSystemName, content: string): CpixSystem {
  const [one] = cpixDocument({ keys: [key(1)], systems: system(name, [1], content) }).systems;
  if (!one) throw new Error('no system');
  return one;
}

const element = (name: string, value: string | Uint8Array, attributes = '') =>
  `<${name}${attributes}>${toBase64(value)}</${name}>`;
const pssh = (value: string | Uint8Array) => element('PSSH', value);
const fragment = (xml: string) => element('ContentProtectionData', xml);
const hls = (line: string, playlist: string) => element('HLSSignalingData', line, ` playlist="${playlist}"`);
const ok = <T>(value: T) => ({ ok: true, value });
/** Refused by a sentence that begins so. */
const refused = (sentence: string) => ({
  ok: false,
  problem: { code: 'cpix_not_usable', description: expect.stringMatching(sentence) },
});

const OF_OTHER_KEY = 'has a PlayReady checksum of another key in the PSSH for PlayReady$';
/** The properties of a header that belongs to the key. */
const proved = { licenseUrl: ADDRESS, isProved: true, isCbc: false, isOfOther: false, lost: [] };

const widevineData = (of: CpixSystem) => checked(() => signalling.widevineData(of));
const fairPlayAddress = (of: CpixSystem, iv?: Buffer) => checked(() => signalling.fairPlayAddress(of, iv));

/** Without the object, which the tests of exports compare. */
function playReadySignal(...args: Parameters<typeof signalling.playReadySignal>) {
  return checked(() => {
    const { object: _, ...signal } = signalling.playReadySignal(...args);
    return signal;
  });
}

describe('Widevine data', () => {
  const box = widevineBox.toString('base64');
  const DECLARED = `<?xml version="1.0"?><!-- Widevine --><ContentProtection xmlns:cenc="urn:mpeg:cenc:2013" schemeIdUri="urn:uuid:${WIDEVINE_SYSTEM_ID.toUpperCase()}"><cenc:pssh>${box}</cenc:pssh></ContentProtection>`;
  const root = (systemId: string, inside: string) =>
    `<ContentProtection schemeIdUri="urn:uuid:${systemId}"><pssh>${inside}</pssh></ContentProtection>`;
  const twoRoots = root(PLAYREADY_SYSTEM_ID, playReadyBox.toString('base64')) + root(WIDEVINE_SYSTEM_ID, box);
  const ofWidevine = `#EXT-X-KEY:METHOD=SAMPLE-AES-CTR,URI="data:text/plain;base64,${box}",KEYFORMAT="urn:uuid:${WIDEVINE_SYSTEM_ID}"`;
  const ofOther = ofWidevine.replace(box, 'AAAA').replace(/urn:uuid:[^"]*/, 'com.microsoft.playready');
  const wanted = DATA.toString('base64');

  it.each([
    ['a PSSH', pssh(widevineBox), wanted],
    ['a PSSH without its box', pssh(DATA), wanted],
    ['a PSSH before anything else', pssh(widevineBox) + fragment('<broken'), wanted],
    ['an element in ContentProtection, behind a declaration and a comment', fragment(DECLARED), wanted],
    ['several roots, one of another system', fragment(twoRoots), wanted],
    ['ContentProtectionData that is the box itself', element('ContentProtectionData', widevineBox), wanted],
    ['an element behind another one', fragment(`<note>x</note><pssh>${box}</pssh>`), wanted],
    ['playlist lines alone', hls(ofWidevine, 'media'), wanted],
    ['lines behind that of another format', hls(`${ofOther}\n${ofWidevine}`, 'media'), wanted],
    ['nothing', '', undefined],
    ['empty elements', '<PSSH/><ContentProtectionData> \n </ContentProtectionData>', undefined],
    ['ContentProtectionData without a box', fragment('<ContentProtection/>'), undefined],
  ])('is taken from %s', (_, content, expected) => {
    expect(widevineData(read('widevine', content))).toEqual(ok(expected));
  });

  it.each([
    ['a pssh box of system 9a04f079', playReadyBox],
    ['a pssh box that says it is', widevineBox.subarray(0, -3)],
    ['not Widevine PSSH data', 'nothing of the kind'],
  ])('is refused that is %s', (what, content) => {
    const expected = refused(`^has a PSSH for Widevine that is ${what}`);
    expect(widevineData(read('widevine', pssh(content)))).toEqual(expected);
  });
});

describe('the PlayReady address', () => {
  const signal = (content: string) => playReadySignal(read('playready', content), KEY_ID, CONTENT_KEY);
  const pro = OBJECT.toString('base64');
  const header = OBJECT.toString('utf16le', 10);
  const objectOf = (xml: string) => buildPlayReadyObject([{ type: 1, value: Buffer.from(xml, 'utf16le') }]);
  const withAddress = (address: string) => pssh(playReadyObjectOf(KEY_ID, CONTENT_KEY, address));
  const changed = (pattern: RegExp, to: string, of = header) => pssh(objectOf(of.replace(pattern, to)));
  const bare = header.replace(/<LA_URL>.*<\/LA_URL>/, '');
  const withoutAddress = pssh(objectOf(bare));
  const ofHeader = element('SmoothStreamingProtectionHeaderData', OBJECT);
  const laurl = fragment(`<ms:laurl licenseUrl="${ADDRESS.replaceAll('&', '&amp;')}"/>`);
  const ofPlayReady = `#EXT-X-SESSION-KEY:METHOD=SAMPLE-AES-CTR,URI="data:text/plain;charset=UTF-16;base64,${pro}",KEYFORMAT="com.microsoft.playready"`;
  const ESCAPED = ADDRESS.replaceAll('&', '&amp;');
  const absent = { ...proved, licenseUrl: undefined };
  const unproved = { ...proved, isProved: false };
  const ofOther = { ...unproved, isOfOther: true };
  const otherObject = playReadyObjectOf(keyIdOf(2), CONTENT_KEY, ADDRESS);
  const otherHeader = otherObject.toString('utf16le', 10);
  const ofKids = (...kids: [digit: number, algorithm: string][]) => {
    const each = kids.map(([digit, algorithm]) => {
      const value = swapKeyIdOrder(keyIdOf(digit)).toString('base64');
      return `<KID ALGID="${algorithm}" VALUE="${value}"></KID>`;
    });
    return pssh(
      objectOf(
        `<WRMHEADER xmlns="http://schemas.microsoft.com/DRM/2007/03/PlayReadyHeader" version="4.3.0.0"><DATA><PROTECTINFO><KIDS>${each.join('')}</KIDS></PROTECTINFO><LA_URL>${ESCAPED}</LA_URL></DATA></WRMHEADER>`,
      ),
    );
  };

  it.each([
    ['a PSSH', pssh(playReadyBox), proved],
    ['a PSSH that is the object', pssh(OBJECT), proved],
    ['a box in XML', fragment(`<cenc:pssh>${playReadyBox.toString('base64')}</cenc:pssh>`), proved],
    ['ContentProtectionData that is the object itself', element('ContentProtectionData', OBJECT), proved],
    ['the protection header', ofHeader, proved],
    ['a later source when the first has none', withoutAddress + ofHeader, proved],
    ['an element next to the object', withoutAddress + laurl, proved],
    ['playlist lines alone', hls(ofPlayReady, 'master'), proved],
    ['a header with white space around it', withAddress(`\n  ${ADDRESS}\n  `), proved],
    ['a header that escaped it twice', withAddress(ESCAPED), { ...proved, licenseUrl: ESCAPED }],
    ['nothing', '', { ...absent, isProved: false }],
    ['empty elements', '<PSSH></PSSH><ContentProtectionData/>', { ...absent, isProved: false }],
    ['a header without it', withoutAddress, absent],
    ['one of them in XML', fragment(`<mspr:pro>${toBase64(objectOf(bare))}</mspr:pro>`), absent],
    ['a header with an empty one', changed(/<LA_URL>.*<\/LA_URL>/, '<LA_URL></LA_URL>'), absent],
    ['a header of several keys without checksums', ofKids([2, 'AESCTR'], [1, 'AESCTR']), unproved],
    ['a header with AESCBC', ofKids([1, 'AESCBC']), { ...unproved, isCbc: true }],
    ['a header without keys', ofKids(), unproved],
    ['a header of another key id with the same key', pssh(otherObject), ofOther],
    ['one without a checksum', changed(/<CHECKSUM>.*<\/CHECKSUM>/, '', otherHeader), ofOther],
  ])('is taken from %s, decoded once', (_, content, expected) => {
    expect(signal(content)).toEqual(ok(expected));
  });

  const OF_PSSH = 'has a PSSH for PlayReady';
  const OF_HEADER = 'has a PlayReady header in the PSSH for PlayReady';
  const BAD_ADDRESS =
    'has a license address in the PSSH for PlayReady that must be an address that starts with https';
  const ofChecksum = (checksum: string) => pssh(playReadyObjectOf(KEY_ID, CONTENT_KEY, ADDRESS, checksum));
  it.each([
    [`${OF_PSSH} that is a pssh box of system edef8ba9`, pssh(widevineBox)],
    [
      `${OF_PSSH} that is a pssh box that says it is \\d+ bytes but is 100`,
      pssh(playReadyBox.subarray(0, 100)),
    ],
    [`${OF_PSSH} that says it is \\d+ bytes but is`, pssh(OBJECT.subarray(0, -2))],
    [`${OF_PSSH} without a header record$`, pssh(buildPlayReadyObject([]))],
    [`${OF_HEADER} that is not well-formed XML`, pssh(objectOf('<WRMHEADER>'))],
    [`${OF_PSSH} whose header is not a WRMHEADER$`, pssh(objectOf('<HEADER></HEADER>'))],
    [`${OF_HEADER} whose KID is not`, changed(/<KID>.*<\/KID>/, '<KID>x</KID>')],
    [OF_OTHER_KEY, pssh(playReadyObjectOf(KEY_ID, contentKeyOf(2), ADDRESS))],
    [OF_OTHER_KEY, pssh(playReadyObjectOf(keyIdOf(2), contentKeyOf(2), ADDRESS))],
    [`${OF_HEADER} whose checksum decodes to 3 bytes`, ofChecksum('AAAA')],
    [BAD_ADDRESS, withAddress('rightsmanager.asmx')],
    ['has a ContentProtectionData for PlayReady that is not base64', fragment('<mspr:pro>?</mspr:pro>')],
  ])('is refused: %s', (sentence, content) => {
    expect(signal(content)).toEqual(refused(`^${sentence}`));
  });

  it('that no player could use is taken where another one is written', () => {
    const one = read('playready', withAddress('rightsmanager.asmx'));
    expect(playReadySignal(one, KEY_ID, CONTENT_KEY, true)).toMatchObject({ ok: true });
    expect(playReadySignal(one, KEY_ID, contentKeyOf(2), true)).toEqual(refused(`^${OF_OTHER_KEY}`));
  });

  it('is refused where the key id has the other byte order', () => {
    const keyId = Buffer.from('00112233445566778899aabbccddeeff', 'hex');
    const swapped = pssh(playReadyObjectOf(swapKeyIdOrder(keyId), CONTENT_KEY, ADDRESS));
    const sentence = `^${OF_HEADER} with its KID in big endian; it must be in PlayReady's byte order$`;
    expect(playReadySignal(read('playready', swapped), keyId, CONTENT_KEY)).toEqual(refused(sentence));
  });
});

describe('the FairPlay address', () => {
  const address = (content: string, iv?: Buffer) => fairPlayAddress(read('fairplay', content), iv);
  const OWN = ',KEYFORMAT="com.apple.streamingkeydelivery",KEYFORMATVERSIONS="1"';
  const line = (uri: string, more = OWN, tag = 'KEY') =>
    `#EXT-X-${tag}:METHOD=SAMPLE-AES,URI="${uri}"${more}`;
  const media = (text: string) => hls(text, 'media');
  const session = line('skd://a', undefined, 'SESSION-KEY');
  const other = line('https://b', ',KEYFORMAT="identity"');
  const uri = (text: string) => element('URIExtXKey', text);

  it.each([
    ['URIExtXKey', uri('skd://a'), 'skd://a'],
    ['URIExtXKey that is not in base64', '<URIExtXKey> skd://a </URIExtXKey>', 'skd://a'],
    ['media playlist lines without a playlist name', element('HLSSignalingData', line('skd://a')), 'skd://a'],
    ["the media playlist's lines by another name", hls(line('skd://a'), 'variant'), 'skd://a'],
    ['multivariant playlist lines', hls(session, 'master'), 'skd://a'],
    ['multivariant playlist lines of CPIX 2.4', hls(session, 'multiVariant'), 'skd://a'],
    ['a line without a key format', media(line('skd://a', '')), 'skd://a'],
    ['lines of several systems', media(`${other}\r\n${line('skd://a')}\n#EXT-X-MY:1\n`), 'skd://a'],
    ['nothing', '', undefined],
    ['empty elements', '<URIExtXKey/><HLSSignalingData playlist="media"/>', undefined],
    ['lines of another system', media(other), undefined],
  ])('is taken from %s', (_, content, expected) => {
    expect(address(content)).toEqual(ok(expected));
  });

  const HELD = 'has an address for FairPlay that holds a space, a quote, a control character';
  it.each([
    [
      'has different addresses for FairPlay in URIExtXKey and HLSSignalingData$',
      uri('skd://a') + media(line('skd://b')),
    ],
    [HELD, uri('skd://a\n#EXT-X-KEY:x')],
    ['has an address for FairPlay that must be an address that starts with skd', uri('data:text/plain,AAAA')],
  ])('is refused: %s', (sentence, content) => {
    expect(address(content)).toEqual(refused(`^${sentence}`));
  });

  it('is held against the IV, where its line has one', () => {
    const lines = media(line('skd://a', `,IV=0x${ivOf(1).toString('hex').toUpperCase()}`));
    expect(address(lines, ivOf(1))).toEqual(ok('skd://a'));
    expect(address(lines)).toEqual(ok('skd://a'));
    const sentence = '^has different IVs for FairPlay in HLSSignalingData and explicitIV$';
    expect(address(lines, ivOf(2))).toEqual(refused(sentence));
  });
});
