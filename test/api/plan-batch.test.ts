import { MAX_STREAMS, readBatchBody } from '../../src/api/batch';
import { planBatch } from '../../src/api/plan-batch';
import { CPIX_OF_TRACKS, keyIdOf, type SampleKey, sampleText } from '../support/cpix-sample';
import { CENC_ONLY, POST_MANUAL } from '../support/post-manual';

const KEYS: SampleKey[] = [
  { number: 1, track: 'SD' },
  { number: 2, track: 'HD' },
  { number: 3, track: 'UHD1' },
];
const CPIX = sampleText(KEYS);
const ASKED = { client: 'demo', clientApiKey: 'client-api-key-0123456789' };
const SD = { keyid: 'AAAAAAAAAAAAAAAAAAAAAQ==', contentkey: 'EREREREREREREREREREREQ==' };
const HD = { keyid: 'AAAAAAAAAAAAAAAAAAAAAg==', contentkey: 'IiIiIiIiIiIiIiIiIiIiIg==' };

/** The plan of each stream: its id with its faults, or its id alone. */
function planned(body: { readonly streams?: unknown[]; readonly groups?: unknown[] }): string[] {
  return [...planBatch({ streams: [], groups: [], ...body })].map(({ streamId = null, request }) =>
    request.ok
      ? `${streamId}`
      : `${streamId}: ${request.problems.map(({ code, description }) => `${code}: ${description}`).join(' | ')}`,
  );
}

const fieldsOf = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`f${index}`, 1]));

it.each<[found: string, entry: unknown]>([
  ['null: invalid_body: streams.0: must be an object', []],
  ['null: invalid_body: streams.0: must be an object', null],
  ['null: invalid_body: streams.0: streamid is missing', CENC_ONLY],
  ['null: invalid_body: streams.0: streamid must be a string', { streamid: 7 }],
  [
    'null: unknown_field: streams.0: streamId is not a field of this request. Did you mean streamid?',
    { streamId: 'a', ...CENC_ONLY },
  ],
  [
    'null: invalid_stream_id: streams.0: No part of a stream id may start with a dot.',
    { streamid: '../a', ...CENC_ONLY },
  ],
  ['null: invalid_body: streams.0: has 51 fields, far more than exist', fieldsOf(51)],
  ['null: invalid_body: streams.0: streamid is missing', fieldsOf(50)],
  [
    'a: unknown_field: playredy is not a field of this request. Did you mean playready?',
    { streamid: 'a', ...CENC_ONLY, playredy: {} },
  ],
  ['a', { streamid: 'a', ...CENC_ONLY, widevine: null, drmJson: '{}' }],
  [
    'a: invalid_body: widevine.psshdata: is longer than 16384 characters',
    { streamid: 'a', ...CENC_ONLY, widevine: { psshdata: 'A'.repeat(20_000) } },
  ],
])('an entry is planned alone: %s', (found, entry) => {
  expect(planned({ streams: [entry, { streamid: 'other', ...CENC_ONLY }] })).toEqual([found, 'other']);
});

it('an entry with a prototype fails alone', () => {
  const entry = JSON.parse('{"streamid":"a","__proto__":{"cenc":{}},"cenc":null}');
  expect(planned({ streams: [entry] })).toEqual([expect.stringMatching(/^a: unknown_field: __proto__ is /)]);
});

const NO_MEMBERS = 'give its members, or its smil, or with cpix its tracks';
const QUALITY_NAME = 'must be 1 to 20 letters, digits and _ - (SD, HD, AUDIO)';
const FOLDER = 'folder: must be the first parts of a stream id, without a slash at either end';
const COMMON = 'would be the same for every quality; put it in keys, under its quality.';
const MISPLACED = 'is for the qualities of a SMIL document; leave it out without smil and keys by quality';
const members = ['a', 'b'];

const KINDS = 'keys: must be "same", "each", "quality", or the keys of each quality';

