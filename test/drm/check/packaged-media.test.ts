import { check } from '../../../src/api/check';
import { packagedManifest, packagedMedia } from '../../vectors/packaged-media';
import { changed, summary, valuesOf } from './checked';

const UUID = '44da52ef-4523-098e-6854-777ee322681d';
const ZEROS = '00000000-0000-0000-0000-000000000000';

function notesOf(input: unknown): Record<string, string | undefined> {
  return Object.fromEntries(check(input).fields.map(({ name, note }) => [name, note]));
}

const KEY_ID = Buffer.from(UUID.replaceAll('-', ''), 'hex');

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

  it('names no key in an init segment when keys rotate, which is told', () => {
    const bytes = packagedMedia('rotation/v.mp4');
    expect(valuesOf(bytes)).toEqual({
      key_rotation: 'expected',
      'track.scheme': 'cenc',
      'track.key_id': ZEROS,
    });
    expect(notesOf(bytes).key_rotation).toContain('check a fragment, too');
  });

  it('may rotate its keys within one file', () => {
    const parts = ['rotation/v.mp4', 'rotation/v1.m4s', 'rotation/v1.m4s', 'rotation/v4.m4s'].map(
      packagedMedia,
    );
    const file = Buffer.concat(parts);
    expect(summary(file)).toEqual(['media_file']);
    expect(valuesOf(file)).toMatchObject({
      key_rotation: 'yes',
      'track.key_id': ZEROS,
      'fragment[0].key_id': UUID,
      'fragment[1].key_id': 'da52ef45-2309-8e68-5477-7ee322681d44',
    });
  });

  it('is wrong with zeros where its fragments bring no key', () => {
    const file = Buffer.concat([packagedMedia('rotation/v.mp4'), packagedMedia('cenc/v1.m4s')]);
    expect(summary(file)).toEqual(['media_file', 'E all_zero track.key_id', 'W no_pssh_box']);
  });

  it('is wrong with zeros where boxes name a key', () => {
    const zeros = changed(packagedMedia('cenc/v.mp4'), KEY_ID, Buffer.alloc(16), 'tenc');
    expect(summary(zeros)).toEqual(['init_segment', 'E all_zero track.key_id']);
  });

  it('is wrong with a fragment whose key is in none of its boxes', () => {
    const other = changed(packagedMedia('rotation/v1.m4s'), KEY_ID, Buffer.alloc(16, 7), 'seig');
    expect(summary(other)).toEqual(['media_segment', 'E key_id_mismatch fragment.key_id']);
  });

  it('needs no box for FairPlay, which is told', () => {
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
    expect(check(text).fields.slice(1)).toEqual([
      {
        name: 'protection',
        value: 'not stated here',
        note: 'the keys are in the media playlists; check these next',
      },
      { name: 'playlist[0]', value: 'audio/a.m3u8' },
      { name: 'playlist[1]', value: 'v.m3u8' },
    ]);
  });

  it('is in clear where its only key line says so', () => {
    const text = packagedManifest('clear/v.m3u8').replace('#EXTINF', '#EXT-X-KEY:METHOD=NONE\n#EXTINF');
    expect(summary(text)).toEqual(['manifest', 'W not_protected']);
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
