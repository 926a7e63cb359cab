import { join } from 'node:path';
import fs from 'fs-extra';
import { folderOfEachTest } from '../../support/after-test';
import { type FakeSidecar, startFakeSidecar } from '../../support/fake-sidecar';
import { type CliOptions, cli, endOf, jsonOf, refused } from '../../support/run-cli';

const MANIFEST = `\
defaults:
  client: acme
  clientApiKeyEnv: ACME_KEY
streams:
  - { streamid: live/a, contentId: a-1 }
  - { streamid: live/b, contentId: b-1 }
groups:
  - members: [c1, c2]
    folder: live
    contentId: c-1
`;

const cwd = folderOfEachTest();
let sidecar: FakeSidecar;

beforeEach(async () => {
  sidecar = await startFakeSidecar();
  await fs.writeFile(join(cwd, 'manifest.yaml'), MANIFEST);
});

function apply(args: readonly string[], options: Partial<CliOptions> = {}) {
  const env = { ACME_KEY: 'acme-secret', PACKAGERDRM_ALLOW_ENV: 'ACME_KEY', ...options.env };
  return cli(['apply', ...args], { cwd, sidecar, ...options, env });
}

async function writeMany(streams: number): Promise<void> {
  const lines = Array.from({ length: streams }, (_item, index) => `s${index},c${index}`);
  await fs.writeFile(join(cwd, 'many.csv'), `streamid,contentId\n${lines.join('\n')}\n`);
}

const MANY = ['many.csv', '--client', 'acme', '--client-api-key', 'acme-secret', '--yes'];

const ACME = { client: 'acme', clientApiKey: 'acme-secret' };
const BODIES = [
  {
    streams: [
      { streamid: 'live/a', contentId: 'a-1', ...ACME },
      { streamid: 'live/b', contentId: 'b-1', ...ACME },
    ],
  },
  { groups: [{ members: ['c1', 'c2'], folder: 'live', contentId: 'c-1', ...ACME }] },
];

const LISTED = '  + live/b\n  + live/c1\n  + live/c2\n';

const sentBatches = () => sidecar.batches.map(({ dryRun, body }) => ({ dryRun, body }));

test('writes at once with --yes, without asking for every key twice, and ends with a summary', async () => {
  sidecar.files.set('live/a', '{}');
  expect(await apply(['manifest.yaml', '--yes'])).toEqual({
    code: 0,
    stdout: `3 streams created\n${LISTED}1 stream changed\n  ~ live/a\n`,
    stderr: 'manifest.yaml: 3 created, 1 changed.\n',
  });
  expect(sentBatches()).toEqual(BODIES.map((body) => ({ dryRun: false, body })));
});

test('looks first with --yes --verbose, too: only a look shows the lines', async () => {
  sidecar.before = () => void (sidecar.batches.length === 3 && sidecar.failing.set('live/b', 'full'));
  const { stdout } = await apply(['manifest.yaml', '--yes', '--verbose']);
  expect(stdout).toMatch(/^4 streams would be created\n/);
  expect(stdout).toMatch(/\n1 stream failed\n {2}! live\/b \(line 6\)\n {6}full\n$/);
  expect(sidecar.batches.map(({ dryRun }) => dryRun)).toEqual([true, true, false, false]);
});

test('sends nothing for streams that would stay as they are', async () => {
  await apply(['manifest.yaml', '--yes']);
  sidecar.files.delete('live/b');
  const sent = sidecar.batches.length;
  const { code, stdout } = await apply(['manifest.yaml'], { typed: 'y' });
  const listed = '1 stream would be created\n  + live/b\n3 streams would stay as they are\n';
  expect([code, stdout]).toEqual([0, listed]);
  const written = sidecar.batches.slice(sent).filter(({ dryRun }) => !dryRun);
  expect(written.map(({ body }) => body.streams?.map(({ streamid }) => streamid))).toEqual([['live/b']]);
});

