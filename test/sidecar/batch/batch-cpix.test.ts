import { keyIdOf, kidOf, type SampleKey, sampleText, widevineFile } from '../../support/cpix-sample';
import { POST_MANUAL } from '../../support/post-manual';
import { CONFIG_PATH, PROVIDED, startProvisioning } from '../../support/start-provisioning';
import { startSidecar, type TestSidecar } from '../../support/start-sidecar';

const PATH = '/api/keyfiles';

const KEYS: SampleKey[] = [
  { number: 1, track: 'SD' },
  { number: 2, track: 'HD' },
  { number: 3, track: 'UHD1' },
];
const CPIX = sampleText(KEYS);

interface Result {
  readonly index: number;
  readonly streamid: string | null;
  readonly result: string;
  readonly errors?: readonly { readonly code: string; readonly description: string }[];
}

async function post(sidecar: TestSidecar, body: object) {
  const answer = await sidecar.api.post(PATH).send(body).expect(200);
  return answer.body as { results: Result[]; summary: object };
}

/** What became of each stream: `created`, or the fault. */
async function outcomes(sidecar: TestSidecar, body: object): Promise<unknown[]> {
  const { results } = await post(sidecar, body);
  return results.map(({ streamid, result, errors = [] }) => [
    streamid,
    ...(errors.length === 0 ? [result] : errors.map(({ code, description }) => `${code}: ${description}`)),
  ]);
}

const SD_HD = { 'news_sd.key': widevineFile(1), 'news_hd.key': widevineFile(2) };

