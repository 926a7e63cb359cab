import { once } from 'node:events';
import { connect } from 'node:net';
import fs from 'fs-extra';
import { CENC_ONLY, CENC_ONLY_FILE } from '../../support/post-manual';
import { rawRequest } from '../../support/raw-http';
import { seriesOf } from '../../support/start-observed';
import { PROVIDED } from '../../support/start-provisioning';
import { API_KEY, errorBody, sidecarForAll, startSidecar } from '../../support/start-sidecar';
import { until } from '../../support/until';

const PATH = '/api/keyfiles';
const sidecar = sidecarForAll();
const { api } = sidecar;

describe('a batch is refused as a whole', () => {
  it.each<[what: string, body: object, code: string, description: string]>([
    ['as a list', [], 'invalid_body', 'The body must be a JSON object.'],
    ['with nothing in it', {}, 'invalid_body', 'Give streams, groups, or both. Nothing was written.'],
    ['when streams are no list', { streams: {} }, 'invalid_body', 'streams: must be a list'],
    [
      'with an unknown field, reported with the nearest one',
      { stream: [], streams: [{ streamid: 'a', ...CENC_ONLY }] },
      'unknown_field',
      'stream is not a field of this request. Did you mean streams?',
    ],
  ])('%s', async (_what, body, code, description) => {
    await sidecar.api.post(PATH).send(body).expect(400, errorBody(code, description));
    expect(await sidecar.files()).toEqual({});
  });

  it('as malformed JSON, as another type, and beyond 16 MiB', async () => {
    const { body } = await api.post(PATH).type('json').send('{"streams":[').expect(400);
    expect(body.errors[0].code).toBe('malformed_json');
    await api.post(PATH).type('text').send('a').expect(415);
    const tooLarge = errorBody('body_too_large', 'The body is larger than this route accepts: 16384 KiB.');
    const large = ' '.repeat(16 * 1024 * 1024 + 1);
    await api.post(PATH).type('json').send(large).expect(413, tooLarge);
  });
});

it('reports ten faults of an entry at most, and those of a group for every member', async () => {
  const cenc = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`f${index}`, 1]));
  const groups = [{ members: ['b', 'c'], cenc: 7 }];
  const { results } = await sidecar.batch({ streams: [{ streamid: 'a', cenc }], groups });
  expect(results[0].errors).toHaveLength(10);
  const errors = [{ code: 'invalid_body', description: 'cenc: must be an object' }];
  expect(results.slice(1)).toEqual(
    ['b', 'c'].map((streamid) => ({ index: 1, streamid, result: 'failed', errors })),
  );
});

it('fails a document of elements in elements without harm to others', async () => {
  const groups = [{ smil: `<smil><body>${'<par>'.repeat(100_000)}`, ...CENC_ONLY }];
  const streams = [{ streamid: 'a', ...CENC_ONLY }];
  const [{ body }] = await Promise.all([
    sidecar.api.post(PATH).send({ streams, groups }).expect(200),
    sidecar.unauthenticated.get('/healthz').expect(200),
  ]);
  expect(body.results).toMatchObject([
    { streamid: 'a', result: 'created' },
    { streamid: null, result: 'failed', errors: [{ code: 'invalid_body' }] },
  ]);
  expect(await sidecar.files()).toEqual({ 'a.key': CENC_ONLY_FILE });
});

it('every stream fails when the folder is gone, and the log says once why', async () => {
  const sidecar = await startSidecar();
  await fs.remove(sidecar.folder);
  const streams = Array.from({ length: 50 }, (_, index) => ({ streamid: `s-${index}`, ...CENC_ONLY }));
  const body = await sidecar.batch({ streams: [...streams, { streamid: 'bad' }] });
  const summary = { created: 0, changed: 0, unchanged: 0, failed: 51 };
  expect(body.summary).toEqual(summary);
  const code = 'key_files_not_writable';
  expect(body.results[0].errors[0].code).toBe(code);
  const { text } = await sidecar.unauthenticated.get('/metrics');
  expect(seriesOf(text)).toMatchObject({
    [`packagerdrmapi_failures_total{code="${code}"}`]: 50,
    'packagerdrmapi_failures_total{code="invalid_body"}': 1,
  });
  const entries = await sidecar.logEntries();
  const cause = expect.objectContaining({ code: 'ENOENT' });
  expect(entries.filter(({ level }) => level === 'error')).toEqual([
    expect.objectContaining({ message: 'streams of a batch failed', code, status: 500, count: 50, cause }),
  ]);
  expect(entries.filter(({ message }) => message === 'batch')).toEqual([
    expect.objectContaining({ dryRun: false, ...summary }),
  ]);
});

