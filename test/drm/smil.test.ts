import { readSmil, readSmilStreams } from '../../src/drm/smil';

/** The shapes in which SMIL documents for the packager are found. */
const READ: [what: string, text: string, names: string[]][] = [
  [
    'renditions with a bitrate each',
    `<smil>
       <head>
       </head>
       <body>
         <switch>
           <video src="mp4:20_320p_aligned.mp4" system-bitrate="264000"/>
           <video src="mp4:20_360p_aligned.mp4" system-bitrate="700000"/>
         </switch>
       </body>
     </smil>`,
    ['20_320p_aligned.mp4', '20_360p_aligned.mp4'],
  ],
  [
    'parameters below the renditions, and a title',
    `<?xml version="1.0" encoding="UTF-8"?>
     <smil title="">
       <body><switch>
         <video height="720" src="myStream_720p" systemLanguage="eng" width="1280">
           <param name="videoBitrate" value="1300000" valuetype="data"></param>
           <param name="audioBitrate" value="128000" valuetype="data"></param>
         </video>
         <video height="360" src="myStream_360p" systemLanguage="eng" width="640">
           <param name="videoCodecId" value="avc1.42c015" valuetype="data"></param>
         </video>
       </switch></body>
     </smil>`,
    ['myStream_720p', 'myStream_360p'],
  ],
  [
    'languages of their own, in sub-folders and without an extension',
    `<smil><head/><body><switch>
       <video height="1080" src="mp4:engage-player/hls-multiaudio-1/1080" video-bitrate="5114880" width="1920">
         <param name="videoOnly" value="TRUE" valuetype="data"/>
         <param name="cupertinoTag.AUDIO" value="aac" valuetype="data"/>
       </video>
       <video src="mp4:engage-player/hls-multiaudio-1/es" system-language="es" title="Español" audio-bitrate="99328">
         <param name="audioOnly" value="TRUE" valuetype="data"/>
         <param name="cupertinoTag" value="EXT-X-MEDIA" valuetype="data"/>
       </video>
     </switch></body></smil>`,
    ['engage-player/hls-multiaudio-1/1080', 'engage-player/hls-multiaudio-1/es'],
  ],
  [
    'captions, and audio in elements of its own',
    `<smil><body><switch>
       <video src="mp4:sintel.mp4" system-bitrate="1000000"/>
       <audio src="mp3:sintel_fr.mp3" system-language="fra"/>
       <textstream src="sintel_en.srt" system-language="eng"/>
       <ref src="sintel_de.ttml"/>
     </switch></body></smil>`,
    ['sintel.mp4', 'sintel_fr.mp3'],
  ],
  [
    'a namespace, metadata, and tracks of the same file',
    `<?xml version="1.0" encoding="utf-8"?>
     <!-- made by an origin -->
     <smil xmlns="http://www.w3.org/2001/SMIL20/Language">
       <head><meta name="clientManifestRelativePath" content="a.ismc"/><meta base="rtmp://server/app/"/></head>
       <body><switch>
         <audio src="a.ismv" systemBitrate="64000" systemLanguage="eng"><param name="trackID" value="1"/></audio>
         <video src="a.ismv" systemBitrate="400000"><param name="trackID" value="2"/></video>
         <video src="a.ismv" systemBitrate="900000"><param name="trackID" value="3"/></video>
       </switch></body>
     </smil>`,
    ['a.ismv'],
  ],
  [
    'a server of its own, and names written as entities',
    `<smil xmlns:xml="http://www.w3.org/XML/1998/namespace"><head>
       <paramGroup xml:id="cluster"><param name="server1" value="rtmp://server"/></paramGroup></head>
       <body><switch><video src="Stream&#95;1" system-bitrate="350" dur="indefinite"/><video src='flv:Stream_2'/></switch></body></smil>`,
    ['Stream_1', 'Stream_2'],
  ],
  ['no switch, and upper-case prefixes', '<smil><body><video src="MP4:a.mp4"/></body></smil>', ['a.mp4']],
  [
    'what stands outside of its body',
    '<smil><head><video src="no"/></head><body><video src="a"/></body></smil>',
    ['a'],
  ],
];

it.each(READ)('reads %s', (_what, text, names) => {
  expect(readSmil(text)).toEqual({ ok: true, value: names });
});

