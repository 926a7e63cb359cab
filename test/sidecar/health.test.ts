import { stat } from 'node:fs/promises';
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
  const { unauthenticated, files } = await startSidecar();
  const { status, body } = await unauthenticated.get(path);
  expect({ status, body }).toEqual({ status: 200, body: expected });
  expect(await files()).toEqual({});
});

test('tells holders of an API key, and nobody else, which folder it is, by device and inode', async () => {
  const { api, unauthenticated, folder } = await startSidecar();
  const { dev, ino } = await stat(folder, { bigint: true });
  const { status, body } = await api.get('/readyz');
  expect({ status, body }).toEqual({
    status: 200,
    body: { status: 'ready', folder: { device: String(dev), inode: String(ino) } },
  });
  for (const key of ['', 'wrong-key'])
    expect((await unauthenticated.get('/readyz').set('x-api-key', key)).body).toEqual({ status: 'ready' });
});

test('shows the warnings of the start to holders of an API key, and to others none', async () => {
  const warnings = [{ code: 'key_folder_made', description: 'The folder was made.' }];
  const { api, unauthenticated } = await startSidecar({}, undefined, { warnings });
  expect((await api.get('/readyz')).body.warnings).toEqual(warnings);
  expect((await unauthenticated.get('/readyz')).body).toEqual({ status: 'ready' });
});

test('probes the folder by a file that is written and synced, for a /readyz and no /healthz', async () => {
  const { unauthenticated } = await startSidecar();
  faulty.reset();
  await unauthenticated.get('/healthz');
  expect(faulty.recorded()).toEqual([]);
  await unauthenticated.get('/readyz');
  expect(newFiles()).toHaveLength(1);
});

test.each([
  ['that can be written', 200],
  ['that cannot', 503],
])('probes a folder %s once a second at most, however often it is asked', async (_which, status) => {
  const { unauthenticated, advance } = await startSidecar();
  faulty.reset();
  if (status === 503) for (let nth = 1; nth <= 2; nth += 1) faulty.fail('fdatasync', nth, 'EIO');
  const ask = async () => (await unauthenticated.get('/readyz')).status;
  const asked = [await ask(), await ask()];
  advance(999);
  asked.push(await ask());
  expect([asked, newFiles().length]).toEqual([[status, status, status], 1]);
  advance(1);
  expect([await ask(), await ask(), newFiles().length]).toEqual([status, status, 2]);
});

test('logs probes at debug, and those that fail where they are seen', async () => {
  const sidecar = await startSidecar();
  await sidecar.unauthenticated.get('/readyz');
  sidecar.advance(1000);
  faulty.reset();
  faulty.fail('fdatasync', 1, 'EIO');
  await sidecar.unauthenticated.get('/readyz');
  const levels = (await sidecar.logEntries()).map(({ level, message, status }) => [level, message, status]);
  expect(levels).toEqual([
    ['debug', 'request', 200],
    ['warn', 'not available', 503],
    ['info', 'request', 503],
  ]);
});
