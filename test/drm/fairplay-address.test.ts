import { crossCheck } from '../../src/drm/cross-check';
import { widevinePsshDataOf } from '../../src/drm/widevine';

/** What it finds, but for the address's scheme and the key without a system. */
function codes(...given: Parameters<typeof crossCheck>): string[] {
  return crossCheck(...given).flatMap(({ code }) => (code === 'not_skd' ? [] : [code]));
}

describe('a FairPlay address that names the key by its id', () => {
  const uuid = '44da52ef-4523-098e-6854-777ee322681d';
  const cenc = {
    keyId: Buffer.from(uuid.replaceAll('-', ''), 'hex').toString('base64'),
    contentKey: Buffer.alloc(16, 9).toString('base64'),
  };
  const widevine = { psshData: widevinePsshDataOf(Buffer.from(cenc.keyId, 'base64'), 'show') };
  const fairplayOf = (licenseUrl: string) => ({ key: '1'.repeat(32), iv: '2'.repeat(32), licenseUrl });
  const forms = [uuid, uuid.toUpperCase(), uuid.replaceAll('-', ''), uuid.replaceAll('-', '').toUpperCase()];

  test.each([
    ...forms.flatMap((form) => [`skd://${form}`, `skd://license.example/key/${form}?v=1`]),
    `SKD://${uuid}`,
    `skd://{${uuid}}`,
    `skd://${uuid}/`,
    `skd://${uuid.replaceAll('-', '')}:${'2'.repeat(32)}`,
  ])('is taken for right, whatever the content id is: %s', (licenseUrl) => {
    const fairplay = fairplayOf(licenseUrl);
    expect(codes({ cenc, fairplay, widevine }, 'show')).toEqual([]);
    expect(codes({ cenc, fairplay, widevine }, undefined)).toEqual([]);
    expect(codes({ cenc, fairplay }, 'another')).toEqual([]);
  });

  test.each(forms)('may be that of a key of its own: skd://%s', (form) => {
    const fairplay = fairplayOf(`skd://${form}`);
    const other = { ...cenc, keyId: Buffer.alloc(16, 7).toString('base64') };
    expect(codes({ fairplay }, 'show')).toEqual([]);
    expect(codes({ cenc: other, fairplay }, 'show')).toEqual([]);
  });

  test.each([
    `skd://${uuid.slice(1)}`,
    `skd://license.example/${'a'.repeat(32)}`,
    `skd://${'a'.repeat(33)}`,
    `https://${uuid}`,
  ])('is nothing else: %s', (licenseUrl) => {
    expect(codes({ fairplay: fairplayOf(licenseUrl) }, 'show')).toEqual(['content_id_mismatch']);
  });
});
