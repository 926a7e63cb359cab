import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import fs from 'fs-extra';
import { parseStreamId, type StreamId } from '../../../src/api/stream-id';
import { HttpError } from '../../../src/http/errors';
import { createDurableWriter } from '../../../src/sidecar/storage/durable-file';
import {
  createKeyFileStore,
  type KeyFileStore,
  openKeyFilesFolder,
  queueByName,
} from '../../../src/sidecar/storage/key-file-store';
import { toStorageError } from '../../../src/sidecar/storage/open-file';
import { folderOfEachTest } from '../../support/after-test';
import * as faulty from '../../support/faulty-fs';
import { right } from '../../support/right';

jest.mock('node:fs', () => jest.requireActual('../../support/faulty-fs').faultyFs);

const ID = '0c0ffee0-0000-4000-8000-000000000001';

const folder = folderOfEachTest();
let store: KeyFileStore;

beforeEach(() => {
  store = createKeyFileStore(
    folder,
    0o640,
    createDurableWriter(() => ID),
  );
  faulty.reset();
});

const id = (text: string): StreamId => right(parseStreamId(text)).value;

/** The folders that were synced, in order; the key-file folder itself is `.`. */
function synced(): string[] {
  return faulty
    .recorded()
    .filter(({ call, moment }) => call === 'fsync' && moment === 'start')
    .map(({ path }) => (path === folder ? '.' : path.slice(folder.length + 1)));
}

function renamed(): string[] {
  return faulty
    .recorded()
    .filter(({ call, moment }) => call === 'rename' && moment === 'end')
    .map(({ more }) => basename(String(more[0])));
}

const mode = (...parts: string[]) => (statSync(join(folder, ...parts)).mode & 0o7777).toString(8);

describe('sub-folders', () => {
  const umask = process.umask();
  afterEach(() => process.umask(umask));

  test.each(['0000', '0077'])('are made with 0750 whatever the umask takes away (%s)', async (mask) => {
    process.umask(Number.parseInt(mask, 8));
    await store.write(id('site/Event/Live'), Buffer.from('name: value\n'));
    expect([mode('site'), mode('site', 'Event')]).toEqual(['750', '750']);
    expect(mode('site', 'Event', 'Live.key')).toBe('640');
  });

  test('keep the rights that they have', async () => {
    await fs.ensureDir(join(folder, 'site'), 0o700);
    await store.write(id('site/live'), Buffer.from('name: value\n'));
    expect(mode('site')).toBe('700');
  });

  test('are synced into their parents before the key file counts as written', async () => {
    await store.write(id('site/event/live'), Buffer.from('name: value\n'));
    expect(synced()).toEqual(['.', 'site', join('site', 'event')]);
  });

  test('are synced once, and again after somebody removed and a write remade them', async () => {
    await store.write(id('site/live'), Buffer.from('one\n'));
    faulty.reset();
    await store.write(id('site/live'), Buffer.from('two\n'));
    expect(synced()).toEqual(['site']);
    await fs.remove(join(folder, 'site'));
    faulty.reset();
    await store.write(id('site/live'), Buffer.from('three\n'));
    expect(synced()).toEqual(['.', 'site']);
  });

  test('of another write are synced, too: that they exist does not make them last', async () => {
    const gate = faulty.hold('fsync');
    const first = store.write(id('site/one'), Buffer.from('one\n'));
    await gate.reached;
    const second = store.write(id('site/two'), Buffer.from('two\n'));
    await new Promise((resolve) => setImmediate(resolve));
    expect(renamed()).toEqual([]);
    gate.release();
    await Promise.all([first, second]);
    expect(synced().filter((name) => name === '.')).toHaveLength(2);
  });

  test('that others made are synced into their parents, each by itself', async () => {
    for (const name of ['site/a', 'site/b', 'other/a']) await fs.ensureDir(join(folder, name));
    const syncedBy = async (name: string) => {
      faulty.reset();
      await store.write(id(name), Buffer.from('name: value\n'));
      return synced();
    };
    expect(await syncedBy('site/a/live')).toEqual(['.', 'site', 'site/a']);
    expect(await syncedBy('site/b/live')).toEqual(['site', 'site/b']);
    expect(await syncedBy('other/a/live')).toEqual(['.', 'other', 'other/a']);
    expect(await syncedBy('site/a/more')).toEqual(['site/a']);
  });

  const descriptors = '/proc/self/fd';
  (existsSync(descriptors) ? test : test.skip)('are held open no longer than they are used', async () => {
    const before = readdirSync(descriptors).length;
    for (let round = 0; round < 20; round += 1) {
      await store.write(id('site/event/live'), Buffer.from(`${round}\n`));
      store.read(id('site/event/live'));
      store.read(id('site/event/missing'));
      store.read(id('site/missing/live'));
      await store.remove(id('site/event/live'));
    }
    expect(readdirSync(descriptors).length).toBeLessThan(before + 20);
  });

  test('whose sync failed are synced by the next write', async () => {
    faulty.fail('fsync', 1, 'EIO');
    await expect(store.write(id('site/live'), Buffer.from('one\n'))).rejects.toMatchObject({ status: 500 });
    expect(await fs.readdir(join(folder, 'site'))).toEqual([]);
    faulty.reset();
    await store.write(id('site/live'), Buffer.from('two\n'));
    expect(synced()).toEqual(['.', 'site']);
  });
});

