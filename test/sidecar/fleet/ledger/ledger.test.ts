import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import * as fc from 'fast-check';
import type { StreamId } from '../../../../src/api/stream-id';
import { apiError } from '../../../../src/sidecar/errors';
import {
  createFolderCheck,
  type Ledger,
  type LedgerHead,
  type LedgerRecord,
  openLedger,
} from '../../../../src/sidecar/fleet/ledger/ledger';
import { folderOfEachTest } from '../../../support/after-test';
import { type LogLine, recordedLog } from '../../../support/recorded-log';

const LIVE = 'live' as StreamId;
const OTHER = 'site/other' as StreamId;

const folder = folderOfEachTest();
let lines: LogLine[] = [];
let ids = 0;
const opened: Ledger[] = [];

beforeEach(() => {
  ids = 0;
});

afterEach(async () => {
  for (const ledger of opened.splice(0)) await ledger.close();
});

const path = () => join(folder, '.packagerdrmapi-fleet', 'ledger');
const fileLines = () => readFileSync(path(), 'utf8').split('\n').slice(0, -1);

async function open(slackLines?: number): Promise<Ledger> {
  const recorded = recordedLog();
  lines = recorded.lines;
  const newId = () => {
    ids += 1;
    return `id-${ids}`;
  };
  const ledger = await openLedger(folder, { newId, log: recorded.log }, slackLines);
  opened.push(ledger);
  return ledger;
}

async function reopen(ledger: Ledger): Promise<Ledger> {
  await ledger.close();
  return open();
}

const recordsOf = (ledger: Ledger) => Object.fromEntries(ledger.records());
const record = (version: number, tag: string | undefined = `"tag ${version}"`): LedgerRecord => ({
  version,
  revision: version + 1000,
  tag,
});

test('is empty at first, in a folder that no other user can enter', async () => {
  const ledger = await open();
  expect(ledger.head).toEqual({ id: 'id-1', highest: 0 });
  expect([recordsOf(ledger), ledger.get(LIVE)]).toEqual([{}, undefined]);
  expect(statSync(join(folder, '.packagerdrmapi-fleet')).mode & 0o7777).toBe(0o700);
  expect(statSync(path()).mode & 0o7777).toBe(0o600);
  expect(lines).toEqual([]);
});

test('has its id, its head and its records again after a restart', async () => {
  const ledger = await open();
  const { id } = ledger.head;
  await Promise.all([
    ledger.note(LIVE, record(5)),
    ledger.note(OTHER, { ...record(7), tag: undefined, former: '"older"' }),
    ledger.note('kept' as StreamId, { ...record(6), kept: true }),
    ledger.noteHead({ fleet: 'fleet 1' }),
    ledger.noteHead({ levelled: 'news' }),
  ]);
  const again = await reopen(ledger);
  const head: LedgerHead = { id, fleet: 'fleet 1', levelled: 'news', highest: 7 };
  expect(again.head).toEqual(head);
  expect([...again.records()]).toHaveLength(3);
  expect(recordsOf(again)).toEqual({
    [LIVE]: record(5),
    [OTHER]: { version: 7, revision: 1007, tag: undefined, former: '"older"' },
    kept: { ...record(6), kept: true },
  });
  expect(again.get('kept' as StreamId)?.kept).toBe(true);
  expect(lines).toEqual([]);
});

test('has a record once it is on disk, and with it the tag before while they differ', async () => {
  const ledger = await open();
  await ledger.note(LIVE, record(1));
  const noted = ledger.note(LIVE, record(2));
  expect(ledger.get(LIVE)).toEqual(record(1));
  await noted;
  expect(ledger.get(LIVE)).toEqual({ ...record(2), former: '"tag 1"' });
  await ledger.note(LIVE, { ...record(3), former: '"what stands there"' });
  expect(ledger.get(LIVE)).toEqual({ ...record(3), former: '"what stands there"' });
  await ledger.note(LIVE, { ...record(4), tag: '"tag 3"' });
  expect(ledger.get(LIVE)).toEqual({ version: 4, revision: 1004, tag: '"tag 3"' });
  await ledger.note(LIVE, { version: 5, revision: 1005, tag: undefined });
  const gone = { version: 5, revision: 1005, tag: undefined, former: '"tag 3"' };
  expect(ledger.get(LIVE)).toEqual(gone);
  expect((await reopen(ledger)).get(LIVE)).toEqual(gone);
});

test('reads the line with which former releases forgot a record', async () => {
  const ledger = await open();
  await ledger.note(LIVE, record(1));
  await ledger.close();
  appendFileSync(path(), `${crc32('["live"]').toString(16).padStart(8, '0')} ["live"]\n`);
  const again = await open();
  expect([[...again.records()].length, lines, fileLines().length]).toEqual([0, [], 1]);
});