describe('the tracks of a CPIX document', () => {
  it.each([
    ['an entry of streams', { streams: [{ cpix: CPIX, tracks: { HD: 'news_hd', SD: 'news_sd' } }] }],
    ['a group', { groups: [{ cpix: CPIX, tracks: { HD: 'news_hd', SD: 'news_sd' } }] }],
  ])('become a stream each by one entry, in its order: %s', async (_what, body) => {
    const sidecar = await startSidecar();
    expect(await post(sidecar, body)).toEqual({
      results: [
        { index: 0, streamid: 'news_hd', result: 'created', etag: expect.any(String) },
        { index: 0, streamid: 'news_sd', result: 'created', etag: expect.any(String) },
      ],
      summary: { created: 2, changed: 0, unchanged: 0, failed: 0 },
    });
    expect(await sidecar.files()).toEqual(SD_HD);
    expect((await post(sidecar, body)).summary).toMatchObject({ unchanged: 2, failed: 0 });
  });

  it('may have several streams each, and a folder in a group', async () => {
    const sidecar = await startSidecar();
    const tracks = { SD: ['news_360p', 'news_480p'], HD: 'news_1080p' };
    await post(sidecar, { groups: [{ cpix: CPIX, folder: 'live', tracks }] });
    expect(await sidecar.files()).toEqual({
      live: 'folder',
      'live/news_360p.key': widevineFile(1),
      'live/news_480p.key': widevineFile(1),
      'live/news_1080p.key': widevineFile(2),
    });
  });

  it('fail alone', async () => {
    const sidecar = await startSidecar();
    const document = sampleText([...KEYS, { number: 4, track: 'CBCS', scheme: 'cbcs' }]);
    const tracks = {
      SD: 'news_sd',
      '4K': 'news_4k',
      CBCS: 'news_cbcs',
      UHD1: ['news_sd', '.hidden'],
      empty: [],
      none: 7,
      HD: 'news_hd',
    };
    const found = await outcomes(sidecar, {
      streams: [
        { cpix: document, tracks },
        { streamid: 'other', cenc: POST_MANUAL.cenc },
      ],
    });
    expect(found).toEqual([
      ['news_sd', 'created'],
      ['news_4k', 'cpix_choice: The CPIX document has no such track; it has SD, HD, UHD1, CBCS.'],
      ['news_cbcs', expect.stringMatching(/^cpix_not_usable: The CPIX document has .*cbcs/)],
      [
        'news_sd',
        'duplicate_stream: The batch has named this stream before; the first of its entries is the one that counts.',
      ],
      [null, 'invalid_stream_id: streams.0.tracks.UHD1: No part of a stream id may start with a dot.'],
      [null, 'invalid_body: streams.0.tracks.empty: is empty'],
      [null, 'invalid_body: streams.0.tracks.none: must be a stream id, or a list of stream ids'],
      ['news_hd', 'created'],
      ['other', 'created'],
    ]);
    expect(Object.keys(await sidecar.files())).toEqual(['news_hd.key', 'news_sd.key', 'other.key']);
  });

  it('of which two have one key are refused but for the first, and the one that says what to do', async () => {
    const document = sampleText([
      { number: 1, track: 'SD' },
      { number: 2, track: 'ALL' },
    ]);
    const tracks = { HD: 'news_hd', UHD: 'news_uhd', SD: 'news_sd' };
    expect(await outcomes(await startSidecar(), { streams: [{ cpix: document, tracks }] })).toEqual([
      ['news_hd', 'created'],
      [
        'news_uhd',
        'duplicate_quality: UHD has the same key id as HD; name the streams of both under HD, as {"HD": ["news_1", "news_2"]}.',
      ],
      ['news_sd', 'created'],
    ]);
  });

  it.each<[what: string, entry: object, fault: string]>([
    ['no document', { tracks: { SD: 'a' } }, 'tracks: needs cpix: give the text of a CPIX document with it'],
    [
      'a track beside them',
      { cpix: CPIX, tracks: { SD: 'a' }, track: 'SD' },
      'track: tracks chooses the keys; leave it out',
    ],
    ['none', { cpix: CPIX, tracks: {} }, 'tracks: must name the streams of each track, as {"SD": "news_sd"}'],
    [
      'a list',
      { cpix: CPIX, tracks: ['a'] },
      'tracks: must name the streams of each track, as {"SD": "news_sd"}',
    ],
  ])('are refused with %s', async (_what, entry, fault) => {
    const sidecar = await startSidecar();
    const found = await outcomes(sidecar, { streams: [entry], groups: [entry] });
    expect(found).toEqual(
      ['streams.0', 'groups.0'].map((place) => [null, `invalid_body: ${place}: ${fault}`]),
    );
    expect(await sidecar.files()).toEqual({});
  });

  it('are refused beside other streams, and beside keys', async () => {
    const tracks = { SD: 'a' };
    const found = await outcomes(await startSidecar(), {
      streams: [{ streamid: 'b', cpix: CPIX, tracks }],
      groups: [
        { members: ['b'], cpix: CPIX, tracks },
        { cpix: CPIX, tracks, keys: 'same' },
      ],
    });
    expect(found).toEqual([
      [null, 'invalid_body: streams.0: streamid: tracks names the streams; leave it out'],
      [null, 'invalid_body: groups.0: give its members or its tracks, not both'],
      [null, 'invalid_body: groups.1: keys: tracks chooses the keys; leave it out'],
    ]);
  });

  it('fail all for a document that can not be used, each by its stream id', async () => {
    const sidecar = await startSidecar();
    const entry = { cpix: CPIX.replace('kid=', 'key='), tracks: { SD: 'news_sd', HD: 'news_hd' } };
    const fault = 'invalid_cpix: The CPIX document has a ContentKey without kid.';
    expect(await outcomes(sidecar, { streams: [entry] })).toEqual([
      ['news_sd', fault],
      ['news_hd', fault],
    ]);
  });

  it('are counted with the streams of a batch', async () => {
    const { api } = await startSidecar();
    const names = Array.from({ length: 10_001 }, (_, index) => `s${index}`);
    const expected = {
      errors: [
        {
          code: 'invalid_body',
          description:
            "A batch has 10000 streams at most, its groups' counted. Send several batches. Nothing was written.",
        },
      ],
    };
    for (const list of ['streams', 'groups'])
      await api
        .post(PATH)
        .send({ [list]: [{ cpix: CPIX, tracks: { SD: names } }] })
        .expect(400, expected);
  });
});

