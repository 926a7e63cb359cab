import { check } from '../../../src/api/check';
import { formatUuid } from '../../../src/drm/bytes';
import { buildPsshBox } from '../../../src/drm/pssh';
import { buildWidevinePsshData, PROTECTION_SCHEMES, WIDEVINE_SYSTEM_ID } from '../../../src/drm/widevine';
import { rowsOf } from '../../support/rows-of';
import vectors from '../../vectors/init-segments.json';
import { packagedManifest, packagedMedia } from '../../vectors/packaged-media';
import { changed, KEY_ID, summary, UUID, valuesOf } from './checked';

const ZEROS = Buffer.alloc(16);
const OTHER = Buffer.alloc(16, 7);

function notesOf(input: unknown): Record<string, string | undefined> {
  return Object.fromEntries(check(input).fields.map(({ name, note }) => [name, note]));
}

describe('media of a packager', () => {
  it.each<[name: string, kind: string, ...faults: string[]]>([
    ['cenc/v.mp4', 'init_segment'],
    ['fairplay/v.mp4', 'init_segment'],
    ['rotation/v.mp4', 'init_segment'],
    ['rotation/v1.m4s', 'media_segment'],
    ['rotation-cbcs/a3.m4s', 'media_segment'],
    ['two-keys/v.mp4', 'init_segment'],
    ['clear/v.mp4', 'init_segment', 'W not_protected'],
  ])('has no fault but that it is clear, and is called what it is: %s', (name, ...expected) => {
    const bytes = packagedMedia(name);
    expect(summary(bytes)).toEqual(expected);
    expect(check(bytes.toString('base64'))).toEqual(check(bytes));
  });

  it('names no key in an init segment when keys rotate, which is reported', () => {
    const bytes = packagedMedia('rotation/v.mp4');
    expect(valuesOf(bytes)).toEqual({
      key_rotation: 'expected',
      'track.scheme': 'cenc',
      'track.key_id': formatUuid(ZEROS),
    });
    expect(notesOf(bytes).key_rotation).toContain('check a fragment, too');
  });

  it('may rotate its keys within one file', () => {
    const names = ['rotation/v.mp4', 'rotation/v1.m4s', 'rotation/v1.m4s', 'rotation/v4.m4s'];
    const file = Buffer.concat(names.map(packagedMedia));
    expect(summary(file)).toEqual(['media_file']);
    expect(valuesOf(file)).toMatchObject({
      key_rotation: 'yes',
      'track.key_id': formatUuid(ZEROS),
      'fragment[0].key_id': UUID,
      'fragment[1].key_id': 'da52ef45-2309-8e68-5477-7ee322681d44',
    });
  });

  it('is wrong with zeros where fragments bring no key, and with one whose key is in none of its boxes', () => {
    const file = Buffer.concat([packagedMedia('rotation/v.mp4'), packagedMedia('cenc/v1.m4s')]);
    expect(summary(file)).toEqual(['media_file', 'E all_zero track.key_id', 'W no_pssh_box']);
    const other = changed(packagedMedia('rotation/v1.m4s'), KEY_ID, OTHER, 'seig');
    expect(summary(other)).toEqual(['media_segment', 'E key_id_mismatch fragment.key_id']);
  });

  it('needs no box for FairPlay, which is reported', () => {
    const bytes = packagedMedia('fairplay/v.mp4');
    expect(valuesOf(bytes)).toEqual({
      'track.scheme': 'cbcs',
      'track.key_id': UUID,
      protection: 'cbcs without a pssh box',
    });
    expect(notesOf(bytes).protection).toMatch(/^right for FairPlay/);
  });

  it('is asked for its init segment by a media segment without a key of its own', () => {
    const bytes = packagedMedia('cenc/v1.m4s');
    expect(summary(bytes)).toEqual(['media_segment', 'W no_init_segment']);
    expect(valuesOf(bytes)).toEqual({ protection: 'encrypted samples' });
  });
});

