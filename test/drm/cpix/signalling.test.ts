import { swapKeyIdOrder } from '../../../src/drm/bytes';
import type { CpixSystem, CpixSystemName } from '../../../src/drm/cpix/document';
import { checked } from '../../../src/drm/cpix/fault';
import * as signalling from '../../../src/drm/cpix/signalling';
import {
  cpixSystem,
  fairPlaySignals,
  playReadySignals,
  widevineSignals,
} from '../../../src/drm/cpix/signalling';
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

const OF_OTHER_KEY = '^has a PlayReady checksum of another key in the PSSH for PlayReady$';
/** What a header says that is the key's own. */
const proved = { licenseUrl: ADDRESS, isProved: true, isCbc: false, isOfOther: false };

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
  const wanted = ok(DATA.toString('base64'));
  const box = widevineBox.toString('base64');
  const DECLARED = `<?xml version="1.0"?><!-- Widevine --><ContentProtection xmlns:cenc="urn:mpeg:cenc:2013" schemeIdUri="urn:uuid:${WIDEVINE_SYSTEM_ID.toUpperCase()}"><cenc:pssh>${box}</cenc:pssh></ContentProtection>`;
  const root = (systemId: string, inside: string) =>
    `<ContentProtection schemeIdUri="urn:uuid:${systemId}"><pssh>${inside}</pssh></ContentProtection>`;
  const twoRoots = root(PLAYREADY_SYSTEM_ID, playReadyBox.toString('base64')) + root(WIDEVINE_SYSTEM_ID, box);
  const ofWidevine = `#EXT-X-KEY:METHOD=SAMPLE-AES-CTR,URI="data:text/plain;base64,${box}",KEYFORMAT="urn:uuid:${WIDEVINE_SYSTEM_ID}"`;

  it.each([
    ['a PSSH', pssh(widevineBox)],
    ['a PSSH without its box', pssh(DATA)],
    ['a PSSH before anything else', pssh(widevineBox) + fragment('<broken')],
    ['an element in ContentProtection, behind a declaration and a comment', fragment(DECLARED)],
    ['several roots, one of another system', fragment(twoRoots)],
    ['ContentProtectionData that is the box itself', element('ContentProtectionData', widevineBox)],
    ['playlist lines alone', hls(ofWidevine, 'media')],
  ])('is taken from %s', (_, content) => {
    expect(widevineData(read('widevine', content))).toEqual(wanted);
  });

  it.each([
    ['nothing', ''],
    ['empty elements', '<PSSH/><ContentProtectionData> \n </ContentProtectionData>'],
    ['ContentProtectionData without a box', fragment('<ContentProtection/>')],
  ])('is absent: %s', (_, content) => {
    expect(widevineData(read('widevine', content))).toEqual(ok(undefined));
  });

  it.each(
    Object.entries({
      'a pssh box of system 9a04f079': playReadyBox,
      'a pssh box that says it is': widevineBox.subarray(0, -3),
      'not Widevine PSSH data': 'nothing of the kind',
    }),
  )('is refused that is %s', (what, content) => {
    const expected = refused(`^has a PSSH for Widevine that is ${what}`);
    expect(widevineData(read('widevine', pssh(content)))).toEqual(expected);
  });
});

