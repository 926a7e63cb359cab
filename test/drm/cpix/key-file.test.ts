import { type CpixChoice, chooseKeys } from '../../../src/drm/cpix/choose';
import type { CpixDocument } from '../../../src/drm/cpix/document';
import { type CpixKeyFileOptions, cpixKeyFile } from '../../../src/drm/cpix/key-file';
import { crossCheck } from '../../../src/drm/cross-check';
import type { KeyFile } from '../../../src/drm/key-file';
import {
  buildPlayReadyObject,
  PLAYREADY_SYSTEM_ID,
  playReadyChecksum,
  playReadyObjectOf,
} from '../../../src/drm/playready';
import { buildPsshBox } from '../../../src/drm/pssh';
import { WIDEVINE_SYSTEM_ID, widevinePsshDataOf } from '../../../src/drm/widevine';
import { documentOf } from '../../support/cpix';
import {
  contentKeyOf,
  cpixDocument,
  cpixText,
  FAIRPLAY_ADDRESS,
  ivOf,
  key,
  keyIdOf,
  kidOf,
  plain,
  system,
  toBase64,
} from '../../support/cpix-text';
import { right } from '../../support/right';
import published from '../../vectors/cpix/published.json';

const KEY_ID = keyIdOf(1);
const KEY = contentKeyOf(1);
const ADDRESS = 'https://pr.example/rights';
const IV = `explicitIV="${toBase64(ivOf(1))}"`;
const BAD_IV = 'explicitIV="AAAA"';
const DATA = widevinePsshDataOf(KEY_ID, 'news');
const psshOf = (systemId: string, data: Uint8Array) =>
  `<PSSH>${toBase64(buildPsshBox(systemId, data))}</PSSH>`;
const widevine = psshOf(WIDEVINE_SYSTEM_ID, Buffer.from(DATA, 'base64'));
const playready = psshOf(PLAYREADY_SYSTEM_ID, playReadyObjectOf(KEY_ID, KEY, ADDRESS));

const cenc = { keyId: toBase64(KEY_ID), contentKey: toBase64(KEY) };
const upperHex = (bytes: Buffer) => bytes.toString('hex').toUpperCase();
const fairplay = { licenseUrl: FAIRPLAY_ADDRESS, key: upperHex(KEY), iv: upperHex(ivOf(1)) };

function make(document: CpixDocument, choice: CpixChoice = {}, options: CpixKeyFileOptions = {}) {
  return cpixKeyFile(document, right(chooseKeys(document, choice)).value, options);
}

const of = (text: Parameters<typeof cpixDocument>[0], choice?: CpixChoice, options?: CpixKeyFileOptions) =>
  make(cpixDocument(text), choice, options);

/** The warnings about values that are made or left out, in whole sentences. */
const WARNINGS = {
  widevine_data_made:
    'The CPIX document has no Widevine data; it was made from key id and content id, which suits most license servers.',
  playready_address_replaced:
    'The CPIX document has another license address for PlayReady; playready.laurl is written in its place.',
  playready_address_unused:
    'playready.laurl is not used, because no PlayReady is written; name playready in systems.',
  scheme_mismatch:
    'The PlayReady header in the CPIX document says AESCBC (cbcs), but the algorithm that is written is AESCTR (cenc).',
  key_id_mismatch:
    'The PlayReady header in the CPIX document is for another key id than its key; only its license address is written.',
  iv_is_key_id:
    'fairplay.iv is the key id, which is no secret; it plays, but the key provider should send a random IV.',
  playready_header_reduced:
    'The PlayReady header in the CPIX document has LUI_URL, DS_ID, CUSTOMATTRIBUTES, for which a key file has no line; players get a header without.',
};

/** A key file that is made, with its warnings. */
const made = (keyFile: KeyFile, isChecksumComputed = false, ...codes: (keyof typeof WARNINGS)[]) => ({
  ok: true,
  keyFile,
  findings: codes.map((code) =>
    expect.objectContaining({ severity: 'warning', code, description: WARNINGS[code] }),
  ),
  isChecksumComputed,
});
const playReady = (licenseUrl = ADDRESS) => ({
  playready: { licenseUrl, checksum: playReadyChecksum(KEY_ID, KEY) },
});
const ofPlayReady = (content?: string) => ({ keys: [key(1)], systems: system('playready', [1], content) });

it('has the values and the signalling of a document', () => {
  const systems = system('widevine', [1], widevine) + system('playready', [1], playready) + ofFairPlay;
  const keyFile = { cenc, widevine: { psshData: DATA }, ...playReady(), fairplay };
  expect(of({ keys: [key(1, IV)], systems })).toEqual(made(keyFile));
});