it.each<[fault: string, group: unknown, ...more: string[]]>([
  ['must be an object', 'a'],
  [NO_MEMBERS, CENC_ONLY],
  ['give its members or its smil, not both', { members, smil: '<smil/>' }],
  [
    'give its members or its smil or its tracks, not all',
    { members, smil: '<smil/>', cpix: CPIX, tracks: { SD: 'a' } },
  ],
  ['members: must be a list', { members: '' }],
  ['members: is empty', { members: [] }],
  ['smil: must be a string, the text of the document', { smil: ['a'] }],
  ['smil: is not well-formed XML: see line 1', { smil: '<smil>' }],
  ['folder: must be a string', { members, folder: 7 }],
  ...['', '/live', 'live/', '../live', 'a b'].map((folder): [string, unknown] => [
    FOLDER,
    { members, folder },
  ]),
  [KINDS, { members, keys: 'both' }],
  ['keys: must have 1 to 20 qualities', { members, keys: {} }],
  ['keys: must have 1 to 20 qualities', { members, keys: fieldsOf(21) }],
  [`keys: the name of a quality ${QUALITY_NAME}`, { members, keys: { 'H D': {} } }],
  ['keys.SD: must be an object', { members, keys: { SD: 'x', HD: {} } }],
  [
    `cenc: ${COMMON}`,
    { members, keys: 'quality', cenc: SD, fairplay: { key: '0', laurl: 'skd://a' } },
    `fairplay.key: ${COMMON}`,
  ],
  [`track: ${COMMON}`, { members, keys: 'quality', cpix: CPIX, track: 'HD' }],
  [`heights: ${MISPLACED}`, { members, keys: 'quality', heights: { SD: 576 } }],
  [`heights: ${MISPLACED}`, { smil: '<smil/>', heights: { SD: 576 } }],
  [
    'bitrates: must be the maximum of each quality, such as {"SD": 576, "HD": 1080}',
    { members, keys: 'quality', bitrates: { SD: '576' } },
  ],
  [
    'folder: must be a string',
    { folder: 7, heights: { SD: 576 }, keys: { '?': {} }, ...CENC_ONLY },
    NO_MEMBERS,
    `keys: the name of a quality ${QUALITY_NAME}`,
    `heights: ${MISPLACED}`,
    `cenc: ${COMMON}`,
  ],
])('a group fails as one: %s', (fault, group, ...more) => {
  const faults = [fault, ...more].map((each) => `invalid_body: groups.0: ${each}`);
  expect(planned({ groups: [group, { members: ['other'], ...CENC_ONLY }] })).toEqual([
    `null: ${faults.join(' | ')}`,
    'other',
  ]);
});

it('a stream is named once: what comes later fails', () => {
  const streams = ['a', 'a', 'live/c'].map((streamid) => ({ streamid, ...CENC_ONLY }));
  const groups = [{ members: ['c', 'd'], folder: 'live', ...CENC_ONLY }];
  const twice = 'duplicate_stream: The batch has this stream twice; only the first entry counts.';
  expect(planned({ streams, groups })).toEqual(['a', `a: ${twice}`, 'live/c', `live/c: ${twice}`, 'live/d']);
});

it('a group with misspelt members is reported with the nearest name', () => {
  expect(planned({ groups: [{ memebrs: members, ...CENC_ONLY }] })).toEqual([
    `null: unknown_field: groups.0: memebrs is not a field of this request. Did you mean members? | invalid_body: groups.0: ${NO_MEMBERS}`,
  ]);
});

const NOT_A_MEMBER = 'must be a stream id, or an object with streamid and contentId or quality';
const QUALITY_OF_OTHERS =
  'quality: this group has no keys by quality; leave it out, or give the group keys: "quality" or the keys of each quality.';
const EACH_OF_SUPPLIED =
  'keys: "each" has the keys provisioned, so cenc, fairplay, aes, keyfile and cpix must be left out; "same" gives these keys to all members.';
const SAME_CONTENT =
  'duplicate_content_id: Another member of this group would have the same content id. Give each its own contentId, or the group keys: "same".';
