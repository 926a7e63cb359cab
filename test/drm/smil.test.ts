import { readSmil } from '../../src/drm/smil';

const inBody = (text: string) => `<smil><body><switch>${text}</switch></body></smil>`;

/** The shapes in which SMIL documents for the packager are found: names, and the text. */
const READ: Readonly<Record<string, readonly [names: string, text: string]>> = {
  'languages of their own, in sub-folders and without an extension': [
    'engage-player/hls-multiaudio-1/1080 engage-player/hls-multiaudio-1/es',
    `<smil><head/><body><switch>
       <video height="1080" src="mp4:engage-player/hls-multiaudio-1/1080" video-bitrate="5114880" width="1920">
         <param name="videoOnly" value="TRUE" valuetype="data"/></video>
       <video src="mp4:engage-player/hls-multiaudio-1/es" system-language="es" title="Español" audio-bitrate="99328">
         <param name="cupertinoTag" value="EXT-X-MEDIA" valuetype="data"/></video></switch></body></smil>`,
  ],
  'captions, and audio in elements of its own': [
    'sintel.mp4 sintel_fr.mp3',
    inBody(`<video src="mp4:sintel.mp4" system-bitrate="1000000"/>
       <audio src="mp3:sintel_fr.mp3" system-language="fra"/>
       <textstream src="sintel_en.srt" system-language="eng"/><ref src="sintel_de.ttml"/>`),
  ],
  'a namespace, and tracks of the same file': [
    'a.ismv',
    `<smil xmlns="http://www.w3.org/2001/SMIL20/Language"><head><meta base="rtmp://server/app/"/></head>
       <body><switch><audio src="a.ismv"/><video src="a.ismv"/></switch></body></smil>`,
  ],
  'no switch, and other prefixes': [
    'a b',
    '<smil><body><video src="MP4:a"/><video src="flv:b"/></body></smil>',
  ],
  'an element outside of its body': [
    'a',
    '<smil><head><video src="no"/></head><body><video src="a"/></body></smil>',
  ],
  // A prefix or an ending in its place alone.
  ...Object.fromEntries(
    ['a/mp4:b', 'a.smil.mp4', 'a/smil:b', 'a/b://c'].map((name) => [
      name,
      [name, inBody(`<video src="${name}"/>`)],
    ]),
  ),
  // A playlist that is played into no stream is no schedule, and neither is a stream that says so.
  'no schedule': ['b', inBody('<playlist name="a"/><video src="b" playOnStream="c"/>')],
};

it.each(Object.entries(READ))('reads %s', (_what, [names, text]) => {
  const value = names.split(' ').map((name) => expect.objectContaining({ name }));
  expect(readSmil(text)).toEqual({ ok: true, value });
});

const first = 'video, number 1 of its video and audio:';
it.each(
  Object.entries({
    'is empty': '',
    'is not well-formed XML: see line 1': 'mp4:a.mp4',
    'is not SMIL: its outermost element is not smil': '<MPD/>',
    'names no stream: it has no video or audio in its body': '<smil/>',
    [`${first} src is missing`]: inBody('<video name="a.mp4"/>'),
    [`${first} src is only a prefix`]: inBody('<video src="mp4:"/>'),
    [`${first} src is an address; write the name that the packager uses for the stream`]: inBody(
      '<video src="rtmp://10.0.0.1/live/a"/>',
    ),
    [`${first} src has a query; a key file belongs to the stream without it, so leave it out`]: inBody(
      '<video src="mp4:video.mp4?audioindex=1"/>',
    ),
    [`${first} src starts with a slash; leave it out`]: inBody('<video src="mp4:/a.mp4"/>'),
    'is a schedule, which plays its videos into streams with other names; list those streams as members':
      '<smil><head/><body><stream name="Stream1"/><playlist name="p" playOnStream="Stream1" scheduled="2020-04-25 16:00:00"><video src="mp4:sample.mp4" start="0" length="-1"/></playlist></body></smil>',
    'is longer than 1048576 characters': inBody(' '.repeat(1024 * 1024)),
    'has more than 1000 video and audio elements': inBody('<video src="a"/>'.repeat(1001)),
  }),
)('refuses a document: %s', (sentence, text) => {
  // The reader of XML reports text that is not XML.
  const code = expect.stringMatching(/^malformed_(?:smil|xml)$/);
  expect(readSmil(text)).toEqual({ ok: false, problem: { code, description: sentence } });
});

it.each(['smil:b.smil', 'b.smil', 'ngrp:b_all'])('refuses a group in a group: %s', (source) => {
  const description = `${first} src is a group itself, which has no key file; name its streams`;
  expect(readSmil(inBody(`<video src="${source}"/>`))).toMatchObject({ ok: false, problem: { description } });
});

it('reads a thousand members', () => {
  const many = Array.from({ length: 1000 }, (_, index) => `<video src="mp4:v${index}.mp4"/>`).join('');
  expect(readSmil(inBody(many))).toMatchObject({ ok: true, value: { length: 1000 } });
});

const NONE = { kind: 'video', lines: undefined, bitrate: undefined };

test.each<[what: string, stream: object, elements: string]>([
  [
    'a picture, the way it is or on end',
    { ...NONE, lines: 1080, bitrate: 9 },
    '<video src="a" width="1080" height="1920" system-bitrate="9"/>',
  ],
  ['a height alone', { ...NONE, lines: 576 }, '<video src="a" height="576"/>'],
  ['a width alone', NONE, '<video src="a" width="720"/>'],
  [
    'a parameter of the packager before an attribute',
    { ...NONE, bitrate: 8 },
    '<video src="a" system-bitrate="9"><param name="x" value="7"/><param name="videoBitrate" value="8"/></video>',
  ],
  [
    'another element with that name, which is no parameter',
    { ...NONE, bitrate: 9 },
    '<video src="a" system-bitrate="9"><meta name="videoBitrate" value="8"/></video>',
  ],
  ['sound', { ...NONE, kind: 'audio', bitrate: 9 }, '<audio src="a" system-bitrate="9"/>'],
  [
    'sound with a picture elsewhere, and the most of both',
    { ...NONE, lines: 5, bitrate: 9 },
    '<audio src="a" system-bitrate="9"/><video src="a" height="5" system-bitrate="7"/><audio src="a" height="3"/>',
  ],
  [
    'numbers that are none',
    NONE,
    '<video src="a" height="0576" system-bitrate="9k"/><video src="a" height="12345678901"/>',
  ],
])('reports a stream %s', (_what, stream, elements) => {
  const read = readSmil(`<smil><body>${elements}</body></smil>`);
  expect(read).toEqual({ ok: true, value: [{ name: 'a', ...stream }] });
});
