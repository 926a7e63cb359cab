import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { ApiKey } from '../../../src/sidecar/access/api-key';
import type { KeyFileChanges, PutOutcome } from '../../../src/sidecar/key-files/changes';
import { CENC_ONLY } from '../../support/post-manual';
import { startBatch } from '../../support/start-batch';
import { until } from '../../support/until';

const WRITER: ApiKey = { name: 'writer', scope: 'write', streams: undefined };
const ONE = { streams: [{ streamid: 'a', ...CENC_ONLY }] };
const LARGE = 1_000_000;

const sockets: Socket[] = [];

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

/** Sends the head of a batch and the first byte of its body. */
function sendSlowly(port: number, length = LARGE): Socket {
  const socket = connect(port, '127.0.0.1');
  sockets.push(socket);
  socket.write(
    `POST /api/keyfiles HTTP/1.1\r\nhost: here\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n{`,
  );
  return socket;
}

/** Has every write wait until it is let go. */
function held() {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const put = jest.fn(async (): Promise<PutOutcome> => {
    await released;
    return { bytes: Buffer.from(''), former: undefined, etag: '"e"', result: 'created', warnings: [] };
  });
  const changes: KeyFileChanges = {
    put,
    remove: async () => ({ bytes: undefined, warnings: [] }),
  };
  return { changes, put, release };
}

describe('places', () => {
  it('are four, and a fifth batch is refused', async () => {
    const { changes, put, release } = held();
    const { port, post, idle } = await startBatch(WRITER, { changes });
    const underWay = Array.from({ length: 4 }, () => post(ONE));
    await until(async () => put.mock.calls.length === 4);
    let isIdle = false;
    const whenIdle = idle().then(() => {
      isIdle = true;
    });
    const description =
      '4 batches are under way. Nothing of this one was written; send it again when they are done.';
    expect(await post(ONE)).toEqual({
      status: 503,
      body: { errors: [{ code: 'too_many_batches', description }] },
    });
    // Not read either.
    expect(String((await once(sendSlowly(port), 'data'))[0])).toMatch(/^HTTP\/1.1 503 /);
    expect(isIdle).toBe(false);
    release();
    for (const { status } of await Promise.all(underWay)) expect(status).toBe(200);
    await whenIdle;
    expect((await post(ONE)).status).toBe(200);
  });

  it('are taken by nobody who is still sending', async () => {
    const { port, post } = await startBatch(WRITER);
    for (let count = 0; count < 4; count += 1) sendSlowly(port, 1000);
    for (let count = 0; count < 4; count += 1) sendSlowly(port);
    await until(async () => sockets.filter(({ bytesRead }) => bytesRead > 0).length === 2);
    expect((await post(ONE)).status).toBe(200);
  });
});

describe('large bodies', () => {
  it('are received two at a time for an API key, and a third is refused', async () => {
    const { port } = await startBatch(WRITER);
    const answers = await Promise.race(Array.from({ length: 3 }, () => once(sendSlowly(port), 'data')));
    expect(String(answers[0])).toMatch(
      /^HTTP\/1.1 503 [\s\S]*retry-after: 5[\s\S]*"code":"too_many_batches"/i,
    );
  });

  it('give up their place when their client goes away', async () => {
    const { port } = await startBatch(WRITER);
    sendSlowly(port);
    sendSlowly(port);
    await once(sendSlowly(port), 'data');
    for (const socket of sockets) socket.destroy();
    await until(async () => {
      const socket = sendSlowly(port, LARGE);
      const isTaken = await Promise.race([
        once(socket, 'data').then(() => false),
        new Promise<boolean>((resolve) => setTimeout(() => resolve(true), 100)),
      ]);
      socket.destroy();
      return isTaken;
    });
  });

  it('that do not arrive in time are given up, and their connections closed', async () => {
    const { port } = await startBatch(WRITER, { mostReceiveMs: 20 });
    for (const length of [LARGE, 1000, LARGE, LARGE]) {
      const socket = sendSlowly(port, length);
      const closed = once(socket, 'close');
      const [answer] = await once(socket, 'data');
      expect(String(answer)).toMatch(/^HTTP\/1.1 408 [\s\S]*"code":"request_timeout"/);
      await closed;
    }
  });
});

describe('when the service stops', () => {
  const notTried = {
    code: 'stopping',
    description: 'Not tried: the service is stopping. No key file was changed; send the batch again.',
  };

  it('no further stream or group is begun', async () => {
    let isStopping = false;
    const { changes, put, release } = held();
    const stopping = () => isStopping;
    const { post, idle, audited } = await startBatch(WRITER, { changes, stopping });
    const streams = Array.from({ length: 100 }, (_, index) => ({ streamid: `s-${index}`, ...CENC_ONLY }));
    const groups = [{ members: ['g-1', 'g-2'], ...CENC_ONLY }];
    const answer = post({ streams, groups });
    await until(async () => put.mock.calls.length === 32);
    isStopping = true;
    release();
    await idle();
    const { body } = await answer;
    expect(body.summary).toEqual({ created: 32, changed: 0, unchanged: 0, failed: 70 });
    expect(body.results[99]).toEqual({
      index: expect.any(Number),
      streamid: 's-99',
      result: 'failed',
      errors: [notTried],
    });
    expect(body.results[101]).toEqual({
      index: expect.any(Number),
      streamid: 'g-2',
      result: 'failed',
      errors: [notTried],
    });
    expect(put).toHaveBeenCalledTimes(32);
    expect(audited.filter(({ result }) => result === 'stopping')).toHaveLength(70);
  });

  it('a batch that comes then is refused as a whole', async () => {
    const { post, provisioned } = await startBatch(WRITER, { stopping: () => true });
    expect(await post(ONE)).toEqual({ status: 503, body: { errors: [notTried] } });
    expect(provisioned).toEqual([]);
  });
});

it('is idle without a batch', async () => {
  const { idle } = await startBatch(WRITER);
  await expect(idle()).resolves.toBeUndefined();
});

it('lets others be served before each entry that it reads', async () => {
  let turns = 0;
  const count = () => {
    turns += 1;
    if (turns < 1_000_000) setImmediate(count);
  };
  count();
  const first: number[] = [];
  const provision = () => {
    first.push(turns);
    return Promise.reject(new Error('is not written'));
  };
  const { post } = await startBatch(WRITER, { provision });
  const before = turns;
  const streams = Array.from({ length: 500 }, (_, index) => ({ streamid: `s-${index}`, ...CENC_ONLY }));
  await post({ streams });
  turns = 1_000_000;
  expect(first[0]).toBeGreaterThan(before + 500);
});
