import { execFileSync } from 'node:child_process';
import { readdirSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import fs from 'fs-extra';
import { readSmallFile } from '../../../src/sidecar/storage/open-file';
import { temporaryFolder } from '../../support/after-test';

const MEBIBYTE = 1024 * 1024;

let folder: string;
let path: string;

beforeEach(async () => {
  folder = await temporaryFolder();
  path = join(folder, 'live.key');
});

test.each([0, 1, 1000, MEBIBYTE])('reads a file of %d bytes whole', async (length) => {
  const bytes = Buffer.alloc(length, 'abc');
  await fs.writeFile(path, bytes);
  const found = readSmallFile(path);
  expect(found?.kind).toBe('file');
  expect(found?.kind === 'file' && found.bytes.equals(bytes)).toBe(true);
});

test('refuses a file of one byte more than a mebibyte', async () => {
  await fs.writeFile(path, Buffer.alloc(MEBIBYTE + 1));
  expect(readSmallFile(path)).toEqual({ kind: 'too_large' });
});

test('answers undefined where there is no file', () => {
  expect(readSmallFile(path)).toBeUndefined();
});

test('answers undefined below a file', async () => {
  await fs.writeFile(path, 'name: value\n');
  expect(readSmallFile(join(path, 'below.key'))).toBeUndefined();
});

test.each([
  ['that leads to a key file', 'other.key'],
  ['that leads nowhere', 'missing.key'],
  ['that leads to itself', 'live.key'],
  ['that leads to a folder', '.'],
])('follows no link %s', async (_where, target) => {
  await fs.writeFile(join(folder, 'other.key'), 'name: value\n');
  symlinkSync(target, path);
  expect(readSmallFile(path)).toEqual({ kind: 'link' });
});

test('takes a folder for no file', async () => {
  await fs.ensureDir(path);
  expect(readSmallFile(path)).toEqual({ kind: 'not_a_file' });
});

test('takes a pipe for no file, and does not wait for its writer', () => {
  execFileSync('mkfifo', [path]);
  expect(readSmallFile(path)).toEqual({ kind: 'not_a_file' });
});

test('takes a socket for no file', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(path, resolve));
  expect(readSmallFile(path)).toEqual({ kind: 'not_a_file' });
  await new Promise((resolve) => server.close(resolve));
});

test('takes a device for no file', () => {
  expect(readSmallFile('/dev/null')).toEqual({ kind: 'not_a_file' });
});

test('throws what the system says to a path that is too long', () => {
  const read = () => readSmallFile(join(folder, 'x'.repeat(300)));
  expect(read).toThrow(expect.objectContaining({ code: 'ENAMETOOLONG' }));
});

const descriptors = '/proc/self/fd';
const onLinux = fs.existsSync(descriptors) ? test : test.skip;

onLinux('leaves no descriptor open, whatever it finds', async () => {
  await fs.writeFile(join(folder, 'file'), 'name: value\n');
  await fs.writeFile(join(folder, 'large'), Buffer.alloc(MEBIBYTE + 1));
  await fs.ensureDir(join(folder, 'folder'));
  const names = ['file', 'large', 'folder', 'missing'];
  const before = readdirSync(descriptors).length;
  for (let round = 0; round < 50; round += 1) for (const name of names) readSmallFile(join(folder, name));
  expect(readdirSync(descriptors).length).toBeLessThan(before + 50);
});

test('leaves no trace in the access time: that shows when the packager has read the file', async () => {
  await fs.writeFile(path, 'name: value\n');
  const before = new Date(2020, 0, 1);
  await fs.utimes(path, before, new Date(2020, 0, 2));
  expect(readSmallFile(path)).toMatchObject({ kind: 'file' });
  expect((await fs.stat(path)).atime).toEqual(before);
});
