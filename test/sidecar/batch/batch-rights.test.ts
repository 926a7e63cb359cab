import { once } from 'node:events';
import { connect } from 'node:net';
import type { ApiKey } from '../../../src/sidecar/access/api-key';
import { PLAIN } from '../../support/post-manual';
import { startBatch } from '../../support/start-batch';
import { PROVIDED } from '../../support/start-provisioning';

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

it('tells every failure by its code, for the metrics', async () => {
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
