import { constants, existsSync } from 'node:fs';
import { join } from 'node:path';
import fs from 'fs-extra';
import { holdFolder, makeFolder, rootFolder } from '../../../src/sidecar/storage/open-file';
import { folderOfEachTest } from '../../support/after-test';

/** The errors of the next opens of a folder, as when it is swapped for something else and back. */
const faults: string[] = [];
const opened: { path: string; flags: number }[] = [];

jest.mock('node:fs', () => {
  const real = jest.requireActual<typeof import('node:fs')>('node:fs');
  const openSync = (path: string, flags: number) => {
    opened.push({ path, flags });
    const code = faults.shift();
    if (code !== undefined) throw Object.assign(new Error(code), { code });
    return real.openSync(path, flags);
  };
  /** As of a share of Windows, where the upper bits count how often an entry was used. */
  const fstatSync = (descriptor: number, options?: { bigint: true }) => {
    const { dev, ino } = real.fstatSync(descriptor, { bigint: true });
    const large = (1n << 62n) + ino;
    return { ...real.fstatSync(descriptor), dev, ino: options?.bigint ? large : Number(large) };
  };
  return { ...real, openSync, fstatSync };
});

const folder = folderOfEachTest();

beforeEach(async () => {
  await fs.ensureDir(join(folder, 'site'));
  faults.length = 0;
  opened.length = 0;
});

const hold = (name = 'site') => holdFolder(rootFolder(folder), name);

test.each(['ENOTDIR', 'ELOOP'])(
  'takes a sub-folder that is one at the third look, and no later (%s)',
  (code) => {
    faults.push(code, code);
    const held = hold();
    expect(held?.id).toMatch(/^\d+:\d+$/);
    held?.close();
    faults.push(code, code, code);
    expect(hold).toThrow(expect.objectContaining({ code }));
    expect(opened).toHaveLength(6);
  },
);

test('tells folders apart whose inodes have 64 bits and differ in the last ones', async () => {
  const names = Array.from({ length: 20 }, (_, index) => `site-${index}`);
  for (const name of names) await fs.ensureDir(join(folder, name));
  const held = names.map((name) => hold(name));
  expect(new Set(held.map((each) => each?.id)).size).toBe(20);
  for (const each of held) each?.close();
});

test('takes one that is gone at the second look for none', () => {
  faults.push('ENOTDIR');
  expect(hold('gone')).toBeUndefined();
});

test('looks once where it may not', () => {
  faults.push('EACCES');
  expect(hold).toThrow(expect.objectContaining({ code: 'EACCES' }));
  expect(opened).toHaveLength(1);
});

(existsSync('/proc/self/fd/0') ? test : test.skip)(
  'opens a sub-folder to go through it, not to list it',
  () => {
    hold()?.close();
    const O_PATH = 0o10000000;
    const { O_DIRECTORY, O_NOFOLLOW } = constants;
    expect(opened).toEqual([
      { path: join(folder, 'site'), flags: O_PATH | O_DIRECTORY | O_NOFOLLOW | constants.O_RDONLY },
    ]);
  },
);

test('says what keeps a sub-folder from being made', () => {
  const make = () => makeFolder(rootFolder(folder), 'x'.repeat(300));
  expect(make).toThrow(expect.objectContaining({ code: 'ENAMETOOLONG' }));
});