describe('a CPIX document in a batch', () => {
  it('gives a stream of its own one key, and tells of a dry run what would be written', async () => {
    const sidecar = await startSidecar();
    const body = {
      streams: [
        { streamid: 'news', cpix: CPIX, kid: kidOf(2) },
        { streamid: 'film', cpix: CPIX },
      ],
    };
    const answer = await sidecar.api.post(`${PATH}?dryrun=true`).send(body).expect(200);
    expect(answer.body.results[0].lines[0]).toEqual({
      name: 'mpegdashstreaming-cenc-key-id',
      value: keyIdOf(2).toString('base64'),
      change: 'added',
    });
    expect(answer.body.results[1].errors[0].code).toBe('cpix_choice');
    expect(await sidecar.files()).toEqual({});
    await post(sidecar, body);
    expect(await sidecar.files()).toEqual({ 'news.key': widevineFile(2) });
  });

  it('gives the members of a group the same key, and is refused by one whose members have keys of their own', async () => {
    const sidecar = await startSidecar();
    const group = { members: ['a', 'b'], cpix: CPIX, track: 'HD' };
    expect(await outcomes(sidecar, { groups: [group, { ...group, members: ['c'], keys: 'each' }] })).toEqual([
      ['a', 'created'],
      ['b', 'created'],
      [
        'c',
        'invalid_body: keys: "each" has the keys provisioned, so cenc, fairplay, keyfile and cpix must be left out; "same" gives these keys to all members.',
      ],
    ]);
    expect(await sidecar.files()).toEqual({ 'a.key': widevineFile(2), 'b.key': widevineFile(2) });
  });

  const SMIL =
    '<smil><body><switch><video src="a" height="480"/><video src="b" height="1080"/></switch></body></smil>';

  it('gives each quality the track of its name, unless it chooses another', async () => {
    const sidecar = await startSidecar();
    const own = { SD: {}, HD: { track: 'UHD1' } };
    const groups = [
      { smil: SMIL, folder: 'x', keys: 'quality', cpix: CPIX },
      { smil: SMIL, folder: 'y', keys: own, cpix: CPIX },
    ];
    await post(sidecar, { groups });
    const files = await sidecar.files();
    expect(files).toEqual({
      x: 'folder',
      y: 'folder',
      'x/a.key': widevineFile(1),
      'x/b.key': widevineFile(2),
      'y/a.key': widevineFile(1),
      'y/b.key': widevineFile(3),
    });
  });

  it('of each quality its own is taken, and two with one key are refused', async () => {
    const sidecar = await startSidecar();
    const one = (number: number) => ({ cpix: sampleText([{ number }]) });
    const members = [
      { streamid: 'a', quality: 'SD' },
      { streamid: 'b', quality: 'HD' },
      { streamid: 'c', quality: 'UHD' },
    ];
    const supplied = {
      cenc: { keyid: keyIdOf(1).toString('base64'), contentkey: POST_MANUAL.cenc.contentkey },
    };
    const keys = { SD: one(1), HD: one(2), UHD: supplied };
    expect(await outcomes(sidecar, { groups: [{ members, keys }] })).toEqual([
      ['a', 'created'],
      ['b', 'created'],
      [
        'c',
        'duplicate_quality: UHD has the same key id as SD; give each quality a key of its own, or the members of both one quality.',
      ],
    ]);
  });

  it('may have no track for all qualities', async () => {
    const group = { smil: SMIL, keys: 'quality', cpix: CPIX, track: 'HD' };
    expect(await outcomes(await startSidecar(), { groups: [group] })).toEqual([
      [
        null,
        'invalid_body: groups.0: track: would be that of every quality; put it into keys, next to the quality that has it.',
      ],
    ]);
  });

  it('is written although an upstream refuses the client that it names, too', async () => {
    const { sidecar, upstream } = await startProvisioning();
    upstream.on(CONFIG_PATH, { status: 404 });
    const streams = Array.from({ length: 30 }, (_, index) => ({ streamid: `p${index}`, ...PROVIDED }));
    const body = { streams: [...streams, { streamid: 'news', cpix: CPIX, track: 'SD', ...PROVIDED }] };
    expect((await post(sidecar, body)).summary).toMatchObject({ created: 1, failed: 30 });
    expect(await sidecar.files()).toEqual({ 'news.key': expect.stringContaining('AESCTR') });
  });

  it('does not count to the 64 KiB of an entry, up to 256 KiB', async () => {
    const sidecar = await startSidecar();
    const padded = (kib: number) => CPIX.replace(/(?=<\/[^<]*>\s*$)/, ' '.repeat(kib * 1024 - CPIX.length));
    const largest = padded(256);
    const found = await outcomes(sidecar, {
      streams: [
        { cpix: largest, tracks: { SD: 'a', HD: 'b' } },
        { streamid: 'c', cpix: largest, track: 'HD' },
        { streamid: 'd', cpix: `${largest} `, track: 'HD' },
        { streamid: 'e', cpix: CPIX, track: 'HD', drmjson: 'x'.repeat(70_000) },
      ],
      groups: [
        {
          members: [{ streamid: 'f', quality: 'SD' }],
          keys: { SD: { cpix: largest, track: 'SD' }, HD: { cpix: largest } },
        },
      ],
    });
    expect(found).toEqual([
      ['a', 'created'],
      ['b', 'created'],
      ['c', 'created'],
      ['d', 'body_too_large: cpix has more than 256 KiB, the most that a CPIX document may have.'],
      [
        'e',
        'body_too_large: The fields have more than 64 KiB, the most that a request for one stream may have.',
      ],
      ['f', 'created'],
    ]);
  });
});