const CONTENT_ID = 'must be 1 to 200 letters, digits and _ - . (and not a dot or two alone)';
const BY_QUALITY = { SD: { cenc: SD }, HD: { cenc: { ...HD, contentkey: 'short' } } };
const at = (index: number) => `groups.0.members.${index}`;

it.each<[what: string, group: { readonly members: readonly unknown[] }, found: readonly string[]]>([
  [
    'that is not one',
    {
      members: [
        7,
        null,
        { streamid: 'a', contentid: 'x' },
        { contentId: 'x' },
        '',
        { streamid: 'a', valueOf: 1 },
      ],
      ...CENC_ONLY,
    },
    [
      `null: invalid_body: ${at(0)}: ${NOT_A_MEMBER}`,
      `null: invalid_body: ${at(1)}: ${NOT_A_MEMBER}`,
      `null: unknown_field: ${at(2)}: contentid is not a field of this request. Fields of a member: streamid, contentId, quality.`,
      `null: invalid_body: ${at(3)}: streamid is missing`,
      `null: invalid_stream_id: ${at(4)}: The stream id is empty.`,
      `null: unknown_field: ${at(5)}: valueOf is not a field of this request. Fields of a member: streamid, contentId, quality.`,
    ],
  ],
  [
    'with a content id, where all have the same keys',
    { members: [{ streamid: 'a', contentId: 'x' }], ...CENC_ONLY },
    [
      'a: invalid_body: contentId: the members of this group have the same keys; leave it out, or give the group keys: "each".',
    ],
  ],
  ...['same', 'each'].map((keys): [string, { members: unknown[] }, string[]] => [
    `with a quality, where keys are "${keys}"`,
    { members: [{ streamid: 'a', quality: 'SD' }], ...{ keys }, ...CENC_ONLY },
    [`a: invalid_body: ${QUALITY_OF_OTHERS}`],
  ]),
  [
    'with the content id of another',
    {
      members: ['a/b', 'a_b', { streamid: 'c', contentId: 'film-a_b' }, 'd', 'd'],
      ...{ keys: 'each', contentId: 'film', ...ASKED },
    },
    [
      `a/b: ${SAME_CONTENT}`,
      `a_b: ${SAME_CONTENT}`,
      `c: ${SAME_CONTENT}`,
      'd',
      'd: duplicate_stream: The batch has this stream twice; only the first entry counts.',
    ],
  ],
  [
    'whose content id is none',
    {
      members: ['a', { streamid: 'b', contentId: 'x y' }, { streamid: 'c', contentId: 7 }],
      ...{ keys: 'each', ...ASKED },
    },
    [
      'a: invalid_body: contentId: is missing',
      `b: invalid_body: contentId: ${CONTENT_ID}`,
      'c: invalid_body: contentId: must be a string',
    ],
  ],
  ...[CENC_ONLY, { fairplay: POST_MANUAL.fairplay }, { cpix: CPIX, track: 'HD' }, { keyfile: 'a' }].map(
    (supplied): [string, { members: unknown[] }, string[]] => [
      `with keys of its own, where ${Object.keys(supplied)[0]} supplies them`,
      { members: ['a'], ...{ keys: 'each' }, ...supplied },
      [`a: invalid_body: ${EACH_OF_SUPPLIED}`],
    ],
  ),
  [
    'without a quality that has keys',
    {
      members: [
        'a',
        { streamid: 'b', quality: 'UHD' },
        { streamid: 'c', quality: 'sd' },
        { streamid: 'd', quality: 5 },
        { streamid: 'e', quality: 'HD' },
        { streamid: 'f', quality: 'SD', contentId: 'other' },
        { streamid: 'g', quality: 'SD' },
        { streamid: 'h', quality: 'constructor' },
      ],
      ...{ keys: BY_QUALITY },
    },
    [
      'a: invalid_body: quality: is missing; this group has keys by quality, so give the member as {"streamid", "quality"}.',
      "b: invalid_body: quality: the group's keys have no UHD; they have SD, HD.",
      "c: invalid_body: quality: the group's keys have no sd; they have SD, HD.",
      `d: invalid_body: quality: ${QUALITY_NAME}`,
      'e: invalid_body: keys.HD: cenc.contentkey: is not complete base64: its length is not a multiple of 4; look for missing padding (=)',
      'f: invalid_body: contentId: this group has keys by quality; put the content id in keys, under its quality.',
      'g',
      "h: invalid_body: quality: the group's keys have no constructor; they have SD, HD.",
    ],
  ],
])('a member %s fails alone', (_what, group, found) => {
  expect(planned({ groups: [group] })).toEqual(found);
});

