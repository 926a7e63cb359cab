import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type WatchedFiles, watchFiles } from '../../src/http/watched-file';
import { folderOfEachTest } from '../support/after-test';
import { recordedLog } from '../support/recorded-log';

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Lets the files be looked at; resolves when the next look is planned. */
async function look(times = 1): Promise<void> {
  for (let each = 0; each < times; each += 1) {
    jest.runOnlyPendingTimers();
    while (jest.getTimerCount() === 0) await turn();
  }
}

const folder = folderOfEachTest();
let events: string[];
let watched: WatchedFiles | undefined;

beforeEach(() => {
  events = [];
  jest.useFakeTimers({ doNotFake: ['setImmediate'] });
});

afterEach(() => {
  watched?.close();
  jest.useRealTimers();
});

const at = (name: string) => join(folder, name);

/** Follows files, and records faults as events. */
function follow(names: readonly string[], take: (contents: readonly Buffer[]) => void) {
  const error = (_message: string, { faults }: Readonly<Record<string, unknown>> = {}) => {
    events.push(`fault: ${faults}`);
  };
  watched = watchFiles(
    names.map((name) => [name, at(name)] as const),
    { log: { ...recordedLog().log, error }, message: 'kept', take },
  );
}

function watch(...names: string[]) {
  follow(names, (contents) => {
    const text = contents.map(String).join('+');
    if (text.includes('bad')) throw new Error(`cannot use ${text}`);
    events.push(text);
  });
}

const noFile = () => `fault: a: ${at('a')}: there is no such file`;

async function seen(...expected: string[]) {
  // A fault must last for two looks.
  await look(3);
  expect(events).toEqual(expected);
}

test('reads the files at once, and throws why they cannot be taken', () => {
  writeFileSync(at('a'), 'bad');
  expect(() => watch('a')).toThrow('cannot use bad');
  writeFileSync(at('a'), 'one');
  watch('a');
  expect(events).toEqual(['one']);
});

test('throws when a file is missing, no file, or too large', () => {
  expect(() => watch('absent')).toThrow(`${at('absent')}: there is no such file`);
  mkdirSync(at('sub'));
  expect(() => watch('sub')).toThrow(`${at('sub')} is not a file`);
  writeFileSync(at('file'), '');
  expect(() => watch('file/x')).toThrow(`${at('file/x')}: there is no such file`);
  writeFileSync(at('large'), Buffer.alloc(4 * 1024 * 1024 + 1));
  expect(() => watch('large')).toThrow(`${at('large')} has more than 4 MiB`);
});

test('does not wait for the writer of a pipe', async () => {
  await promisify(execFile)('mkfifo', [at('pipe')]);
  expect(() => watch('pipe')).toThrow('is not a file');
});

test('takes a file that is written in place', async () => {
  writeFileSync(at('a'), 'one');
  watch('a');
  writeFileSync(at('a'), 'two');
  await seen('one', 'two');
  writeFileSync(at('a'), 'one');
  await seen('one', 'two', 'one');
});

test('takes what a swapped link leads to, as Kubernetes mounts a secret', async () => {
  for (const [version, text] of Object.entries({ '..v1': 'one', '..v2': 'two' })) {
    mkdirSync(at(version));
    writeFileSync(at(`${version}/a`), text);
  }
  symlinkSync('..v1', at('..data'));
  symlinkSync('..data/a', at('a'));
  watch('a');
  symlinkSync('..v2', at('..data_tmp'));
  renameSync(at('..data_tmp'), at('..data'));
  await seen('one', 'two');
});

test('takes files that belong together as one', async () => {
  writeFileSync(at('a'), 'one');
  writeFileSync(at('b'), 'x');
  watch('a', 'b');
  writeFileSync(at('b'), 'y');
  await seen('one+x', 'one+y');
});

test('keeps its content and reports once a change that cannot be taken', async () => {
  writeFileSync(at('a'), 'one');
  watch('a');
  writeFileSync(at('a'), 'bad');
  await seen('one', 'fault: a: cannot use bad');
  writeFileSync(at('a'), 'bad again');
  await seen('one', 'fault: a: cannot use bad', 'fault: a: cannot use bad again');
  rmSync(at('a'));
  await seen('one', 'fault: a: cannot use bad', 'fault: a: cannot use bad again', noFile());
  mkdirSync(at('a'));
  const odd = `fault: a: ${at('a')} is not a file`;
  await seen('one', 'fault: a: cannot use bad', 'fault: a: cannot use bad again', noFile(), odd);
});

test('reports when the files can be used again, even as they were', async () => {
  writeFileSync(at('a'), 'one');
  watch('a');
  rmSync(at('a'));
  await seen('one', noFile());
  writeFileSync(at('a'), 'one');
  await seen('one', noFile(), 'one');
  rmSync(at('a'));
  await look();
  writeFileSync(at('a'), 'one');
  await seen('one', noFile(), 'one');
});

const asRoot = process.getuid?.() === 0;
(asRoot ? test.skip : test)('reports when it may not read a file any more', async () => {
  writeFileSync(at('a'), 'one');
  watch('a');
  chmodSync(at('a'), 0);
  await seen('one', `fault: a: ${at('a')}: this user may not read the file`);
});

test('says nothing of a file that is touched, or stays', async () => {
  writeFileSync(at('a'), 'one');
  watch('a');
  writeFileSync(at('a'), 'one');
  await look(3);
  expect(events).toEqual(['one']);
});

test('does not report a change that is taken back before its report', async () => {
  writeFileSync(at('a'), 'one');
  let takes = 0;
  follow(['a'], ([content]) => {
    takes += 1;
    if (String(content) === 'one') return;
    writeFileSync(at('a'), 'one');
    throw new Error('bad');
  });
  writeFileSync(at('a'), 'bad');
  await look(4);
  expect([takes, events]).toEqual([2, []]);
});

test('may be closed by who takes a change', async () => {
  writeFileSync(at('a'), 'one');
  follow(['a'], ([content]) => {
    events.push(String(content));
    watched?.close();
  });
  writeFileSync(at('a'), 'two');
  jest.runOnlyPendingTimers();
  while (events.length < 2) await turn();
  await turn();
  expect(jest.getTimerCount()).toBe(0);
});

test('looks no more when it is closed', async () => {
  writeFileSync(at('a'), 'one');
  watch('a');
  expect(jest.getTimerCount()).toBe(1);
  watched?.close();
  expect(jest.getTimerCount()).toBe(0);
});

test('keeps no process alive', () => {
  jest.useRealTimers();
  const timers = () => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
  writeFileSync(at('a'), 'one');
  const before = timers();
  watch('a');
  expect(timers()).toBe(before);
});
