import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import fs from 'fs-extra';
import { temporaryFolder } from '../support/after-test';
import { CENC_ONLY } from '../support/post-manual';
import { startSidecar, type TestSidecar } from '../support/start-sidecar';

const LEFT = 'it is left unchanged. Remove it, or use another stream id.';
const LINK = `A symbolic link is in the place of the key file; ${LEFT}`;
const OTHER = `A folder or a device is in the place of the key file; ${LEFT}`;
const LINKED_FOLDER = `A sub-folder of this stream id is a symbolic link; ${LEFT}`;
const FILE_FOLDER = `A sub-folder of this stream id is a file; ${LEFT}`;

interface Case {
  readonly streamId: string;
  readonly description: string;
  /** Puts something in the way; `outside` is a folder beside the key files. */
  readonly place: (folder: string, outside: string) => void;
}

const CASES: [what: string, Case][] = [
  [
    'a symbolic link to a file',
    {
      streamId: 'demo',
      description: LINK,
      place: (folder, outside) => fs.symlinkSync(join(outside, 'secret.key'), join(folder, 'demo.key')),
    },
  ],
  [
    'a symbolic link to nothing',
    {
      streamId: 'demo',
      description: LINK,
      place: (folder, outside) => fs.symlinkSync(join(outside, 'absent.key'), join(folder, 'demo.key')),
    },
  ],
  [
    'a symbolic link to another key file',
    {
      streamId: 'demo',
      description: LINK,
      place: (folder) => {
        fs.writeFileSync(join(folder, 'other.key'), 'other: key\n');
        fs.symlinkSync('other.key', join(folder, 'demo.key'));
      },
    },
  ],
  [
    'a folder',
    { streamId: 'demo', description: OTHER, place: (folder) => fs.mkdirSync(join(folder, 'demo.key')) },
  ],
  [
    'a pipe',
    {
      streamId: 'demo',
      description: OTHER,
      place: (folder) => execFileSync('mkfifo', [join(folder, 'demo.key')]),
    },
  ],
  [
    'a linked sub-folder',
    {
      streamId: 'app%2Fsecret',
      description: LINKED_FOLDER,
      place: (folder, outside) => fs.symlinkSync(outside, join(folder, 'app')),
    },
  ],
  [
    'a sub-folder linked further up',
    {
      streamId: 'app%2Fdeep%2Fsecret',
      description: LINKED_FOLDER,
      place: (folder, outside) => {
        fs.mkdirSync(join(outside, 'deep'));
        fs.writeFileSync(join(outside, 'deep', 'secret.key'), 'outside: deep\n');
        fs.symlinkSync(outside, join(folder, 'app'));
      },
    },
  ],
  [
    'a file where a sub-folder belongs',
    {
      streamId: 'app%2Fdemo',
      description: FILE_FOLDER,
      place: (folder) => fs.writeFileSync(join(folder, 'app'), 'no folder'),
    },
  ],
];

type Ask = (sidecar: TestSidecar, path: string) => ReturnType<TestSidecar['api']['get']>;
const METHODS: [method: string, ask: Ask][] = [
  ['GET', ({ api }, path) => api.get(path)],
  ['POST', ({ api }, path) => api.post(path).send(CENC_ONLY)],
  ['DELETE', ({ api }, path) => api.delete(path)],
];

describe.each(CASES)('%s', (_what, { streamId, description, place }) => {
  it.each(METHODS)('makes a %s answer 409 and is left as it is', async (_method, ask) => {
    const sidecar = await startSidecar();
    const outside = await temporaryFolder();
    await fs.writeFile(join(outside, 'secret.key'), 'outside: secret\n');
    place(sidecar.folder, outside);
    const before = [await sidecar.files(), await fs.readdir(outside, { recursive: true })];
    await ask(sidecar, `/api/keyfile/${streamId}`).expect(409, {
      errors: [{ code: 'not_a_key_file', description }],
    });
    expect([await sidecar.files(), await fs.readdir(outside, { recursive: true })]).toEqual(before);
    expect(await fs.readFile(join(outside, 'secret.key'), 'utf8')).toBe('outside: secret\n');
  });
});
