import { chooseKeys } from '../../../src/drm/cpix/choose';
import { cpixKeyFile } from '../../../src/drm/cpix/key-file';
import { keyFileLines, renderKeyFile } from '../../../src/drm/key-file';
import { buildPsshBox } from '../../../src/drm/pssh';
import { buildWidevinePsshData, WIDEVINE_SYSTEM_ID } from '../../../src/drm/widevine';
import { FAIRPLAY, HD, MADE, madeCpix, PLAYREADY_URL, SD } from '../../support/made-cpix';
import { packagedManifest, packagedMedia } from '../../vectors/packaged-media';
import { codes, compare, said } from './checked';

/** The key file of a track of the document. */
function keyFile(track: string): string {
  const chosen = chooseKeys(MADE, { track });
  const made = chosen.ok ? cpixKeyFile(MADE, chosen.value, {}) : undefined;
  if (!made?.ok) throw new Error('no key file');
  return renderKeyFile(keyFileLines(made.keyFile));
}

const CPIX = { 'film.xml': madeCpix() };
const HD_FILE = keyFile('HD');
const base64 = (bytes: Buffer) => bytes.toString('base64');

describe('a CPIX document and the key files that were made of it', () => {
  it('agree', () => {
    expect(compare({ ...CPIX, 'sd.key': keyFile('SD'), 'hd.key': HD_FILE })).toEqual({
      compared: ['key', 'key_id', 'iv', 'license_address'],
      faults: [],
    });
  });

  it('differ in the key id', () => {
    const other = 'AAECAwQFBgcICQoLDA0ODw==';
    const text = HD_FILE.replace(base64(HD.keyId), other);
    expect(said({ ...CPIX, 'hd.key': text })[0]).toBe(
      'E key_id_mismatch: hd.key has key id 00010203-0405-0607-0809-0a0b0c0d0e0f, which film.xml has no key for; ' +
        'check whether they are of one stream, or write the key file again from the document.',
    );
  });

  it('differ in the byte order of the key id', () => {
    const text = HD_FILE.replace(base64(HD.keyId), '1/VYDoRGmUGpsUOGRu9HdQ==');
    expect(codes({ ...CPIX, 'hd.key': text })).toEqual(['E key_id_byte_order']);
  });

  it('differ in the content key, and neither is quoted', () => {
    const sentences = said({ ...CPIX, 'hd.key': HD_FILE.replace(base64(HD.key), base64(SD.key)) });
    expect(sentences).toEqual([
      expect.stringMatching(
        /^E content_keys_differ: (?:hd\.key and film\.xml|film\.xml and hd\.key) share a key id/,
      ),
    ]);
    for (const secret of [HD.key, SD.key]) expect(sentences.join()).not.toContain(base64(secret));
  });

  it('have key and key id swapped', () => {
    const text = HD_FILE.replace(base64(HD.keyId), 'x')
      .replace(base64(HD.key), base64(HD.keyId))
      .replace(': x', `: ${base64(HD.key)}`);
    expect(codes({ ...CPIX, 'hd.key': text })).toContain('E key_and_key_id_swapped');
  });

  it('differ in the FairPlay key, its IV and the addresses', () => {
    const upperHex = (bytes: Buffer) => bytes.toString('hex').toUpperCase();
    const text = HD_FILE.replace(upperHex(FAIRPLAY.key), upperHex(SD.key))
      .replace(upperHex(FAIRPLAY.iv), upperHex(HD.key))
      .replace('skd://license.example/film-1', 'skd://license.example/film-2')
      .replace(PLAYREADY_URL, 'https://other.example/rightsmanager.asmx');
    expect(codes({ ...CPIX, 'hd.key': text })).toEqual([
      'E fairplay_key_differs',
      'E iv_mismatch',
      'W license_address_differs',
      'E license_address_differs',
    ]);
  });

  it('are not compared by keys that are encrypted or only asked for', () => {
    const keys = MADE.keys.map((key) => ({ ...key, value: undefined }));
    const text = HD_FILE.replace(base64(HD.key), base64(SD.key));
    expect(codes({ 'request.xml': madeCpix({ keys }), 'hd.key': text })).toEqual([]);
  });
});

describe('a CPIX document and what was packaged with its keys', () => {
  const box = (keyId: Buffer) => buildPsshBox(WIDEVINE_SYSTEM_ID, buildWidevinePsshData({ keyIds: [keyId] }));

  it('agree by the key id', () => {
    expect(compare({ ...CPIX, 'box.bin': box(HD.keyId) })).toEqual({
      compared: ['key_id', 'protection'],
      faults: [],
    });
  });

  it('differ in the key id of samples and of boxes', () => {
    expect(codes({ ...CPIX, 'init.mp4': packagedMedia('cenc/v.mp4') })).toContain('E key_id_mismatch');
    expect(codes({ ...CPIX, 'box.bin': box(FAIRPLAY.iv) })).toEqual(['E key_id_mismatch']);
  });

  it('leave the media to the key file when there is one', () => {
    const sentences = said({ ...CPIX, 'hd.key': HD_FILE, 'box.bin': box(SD.keyId) });
    expect(sentences).toEqual([expect.stringContaining('hd.key has another one')]);
  });

  it('differ in the scheme, when the document names one', () => {
    const keys = MADE.keys.map((key) => ({ ...key, scheme: 'cbcs' as const }));
    const track = { 'stream.mpd': packagedManifest('cenc/s.mpd') };
    expect(codes({ 'film.xml': madeCpix({ keys }), ...track })).toContain('E scheme_mismatch');
    expect(codes({ ...CPIX, ...track })).not.toContain('E scheme_mismatch');
  });
});
