import { join } from 'node:path';
import { Writable } from 'node:stream';
import fs from 'fs-extra';
import { stringify } from 'yaml';
import { CMAF_CBCS_REFUSED } from '../../src/drm/cmaf-cbcs';
import { folderOfEachTest } from '../support/after-test';
import { type CliOptions, cli, jsonOf, refused } from '../support/run-cli';
import { API_KEY, startSidecar, type TestSidecar } from '../support/start-sidecar';

const BODY = {
  cenc: { keyid: 'RNpS70UjCY5oVHd+4yJoHQ==', contentkey: 'lnA03mLuxnL3toiRMxV4Zw==' },
  playready: { laurl: 'https://playready-license.vudrm.tech/rightsmanager.asmx' },
};

const FILE = `\
mpegdashstreaming-cenc-key-id: RNpS70UjCY5oVHd+4yJoHQ==
mpegdashstreaming-cenc-content-key: lnA03mLuxnL3toiRMxV4Zw==
mpegdashstreaming-cenc-algorithm: AESCTR
mpegdashstreaming-cenc-keyserver-playready: true
mpegdashstreaming-cenc-keyserver-playready-system-id: 9a04f079-9840-4286-ab92-e65be0885f95
mpegdashstreaming-cenc-keyserver-playready-license-url: https://playready-license.vudrm.tech/rightsmanager.asmx
mpegdashstreaming-cenc-keyserver-playready-checksum: pcTs6CEp98A=
`;

const MASKED = FILE.replace('lnA03mLuxnL3toiRMxV4Zw==', '********');

const AS_OPTIONS = [
  ...['--cenc-keyid', BODY.cenc.keyid, '--cenc-contentkey', BODY.cenc.contentkey],
  ...['--playready-laurl', BODY.playready.laurl],
];

let sidecar: TestSidecar;
const cwd = folderOfEachTest();

beforeEach(async () => {
  sidecar = await startSidecar();
});

const run = (argv: readonly string[], options: Partial<CliOptions> = {}) =>
  cli(argv, { cwd, sidecar, ...options });

async function etagOf(streamId: string): Promise<string> {
  const { headers } = await sidecar.api.get(`/api/keyfile/${encodeURIComponent(streamId)}`);
  return String(headers.etag);
}

