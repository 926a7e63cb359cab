import { CENC_ONLY } from '../../support/post-manual';
import { PROVIDED, startProvisioning } from '../../support/start-provisioning';
import { startSidecar } from '../../support/start-sidecar';

const PATH = '/api/keyfiles';

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

it('fails an entry that is larger than a single POST may be, however deep it is', async () => {
  const sidecar = await startSidecar();
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
  const text = `{"streams":[{"streamid":"a","drmjson":${deep}}]}`;
  const { body } = await sidecar.api.post(PATH).type('json').send(text).expect(200);
  const description = 'The fields have more than 64 KiB, the most that a request for one stream may have.';
  expect(body.results).toEqual([failure('a', 'body_too_large', description)]);
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
