import { planBatch } from '../../../src/api/plan-batch';
import { CENC_ONLY, CENC_ONLY_FILE } from '../../support/post-manual';
import { PROVIDED, startProvisioning } from '../../support/start-provisioning';
import { startSidecar } from '../../support/start-sidecar';

const PATH = '/api/keyfiles';
const KIB_64 = 64 * 1024;

const refused = (code: string, description: string) => ({ errors: [{ code, description }] });
const failure = (streamid: string | null, code: string, description: string) => ({
  index: expect.any(Number),
  streamid,
  result: 'failed',
  ...refused(code, description),
});

/** An object of so many fields, each of another name. */
const fieldsOf = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`f${index}`, 1]));

describe('a batch is refused before it is parsed', () => {
  const values = 'The body holds more than 250000 values. Send several batches. Nothing was written.';
  it.each([
    ['objects without end', `{"streams":[${'{},'.repeat(4_000_000)}{}]}`, values],
    ['lists in lists without end', `{"streams":${'['.repeat(400_000)}`, values],
    ['an entry of 290,000 fields', JSON.stringify({ streams: [fieldsOf(290_000)] }), values],
  ])('for %s', async (_what, body, description) => {
    const sidecar = await startSidecar();
    await sidecar.api.post(PATH).type('json').send(body).expect(400, refused('invalid_body', description));
  });

  it('but not for the marks and names in a text', async () => {
    const sidecar = await startSidecar();
    const drmjson = `${'{,[":\\'.repeat(60_000)}${Array.from({ length: 1000 }, (_, i) => `"${i}":`).join('')}`;
    const streams = [
      { streamid: 'a', drmjson: '\\', ...CENC_ONLY },
      { streamid: 'b', drmjson },
    ];
    const { body } = await sidecar.api.post(PATH).send({ streams }).expect(200);
    expect(body.results[0]).toMatchObject({ index: expect.any(Number), streamid: 'a', result: 'created' });
  });

  it('but not ten thousand streams with every field there is', async () => {
    const sidecar = await startSidecar();
    const { cenc } = CENC_ONLY;
    const streams = Array.from({ length: 10_000 }, (_, index) => ({
      streamid: `.${index}`,
      cenc,
      playready: { laurl: '', checksum: '' },
      widevine: { psshdata: '' },
      fairplay: { key: '', iv: '', laurl: '' },
      ...PROVIDED,
      cmaf: true,
      drmjson: '',
    }));
    const { body } = await sidecar.api.post(PATH).send({ streams }).expect(200);
    expect(body.summary).toEqual({ created: 0, changed: 0, unchanged: 0, failed: 10_000 });
  }, 20_000);
});

describe('what is larger than a single POST may be', () => {
  const description = 'The fields have more than 64 KiB, the most that a request for one stream may have.';

  it('fails alone: a stream, and a group as one', async () => {
    const sidecar = await startSidecar();
    const large = { ...CENC_ONLY, drmjson: ['x'.repeat(KIB_64)] };
    const body = {
      streams: [
        { streamid: 'a', ...large },
        { streamid: 'b', ...CENC_ONLY },
        { streamid: 'c', ...CENC_ONLY, drmjson: ['x'.repeat(KIB_64 - 200)] },
      ],
      groups: [{ members: ['d'], ...large }],
    };
    const answer = await sidecar.api.post(PATH).send(body).expect(200);
    expect(answer.body.results).toEqual([
      failure('a', 'body_too_large', description),
      expect.objectContaining({ index: expect.any(Number), streamid: 'b', result: 'created' }),
      expect.objectContaining({ index: expect.any(Number), streamid: 'c', result: 'created' }),
      failure(null, 'body_too_large', `groups.0: ${description}`),
    ]);
    expect(await sidecar.files()).toEqual({ 'b.key': CENC_ONLY_FILE, 'c.key': CENC_ONLY_FILE });
  });

  it('fails, however deep it is', async () => {
    const sidecar = await startSidecar();
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    const text = `{"streams":[{"streamid":"a","drmjson":${deep}}]}`;
    const { body } = await sidecar.api.post(PATH).type('json').send(text).expect(200);
    expect(body.results).toEqual([failure('a', 'body_too_large', description)]);
  });

  it('fails as Widevine data of far more characters than there are', async () => {
    const sidecar = await startSidecar();
    const psshdata = Buffer.from('4801'.repeat(10_000), 'hex').toString('base64');
    const streams = [{ streamid: 'a', ...CENC_ONLY, widevine: { psshdata }, cmaf: true }];
    const { body } = await sidecar.api.post(PATH).send({ streams }).expect(200);
    const fault = 'widevine.psshdata: is longer than 16384 characters';
    expect(body.results).toEqual([failure('a', 'invalid_body', fault)]);
    expect(await sidecar.files()).toEqual({});
  });
});

