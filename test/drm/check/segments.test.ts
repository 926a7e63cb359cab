import { check } from '../../../src/api/check';
import { buildPsshBox } from '../../../src/drm/pssh';
import { buildWidevinePsshData, PROTECTION_SCHEMES, WIDEVINE_SYSTEM_ID } from '../../../src/drm/widevine';
import { rowsOf } from '../../support/rows-of';
import vectors from '../../vectors/init-segments.json';
import { changed, summary, valuesOf } from './checked';

const KEY_ID = Buffer.from('44da52ef4523098e6854777ee322681d', 'hex');
const OTHER = Buffer.alloc(16, 7);
const ZEROS = Buffer.alloc(16);

function segment(start: string): Buffer {
  const found = vectors.segments.filter(({ source }) => source.startsWith(start));
  expect(found).toHaveLength(1);
  return Buffer.from(found[0]?.b64 ?? '', 'base64');
}

const CENC = segment('shaka-packager, audio');
const CBCS = segment('shaka-packager, video, --protection_scheme cbcs --protection_systems');
const WRONG = segment('shaka-packager, video, --protection_scheme cbcs with key_id=ef52da');
const BARE = segment('ffmpeg, video and audio, cenc');
const CLEAR = segment('ffmpeg, video and audio, in clear');

describe('an init segment', () => {
  const KEY_BOX = boxOf(KEY_ID);
  it.each(
    rowsOf({
      'the key id of its box in the other byte order, and another scheme: E key_id_byte_order track.key_id, W scheme_mismatch box':
        WRONG,
      'a key id that no box names: E key_id_mismatch track.key_id': changed(CBCS, KEY_ID, OTHER, 'tenc'),
      'a scheme that neither Widevine nor PlayReady names: W scheme_mismatch box[0], W scheme_mismatch box[1]':
        changed(CBCS, 'cbcs', 'cenc', 'schm'),
      'a scheme of another world': changed(CBCS, 'cbcs', 'adkm', 'schm'),
      'a key id of zeros: E all_zero track[0].key_id, W no_pssh_box': changed(BARE, KEY_ID, ZEROS, 'tenc'),
      "a key id that looks as if in PlayReady's order: W key_id_byte_order_suspected track[0].key_id, W no_pssh_box":
        changed(BARE, KEY_ID, Buffer.from('ef52da4423458e499854777ee322681d', 'hex'), 'tenc'),
      'no tenc box: E no_tenc_box': changed(CENC, 'tenc', 'free'),
      'no tenc box, by a scheme of another world': changed(
        changed(CENC, 'tenc', 'free'),
        'cenc',
        'adkm',
        'schm',
      ),
      'boxes in the manifest alone: W no_pssh_box': BARE,
      'boxes of two keys, each of a track': withBoxes(changed(BARE, KEY_ID, OTHER, 'enca'), [
        KEY_BOX,
        boxOf(OTHER),
      ]),
      'boxes of two keys, one of no track: W key_id_mismatch box[1]': withBoxes(BARE, [
        KEY_BOX,
        boxOf(OTHER),
      ]),
      'boxes of two schemes: W scheme_mismatch box[1]': withBoxes(BARE, [
        boxOf(KEY_ID, 'cenc'),
        boxOf(KEY_ID, 'cbcs'),
      ]),
      'no protection: W not_protected': CLEAR,
    }),
  )('is checked with %s', (_what, bytes, faults) => {
    expect(summary(bytes)).toEqual(['init_segment', ...faults]);
  });

  it('shows no key id of a track whose samples are in clear', () => {
    const at = CENC.indexOf('tenc');
    const copy = Buffer.from(CENC);
    copy[at + 10] = 0;
    expect(summary(copy)).toEqual(['init_segment']);
    expect(valuesOf(copy)).not.toHaveProperty('track.key_id');
  });

  it('is asked for in place of a media segment, which says nothing of its protection', () => {
    const { faults } = check(Buffer.from('00000010737479706d73646800000000000000086d6f6f66', 'hex'));
    expect(faults.map(({ description }) => description)).toEqual([
      'The segment has no moov box, which says how it is encrypted; check its init segment, too.',
    ]);
  });

  it('throws nothing wherever it is cut, or whatever one of its bytes is', () => {
    for (const [first, bytes] of [CENC, CBCS, BARE].entries()) {
      for (let at = 8 + first; at < bytes.length; at += 3) {
        check(bytes.toString('base64', 0, at));
        const copy = Buffer.from(bytes);
        copy[at] = 255 - (copy[at] ?? 0);
        expect(['init_segment', 'media_segment', 'unknown']).toContain(check(copy.toString('base64')).kind);
      }
    }
  });
});

function boxOf(keyId: Buffer, scheme?: 'cenc' | 'cbcs'): Buffer {
  const of = scheme && { protectionScheme: PROTECTION_SCHEMES[scheme] };
  return buildPsshBox(WIDEVINE_SYSTEM_ID, buildWidevinePsshData({ keyIds: [keyId], ...of }));
}

/** A segment with boxes at the end of its `moov`, which is its last box. */
function withBoxes(bytes: Buffer, boxes: readonly Buffer[]): Buffer {
  const whole = Buffer.concat([bytes, ...boxes]);
  const at = whole.indexOf('moov') - 4;
  whole.writeUInt32BE(whole.length - at, at);
  return whole;
}