test('has all whole lines whatever the last one was cut to, and writes on after them', async () => {
  const ledger = await open();
  await ledger.note(LIVE, record(1));
  await ledger.note(OTHER, record(2));
  await ledger.close();
  const whole = readFileSync(path());
  const start = whole.subarray(0, -1).lastIndexOf('\n') + 1;
  for (let length = start; length < whole.length; length += 1) {
    writeFileSync(path(), whole.subarray(0, length));
    const cut = await open();
    expect(recordsOf(cut)).toEqual({ [LIVE]: record(1) });
    expect(lines).toEqual([]);
    await cut.note(OTHER, record(3));
    const again = await reopen(cut);
    expect(recordsOf(again)).toEqual({ [LIVE]: record(1), [OTHER]: record(3) });
    expect(lines).toEqual([]);
    await again.close();
  }
});

test('loses of damaged lines these alone, and logs their number once', async () => {
  const ledger = await open();
  for (let index = 0; index < 6; index += 1) await ledger.note(`s${index}` as StreamId, record(index + 1));
  await ledger.close();
  const [head = '', s0 = '', s1 = '', s2 = '', s3 = '', s4 = '', s5 = ''] = fileLines();
  const damaged = [head, s0, s1.replace('tag 2', 'tag 9'), '', s2, '\0'.repeat(100), s3, `${s4}x`, s5];
  writeFileSync(path(), `${damaged.join('\n')}\n`);
  const again = await open();
  expect([...again.records()].map(([stream]) => stream)).toEqual(['s0', 's2', 's3', 's5']);
  expect(lines).toEqual([
    ['error', 'lines of the ledger of the fleet are damaged and ignored', { damaged: 4 }],
  ]);
  expect(again.head).toEqual(ledger.head);
  await reopen(again);
  expect(lines).toEqual([]);
});

test('takes any other bytes for damaged lines', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (bytes) => {
      const ledger = await open();
      await ledger.note(LIVE, record(1));
      await ledger.close();
      appendFileSync(path(), Buffer.concat([bytes, Buffer.from('\n')]));
      const again = await open();
      expect(recordsOf(again)).toEqual({ [LIVE]: record(1) });
      await again.close();
    }),
    { numRuns: 30 },
  );
});

test('draws a new id when the head is lost, and keeps the records', async () => {
  const ledger = await open();
  await ledger.note(LIVE, record(1));
  await ledger.close();
  writeFileSync(path(), `${fileLines().slice(1).join('\n')}\n`);
  const again = await open();
  expect(again.head.id).not.toBe(ledger.head.id);
  expect([again.head.highest, recordsOf(again)]).toEqual([1, { [LIVE]: record(1) }]);
  expect((await reopen(again)).head).toEqual(again.head);
});

type Step =
  | { readonly do: 'note'; readonly stream: number; readonly version: number; readonly hasTag: boolean }
  | { readonly do: 'forget'; readonly stream: number }
  | { readonly do: 'head'; readonly highest: number }
  | { readonly do: 'reopen' | 'cut' };

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('note' as const),
      stream: fc.nat(4),
      version: fc.nat(1000),
      hasTag: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('forget' as const), stream: fc.nat(4) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('head' as const), highest: fc.nat(2000) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('reopen', 'cut') }) },
);

test('has what a plain map would, whatever is done in whatever order', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { maxLength: 40 }), async (steps) => {
      rmSync(join(folder, '.packagerdrmapi-fleet'), { recursive: true, force: true });
      let ledger = await open();
      const written = new Map<string, LedgerRecord>();
      let model = new Map<string, LedgerRecord>();
      let highest = 0;
      for (const step of [...steps, { do: 'reopen' } as const]) {
        if (step.do === 'note') {
          const name = `s${step.stream}`;
          const next = record(step.version, step.hasTag ? `"${step.version % 3}"` : undefined);
          const before = model.get(name)?.tag;
          await ledger.note(name as StreamId, next);
          const noted = { ...next, former: before === next.tag ? undefined : before };
          for (const map of [model, written]) map.set(name, noted);
          highest = Math.max(highest, step.version);
        } else if (step.do === 'forget') {
          ledger.forget(`s${step.stream}` as StreamId);
          model.delete(`s${step.stream}`);
        } else if (step.do === 'head') {
          await ledger.noteHead({ highest: step.highest });
          highest = Math.max(highest, step.highest);
        } else {
          await ledger.close();
          if (step.do === 'cut') appendFileSync(path(), '00000000 ["s1",5');
          ledger = await open();
          model = new Map(written);
        }
        expect(recordsOf(ledger)).toEqual(Object.fromEntries(model));
        expect([[...ledger.records()].length, ledger.head.highest, lines]).toEqual([model.size, highest, []]);
      }
      await ledger.close();
    }),
    { numRuns: 25 },
  );
});

