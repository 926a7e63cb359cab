import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import fs from 'fs-extra';
import type { StreamId } from '../../../src/api/stream-id';
import { keysIn } from '../../../src/drm/key-file';
import { createKeyIndex, createSurvey, indexedKeys } from '../../../src/sidecar/key-files/survey';
import { createDurableWriter } from '../../../src/sidecar/storage/durable-file';
import type { Conditions } from '../../../src/sidecar/storage/key-file-store';
import { createKeyFileStore } from '../../../src/sidecar/storage/key-file-store';
import { temporaryFolder } from '../../support/after-test';
import { POST_MANUAL_FILE } from '../../support/post-manual';
import { recordedLog } from '../../support/recorded-log';
import { until } from '../../support/until';

const SOUND = POST_MANUAL_FILE;
/** The packager writes its own vector into the playlist: it may be meant so. */
const ODD = SOUND.replace('iv-include-in-chunklist: false', 'iv-include-in-chunklist: true');
const BROKEN = 'name: value\n';

async function startCount(files: Readonly<Record<string, string>> = {}) {
  const folder = await temporaryFolder();
  for (const [name, text] of Object.entries(files)) await fs.outputFile(join(folder, name), text);
  const { log, lines } = recordedLog();
  const index = createKeyIndex();
  const faults = createSurvey(folder, log, index);
  const store = faults.follow(createKeyFileStore(folder, 0o640, createDurableWriter(randomUUID)));
  const write = (name: string, text: string, conditions?: Conditions) =>
    store.write(name as StreamId, Buffer.from(text), conditions);
  const remove = (name: string) => store.remove(name as StreamId);
  return { folder, faults, write, remove, lines, index };
}

test('tells nothing before the files are counted, and then each by its worst fault', async () => {
  const { faults } = await startCount({
    'sound.key': SOUND,
    'site/odd.key': ODD,
    'site/deep/broken.key': BROKEN,
    'both.key': ODD.replace('AESCTR', 'AESCBC'),
    'empty.key': '',
    'notes.txt': BROKEN,
    '.hidden.key': BROKEN,
  });
  expect(faults.counts()).toBeUndefined();
  await faults.run();
  expect(faults.counts()).toEqual({ error: 3, warning: 1 });
});

test('follows what is written and removed, and what is corrected', async () => {
  const { faults, write, remove } = await startCount({ 'old.key': BROKEN });
  await faults.run();
  const after = async (change: Promise<unknown>, expected: object) => {
    await change;
    await until(() => isDeepStrictEqual(faults.counts(), expected));
  };
  await after(write('new', ODD), { error: 1, warning: 1 });
  await after(write('new', BROKEN), { error: 2, warning: 0 });
  await after(write('old', SOUND), { error: 1, warning: 0 });
  await after(remove('new'), { error: 0, warning: 0 });
  await after(remove('absent'), { error: 0, warning: 0 });
});

test('tells the index which keys the files have, and forgets those that are removed', async () => {
  const { faults, index, remove } = await startCount({
    'one.key': SOUND,
    'site/two.key': SOUND,
    'odd.key': BROKEN,
  });
  await faults.run();
  expect(index.size()).toBe(2);
  const { keyId = '' } = keysIn(SOUND);
  const asked = indexedKeys(Buffer.from(keyId, 'base64'), Buffer.alloc(16));
  expect(index.conflicts('new', asked).otherKeys.count).toBe(2);
  await remove('one');
  expect(index.conflicts('new', asked).otherKeys).toEqual({ count: 1, names: ['site/two'] });
});

test('counts no file that was not written', async () => {
  const { faults, write } = await startCount({ 'sound.key': SOUND });
  await faults.run();
  await write('sound', BROKEN, { dryRun: true });
  await expect(write('sound', BROKEN, { ifNoneMatch: '*' })).rejects.toThrow();
  expect(faults.counts()).toEqual({ error: 0, warning: 0 });
});

test('counts right what changes while it counts', async () => {
  const names = Array.from({ length: 300 }, (_, index) => `stream-${index}`);
  const files = Object.fromEntries(
    names.map((name, index) => [`${name}.key`, index % 2 === 0 ? BROKEN : SOUND]),
  );
  const { faults, write, remove } = await startCount(files);
  const counting = faults.run();
  await Promise.all(
    names.map((name, index) => {
      if (index % 3 === 0) return write(name, index % 2 === 0 ? SOUND : BROKEN);
      return index % 3 === 1 ? remove(name) : undefined;
    }),
  );
  expect(faults.counts()).toBeUndefined();
  await counting;
  const expected = names.filter((_, index) =>
    index % 3 === 0 ? index % 2 === 1 : index % 3 === 2 && index % 2 === 0,
  );
  await until(() => isDeepStrictEqual(faults.counts(), { error: expected.length, warning: 0 }));
});

test('lets others have their turn while it counts, and ends when it is closed', async () => {
  const files = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`s-${index}.key`, BROKEN]));
  const { faults } = await startCount(files);
  let turns = 0;
  const turn = setInterval(() => {
    turns += 1;
  }, 1);
  await faults.run();
  clearInterval(turn);
  expect(turns).toBeGreaterThanOrEqual(4);
  const closed = await startCount(files);
  const counting = closed.faults.run();
  closed.faults.close();
  await counting;
  expect(closed.faults.counts()).toBeUndefined();
});

test('tells in the log when the folder cannot be read, and goes without', async () => {
  const { folder, faults, lines } = await startCount();
  await fs.remove(folder);
  await faults.run();
  expect(faults.counts()).toBeUndefined();
  expect(lines.map(([level, message]) => [level, message])).toEqual([
    ['warn', 'key files cannot be surveyed'],
  ]);
});
