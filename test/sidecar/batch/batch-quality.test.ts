import { CENC_ONLY, CENC_ONLY_FILE, POST_MANUAL } from '../../support/post-manual';
import { PROVIDED, SHARED_SECRET, sealed, startProvisioning } from '../../support/start-provisioning';
import { startSidecar, type TestSidecar } from '../../support/start-sidecar';

const PATH = '/api/keyfiles';

const SD = { keyid: 'AAAAAAAAAAAAAAAAAAAAAQ==', contentkey: 'EREREREREREREREREREREQ==' };
const HD = { keyid: 'AAAAAAAAAAAAAAAAAAAAAg==', contentkey: 'IiIiIiIiIiIiIiIiIiIiIg==' };
const AUDIO = { keyid: 'AAAAAAAAAAAAAAAAAAAAAw==', contentkey: 'MzMzMzMzMzMzMzMzMzMzMw==' };

const MEMBERS = [
  { streamid: 'news_360p', quality: 'SD' },
  { streamid: 'news_480p', quality: 'SD' },
  { streamid: 'news_1080p', quality: 'HD' },
  { streamid: 'news_audio', quality: 'AUDIO' },
];

async function keyIds(sidecar: TestSidecar): Promise<Record<string, string>> {
  const files = await sidecar.files();
  const keyId = (text: string) => /^mpegdashstreaming-cenc-key-id: (.*)$/m.exec(text)?.[1] ?? '';
  return Object.fromEntries(Object.entries(files).map(([name, text]) => [name, keyId(text)]));
}

async function post(sidecar: TestSidecar, group: object) {
  const { body } = await sidecar.api
    .post(PATH)
    .send({ groups: [group] })
    .expect(200);
  return body as {
    results: { streamid: string | null; result: string; errors?: { code: string; description: string }[] }[];
    summary: object;
  };
}

/** What each stream was refused for, by its stream id. */
async function faultsOf(sidecar: TestSidecar, group: object): Promise<unknown[]> {
  const { results } = await post(sidecar, group);
  return results.map(({ streamid, result, errors = [] }) =>
    result === 'failed'
      ? [streamid, ...errors.map(({ code, description }) => `${code}: ${description}`)]
      : streamid,
  );
}

/** An upstream with a content for each of these ids, whose key ids end in 1, 2, 3 and so on. */
async function startContents(...contentIds: string[]) {
  const provisioning = await startProvisioning();
  const { client } = PROVIDED;
  for (const [index, contentId] of contentIds.entries()) {
    const cenc = {
      key_id_big: Buffer.from([...Array(15).fill(0), index + 1]).toString('base64'),
      content_key: Buffer.alloc(16, (index + 1) * 17).toString('base64'),
      playready_laurl: 'https://license.example/rightsmanager.asmx',
      widevine_drm_specific_data: 'Ig1zb21lY29udGVudGlkSOPclZsG',
    };
    const fairplay = {
      key_hex: Buffer.alloc(16, index + 1).toString('hex'),
      iv_hex: Buffer.alloc(16, 9).toString('hex'),
      laurl: `skd://license.example/${contentId}`,
    };
    provisioning.upstream.on(`/keys/cenc/${client}/${contentId}`, sealed(cenc, SHARED_SECRET));
    provisioning.upstream.on(`/keys/fairplay/${client}/${contentId}`, sealed(fairplay, SHARED_SECRET));
  }
  return provisioning;
}

const PROVIDER = { client: PROVIDED.client, clientApiKey: PROVIDED.clientApiKey };
const DASH_IDS = {
  'news_360p.key': SD.keyid,
  'news_480p.key': SD.keyid,
  'news_1080p.key': HD.keyid,
  'news_audio.key': AUDIO.keyid,
};