describe('put', () => {
  test.each<[string, readonly string[], string | undefined]>([
    ['the options', AS_OPTIONS, undefined],
    ['a YAML file', ['--file', 'body.yaml'], undefined],
    ['JSON from standard input', ['--file', '-'], JSON.stringify(BODY)],
  ])('writes the key file of %s, and shows it with its key masked', async (_name, args, stdin = '') => {
    await fs.writeFile(join(cwd, 'body.yaml'), stringify(BODY));
    const ended = await run(['put', 'live/news', ...args], { stdin });
    expect(await sidecar.files()).toEqual({ live: 'folder', 'live/news.key': FILE });
    expect(ended).toEqual({
      code: 0,
      stdout: MASKED,
      stderr: `Wrote the key file of live/news, ETag ${await etagOf('live/news')}.\n`,
    });
  });

  test('shows the key with --reveal', async () => {
    expect((await run(['put', 'news', ...AS_OPTIONS, '--reveal'])).stdout).toBe(FILE);
  });

  test('shows how the file would change with --dry-run, and writes nothing', async () => {
    await run(['put', 'news', ...AS_OPTIONS]);
    const changed = [...AS_OPTIONS.slice(0, -1), 'https://other.example.com', '--cmaf=cenc'];
    expect(await run(['put', 'news', ...changed, '--dry-run'])).toEqual({
      code: 0,
      stdout: `\
  mpegdashstreaming-cenc-key-id: RNpS70UjCY5oVHd+4yJoHQ==
  mpegdashstreaming-cenc-content-key: ********
  mpegdashstreaming-cenc-algorithm: AESCTR
  mpegdashstreaming-cenc-keyserver-playready: true
  mpegdashstreaming-cenc-keyserver-playready-system-id: 9a04f079-9840-4286-ab92-e65be0885f95
- mpegdashstreaming-cenc-keyserver-playready-license-url: https://playready-license.vudrm.tech/rightsmanager.asmx
+ mpegdashstreaming-cenc-keyserver-playready-license-url: https://other.example.com
  mpegdashstreaming-cenc-keyserver-playready-checksum: pcTs6CEp98A=
+ cmafstreaming-cenc-key-id: RNpS70UjCY5oVHd+4yJoHQ==
+ cmafstreaming-cenc-content-key: ********
+ cmafstreaming-cenc-algorithm: AESCTR
+ cmafstreaming-cenc-keyserver-playready: true
+ cmafstreaming-cenc-keyserver-playready-system-id: 9a04f079-9840-4286-ab92-e65be0885f95
+ cmafstreaming-cenc-keyserver-playready-license-url: https://other.example.com
+ cmafstreaming-cenc-keyserver-playready-checksum: pcTs6CEp98A=
`,
      stderr: 'The key file of news would be changed. Nothing was written.\n',
    });
    expect(await sidecar.files()).toEqual({ 'news.key': FILE });
    const { stdout: document } = await run(['put', 'news', ...changed, '--dry-run', '--json']);
    expect(JSON.parse(document)).toMatchObject({ streamid: 'news', result: 'changed', warnings: [] });
  });

  test('replaces only the file that --if-match names, with or without the quotes of its ETag', async () => {
    await run(['put', 'news', ...AS_OPTIONS]);
    const etag = await etagOf('news');
    const wrong = await run(['put', 'news', ...AS_OPTIONS, '--cmaf', '--if-match', 'another']);
    expect([wrong.code, await sidecar.files()]).toEqual([1, { 'news.key': FILE }]);
    for (const given of [etag, etag.slice(1, -1), '*'])
      expect((await run(['put', 'news', ...AS_OPTIONS, '--if-match', given])).code).toBe(0);
  });

  test('replaces no file with --create-only', async () => {
    expect((await run(['put', 'news', ...AS_OPTIONS, '--create-only'])).code).toBe(0);
    expect(await run(['put', 'news', ...AS_OPTIONS, '--create-only'])).toEqual(
      refused(1, 'The key file exists already, and If-None-Match does not allow changing it.'),
    );
  });

  test.each(
    Object.entries({
      '': 'The keys are missing: give --file, --cpix, or --content-id with --client, or the keys as options.',
      '--file x --client c': 'Give the fields in the file or as options, not both.',
      '--keep-unknown --content-id a': '--keep-unknown goes with --file and an existing key file.',
      '--file list.json': 'list.json holds no fields of a request.',
      '--cmaf cbc':
        "option '--cmaf [scheme]' argument 'cbc' is invalid. Allowed choices are cenc, true, false.",
      '--cmaf=cbcs': `option '--cmaf [scheme]' argument 'cbcs' is invalid. It ${CMAF_CBCS_REFUSED}.`,
      '--widevine --if-match 日':
        "option '--if-match <etag>' argument '日' is invalid. It must be an ETag, as get shows it.",
      '--if-match * --create-only': "option '--if-match <etag>' cannot be used with option '--create-only'",
      '--dry-run --reveal': "option '--reveal' cannot be used with option '--dry-run'",
    }),
  )('refuses %j, and sends nothing', async (args, sentence) => {
    await fs.writeFile(join(cwd, 'list.json'), '["SECRET"]');
    expect(await run(['put', 'news', ...args.split(' ').filter(Boolean)])).toEqual(refused(2, sentence));
  });
});

describe('get', () => {
  test('shows the key file with its key masked, byte for byte with --reveal', async () => {
    await sidecar.api.post('/api/keyfile/news').send(BODY);
    const etag = await etagOf('news');
    expect(await run(['get', 'news'])).toEqual({ code: 0, stdout: MASKED, stderr: `ETag ${etag}\n` });
    expect((await run(['get', 'news', '--reveal'])).stdout).toBe(FILE);
    const { stdout } = await run(['--json', 'get', 'news']);
    const lines = MASKED.trimEnd()
      .split('\n')
      .map((line) => line.split(': '))
      .map(([name, value]) => ({ name, value }));
    expect(JSON.parse(stdout)).toEqual({ streamid: 'news', etag, lines });
  });

  test('masks unknown lines, and leaves out unreadable ones', async () => {
    const text =
      '# the key is SECRET\nmpegdashstreaming-cenc-algorithm: AES\u{1b}[2J\nSECRET\nmy-secret: SECRET\n';
    await fs.writeFile(join(sidecar.folder, 'news.key'), text);
    const { stdout, stderr } = await run(['get', 'news']);
    expect({ stdout, stderr: stderr.split('\n')[0] }).toEqual({
      stdout: 'mpegdashstreaming-cenc-algorithm: AES\u{fffd}[2J\nmy-secret: ********\n',
      stderr:
        "warning: 1 line can't be read and is left out, the first is line 3; --reveal shows the file as it is",
    });
    expect((await run(['get', 'news', '--reveal'])).stdout).toBe(text);
  });

  test.each([
    ['none', 1, 'This stream has no key file.'],
    ['..', 2, 'No part of a stream id may start with a dot.'],
  ])('ends with a sentence for the stream %j', async (streamId, code, sentence) => {
    expect(await run(['get', streamId])).toEqual({ code, stdout: '', stderr: `error: ${sentence}\n` });
  });
});

