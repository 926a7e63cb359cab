import { once } from 'node:events';
import { connect } from 'node:net';
import { HttpError } from '../../../src/http/errors';
import { RefusalError } from '../../../src/provider/upstream';
import type { ApiKey } from '../../../src/sidecar/api-key';
import { createCircuitBreaker } from '../../../src/sidecar/batch';
import { type SampleKey, sampleText, widevineFile } from '../../support/cpix-sample';
import { PLAIN } from '../../support/post-manual';
import { startBatch } from '../../support/start-batch';
import { PATHS, PROVIDED, startProvisioning } from '../../support/start-provisioning';
import { startSidecar } from '../../support/start-sidecar';

const writer: ApiKey = { name: 'sports', scope: 'write', streams: ['sports/'] };
const forbidden = {
  code: 'forbidden',
  description:
    'The API key sports has no access to this stream. Use another API key, or have its rights changed in the file of API keys.',
};

it('fails what the API key does not reach, and does the rest', async () => {
  const { post, audited, errors } = await startBatch(writer);
  const { status, body } = await post({
    streams: [
      { streamid: 'news/a', ...PLAIN },
      { streamid: 'sports/b', ...PLAIN },
    ],
    groups: [{ members: ['sports/c', 'news/d'], ...PLAIN }],
  });
  expect(status).toBe(200);
  const refused = (streamid: string) => ({
    index: expect.any(Number),
    streamid,
    result: 'failed',
    errors: [forbidden],
  });
  expect(body).toEqual({
    results: [
      refused('news/a'),
      { index: expect.any(Number), streamid: 'sports/b', result: 'created', etag: expect.any(String) },
      { index: expect.any(Number), streamid: 'sports/c', result: 'created', etag: expect.any(String) },
      refused('news/d'),
    ],
    summary: { created: 2, changed: 0, unchanged: 0, failed: 2 },
  });
  expect(audited.map(({ action, streamId, result }) => `${action} ${streamId} ${result}`).sort()).toEqual([
    'put sports/b created',
    'put sports/c created',
    'refused news/a forbidden',
    'refused news/d forbidden',
  ]);
  expect(errors.map(({ message }) => message)).toEqual(['forbidden', 'forbidden']);
});

it('provisions nothing for a stream or a group that the API key does not reach', async () => {
  const { post, provisioned } = await startBatch(writer);
  const { body } = await post({
    streams: [{ streamid: 'news/a', ...PROVIDED }],
    groups: [
      { members: ['news/b', 'news/c'], ...PROVIDED },
      { members: ['d', 'e'], folder: 'news', keys: 'each', ...PROVIDED },
    ],
  });
  expect(body.summary).toEqual({ created: 0, changed: 0, unchanged: 0, failed: 5 });
  for (const { errors } of body.results) expect(errors).toEqual([forbidden]);
  expect(provisioned).toEqual([]);
});

it('refuses an API key that may read only, before its body is read', async () => {
  const { port } = await startBatch({ name: 'player', scope: 'read', streams: undefined });
  const socket = connect(port, '127.0.0.1');
  socket.write(
    'POST /api/keyfiles HTTP/1.1\r\nhost: here\r\ncontent-type: application/json\r\ncontent-length: 16000000\r\n\r\n{',
  );
  const [answer] = await once(socket, 'data');
  expect(String(answer)).toMatch(/^HTTP\/1.1 403 [\s\S]*"code":"forbidden"/);
  socket.destroy();
});

it('reports every failure by its code, for the metrics', async () => {
  const { post, errors } = await startBatch(writer);
  await post({
    streams: [
      7,
      { streamid: 'sports/a', cenc: 7 },
      { streamid: 'sports/a' },
      { streamid: 'sports/b', ...PROVIDED },
    ],
  });
  expect(errors.map(({ status, message }) => `${status} ${message}`)).toEqual([
    '400 invalid_body',
    '400 invalid_body',
    '400 duplicate_stream',
    '503 provisioning_not_configured',
  ]);
});

const failing = (status: number, code: string) => () =>
  Promise.reject(new HttpError(status, { code, description: 'Failed.' }));
const late = failing(504, 'key_provider_failed');
const refused = failing(502, 'key_provider_failed');
const unknown = failing(422, 'client_api_key_refused');
const strange = failing(422, 'client_unknown');
const denied = () =>
  Promise.reject(new RefusalError(502, { code: 'key_provider_failed', description: 'Failed.' }));
