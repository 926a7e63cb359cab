import { readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import {
  createDurableWriter,
  type DurableWriter,
  type WritePhase,
} from '../../../src/sidecar/storage/durable-file';
import { folderOfEachTest, temporaryFolder } from '../../support/after-test';
import * as faulty from '../../support/faulty-fs';

jest.mock('node:fs', () => jest.requireActual('../../support/faulty-fs').faultyFs);

const ID = '0c0ffee0-0000-4000-8000-000000000001';
const TEMPORARY = `.packagerdrmapi-${ID}-1.tmp`;

const folder = folderOfEachTest();
const path = join(folder, 'live.key');
let writer: DurableWriter;

// Takes bits of 0640 and of 0600 away, so that every mode has to be set.
const umask = process.umask(0o277);
afterAll(() => process.umask(umask));

beforeEach(() => {
  process.umask(0o277);
  writer = createDurableWriter(() => ID);
  faulty.reset();
});

/** The calls in the order of their starts, with names in place of paths. */
function calls(): string[] {
  return faulty
    .recorded()
    .filter(({ moment }) => moment === 'start')
    .map(({ call, path, more }) => {
      const name = path === folder ? 'folder' : basename(path);
      if (call === 'open') return `open ${name} ${more[0]}`;
      if (call === 'rename') return `rename ${name} to ${basename(String(more[0]))}`;
      return `${call} ${name}`;
    });
}

test('writes next to the target, syncs the data, renames, and syncs the folder, in this order', async () => {
  await writer.write(path, Buffer.from('name: value\n'), 0o640);
  expect(calls()).toEqual([
    `open ${TEMPORARY} wx`,
    `fchmod ${TEMPORARY}`,
    `write ${TEMPORARY}`,
    `fdatasync ${TEMPORARY}`,
    `close ${TEMPORARY}`,
    `rename ${TEMPORARY} to live.key`,
    'open folder r',
    'fsync folder',
    'close folder',
  ]);
  // Each call ends before the next one starts.
  const moments = faulty.recorded().map(({ moment }) => moment);
  expect(moments).toEqual(Array.from({ length: 9 }, () => ['start', 'end']).flat());
  expect(readFileSync(path, 'utf8')).toBe('name: value\n');
});

test('sets no mode that the new file has already', async () => {
  process.umask(0o022);
  await writer.write(path, Buffer.from('name: value\n'), 0o640);
  expect(calls()).not.toContain(`fchmod ${TEMPORARY}`);
});

test('removes a file and syncs the folder', async () => {
  writeFileSync(path, 'name: value\n');
  await writer.remove(path);
  expect(calls()).toEqual(['unlink live.key', 'open folder r', 'fsync folder', 'close folder']);
  expect(readdirSync(folder)).toEqual([]);
});

test('probes with a file that is written, synced and removed', async () => {
  await writer.probe(folder);
  expect(calls()).toEqual([
    `open ${TEMPORARY} wx`,
    `fchmod ${TEMPORARY}`,
    `write ${TEMPORARY}`,
    `fdatasync ${TEMPORARY}`,
    `close ${TEMPORARY}`,
    `unlink ${TEMPORARY}`,
  ]);
  expect(readdirSync(folder)).toEqual([]);
});

test.each<[what: string, start: () => Promise<unknown>]>([
  ['write', () => writer.write(path, Buffer.from('new\n'), 0o640)],
  ['probe', () => writer.probe(folder)],
])('holds up nobody by a %s', async (_what, start) => {
  // A call that ends at once can't be held.
  const gates = (['open', 'write'] as const).map(faulty.hold);
  const started = start();
  for (const { reached, release } of gates) {
    await reached;
    release();
  }
  await started;
});

test('takes a probe whose file another service swept for a good one', async () => {
  const unlink = faulty.hold('unlink');
  const probe = writer.probe(folder);
  await unlink.reached;
  expect(await createDurableWriter(() => 'a').sweep(folder, 0)).toMatchObject({ temporaries: 1 });
  unlink.release();
  await expect(probe).resolves.toBeUndefined();
});

test.each(['open', 'fchmod', 'write', 'fdatasync', 'close', 'unlink'] as const)(
  'rejects a probe whose %s fails',
  async (call) => {
    faulty.fail(call, 1, 'EIO');
    await expect(writer.probe(folder)).rejects.toMatchObject({ code: 'EIO' });
    expect(faulty.openDescriptors()).toEqual([]);
  },
);

describe('mode', () => {
  test.each([
    ['0640', '0777'],
    ['0600', '0000'],
    ['0664', '0077'],
  ])('is %s under the umask %s, for a new file and for an overwritten one', async (octal, mask) => {
    const mode = Number.parseInt(octal, 8);
    process.umask(Number.parseInt(mask, 8));
    await writer.write(path, Buffer.from('new\n'), mode);
    expect(statSync(path).mode & 0o7777).toBe(mode);
    await writer.write(path, Buffer.from('over\n'), mode);
    expect(statSync(path).mode & 0o7777).toBe(mode);
  });

  test('is never wider than asked for, not even before it is set', async () => {
    process.umask(0);
    const write = faulty.hold('write');
    const writing = writer.write(path, Buffer.from('new\n'), 0o600);
    await write.reached;
    expect(statSync(join(folder, TEMPORARY)).mode & 0o7777).toBe(0o600);
    write.release();
    await writing;
  });
});

describe('the temporary', () => {
  test.each(['file', 'link'])('is never a %s that waits at its name', async (kind) => {
    const victim = join(folder, 'victim');
    writeFileSync(victim, 'precious\n');
    if (kind === 'link') symlinkSync(victim, join(folder, TEMPORARY));
    else writeFileSync(join(folder, TEMPORARY), 'precious\n');
    await expect(writer.write(path, Buffer.from('new\n'), 0o640)).rejects.toMatchObject({ code: 'EEXIST' });
    expect(readFileSync(join(folder, TEMPORARY), 'utf8')).toBe('precious\n');
    expect(readFileSync(victim, 'utf8')).toBe('precious\n');
    await writer.write(path, Buffer.from('new\n'), 0o640);
    expect(readFileSync(path, 'utf8')).toBe('new\n');
  });

  test('is made again when another service sweeps it before the rename', async () => {
    const rename = faulty.hold('rename');
    const writing = writer.write(path, Buffer.from('new\n'), 0o640);
    await rename.reached;
    expect(await createDurableWriter(() => 'a').sweep(folder, 0)).toMatchObject({ temporaries: 1 });
    rename.release();
    await writing;
    expect(readFileSync(path, 'utf8')).toBe('new\n');
    expect(readdirSync(folder).sort()).toEqual(['live.key']);
  });

  test('stays when its removal fails too, and the sweep of the next start takes it', async () => {
    writeFileSync(path, 'old\n');
    faulty.fail('rename', 1, 'EIO');
    faulty.fail('unlink', 1, 'EIO');
    await expect(writer.write(path, Buffer.from('new\n'), 0o640)).rejects.toMatchObject({ code: 'EIO' });
    expect(readdirSync(folder).sort()).toEqual([TEMPORARY, 'live.key']);
    expect(await createDurableWriter(() => 'a').sweep(folder, 0)).toMatchObject({ temporaries: 1 });
    expect(readFileSync(path, 'utf8')).toBe('old\n');
  });
});

test.each(['fchmod', 'write', 'fdatasync', 'close', 'rename'] as const)(
  'closes each descriptor once when %s fails',
  async (call) => {
    faulty.fail(call, 1, 'EIO');
    await expect(writer.write(path, Buffer.from('new\n'), 0o640)).rejects.toMatchObject({ code: 'EIO' });
    expect(faulty.openDescriptors()).toEqual([]);
    expect(calls().filter((line) => line === 'close no open descriptor')).toEqual([]);
  },
);

test('goes on after a short write until all bytes are written', async () => {
  const text = Array.from({ length: 100 }, (_, index) => `name-${index}: value\n`).join('');
  faulty.shortenWrites(7);
  await writer.write(path, Buffer.from(text), 0o640);
  expect(readFileSync(path, 'utf8')).toBe(text);
  expect(calls().filter((line) => line.startsWith('write'))).toHaveLength(Math.ceil(text.length / 7));
});

test('keeps the old content when the disk fills up in the middle of the new', async () => {
  writeFileSync(path, 'old\n');
  faulty.shortenWrites(7);
  faulty.fail('write', 3, 'ENOSPC');
  const writing = writer.write(path, Buffer.from('a text of more than three writes\n'), 0o640);
  await expect(writing).rejects.toMatchObject({ code: 'ENOSPC' });
  expect(readFileSync(path, 'utf8')).toBe('old\n');
  expect(readdirSync(folder)).toEqual(['live.key']);
});

test('says what kept the folder from being synced, when only that failed', async () => {
  faulty.fail('fsync', 1, 'EIO');
  const notSynced = { cause: expect.objectContaining({ code: 'EIO' }) };
  expect(await writer.write(path, Buffer.from('new\n'), 0o640)).toEqual(notSynced);
  expect(readFileSync(path, 'utf8')).toBe('new\n');
  expect(faulty.openDescriptors()).toEqual([]);
  faulty.reset();
  faulty.fail('fsync', 1, 'EIO');
  expect(await writer.remove(path)).toEqual(notSynced);
  expect(readdirSync(folder)).toEqual([]);
});

describe('the sync of a folder', () => {
  test.each(['EINVAL', 'ENOTSUP'])('counts as done where the file system has none (%s)', async (code) => {
    faulty.fail('fsync', 1, code);
    expect(await writer.write(path, Buffer.from('new\n'), 0o640)).toBeUndefined();
    expect(readFileSync(path, 'utf8')).toBe('new\n');
    expect(faulty.openDescriptors()).toEqual([]);
  });

  test('is shared by those who ask while one is under way, and only with each other', async () => {
    const done: string[] = [];
    const write = (name: string) =>
      writer.write(join(folder, name), Buffer.from(name), 0o640).then(() => done.push(name));
    const first = faulty.hold('fsync');
    const a = write('a.key');
    await first.reached;
    const second = faulty.hold('fsync');
    const others = [write('b.key'), write('c.key'), write('d.key')];
    await faulty.ended('rename', 4);
    first.release();
    await a;
    await second.reached;
    expect(done).toEqual(['a.key']);
    second.release();
    await Promise.all(others);
    expect(done.sort()).toEqual(['a.key', 'b.key', 'c.key', 'd.key']);
    expect(calls().filter((line) => line === 'fsync folder')).toHaveLength(2);
  });

  test('has started after the rename and ended before the answer, for each of 200 parallel writes', async () => {
    const names = Array.from({ length: 200 }, (_, index) => `${index}.key`);
    const answered = new Map<string, number>();
    await Promise.all(
      names.map(async (name) => {
        await writer.write(join(folder, name), Buffer.from(name), 0o640);
        answered.set(name, faulty.recorded().length);
      }),
    );
    const events = faulty.recorded();
    const unsynced = names.filter((name) => {
      const renamed = events.findIndex(
        ({ call, moment, more }) => call === 'rename' && moment === 'end' && more[0] === join(folder, name),
      );
      const synced = events.findIndex(
        ({ call, moment }, index) => call === 'fsync' && moment === 'start' && index > renamed,
      );
      const ended = events.findIndex(
        ({ call, moment }, index) => call === 'fsync' && moment === 'end' && index > synced,
      );
      return synced < 0 || ended < 0 || ended >= (answered.get(name) ?? 0);
    });
    expect(unsynced).toEqual([]);
  });

  test('that fails is reported to all who share it, and to none of the next', async () => {
    const first = faulty.hold('fsync');
    const a = writer.syncFolder(folder);
    await first.reached;
    faulty.fail('fsync', 2, 'EIO');
    const shared = Promise.allSettled([writer.syncFolder(folder), writer.syncFolder(folder)]);
    first.release();
    await expect(a).resolves.toBeUndefined();
    expect((await shared).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await expect(writer.syncFolder(folder)).resolves.toBeUndefined();
  });

  test('that fails does not keep the next one from starting', async () => {
    const first = faulty.hold('fsync');
    faulty.fail('fsync', 1, 'EIO');
    const a = writer.syncFolder(folder);
    await first.reached;
    const b = writer.syncFolder(folder);
    first.release();
    await expect(a).rejects.toMatchObject({ code: 'EIO' });
    await expect(b).resolves.toBeUndefined();
    const syncs = faulty.recorded().filter(({ call, moment }) => call === 'fsync' && moment === 'end');
    expect(syncs).toHaveLength(2);
  });

  test('of one folder waits for none of another', async () => {
    const other = await temporaryFolder();
    const gate = faulty.hold('fsync');
    const held = writer.syncFolder(folder);
    await gate.reached;
    await expect(writer.syncFolder(other)).resolves.toBeUndefined();
    gate.release();
    await held;
  });
});

describe('with an observer', () => {
  test('reports the phases of a write, in turn and with the time each took', async () => {
    let clock = 0;
    const phases: [WritePhase, number][] = [];
    const observed = createDurableWriter(() => 'b', {
      now: () => {
        clock += 3;
        return clock;
      },
      observe: (phase, ms) => phases.push([phase, ms]),
    });
    await observed.write(path, Buffer.from('new\n'), 0o640);
    expect(phases).toEqual([
      ['temporary', 3],
      ['sync', 3],
      ['rename', 3],
      ['folder_sync', 3],
    ]);
  });

  test('reports no phase that failed, and nothing of a probe', async () => {
    const phases: WritePhase[] = [];
    const observed = createDurableWriter(() => 'b', { now: () => 0, observe: (phase) => phases.push(phase) });
    await observed.probe(folder);
    faulty.reset();
    faulty.fail('fdatasync', 1, 'EIO');
    await expect(observed.write(path, Buffer.from('new\n'), 0o640)).rejects.toMatchObject({ code: 'EIO' });
    expect(phases).toEqual(['temporary']);
  });
});