test('makes the changes of one stream one after another, in the order they were asked for', async () => {
  const gate = faulty.hold('fdatasync');
  const changes = [
    store.write(id('live'), Buffer.from('one\n')),
    store.write(id('live'), Buffer.from('two\n')),
    store.remove(id('live')),
    store.write(id('live'), Buffer.from('three\n')),
  ];
  await gate.reached;
  expect(store.read(id('live'))).toBeUndefined();
  expect(await fs.readdir(folder)).toHaveLength(1);
  gate.release();
  const [, , removed] = await Promise.all(changes);
  expect(removed).toEqual({ former: Buffer.from('two\n'), notSynced: undefined });
  expect(store.read(id('live'))).toEqual(Buffer.from('three\n'));
});

test('goes on with a stream after a change of it failed', async () => {
  faulty.fail('rename', 1, 'ENOSPC');
  const changes = await Promise.allSettled([
    store.write(id('live'), Buffer.from('one\n')),
    store.write(id('live'), Buffer.from('two\n')),
  ]);
  expect(changes).toEqual([
    { status: 'rejected', reason: expect.objectContaining({ status: 507 }) },
    { status: 'fulfilled', value: { former: undefined, notSynced: undefined } },
  ]);
  expect(store.read(id('live'))).toEqual(Buffer.from('two\n'));
});

test('refuses to read, replace or remove what is too large for a key file', async () => {
  const large = Buffer.alloc(1024 * 1024 + 1, 'a');
  await fs.writeFile(join(folder, 'live.key'), large);
  const refusal = { status: 409, problems: [expect.objectContaining({ code: 'not_a_key_file' })] };
  expect(() => store.read(id('live'))).toThrow(expect.objectContaining(refusal));
  await expect(store.write(id('live'), Buffer.from('one\n'))).rejects.toMatchObject(refusal);
  await expect(store.remove(id('live'))).rejects.toMatchObject(refusal);
  expect((await fs.readFile(join(folder, 'live.key'))).equals(large)).toBe(true);
});

test('shows a reader the old file whole until the new one is whole', async () => {
  await store.write(id('live'), Buffer.from('old\n'));
  for (const call of ['open', 'write', 'fdatasync', 'rename'] as const) {
    const gate = faulty.hold(call);
    const writing = store.write(id('live'), Buffer.from(`new after ${call}\n`));
    await gate.reached;
    const seen = store.read(id('live'))?.toString();
    expect(seen).not.toBe(`new after ${call}\n`);
    expect(seen).toMatch(/^(old|new after \w+)\n$/);
    gate.release();
    await writing;
    expect(store.read(id('live'))?.toString()).toBe(`new after ${call}\n`);
  }
});

