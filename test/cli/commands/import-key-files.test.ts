import { join } from 'node:path';
import fs from 'fs-extra';
import { folderOfEachTest } from '../../support/after-test';
import { POST_MANUAL, POST_MANUAL_FILE } from '../../support/post-manual';
import { type CliOptions, cli, refused } from '../../support/run-cli';
import { startSidecar, type TestSidecar } from '../../support/start-sidecar';

const KEPT_IV = POST_MANUAL_FILE.replace('chunklist: false', 'chunklist: true');
const UNKNOWN = 'vendor-tier: gold-9f3c\n';
const MASKED = POST_MANUAL_FILE.replace(POST_MANUAL.cenc.contentkey, '********')
  .replace(POST_MANUAL.fairplay.key, '********')
  .replace(POST_MANUAL.fairplay.iv, '********');
const ADVICE = 'Add --keep-unknown to keep unknown lines as they are, or remove them.';

let sidecar: TestSidecar;
const cwd = folderOfEachTest();

beforeEach(async () => {
  sidecar = await startSidecar();
});

const run = (argv: readonly string[], options: Partial<CliOptions> = {}) =>
  cli(argv, { cwd, sidecar, ...options });

async function write(files: Readonly<Record<string, string | Buffer>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) await fs.outputFile(join(cwd, name), text);
}

describe('put --file with a key file', () => {
  test.each(['old.key', 'old.txt', '-'])('writes it, and shows it with its keys masked: %s', async (file) => {
    await write({ 'old.key': `\ufeff# of 2019\r\n${POST_MANUAL_FILE.replaceAll('\n', '\r\n')}` });
    await write({ 'old.txt': POST_MANUAL_FILE });
    const { code, stdout } = await run(['put', 'live/news', '--file', file], { stdin: POST_MANUAL_FILE });
    expect([code, stdout]).toEqual([0, MASKED]);
    expect(await sidecar.files()).toEqual({ live: 'folder', 'live/news.key': POST_MANUAL_FILE });
  });

  test('refuses unknown lines with what to do, and keeps them when asked', async () => {
    await write({ 'old.key': POST_MANUAL_FILE + UNKNOWN });
    expect(await run(['put', 'news', '--file', 'old.key'])).toEqual(
      refused(2, 'old.key:18: vendor-tier is not known.', ADVICE),
    );
    expect(await sidecar.files()).toEqual({});
    const kept = await run(['put', 'news', '--file', 'old.key', '--keep-unknown']);
    expect(kept.stdout).toBe(`${MASKED}vendor-tier: ********\n`);
    expect(kept.stderr).toMatch(
      /^warning: unknown_line: Some lines are not known, and are kept unchecked: vendor-tier \(line 18\)\.\n/,
    );
    expect(await sidecar.files()).toEqual({ 'news.key': POST_MANUAL_FILE + UNKNOWN });
  });

  test('reports every fault with its line before anything is sent, and quotes no value', async () => {
    const { contentkey } = POST_MANUAL.cenc;
    await write({
      'old.key': `mpegdashstreaming-cenc-key-id: ${contentkey}A\n${contentkey}\nmpegdashstreaming-cenc-key-ld: x\n`,
    });
    expect(await run(['put', 'news', '--file', 'old.key'])).toEqual(
      refused(
        2,
        'old.key: mpegdashstreaming-cenc-content-key is missing; add it, the other mpegdashstreaming-cenc lines need it.',
        'old.key:1: mpegdashstreaming-cenc-key-id is not base64.',
        'old.key:2: is not "name: value"; correct it, or start it with # to make it a comment.',
        'old.key:3: mpegdashstreaming-cenc-key-ld is not known; did you mean mpegdashstreaming-cenc-key-id?',
        ADVICE,
      ),
    );
  });

  test.each(
    Object.entries({
      '--file old.key --cmaf': 'Give the fields in the file or as options, not both.',
      '--file body.json --keep-unknown':
        'body.json is not a key file, so --keep-unknown keeps nothing; leave it out.',
      '--keep-unknown --widevine': '--keep-unknown goes with --file and an existing key file.',
    }),
  )('refuses %j', async (args, description) => {
    await write({ 'old.key': POST_MANUAL_FILE, 'body.json': JSON.stringify(POST_MANUAL) });
    expect(await run(['put', 'news', ...args.split(' ')])).toEqual(refused(2, description));
  });
});