it('warns of an IV that is the key id of FairPlay alone, which no line of a key file has', () => {
  const text = { keys: [key(1, `explicitIV="${toBase64(KEY_ID)}"`)], systems: system('fairplay', [1]) };
  const own = { ...fairplay, iv: upperHex(KEY_ID) };
  expect(of(text)).toEqual(made({ fairplay: own }, false, 'iv_is_key_id'));
});

it('has the key alone where the document has no DRM system, and the systems that are asked for', () => {
  const bare = { keys: [key(1)] };
  expect(of(bare)).toEqual(made({ cenc }));
  const keyFile = { cenc, widevine: { psshData: widevinePsshDataOf(KEY_ID, undefined) }, ...playReady() };
  expect(of(bare, { systems: ['widevine', 'playready'] }, { playReadyUrl: ADDRESS })).toEqual(
    made(keyFile, true, 'widevine_data_made'),
  );
});

describe('Widevine data that the document does not have', () => {
  const empty = { keys: [key(1)], systems: system('widevine', [1], '<PSSH/>') };
  it.each([
    ['none', '', {}, undefined],
    ['that of the document', ' contentId="news"', {}, 'news'],
    ['that of the request', ' contentId="news"', { contentId: 'mine' }, 'mine'],
    ['no empty one', ' contentId=""', {}, undefined],
    ['none that is too long', ` contentId="${'x'.repeat(201)}"`, {}, undefined],
  ])('are made of key id and content id, with a warning: %s', (_, attributes, options, contentId) => {
    const keyFile = { cenc, widevine: { psshData: widevinePsshDataOf(KEY_ID, contentId) } };
    expect(of({ ...empty, attributes }, {}, options)).toEqual(made(keyFile, false, 'widevine_data_made'));
  });
});

describe('the PlayReady address', () => {
  const MINE = 'https://mine.example/';

  it('is that of the request', () => {
    const keyFile = { cenc, ...playReady(MINE) };
    expect(of(ofPlayReady(), {}, { playReadyUrl: MINE })).toEqual(made(keyFile, true));
    const replaced = made(keyFile, false, 'playready_address_replaced');
    expect(of(ofPlayReady(playready), {}, { playReadyUrl: MINE })).toEqual(replaced);
    const same = made({ cenc, ...playReady() });
    expect(of(ofPlayReady(playready), {}, { playReadyUrl: ADDRESS })).toEqual(same);
  });

  it('is reported where nothing is written for PlayReady', () => {
    const options = { playReadyUrl: ADDRESS };
    const text = { keys: [key(1)], systems: system('widevine', [1], widevine) };
    const keyFile = { cenc, widevine: { psshData: DATA } };
    expect(of(text, {}, options)).toEqual(made(keyFile, false, 'playready_address_unused'));
    const apple = { keys: [key(1, IV)], systems: system('fairplay', [1]) };
    expect(of(apple, {}, options)).toEqual(made({ fairplay }, false, 'playready_address_unused'));
  });
});

it('warns of a PlayReady header for AESCBC, and of one of another key id', () => {
  const header = playReadyObjectOf(KEY_ID, KEY, ADDRESS).toString('latin1').replace('C\0T\0R\0', 'C\0B\0C\0');
  const ofCbc = psshOf(PLAYREADY_SYSTEM_ID, Buffer.from(header, 'latin1'));
  expect(of(ofPlayReady(ofCbc))).toEqual(made({ cenc, ...playReady() }, true, 'scheme_mismatch'));
  const ofOther = psshOf(PLAYREADY_SYSTEM_ID, playReadyObjectOf(keyIdOf(2), KEY, ADDRESS));
  expect(of(ofPlayReady(ofOther))).toEqual(made({ cenc, ...playReady() }, true, 'key_id_mismatch'));
});

it('warns of what a PlayReady header has and a key file has no line for', () => {
  const more = '<LUI_URL>https://a/</LUI_URL><DS_ID>AA==</DS_ID><CUSTOMATTRIBUTES></CUSTOMATTRIBUTES></DATA>';
  const xml = playReadyObjectOf(KEY_ID, KEY, ADDRESS).toString('utf16le', 10).replace('</DATA>', more);
  const header = psshOf(
    PLAYREADY_SYSTEM_ID,
    buildPlayReadyObject([{ type: 1, value: Buffer.from(xml, 'utf16le') }]),
  );
  expect(of(ofPlayReady(header))).toEqual(made({ cenc, ...playReady() }, false, 'playready_header_reduced'));
});

it('takes of several boxes the one of the system, and refuses two of it', () => {
  const boxes = [widevine, playready].map((pssh) => Buffer.from(pssh.replaceAll(/<.*?>/g, ''), 'base64'));
  const both = `<PSSH>${toBase64(Buffer.concat(boxes))}</PSSH>`;
  const text = { keys: [key(1)], systems: system('widevine', [1], both) + system('playready', [1], both) };
  expect(of(text)).toEqual(made({ cenc, widevine: { psshData: DATA }, ...playReady() }));
  const [own] = boxes.map((box) => `<PSSH>${toBase64(Buffer.concat([box, box]))}</PSSH>`);
  expect(of({ keys: [key(1)], systems: system('widevine', [1], own) }).ok).toBe(false);
});

