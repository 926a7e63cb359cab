import { stat } from 'node:fs/promises';
import { HttpError } from '../../src/http/errors';
import { shareRuns } from '../../src/sidecar/health-routes';
import * as faulty from '../support/faulty-fs';
import { startSidecar } from '../support/start-sidecar';

jest.mock('node:fs', () => jest.requireActual('../support/faulty-fs').faultyFs);

const newFiles = () =>
  faulty
    .recorded()
    .filter(({ call, moment, more }) => call === 'open' && moment === 'start' && more[0] === 'wx');

test.each([
  ['/healthz', { status: 'ok' }],
  ['/readyz', { status: 'ready' }],
])('answers 200 to %s without a key', async (path, expected) => {
  const { stranger, files } = await startSidecar();
  const { status, body } = await stranger.get(path);
  expect({ status, body }).toEqual({ status: 200, body: expected });
  expect(await files()).toEqual({});
});

test('tells holders of an API key, and nobody else, which folder it is, by device and inode', async () => {
  const { api, stranger, folder } = await startSidecar();
  const { dev, ino } = await stat(folder, { bigint: true });
  const { status, body } = await api.get('/readyz');
  expect({ status, body }).toEqual({
    status: 200,
    body: { status: 'ready', folder: { device: String(dev), inode: String(ino) } },
  });
  for (const key of ['', 'wrong-key'])
    expect((await stranger.get('/readyz').set('x-api-key', key)).body).toEqual({ status: 'ready' });
});

test('probes the folder by a file that is written and synced, at each /readyz and no /healthz', async () => {
  const { stranger } = await startSidecar();
  faulty.reset();
  await stranger.get('/healthz');
  expect(faulty.recorded()).toEqual([]);
  await stranger.get('/readyz');
  await stranger.get('/readyz');
  expect(newFiles()).toHaveLength(2);
});

test('answers everybody who asks for /readyz during one probe by that probe', async () => {
  const { stranger } = await startSidecar();
  faulty.reset();
  const gate = faulty.hold('fdatasync');
  const first = stranger.get('/readyz').then(({ status }) => status);
  await gate.reached;
  const others = Array.from({ length: 20 }, () => stranger.get('/readyz').then(({ status }) => status));
  await stranger.get('/healthz');
  gate.release();
  expect(await Promise.all([first, ...others])).toEqual(Array.from({ length: 21 }, () => 200));
  expect(newFiles().length).toBeLessThan(21);
});

test('logs probes at debug, and those that fail where they are seen', async () => {
  const sidecar = await startSidecar();
  await sidecar.stranger.get('/readyz');
  faulty.reset();
  faulty.fail('fdatasync', 1, 'EIO');
  await sidecar.stranger.get('/readyz');
  const levels = (await sidecar.logEntries()).map(({ level, message, status }) => [level, message, status]);
  expect(levels).toEqual([
    ['debug', 'request', 200],
    ['warn', 'not available', 503],
    ['info', 'request', 503],
  ]);
});

describe('shared runs', () => {
  test('are one for all who ask while it is under way, and a new one for the next', async () => {
    let runs = 0;
    let end = () => {};
    const check = shareRuns(() => {
      runs += 1;
      return new Promise((resolve) => {
        end = resolve;
      });
    });
    const asked = [check(), check(), check()];
    expect(runs).toBe(1);
    end();
    await Promise.all(asked);
    const next = check();
    expect(runs).toBe(2);
    end();
    await next;
  });

  test('tell a failure to all who share it, and start anew after it', async () => {
    const failure = new HttpError(500, { code: 'key_files_not_writable', description: 'It is gone.' });
    let runs = 0;
    const check = shareRuns(async () => {
      runs += 1;
      if (runs === 1) throw failure;
    });
    const asked = await Promise.allSettled([check(), check()]);
    expect(asked).toEqual([
      { status: 'rejected', reason: failure },
      { status: 'rejected', reason: failure },
    ]);
    await expect(check()).resolves.toBeUndefined();
    expect(runs).toBe(2);
  });
});
