import { CENC_ONLY, POST_MANUAL } from '../../support/post-manual';
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
});
