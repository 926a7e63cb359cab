import { join } from 'node:path';
import fs from 'fs-extra';
import { cli } from '../support/run-cli';
import { temporaryFolder } from '../support/start-sidecar';

const BOX = 'AAAAOHBzc2gAAAAA7e+LqXnWSs6jyCfc1R0h7QAAABgSEETaUu9FIwmOaFR3fuMiaB1I49yVmwY=';
const KEY = 'lnA03mLuxnL3toiRMxV4Zw==';
const FILE = `mpegdashstreaming-cenc-key-id: RNpS70UjCY5oVHd+4yJoHQ==\nmpegdashstreaming-cenc-content-key: ${KEY}\nmpegdashstreaming-cenc-algorithm: AESCTR\n`;
const BAD = '{"cenc":{"keyid":"44da52ef4523098e6854777ee322681d","contentkey":"lnA03mLuxnL3toiRMxV4Zw=="}}';

let cwd: string;

beforeEach(async () => {
  cwd = await temporaryFolder();
});

function check(args: readonly string[], stdin = '') {
  return cli(['check', ...args], { cwd, stdin });
}

test('decodes a value, offline and without an address', async () => {
  const { code, stdout, stderr } = await check([BOX]);
  expect({ code, stderr, lines: stdout.split('\n').slice(0, 2) }).toEqual({
    code: 0,
    stderr: 'No faults.\n',
    lines: [
      'This is a PSSH box.',
      expect.stringMatching(/^ {2}box\.system +edef8ba9-79d6-4ace-a3c8-27dcd51d21ed {2}Widevine$/),
    ],
  });
});

test.each<[string, string[], string]>([
  ['the file that is named', ['news.key'], ''],
  ['standard input', ['-'], FILE],
  ['standard input when nothing is named', [], FILE],
])('checks a key file from %s, with its key masked unless told otherwise', async (_name, args, stdin) => {
  await fs.writeFile(join(cwd, 'news.key'), FILE);
  const masked = await check(args, stdin);
  expect({ code: masked.code, first: masked.stdout.split('\n')[0] }).toEqual({
    code: 0,
    first: 'This is a key file.',
  });
  expect(masked.stdout + masked.stderr).not.toContain(KEY);
  expect((await check([...args, '--reveal'], stdin)).stdout).toContain(KEY);
});

test('checks the bytes of a box that lie in a file', async () => {
  await fs.writeFile(join(cwd, 'box.bin'), Buffer.from(BOX, 'base64'));
  expect((await check(['box.bin'])).stdout).toBe((await check([BOX])).stdout);
});

test('ends with 1 when a fault is an error, and says what to do', async () => {
  const { code, stdout, stderr } = await check(['-'], BAD);
  expect({ code, stdout, stderr }).toEqual({
    code: 1,
    stdout: expect.stringMatching(/\nerror: cenc\.keyid looks like hex.*\n/),
    stderr: expect.stringMatching(/^1 error, \d+ warnings?\.\n$/),
  });
});

test('answers one JSON document with --json', async () => {
  const { code, stdout, stderr } = await check(['--json', '-'], BAD);
  expect({ code, stderr, document: JSON.parse(stdout) }).toEqual({
    code: 1,
    stderr: '',
    document: { kind: 'request', fields: expect.any(Array), faults: expect.any(Array) },
  });
});

test('says that a file is not there when the value is none, either', async () => {
  expect(await check(['news.key'])).toEqual({
    code: 2,
    stdout: '',
    stderr: 'error: There is no file news.key, and as a value it is nothing that can be checked.\n',
  });
});

test.each([
  ['empty', '', 'has no line that the packager knows; it protects nothing'],
  ['in UTF-16', Buffer.from(FILE, 'utf16le'), 'is UTF-16; save it as UTF-8'],
  [
    'in Latin-1',
    Buffer.from(`${FILE}# f\xfcr\n`, 'latin1'),
    'holds bytes that are not UTF-8 text; save it as UTF-8',
  ],
])('takes a file of the name for a key file when it is %s', async (_what, content, fault) => {
  await fs.writeFile(join(cwd, 'news.key'), content);
  const { code, stdout } = await check(['news.key']);
  expect(code).toBe(1);
  expect(stdout).toMatch(/^This is a key file\.\n/);
  expect(stdout).toContain(`error: The file ${fault}.\n`);
});

test('asks what to check where there is nothing to read', async () => {
  const { code, stderr } = await cli(['check'], { cwd, typed: '', env: { NO_COLOR: '1' } });
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr:
      'error: Check what? Give files, a folder, a value, --stream with a stream id, or - for standard input.\n',
  });
});
