import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StreamId } from '../../../../src/api/stream-id';
import { type Ledger, type LedgerRecord, openLedger } from '../../../../src/sidecar/fleet/ledger/ledger';
import { folderOfEachTest } from '../../../support/after-test';
import * as faulty from '../../../support/faulty-fs';
import { type LogLine, recordedLog } from '../../../support/recorded-log';
import { until } from '../../../support/until';

jest.mock('node:fs', () => jest.requireActual('../../../support/faulty-fs').faultyFs);

const LIVE = 'live' as StreamId;
const OTHER = 'site/other' as StreamId;
const NOT_REWRITTEN = 'the ledger of the fleet could not be rewritten and continues to grow';

/** It is rewritten behind so many lines. */
const SLACK = 100;

const folder = folderOfEachTest();
let lines: LogLine[] = [];
let ids = 0;
let ledger: Ledger;

const path = () => join(folder, '.packagerdrmapi-fleet', 'ledger');
const record = (version: number): LedgerRecord => ({ version, revision: 1, tag: '"tag"' });
const recordsOf = () => Object.fromEntries(ledger.records());

async function open(): Promise<void> {
  const recorded = recordedLog();
  lines = recorded.lines;
  const newId = () => {
    ids += 1;
    return `id-${ids}`;
  };
  ledger = await openLedger(folder, { newId, log: recorded.log }, SLACK);
}

async function reopen(): Promise<void> {
  await ledger.close();
  faulty.reset();
  await open();
}

/** After a restart it has these records, and no line of it is damaged. */
async function expectAgain(records: Record<string, LedgerRecord>): Promise<void> {
  await reopen();
  expect(recordsOf()).toEqual(records);
  expect(lines).toEqual([]);
}

beforeEach(async () => {
  await open();
  await ledger.note(LIVE, record(1));
  faulty.reset();
});

afterEach(() => ledger.close());

const starts = (call: faulty.FsCall) =>
  faulty.recorded().filter((event) => event.call === call && event.moment === 'start').length;

test.each<[what: string, call: faulty.FsCall, nth: number, code: string]>([
  ['there is no space', 'write', 1, 'ENOSPC'],
  ['there is space for a part of it', 'write', 3, 'ENOSPC'],
  ['the disk fails at the sync', 'fdatasync', 1, 'EIO'],
])('refuses what it cannot keep when %s, shows what was before, and continues after that', async (...row) => {
  const [, call, nth, code] = row;
  const before = readFileSync(path());
  const { head } = ledger;
  faulty.shortenWrites(10);
  faulty.fail(call, nth, code);
  const noted = [
    ledger.note(LIVE, record(2)),
    ledger.note(LIVE, record(3)),
    ledger.note(OTHER, record(4)),
    ledger.noteHead({ levelled: '' }),
  ];
  for (const each of noted) await expect(each).rejects.toMatchObject({ code });
  expect(recordsOf()).toEqual({ [LIVE]: record(1) });
  expect(ledger.head).toEqual(head);
  expect(readFileSync(path())).toEqual(before);
  await ledger.note(OTHER, record(5));
  await expectAgain({ [LIVE]: record(1), [OTHER]: record(5) });
});

test('cuts off later what it could not cut off at once, before it appends', async () => {
  const before = readFileSync(path());
  faulty.shortenWrites(10);
  faulty.fail('write', 2, 'ENOSPC');
  faulty.fail('ftruncate', 1, 'EIO');
  await expect(ledger.note(LIVE, record(2))).rejects.toMatchObject({ code: 'ENOSPC' });
  expect(readFileSync(path())).toHaveLength(before.length + 10);
  faulty.fail('ftruncate', 2, 'EIO');
  await expect(ledger.note(LIVE, record(3))).rejects.toMatchObject({ code: 'EIO' });
  await ledger.note(OTHER, record(4));
  await expectAgain({ [LIVE]: record(1), [OTHER]: record(4) });
});

test('has what was noted during a sync that failed, and the record on disk when that fails, too', async () => {
  const gate = faulty.hold('fdatasync');
  faulty.fail('fdatasync', 1, 'EIO');
  faulty.fail('fdatasync', 3, 'ENOSPC');
  const first = ledger.note(LIVE, record(2));
  await gate.reached;
  const second = ledger.note(LIVE, record(3));
  const head = ledger.noteHead({ fleet: 'fleet' });
  gate.release();
  await expect(first).rejects.toMatchObject({ code: 'EIO' });
  expect(ledger.get(LIVE)).toEqual(record(1));
  await Promise.all([second, head]);
  expect([ledger.get(LIVE), ledger.head.fleet]).toEqual([record(3), 'fleet']);
  await expect(ledger.note(LIVE, record(4))).rejects.toMatchObject({ code: 'ENOSPC' });
  await reopen();
  expect([ledger.get(LIVE), ledger.head.fleet]).toEqual([record(3), 'fleet']);
});