const ofQualities = ['SD', 'HD', 'UHD'].map((quality) => ({ streamid: quality, quality }));
const sameAsSD = (what: string, quality = 'HD') =>
  `${quality}: duplicate_quality: ${quality} has the same ${what} as SD; give each quality its own key, or put the members of both in one quality.`;
const { fairplay } = POST_MANUAL;
const AES_KEY = 'cbf76bb43b9a54254a5fc20074a3a53b';
const oneKey = (number: number) => ({ cpix: sampleText([{ number }]) });

it.each<[what: string, group: object, found: readonly string[]]>([
  [
    'key id',
    { keys: { SD: { cenc: SD }, HD: { cenc: { ...HD, keyid: SD.keyid } }, UHD: { cenc: HD } } },
    ['SD', sameAsSD('key id'), 'UHD'],
  ],
  [
    'FairPlay key, in other letters',
    {
      keys: {
        SD: { fairplay: { ...fairplay, key: fairplay.key.toLowerCase() } },
        HD: { fairplay: { ...fairplay, key: fairplay.key.toUpperCase() } },
        UHD: { fairplay: { ...fairplay, key: '0123456789abcdef0123456789abcdef' } },
      },
    },
    ['SD', sameAsSD('FairPlay key'), 'UHD'],
  ],
  [
    'AES-128 key, in other letters',
    {
      aes: { url: 'https://keys.example/a' },
      keys: { SD: { aes: { key: AES_KEY } }, HD: { aes: { key: AES_KEY.toUpperCase() } }, UHD: { cenc: HD } },
    },
    ['SD', sameAsSD('AES-128 key'), 'UHD'],
  ],
  [
    'content id',
    { ...ASKED, keys: { SD: { contentId: 'x' }, HD: { contentId: 'x' }, UHD: { contentId: 'y' } } },
    ['SD', sameAsSD('content id'), 'UHD'],
  ],
  [
    'key id as in a document',
    {
      keys: {
        SD: oneKey(1),
        HD: oneKey(2),
        UHD: { cenc: { keyid: keyIdOf(1).toString('base64'), contentkey: HD.contentkey } },
      },
    },
    ['SD', 'HD', sameAsSD('key id', 'UHD')],
  ],
])('a quality with the %s of another is refused', (_what, group, found) => {
  expect(planned({ groups: [{ members: ofQualities, ...group }] })).toEqual(found);
});

it('a SMIL document without the quality of a member is reported', () => {
  const videos = ['height="360"', 'system-bitrate="900000"', 'height="2160"', 'height="9000"'];
  const elements = videos.map((says, index) => `<video src="${'abcd'[index]}" ${says}/>`).join('');
  const group = { smil: `<smil><body>${elements}</body></smil>`, keys: { SD: { cenc: SD } } };
  expect(planned({ groups: [group] })).toEqual([
    'a',
    'b: invalid_body: quality: the stream has no height in the SMIL document; add it there, or give members with their quality',
    "c: invalid_body: quality: the group's keys have no UHD; they have SD.",
    'd: invalid_body: quality: the stream has 9000 lines, more than heights allows for any quality',
  ]);
});