describe('the PlayReady address', () => {
  const signal = (content: string) => playReadySignal(read('playready', content), KEY_ID, CONTENT_KEY);
  const wanted = ok(proved);
  const pro = OBJECT.toString('base64');
  const header = OBJECT.subarray(10).toString('utf16le');
  const objectOf = (xml: string) => buildPlayReadyObject([{ type: 1, value: Buffer.from(xml, 'utf16le') }]);
  const withoutAddress = objectOf(header.replace(/<LA_URL>.*<\/LA_URL>/, ''));
  const emptyAddress = objectOf(header.replace(/<LA_URL>.*<\/LA_URL>/, '<LA_URL></LA_URL>'));
  const emptyBox = pssh(buildPsshBox(PLAYREADY_SYSTEM_ID, withoutAddress));
  const laurl = fragment(`<ms:laurl licenseUrl="${ADDRESS.replaceAll('&', '&amp;')}"/>`);
  const ofPlayReady = `#EXT-X-SESSION-KEY:METHOD=SAMPLE-AES-CTR,URI="data:text/plain;charset=UTF-16;base64,${pro}",KEYFORMAT="com.microsoft.playready"`;
  const told = { licenseUrl: 'https://pr.example/', isProved: false, isCbc: false, isOfOther: false };

  it.each([
    ['a PSSH', pssh(playReadyBox)],
    ['a PSSH that is the object', pssh(OBJECT)],
    ['a box in XML', fragment(`<cenc:pssh>${playReadyBox.toString('base64')}</cenc:pssh>`)],
    ['ContentProtectionData that is the object itself', element('ContentProtectionData', OBJECT)],
    ['the protection header', element('SmoothStreamingProtectionHeaderData', OBJECT)],
    [
      'a later source when the first has none',
      emptyBox + element('SmoothStreamingProtectionHeaderData', OBJECT),
    ],
    ['an element beside the object', pssh(withoutAddress) + laurl],
    ['playlist lines alone', hls(ofPlayReady, 'master')],
  ])('is taken from %s, decoded once', (_, content) => {
    expect(signal(content)).toEqual(wanted);
  });

  it('is decoded no more than once', () => {
    const licenseUrl = ADDRESS.replaceAll('&', '&amp;');
    const twice = pssh(playReadyObjectOf(KEY_ID, CONTENT_KEY, licenseUrl));
    expect(signal(twice)).toEqual(ok({ ...proved, licenseUrl }));
  });

  it.each([
    ['nothing', '', false],
    ['empty elements', '<PSSH></PSSH><ContentProtectionData/>', false],
    ['a header without it', pssh(withoutAddress), true],
    ['a header with an empty one', pssh(emptyAddress), true],
  ])('is absent: %s', (_, content, isProved) => {
    expect(signal(content)).toEqual(ok({ licenseUrl: undefined, isProved, isCbc: false, isOfOther: false }));
  });

  it('is taken from a header of several keys, without a checksum and with AESCBC', () => {
    const of = (kids: string) =>
      `<WRMHEADER xmlns="http://schemas.microsoft.com/DRM/2007/03/PlayReadyHeader" version="4.3.0.0"><DATA><PROTECTINFO><KIDS>${kids}</KIDS></PROTECTINFO><LA_URL>https://pr.example/</LA_URL></DATA></WRMHEADER>`;
    const kid = (digit: number, algorithm: string) =>
      `<KID ALGID="${algorithm}" VALUE="${swapKeyIdOrder(keyIdOf(digit)).toString('base64')}"></KID>`;
    const several = objectOf(of(kid(2, 'AESCTR') + kid(1, 'AESCTR')));
    expect(signal(pssh(several))).toEqual(ok(told));
    expect(signal(pssh(objectOf(of(kid(1, 'AESCBC')))))).toEqual(ok({ ...told, isCbc: true }));
    expect(signal(pssh(objectOf(of(''))))).toEqual(ok(told));
  });

  it('is taken from a header of another key id that has the same key or no checksum', () => {
    const ofOther = playReadyObjectOf(keyIdOf(2), CONTENT_KEY, ADDRESS);
    const expected = ok({ licenseUrl: ADDRESS, isProved: false, isCbc: false, isOfOther: true });
    expect(signal(pssh(ofOther))).toEqual(expected);
    const unproved = ofOther.toString('utf16le', 10).replace(/<CHECKSUM>.*<\/CHECKSUM>/, '');
    expect(signal(pssh(objectOf(unproved)))).toEqual(expected);
  });

  const OF_HEADER = 'has a PlayReady header in the PSSH for PlayReady';
  it.each(
    Object.entries({
      'has a PSSH for PlayReady that is a pssh box of system edef8ba9': pssh(widevineBox),
      'has a PSSH for PlayReady that is a pssh box that says it is \\d+ bytes but is 100': pssh(
        playReadyBox.subarray(0, 100),
      ),
      'has a PSSH for PlayReady that says it is \\d+ bytes but is': pssh(OBJECT.subarray(0, -2)),
      'has a PSSH for PlayReady without a header record$': pssh(buildPlayReadyObject([])),
      [`${OF_HEADER} that is not well-formed XML`]: pssh(objectOf('<WRMHEADER>')),
      'has a PSSH for PlayReady whose header is not a WRMHEADER$': pssh(objectOf('<HEADER></HEADER>')),
      [`${OF_HEADER} whose KID is not`]: pssh(objectOf(header.replace(/<KID>.*<\/KID>/, '<KID>x</KID>'))),
      [OF_OTHER_KEY.slice(1)]: pssh(playReadyObjectOf(KEY_ID, contentKeyOf(2), ADDRESS)),
      [`${OF_HEADER} whose checksum decodes to 3 bytes`]: pssh(
        playReadyObjectOf(KEY_ID, CONTENT_KEY, ADDRESS, 'AAAA'),
      ),
      'has a license address in the PSSH for PlayReady that must be an address that starts with https': pssh(
        playReadyObjectOf(KEY_ID, CONTENT_KEY, 'skd://1'),
      ),
      'has a ContentProtectionData for PlayReady that is not base64': fragment('<mspr:pro>?</mspr:pro>'),
    }),
  )('is refused: %s', (sentence, content) => {
    expect(signal(content)).toEqual(refused(`^${sentence}`));
  });

  it('is refused where header, key and key id are of another key', () => {
    const other = pssh(playReadyObjectOf(keyIdOf(2), contentKeyOf(2), ADDRESS));
    expect(signal(other)).toEqual(refused(OF_OTHER_KEY));
  });

  it('is refused where the key id has the other byte order', () => {
    const keyId = Buffer.from('00112233445566778899aabbccddeeff', 'hex');
    const swapped = playReadyObjectOf(swapKeyIdOrder(keyId), CONTENT_KEY, ADDRESS);
    const expected = refused(
      `^${OF_HEADER} with its KID in big endian; it must be in PlayReady's byte order$`,
    );
    expect(playReadySignal(read('playready', pssh(swapped)), keyId, CONTENT_KEY)).toEqual(expected);
  });
});

