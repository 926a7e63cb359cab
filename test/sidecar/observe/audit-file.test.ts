import {
  appendFileSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { MAX_WAITING } from '../../../src/sidecar/observe/audit';
import { temporaryFolder } from '../../support/after-test';
import * as faulty from '../../support/faulty-fs';
import { auditLine, startAudit } from '../../support/start-audit';
import { until } from '../../support/until';

jest.mock('node:fs', () => jest.requireActual('../../support/faulty-fs').faultyFs);

const UNWRITABLE = 'audit lines cannot be written; they wait in memory';
const AGAIN = 'audit lines are written again';
const cause = (code: string) => expect.objectContaining({ code });

let folder: string;
let path: string;
const text = () => readFileSync(path, 'utf8');

beforeEach(async () => {
  folder = await temporaryFolder();
  path = join(folder, 'audit.log');
});

test('appends the lines in their order, to a file that nobody but owner and group may read', async () => {
  writeFileSync(path, 'an older line\n');
  const audit = startAudit(path);
  audit.change('a', 'b');
  await until(() => audit.waiting() === 0);
  audit.change('c');
  await audit.close();
  expect(text()).toBe(`an older line\n${auditLine('a')}${auditLine('b')}${auditLine('c')}`);
  expect(audit.logged).toEqual([]);
});

test('makes file and folder at the start, before there is a line', async () => {
  const umask = process.umask(0);
  path = join(folder, 'var', 'log', 'audit.log');
  const audit = startAudit(path);
  await until(() => faulty.openDescriptors().length === 0 && faulty.recorded().length > 0);
  await audit.close();
  process.umask(umask);
  expect(text()).toBe('');
  expect(statSync(path).mode & 0o7777).toBe(0o640);
  expect(statSync(join(folder, 'var')).mode & 0o7777).toBe(0o750);
});

test('leaves the mode of a file that is there as it is', async () => {
  writeFileSync(path, '', { mode: 0o600 });
  const audit = startAudit(path);
  audit.change('a');
  await audit.close();
  expect(statSync(path).mode & 0o7777).toBe(0o600);
});

test('writes what comes together in one write', async () => {
  const audit = startAudit(path);
  await until(() => faulty.recorded().some(({ call, moment }) => call === 'open' && moment === 'end'));
  faulty.reset();
  for (let count = 0; count < 1000; count += 1) audit.change(`request-${count}`);
  await until(() => audit.waiting() === 0);
  expect(faulty.recorded().filter(({ call, moment }) => call === 'write' && moment === 'end')).toHaveLength(
    1,
  );
  expect(text().split('\n')).toHaveLength(1001);
});

test.each<[what: string, rotate: () => void]>([
  ['in a new file when the old one was renamed', () => renameSync(path, `${path}.1`)],
  ['at the start of a file that was copied and truncated', () => truncateSync(path)],
])('goes on %s', async (_what, rotate) => {
  const audit = startAudit(path);
  audit.change('a');
  await until(() => audit.waiting() === 0);
  rotate();
  audit.change('b');
  await until(() => audit.waiting() === 0);
  expect(text()).toBe(auditLine('b'));
});

test('shares a file with another sidecar', async () => {
  const [one, other] = [startAudit(path), startAudit(path)];
  for (let count = 0; count < 50; count += 1) {
    one.change(`one-${count}`);
    other.change(`other-${count}`);
    await until(() => one.waiting() + other.waiting() === 0);
  }
  const lines = text().split(/(?<=\n)/);
  const wanted = Array.from({ length: 50 }, (_, count) => [
    auditLine(`one-${count}`),
    auditLine(`other-${count}`),
  ]);
  expect(lines.sort()).toEqual(wanted.flat().sort());
});

test('begins a line of its own behind half a line that a power cut left', async () => {
  writeFileSync(path, 'half a li');
  const audit = startAudit(path);
  audit.change('a');
  await audit.close();
  expect(text()).toBe(`half a li\n${auditLine('a')}`);
});

test('waits for the end of a line that another sidecar is writing', async () => {
  writeFileSync(path, 'half a li');
  const audit = startAudit(path);
  await until(() => faulty.recorded().some(({ call, moment }) => call === 'open' && moment === 'end'));
  appendFileSync(path, 'ne\n');
  audit.change('a');
  await audit.close();
  expect(text()).toBe(`half a line\n${auditLine('a')}`);
});

test.each(['EACCES', 'EROFS', 'EISDIR', 'EMFILE', 'ENOENT', 'EIO'])(
  'keeps the lines when the file cannot be opened (%s), reports it once, and writes them when it can',
  async (code) => {
    for (let nth = 1; nth <= 5; nth += 1) faulty.fail('open', nth, code);
    const audit = startAudit(path);
    audit.change('a');
    await until(() => faulty.recorded().filter(({ call }) => call === 'open').length > 2);
    audit.change('b');
    await until(() => audit.waiting() === 0);
    await until(() => audit.logged.length === 2);
    expect(text()).toBe(auditLine('a') + auditLine('b'));
    expect(audit.logged).toEqual([
      ['error', UNWRITABLE, { path, cause: cause(code) }],
      ['warn', AGAIN, { path, dropped: 0 }],
    ]);
    expect(audit.lost()).toBe(0);
  },
);

test('keeps the lines while its folder is gone for good, and makes it again when it may', async () => {
  path = join(folder, 'log', 'audit.log');
  const audit = startAudit(path);
  audit.change('a');
  await until(() => audit.waiting() === 0);
  rmSync(join(folder, 'log'), { recursive: true });
  writeFileSync(join(folder, 'log'), 'a file in its place');
  audit.change('b');
  await until(() => audit.logged.length === 1);
  expect([audit.waiting(), audit.logged]).toEqual([
    1,
    [['error', UNWRITABLE, { path, cause: cause('ENOTDIR') }]],
  ]);
  rmSync(join(folder, 'log'));
  await until(() => audit.waiting() === 0);
  expect(text()).toBe(auditLine('b'));
});

test.each([1, 7, 400])(
  'leaves no half line when a disk takes no more than %d bytes at a time',
  async (bytes) => {
    faulty.shortenWrites(bytes);
    const audit = startAudit(path);
    audit.change('a', 'b', 'c');
    await until(() => audit.waiting() === 0);
    expect(text()).toBe(auditLine('a') + auditLine('b') + auditLine('c'));
  },
);

describe('when the disk is full in the middle of a line', () => {
  /** The state of a full disk: `a` and half of `b` are written, the rest waits. */
  async function fillUp() {
    faulty.shortenWrites(auditLine('a').length + 10);
    faulty.fail('write', 2, 'ENOSPC');
    const audit = startAudit(path, { retryMs: 20 });
    audit.change('a', 'b');
    await until(() => audit.logged.length === 1);
    expect(text()).toBe(auditLine('a') + auditLine('b').slice(0, 10));
    return audit;
  }

  test('goes on with the rest of it', async () => {
    const audit = await fillUp();
    audit.change('c');
    await until(() => audit.waiting() === 0);
    expect(text()).toBe(auditLine('a') + auditLine('b') + auditLine('c'));
    expect(audit.logged).toEqual([
      ['error', UNWRITABLE, { path, cause: cause('ENOSPC') }],
      ['warn', AGAIN, { path, dropped: 0 }],
    ]);
  });

  test.each<[what: string, meanwhile: () => void, before: string]>([
    ['into a new file when the old one is renamed', () => renameSync(path, `${path}.1`), ''],
    ['when the file is truncated', () => truncateSync(path), ''],
    [
      'in a line of its own when another has appended',
      () => appendFileSync(path, 'theirs'),
      `${auditLine('a')}${auditLine('b').slice(0, 10)}theirs\n`,
    ],
  ])('writes it whole %s meanwhile', async (_what, meanwhile, before) => {
    const audit = await fillUp();
    meanwhile();
    await until(() => audit.waiting() === 0);
    expect(text()).toBe(before + auditLine('b'));
  });
});

test('keeps the older lines and counts the newer ones when the disk stays full', async () => {
  symlinkSync('/dev/full', path);
  const audit = startAudit(path);
  const size = auditLine('request-000000').length;
  const fitting = Math.floor(MAX_WAITING / size);
  for (let count = 0; count < fitting + 100; count += 1) {
    audit.change(`request-${String(count).padStart(6, '0')}`);
  }
  expect([audit.waiting(), audit.lost()]).toEqual([fitting, 100]);
  await until(() => audit.logged.length === 1);
  expect([audit.waiting(), audit.lost()]).toEqual([fitting, 100]);
  audit.change('request-dropped');
  rmSync(path);
  await until(() => audit.waiting() === 0);
  await until(() => audit.logged.length === 2);
  const lines = text().split(/(?<=\n)/);
  expect([lines.length, lines.at(0), lines.at(-1)]).toEqual([
    fitting,
    auditLine('request-000000'),
    auditLine(`request-${String(fitting - 1).padStart(6, '0')}`),
  ]);
  expect([audit.lost(), audit.logged]).toEqual([
    101,
    [
      ['error', UNWRITABLE, { path, cause: cause('ENOSPC') }],
      ['warn', AGAIN, { path, dropped: 1 }],
    ],
  ]);
  audit.change('after');
  await until(() => audit.waiting() === 0);
  expect([audit.lost(), text().endsWith(auditLine('after'))]).toEqual([101, true]);
});

test('ends, and reports how many lines are lost, when the disk is full at the stop', async () => {
  symlinkSync('/dev/full', path);
  const audit = startAudit(path);
  audit.change('a', 'b');
  await until(() => audit.logged.length === 1);
  await audit.close();
  expect(audit.logged.slice(1)).toEqual([
    ['error', 'audit lines are lost: they could not be written before the stop', { count: 2 }],
  ]);
});

test('ends when the file system hangs', async () => {
  const audit = startAudit(path, { closeMs: 1 });
  const gate = faulty.hold('write');
  audit.change('a');
  await gate.reached;
  await audit.close();
  expect(audit.logged).toEqual([
    ['error', 'audit lines are lost: they could not be written before the stop', { count: 1 }],
  ]);
  gate.release();
});

test('takes entries while and after it is closed, and writes them at the end of the process at the latest', async () => {
  const audit = startAudit(path, { batchMs: 60_000 });
  audit.change('a');
  const closed = audit.close();
  audit.change('b');
  await closed;
  expect(text()).toBe(auditLine('a') + auditLine('b'));
  audit.change('c');
  const elsewhere = join(folder, 'hangs.log');
  const hanging = startAudit(elsewhere, { closeMs: 1 });
  const gate = faulty.hold('write');
  hanging.change('d');
  await gate.reached;
  await hanging.close();
  appendFileSync(path, 'theirs');
  process.emit('exit', 0);
  expect(readFileSync(elsewhere, 'utf8')).toBe('');
  gate.release();
  expect(text()).toBe(`${auditLine('a')}${auditLine('b')}theirs\n${auditLine('c')}`);
});

test('writes what comes after it was closed without waiting for the end', async () => {
  const audit = startAudit(path);
  await audit.close();
  audit.change('a');
  await until(() => audit.waiting() === 0);
  expect(text()).toBe(auditLine('a'));
});

test('writes no line twice when another one comes while it is closed', async () => {
  const audit = startAudit(path);
  await until(() => faulty.openDescriptors().length === 0 && faulty.recorded().length > 0);
  const gate = faulty.hold('write');
  audit.change('a');
  const closed = audit.close();
  await gate.reached;
  audit.change('b');
  await new Promise((resolve) => setTimeout(resolve, 20));
  gate.release();
  await closed;
  await until(() => audit.waiting() === 0);
  expect(text()).toBe(auditLine('a') + auditLine('b'));
  expect(audit.logged).toEqual([]);
});

test('takes entries while a write is under way, without waiting for it', async () => {
  const audit = startAudit(path);
  const gate = faulty.hold('write');
  audit.change('a');
  await gate.reached;
  audit.change('b', 'c');
  expect(audit.waiting()).toBe(3);
  gate.release();
  await until(() => audit.waiting() === 0);
  expect(text()).toBe(auditLine('a') + auditLine('b') + auditLine('c'));
});

test('leaves no descriptor open, whatever fails', async () => {
  writeFileSync(path, 'half a line');
  const opened = jest.spyOn(faulty.faultyFs, 'openSync');
  const closed = jest.spyOn(faulty.faultyFs, 'closeSync');
  const read = jest.spyOn(faulty.faultyFs, 'readSync').mockImplementation(() => {
    throw Object.assign(new Error('EIO: injected'), { code: 'EIO' });
  });
  faulty.fail('write', 1, 'EIO');
  faulty.fail('open', 3, 'EIO');
  const audit = startAudit(path);
  audit.change('a');
  await until(() => audit.waiting() === 0);
  await audit.close();
  expect(faulty.openDescriptors()).toEqual([]);
  const descriptors = opened.mock.results.map(({ value }) => value);
  expect(descriptors).not.toEqual([]);
  expect(closed.mock.calls.flat()).toEqual(expect.arrayContaining(descriptors));
  for (const spy of [opened, closed, read]) spy.mockRestore();
});
