import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type MediaFolder, openMediaFolder } from '../../../src/platform/packager/media-folder';
import { temporaryHome } from '../../support/start-packager';

const opened: MediaFolder[] = [];

afterEach(() => {
  for (const folder of opened.splice(0)) folder.release();
});

function open(home: string): MediaFolder {
  const folder = openMediaFolder(home, Date.now);
  opened.push(folder);
  return folder;
}

/** The lock of a packager that was killed, or is elsewhere. */
function lock(home: string, holder: object, ageSeconds = 0): void {
  const path = join(home, 'packager-media', 'lock.json');
  mkdirSync(join(home, 'packager-media'), { recursive: true });
  writeFileSync(path, JSON.stringify(holder));
  const seconds = Date.now() / 1000 - ageSeconds;
  utimesSync(path, seconds, seconds);
}

const NEVER_A_PROCESS = 2 ** 22 + 1;

test('the folder is found again with its streams, and without what was temporary', () => {
  const home = temporaryHome();
  const first = open(home);
  mkdirSync(first.of('news'));
  writeFileSync(join(first.temporary, 'rest'), '');
  first.release();
  const second = open(home);
  expect(second.ids()).toEqual(['news']);
  expect(existsSync(join(second.temporary, 'rest'))).toBe(false);
});

test('a process that waits for a packager that was killed to write to it ends', async () => {
  const home = temporaryHome();
  const first = open(home);
  const fifo = join(first.temporary, 'news-part-1-dash');
  execFileSync('mkfifo', [fifo, join(first.temporary, 'not-read')]);
  first.release();
  const reader = spawn('sh', ['-c', 'echo begun; exec cat "$0"', fifo]);
  await once(reader.stdout, 'data');
  // Until it has come to wait for a writer.
  await sleep(200);
  const ended = once(reader, 'close');
  open(home);
  expect(await ended).toEqual([0, null]);
});

test.each([
  ['that was killed', { pid: NEVER_A_PROCESS, host: hostname() }, 0],
  ['that had the same number in a container', { pid: process.pid, host: hostname() }, 0],
  ['of a machine that has not been heard of', { pid: 1, host: 'elsewhere' }, 60],
  ['whose lock was torn', {}, 0],
])('the lock of a packager %s is taken over', (_, holder, age) => {
  const home = temporaryHome();
  lock(home, holder, age);
  const { path } = open(home);
  expect(JSON.parse(readFileSync(join(path, 'lock.json'), 'utf8'))).toEqual({
    pid: process.pid,
    host: hostname(),
  });
});

test.each([
  ['that runs', { pid: process.ppid, host: hostname() }, `process ${process.ppid}`],
  ['of another machine', { pid: 7, host: 'elsewhere' }, 'process 7 of elsewhere'],
])('the folder of a packager %s is refused', (_, holder, who) => {
  const home = temporaryHome();
  lock(home, holder);
  expect(() => open(home)).toThrow(`another packager (${who}) uses`);
});

test('a link in the place of the folder is refused', () => {
  const home = temporaryHome();
  mkdirSync(join(home, 'other'));
  symlinkSync('other', join(home, 'packager-media'));
  expect(() => open(home)).toThrow('is not a folder of the user that the packager runs as');
});

test('a folder that can not be made is told with why', () => {
  const home = temporaryHome();
  writeFileSync(join(home, 'file'), '');
  expect(() => open(join(home, 'file'))).toThrow(/PACKAGER_FOLDER: .* can't be used \(E\w+\)/);
});