it('needs an IV that can be read for FairPlay alone', () => {
  const text = { keys: [key(1, BAD_IV)], systems: system('widevine', [1], widevine) };
  expect(of(text)).toEqual(made({ cenc, widevine: { psshData: DATA } }));
});

const CIPHER =
  '<Data><pskc:Secret><pskc:EncryptedValue><e:CipherData xmlns:e="http://www.w3.org/2001/04/xmlenc#">' +
  '<e:CipherValue>AAAA</e:CipherValue></e:CipherData></pskc:EncryptedValue></pskc:Secret></Data>';
const NO_IV = `has no explicitIV for FairPlay, for the key ${kidOf(1)}; ask the key server for it`;
const NO_ADDRESS = `has no address for FairPlay, for the key ${kidOf(1)}; put it in URIExtXKey or HLSSignalingData`;
const NO_LICENSE = `has no PlayReady license address for the key ${kidOf(1)}; give playready.laurl`;
const UNREADABLE = `has an explicitIV of the key ${kidOf(1)} that decodes to 3 bytes; it must be base64 of 16 bytes`;
const NOT_OPENED = `has an encrypted value of the key ${kidOf(1)}: use a document with plain keys, or write a key file from it at a sidecar that can open it (packager-drm put --cpix) and use that`;
const ofFairPlay = system('fairplay', [1]);
const noAddress = system('fairplay', [1], '<URIExtXKey/>');

it.each([
  ['no FairPlay address', key(1, IV), noAddress, 'cpix_not_usable', [NO_ADDRESS]],
  [
    'neither address nor IV',
    key(1),
    system('playready', [1]) + ofFairPlay,
    'cpix_not_usable',
    [NO_LICENSE, NO_IV],
  ],
  ['an IV that cannot be read', key(1, BAD_IV), ofFairPlay, 'invalid_cpix', [UNREADABLE]],
  ['a value that was not opened', key(1, '', CIPHER), '', 'cpix_not_opened', [NOT_OPENED]],
])('is not made of a document with %s', (_, one, systems, code, sentences) => {
  const faults = sentences.map((description) => ({ code, description }));
  expect(of({ keys: [one], systems })).toEqual({ ok: false, faults });
});

describe('published documents', () => {
  const FAIRPLAY_ID = '94ce86fb-07ff-4f43-adb8-93d2fa968ca2';
  const one = ({ kid, key: value, iv, scheme, ...signals }: (typeof published)[number]) => {
    const drm = (systemId: string, name: string, inside: string | undefined) => {
      const element = `<${name}>${inside}</${name.split(' ')[0]}>`;
      const attributes = `kid="${kid.toUpperCase()}" systemId="${systemId.toUpperCase()}"`;
      return inside ? `<DRMSystem ${attributes}>${element}</DRMSystem>` : '';
    };
    const attributes = [iv && `explicitIV="${iv}"`, scheme && `commonEncryptionScheme="${scheme}"`];
    const systems = [
      drm(WIDEVINE_SYSTEM_ID, 'PSSH', signals.widevine),
      drm(PLAYREADY_SYSTEM_ID, 'PSSH', signals.playready),
      drm(FAIRPLAY_ID, 'URIExtXKey', signals.fairplay),
      drm(FAIRPLAY_ID, 'HLSSignalingData playlist="media"', signals.hls),
    ];
    const keys = [{ kid, attributes: attributes.filter(Boolean).join(' '), data: plain(value) }];
    return make(documentOf(cpixText({ keys, systems: systems.join('') })));
  };

  it.each(published)('make key files whose values agree: $source', (document) => {
    const { keyFile, findings, isChecksumComputed } = right(one(document));
    expect(Object.keys(keyFile)).toEqual([
      'cenc',
      ...(document.widevine ? ['widevine'] : []),
      ...(document.playready ? ['playready'] : []),
      ...(document.fairplay || document.hls ? ['fairplay'] : []),
    ]);
    const isReduced = document.source.endsWith('DASH live content');
    const isOfKeyId = document.source.startsWith('GPAC');
    expect(findings.map(({ code }) => code)).toEqual([
      ...(isReduced ? ['playready_header_reduced'] : []),
      ...(isOfKeyId ? ['iv_is_key_id'] : []),
    ]);
    // A header's own checksum is that of the published key.
    expect(isChecksumComputed).toBe(false);
    const errors = crossCheck(keyFile, undefined).filter(({ severity }) => severity === 'error');
    expect(errors).toEqual([]);
  });
});