describe('the FairPlay address', () => {
  const address = (content: string, iv?: Buffer) => fairPlayAddress(read('fairplay', content), iv);
  const line = (
    uri: string,
    more = ',KEYFORMAT="com.apple.streamingkeydelivery",KEYFORMATVERSIONS="1"',
    tag = 'KEY',
  ) => `#EXT-X-${tag}:METHOD=SAMPLE-AES,URI="${uri}"${more}`;
  const media = (text: string) => hls(text, 'media');
  const session = line('skd://a', undefined, 'SESSION-KEY');

  it.each([
    ['URIExtXKey', element('URIExtXKey', 'skd://a')],
    ['URIExtXKey that is not in base64', '<URIExtXKey> skd://a </URIExtXKey>'],
    ['media playlist lines without a playlist name', element('HLSSignalingData', line('skd://a'))],
    ['multivariant playlist lines', hls(session, 'master')],
    ['multivariant playlist lines of CPIX 2.4', hls(session, 'multiVariant')],
    ['a line without a key format', media(line('skd://a', ''))],
    [
      'lines of several systems',
      media(`${line('https://b', ',KEYFORMAT="identity"')}\r\n${line('skd://a')}\n#EXT-X-MY:1\n`),
    ],
  ])('is taken from %s', (_, content) => {
    expect(address(content)).toEqual(ok('skd://a'));
  });

  it.each([
    ['nothing', ''],
    ['empty elements', '<URIExtXKey/><HLSSignalingData playlist="media"/>'],
    ['lines of another system', media(line('https://b', ',KEYFORMAT="identity"'))],
  ])('is absent: %s', (_, content) => {
    expect(address(content)).toEqual(ok(undefined));
  });

  it.each(
    Object.entries({
      'has different addresses for FairPlay in URIExtXKey and HLSSignalingData$':
        element('URIExtXKey', 'skd://a') + media(line('skd://b')),
      'has an address for FairPlay that holds a space, a quote, a control character': element(
        'URIExtXKey',
        'skd://a\n#EXT-X-KEY:x',
      ),
      'has an address for FairPlay that must be an address that starts with skd': element(
        'URIExtXKey',
        'data:text/plain;base64,AAAA',
      ),
    }),
  )('is refused: %s', (sentence, content) => {
    expect(address(content)).toEqual(refused(`^${sentence}`));
  });

  it('is held against the IV, where its line has one', () => {
    const lines = media(line('skd://a', `,IV=0x${ivOf(1).toString('hex').toUpperCase()}`));
    expect(address(lines, ivOf(1))).toEqual(ok('skd://a'));
    expect(address(lines)).toEqual(ok('skd://a'));
    expect(address(lines, ivOf(2))).toEqual(
      refused('^has different IVs for FairPlay in HLSSignalingData and explicitIV$'),
    );
  });
});

it('reads all that this project writes, by every signal alone', () => {
  const of = (name: CpixSystemName, signals: object) =>
    Object.entries(signals).map(([signal, value]) => cpixSystem(name, KEY_ID, { [signal]: value }));
  const all = [
    ...of('widevine', widevineSignals(KEY_ID, DATA, 'cenc')).map((one) => widevineData(one)),
    ...of('playready', playReadySignals(OBJECT, 'cenc')).map((one) =>
      playReadySignal(one, KEY_ID, CONTENT_KEY),
    ),
    ...of('fairplay', fairPlaySignals('skd://a')).map((one) => fairPlayAddress(one)),
  ];
  const widevine = ok(DATA.toString('base64'));
  const fairPlay = ok('skd://a');
  expect(all).toEqual([...Array(4).fill(widevine), ...Array(5).fill(ok(proved)), ...Array(3).fill(fairPlay)]);
});

describe('a license address in a PlayReady header', () => {
  const headerWith = (address: string) =>
    read('playready', pssh(playReadyObjectOf(KEY_ID, CONTENT_KEY, address)));

  it('may have white space around it', () => {
    expect(playReadySignal(headerWith(`\n  ${ADDRESS}\n  `), KEY_ID, CONTENT_KEY)).toEqual(ok(proved));
  });

  it('that no player could use is refused, unless another one is written', () => {
    const one = headerWith('rightsmanager.asmx');
    expect(playReadySignal(one, KEY_ID, CONTENT_KEY)).toEqual(refused('must be an address'));
    expect(playReadySignal(one, KEY_ID, CONTENT_KEY, true)).toMatchObject({ ok: true });
    expect(playReadySignal(one, KEY_ID, contentKeyOf(2), true)).toEqual(refused(OF_OTHER_KEY));
  });
});
