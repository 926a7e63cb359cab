import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fs from 'fs-extra';
import { openCpix } from '../../../src/drm/cpix/encryption';
import { exportCpix } from '../../../src/drm/export/export-cpix';
import { type ExportedKeys, exportKeyFile } from '../../../src/drm/export/export-key-file';
import type { ExportName, ExportScheme } from '../../../src/drm/export/names';
import { MASK } from '../../../src/drm/key-file';
import { folderOfEachTest } from '../../support/after-test';
import { cbcsDocument, IV, KEY } from '../../support/cbcs-document';
import { documentOf, recipientNamed } from '../../support/cpix';
import { CENC_ONLY_FILE, POST_MANUAL, POST_MANUAL_FILE } from '../../support/post-manual';
import { right } from '../../support/right';
import { cli, refused } from '../../support/run-cli';
import { API_KEY, startSidecar } from '../../support/start-sidecar';

const VECTORS = join(__dirname, '../../vectors/cpix');
const CERTIFICATE = join(VECTORS, 'Cert1.pem');
const ENCRYPTED = readFileSync(join(VECTORS, 'EncryptedContentKeys.xml'), 'utf8');
/** The key id of the document, as exports show it. */
const ENCRYPTED_ID = 'bd5adf51cf04410faac3ec63a69e929e';
const SECRETS = [
  Buffer.from(POST_MANUAL.cenc.contentkey, 'base64'),
  Buffer.from(POST_MANUAL.fairplay.key, 'hex'),
  Buffer.from(POST_MANUAL.fairplay.iv, 'hex'),
];

const cwd = folderOfEachTest();

/** Runs `get news` against a sidecar that has a key file. */
async function get(args: readonly string[], file = POST_MANUAL_FILE) {
  const { url, folder } = await startSidecar();
  await fs.writeFile(join(folder, 'news.key'), file);
  return cli(['get', 'news', ...args, '--url', url, '--key', API_KEY], { cwd });
}

const exported = (as: ExportName, scheme?: ExportScheme) =>
  right(exportKeyFile(POST_MANUAL_FILE, as, scheme));

const warningsOf = ({ findings }: ExportedKeys) =>
  findings.map(({ description }) => `warning: ${description}\n`).join('');

const spellings = (secret: Buffer) => [secret.toString('hex'), secret.toString('base64')];

describe('get --as', () => {
  it.each([
    ['ffmpeg', undefined],
    ['shaka', 'cbcs'],
  ] as const)('shows the keys as the sidecar exports them, with --reveal: %j', async (as, scheme) => {
    const made = exported(as, scheme);
    const ended = { code: 0, stdout: made.text, stderr: warningsOf(made) };
    expect(await get(['--as', as, '--reveal', ...(scheme ? ['--scheme', scheme] : [])])).toEqual(ended);
  });

  it('masks key material without it, as text and as JSON', async () => {
    for (const json of [[], ['--json']]) {
      const { code, stdout, stderr } = await get(['--as', 'shaka', ...json]);
      expect(code).toBe(0);
      expect(stdout).toContain(MASK);
      for (const secret of SECRETS.flatMap(spellings)) expect(stdout).not.toContain(secret);
      const note = json.length > 0 ? '' : 'Key material is masked; --reveal shows it.\n';
      expect(stderr).toBe(`${warningsOf(exported('shaka'))}${note}`);
    }
  });
});