const inBody = (text: string) => `<smil><body><switch>${text}</switch></body></smil>`;
const first = 'video, number 1 of its video and audio:';
it.each([
  ['nothing', '', 'is empty'],
  ['what is no XML', 'mp4:a.mp4', 'is not well-formed XML: see line 1'],
  ['an element that is not closed', '<smil><body>', 'is not well-formed XML: see line 1'],
  ['another language', '<MPD/>', 'is not SMIL: its outermost element is not smil'],
  ['no body', '<smil/>', 'names no stream: it has no video or audio in its body'],
  ['no src', inBody('<video name="a.mp4"/>'), `${first} src is missing`],
  ['a prefix alone', inBody('<video src="mp4:"/>'), `${first} src is only a prefix`],
  [
    'an address',
    inBody('<video src="rtmp://10.0.0.1/live/a"/>'),
    `${first} src is an address; write the name that the packager uses for the stream`,
  ],
  [
    'a query',
    inBody('<video src="mp4:video.mp4?audioindex=1"/>'),
    `${first} src has a query; a key file belongs to the stream without it, so leave it out`,
  ],
  ['a slash in front', inBody('<video src="mp4:/a.mp4"/>'), `${first} src starts with a slash; leave it out`],
  ...['smil:b.smil', 'b.smil', 'ngrp:b_all'].map((source): [string, string, string] => [
    `a group in a group (${source})`,
    inBody(`<video src="${source}"/>`),
    `${first} src is a group itself, which has no key file; name its streams`,
  ]),
  [
    'a schedule',
    '<smil><head/><body><stream name="Stream1"/><playlist name="p" playOnStream="Stream1" scheduled="2020-04-25 16:00:00"><video src="mp4:sample.mp4" start="0" length="-1"/></playlist></body></smil>',
    'is a schedule, which plays its videos into streams with other names; list those streams as members',
  ],
  ['1001 members', inBody('<video src="a"/>'.repeat(1001)), 'has more than 1000 video and audio elements'],
])('refuses %s', (_what, text, sentence) => {
  // What is no XML at all is told by the reader of XML.
  const code = expect.stringMatching(/^malformed_(?:smil|xml)$/);
  expect(readSmil(text)).toEqual({ ok: false, problem: { code, description: sentence } });
});

it('reads a thousand members', () => {
  const many = Array.from({ length: 1000 }, (_, index) => `<video src="mp4:v${index}.mp4"/>`).join('');
  expect(readSmil(inBody(many))).toMatchObject({ ok: true, value: { length: 1000 } });
});

test.each<[what: string, elements: string, stream: object]>([
  [
    'a picture, the way it is or on end',
    '<video src="a" width="1080" height="1920" system-bitrate="9"/>',
    { kind: 'video', lines: 1080, bitrate: 9 },
  ],
  ['a height alone', '<video src="a" height="576"/>', { kind: 'video', lines: 576, bitrate: undefined }],
  ['a width alone', '<video src="a" width="720"/>', { kind: 'video', lines: undefined, bitrate: undefined }],
  [
    'a parameter of the packager before an attribute',
    '<video src="a" system-bitrate="9"><param name="x" value="7"/><param name="videoBitrate" value="8"/></video>',
    { kind: 'video', lines: undefined, bitrate: 8 },
  ],
  [
    'another element with that name, which is no parameter',
    '<video src="a" system-bitrate="9"><meta name="videoBitrate" value="8"/></video>',
    { kind: 'video', lines: undefined, bitrate: 9 },
  ],
  ['sound', '<audio src="a" system-bitrate="9"/>', { kind: 'audio', lines: undefined, bitrate: 9 }],
  [
    'sound with a picture elsewhere, and the most of both',
    '<audio src="a" system-bitrate="9"/><video src="a" height="5" system-bitrate="7"/><audio src="a" height="3"/>',
    { kind: 'video', lines: 5, bitrate: 9 },
  ],
  [
    'numbers that are none',
    '<video src="a" height="0576" system-bitrate="9k"/><video src="a" height="12345678901"/>',
    { kind: 'video', lines: undefined, bitrate: undefined },
  ],
])('tells of a stream %s', (_what, elements, stream) => {
  const read = readSmilStreams(`<smil><body>${elements}</body></smil>`);
  expect(read).toEqual({ ok: true, value: [{ name: 'a', ...stream }] });
});

test.each([
  ['a/mp4:b', 'a/mp4:b'],
  ['a.smil.mp4', 'a.smil.mp4'],
  ['a/smil:b', 'a/smil:b'],
  ['a/b://c', 'a/b://c'],
])('takes a prefix or an ending for one in its place alone: %s', (source, name) => {
  expect(readSmil(`<smil><body><video src="${source}"/></body></smil>`)).toEqual({ ok: true, value: [name] });
});

test('a playlist that is played into no stream is no schedule, and neither is a stream that says so', () => {
  const body = '<playlist name="a"/><video src="b" playOnStream="c"/>';
  expect(readSmil(`<smil><body>${body}</body></smil>`)).toEqual({ ok: true, value: ['b'] });
});