test('asks at a terminal, and writes nothing after another answer than yes', async () => {
  const { code, stderr } = await apply(['manifest.yaml'], { typed: '' });
  expect(stderr).toMatch(/Comparing 4 of 4 █/);
  expect(stderr).toContain(`Write 4 key files at ${sidecar.url}? [y/N] `);
  expect([code, sidecar.files.size]).toEqual([0, 0]);
});

test('refuses to write without --yes where nobody can be asked', async () => {
  const sentence =
    "This is not a terminal, so the question can't be answered. Add --yes to apply the manifest, or --dry-run to preview it.";
  expect(await apply(['manifest.yaml'])).toEqual(refused(2, sentence));
  expect(sidecar.batches).toEqual([]);
});

test('goes on after a stream that fails, says why with its line, and ends with 1', async () => {
  sidecar.failing.set('live/a', 'contentId: must be 1 to 200 letters');
  expect(await apply(['manifest.yaml', '--yes'])).toEqual({
    code: 1,
    stdout: `\
3 streams created
${LISTED}1 stream failed
  ! live/a (line 5)
      contentId: must be 1 to 200 letters
`,
    stderr: 'manifest.yaml: 3 created, 1 failed.\n',
  });
  expect([...sidecar.files.keys()]).toEqual(['live/b', 'live/c1', 'live/c2']);
});

test('goes on after a request that is refused as a whole', async () => {
  await writeMany(250);
  const errors = [{ code: 'server_error', description: 'The service failed.' }];
  sidecar.before = () => (sidecar.batches.length === 2 ? { status: 500, body: { errors } } : undefined);
  expect(endOf(await apply(MANY))).toEqual([1, 'many.csv: 150 created, 100 failed.']);
});

test('waits for a sidecar that is busy', async () => {
  const errors = [{ code: 'too_many_batches', description: '4 batches are under way.' }];
  sidecar.before = () => (sidecar.batches.length === 1 ? { status: 503, body: { errors } } : undefined);
  const { code, stderr } = await apply(['manifest.yaml', '--yes']);
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: 'The sidecar cannot be reached or is busy, next try in 1 s.\nmanifest.yaml: 4 created.\n',
  });
  sidecar.before = () => ({ status: 503, body: { errors } });
  expect((await apply(['manifest.yaml', '--yes'])).code).toBe(3);
});

test("takes a group that can't be read for one failure, by the index of its entry", async () => {
  const groups = '  - { members: [a1, a2], contentId: c }\n  - { members: [b1, b2], contentId: c }\n';
  await fs.writeFile(join(cwd, 'groups.yaml'), `groups:\n${groups}`);
  const errors = [{ code: 'invalid_body', description: 'folder: is none' }];
  const bad = { index: 0, streamid: null, result: 'failed', errors };
  const good = ['b1', 'b2'].map((streamid) => ({ index: 1, streamid, result: 'created' }));
  sidecar.before = () => ({ status: 200, body: { results: [bad, ...good] } });
  const args = 'groups.yaml --dry-run --client c --client-api-key k';
  const { code, stdout } = await apply(args.split(' '));
  expect(code).toBe(1);
  expect(stdout).toBe(`\
2 streams would be created
  + b1
  + b2
1 stream can't be provisioned
  ! the group of a1 (line 2)
      folder: is none
`);
});

test('stops when the sidecar stays away, says how to go on, and does so when it runs again', async () => {
  await writeMany(250);
  sidecar.before = () => (sidecar.batches.length > 1 ? 'reset' : undefined);
  const { code, stderr } = await apply(MANY);
  expect(code).toBe(3);
  expect(stderr.split('\n').slice(5)).toEqual([
    `error: No answer from ${sidecar.url}: the connection was cut (is it http:// in place of https://?). The change may have been made all the same; look before you repeat it. The address comes from PACKAGERDRM_URL; change it with --url or PACKAGERDRM_URL.`,
    'Run the same command again to continue: finished streams are left as they are.',
    'many.csv: 100 created, 150 not reached.',
    '',
  ]);
  sidecar.before = () => undefined;
  expect((await apply(MANY)).stderr).toBe('many.csv: 150 created, 100 unchanged.\n');
});

