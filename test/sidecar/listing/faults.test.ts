import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import fs from 'fs-extra';
import { listStreamIds } from '../../../src/sidecar/listing/folder';
import { LIST_PATH } from '../../../src/sidecar/listing/list';
import { readSmallFile } from '../../../src/sidecar/storage/open-file';
import { errorBody } from '../../support/start-sidecar';
import { keyFileSamples } from '../../vectors/drm-vectors';
import { ALL, place, startListing } from './start-listing';

jest.mock('node:fs/promises', () => {
  const real = jest.requireActual('node:fs/promises');
  return { ...real, lstat: jest.fn(real.lstat), readdir: jest.fn(real.readdir) };
});
jest.mock('../../../src/sidecar/storage/open-file', () => {
  const real = jest.requireActual('../../../src/sidecar/storage/open-file');
  return { ...real, readSmallFile: jest.fn(real.readSmallFile) };
});

const real = {
  ...jest.requireActual<typeof import('node:fs/promises')>('node:fs/promises'),
  readSmallFile: jest.requireActual<typeof import('../../../src/sidecar/storage/open-file')>(
    '../../../src/sidecar/storage/open-file',
  ).readSmallFile,
};
/** As the list calls it. */
const listed = jest.mocked(readdir) as unknown as jest.Mock<Promise<unknown>, [string, object]>;
const looked = jest.mocked(lstat) as unknown as jest.Mock<Promise<unknown>, [string]>;
const read = jest.mocked(readSmallFile);

beforeEach(() => {
  looked.mockReset().mockImplementation(real.lstat);
  listed.mockReset().mockImplementation((path) => real.readdir(path, { withFileTypes: true }));
  read.mockReset().mockImplementation(real.readSmallFile);
});

function failure(code: string, syscall = 'open'): Error {
  return Object.assign(new Error(`${code}: injected`), { code, syscall });
}

it('lets others have their turn while it takes many names', async () => {
  const names = Array.from({ length: 2001 }, (_, index) => ({ name: `${index}.key`, isFile: () => true }));
  listed.mockResolvedValue(names);
  const turns = jest.spyOn(global, 'setImmediate');
  expect(await listStreamIds('/')).toHaveLength(2001);
  expect(turns).toHaveBeenCalledTimes(3);
  turns.mockRestore();
});

it('lists a file that cannot be read, with the fault', async () => {
  const { folder, page } = await startListing();
  place(folder, 'binary', 'huge', 'locked');
  fs.writeFileSync(join(folder, 'binary.key'), Buffer.from([0x6e, 0xff, 0xfe]));
  fs.writeFileSync(join(folder, 'huge.key'), Buffer.alloc(64 * 1024 + 1));
  read.mockImplementation((path) => {
    if (path.endsWith('locked.key')) throw failure('EACCES');
    return real.readSmallFile(path);
  });
  const { keyfiles, cursor } = await page({});
  const reported = keyfiles.map(({ modified, ...rest }) => rest);
  const nothing = { parts: [], key_id: null, content_id: null };
  const fault = (code: string, description: string) => [{ severity: 'error', code, description }];
  expect(reported.sort((one, other) => (one.streamid < other.streamid ? -1 : 1))).toEqual([
    {
      streamid: 'binary',
      size: 3,
      ...nothing,
      faults: fault('not_utf8', 'The file is not UTF-8. Write the key file again.'),
    },
    {
      streamid: 'huge',
      size: 65_537,
      ...nothing,
      faults: fault('too_large', 'The file is too large for a key file.'),
    },
    {
      streamid: 'locked',
      size: 12,
      ...nothing,
      faults: fault('unreadable', 'The file cannot be read (EACCES). Check its owner and its mode.'),
    },
  ]);
  expect(cursor).toBeNull();
});

it('answers no more than 20 faults a file', async () => {
  const { folder, page } = await startListing();
  fs.writeFileSync(join(folder, 'nonsense.key'), 'nonsense\n'.repeat(1000));
  const { keyfiles } = await page({});
  expect(keyfiles[0]?.faults).toHaveLength(20);
});

it('passes over a file that vanishes between the look at the folder and the read', async () => {
  const { folder, streamIds } = await startListing();
  place(folder, 'a', 'b', 'c');
  read.mockImplementation((path) => {
    if (path.endsWith('b.key')) fs.removeSync(path);
    return real.readSmallFile(path);
  });
  expect((await streamIds({ limit: 1 })).sort()).toEqual(['a', 'c']);
});

it('follows no link that takes the place of a sub-folder before the read', async () => {
  const { folder, page } = await startListing();
  place(folder, 'live/a');
  fs.outputFileSync(join(folder, '.aside', 'a.key'), Buffer.from([0xff]));
  read.mockImplementationOnce((path) => {
    fs.renameSync(join(folder, 'live'), join(folder, '.live'));
    fs.symlinkSync('.aside', join(folder, 'live'));
    return real.readSmallFile(path);
  });
  const { keyfiles } = await page({});
  expect(keyfiles).toMatchObject([{ streamid: 'live/a' }]);
  expect(JSON.stringify(keyfiles)).not.toContain('not_utf8');
});

