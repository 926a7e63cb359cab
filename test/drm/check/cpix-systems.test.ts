import * as fc from 'fast-check';
import { check } from '../../../src/api/check';
import { swapKeyIdOrder } from '../../../src/drm/bytes';
import { chooseKeys } from '../../../src/drm/cpix/choose';
import type { CpixSystem } from '../../../src/drm/cpix/document';
import { cpixKeyFile } from '../../../src/drm/cpix/key-file';
import { readCpix } from '../../../src/drm/cpix/read';
import { writeCpix } from '../../../src/drm/cpix/write';
import { playReadyObjectOf } from '../../../src/drm/playready';
import { buildPsshBox } from '../../../src/drm/pssh';
import { buildWidevinePsshData, WIDEVINE_SYSTEM_ID } from '../../../src/drm/widevine';
import { cpixDocuments } from '../../support/cpix-documents';
import {
  FAIRPLAY,
  FAIRPLAY_URL,
  HD,
  MADE,
  madeCpix,
  madeOfHd,
  PLAYREADY_URL,
  SD,
} from '../../support/made-cpix';
import { rowsOf } from '../../support/rows-of';
import { brief } from './checked';

const [, , widevine, playready, fairplay] = MADE.systems as CpixSystem[];
/** Without any signal. */
const bare = ({ systemId, keyId }: CpixSystem): CpixSystem => ({ systemId, keyId, asked: [] });

/** What is told of the document with one system alone, whose signals are these. */
function told(system: CpixSystem | undefined, signals: Partial<CpixSystem>, key = {}): string[] {
  if (!system) throw new Error('no such system');
  const keys = MADE.keys.filter(({ keyId }) => keyId.equals(system.keyId)).map((one) => ({ ...one, ...key }));
  const systems = [{ ...bare(system), ...signals }];
  const { kind, faults } = check(madeCpix({ keys, systems, rules: [] }));
  expect(kind).toBe('cpix');
  return brief(faults);
}

const boxOf = (keyId: Buffer, scheme?: 'cbcs') =>
  buildPsshBox(
    WIDEVINE_SYSTEM_ID,
    buildWidevinePsshData({ keyIds: [keyId], ...(scheme && { protectionScheme: 0x63626373 }) }),
  );
const element = (box: Buffer) =>
  `<cenc:pssh xmlns:cenc="urn:mpeg:cenc:2013">${box.toString('base64')}</cenc:pssh>`;
const line = (attributes: string) => `#EXT-X-KEY:METHOD=SAMPLE-AES,${attributes}`;
const URI = { uriExtXKey: FAIRPLAY_URL };
const FORMAT = 'KEYFORMAT="com.apple.streamingkeydelivery"';
const SWAPPED = swapKeyIdOrder(HD.keyId);

describe('what a document says of Widevine', () => {
  it.each(
    rowsOf<Partial<CpixSystem>>({
      'nothing of the data without its box but that: W box_missing key.widevine.pssh': {
        pssh: buildWidevinePsshData({ keyIds: [HD.keyId] }),
      },
      'another key id: W key_id_mismatch key.widevine.pssh': { pssh: boxOf(SD.keyId) },
      'its key id in the other byte order: W key_id_byte_order_suspected key.widevine.pssh.data.key_id, E key_id_byte_order key.widevine.pssh':
        { pssh: boxOf(SWAPPED) },
      'the same in ContentProtectionData: W key_id_mismatch key.widevine.content_protection': {
        contentProtectionData: element(boxOf(SD.keyId)),
      },
      'a box of PlayReady: E box_of_other_system key.widevine.pssh': { pssh: playready?.pssh },
      'a box cut short: E malformed_box key.widevine.pssh': { pssh: boxOf(HD.keyId).subarray(0, 40) },
      'no box in XML: W names_nothing key.widevine.content_protection': { contentProtectionData: '<x/>' },
      'a key line of another key: W key_id_mismatch key.widevine.hls_media': {
        hlsMedia: line(
          `URI="data:text/plain;base64,${boxOf(SD.keyId).toString('base64')}",KEYFORMAT="urn:uuid:${WIDEVINE_SYSTEM_ID}"`,
        ),
      },
      'no key line: W names_nothing key.widevine.hls_media': { hlsMedia: '#EXTINF:4' },
      'data in an address: W key_id_mismatch key.widevine.uri': {
        uriExtXKey: `data:text/plain;base64,${boxOf(SD.keyId).toString('base64')}`,
      },
    }),
  )('is held against its key: %s', (_what, signals, expected) => {
    expect(told(widevine, signals)).toEqual(expected);
  });

  it('is held against the scheme of its key', () => {
    expect(told(widevine, { pssh: boxOf(HD.keyId, 'cbcs') }, { scheme: 'cenc' })).toEqual([
      'W scheme_mismatch key.widevine.pssh',
    ]);
    expect(told(widevine, { pssh: boxOf(HD.keyId, 'cbcs') }, { scheme: 'cbcs' })).toEqual([
      'W cpix_not_usable',
    ]);
  });
});