test('finishes the request under way on SIGINT, and says how to go on', async () => {
  await writeMany(250);
  const interrupt = new AbortController();
  sidecar.before = () => void interrupt.abort();
  const { code, stderr } = await apply(MANY, { interrupt: interrupt.signal });
  expect([code, sidecar.files.size]).toEqual([130, 100]);
  expect(stderr).toBe(`\
Run the same command again to continue: finished streams are left as they are.
many.csv: 100 created, 150 not reached.
`);
});

test('says on SIGINT, too, why the request under way was refused', async () => {
  const interrupt = new AbortController();
  const errors = [{ code: 'unauthorized', description: 'The API key is wrong.' }];
  sidecar.before = () => {
    interrupt.abort();
    return { status: 401, body: { errors } };
  };
  await writeMany(101);
  const { code, stderr } = await apply(MANY, { interrupt: interrupt.signal });
  expect([code, stderr.split('\n')[0]]).toEqual([
    3,
    `error: ${sidecar.url} refused the API key of PACKAGERDRM_APIKEY: The API key is wrong.`,
  ]);
});

test.each([
  ['too few', ['live/a']],
  ['too many', ['live/a', 'live/b', 'live/c']],
])('ends with 3 when something answers %s results', async (_name, streamIds) => {
  const results = streamIds.map((streamid, index) => ({ index, streamid, result: 'created' }));
  sidecar.before = () => ({ status: 200, body: { results } });
  expect(await apply(['manifest.yaml', '--yes'])).toEqual(
    refused(3, `The server at ${sidecar.url} did not report the result of every stream. Check the address.`),
  );
});

test.each([
  [[], '', 'Stopped. Nothing was written.\n'],
  [['--json'], { errors: [{ code: 'interrupted', description: 'Stopped. Nothing was written.' }] }, ''],
])('ends at once on SIGINT while it only looks: %j', async (args, document, stderr) => {
  const interrupt = new AbortController();
  sidecar.before = async () => {
    interrupt.abort();
    return 'reset' as const;
  };
  const ended = await apply(['manifest.yaml', '--dry-run', ...args], { interrupt: interrupt.signal });
  const output = ended.stdout && JSON.parse(ended.stdout);
  expect({ ...ended, stdout: output }).toEqual({ code: 130, stdout: document, stderr });
});

test('answers one JSON document with --json', async () => {
  sidecar.failing.set('live/a', 'no');
  const ended = await apply(['manifest.yaml', '--yes', '--json']);
  const of = { errors: [], warnings: [] };
  const created = (streamid: string, line: number) => ({ streamid, result: 'created', line, ...of });
  const errors = [{ code: 'invalid_body', description: 'no' }];
  expect(jsonOf(ended)).toEqual({
    code: 1,
    stderr: '',
    document: {
      lineup: 'manifest.yaml',
      dry_run: false,
      stopped: null,
      results: [
        { ...of, streamid: 'live/a', result: 'failed', line: 5, errors },
        created('live/b', 6),
        created('live/c1', 8),
        created('live/c2', 8),
      ],
      summary: { created: 3, changed: 0, unchanged: 0, failed: 1, not_reached: 0 },
    },
  });
});

test('shows a reason that many streams share once, with their number', async () => {
  await writeMany(300);
  for (let index = 0; index < 300; index += 1)
    sidecar.failing.set(`s${index}`, 'The client acme is unknown.');
  const { stdout } = await apply(MANY);
  expect(stdout).toBe(`\
300 streams failed
  ! 300 streams: s0 (line 2), s1 (line 3), s2 (line 4), s3 (line 5), s4 (line 6) and 295 more
      The client acme is unknown.
`);
});