/** Sends a batch, or the start of one, over a connection of its own. */
async function sendOver(port: number, body: string, length = body.length) {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write(
    `POST ${PATH} HTTP/1.1\r\nhost: here\r\nx-api-key: ${API_KEY}\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n${body}`,
  );
  return socket;
}

describe('a client', () => {
  it('that goes away has its batch done all the same', async () => {
    const streams = Array.from({ length: 50 }, (_, index) => ({ streamid: `s-${index}`, ...CENC_ONLY }));
    const socket = await sendOver(sidecar.port, JSON.stringify({ streams }));
    const names = () => fs.readdir(sidecar.folder);
    await until(async () => (await names()).some((name) => name.endsWith('.key')));
    socket.destroy();
    await until(async () => (await names()).filter((name) => name.endsWith('.key')).length === 50);
  });

  it('that sends half a batch has none of it done, and leaves its place to others', async () => {
    for (let count = 0; count < 6; count += 1) {
      const socket = await sendOver(sidecar.port, '{"streams":[{"streamid":"a"', 1000);
      await new Promise((resolve) => setTimeout(resolve, 20));
      socket.destroy();
    }
    const body = JSON.stringify({ streams: [{ streamid: 'b', ...CENC_ONLY }] });
    const headers = { 'x-api-key': API_KEY, 'content-type': 'application/json' };
    await until(async () => (await rawRequest(sidecar.port, 'POST', PATH, headers, body)).status === 200);
    expect(await sidecar.files()).toEqual({ 'b.key': CENC_ONLY_FILE });
  });
});

/** An object of so many fields, each of another name. */
const fieldsOf = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`f${index}`, 1]));

describe('a batch is refused before it is parsed', () => {
  const values = 'The body holds more than 250000 values. Send several batches. Nothing was written.';
  it.each([
    ['objects without end', `{"streams":[${'{},'.repeat(250_000)}{}]}`, values],
    ['lists in lists without end', `{"streams":${'['.repeat(250_001)}`, values],
    ['an entry of 290,000 fields', JSON.stringify({ streams: [fieldsOf(290_000)] }), values],
  ])('for %s', async (_what, body, description) => {
    await sidecar.api.post(PATH).type('json').send(body).expect(400, errorBody('invalid_body', description));
  });

  it('but not for the marks and names in a text', async () => {
    const drmjson = `${'{,[":\\'.repeat(60_000)}${Array.from({ length: 1000 }, (_, i) => `"${i}":`).join('')}`;
    const streams = [
      { streamid: 'a', drmjson: '\\', ...CENC_ONLY },
      { streamid: 'b', drmjson },
    ];
    const body = await sidecar.batch({ streams });
    expect(body.results[0]).toMatchObject({ index: expect.any(Number), streamid: 'a', result: 'created' });
  });

  it('but not ten thousand streams with every field there is', async () => {
    const { cenc } = CENC_ONLY;
    const streams = Array.from({ length: 10_000 }, (_, index) => ({
      streamid: `s-${index}`,
      cenc,
      playready: { laurl: '', checksum: '' },
      widevine: { psshdata: '' },
      fairplay: { key: '', iv: '', laurl: '' },
      ...PROVIDED,
      cmaf: true,
      drmjson: '',
    }));
    // It is parsed, since that finds the unknown field.
    const { body } = await api.post(PATH).send({ streams, unknown: 1 }).expect(400);
    expect(body.errors[0].code).toBe('unknown_field');
  });
});

it('fails an entry that is larger than a single POST may be, however deep it is', async () => {
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
  const text = `{"streams":[{"streamid":"a","drmjson":${deep}}]}`;
  const { body } = await sidecar.api.post(PATH).type('json').send(text).expect(200);
  expect(body.results[0].errors[0].code).toBe('body_too_large');
});

it.each(['If-Match', 'If-None-Match'])('refuses a batch with %s, and writes nothing', async (header) => {
  const description =
    'If-Match and If-None-Match are for single streams: a batch has many files. Nothing was written; leave them out, or POST to /api/keyfile/{streamid}.';
  await sidecar.api
    .post(PATH)
    .set(header, '*')
    .send({ streams: [{ streamid: 'a', ...CENC_ONLY }] })
    .expect(400, errorBody('invalid_header', description));
  expect(await sidecar.files()).toEqual({});
});
