import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fs from 'fs-extra';
import { createDurableWriter } from '../../../src/sidecar/storage/durable-file';
import { folderOfEachTest, temporaryFolder } from '../../support/after-test';
import * as faulty from '../../support/faulty-fs';
import { startSidecar } from '../../support/start-sidecar';

jest.mock('node:fs', () => jest.requireActual('../../support/faulty-fs').faultyFs);

const RUNNING = '0c0ffee0-0000-4000-8000-000000000001';
const KILLED = '0c0ffee0-0000-4000-8000-00000000dead';
const LEFT_OVER = `.packagerdrmapi-${KILLED}-12.tmp`;

const folder = folderOfEachTest();
const writer = createDurableWriter(() => RUNNING);

const FOREIGN = [
  'live.key',
  '.hidden',
  '.live.key.swp',
  'packagerdrmapi-1.tmp',
  '.packagerdrmapi-1.tmp.key',
  `${LEFT_OVER}~`,
  '.packagerdrmapi-.tmp',
  '.packagerdrmapi-NOTOURS-1.tmp',
];

test.each(FOREIGN)('leaves a file named %s alone', async (name) => {
  writeFileSync(join(folder, name), 'theirs\n');
  expect(await writer.sweep(folder, 8)).toMatchObject({ temporaries: 0 });
  expect(await fs.readdir(folder)).toEqual([name]);
});

test('removes what killed writers left, in the folder and in its sub-folders, and counts it and the key files', async () => {
  const deep = join(folder, 'a', 'b', 'c');
  mkdirSync(deep, { recursive: true });
  for (const place of [folder, join(folder, 'a'), deep]) {
    writeFileSync(join(place, LEFT_OVER), 'half a');
    writeFileSync(join(place, 'live.key'), 'name: value\n');
  }
  expect(await writer.sweep(folder, 8)).toEqual({ temporaries: 3, keyFiles: 3 });
  expect((await fs.readdir(folder, { recursive: true })).sort()).toEqual([
    'a',
    join('a', 'b'),
    join('a', 'b', 'c'),
    join('a', 'b', 'c', 'live.key'),
    join('a', 'live.key'),
    'live.key',
  ]);
});

test('counts as key files what a stream id can name, and nothing else', async () => {
  for (const name of ['a.key', 'b.key', 'a.key.bak', 'key', '.c.key', '.snapshot/d.key', 'live/e.key']) {
    await fs.outputFile(join(folder, name), 'name: value\n');
  }
  await fs.ensureDir(join(folder, 'f.key'));
  symlinkSync(join(folder, 'a.key'), join(folder, 'g.key'));
  expect(await writer.sweep(folder, 8)).toEqual({ temporaries: 0, keyFiles: 3 });
});

test('ends before the next file or folder on request', async () => {
  for (const place of ['a', 'b', 'c']) await fs.outputFile(join(folder, place, LEFT_OVER), 'half a');
  const stop = new AbortController();
  const gate = faulty.hold('unlink');
  const sweeping = writer.sweep(folder, 8, stop.signal);
  await gate.reached;
  stop.abort();
  gate.release();
  expect(await sweeping).toMatchObject({ temporaries: 1 });
});

test('goes no deeper than its limit', async () => {
  mkdirSync(join(folder, 'a', 'b'), { recursive: true });
  writeFileSync(join(folder, 'a', 'b', LEFT_OVER), 'half a');
  expect(await writer.sweep(folder, 1)).toMatchObject({ temporaries: 0 });
  expect(await writer.sweep(folder, 2)).toMatchObject({ temporaries: 1 });
});

test('reaches the deepest folder that a stream id can name', async () => {
  const deepest = join(folder, ...'abcdefg');
  await fs.outputFile(join(deepest, LEFT_OVER), 'half a');
  const sidecar = await startSidecar({ keyFilesPath: folder });
  expect(await fs.readdir(deepest)).toEqual([]);
  expect(await sidecar.logEntries()).toEqual([
    {
      time: '1970-01-01T00:00:00.000Z',
      level: 'info',
      message: 'swept left-over temporary files',
      count: 1,
    },
  ]);
});

test('follows no link, enters no hidden folder, and takes no folder for a file', async () => {
  const outside = await temporaryFolder();
  writeFileSync(join(outside, LEFT_OVER), 'theirs');
  symlinkSync(outside, join(folder, 'linked'));
  symlinkSync(join(outside, LEFT_OVER), join(folder, LEFT_OVER));
  await fs.outputFile(join(folder, '.snapshot', LEFT_OVER), 'theirs');
  await fs.ensureDir(join(folder, 'a', LEFT_OVER));
  expect(await writer.sweep(folder, 8)).toMatchObject({ temporaries: 0 });
  expect(await fs.readdir(outside)).toEqual([LEFT_OVER]);
  expect((await fs.readdir(folder)).sort()).toEqual([LEFT_OVER, '.snapshot', 'a', 'linked']);
});

test('never takes a temporary of the running writer', async () => {
  const gate = faulty.hold('fdatasync');
  const writing = writer.write(join(folder, 'live.key'), Buffer.from('new\n'), 0o640);
  await gate.reached;
  expect(await writer.sweep(folder, 8)).toMatchObject({ temporaries: 0 });
  expect(await fs.readdir(folder)).toEqual([`.packagerdrmapi-${RUNNING}-1.tmp`]);
  gate.release();
  await writing;
  expect(await fs.readdir(folder)).toEqual(['live.key']);
});

test('sweeps on when a file cannot be removed, and does not count it', async () => {
  writeFileSync(join(folder, LEFT_OVER), 'half a');
  writeFileSync(join(folder, LEFT_OVER.replace('-12', '-13')), 'half a');
  faulty.reset();
  faulty.fail('unlink', 1, 'EACCES');
  expect(await writer.sweep(folder, 8)).toMatchObject({ temporaries: 1 });
  expect(await fs.readdir(folder)).toHaveLength(1);
});

test.each(['opendir', 'missing'])('counts nothing when the folder cannot be read (%s)', async (why) => {
  if (why === 'opendir') faulty.fail('opendir', 1, 'EACCES');
  expect(await writer.sweep(why === 'opendir' ? folder : join(folder, 'missing'), 8)).toBeUndefined();
});
