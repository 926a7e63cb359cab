import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import fs from 'fs-extra';
import { CliError } from '../../../src/cli/cli-error';
import { readManifest, readStreamIds } from '../../../src/cli/manifest/read-manifest';
import { temporaryFolder } from '../../support/after-test';
import { type FakeUpstream, startFakeUpstream } from '../../support/fake-upstream';
import { cli } from '../../support/run-cli';
import { install } from '../doctor/installation';
import { runDoctor } from '../doctor/run-doctor';

describe('list --csv', () => {
  const NEWS = {
    streamid: 'live/news',
    modified: '2025-01-31T14:02:11.123Z',
    size: 1234,
    parts: ['cenc', 'widevine'],
    key_id: '44da52ef-4523-098e-6854-777ee322681d',
    content_id: '=cmd|calc',
    faults: [],
  };
  const fault = (severity: string, code: string) => ({ severity, code, description: `It is, as "${code}".` });
  const BAD = {
    ...NEWS,
    streamid: '@bad',
    key_id: null,
    content_id: null,
    faults: [fault('warning', 'w'), fault('error', 'e')],
  };
  let upstream: FakeUpstream;

  beforeEach(async () => {
    upstream = await startFakeUpstream();
  });

  const list = (...args: string[]) =>
    cli(['list', '--csv', ...args], {
      cwd: '/',
      env: { PACKAGERDRM_URL: upstream.url, PACKAGERDRM_APIKEY: 'k' },
    });

  test('prints a header and a row for each key file, of all pages', async () => {
    upstream.on('/api/keyfiles?limit=1000', { body: { keyfiles: [NEWS], cursor: 'c' } });
    upstream.on('/api/keyfiles?limit=1000&cursor=c', { body: { keyfiles: [BAD], cursor: null } });
    const { code, stdout, stderr } = await list();
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: [
        'streamid,modified,size,parts,key_id,content_id,severity,faults,descriptions',
        `live/news,2025-01-31T14:02:11.123Z,1234,cenc widevine,44da52ef-4523-098e-6854-777ee322681d,"'=cmd|calc",,,`,
        `"'@bad",2025-01-31T14:02:11.123Z,1234,cenc widevine,,,error,w e,"It is, as ""w"".\nIt is, as ""e""."`,
        '',
      ].join('\r\n'),
      stderr: '2 key files, 1 of them with faults.\n',
    });
    expect((await list('--faulty')).code).toBe(1);
    upstream.on('/api/keyfiles?limit=1000', { body: { keyfiles: [], cursor: null } });
    expect((await list()).stdout).toBe(`${stdout.split('\r\n')[0]}\r\n`);
  });

  test('is refused together with --json', async () => {
    const { code, stdout } = await list('--json');
    expect({ code, document: JSON.parse(stdout), requests: upstream.received.length }).toEqual({
      code: 2,
      document: { errors: [{ code: 'usage', description: 'Give --csv or --json, not both.' }] },
      requests: 0,
    });
  });
});

describe('doctor --csv', () => {
  test('prints a header and a row for each finding, the same as --json has', async () => {
    const packager = await install({ 'keys/news_720p.key': undefined, 'conf/HTTPStreamers.xml': undefined });
    const { code, stdout } = await runDoctor(packager, ['--csv']);
    const rows: Record<string, string>[] = parse(stdout, { columns: true });
    const { sections } = JSON.parse((await runDoctor(packager, ['--json'])).stdout);
    const expected = sections.flatMap(
      ({ kind, subject, findings }: { kind: string; subject: string; findings: object[] }) =>
        findings.map((finding) => ({ kind, subject, todo: '', xml: '', command: '', ...finding })),
    );
    expect({ code, rows }).toEqual({ code: 1, rows: expected });
    expect(stdout.split('\r\n')[0]).toBe('kind,subject,severity,code,message,todo,xml,command');
  });

  test('is refused together with --json', async () => {
    expect((await runDoctor(await install(), ['--csv', '--json'])).problems).toEqual([
      'Give --csv or --json, not both.',
    ]);
  });
});

const ALL = { variable: () => true, file: () => true };
const ACME = { client: 'acme', clientApiKey: 'k' };

let cwd: string;

beforeEach(async () => {
  cwd = await temporaryFolder();
});

function problemsOf(read: () => unknown): string[] {
  try {
    read();
  } catch (thrown) {
    if (thrown instanceof CliError) return thrown.problems.map(({ description }) => description);
    throw thrown;
  }
  return [];
}

async function faults(name: string, text: string, given = {}): Promise<string[]> {
  await fs.writeFile(join(cwd, name), text);
  return problemsOf(() => readManifest({ cwd, env: {} }, name, { given, allowed: ALL }));
}

test('reports the faults of all rows that can’t be read, else those of their values, in the order of the lines', async () => {
  const text = `\
streamid,contentId,cmaf,cenc.keyid,cenc.contentkey
live/a,a-1,,,
live/b,b-1
,c-1,,,
live/d,d-1,maybe,,
live//e,e-1,,,
live/f,,,,
live/a,a-1,,,
live/g,g-1,,SECRET,SECRET
"live/h,h-1,,,
`;
  expect(await faults('a.csv', text, ACME)).toEqual([
    'a.csv:3: has 2 cells, and the first row has 5.',
    'a.csv:4: streamid is missing.',
    'a.csv:5: cmaf must be true, false or cenc.',
    'a.csv:10: a quote is opened here or above, and never closed.',
  ]);
  const readable = text.split('\n').filter((_line, index) => ![2, 3, 4, 9].includes(index));
  expect(await faults('a.csv', readable.join('\n'), ACME)).toEqual([
    'a.csv:3: A part of the stream id is empty.',
    'a.csv:4: live/f: contentId missing; give it here or in defaults, or supply the keys with cenc, fairplay or cpix.',
    'a.csv:5: live/a is already on line 2; give each stream once.',
    expect.stringMatching(/^a\.csv:6: cenc\.keyid /),
    expect.stringMatching(/^a\.csv:6: cenc\.contentkey /),
  ]);
});

test('goes on behind a quote amid a cell, and stops behind one that is closed there', async () => {
  expect(await faults('a.csv', 'streamid,cmaf\na,b"SECRET"\nb,maybe\n', ACME)).toEqual([
    'a.csv:2: a quote is inside a cell; put the whole cell in quotes, and write its quotes twice.',
    'a.csv:3: cmaf must be true, false or cenc.',
  ]);
  expect(await faults('a.csv', 'streamid,cmaf\na,maybe\nb,"b"SECRET\nc,maybe\n', ACME)).toEqual([
    'a.csv:2: cmaf must be true, false or cenc.',
    'a.csv:3: a closing quote must be followed by the end of the cell; write a quote in a cell twice.',
  ]);
});

describe('the stream ids alone', () => {
  const read = () => readStreamIds({ cwd }, 'manifest.yaml');

  test('are read of a file whose keys, clients and contents are told elsewhere', async () => {
    await fs.writeFile(
      join(cwd, 'show.smil'),
      '<smil><body><video src="mp4:hi"/><video src="mp4:lo"/></body></smil>',
    );
    await fs.writeFile(
      join(cwd, 'manifest.yaml'),
      `\
defaults: { clientApiKeyEnv: NOT_SET, client: "a client" }
streams: [live/a, { streamid: live/b, clientApiKeyFile: none.txt, clientApiKey: k }]
groups:
  - { smil: show.smil, folder: vod }
  - { members: [c, { streamid: d }] }
`,
    );
    expect(read()).toEqual(['live/a', 'live/b', 'vod/hi', 'vod/lo', 'c', 'd']);
  });
});
