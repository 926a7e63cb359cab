import fc from 'fast-check';
import {
  joinMediaPlaylists,
  masterPlaylist,
  mediaPlaylistsOf,
  type PlaylistPart,
  secondsOfPlaylist,
} from '../../../../src/platform/packager/playlists/hls-playlists';

interface ParsedPlaylist {
  readonly mediaSequence: number;
  readonly segments: readonly {
    readonly uri: string;
    readonly duration: number;
    readonly timeline: number;
  }[];
}

// It brings no types.
const { Parser }: { Parser: new () => { push(text: string): void; end(): void; manifest: ParsedPlaylist } } =
  jest.requireActual('m3u8-parser');

const FAIRPLAY =
  '#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://fairplay/demo",KEYFORMATVERSIONS="1",KEYFORMAT="com.apple.streamingkeydelivery"';
const IDENTITY =
  '#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://fairplay/demo",IV=0x0123456789abcdef0123456789abcdef,KEYFORMAT="identity"';

/** As shaka-packager 3.4.2 writes it for a live input. */
const written = (seconds: readonly number[], keys: readonly string[] = [IDENTITY, FAIRPLAY]) =>
  [
    '#EXTM3U',
    '#EXT-X-VERSION:6',
    '## Generated with https://github.com/shaka-project/shaka-packager version v3.4.2-c819dea-release',
    '#EXT-X-TARGETDURATION:3',
    '#EXT-X-PLAYLIST-TYPE:EVENT',
    '#EXT-X-MAP:URI="video_init.mp4"',
    ...keys,
    ...seconds.flatMap((each, index) => [`#EXTINF:${each.toFixed(3)},`, `video_${index + 1}.m4s`]),
    '',
  ].join('\n');
const live = (windowSeconds?: number) => ({ ended: false, windowSeconds });
const parts = (...seconds: (readonly number[])[]) =>
  seconds.map((each, index) => ({ folder: `${index + 1}/hls`, text: each.length > 0 ? written(each) : '' }));
const uris = (text: string) => text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
const tag = (text: string, name: string) => new RegExp(`^#${name}:(.*)$`, 'm').exec(text)?.[1];

test('parts follow each other behind a discontinuity, each with its key and initialization, without identity keys', () => {
  expect(joinMediaPlaylists(parts([2, 2], [2, 1.5]), live())).toBe(`#EXTM3U
#EXT-X-VERSION:6
#EXT-X-TARGETDURATION:2
#EXT-X-MEDIA-SEQUENCE:0
#EXT-X-PLAYLIST-TYPE:EVENT
${FAIRPLAY}
#EXT-X-MAP:URI="1/hls/video_init.mp4"
#EXTINF:2.000,
1/hls/video_1.m4s
#EXTINF:2.000,
1/hls/video_2.m4s
#EXT-X-DISCONTINUITY
${FAIRPLAY}
#EXT-X-MAP:URI="2/hls/video_init.mp4"
#EXTINF:2.000,
2/hls/video_1.m4s
#EXTINF:1.500,
2/hls/video_2.m4s
`);
});

test('a part with other keys, whose times go on, has its key line and no discontinuity', () => {
  const [first, second, third] = parts([2], [2], [2]) as [PlaylistPart, PlaylistPart, PlaylistPart];
  const text = second.text.replaceAll('fairplay/demo', 'fairplay/next');
  const joined = joinMediaPlaylists([first, { ...second, text, continues: true }, third], live());
  expect(joined.split('\n').slice(5, -1)).toEqual([
    ...[FAIRPLAY, '#EXT-X-MAP:URI="1/hls/video_init.mp4"', '#EXTINF:2.000,', '1/hls/video_1.m4s'],
    FAIRPLAY.replace('fairplay/demo', 'fairplay/next'),
    ...['#EXT-X-MAP:URI="2/hls/video_init.mp4"', '#EXTINF:2.000,', '2/hls/video_1.m4s'],
    ...['#EXT-X-DISCONTINUITY', FAIRPLAY],
    ...['#EXT-X-MAP:URI="3/hls/video_init.mp4"', '#EXTINF:2.000,', '3/hls/video_1.m4s'],
  ]);
});