describe('a group with keys by quality', () => {
  it('gives each member the keys of its quality, the common fields beside them', async () => {
    const sidecar = await startSidecar();
    const { fairplay } = POST_MANUAL;
    const { results, summary } = await post(sidecar, {
      members: MEMBERS,
      folder: 'live',
      playready: { laurl: 'https://license.example/rightsmanager.asmx' },
      fairplay: { laurl: fairplay.laurl },
      keys: {
        SD: { cenc: SD },
        HD: { cenc: HD, fairplay: { key: fairplay.key, iv: fairplay.iv } },
        AUDIO: { cenc: AUDIO, playready: null },
        UHD: { cenc: CENC_ONLY.cenc },
      },
    });
    expect(summary).toEqual({ created: 4, changed: 0, unchanged: 0, failed: 0 });
    expect(results.map(({ streamid }) => streamid)).toEqual(
      MEMBERS.map(({ streamid }) => `live/${streamid}`),
    );
    const files = await sidecar.files();
    expect(await keyIds(sidecar)).toMatchObject(
      Object.fromEntries(Object.entries(DASH_IDS).map(([name, keyId]) => [`live/${name}`, keyId])),
    );
    const has = (name: string) =>
      ['playready: true', 'cupertinostreaming-aes128-key:'].filter((line) =>
        files[`live/${name}.key`]?.includes(line),
      );
    expect([has('news_480p'), has('news_1080p'), has('news_audio')]).toEqual([
      ['playready: true'],
      ['playready: true', 'cupertinostreaming-aes128-key:'],
      [],
    ]);
  });

  it('takes of a common part what the quality does not say itself, and no part that its keys are not for', async () => {
    const sidecar = await startSidecar();
    const { key, iv, laurl } = POST_MANUAL.fairplay;
    const members = [
      { streamid: 'own', quality: 'HD' },
      { streamid: 'apple', quality: 'FairPlay' },
    ];
    await post(sidecar, {
      members,
      playready: { laurl: 'https://common.example/rightsmanager.asmx' },
      keys: {
        HD: { cenc: HD, playready: { laurl: 'https://own.example/rightsmanager.asmx' } },
        FairPlay: { fairplay: { key, iv, laurl } },
      },
    });
    const files = await sidecar.files();
    expect(files['own.key']).toContain('license-url: https://own.example/rightsmanager.asmx\n');
    expect(files['apple.key']).toMatch(/^cupertinostreaming-aes128-method: /);
  });

  it('asks the provider once for each quality, by content ids made of the group’s', async () => {
    const { sidecar, upstream } = await startContents('news-sd', 'news-hd', 'news-audio');
    await post(sidecar, { members: MEMBERS, ...PROVIDER, contentId: 'news', keys: 'quality' });
    expect(await keyIds(sidecar)).toEqual(DASH_IDS);
    const asked = upstream.received.map(({ path }) => path).filter((path) => path.startsWith('/keys/cenc/'));
    expect(asked.sort()).toEqual(
      ['news-audio', 'news-hd', 'news-sd'].map((contentId) => `/keys/cenc/${PROVIDED.client}/${contentId}`),
    );
  });

  it('asks for the content ids that it names, and makes those that it does not', async () => {
    const { sidecar } = await startContents('standard', 'high-2026', 'news-audio');
    const keys = { SD: { contentId: 'standard' }, HD: { contentId: 'high-2026' }, AUDIO: {} };
    await post(sidecar, { members: MEMBERS, ...PROVIDER, contentId: 'news', keys });
    expect(await keyIds(sidecar)).toEqual(DASH_IDS);
  });

  it('mixes keys of its own with those of the provider', async () => {
    const { sidecar } = await startContents('news-sd');
    const keys = { SD: {}, HD: { cenc: HD }, AUDIO: { cenc: AUDIO } };
    await post(sidecar, { members: MEMBERS, ...PROVIDER, contentId: 'news', keys });
    expect(await keyIds(sidecar)).toEqual(DASH_IDS);
  });

  it('shows in a dry run what would be written, and writes nothing', async () => {
    const sidecar = await startSidecar();
    const keys = { HD: CENC_ONLY };
    const { body } = await sidecar.api
      .post(`${PATH}?dryrun=true`)
      .send({ groups: [{ members: [{ streamid: 'a', quality: 'HD' }], keys }] })
      .expect(200);
    expect(body.results[0].lines).toHaveLength(CENC_ONLY_FILE.trim().split('\n').length);
    expect(await sidecar.files()).toEqual({});
  });
});

