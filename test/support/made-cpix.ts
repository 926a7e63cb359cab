import {
  type CpixDocument,
  type CpixKey,
  type CpixRule,
  EMPTY_DOCUMENT,
  NO_FILTERS,
} from '../../src/drm/cpix/document';
import {
  cpixSystem,
  fairPlaySignals,
  playReadySignals,
  widevineSignals,
} from '../../src/drm/cpix/signalling';
import { writeCpix } from '../../src/drm/cpix/write';
import { playReadyObjectOf } from '../../src/drm/playready';
import { buildWidevinePsshData } from '../../src/drm/widevine';

const block = (hex: string) => Buffer.from(hex, 'hex');

/** The keys of the document: two for DASH, by track, and one for FairPlay. */
export const SD = {
  keyId: block('44da52ef4523498e9854777ee322681d'),
  key: block('967034de62eec672f7b6889133157867'),
};
export const HD = {
  keyId: block('0e58f5d746844199a9b1438646ef4775'),
  key: block('5a0c11e2b33f4d7796aa01928374655f'),
};
export const FAIRPLAY = {
  keyId: block('6f651ae1dbe44434bcb4690d1564c41c'),
  key: block('cbf76bb43b9a54254a5fc20074a3a53b'),
  iv: block('1a3f2aa76d84742dd123e3e50e7bc681'),
};

export const PLAYREADY_URL = 'https://license.example/rightsmanager.asmx';
export const FAIRPLAY_URL = 'skd://license.example/film-1';

const plain = (keyId: Buffer, bytes: Buffer): CpixKey => ({ keyId, value: { kind: 'plain', bytes } });

export const rule = (keyId: Buffer, intendedTrackType: string): CpixRule => ({
  ...NO_FILTERS,
  keyId,
  intendedTrackType,
  video: intendedTrackType === 'ALL' ? [] : [{}],
});

const widevine = (keyId: Buffer) =>
  widevineSignals(keyId, buildWidevinePsshData({ keyIds: [keyId] }), 'cenc');

/** A document as providers send them, for SD, HD and FairPlay. */
export const MADE: CpixDocument = {
  ...EMPTY_DOCUMENT,
  contentId: 'film-1',
  version: '2.3',
  keys: [
    plain(SD.keyId, SD.key),
    plain(HD.keyId, HD.key),
    { ...plain(FAIRPLAY.keyId, FAIRPLAY.key), explicitIv: FAIRPLAY.iv, scheme: 'cbcs' },
  ],
  systems: [
    ...[SD, HD].flatMap(({ keyId, key }) => [
      cpixSystem('widevine', keyId, widevine(keyId), ['pssh', 'contentProtectionData']),
      cpixSystem('playready', keyId, playReadySignals(playReadyObjectOf(keyId, key, PLAYREADY_URL), 'cenc'), [
        'pssh',
        'protectionHeader',
      ]),
    ]),
    cpixSystem('fairplay', FAIRPLAY.keyId, fairPlaySignals(FAIRPLAY_URL), ['uriExtXKey', 'hlsMedia']),
  ],
  rules: [rule(SD.keyId, 'SD'), rule(HD.keyId, 'HD'), rule(FAIRPLAY.keyId, 'ALL')],
};

export function madeCpix(changes: Partial<CpixDocument> = {}): string {
  return writeCpix({ ...MADE, ...changes });
}

/** The same in UTF-16, with its byte order mark. */
export function asUtf16(xml: string, order: 'LE' | 'BE' = 'LE'): Buffer {
  const bytes = Buffer.from(`\ufeff${xml.replace('UTF-8', 'UTF-16')}`, 'utf16le');
  return order === 'LE' ? bytes : bytes.swap16();
}

/** The document with its key of HD alone, and of that what is given. */
export function madeOfHd(changes: Partial<CpixDocument> = {}): string {
  const only = <Item extends { readonly keyId: Buffer }>(items: readonly Item[]) =>
    items.filter(({ keyId }) => keyId.equals(HD.keyId));
  return madeCpix({
    keys: only(MADE.keys),
    systems: only(MADE.systems),
    rules: only(MADE.rules),
    ...changes,
  });
}