const answered = () => Promise.resolve('keys');

const ASKING = { client: 'demo', clientApiKey: 'wrong' };

/** Asks one after the other, and answers what came of it: the answer, or the status. */
async function askAll(asks: readonly (() => Promise<string>)[]) {
  const breaker = createCircuitBreaker();
  const outcomes: unknown[] = [];
  for (const ask of asks) outcomes.push(await breaker(ASKING, ask).catch((error: HttpError) => error.status));
  return { breaker, outcomes };
}

const times = <T>(count: number, value: T) => Array.from({ length: count }, () => value);

it.each([
  [
    24,
    late,
    'key_provider_failed',
    '24 streams of this batch in a row were not provisioned in time. No key file was changed; send the batch again later.',
  ],
  [
    5,
    unknown,
    'client_api_key_refused',
    'an upstream refused this client 5 times in a row. No key file was changed; check client and clientApiKey, and send the batch again.',
  ],
  [
    5,
    strange,
    'client_unknown',
    'an upstream refused this client 5 times in a row. No key file was changed; check client and clientApiKey, and send the batch again.',
  ],
  [
    5,
    denied,
    'key_provider_failed',
    'an upstream refused the credentials of this service 5 times in a row. No key file was changed; correct the headers for the key provider, and send the batch again.',
  ],
])('asks nothing more after %i failures in a row', async (count, failure, code, why) => {
  const { breaker } = await askAll(times(count, failure));
  const ask = jest.fn(answered);
  const problems = [{ code, description: `Not tried: ${why}` }];
  await expect(breaker({ ...ASKING }, ask)).rejects.toMatchObject({ problems });
  expect(ask).not.toHaveBeenCalled();
});

it('asks in the name of another client, and with another key', async () => {
  const { breaker } = await askAll(times(5, unknown));
  for (const other of [{ client: 'other' }, { clientApiKey: 'right' }])
    await expect(breaker({ ...ASKING, ...other }, answered)).resolves.toBe('keys');
});

it.each([
  ['an answer between late ones', [...times(23, late), answered, ...times(23, late), answered]],
  ['a refusal between late ones', [...times(23, late), refused, ...times(23, late), answered]],
  [
    'an answer between refusals of a client',
    [...times(4, unknown), answered, ...times(4, unknown), answered],
  ],
  ['what refuses at once, however often', [...times(100, refused), answered]],
])('goes on after %s', async (_what, asks) => {
  const { outcomes } = await askAll(asks);
  expect(outcomes.at(-1)).toBe('keys');
  expect(outcomes).toHaveLength(asks.length);
});

const KEYS: SampleKey[] = [
  { number: 1, track: 'SD' },
  { number: 2, track: 'HD' },
  { number: 3, track: 'UHD1' },
];
const CPIX = sampleText(KEYS);

const SD_HD = { 'news_sd.key': widevineFile(1), 'news_hd.key': widevineFile(2) };

it('the tracks of a CPIX document become a stream each by one entry, in its order', async () => {
  const sidecar = await startSidecar();
  const body = { streams: [{ cpix: CPIX, tracks: { HD: 'news_hd', SD: 'news_sd' } }] };
  expect(await sidecar.batch(body)).toEqual({
    results: [
      { index: 0, streamid: 'news_hd', result: 'created', etag: expect.any(String) },
      { index: 0, streamid: 'news_sd', result: 'created', etag: expect.any(String) },
    ],
    summary: { created: 2, changed: 0, unchanged: 0, failed: 0 },
  });
  expect(await sidecar.files()).toEqual(SD_HD);
  expect((await sidecar.batch(body)).summary).toMatchObject({ unchanged: 2, failed: 0 });
});

it('a CPIX document in a batch is written although an upstream refuses the client that it names, too', async () => {
  const { sidecar, upstream } = await startProvisioning();
  upstream.on(PATHS.config, { status: 404 });
  const streams = Array.from({ length: 30 }, (_, index) => ({ streamid: `p${index}`, ...PROVIDED }));
  const body = { streams: [...streams, { streamid: 'news', cpix: CPIX, track: 'SD', ...PROVIDED }] };
  expect((await sidecar.batch(body)).summary).toMatchObject({ created: 1, failed: 30 });
  expect(await sidecar.files()).toEqual({ 'news.key': expect.stringContaining('AESCTR') });
});
