import { startFakeUpstream } from '../support/fake-upstream';
import { POST_MANUAL_FILE } from '../support/post-manual';
import { startSidecar } from '../support/start-sidecar';

const PROVIDED = { client: 'acme', clientApiKey: 'k', contentId: 'c' };

it('writes a key file that the batch holds although upstreams answer nobody in time', async () => {
  const upstream = await startFakeUpstream();
  upstream.on('/config/acme', 'hang');
  const { api } = await startSidecar({
    configServiceUrl: `${upstream.url}/config`,
    keyProviderUrl: `${upstream.url}/keys`,
    upstreamTimeoutMs: 20,
  });
  const late = Array.from({ length: 60 }, (_item, index) => ({ streamid: `late-${index}`, ...PROVIDED }));
  const streams = [...late, { streamid: 'old', keyfile: POST_MANUAL_FILE }];
  const { body } = await api.post('/api/keyfiles').send({ streams }).expect(200);
  expect(body.results.at(-2)).toMatchObject({
    result: 'failed',
    errors: [{ code: 'config_service_failed' }],
  });
  expect(body.results.at(-1)).toMatchObject({
    index: expect.any(Number),
    streamid: 'old',
    result: 'created',
  });
});

it('refuses a group whose members are to have keys of their own, and one key file', async () => {
  const { api } = await startSidecar();
  const groups = [{ members: ['a', 'b'], keys: 'each', contentId: 'c', keyfile: POST_MANUAL_FILE }];
  const { body } = await api.post('/api/keyfiles').send({ groups }).expect(200);
  const description =
    'keys: "each" has the keys provisioned, so cenc, fairplay, keyfile and cpix must be left out; "same" gives these keys to all members.';
  const errors = [{ code: 'invalid_body', description }];
  expect(body.results).toEqual(
    ['a', 'b'].map((streamid) => ({ index: expect.any(Number), streamid, result: 'failed', errors })),
  );
});

it('names the field of a key file that is misspelt', async () => {
  const { api } = await startSidecar();
  const streams = [{ streamid: 'a', keyfil: POST_MANUAL_FILE }];
  const { body } = await api.post('/api/keyfiles').send({ streams }).expect(200);
  const description = 'keyfil is not a field of this request. Did you mean keyfile?';
  expect(body.results).toEqual([
    {
      index: expect.any(Number),
      streamid: 'a',
      result: 'failed',
      errors: [{ code: 'unknown_field', description }],
    },
  ]);
});
