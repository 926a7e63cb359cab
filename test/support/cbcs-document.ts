import { type CpixKey, EMPTY_DOCUMENT, NO_FILTERS } from '../../src/drm/cpix/document';
import { cpixSystem, fairPlaySignals, playReadySignals, widevineSignals } from '../../src/drm/cpix/signals';
import { writeCpix } from '../../src/drm/cpix/write';
import { playReadyCbcObjectOf } from '../../src/drm/playready';
import { widevinePsshDataOf } from '../../src/drm/widevine';

export const KEY_ID = Buffer.from('00112233445566778899aabbccddeeff', 'hex');
export const KEY = Buffer.from('0f0e0d0c0b0a09080706050403020100', 'hex');
export const IV = Buffer.from('cd'.repeat(16), 'hex');
export const ADDRESS = 'skd://license.example/show?a=1&b=2';
export const WIDEVINE = Buffer.from(widevinePsshDataOf(KEY_ID, 'show', 'cbcs'), 'base64');
export const PLAYREADY = playReadyCbcObjectOf(KEY_ID, 'https://license.example/rightsmanager.asmx');

/** One key under `cbcs` for Widevine, PlayReady and FairPlay; a second one, of another track, if it is named. */
export function cbcsDocument(changes: Partial<CpixKey> = {}, second?: string): string {
  const other = Buffer.alloc(16, 0x77);
  const ids = second === undefined ? [KEY_ID] : [KEY_ID, other];
  return writeCpix({
    ...EMPTY_DOCUMENT,
    version: '2.3',
    contentId: 'show',
    keys: ids.map((keyId) => ({
      keyId,
      value: { kind: 'plain', bytes: KEY },
      explicitIv: IV,
      scheme: 'cbcs',
      ...changes,
    })),
    systems: ids.flatMap((keyId) => [
      cpixSystem('widevine', keyId, widevineSignals(keyId, WIDEVINE, 'cbcs')),
      cpixSystem('playready', keyId, playReadySignals(PLAYREADY, 'cbcs')),
      cpixSystem('fairplay', keyId, fairPlaySignals(ADDRESS)),
    ]),
    rules: ids.map((keyId, at) => ({
      keyId,
      intendedTrackType: at === 0 ? 'VIDEO' : second,
      ...NO_FILTERS,
    })),
  });
}
