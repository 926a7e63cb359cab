import * as fc from 'fast-check';
import type { KeyFile } from '../../src/drm/key-file';
import { playReadyChecksum } from '../../src/drm/playready';
import { widevinePsshDataOf } from '../../src/drm/widevine';

const bytes = (length: number) =>
  fc.uint8Array({ minLength: length, maxLength: length }).map((each) => Buffer.from(each));
const block = bytes(16).filter((each) => each.some((byte) => byte > 0));
const base64 = block.map((each) => each.toString('base64'));
const hex = fc
  .tuple(block, fc.boolean())
  .map(([each, upper]) => (upper ? each.toString('hex').toUpperCase() : each.toString('hex')));

/** What may follow an address's host: all of printable ASCII but the quote. */
const rest = fc
  .string({
    unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
    maxLength: 60,
  })
  .map((text) => text.replaceAll('"', '').replaceAll(/%|&(?=[#a])|sess/gi, ''));
const addressOf = (start: string) => rest.map((text) => `${start}license.example/a?b=${text}`);

const cenc = fc.record({ keyId: base64, contentKey: base64 });
const widevine = fc
  .tuple(block, fc.string({ minLength: 1, maxLength: 40 }))
  .map(([keyId, contentId]) => ({ psshData: widevinePsshDataOf(keyId, contentId) }));
const fairplay = fc.record({ licenseUrl: addressOf('skd://'), key: hex, iv: hex });

/** Key files of every combination of parts that a stream can be packaged with. */
export const arbitraryKeyFiles: fc.Arbitrary<KeyFile> = fc
  .record({
    cenc: fc.option(cenc, { nil: undefined }),
    widevine: fc.option(widevine, { nil: undefined }),
    playReadyUrl: fc.option(addressOf('https://'), { nil: undefined }),
    fairplay: fc.option(fairplay, { nil: undefined }),
  })
  .filter((parts) => parts.cenc !== undefined || parts.fairplay !== undefined)
  .map(({ cenc: key, widevine: data, playReadyUrl, fairplay: apple }) => ({
    ...(key && { cenc: key }),
    ...(key && data && { widevine: data }),
    ...(key &&
      playReadyUrl !== undefined && {
        playready: {
          licenseUrl: playReadyUrl,
          checksum: playReadyChecksum(
            Buffer.from(key.keyId, 'base64'),
            Buffer.from(key.contentKey, 'base64'),
          ),
        },
      }),
    ...(apple && { fairplay: apple }),
  }));
