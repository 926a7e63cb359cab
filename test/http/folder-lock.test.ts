import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { lockFolder } from '../../src/http/folder-lock';
import { temporaryFolder } from '../support/after-test';

test('locks no folder where there can be no socket, and leaves nothing there', async () => {
  const folder = await temporaryFolder();
  const long = join(folder, 'x'.repeat(100));
  mkdirSync(long);
  expect(await lockFolder(join(folder, 'absent'), randomUUID)).toBeUndefined();
  expect(await lockFolder(long, randomUUID)).toBeUndefined();
  expect(readdirSync(folder, { recursive: true })).toEqual(['x'.repeat(100)]);
});

test('takes the place of a file that is no socket, and leaves nothing when it is released', async () => {
  const folder = await temporaryFolder();
  writeFileSync(join(folder, 'lock'), '');
  const lock = await lockFolder(folder, randomUUID);
  expect(await lockFolder(folder, randomUUID)).toBe('taken');
  expect(readdirSync(folder)).toEqual(['lock']);
  if (typeof lock === 'object') await lock.release();
  expect(readdirSync(folder)).toEqual([]);
});
