import { keyIdOf, kidOf, type SampleKey, sampleText, widevineFile } from '../../support/cpix-sample';
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

  it('gives the members of a group the same key', async () => {
    const sidecar = await startSidecar();
    await post(sidecar, { groups: [{ members: ['a', 'b'], cpix: CPIX, track: 'HD' }] });
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

  it('is written although an upstream refuses the client that it names, too', async () => {
    const { sidecar, upstream } = await startProvisioning();
    upstream.on(CONFIG_PATH, { status: 404 });
    const streams = Array.from({ length: 30 }, (_, index) => ({ streamid: `p${index}`, ...PROVIDED }));
    const body = { streams: [...streams, { streamid: 'news', cpix: CPIX, track: 'SD', ...PROVIDED }] };
    expect((await post(sidecar, body)).summary).toMatchObject({ created: 1, failed: 30 });
    expect(await sidecar.files()).toEqual({ 'news.key': expect.stringContaining('AESCTR') });
  });
});
