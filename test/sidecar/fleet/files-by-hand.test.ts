import { join } from 'node:path';
import fs from 'fs-extra';
import type { StreamId } from '../../../src/api/stream-id';
import { etagOf } from '../../../src/drm/bytes';
import { toStorageError } from '../../../src/sidecar/storage/open-file';
import { temporaryFolder } from '../../support/after-test';
import { FakeCluster } from '../../support/fake-engine';
import { lacksOf, settled, startLevel, startOne, startTwo } from '../../support/start-member';
import { until } from '../../support/until';

const A = 'a: 1\n';
const B = 'b: 2\n';
const C = 'c: 3\n';
const by = { key: 'tests', address: '127.0.0.1', requestId: 'request-9' };

test('files made by hand stay at the join, and are reported', async () => {
  const { cluster, one } = await startOne();
  await one.put('news', A);
  await one.put('sport', A);
  const folder = await temporaryFolder();
  fs.writeFileSync(join(folder, 'news.key'), 'hand: 1\n');
  fs.writeFileSync(join(folder, 'mine.key'), 'hand: 2\n');
  const joined = await startLevel(cluster.connect(), { name: 'two', folder });
  expect(['news', 'mine', 'sport'].map(joined.file)).toEqual(['hand: 1\n', 'hand: 2\n', A]);
  expect(lacksOf(joined)).toMatchObject({ kept: 1 });
  await one.remove('news');
  await settled(one, joined);
  expect(joined.file('news')).toBe('hand: 1\n');
  await one.put('news', B);
  await until(() => joined.file('news') === B);
  await until(() => lacksOf(joined).kept === 0);
});

test('a file edited by hand survives a restart and a deletion; a wiped one comes back', async () => {
  const { cluster, one, two } = await startTwo();
  for (const stream of ['edited', 'wiped', 'gone']) await one.put(stream, A);
  await settled(one, two);
  await two.stop();
  two.byHand('edited', 'hand: 1\n');
  two.byHand('gone', 'hand: 1\n');
  two.byHand('wiped', undefined);
  const again = await startLevel(cluster.connect(), { name: 'two', folder: two.folder });
  await one.remove('gone');
  await settled(one, again);
  expect(['edited', 'gone', 'wiped'].map(again.file)).toEqual(['hand: 1\n', 'hand: 1\n', A]);
  expect(lacksOf(again)).toMatchObject({ kept: 2 });
});

test('the former file put back by hand is a file edited by hand', async () => {
  const { cluster, one, two } = await startTwo();
  await one.put('news', A);
  await one.put('news', B);
  await settled(one, two);
  await two.stop();
  two.byHand('news', A);
  const again = await startLevel(cluster.connect(), { name: 'two', folder: two.folder });
  expect(again.file('news')).toBe(A);
});

test('a POST mends a file that was edited by hand, also one that changes nothing in the fleet', async () => {
  const { one, two } = await startTwo();
  await one.put('news', A);
  await settled(one, two);
  one.byHand('news', 'hand: 1\n');
  await one.fleet.store.write('news' as StreamId, Buffer.from(A), { skipUnchanged: true });
  expect(one.file('news')).toBe(A);
});

test('a file that is removed by hand comes back, and one that is edited is reported, while the sidecar runs', async () => {
  const one = await startLevel(new FakeCluster().connect(), { folderMs: 20 });
  for (const stream of ['removed', 'edited', 'deleted']) await one.put(stream, A);
  await one.remove('deleted');
  one.byHand('removed', undefined);
  one.byHand('edited', 'hand: 1\n');
  one.byHand('deleted', 'hand: 2\n');
  await until(() => one.file('removed') === A && lacksOf(one).kept === 2);
  expect(['edited', 'deleted'].map(one.file)).toEqual(['hand: 1\n', 'hand: 2\n']);
  one.byHand('edited', undefined);
  one.byHand('deleted', undefined);
  await until(() => one.file('edited') === A && lacksOf(one).kept === 0);
  expect(one.file('deleted')).toBeUndefined();
});

test('an import replaces no file made by hand at packagers that joined before', async () => {
  const { one, two } = await startTwo();
  one.byHand('news', A);
  two.byHand('news', B);
  expect(await one.fleet.importStep({ after: undefined, limit: 10 }, by)).toMatchObject({ imported: 1 });
  await until(() => lacksOf(two).kept === 1);
  expect([one.file('news'), two.file('news')]).toEqual([A, B]);
  // Its ETag, which a GET shows, never fits.
  await expect(
    two.fleet.store.remove('news' as StreamId, { ifMatch: etagOf(Buffer.from(B)) }),
  ).rejects.toMatchObject({
    problems: [{ description: expect.stringContaining('GET /api/fleet/{streamid} has its ETag') }],
  });
  await one.put('news', C);
  await until(() => two.file('news') === C);
});

test('an import takes the other files when there is one that the sidecar may not read', async () => {
  const denied = Object.assign(new Error('denied'), { code: 'EACCES' });
  const one = await startLevel(new FakeCluster().connect(), {
    around: (local) => ({
      ...local,
      read(streamId) {
        if (streamId === 'locked') throw toStorageError('read', denied);
        return local.read(streamId);
      },
    }),
  });
  for (const stream of ['locked', 'news']) one.byHand(stream, A);
  expect(await one.fleet.importStep({ after: undefined, limit: 10 }, by)).toMatchObject({
    imported: 1,
    refused: [{ streamid: 'locked', code: 'not_a_key_file' }],
  });
});