describe('apply with key files', () => {
  const many = (count: number, text = POST_MANUAL_FILE) =>
    Object.fromEntries(Array.from({ length: count }, (_item, index) => [`old/ch${1000 + index}.key`, text]));

  test('imports a folder of 30, after it showed the changes and was confirmed', async () => {
    await write({ ...many(28), 'old/live/news.key': KEPT_IV, 'old/live/sd/talk.key': POST_MANUAL_FILE });
    await write({ 'old/readme.txt': 'none', 'old/.ch.key.tmp': 'none', 'old/.hidden.key': 'none' });
    await run(['put', 'ch1000', '--file', 'old/ch1000.key']);
    const cencAlone = POST_MANUAL_FILE.split('\n').slice(0, 3).join('\n');
    await run(['put', 'live/news', '--file', '-'], { stdin: `${cencAlone}\n` });
    expect(await run(['apply', 'old'])).toEqual(
      refused(
        2,
        "This is not a terminal, so the question can't be answered. Add --yes to import the key files, or --dry-run to preview it.",
      ),
    );
    const { code, stdout, stderr } = await run(['apply', 'old'], { typed: 'y' });
    expect(code).toBe(0);
    expect(stdout.split('\n').filter((line) => !line.startsWith(' '))).toEqual([
      '28 streams would be created',
      '1 stream would be changed',
      '1 stream would stay as it is',
      '',
    ]);
    expect(stdout).toContain('  + ch1001\n');
    expect(stdout).toContain('    and 8 more; --all names them\n');
    expect(stdout).toContain('  ~ live/news\n      + mpegdashstreaming-cenc-keyserver-widevine: true\n');
    expect(stdout).toContain('      + cupertinostreaming-aes128-key: ********\n');
    expect(stdout).not.toContain(POST_MANUAL.fairplay.key);
    expect(stderr).toContain(`Write 29 key files at ${sidecar.url}? [y/N] `);
    expect(stderr).toMatch(/Comparing .* of 30/);
    expect(stderr).toMatch(/Writing .* of 29/);
    expect(stderr).toMatch(/old: 28 created, 1 changed, 1 unchanged\.\n$/);
    const files = await sidecar.files();
    expect(files['live/news.key']).toBe(KEPT_IV);
    expect(files['live/sd/talk.key']).toBe(POST_MANUAL_FILE);
    expect(Object.values(files).filter((text) => text === POST_MANUAL_FILE)).toHaveLength(29);
    expect(await run(['apply', 'old', '--yes'])).toEqual({
      code: 0,
      stdout: '30 streams stayed as they were\n',
      stderr: 'There is nothing to write.\n',
    });
  }, 60_000);

  test('imports the files that are named, each as the stream of its name', async () => {
    await write({ 'old/a.key': POST_MANUAL_FILE, 'old/live/b.key': KEPT_IV });
    expect(await run(['apply', 'old/a.key', 'old/live/b.key', './old/a.key', '--yes'])).toEqual({
      code: 0,
      stdout: `\
2 streams created
  + a
  + b
      warning: iv_in_playlist: cupertinostreaming-aes128-iv-include-in-chunklist should be false: Apple wants no IV in a FairPlay playlist, the license contains it.
`,
      stderr: 'Key files: 2 created.\n',
    });
    expect(await sidecar.files()).toEqual({ 'a.key': POST_MANUAL_FILE, 'b.key': KEPT_IV });
  });

  test('follows links, and ends where they lead in a circle', async () => {
    await write({ 'old/live/a.key': POST_MANUAL_FILE });
    await fs.symlink('a.key', join(cwd, 'old/live/a_720p.key'));
    await fs.symlink('live', join(cwd, 'old/stage'));
    await fs.symlink('..', join(cwd, 'old/live/up'));
    await run(['apply', 'old', '--yes']);
    const names = Object.keys(await sidecar.files()).filter((name) => name.endsWith('.key'));
    expect(names).toEqual(['live/a.key', 'live/a_720p.key', 'stage/a.key', 'stage/a_720p.key']);
  });

  test('reports the faults of all files together by their names, and the same fault once; nothing is sent', async () => {
    await write({
      ...many(7, POST_MANUAL_FILE + UNKNOWN),
      'old/empty.key': '',
      'old/half.key': POST_MANUAL_FILE.split('\n')[0] ?? '',
      'old/huge.key': 'x'.repeat(64 * 1024 + 1),
      'old/my stream.key': POST_MANUAL_FILE,
      'old/utf16.key': Buffer.from(`\ufeff${POST_MANUAL_FILE}`, 'utf16le'),
      'old/z/a.key': POST_MANUAL_FILE,
      'other/a.key': POST_MANUAL_FILE,
      'empty/readme.txt': '',
    });
    await fs.symlink('nowhere', join(cwd, 'old/lost.key'));
    const sources = ['old', 'old/z/a.key', 'other/a.key', 'empty', 'gone.key'];
    expect(await run(['apply', ...sources, '--yes'])).toEqual({
      code: 2,
      stdout: '',
      stderr: `\
error: old/lost.key, gone.key: does not exist, or can't be read.
error: empty: has no .key file in it.
error: old/ch1000.key, old/ch1001.key, old/ch1002.key, old/ch1003.key, old/ch1004.key and 2 more, line 18: vendor-tier is not known.
error: old/empty.key: The key file is empty; it must have lines "name: value".
error: old/half.key: mpegdashstreaming-cenc-content-key is missing; add it, the other mpegdashstreaming-cenc lines need it.
error: old/huge.key: has more than 64 KiB, far more than a key file has.
error: old/my stream.key: its name makes no stream id: A stream id may have letters, digits and . _ - ~ @ +, and a / between sub-folders (%2F in an address).
error: old/utf16.key: is UTF-16; save it as UTF-8.
error: other/a.key: is for the stream a, and so is old/z/a.key; give the folder above both, or one of them.
error: ${ADVICE}
`,
    });
    expect(await sidecar.files()).toEqual({});
  });

  test('keeps unknown lines of all of them with --keep-unknown', async () => {
    await write(many(2, POST_MANUAL_FILE + UNKNOWN));
    const { code, stdout, stderr } = await run(['apply', 'old', '--keep-unknown', '--yes']);
    expect([code, stderr]).toEqual([0, 'old: 2 created.\n']);
    expect(stdout).toContain(
      'warning: unknown_line: Some lines are not known, and are kept unchecked: vendor-tier (line 18)',
    );
    expect(await sidecar.files()).toEqual({
      'ch1000.key': POST_MANUAL_FILE + UNKNOWN,
      'ch1001.key': POST_MANUAL_FILE + UNKNOWN,
    });
    const next = { ...many(1, POST_MANUAL_FILE + UNKNOWN.replace('gold', 'iron')) };
    await write(next);
    const changed = await run(['apply', 'old', '--keep-unknown', '--dry-run']);
    expect(changed.stdout).toContain('      - vendor-tier: ********\n      + vendor-tier: ********\n');
    expect(changed.stdout).not.toMatch(/9f3c/);
  });

  test.each(
    Object.entries({
      'old manifest.yaml':
        'manifest.yaml is not a folder and does not end in .key; apply one manifest at a time.',
      'manifest.yaml other.yaml': 'Give one manifest at a time; several sources must be key files.',
      'old --client acme': 'Key files hold their keys; leave --client, --client-api-key and --cmaf out.',
      'manifest.yaml --keep-unknown':
        '--keep-unknown goes with key files: a folder, or files that end in .key.',
      'old-keys': 'There is no file or folder old-keys.',
      '': 'There is no file or folder .',
    }),
  )('refuses %j', async (args, description) => {
    await write({
      'old/a.key': POST_MANUAL_FILE,
      'manifest.yaml': 'streams: [a]',
      'other.yaml': 'streams: [b]',
    });
    expect(await run(['apply', ...args.split(' '), '--yes'])).toEqual(refused(2, description));
  });
});