test('delete removes a key file, only the one of --if-match', async () => {
  await sidecar.api.post('/api/keyfile/live%2Fnews').send(BODY);
  expect((await run(['delete', 'live/news', '--if-match', 'another'])).code).toBe(1);
  const etag = await etagOf('live/news');
  expect(await run(['delete', 'live/news', '--if-match', etag])).toEqual({
    code: 0,
    stdout: '',
    stderr: 'Removed the key file of live/news.\n',
  });
  expect(await sidecar.files()).toEqual({ live: 'folder' });
  await sidecar.api.post('/api/keyfile/news').send(BODY);
  const { stdout } = await run(['delete', 'news', '--json']);
  expect(JSON.parse(stdout)).toEqual({ streamid: 'news', result: 'deleted' });
});

describe('the program', () => {
  test('shows its help without a command, and ends with 2', async () => {
    const { code, stdout, stderr } = await run([]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^Usage: packager-drm \[options\] \[command\]\n[\s\S]*Exit codes:\n/);
    const { stdout: help, code: zero } = await run(['--help']);
    expect({ help, zero }).toEqual({ help: stderr, zero: 0 });
  });

  test.each([
    [
      ['help', 'nothing'],
      'put, get, export, delete, list, check, verify, apply, rotate, provider, doctor, fleet',
    ],
    [['fleet', 'nothing', '--help'], 'status, import, reseal, retire'],
  ])('has no help for a command that does not exist: %j', async (argv, names) => {
    expect(await run(argv)).toEqual(refused(2, `There is no command nothing; the commands are ${names}.`));
    expect((await run(['help', 'fleet'])).code).toBe(0);
  });

  test('reports wrong usage as JSON, too', async () => {
    const wrong = (description: string) => ({
      code: 2,
      stderr: '',
      document: { errors: [{ code: 'usage', description }] },
    });
    expect(jsonOf(await run(['lst', '--json']))).toEqual(wrong("unknown command 'lst' (Did you mean list?)"));
    expect(jsonOf(await run(['--json']))).toEqual(wrong('A command is missing.'));
    for (const secret of ["--kee=IT'S SECRET", "--kee'=SECRET", '-kSECRET', "-k='SECRET'", '-éSECRET'])
      expect((await run([secret, 'list'])).stderr).toMatch(/^error: unknown option '-(?:k|é|-kee'?)'(?!=)/);
    expect((await run(['list', '--limit', "--kee='SECRET'"])).stderr).not.toContain('SECRET');
  });

  test.each([
    [['--url', '', 'list'], '--url'],
    [['put', 'news', '--file='], '--file'],
    [['apply', 'a.yaml', '--allow-file', 'b', '--allow-file', ''], '--allow-file'],
  ])('refuses an option without a value: %j', async (argv, option) => {
    expect(await run(argv)).toEqual(refused(2, `${option} is given without a value.`));
  });

  test('ends with 1 when its output is lost', async () => {
    await sidecar.api.post('/api/keyfile/news').send(BODY);
    const lost = Object.assign(new Error(), { code: 'ENOSPC' });
    const output = new Writable({ write: (_chunk, _encoding, done) => done(lost) });
    expect(await run(['list'], { output })).toEqual(refused(1, 'The output could not be written (ENOSPC).'));
  });

  test('says its version', async () => {
    expect(await run(['--version'])).toEqual({ code: 0, stdout: '1.2.3\n', stderr: '' });
  });

  test('warns of a configuration file that others can read', async () => {
    const path = join(cwd, 'packager-drm.yaml');
    await fs.writeFile(path, `url: ${sidecar.url}\nkey: ${API_KEY}\n`, { mode: 0o644 });
    expect((await cli(['get', 'none'], { cwd })).stderr).toMatch(
      /^warning: .* others can read it; run: chmod/,
    );
  });
});