describe('a manifest of a packager', () => {
  it.each<[name: string, type: string, ...faults: string[]]>([
    ['cenc/s.mpd', 'DASH MPD'],
    ['two-keys/s.mpd', 'DASH MPD'],
    ['fairplay/s.mpd', 'DASH MPD'],
    ['rotation/s.mpd', 'DASH MPD', 'W names_nothing'],
    ['clear/s.mpd', 'DASH MPD', 'W not_protected'],
    ['cenc/v.m3u8', 'HLS media playlist'],
    ['fairplay/v.m3u8', 'HLS media playlist'],
    ['two-keys/a.m3u8', 'HLS media playlist'],
    ['clear/v.m3u8', 'HLS media playlist', 'W not_protected'],
    ['clear/master.m3u8', 'HLS multivariant playlist'],
  ])('is recognised: %s', (name, type, ...faults) => {
    const text = packagedManifest(name);
    expect(summary(text)).toEqual(['manifest', ...faults]);
    expect(check(text).fields[0]).toEqual({ name: 'type', value: type });
  });

  it('names the media segments, too, which have the boxes where keys rotate', () => {
    const [fault] = check(packagedManifest('rotation/s.mpd')).faults;
    expect(fault?.description).toContain('the init or media segments must have them');
  });

  it('sends on from a multivariant playlist to the playlists that name the keys', () => {
    const text = packagedManifest('clear/master.m3u8').replace('a.m3u8"', 'audio/a.m3u8?token=abcdefgh"');
    const note = 'the keys are in the media playlists; check these next';
    expect(check(text).fields.slice(1)).toEqual([
      { name: 'protection', value: 'not stated here', note },
      { name: 'playlist[0]', value: 'audio/a.m3u8' },
      { name: 'playlist[1]', value: 'v.m3u8' },
    ]);
  });

  it('is in clear as a manifest of Smooth Streaming without a header', () => {
    const text =
      '<?xml version="1.0"?>\n<!-- by hand -->\n<SmoothStreamingMedia MajorVersion="2"></SmoothStreamingMedia>';
    expect(summary(text)).toEqual(['manifest', 'W not_protected']);
    expect(valuesOf(text)).toEqual({ type: 'Smooth Streaming manifest' });
  });

  it.each([
    ['<dashif:Laurl>https://a.example/?a=1&amp;b=2</dashif:Laurl>', 'https://a.example/?a=1&b=2'],
    ['<ms:laurl licenseUrl="https://a.example/"/>', 'https://a.example/'],
  ])('has its license addresses shown and checked: %s', (element, address) => {
    const text = packagedManifest('cenc/s.mpd').replaceAll('<mspr:pro>', `${element}<mspr:pro>`);
    expect(valuesOf(text).laurl).toBe(address);
    expect(notesOf(text).laurl).toBe('PlayReady');
    expect(summary(text.replaceAll('https://a', 'a'))).toEqual(['manifest', 'E scheme_missing laurl']);
  });
});

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
  const NO_TENC = changed(CENC, 'tenc', 'free');
  const KEY_BOXES = [boxOf(KEY_ID), boxOf(OTHER)];
  const SCHEME_BOXES = [boxOf(KEY_ID, 'cenc'), boxOf(KEY_ID, 'cbcs')];
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
      'zeros next to boxes that name a key: E all_zero track.key_id': changed(CENC, KEY_ID, ZEROS, 'tenc'),
      'no tenc box: E no_tenc_box': NO_TENC,
      'no tenc box, by a scheme of another world': changed(NO_TENC, 'cenc', 'adkm', 'schm'),
      'boxes in the manifest alone: W no_pssh_box': BARE,
      'boxes of two keys, each of a track': withBoxes(changed(BARE, KEY_ID, OTHER, 'enca'), ...KEY_BOXES),
      'boxes of two keys, one of no track: W key_id_mismatch box[1]': withBoxes(BARE, ...KEY_BOXES),
      'boxes of two schemes: W scheme_mismatch box[1]': withBoxes(BARE, ...SCHEME_BOXES),
      'no protection: W not_protected': CLEAR,
    }),
  )('is checked with %s', (_what, bytes, faults) => {
    expect(summary(bytes)).toEqual(['init_segment', ...faults]);
  });

  it('is asked for in place of a media segment, which says nothing of its protection', () => {
    const { faults } = check(Buffer.from('00000010737479706d73646800000000000000086d6f6f66', 'hex'));
    expect(faults.map(({ description }) => description)).toEqual([
      'The segment has no moov box, which says how it is encrypted; check its init segment, too.',
    ]);
  });

  it('throws nothing wherever it is cut, or whatever one of its bytes is', () => {
    for (const [first, bytes] of [CENC, CBCS, BARE].entries()) {
      for (let at = 8 + first; at < bytes.length; at += 7) {
        check(bytes.subarray(0, at));
        const copy = Buffer.from(bytes);
        copy[at] = 255 - (copy[at] ?? 0);
        expect(['init_segment', 'media_segment', 'unknown']).toContain(check(copy).kind);
      }
    }
  });
});

function boxOf(keyId: Buffer, scheme?: 'cenc' | 'cbcs'): Buffer {
  const of = scheme && { protectionScheme: PROTECTION_SCHEMES[scheme] };
  return buildPsshBox(WIDEVINE_SYSTEM_ID, buildWidevinePsshData({ keyIds: [keyId], ...of }));
}

/** A segment with boxes at the end of its `moov`, which is its last box. */
function withBoxes(bytes: Buffer, ...boxes: readonly Buffer[]): Buffer {
  const whole = Buffer.concat([bytes, ...boxes]);
  const at = whole.indexOf('moov') - 4;
  whole.writeUInt32BE(whole.length - at, at);
  return whole;
}
