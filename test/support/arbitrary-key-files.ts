import * as fc from 'fast-check';
import type { KeyFile } from '../../src/drm/key-file';
import { playReadyChecksum } from '../../src/drm/playready';
import { widevinePsshDataOf } from '../../src/drm/widevine';

const block = fc
  .uint8Array({ minLength: 16, maxLength: 16 })
  .map((each) => Buffer.from(each))
  .filter((each) => each.some((byte) => byte > 0));
const base64 = block.map((each) => each.toString('base64'));
const hex = fc
  .tuple(block, fc.boolean())
  .map(([each, upper]) => (upper ? each.toString('hex').toUpperCase() : each.toString('hex')));

/** The rest of an address after its host: all of printable ASCII but the quote. */
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

const checksumOf = ({ keyId, contentKey }: NonNullable<KeyFile['cenc']>) =>
  playReadyChecksum(Buffer.from(keyId, 'base64'), Buffer.from(contentKey, 'base64'));

/** Key files of every combination of parts that a stream can be packaged with. */
export const arbitraryKeyFiles: fc.Arbitrary<KeyFile> = fc
  .record({ cenc, widevine, licenseUrl: addressOf('https://'), fairplay }, { requiredKeys: [] })
  .filter((parts) => parts.cenc !== undefined || parts.fairplay !== undefined)
  .map(({ cenc: key, widevine: data, licenseUrl, fairplay: apple }) => ({
    ...(key && { cenc: key }),
    ...(key && data && { widevine: data }),
    ...(key && licenseUrl !== undefined && { playready: { licenseUrl, checksum: checksumOf(key) } }),
    ...(apple && { fairplay: apple }),
  }));