const yieldNow = async () => undefined;
const of = (streamid: string, quality: string) => ({ streamid, quality });

it('refuses a group of more members than a batch has streams, without a look at them', async () => {
  const pause = jest.fn();
  const members = Array.from({ length: 10_001 }, () => 7);
  const groups = [{ members, ...CENC_ONLY }];
  expect(await planBatch({ streams: [], groups }, { pause, yieldNow })).toEqual({
    ok: false,
    problems: [
      {
        code: 'invalid_body',
        description:
          "A batch has 10000 streams at most, its groups' counted. Send several batches. Nothing was written.",
      },
    ],
  });
  expect(pause).not.toHaveBeenCalled();
});

it('lets others be served between the members of a group', async () => {
  const pause = jest.fn();
  await planBatch({ streams: [], groups: [{ members: ['a', 'b', 7], ...CENC_ONLY }] }, { pause, yieldNow });
  expect(pause).toHaveBeenCalledTimes(3);
});

it.each([
  ['streams', { cpix: '<a/>', tracks: { SD: ['a', 'b'], HD: 'c' } }, 2],
  ['groups', { cpix: '<a/>', tracks: { SD: ['a', 'b'], HD: 'c' } }, 3],
  [
    'groups',
    {
      keys: { SD: { cpix: '<a/>' }, HD: { cpix: '<b/>' } },
      members: [of('a', 'SD'), of('b', 'HD'), of('c', 'SD')],
    },
    3,
  ],
])('lets others be served between the keys that are chosen for %s: %j', async (list, entry, times) => {
  const served = jest.fn(async () => undefined);
  const pause = jest.fn();
  await planBatch({ streams: [], groups: [], [list]: [entry] }, { pause, yieldNow: served });
  expect(served).toHaveBeenCalledTimes(times);
  expect(pause.mock.calls.length).toBeGreaterThanOrEqual(3);
});

it.each(['If-Match', 'If-None-Match'])('refuses a batch with %s, and writes nothing', async (header) => {
  const sidecar = await startSidecar();
  const description =
    'If-Match and If-None-Match are for single streams: a batch has many files. Nothing was written; leave them out, or POST to /api/keyfile/{streamid}.';
  await sidecar.api
    .post(PATH)
    .set(header, '*')
    .send({ streams: [{ streamid: 'a', ...CENC_ONLY }] })
    .expect(400, refused('invalid_header', description));
  expect(await sidecar.files()).toEqual({});
});

it('asks nothing more in the name of a client that an upstream refuses', async () => {
  const { sidecar, upstream } = await startProvisioning();
  upstream.on(`/config/${PROVIDED.client}`, { status: 403 });
  const members = Array.from({ length: 200 }, (_, index) => `m-${index}`);
  const { body } = await sidecar.api
    .post(PATH)
    .send({ groups: [{ members, keys: 'each', ...PROVIDED }] })
    .expect(200);
  expect(body.summary).toEqual({ created: 0, changed: 0, unchanged: 0, failed: 200 });
  expect(body.results[199]).toEqual(
    failure(
      'm-199',
      'client_api_key_refused',
      'Not tried: an upstream refused this client 5 times in a row. No key file was changed; check client and clientApiKey, and send the batch again.',
    ),
  );
  const asked = upstream.received.filter(({ path }) => path.startsWith('/config/'));
  expect(asked.length).toBeLessThanOrEqual(5 + 8);
});