it('with --json, the export comes with what it is', async () => {
  const { stdout } = await get(['--as', 'bento4', '--scheme', 'cbcs', '--reveal', '--json']);
  expect(JSON.parse(stdout)).toEqual({
    streamid: 'news',
    etag: expect.stringMatching(/^"/),
    as: 'bento4',
    scheme: 'cbcs',
    text: exported('bento4', 'cbcs').text,
  });
});

describe('--recipient', () => {
  it('encrypts the content keys of CPIX so that the recipient alone can open them, and shows them unasked', async () => {
    const { code, stdout, stderr } = await get(['--as', 'cpix', '--recipient', CERTIFICATE]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const secret of SECRETS.slice(0, 2).flatMap(spellings)) expect(stdout).not.toContain(secret);
    const { keys, systems } = documentOf(exported('cpix').text);
    const opened = await openCpix(documentOf(stdout), recipientNamed('Cert1'));
    expect(opened.ok && opened.value.keys).toEqual(keys);
    expect(opened.ok && opened.value.systems).toEqual(systems);
  });

  it('refuses what no content key can be encrypted for', async () => {
    expect(await get(['--as', 'cpix', '--recipient', join(VECTORS, 'ec.pem')])).toEqual({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('is the certificate of a key that is not RSA'),
    });
  });
});

it.each([
  [
    ['--as', 'shakka'],
    "option '--as <form>' argument 'shakka' is invalid. Allowed choices are shaka, shaka-streamer, nginx-vod, bento4, gpac, ffmpeg, cpix.",
  ],
  [
    ['--as', 'cpix', '--scheme', 'cens'],
    "option '--scheme <scheme>' argument 'cens' is invalid. Allowed choices are cenc, cbcs, aes-128.",
  ],
  [['--scheme', 'cenc'], '--scheme is for exports; add --as.'],
  [['--recipient', CERTIFICATE], '--recipient is for exports; add --as cpix.'],
  [
    ['--as', 'shaka', '--recipient', CERTIFICATE],
    '--recipient is for --as cpix: shaka has no way to encrypt keys.',
  ],
])('wrong usage is reported, and nothing is asked of the sidecar: %j', async (args, sentence) => {
  expect(await get(args)).toEqual(refused(2, sentence));
});

it('a key file without the key of the scheme is reported, with the remedy', async () => {
  expect(await get(['--as', 'shaka', '--scheme', 'cbcs'], CENC_ONLY_FILE)).toEqual(
    refused(
      1,
      'The key file of news has no FairPlay lines, which cbcs needs; provision the stream with fairplay, or ask for the scheme cenc.',
    ),
  );
});

describe('export', () => {
  const run = async (args: readonly string[], text = cbcsDocument()) => {
    await fs.writeFile(join(cwd, 'show.file'), text);
    return cli(['export', 'show.file', ...args], { cwd });
  };

  it('writes the keys of a document or a key file, masked unless revealed', async () => {
    const { value } = right(exportCpix(cbcsDocument(), { as: 'shaka' }));
    const ended = { code: 0, stdout: value.text, stderr: warningsOf(value) };
    expect(await run(['--as', 'shaka', '--reveal'])).toEqual(ended);
    const hidden = await run(['--as', 'shaka']);
    expect(hidden.stdout).toContain(MASK);
    for (const secret of [KEY, IV].flatMap(spellings)) expect(hidden.stdout).not.toContain(secret);
    const ofFile = await run(['--as', 'shaka', '--reveal'], POST_MANUAL_FILE);
    expect(ofFile.stdout).toBe(exported('shaka').text);
  });

  it('reads standard input, and answers JSON with the name of the file', async () => {
    const { stdout } = await cli(['export', '-', '--as', 'shaka', '--scheme', 'cbcs', '--json'], {
      cwd,
      stdin: cbcsDocument(),
    });
    expect(JSON.parse(stdout)).toMatchObject({ file: '-', as: 'shaka', scheme: 'cbcs' });
  });

  it('ends at the size limit of a file that does not end, as verify and check do', async () => {
    const pipe = join(cwd, 'pipe.mpd');
    execFileSync('mkfifo', [pipe]);
    const verify = ['verify', 'https://cdn.example/a.mpd', '/dev/zero'];
    for (const args of [['export', '/dev/zero', '--as', 'shaka'], verify])
      expect(await cli(args, { cwd })).toEqual(refused(2, 'The file /dev/zero is larger than 64 MiB.'));
    const endless = spawn('sh', ['-c', `(echo '#EXTM3U'; yes ${'x'.repeat(2000)}) > '${pipe}'`], {
      stdio: 'ignore',
    });
    const ended = once(endless, 'exit');
    const sentence = `${pipe} has more than 1 MiB apart from its segments; check the part that names keys.`;
    expect(await cli(['check', pipe], { cwd })).toEqual(refused(2, sentence));
    await ended;
  });

  it.each([
    [[], cbcsDocument(), 2, "required option '--as <form>' not specified"],
    [['--as', 'shaka'], cbcsDocument({}, 'HD'), 1, 'has several keys for cbcs; choose one by track or kid'],
    [['--as', 'shaka', '--kid', '1'], cbcsDocument(), 2, '--kid '],
    [['--as', 'shaka', '--track', 'HD'], POST_MANUAL_FILE, 2, 'are for CPIX documents; show.file is none'],
    [['--as', 'shaka', '--kid', ENCRYPTED_ID], ENCRYPTED, 1, '(packager-drm put --cpix) and use that.'],
    [['--as', 'shaka'], 'nothing', 2, 'show.file is neither a CPIX document nor a key file'],
    [['--as', 'shaka', '--scheme', 'cbcs'], CENC_ONLY_FILE, 1, 'show.file has no FairPlay lines'],
  ] as const)('refuses what it cannot export: %j (%#)', async (args, text, code, sentence) => {
    const stderr = expect.stringContaining(sentence);
    expect(await run(args, text)).toEqual({ code, stdout: '', stderr });
  });
});
