import { join } from 'node:path';
import fs from 'fs-extra';
import { temporaryFolder } from '../support/after-test';
import { cli, refused } from '../support/run-cli';

const LATIN1 = Buffer.from('# f\xfcr Anna\nstreams: [a]\n', 'latin1');
const NOT_UTF8 = 'is not UTF-8; save it as UTF-8 (a spreadsheet may call that "CSV UTF-8").';
const UTF16 = 'is UTF-16; save it as UTF-8.';

const utf16 = (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le');
const bigEndian = (text: string) => utf16(text).swap16();

test.each<[string, Buffer, readonly string[], string]>([
  ['manifest.csv', utf16('streamid,contentId\na,b\n'), ['apply'], UTF16],
  ['manifest.yaml', bigEndian('streams: [a]\n'), ['apply'], UTF16],
  [
    'manifest.csv',
    Buffer.from('PK\x03\x04\x14\0\x06\0\x08\0'),
    ['apply'],
    'is not text; export it as text in UTF-8.',
  ],
  ['manifest.yaml', LATIN1, ['apply'], NOT_UTF8],
  ['body.json', utf16('{"contentId":"c"}'), ['put', 'a', '--file'], UTF16],
  ['key-file.txt', utf16('mpegdashstreaming-cenc-algorithm: AESCTR\n'), ['check'], UTF16],
])('says of %s in which encoding it is: %#', async (name, bytes, args, sentence) => {
  const cwd = await temporaryFolder();
  await fs.writeFile(join(cwd, name), bytes);
  const argv = [...args, name, ...(args[0] === 'apply' ? ['--yes'] : []), '--url', 'http://h', '--key', 'k'];
  expect(await cli(argv, { cwd })).toEqual(refused(2, `${name} ${sentence}`));
});

test('checks a key file in another encoding, and says that it is in one', async () => {
  const cwd = await temporaryFolder();
  const text = '# f\xfcr Anna\nmpegdashstreaming-cenc-key-id: RNpS70UjCY5oVHd+4yJoHQ==\n';
  await fs.writeFile(join(cwd, 'news.txt'), Buffer.from(text, 'latin1'));
  const { stdout } = await cli(['check', 'news.txt'], { cwd });
  expect(stdout).toContain('This is a key file.');
  expect(stdout).toContain('error: The file holds bytes that are not UTF-8 text; save it as UTF-8.');
});

test('takes the key of a client from a file of one line alone', async () => {
  const cwd = await temporaryFolder();
  await fs.writeFile(join(cwd, 'passwd'), 'root:x:0:0\nSECRET\n');
  const args = ['put', 'a', '--content-id', 'c', '--client', 'c', '--client-api-key-file', 'passwd'];
  expect(await cli([...args, '--url', 'http://h', '--key', 'k'], { cwd })).toEqual(
    refused(2, 'The file passwd must hold one line with the key only.'),
  );
});