it('reads a folder again whose entry vanishes where the file system does not report its type', async () => {
  const { folder, streamIds } = await startListing();
  place(folder, 'a', 'b', 'c');
  listed.mockRejectedValueOnce(failure('ENOENT', 'lstat'));
  expect(await streamIds()).toEqual(['a', 'b', 'c']);
});

it('passes over a sub-folder that vanishes before it is read', async () => {
  const { folder, page, streamIds } = await startListing();
  place(folder, ...Array.from({ length: 9 }, (_none, index) => `live/s${index}`));
  const { cursor } = await page({ limit: 2 });
  fs.removeSync(join(folder, 'live'));
  expect((await page({ cursor: String(cursor) })).keyfiles).toEqual([]);
  place(folder, 'a', 'live/b', 'vod/c');
  listed.mockImplementation((path) => {
    if (path.endsWith('live')) fs.removeSync(path);
    return real.readdir(path, { withFileTypes: true });
  });
  expect(await streamIds()).toEqual(['a', 'vod/c']);
});

it.each([
  ['be read', 'EACCES'],
  ['be read', 'EPERM'],
  ['be entered', 'EACCES'],
])('lists the others, and logs it, when a sub-folder cannot %s (%s)', async (what, code) => {
  const { folder, streamIds, warnings } = await startListing();
  place(folder, 'a', 'shut/b', 'vod/c');
  listed.mockImplementation((path) => {
    if (path.endsWith('shut') && what === 'be read') throw failure(code, 'scandir');
    return real.readdir(path, { withFileTypes: true });
  });
  looked.mockImplementation((path) => {
    if (path.includes('shut/')) throw failure(code, 'lstat');
    return real.lstat(path);
  });
  expect(await streamIds()).toEqual(['a', 'vod/c']);
  const message = 'a sub-folder of the key files cannot be listed';
  expect(warnings()).toEqual([{ message, fields: { subFolder: 'shut', code } }]);
});

it('reads no link, and no folder deeper than a stream id reaches', async () => {
  const { folder, streamIds } = await startListing();
  place(folder, 'a/b/c/d/e/f/g/h/i/j', 'live/x');
  fs.symlinkSync('live', join(folder, 'linked'));
  expect(await streamIds()).toEqual(['live/x']);
  expect(listed).toHaveBeenCalledTimes(9);
});

const refusedWith = (status: number, code: string) => [
  status,
  { errors: [{ code, description: expect.any(String) }] },
];

it.each(['EMFILE', 'ENFILE'])(
  'answers 503 when no descriptor is left to read a file with (%s)',
  async (code) => {
    const { folder, refusal } = await startListing();
    place(folder, 'a', 'b', 'c');
    read.mockImplementationOnce(() => {
      throw failure(code);
    });
    const description =
      'The service has no file descriptor left. Try again, or raise its limit of open files.';
    expect(await refusal({})).toEqual([503, errorBody('too_many_open_files', description)]);
  },
);

it.each([
  ['EMFILE', 503, 'too_many_open_files'],
  ['EIO', 500, 'key_files_not_readable'],
])('answers the storage error when a folder cannot be read (%s)', async (code, status, answered) => {
  const { folder, refusal } = await startListing();
  place(folder, 'live/a');
  for (const failing of [folder, join(folder, 'live')]) {
    listed.mockImplementation((path) => {
      if (path === failing) throw failure(code, 'scandir');
      return real.readdir(path, { withFileTypes: true });
    });
    expect(await refusal({})).toEqual(refusedWith(status, answered));
  }
});

it('answers the storage error when the key-file folder is gone', async () => {
  const { folder, page, refusal } = await startListing();
  place(folder, 'live/a', 'live/b', 'live/c');
  const { cursor } = await page({ limit: 1 });
  fs.renameSync(folder, `${folder}-moved`);
  const gone = refusedWith(500, 'key_files_not_readable');
  for (const query of [{ cursor: String(cursor) }, {}, { prefix: 'none/x' }])
    expect(await refusal(query)).toEqual(gone);
  fs.renameSync(`${folder}-moved`, folder);
  expect((await page({})).keyfiles).toHaveLength(3);
});

it('answers no secret of any published key file', async () => {
  const { folder, client } = await startListing();
  keyFileSamples.forEach(([name, { lines }]) => {
    fs.writeFileSync(join(folder, `${name}.key`), `${lines.join('\n')}\n`);
    fs.writeFileSync(join(folder, `${name}-torn.key`), lines.join('\n').replaceAll(': ', '\n'));
  });
  const { text } = await client.get(LIST_PATH).set('x-test-key', JSON.stringify(ALL)).expect(200);
  expect(JSON.parse(text).keyfiles).toHaveLength(2 * keyFileSamples.length);
  const secrets = keyFileSamples.flatMap(([, { values }]) => [
    values.cenc.contentkey,
    Buffer.from(values.cenc.contentkey, 'base64').toString('hex'),
    values.fairplay.key,
    values.fairplay.iv,
  ]);
  const lower = text.toLowerCase();
  expect(secrets.filter((secret) => lower.includes(secret.slice(0, 12).toLowerCase()))).toEqual([]);
});