describe('a member without keys of its own is refused alone', () => {
  const keys = { SD: { cenc: SD }, HD: { cenc: { ...HD, contentkey: 'short' } } };

  it.each<[what: string, member: unknown, fault: string]>([
    [
      'without a quality',
      'a',
      'invalid_body: quality: is missing; this group has keys by quality, so give the member as {"streamid", "quality"}.',
    ],
    [
      'of a quality without keys',
      { streamid: 'a', quality: 'UHD' },
      "invalid_body: quality: the group's keys have no UHD; they have SD, HD.",
    ],
    [
      'whose quality is written otherwise',
      { streamid: 'a', quality: 'sd' },
      "invalid_body: quality: the group's keys have no sd; they have SD, HD.",
    ],
    [
      'whose quality is none',
      { streamid: 'a', quality: 5 },
      'invalid_body: quality: must be 1 to 20 letters, digits and _ - (SD, HD, AUDIO)',
    ],
    [
      'whose quality has wrong keys',
      { streamid: 'a', quality: 'HD' },
      'invalid_body: keys.HD: cenc.contentkey: is not whole base64: its length is no multiple of 4; look for missing padding (=)',
    ],
    [
      'with a content id of its own',
      { streamid: 'a', quality: 'SD', contentId: 'other' },
      'invalid_body: contentId: this group has keys by quality; put the content id into keys, beside the quality that has it.',
    ],
  ])('%s', async (_what, member, fault) => {
    const sidecar = await startSidecar();
    const group = { members: [member, { streamid: 'b', quality: 'SD' }], keys };
    expect(await faultsOf(sidecar, group)).toEqual([['a', fault], 'b']);
    expect(await keyIds(sidecar)).toEqual({ 'b.key': SD.keyid });
  });

  it.each<[what: string, group: object, fault: string]>([
    [
      'that has the key id of another quality',
      { keys: { SD: { cenc: SD }, HD: { cenc: { ...HD, keyid: SD.keyid } } } },
      'duplicate_quality: HD has the same key id as SD; give each quality a key of its own, or the members of both one quality.',
    ],
    [
      'that has the content id of another quality',
      { ...PROVIDER, keys: { SD: { contentId: 'news-sd' }, HD: { contentId: 'news-sd' } } },
      'duplicate_quality: HD has the same content id as SD; give each quality a key of its own, or the members of both one quality.',
    ],
  ])('%s', async (_what, group, fault) => {
    const { sidecar } = await startContents('news-sd');
    const members = [
      { streamid: 'a', quality: 'SD' },
      { streamid: 'b', quality: 'HD' },
    ];
    expect(await faultsOf(sidecar, { members, ...group })).toEqual(['a', ['b', fault]]);
  });

  it.each(['same', 'each'])('that has a quality in a group with keys: %s', async (kind) => {
    const sidecar = await startSidecar();
    const members = [{ streamid: 'a', quality: 'SD' }];
    expect(await faultsOf(sidecar, { members, keys: kind, ...CENC_ONLY })).toEqual([
      [
        'a',
        'invalid_body: quality: this group has no keys by quality; leave it out, or give the group keys: "quality" or the keys of each quality.',
      ],
    ]);
  });
});

