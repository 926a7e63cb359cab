import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import fs from 'fs-extra';
import { CliError, EXIT } from '../../../src/cli/cli-error';
import { applicationXml, EXT_X_VERSION, install, SECRETS, smil } from './installation';
import { runDoctor, sidecarOn } from './run-doctor';

/** All files of a folder with their content and times. */
async function everythingIn(folder: string): Promise<unknown> {
  const paths = (await fs.readdir(folder, { recursive: true })).map(String).sort();
  return Promise.all(
    paths
      .filter((path) => !path.startsWith('machine'))
      .map(async (path) => {
        const stats = await fs.stat(join(folder, path));
        return [
          path,
          stats.isFile() ? [await fs.readFile(join(folder, path), 'hex'), stats.mtimeMs] : 'folder',
        ];
      }),
  );
}

test('shows each fault with what to do, and ends with 1', async () => {
  const packager = await install({
    'conf/live/Application.xml': applicationXml('live', {
      httpStreamer: `<Properties>${EXT_X_VERSION}</Properties>`,
    }),
    'keys/news_720p.key': undefined,
    'keys/news.smil.key': 'x: y\n',
  });
  const { code, stdout } = await runDoctor(packager, ['--application', 'live', '--streams', 'camera.stream']);
  expect(stdout.replaceAll(packager, '/wowza')).toMatchInlineSnapshot(`
"packager   /wowza
runs as    me (assumed: it owns /wowza/bin, and no packager is running here)

http://127.0.0.1:9000  the sidecar
  ok       The sidecar is ready to write key files
  ok       It lists 3 key files

live  conf/live/Application.xml
  FAULT    The session id is appended to the license address, which is the default of the packager
           to do: add in Root/Application/HTTPStreamer/Properties:
             <Property>
               <Name>cupertinoAppendQueryParamsToEncUrl</Name>
               <Value>false</Value>
               <Type>Boolean</Type>
             </Property>
  ok       EXT-X-VERSION is 5
  ok       HLS is served (cupertinostreaming) and packaged (cupertinostreamingpacketizer)
  ok       MPEG-DASH is served (mpegdashstreaming) and packaged (mpegdashstreamingpacketizer)
  ok       Key files are read from /wowza/keys

/wowza/keys  the key folder of live
  ok       This is the sidecar's folder, by device and inode, and the list agrees (3 key files)
  ok       me may enter the folder and read 3 key files
  ok       None of 2 key files has a fault
  FAULT    /wowza/content/news.smil: no key file for news_720p, so part of the group plays in the clear
           to do: provision these streams: each rendition needs its own file
  warning  1 file: named after a group, which the packager never reads: news.smil
           to do: give each member stream a key file (packager-drm apply takes the SMIL), and delete these

1 stream  named by you
  ok       1 stream, each with a key file

2 faults, 1 warning.
"
`);
  expect(code).toBe(1);
});

test('ends with 0 when there are warnings alone', async () => {
  const { code, stdout } = await runDoctor(await install({ 'content/film.smil': smil('film') }));
  expect([code, stdout]).toEqual([0, expect.stringMatching(/\nNo fault, 1 warning\.\n$/)]);
});

test('gives the findings as one JSON document', async () => {
  const packager = await install({ 'keys/news_720p.key': undefined });
  const { code, stdout } = await runDoctor(packager, ['--application', 'live', '--json'], {
    accounts: [{ name: 'wowza', uid: process.getuid?.() ?? 0, gids: [7, 8] }],
  });
  const { sections, ...document } = JSON.parse(stdout);
  expect(document).toEqual({
    packager,
    user: expect.objectContaining({ name: 'wowza' }),
    sidecar: { address: 'http://127.0.0.1:9000', ready: true, keyfiles: 2 },
    summary: { ok: 10, warnings: 0, faults: 1 },
  });
  const { findings, ...section } = sections[2];
  expect(section).toEqual({
    kind: 'key_folder',
    subject: `${packager}/keys`,
    note: 'the key folder of live',
  });
  expect(findings.map((each: { code: string }) => each.code)).toEqual([
    ...['same_folder', 'access', 'key_files', 'group_partly_keyed'],
  ]);
  expect(code).toBe(1);
});

test('prints as CSV a header and a row for each finding, the same as --json has', async () => {
  const packager = await install({
    'keys/news_720p.key': undefined,
    'conf/HTTPStreamers.xml': undefined,
  });
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

test.each([
  ['--csv --json', /^Give --csv or --json, not both\.$/],
  ['--packager nowhere', /nowhere is not a packager's installation: it has no conf folder/],
  ['--application live,lvie', /has no application lvie\. It has: live, vod\.$/],
  ['--user wozwa', /^This machine has no user wozwa\.$/],
  ['--streams a,../x', /^--streams \.\.\/x: No part of a stream id may start with a dot\.$/],
  ['--streams ,', /^--streams names none\.$/],
  ['--application ,', /^--application names none\.$/],
])('ends with 2 and says so when it is called with %s', async (args, sentence) => {
  const { code, stdout, problems } = await runDoctor(await install(), args.split(' '));
  expect([code, stdout, problems]).toEqual([2, '', [expect.stringMatching(sentence)]]);
});

test('shows no key material, whatever is wrong with the files that hold it', async () => {
  const packager = await install();
  const keys = join(packager, 'keys');
  for (const name of await fs.readdir(keys)) {
    const text = await fs.readFile(join(keys, name), 'utf8');
    await fs.writeFile(
      join(keys, name),
      text.replaceAll('aes128', 'aes-128').replaceAll('cenc-algorithm', 'cenc'),
    );
    await fs.writeFile(join(keys, `${name}.txt`), text);
  }
  for (const args of [[], ['--json']]) {
    const { stdout } = await runDoctor(packager, args);
    expect(stdout).toMatch(/fault/);
    for (const secret of SECRETS) expect(stdout).not.toContain(secret);
  }
});

test('changes nothing in the installation', async () => {
  const packager = await install();
  const before = await everythingIn(packager);
  await runDoctor(packager, [], { sidecar: () => sidecarOn(join(packager, 'content')) });
  expect(await everythingIn(packager)).toEqual(before);
});

test('lets no name from the disk move the cursor', async () => {
  const packager = await install({ 'keys/a\u001b[2J.KEY': '' });
  expect((await runDoctor(packager)).stdout).toContain('a\ufffd[2J.KEY');
});

test('stops without a checklist when it is interrupted', async () => {
  const list = () =>
    Promise.reject(new CliError(EXIT.interrupted, { code: 'interrupted', description: 'Stopped.' }));
  const { code, stdout } = await runDoctor(await install(), [], { sidecar: () => sidecarOn('/', { list }) });
  expect([code, stdout]).toEqual([130, '']);
});