test('syncs once for all that is noted while a sync is under way', async () => {
  const gate = faulty.hold('fdatasync');
  const first = ledger.note(LIVE, record(2));
  await gate.reached;
  const more = Array.from({ length: 50 }, (_, index) => ledger.note(`s${index}` as StreamId, record(index)));
  gate.release();
  await Promise.all([first, ...more]);
  expect([starts('fdatasync'), starts('write')]).toEqual([2, 2]);
  await ledger.note(OTHER, record(5));
  // The folder was synced with the first line.
  expect([starts('fdatasync'), starts('fsync')]).toEqual([3, 0]);
});

test.each<[call: faulty.FsCall, nth: number, code: string]>([
  ['open', 2, 'EMFILE'],
  ['write', 1, 'ENOSPC'],
  ['fdatasync', 1, 'EIO'],
  ['rename', 1, 'EIO'],
])('opens with all it holds when it cannot be rewritten: %s number %i fails', async (call, nth, code) => {
  await ledger.note(OTHER, record(2));
  await ledger.note(OTHER, record(3));
  await ledger.close();
  const before = readFileSync(path());
  faulty.reset();
  faulty.fail(call, nth, code);
  await open();
  expect(lines).toEqual([['warn', NOT_REWRITTEN, { error: expect.objectContaining({ code }) }]]);
  expect(readFileSync(path())).toEqual(before);
  expect(recordsOf()).toEqual({ [LIVE]: record(1), [OTHER]: record(3) });
  await ledger.note(OTHER, record(4));
  await expectAgain({ [LIVE]: record(1), [OTHER]: record(4) });
});

test('continues with its new file when the disk fails as the former one is closed', async () => {
  await ledger.note(LIVE, record(2));
  await ledger.close();
  faulty.reset();
  faulty.fail('close', 1, 'EIO');
  await open();
  await ledger.note(OTHER, record(3));
  await expectAgain({ [LIVE]: record(2), [OTHER]: record(3) });
});

test('acknowledges nothing while its new name may be lost by a power cut', async () => {
  await ledger.note(LIVE, record(2));
  await ledger.close();
  faulty.reset();
  faulty.fail('fsync', 1, 'EIO');
  faulty.fail('fsync', 2, 'EIO');
  await open();
  await expect(ledger.note(LIVE, record(3))).rejects.toMatchObject({ code: 'EIO' });
  expect(ledger.get(LIVE)).toEqual(record(2));
  await ledger.note(LIVE, record(4));
  await expectAgain({ [LIVE]: record(4) });
});

test('goes on with the file it has when it cannot be rewritten while it is used', async () => {
  faulty.fail('rename', 1, 'EIO');
  const many = (version: number) =>
    Promise.all(Array.from({ length: 60 }, (_, index) => ledger.note(LIVE, record(version + index))));
  await many(100);
  await many(200);
  await until(() => lines.length > 0);
  expect(lines).toEqual([['warn', NOT_REWRITTEN, { error: expect.objectContaining({ code: 'EIO' }) }]]);
  await many(300);
  await many(400);
  await until(() => readFileSync(path()).length < 130 * 40);
  await ledger.note(OTHER, record(5));
  await expectAgain({ [LIVE]: record(459), [OTHER]: record(5) });
});

test('removes what a killed process left of a new file', async () => {
  await ledger.close();
  writeFileSync(`${path()}.new`, 'half of it');
  await open();
  expect(() => readFileSync(`${path()}.new`)).toThrow('ENOENT');
  expect(recordsOf()).toEqual({ [LIVE]: record(1) });
});

test('leaves no descriptor open, whatever fails', async () => {
  await ledger.close();
  const before = faulty.openDescriptors().length;
  faulty.reset();
  faulty.fail('open', 1, 'EACCES');
  await expect(open()).rejects.toMatchObject({ code: 'EACCES' });
  expect(faulty.openDescriptors()).toHaveLength(before);
  await open();
});