describe('a group is refused as a whole', () => {
  it.each<[what: string, group: object, faults: string[]]>([
    [
      'for keys that are a number',
      { keys: 7 },
      ['keys: must be "same", "each", "quality", or the keys of each quality'],
    ],
    ['for keys of no quality', { keys: {} }, ['keys: must have 1 to 20 qualities']],
    [
      'for the name of a quality',
      { keys: { 'H D': {} } },
      ['keys: the name of a quality must be 1 to 20 letters, digits and _ - (SD, HD, AUDIO)'],
    ],
    ['for a quality that is a text', { keys: { SD: 'x', HD: {} } }, ['keys.SD: must be an object']],
    [
      'for keys that all qualities would have',
      { keys: 'quality', cenc: SD, fairplay: { key: '0', laurl: 'skd://a' } },
      ['cenc', 'fairplay.key'].map(
        (name) =>
          `${name}: would be that of every quality; put it into keys, next to the quality that has it.`,
      ),
    ],
    [
      'for heights without a SMIL document',
      { keys: 'quality', heights: { SD: 576 } },
      ['heights: tells qualities of a SMIL document; leave it out without smil and keys by quality'],
    ],
    [
      'for bit rates that are no numbers',
      { keys: 'quality', bitrates: { SD: '576' } },
      ['bitrates: must say the most of each quality, as {"SD": 576, "HD": 1080}'],
    ],
  ])('%s', async (_what, group, faults) => {
    const sidecar = await startSidecar();
    const { results } = await post(sidecar, { members: ['a'], ...group });
    expect(results).toEqual([
      {
        index: 0,
        streamid: null,
        result: 'failed',
        errors: faults.map((fault) => ({ code: 'invalid_body', description: `groups.0: ${fault}` })),
      },
    ]);
  });
});

describe('a SMIL document with keys by quality', () => {
  const smilOf = (...elements: string[]) => `<smil><body><switch>${elements.join('')}</switch></body></smil>`;
  const keys = { SD: { cenc: SD }, HD: { cenc: HD }, AUDIO: { cenc: AUDIO } };

  it('tells the quality of its videos by their lines, and of the rest that it is sound', async () => {
    const sidecar = await startSidecar();
    const smil = smilOf(
      '<video src="mp4:a_576" height="576" width="1024"/>',
      '<video src="a_577" height="577"/>',
      '<video src="a_1080" width="1920" height="1080"/>',
      '<video src="a_portrait" width="1080" height="1920"/>',
      '<audio src="a_sound"/>',
      '<audio src="a_576"/>',
    );
    await post(sidecar, { smil, folder: 'live', keys });
    expect(await keyIds(sidecar)).toMatchObject({
      'live/a_576.key': SD.keyid,
      'live/a_577.key': HD.keyid,
      'live/a_1080.key': HD.keyid,
      'live/a_portrait.key': HD.keyid,
      'live/a_sound.key': AUDIO.keyid,
    });
  });

  it('is told otherwise by heights and bit rates of the group', async () => {
    const sidecar = await startSidecar();
    const smil = smilOf(
      '<video src="low" height="480"/>',
      '<video src="mid" height="720"/>',
      '<video src="slow" system-bitrate="900000"/>',
      '<video src="fast"><param name="videoBitrate" value="5000000" valuetype="data"/></video>',
    );
    const heights = { HD: 1080, SD: 480 };
    const bitrates = { SD: 1_000_000, HD: 8_000_000 };
    await post(sidecar, { smil, heights, bitrates, keys });
    expect(await keyIds(sidecar)).toEqual({
      'low.key': SD.keyid,
      'mid.key': HD.keyid,
      'slow.key': SD.keyid,
      'fast.key': HD.keyid,
    });
  });

  it('is refused member by member where it does not tell', async () => {
    const sidecar = await startSidecar();
    const smil = smilOf(
      '<video src="a" height="360"/>',
      '<video src="b" system-bitrate="900000"/>',
      '<video src="c" height="2160"/>',
      '<video src="d" height="9000"/>',
    );
    expect(await faultsOf(sidecar, { smil, keys })).toEqual([
      'a',
      [
        'b',
        'invalid_body: quality: the stream has no height in the SMIL document; add it there, or give members with their quality',
      ],
      ['c', "invalid_body: quality: the group's keys have no UHD; they have SD, HD, AUDIO."],
      ['d', 'invalid_body: quality: the stream has 9000 lines, more than heights says of any quality'],
    ]);
  });
});