test('an ended stream says so, and is a VOD when nothing is left out', () => {
  const text = joinMediaPlaylists(parts([2, 2]), { ended: true, windowSeconds: undefined });
  expect(tag(text, 'EXT-X-PLAYLIST-TYPE')).toBe('VOD');
  expect(text).toMatch(/\n#EXT-X-ENDLIST\n$/);
  const windowed = joinMediaPlaylists(parts([2, 2, 2, 2, 2]), { ended: true, windowSeconds: 6 });
  expect(windowed).not.toContain('PLAYLIST-TYPE');
  expect(windowed).toMatch(/\n#EXT-X-ENDLIST\n$/);
});

test('a window that begins in a later part counts the segments and discontinuities before it', () => {
  const text = joinMediaPlaylists(parts([2, 2], [2], [2, 2, 2, 2]), live(6));
  expect(text).toBe(`#EXTM3U
#EXT-X-VERSION:6
#EXT-X-TARGETDURATION:2
#EXT-X-MEDIA-SEQUENCE:4
#EXT-X-DISCONTINUITY-SEQUENCE:2
${FAIRPLAY}
#EXT-X-MAP:URI="3/hls/video_init.mp4"
#EXTINF:2.000,
3/hls/video_2.m4s
#EXTINF:2.000,
3/hls/video_3.m4s
#EXTINF:2.000,
3/hls/video_4.m4s
`);
});

test('a part without a segment of this rendition counts as it does in the others', () => {
  const text = joinMediaPlaylists(parts([2], [], [2]), live());
  expect(text.match(/#EXT-X-DISCONTINUITY\n/g)).toHaveLength(2);
  expect(uris(text)).toEqual(['1/hls/video_1.m4s', '3/hls/video_1.m4s']);
});

test('a part without keys behind one with keys says that it is clear', () => {
  const text = joinMediaPlaylists(
    [
      { folder: '1', text: written([2]) },
      { folder: '2', text: written([2], []) },
    ],
    live(),
  );
  expect(text).toContain('#EXT-X-DISCONTINUITY\n#EXT-X-KEY:METHOD=NONE\n#EXT-X-MAP:URI="2/video_init.mp4"\n');
});

test('the target duration stays that of the longest segment, listed or not', () => {
  const text = joinMediaPlaylists(parts([4.6, 2], [2, 2, 2, 2, 2, 2, 2, 2]), live(6));
  expect(tag(text, 'EXT-X-TARGETDURATION')).toBe('5');
  // Not less than three of them.
  expect(uris(text)).toHaveLength(8);
});

test('a segment without its length is reported with the part', () => {
  expect(() => joinMediaPlaylists([{ folder: '7', text: '#EXTM3U\na.m4s\n' }], live())).toThrow(
    'the media playlist of 7 has a.m4s without #EXTINF',
  );
});

test('any window lists the end of what there is, under the numbers that it has in the whole', () => {
  const lengths = fc.array(fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 6 }), {
    minLength: 1,
    maxLength: 5,
  });
  const parse = (text: string) => {
    const parser = new Parser();
    parser.push(text);
    parser.end();
    return parser.manifest;
  };
  fc.assert(
    fc.property(lengths, fc.integer({ min: 1, max: 40 }), (seconds, window) => {
      const all = parts(...seconds);
      const whole = parse(joinMediaPlaylists(all, live())).segments;
      const text = joinMediaPlaylists(all, live(window));
      const manifest = parse(text);
      const listed = manifest.segments;
      const first = manifest.mediaSequence;
      expect(listed.map(({ uri }) => uri)).toEqual(whole.slice(first).map(({ uri }) => uri));
      expect(listed.map(({ timeline }) => timeline)).toEqual(
        whole.slice(first).map(({ timeline }) => timeline),
      );
      const total = (segments: ParsedPlaylist['segments']) =>
        segments.reduce((sum, { duration }) => sum + duration, 0);
      const least = Math.max(window, 3 * Number(tag(text, 'EXT-X-TARGETDURATION')));
      expect(total(listed)).toBeGreaterThanOrEqual(Math.min(least, total(whole)));
      expect(total(listed.slice(1))).toBeLessThan(least);
      expect(secondsOfPlaylist(text)).toBeCloseTo(total(listed), 6);
    }),
  );
});

const master = (bandwidth: number, size: string, rate = ',FRAME-RATE=25.000') => `#EXTM3U
## Generated with https://github.com/shaka-project/shaka-packager version v3.4.2-c819dea-release

#EXT-X-INDEPENDENT-SEGMENTS

#EXT-X-MEDIA:TYPE=AUDIO,URI="audio.m3u8",GROUP-ID="audio",NAME="Audio",DEFAULT=NO,AUTOSELECT=YES,CHANNELS="2"

#EXT-X-STREAM-INF:BANDWIDTH=${bandwidth},AVERAGE-BANDWIDTH=${bandwidth - 10},CODECS="avc1.64000c,mp4a.40.2",RESOLUTION=${size}${rate},AUDIO="audio",CLOSED-CAPTIONS=NONE
video.m3u8
`;

test('the newest part says what there is, all parts say how much it takes, and the window goes with it', () => {
  const masters = [master(900, '640x360'), '', master(500, '320x180')];
  expect(masterPlaylist(masters, 30)).toBe(`#EXTM3U
#EXT-X-VERSION:6
#EXT-X-INDEPENDENT-SEGMENTS
#EXT-X-MEDIA:TYPE=AUDIO,URI="audio.m3u8?window=30",GROUP-ID="audio",NAME="Audio",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="2"
#EXT-X-STREAM-INF:BANDWIDTH=900,AVERAGE-BANDWIDTH=890,CODECS="avc1.64000c,mp4a.40.2",RESOLUTION=320x180,FRAME-RATE=25.000,AUDIO="audio",CLOSED-CAPTIONS=NONE
video.m3u8?window=30
`);
});

test('a part that has sound only so far does not describe the stream', () => {
  const text = masterPlaylist([master(900, '640x360'), master(100, '320x180', '')], undefined);
  expect(text).toContain(
    'BANDWIDTH=900,AVERAGE-BANDWIDTH=890,CODECS="avc1.64000c,mp4a.40.2",RESOLUTION=640x360,',
  );
});

test('a multivariant playlist names its media playlists', () => {
  expect(mediaPlaylistsOf(master(900, '640x360'))).toEqual(['video.m3u8', 'audio.m3u8']);
});

test('without any stream there is nothing to play yet', () => {
  expect(masterPlaylist(['', '#EXTM3U\n'], undefined)).toBe('');
});