describe('what a document says of PlayReady', () => {
  const object = (key: { keyId: Buffer; key: Buffer }) =>
    playReadyObjectOf(key.keyId, key.key, PLAYREADY_URL);

  it.each(
    rowsOf<Partial<CpixSystem>>({
      'nothing when all is right': { protectionHeader: object(HD) },
      'the checksum of another key: E checksum_mismatch key.playready.header.header.key[0].checksum': {
        protectionHeader: object({ keyId: HD.keyId, key: SD.key }),
      },
      'its key id in the other byte order: W key_id_byte_order_suspected key.playready.header.header.key[0].kid, E key_id_byte_order key.playready.header, E key_id_byte_order key.playready.header.header.key[0].checksum':
        { protectionHeader: object({ keyId: SWAPPED, key: HD.key }) },
      'no address: W no_license_address key.playready': {},
    }),
  )('is held against its key: %s', (_what, signals, expected) => {
    expect(told(playready, signals)).toEqual(expected);
  });
});

describe('what a document says of FairPlay', () => {
  it.each<[what: string, signals: Partial<CpixSystem>, key: object, ...expected: string[]]>([
    ['nothing when all is right', URI, {}],
    ['no IV', URI, { explicitIv: undefined }, 'E missing key.iv'],
    ['an IV that is the key id', URI, { explicitIv: FAIRPLAY.keyId }, 'W iv_is_key_id key.iv'],
    ['no address', {}, {}, 'E missing key.fairplay.uri'],
    ['an IV that is the key', URI, { explicitIv: FAIRPLAY.key }, 'W key_is_iv key.iv'],
    ['the scheme cenc', URI, { scheme: 'cenc' }, 'W scheme_mismatch key.scheme', 'W fairplay_scheme'],
    ['a web address', { uriExtXKey: 'https://license.example/film-1' }, {}, 'W not_skd key.fairplay.uri'],
    ['an address with a line break', { uriExtXKey: 'skd://a\nb' }, {}, 'E invalid_address key.fairplay.uri'],
    ['two addresses', { ...URI, hlsMedia: line(`URI="skd://other",${FORMAT}`) }, {}, 'E cpix_not_usable'],
  ])('is told when it has %s', (_what, signals, key, ...expected) => {
    expect(told(fairplay, signals, key)).toEqual(expected);
  });
});

test('signals of many keys are all looked at, however many fields an answer has', () => {
  const keys = Array.from({ length: 40 }, (_none, index) => ({
    ...MADE.keys[1],
    keyId: Buffer.from(`0e58f5d7468441${(0x10 + index).toString(16)}a9b1438646ef4775`, 'hex'),
    value: { kind: 'plain', bytes: Buffer.alloc(16, index + 1) } as const,
    explicitIv: undefined,
    scheme: undefined,
  }));
  const systems = keys.flatMap(({ keyId }, index) => [
    { ...bare(widevine as CpixSystem), keyId, pssh: boxOf(index === 39 ? SD.keyId : keyId) },
    { ...bare(playready as CpixSystem), keyId },
  ]);
  const { fields, faults } = check(madeCpix({ keys, systems, rules: [] }));
  const codes = faults.map(({ code, field }) => `${code} ${field}`);
  expect(codes).toContain('key_id_mismatch key[39].widevine.pssh');
  expect(codes).not.toContain('cut_short undefined');
  const shown = fields.map(({ name }) => name);
  expect(shown).toEqual(expect.arrayContaining(['key[0].widevine.pssh.version', 'key[38].widevine.system']));
  expect(shown).not.toContain('key[38].widevine.pssh.version');
});

test('a signal that says what another one says is shown once', () => {
  const { fields } = check(madeOfHd());
  const as = fields.filter(({ value }) => value.startsWith('as in '));
  expect(as).toEqual([
    { name: 'key.widevine.content_protection', value: 'as in pssh' },
    { name: 'key.playready.header', value: 'as in pssh' },
  ]);
});

test('whatever a request with a document is refused for is an error in its check', () => {
  fc.assert(
    fc.property(cpixDocuments, (document) => {
      const text = writeCpix(document);
      const read = readCpix(text);
      const chosen = read.ok ? chooseKeys(read.value, {}) : undefined;
      const isEncrypted = document.keys.some(({ value }) => value?.kind === 'encrypted');
      const isTaken = read.ok && chosen?.ok && (isEncrypted || cpixKeyFile(read.value, chosen.value, {}).ok);
      const errors = check({ cpix: text }).faults.filter(({ severity }) => severity === 'error');
      expect({ text, isTold: errors.length > 0 || isTaken }).toEqual({ text, isTold: true });
    }),
    { numRuns: 40 },
  );
});

test('a request tells which keys it would take', () => {
  const { kind, fields, faults } = check({ cpix: madeCpix(), track: 'HD' });
  expect(kind).toBe('request');
  expect(faults).toEqual([]);
  expect(fields.filter(({ name }) => /^chosen/.test(name))).toEqual([
    { name: 'chosen.cenc', value: '0e58f5d7-4684-4199-a9b1-438646ef4775', note: 'widevine, playready' },
    { name: 'chosen.fairplay', value: '6f651ae1-dbe4-4434-bcb4-690d1564c41c', note: 'fairplay' },
  ]);
  expect(check({ cpix: madeCpix() }).faults.map(({ code }) => code)).toEqual(['cpix_choice']);
  expect(check({ cpix: madeOfHd() }).faults).toEqual([]);
});