it('the streams of a SMIL document are in the folder of the group, which has their qualities by heights and bit rates', () => {
  const elements = '<video src="low" height="480"/><video src="slow" system-bitrate="900000"/>';
  const group = {
    folder: 'vod',
    heights: { LOW: 480 },
    bitrates: { SLOW: 900_000 },
    keys: { LOW: { cenc: SD }, SLOW: { cenc: HD } },
  };
  const smil = `<smil><body>${elements}</body></smil>`;
  expect(planned({ groups: [{ smil, ...group }] })).toEqual(['vod/low', 'vod/slow']);
});

const TRACKS = 'tracks: must name the streams of each track, such as {"SD": "news_sd"}';
const NO_DOCUMENT = 'tracks: needs cpix; give the text of a CPIX document with it';

it.each<[fault: string, entry: object]>([
  [NO_DOCUMENT, { tracks: { SD: 'a' } }],
  [NO_DOCUMENT, { tracks: { SD: 'a' }, contentId: 'x' }],
  ['track: tracks chooses the keys; leave it out', { cpix: CPIX, tracks: { SD: 'a' }, track: 'SD' }],
  [TRACKS, { cpix: CPIX, tracks: {} }],
  [TRACKS, { cpix: CPIX, tracks: ['a'] }],
])('tracks are refused: %s', (fault, entry) => {
  expect(planned({ streams: [entry], groups: [entry] })).toEqual([
    `null: invalid_body: streams.0: ${fault}`,
    `null: invalid_body: groups.0: ${fault}`,
  ]);
});

it('tracks are refused next to other streams, and next to keys', () => {
  const tracks = { SD: 'a' };
  expect(
    planned({
      streams: [{ streamid: 'b', cpix: CPIX, tracks }],
      groups: [
        { members: ['b'], cpix: CPIX, tracks },
        { cpix: CPIX, tracks, keys: 'same' },
      ],
    }),
  ).toEqual([
    'null: invalid_body: streams.0: streamid: tracks names the streams; leave it out',
    'null: invalid_body: groups.0: give its members or its tracks, not both',
    'null: invalid_body: groups.1: keys: tracks chooses the keys; leave it out',
  ]);
});

it('tracks of a group name several streams each, in its folder', () => {
  const tracks = { SD: ['news_360p', 'news_480p'], HD: 'news_1080p' };
  expect(planned({ groups: [{ cpix: CPIX, folder: 'live', tracks }] })).toEqual([
    'live/news_360p',
    'live/news_480p',
    'live/news_1080p',
  ]);
});

it('tracks fail alone', () => {
  const tracks = {
    ...{ SD: 'news_sd', '4K': 'news_4k', UHD1: ['news_sd', '.hidden'] },
    ...{ empty: [], none: 7, HD: 'news_hd' },
  };
  expect(planned({ streams: [{ cpix: CPIX, tracks }] })).toEqual([
    'news_sd',
    'news_4k: cpix_choice: The CPIX document has no such track; it has SD, HD, UHD1.',
    'news_sd: duplicate_stream: The batch has this stream twice; only the first entry counts.',
    'null: invalid_stream_id: streams.0.tracks.UHD1: No part of a stream id may start with a dot.',
    'null: invalid_body: streams.0.tracks.empty: is empty',
    'null: invalid_body: streams.0.tracks.none: must be a stream id, or a list of stream ids',
    'news_hd',
  ]);
});

it('of tracks with one key the first is taken, and the other gets the remedy', () => {
  const cpix = sampleText([
    { number: 1, track: 'SD' },
    { number: 2, track: 'ALL' },
  ]);
  const tracks = { HD: 'news_hd', UHD: 'news_uhd', SD: 'news_sd' };
  expect(planned({ streams: [{ cpix, tracks }] })).toEqual([
    'news_hd',
    'news_uhd: duplicate_quality: UHD has the same key id as HD; name the streams of both under HD, such as {"HD": ["news_1", "news_2"]}.',
    'news_sd',
  ]);
});

