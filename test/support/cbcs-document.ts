import { type CpixKey, EMPTY_DOCUMENT, NO_FILTERS } from '../../src/drm/cpix/document';
import {
  cpixSystem,
  fairPlaySignals,
  playReadySignals,
  widevineSignals,
} from '../../src/drm/cpix/signalling';
import { writeCpix } from '../../src/drm/cpix/write';
import { playReadyCbcObjectOf } from '../../src/drm/playready';
import { widevinePsshDataOf } from '../../src/drm/widevine';

export const KEY_ID = Buffer.from('00112233445566778899aabbccddeeff', 'hex');
export const KEY = Buffer.from('0f0e0d0c0b0a09080706050403020100', 'hex');
export const IV = Buffer.from('cd'.repeat(16), 'hex');
export const ADDRESS = 'skd://license.example/show?a=1&b=2';
const widevineOf = (keyId: Buffer) => Buffer.from(widevinePsshDataOf(keyId, 'show', 'cbcs'), 'base64');
const playReadyOf = (keyId: Buffer) =>
  playReadyCbcObjectOf(keyId, 'https://license.example/rightsmanager.asmx');
export const WIDEVINE = widevineOf(KEY_ID);
export const PLAYREADY = playReadyOf(KEY_ID);

/** The second key. */
export const OTHER = {
  keyId: Buffer.alloc(16, 0x77),
  key: Buffer.from('a1b2c3d4e5f60718293a4b5c6d7e8f90', 'hex'),
  address: 'skd://license.example/sound',
};

/** One key under `cbcs` for Widevine, PlayReady and FairPlay; a second one, of another track, if it is named. */
export function cbcsDocument(changes: Partial<CpixKey> = {}, second?: string): string {
  const { keyId: id = KEY_ID } = changes;
  const ids = second === undefined ? [id] : [id, OTHER.keyId];
  return writeCpix({
    ...EMPTY_DOCUMENT,
    version: '2.3',
    contentId: 'show',
    keys: ids.map((keyId) => ({
      value: { kind: 'plain', bytes: keyId === id ? KEY : OTHER.key },
      explicitIv: IV,
      scheme: 'cbcs',
      ...changes,
      keyId,
    })),
    systems: ids.flatMap((keyId) => [
      cpixSystem('widevine', keyId, widevineSignals(keyId, widevineOf(keyId), 'cbcs')),
      cpixSystem('playready', keyId, playReadySignals(playReadyOf(keyId), 'cbcs')),
      cpixSystem('fairplay', keyId, fairPlaySignals(keyId === id ? ADDRESS : OTHER.address)),
    ]),
    rules: ids.map((keyId, at) => ({ keyId, intendedTrackType: at === 0 ? 'VIDEO' : second, ...NO_FILTERS })),
  });
}