describe('a folder that could not be synced after a change', () => {
  const text = Buffer.from('one\n');
  const keep = { skipUnchanged: true };

  test('is no reason to sync another', async () => {
    await store.write(id('site/live'), text);
    faulty.reset();
    faulty.fail('fsync', 1, 'EIO');
    await store.write(id('live'), text);
    faulty.reset();
    const unchanged = { former: text, notSynced: undefined };
    expect(await store.write(id('site/live'), text, keep)).toEqual(unchanged);
    expect(synced()).toEqual([]);
  });

  test.each(['live', 'site/live'])(
    'is reported with the change, and synced when it is requested again: %s',
    async (name) => {
      await store.write(id('site/other'), Buffer.from('other\n'));
      faulty.reset();
      faulty.fail('fsync', 1, 'EIO');
      const cause = expect.objectContaining({ code: 'EIO' });
      expect(await store.write(id(name), text)).toEqual({ former: undefined, notSynced: { cause } });
      faulty.reset();
      faulty.fail('fsync', 1, 'EIO');
      expect(await store.write(id(name), text, keep)).toEqual({ former: text, notSynced: { cause } });
      faulty.reset();
      expect(await store.write(id(name), text, keep)).toEqual({ former: text, notSynced: undefined });
      expect(synced()).toEqual([name.includes('/') ? 'site' : '.']);
      faulty.reset();
      expect(await store.write(id(name), text, keep)).toEqual({ former: text, notSynced: undefined });
      expect(synced()).toEqual([]);
      faulty.fail('fsync', 1, 'ENOSPC');
      expect(await store.remove(id(name))).toMatchObject({
        former: text,
        notSynced: { cause: { code: 'ENOSPC' } },
      });
      expect(store.read(id(name))).toBeUndefined();
      faulty.reset();
      expect(await store.remove(id(name))).toEqual({ former: undefined, notSynced: undefined });
      expect(synced()).toEqual([name.includes('/') ? 'site' : '.']);
      expect(faulty.openDescriptors()).toEqual([]);
    },
  );
});

describe('the key-file folder', () => {
  test('is made with no wider rights than 0750, and its parents too', () => {
    const umask = process.umask(0);
    expect(openKeyFilesFolder(join(folder, 'var', 'keys')).isNew).toBe(true);
    process.umask(umask);
    expect([mode('var'), mode('var', 'keys')]).toEqual(['750', '750']);
  });

  test('has these rights whatever the umask takes away, and keeps the group of its parent', async () => {
    await fs.ensureDir(join(folder, 'var'));
    await fs.chmod(join(folder, 'var'), 0o2755);
    const umask = process.umask(0o077);
    openKeyFilesFolder(join(folder, 'var', 'keys'));
    process.umask(umask);
    expect(mode('var', 'keys')).toBe('2750');
  });

  test('may be a link, and is answered as what it leads to', async () => {
    await fs.ensureDir(join(folder, 'real'));
    await fs.symlink('real', join(folder, 'linked'));
    expect(openKeyFilesFolder(join(folder, 'linked'))).toEqual({
      keyFilesPath: join(await fs.realpath(folder), 'real'),
      isNew: false,
    });
  });

  test('keeps the rights that it has', async () => {
    await fs.ensureDir(join(folder, 'keys'), 0o700);
    openKeyFilesFolder(join(folder, 'keys'));
    expect(mode('keys')).toBe('700');
  });
});

/** A task that ends on request. */
function task(log: string[], name: string) {
  let end = () => {};
  const ended = new Promise<string>((resolve) => {
    end = () => resolve(name);
  });
  const run = () => {
    log.push(name);
    return ended;
  };
  return { run, end: () => end() };
}

