import { join } from 'node:path';
import { Readable } from 'node:stream';
import fs from 'fs-extra';
import { readInput } from '../../src/cli/input';
import { temporaryFolder } from '../support/after-test';
import { POST_MANUAL } from '../support/post-manual';
import { cli, refused } from '../support/run-cli';
import { startSidecar } from '../support/start-sidecar';
import { problemsOf } from './problems-of';

const FORMER = { keyid: 'RNpS70UjCY5oVHd+4yJoHQ==', contentkey: 'lnA03mLuxnL3toiRMxV4Zw==' };
const NOW = { keyid: 'qMTumUz5drgbusWY+fi5LA==', contentkey: 'ETweRxyDIuDqAadsWdx0HQ==' };

async function previewOf(former: object, now: object, ...args: string[]): Promise<string> {
  const sidecar = await startSidecar();
  const cwd = await temporaryFolder();
  const write = (stream: object) =>
    fs.writeJson(join(cwd, 'manifest.json'), { streams: [{ streamid: 'live/news', ...stream }] });
  await write(former);
  await cli(['apply', 'manifest.json', '--yes'], { cwd, sidecar });
  await write(now);
  return (await cli(['apply', 'manifest.json', '--dry-run', ...args], { cwd, sidecar })).stdout;
}

const { fairplay } = POST_MANUAL;
const playready = (host: string) => ({ playready: { laurl: `https://${host}.example.com` } });

test('shows of a stream that gets another key both key ids, and what else changes', async () => {
  const stdout = await previewOf(
    { cenc: FORMER, ...playready('one'), widevine: {}, contentId: 'a' },
    { cenc: NOW, ...playready('two'), widevine: {}, contentId: 'b' },
  );
  expect(stdout).toBe(`\
1 stream would be changed
  ~ live/news
      key id 44da52ef-4523-098e-6854-777ee322681d → a8c4ee99-4cf9-76b8-1bba-c598f9f8b92c
      mpegdashstreaming-cenc-keyserver-playready-license-url: https://one.example.com → https://two.example.com
`);
});

test('reports a part that comes or goes with another key', async () => {
  const former = { cenc: FORMER, widevine: {} };
  const now = { cenc: NOW, ...playready('one') };
  expect(await previewOf(former, now)).toBe(`\
1 stream would be changed
  ~ live/news
      key id 44da52ef-4523-098e-6854-777ee322681d → a8c4ee99-4cf9-76b8-1bba-c598f9f8b92c
      + mpegdashstreaming-cenc-keyserver-playready: true
      + mpegdashstreaming-cenc-keyserver-playready-system-id: 9a04f079-9840-4286-ab92-e65be0885f95
      + mpegdashstreaming-cenc-keyserver-playready-license-url: https://one.example.com
      - mpegdashstreaming-cenc-keyserver-widevine: true
      - mpegdashstreaming-cenc-keyserver-widevine-system-id: edef8ba9-79d6-4ace-a3c8-27dcd51d21ed
`);
});

test('shows every changed line with --verbose, content keys masked', async () => {
  expect(await previewOf({ cenc: FORMER, fairplay }, { cenc: NOW, fairplay }, '--verbose')).toBe(`\
1 stream would be changed
  ~ live/news
      - mpegdashstreaming-cenc-key-id: ${FORMER.keyid}
      + mpegdashstreaming-cenc-key-id: ${NOW.keyid}
      - mpegdashstreaming-cenc-content-key: ********
      + mpegdashstreaming-cenc-content-key: ********
`);
});

test('shows every changed line of a stream that keeps its key id', async () => {
  expect(
    await previewOf({ cenc: FORMER, ...playready('one') }, { cenc: FORMER, ...playready('two') }),
  ).toBe(`\
1 stream would be changed
  ~ live/news
      - mpegdashstreaming-cenc-keyserver-playready-license-url: https://one.example.com
      + mpegdashstreaming-cenc-keyserver-playready-license-url: https://two.example.com
`);
});

const LATIN1 = Buffer.from('# f\xfcr Anna\nstreams: [a]\n', 'latin1');
const NOT_UTF8 = 'is not UTF-8; save it as UTF-8 (a spreadsheet may call that "CSV UTF-8").';
const UTF16 = 'is UTF-16; save it as UTF-8.';

const utf16 = (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le');

test.each<[string, Buffer, readonly string[], string]>([
  ['manifest.yaml', utf16('streams: [a]\n').swap16(), ['apply'], UTF16],
  ['manifest.csv', Buffer.from('PK\x03\x04\x14\0'), ['apply'], 'is not text; export it as text in UTF-8.'],
  ['manifest.yaml', LATIN1, ['apply'], NOT_UTF8],
  ['body.json', utf16('{"contentId":"c"}'), ['put', 'a', '--file'], UTF16],
])('says of %s in which encoding it is: %#', async (name, bytes, args, sentence) => {
  const cwd = await temporaryFolder();
  await fs.writeFile(join(cwd, name), bytes);
  const argv = [...args, name, ...(args[0] === 'apply' ? ['--yes'] : []), '--url', 'http://h', '--key', 'k'];
  expect(await cli(argv, { cwd })).toEqual(refused(2, `${name} ${sentence}`));
});

test('takes the key of a client from a file of one line alone', async () => {
  const cwd = await temporaryFolder();
  await fs.writeFile(join(cwd, 'passwd'), 'root:x:0:0\nSECRET\n');
  const args = ['put', 'a', '--content-id', 'c', '--client', 'c', '--client-api-key-file', 'passwd'];
  expect(await cli([...args, '--url', 'http://h', '--key', 'k'], { cwd })).toEqual(
    refused(2, 'The file passwd must hold one line with the key only.'),
  );
});

const { signal: interrupted } = new AbortController();

test('reads no more than 64 MiB, and here one, of a file or standard input', async () => {
  const cwd = await temporaryFolder();
  const most = Buffer.alloc(1024 ** 2, 'x');
  const read = (name: string, stdin = Readable.from([most])) =>
    readInput({ stdin, interrupted, cwd }, name, most.length);
  await fs.writeFile(join(cwd, 'most'), most);
  for (const name of ['most', '-']) expect(most.equals(await read(name))).toBe(true);
  await fs.appendFile(join(cwd, 'most'), 'x');
  expect(await problemsOf(() => read('most'))).toEqual(['The file most is larger than 1 MiB.']);
  const more = Readable.from([most, Buffer.from('x')]);
  expect(await problemsOf(() => read('-', more))).toEqual(['Standard input is larger than 1 MiB.']);
});

test('says that standard input fails', async () => {
  const stdin = new Readable({ read: () => stdin.destroy(Object.assign(new Error(), { code: 'EIO' })) });
  expect(await problemsOf(() => readInput({ stdin, interrupted, cwd: '/' }, '-'))).toEqual([
    "Standard input can't be read; give a file in its place.",
  ]);
});

test.each([['check -'], ['put a --file -'], ['export - --as shaka']])(
  'waits for no input at Ctrl-C: %s',
  async (call) => {
    const interrupt = AbortSignal.timeout(20);
    expect(await cli(call.split(' '), { cwd: '/', typed: '', interrupt })).toEqual({
      code: 130,
      stdout: '',
      stderr: 'Stopped.\n',
    });
  },
);