it('tracks fail all for a document that can not be used, each by its stream id', () => {
  const entry = { cpix: CPIX.replace('kid=', 'key='), tracks: { SD: 'news_sd', HD: 'news_hd' } };
  const fault = 'invalid_cpix: The CPIX document has a ContentKey without kid.';
  expect(planned({ streams: [entry] })).toEqual([`news_sd: ${fault}`, `news_hd: ${fault}`]);
});

it.each([
  ['tracks', { streams: [{ cpix: CPIX_OF_TRACKS, tracks: { SD: ['a', 'b'], HD: 'c' } }], groups: [] }],
  [
    'qualities',
    { streams: [], groups: [{ cpix: CPIX_OF_TRACKS, keys: 'quality', members: ofQualities.slice(0, 2) }] },
  ],
])('%s have one reading of their document, and a request each', (_what, body) => {
  const requests = [...planBatch(body)].map(({ request }) => (request.ok ? request.value : undefined));
  const documents = requests.map((request) => (request?.source === 'cpix' ? request.document : undefined));
  expect(documents[0]).toMatchObject({ version: '2.3' });
  expect(new Set(documents).size).toBe(1);
  expect(new Set(requests).size).toBe(2);
});

const SMALL =
  'body_too_large: The fields have more than 64 KiB, the most that a request for one stream may have.';
const padded = (kib: number) => CPIX.replace(/(?=<\/[^<]*>\s*$)/, ' '.repeat(kib * 1024 - CPIX.length));

it('an entry may be as large as the body of a single POST, and a document in it as large as it may be there', () => {
  const large = { ...CENC_ONLY, drmjson: ['x'.repeat(64 * 1024)] };
  const cpix = padded(256);
  const keys = { SD: { cpix, track: 'SD' }, HD: { cpix } };
  const body = {
    streams: [
      { streamid: 'a', ...large },
      { streamid: 'b', ...CENC_ONLY, drmjson: ['x'.repeat(64 * 1024 - 200)] },
      { cpix, tracks: { SD: 'c', HD: 'd' } },
      { streamid: 'e', cpix: `${cpix} `, track: 'HD' },
      { streamid: 'f', cpix: CPIX, track: 'HD', drmjson: 'x'.repeat(70_000) },
    ],
    groups: [
      { members: ['g'], ...large },
      { members: [{ streamid: 'h', quality: 'SD' }], keys },
    ],
  };
  expect(planned(body)).toEqual([
    `a: ${SMALL}`,
    'b',
    'c',
    'd',
    'e: body_too_large: cpix has more than 256 KiB, the most that a CPIX document may have.',
    `f: ${SMALL}`,
    `null: ${SMALL.replace(': ', ': groups.0: ')}`,
    'h',
  ]);
});

const tooMany = (most: number) => ({
  ok: false,
  problems: [
    {
      code: 'invalid_body',
      description: `A batch has ${most} streams at most, its groups' counted. Send several batches. Nothing was written.`,
    },
  ],
});

it.each<[what: string, body: (names: string[]) => object]>([
  ['members of groups', ([first, ...rest]) => ({ groups: [{ members: [first] }, { members: rest }] })],
  ['streams of tracks', ([first, ...rest]) => ({ streams: [{ tracks: { SD: first, HD: rest } }] })],
  [
    'streams and members',
    ([streamid, ...rest]) => ({ streams: [{ streamid }], groups: [{ members: rest }] }),
  ],
])('three %s are read where three are the most, and four are refused', (_what, body) => {
  expect(readBatchBody(body(['a', 'b', 'c']), 3)).toMatchObject({ ok: true });
  expect(readBatchBody(body(['a', 'b', 'c', 'd']), 3)).toEqual(tooMany(3));
});

it('ten thousand streams are the most', () => {
  expect(MAX_STREAMS).toBe(10_000);
  expect(readBatchBody({ streams: Array(10_000).fill(1) })).toMatchObject({ ok: true });
  expect(readBatchBody({ streams: Array(10_001).fill(1) })).toEqual(tooMany(10_000));
});