test('is rewritten while it is used, and has all that was noted meanwhile', async () => {
  const ledger = await open(100);
  let most = 0;
  const expected: Record<string, LedgerRecord> = {};
  for (let round = 0; round < 60; round += 1) {
    const noted = Array.from({ length: 20 }, (_, index) => {
      const streamId = `s${(round * 7 + index) % 50}` as StreamId;
      const next = record(round * 20 + index, '"same"');
      expected[streamId] = next;
      return ledger.note(streamId, next);
    });
    await Promise.all(noted);
    most = Math.max(most, statSync(path()).size);
  }
  expect(recordsOf(ledger)).toEqual(expected);
  const again = await reopen(ledger);
  expect(recordsOf(again)).toEqual(expected);
  const lineBytes = Buffer.byteLength(fileLines().at(-1) ?? '') + 1;
  // 1200 lines were written; no more than some 220 were there at a time.
  expect(most).toBeLessThan(250 * lineBytes);
  expect(fileLines()).toHaveLength(Object.keys(expected).length + 1);
  expect(lines).toEqual([]);
});

const FOLDER = "and must be a folder: the fleet's ledger lies there. Remove it.";
const FILE = "and must be a file: the fleet's ledger. Remove it.";

test.each<[refusal: string, spoil: (fleet: string) => void]>([
  [`FLEET is a symbolic link, ${FOLDER}`, (fleet) => symlinkSync('.', fleet)],
  [`FLEET is no plain file, ${FOLDER}`, (fleet) => writeFileSync(fleet, '')],
  [
    `FLEET/ledger is a symbolic link, ${FILE}`,
    (fleet) => {
      mkdirSync(fleet);
      writeFileSync(join(folder, 'victim'), 'as it was');
      symlinkSync('../victim', path());
    },
  ],
  [`FLEET/ledger is a folder, ${FILE}`, () => mkdirSync(path(), { recursive: true })],
])('refuses to open: %s', async (refusal, spoil) => {
  const fleet = join(folder, '.packagerdrmapi-fleet');
  spoil(fleet);
  await expect(open()).rejects.toThrow(new Error(refusal.replace('FLEET', fleet)));
});

test('takes the rights away that others were given', async () => {
  await (await open()).close();
  chmodSync(path(), 0o666);
  chmodSync(join(folder, '.packagerdrmapi-fleet'), 0o777);
  await open();
  expect(statSync(path()).mode & 0o777).toBe(0o600);
  expect(statSync(join(folder, '.packagerdrmapi-fleet')).mode & 0o777).toBe(0o700);
});

test('is refused to a second process, and free when it is closed', async () => {
  const ledger = await open();
  await expect(open()).rejects.toThrow(
    /\.packagerdrmapi-fleet is in use by another sidecar\. In a fleet each sidecar needs/,
  );
  await ledger.note(LIVE, record(1));
  expect(recordsOf(await reopen(ledger))).toEqual({ [LIVE]: record(1) });
});

test('takes over the lock of a process that was killed', async () => {
  const path = join(folder, '.packagerdrmapi-fleet', 'lock');
  await (await open()).close();
  const script = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 9))`;
  const { signal } = spawnSync(process.execPath, ['-e', script]);
  expect([signal, lstatSync(path).isSocket()]).toEqual(['SIGKILL', true]);
  const ledger = await open();
  await ledger.note(LIVE, record(1));
  await expect(open()).rejects.toThrow('is in use by another sidecar');
});

test.each<[what: string, replace: () => void]>([
  [
    'another folder is at its place',
    () => {
      renameSync(join(folder, '.packagerdrmapi-fleet'), join(folder, '.aside'));
      mkdirSync(join(folder, '.packagerdrmapi-fleet'));
      writeFileSync(path(), '');
    },
  ],
  ['its folder is gone', () => rmSync(join(folder, '.packagerdrmapi-fleet'), { recursive: true })],
  ['its lock is gone', () => rmSync(join(folder, '.packagerdrmapi-fleet', 'lock'))],
])('notes nothing more when %s', async (_what, replace) => {
  const ledger = await open();
  await ledger.note(LIVE, record(1));
  replace();
  await expect(ledger.note(LIVE, record(2))).rejects.toMatchObject({ code: 'ENODEV' });
  await expect(ledger.noteHead({ levelled: 'news' })).rejects.toMatchObject({ code: 'ENODEV' });
  expect(recordsOf(ledger)).toEqual({ [LIVE]: record(1) });
  expect(ledger.head).toEqual({ id: ledger.head.id, highest: 1 });
});

test('takes nothing more when it is closed', async () => {
  const ledger = await open();
  const noted = ledger.note(LIVE, record(1));
  await ledger.close();
  await noted;
  await expect(ledger.note(LIVE, record(2))).rejects.toThrow('The ledger is closed');
  await expect(ledger.noteHead({ highest: 5 })).rejects.toThrow('The ledger is closed');
  ledger.forget(LIVE);
  await ledger.close();
  expect(recordsOf(await open())).toEqual({ [LIVE]: record(1) });
});

test('a file that cannot be read hides no others that were removed', () => {
  const streams = ['removed', 'folder', 'wiped'] as StreamId[];
  const look = createFolderCheck(
    { records: () => streams.map((streamId) => [streamId, record(1)] as const).values() },
    {
      read(streamId) {
        if (streamId === 'folder') throw apiError('key_files_not_readable', 'There is a folder.');
        return undefined;
      },
    },
  );
  expect(look(10)).toEqual(['removed', 'wiped']);
});