test('lets a task that comes when the first has ended wait for the second', async () => {
  const inTurn = queueByName();
  const started: string[] = [];
  const [a, b, c] = [task(started, 'a'), task(started, 'b'), task(started, 'c')];
  const first = inTurn('live', a.run);
  const second = inTurn('live', b.run);
  a.end();
  await first;
  await new Promise((resolve) => setImmediate(resolve));
  const third = inTurn('live', c.run);
  expect(started).toEqual(['a', 'b']);
  b.end();
  c.end();
  expect(await Promise.all([second, third])).toEqual(['b', 'c']);
});

test.each([
  ['ended well', async () => 'done'],
  ['failed', () => Promise.reject(new Error('disk full'))],
])('keeps nothing of names whose tasks have all %s', async (_how, run) => {
  const set = jest.spyOn(Map.prototype, 'set');
  const inTurn = queueByName();
  const names = Array.from({ length: 1000 }, (_, index) => `stream-${index}`);
  await Promise.allSettled(names.flatMap((name) => [inTurn(name, run), inTurn(name, run)]));
  const queues = set.mock.contexts.filter((_map, index) => set.mock.calls[index]?.[0] === 'stream-0');
  set.mockRestore();
  expect(queues.map((map) => (map as Map<string, unknown>).size)).toEqual([0, 0]);
});

function systemError(code: string, more: object = {}): Error {
  return Object.assign(new Error(`${code}: at /a/path`), { code, ...more });
}

function parts(thrown: unknown) {
  if (!(thrown instanceof HttpError)) return thrown;
  const { status, problems, cause } = thrown;
  return { status, problems, cause };
}

const CHECK = 'Check PACKAGERDRMAPI_KEYFILESPATH, its mount and its owner.';

test.each<[code: string, reason: string, more?: object]>([
  ['EROFS', 'the folder is mounted read-only'],
  ['EACCES', 'the user of this service may not use the folder or the file'],
  ['EPERM', 'the user of this service may not use the folder or the file'],
  ['ENOENT', 'the folder is gone'],
  ['ENOTDIR', 'the path of the folder is not a folder'],
  ['EIO', 'the disk reports an error'],
  ['ESTALE', 'the network file system has lost the folder'],
  ['ELOOP', 'the path holds a loop of links'],
  ['EFBIG', 'the file system reports an error', { syscall: 'write' }],
  ['Unknown system error -117', 'the file system reports an error', { syscall: 'open', errno: -117 }],
])('says what %s means and where to look, and keeps the cause for the log', (code, reason, more = {}) => {
  const cause = systemError(code, more);
  for (const verb of ['readable', 'writable']) {
    const problem = {
      code: `key_files_not_${verb}`,
      description: `The key-file folder is not ${verb}: ${reason} (${code}). ${CHECK}`,
    };
    const error = toStorageError(verb === 'readable' ? 'read' : 'write', cause);
    expect(parts(error)).toEqual({ status: 500, problems: [problem], cause });
  }
});

test.each(['ENOSPC', 'EDQUOT'])('answers 507 to %s', (code) => {
  const cause = systemError(code);
  const description =
    'There is no space left for key files, or no inode (df -i) or quota; none was damaged. Free some and try again.';
  expect(parts(toStorageError('write', cause))).toEqual({
    status: 507,
    problems: [{ code: 'insufficient_storage', description }],
    cause,
  });
});

test.each([
  ['an HttpError', new HttpError(409, { code: 'not_a_key_file', description: 'It is a link.' })],
  ['a system error that says nothing of the folder', systemError('EXDEV')],
  ['an error of Node', systemError('ERR_INVALID_ARG_TYPE')],
  ['an error without a code', new RangeError('outside')],
  ['what is no error', undefined],
])('passes %s unchanged', (_what, thrown) => {
  expect(toStorageError('write', thrown)).toBe(thrown);
});
