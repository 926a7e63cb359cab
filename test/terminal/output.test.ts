import { PassThrough } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { createOutput } from '../../src/terminal/output';
import { showProgress } from '../../src/terminal/progress';
import { csvRow, shellWord } from '../../src/terminal/text';
import { startFakeUpstream } from '../support/fake-upstream';
import { type CliRun, cli } from '../support/run-cli';
import { serveRaw } from '../support/serve';

/** A window's title, a cleared screen in its one-byte form, a backspace, a turned direction, a line of its own. */
const EVIL = 'a\u{1b}]0;x\u{7}\u{9b}2J\u{8}\u{7f}\u{202e}\u{2028}\r\nerror: b';
const STEERS = /[^\P{C}\n]|[\p{Zl}\p{Zp}]/u;
const FAULT = { severity: 'error', code: EVIL, description: EVIL };
const PROBLEM = { code: EVIL, description: EVIL };
const DRY_RUN = {
  ...{ streamid: EVIL, dryrun: true, result: 'changed', etag: EVIL, present_etag: null },
  lines: [{ name: EVIL, value: EVIL, change: 'changed', former: EVIL }],
  warnings: [PROBLEM],
};
const LISTED = {
  streamid: EVIL,
  modified: '2030-06-01T12:00:00.000Z',
  size: 1,
  parts: [EVIL],
  key_id: EVIL,
  content_id: EVIL,
  faults: [FAULT],
};

const json = (body: unknown, status = 200) => ({ status, body });
const text = (body: string) => ({ headers: { 'content-type': 'text/plain; charset=utf-8' }, body });
const SHOWN_VALUE = 'mpegdashstreaming-cenc-keyserver-playready-license-url';
const KEY_FILE = `name\u{1b}[2J: x\r\n${SHOWN_VALUE}: ${EVIL.replaceAll(/[\r\n]/g, '')}\r\n\u{9b}2J\r\n`;

const NO_COLOR = { NO_COLOR: '1' };
const isTTY = { typed: '' };

const PUT = ['put', 's', '--cenc-keyid', 'k', '--cenc-contentkey', 'c'];

test.each<[string, readonly string[], string, object]>([
  ['list', ['list'], '/api/keyfiles?limit=1000', json({ keyfiles: [LISTED], cursor: null })],
  ['get', ['get', 's'], '/api/keyfile/s', text(KEY_FILE)],
  ['get --reveal', ['get', 's', '--reveal'], '/api/keyfile/s', text(KEY_FILE)],
  ['get --json', ['get', 's', '--json'], '/api/keyfile/s', text(KEY_FILE)],
  ['put', PUT, '/api/keyfile/s', text(KEY_FILE)],
  ['put --reveal', [...PUT, '--reveal'], '/api/keyfile/s', text(KEY_FILE)],
  ['put --dry-run', [...PUT, '--dry-run'], '/api/keyfile/s?dryrun=true', json(DRY_RUN)],
  ['a refusal', ['get', 's'], '/api/keyfile/s', json({ errors: [PROBLEM, PROBLEM] }, 400)],
  ['a refusal as JSON', ['get', 's', '--json'], '/api/keyfile/s', json({ errors: [PROBLEM] }, 400)],
])('text of a server steers no terminal: %s', async (_name, args, path, script) => {
  const upstream = await startFakeUpstream();
  upstream.on(path, script);
  const { stdout, stderr } = await run(args, upstream.url);
  const all = `${stdout}${stderr}`;
  expect(all).toContain('error: b');
  expect(all).not.toMatch(STEERS);
  // A line that the server would have begun passes for one of the program's own.
  expect(all).not.toMatch(/^error: b/m);
});

function run(args: readonly string[], url: string): Promise<CliRun> {
  return cli([...args, '--url', url, '--key', 'k'], { cwd: '/', env: NO_COLOR, ...isTTY });
}

test('JSON says the same although it steers no terminal', async () => {
  const upstream = await startFakeUpstream();
  const listed = { ...LISTED, streamid: `${EVIL}\u{10ffff}\u{ad}` };
  upstream.on('/api/keyfiles?limit=1000', json({ keyfiles: [listed], cursor: null }));
  const { stdout } = await run(['list', '--json'], upstream.url);
  expect(stdout).not.toMatch(STEERS);
  expect(JSON.parse(stdout)).toEqual({ keyfiles: [listed] });
});

test('an entity tag and a type of one-byte control characters steer no terminal', async () => {
  const head = (type: string) =>
    `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\netag: "\x9b2J"\r\ncontent-length: 5\r\n\r\na: b\n`;
  for (const type of ['text/plain', 'text/\x9b2J']) {
    const url = await serveRaw((socket) => socket.end(head(type), 'latin1'));
    for (const args of [['get', 's'], PUT]) {
      const { stderr } = await run(args, url);
      expect(stderr).toContain('\u{fffd}2J');
      expect(stderr).not.toMatch(STEERS);
    }
  }
});

test('get --reveal writes byte for byte what it has, but for a terminal without what would steer that', async () => {
  const upstream = await startFakeUpstream();
  const file = 'a: b\r\nc: \u{1b}[2Jd\r\n';
  upstream.on('/api/keyfile/s', text(file));
  const argv = ['get', 's', '--reveal', '--url', upstream.url, '--key', 'k'];
  expect(await cli(argv, { cwd: '/' })).toEqual({ code: 0, stdout: file, stderr: '' });
  expect(await run(['get', 's', '--reveal'], upstream.url)).toEqual({
    code: 0,
    stdout: 'a: b\nc: \u{fffd}[2Jd\n',
    stderr:
      'warning: control characters are not shown; send the output to a file to have the bytes as they are\n',
  });
  upstream.on('/api/keyfile/s', text('a: b\r\n'));
  expect((await run(['get', 's', '--reveal'], upstream.url)).stderr).toBe('');
});

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

/** From Node 26 on, each read returns one chunk. */
function* readAll(stream: PassThrough): Generator<string> {
  for (let chunk = stream.read(); chunk !== null; chunk = stream.read()) yield String(chunk);
}

test('waits for a slow reader, and leaves no listener at its stream', async () => {
  jest.useRealTimers();
  const stdout = new PassThrough({ highWaterMark: 1 });
  const out = createOutput(stdout, new PassThrough(), {}, false);
  const listeners = stdout.listenerCount('close');
  for (const text of ['first', 'second']) {
    out.write(text);
    const order: string[] = [];
    const ready = out.ready().then((isTaken) => order.push(`ready ${isTaken}`));
    await setImmediate();
    order.push([...readAll(stdout)].join(''));
    await ready;
    expect(order).toEqual([text, 'ready true']);
  }
  expect(stdout.listenerCount('close')).toBe(listeners);
});

function start(json: boolean, isTTY = false) {
  const stderr = Object.assign(new PassThrough(), { isTTY });
  const out = createOutput(new PassThrough(), stderr, {}, json);
  const progress = showProgress({ stderr, out }, 'Comparing', 100_000);
  return { progress, reported: () => [...readAll(stderr)].join('') };
}

test('reports its progress to a log every ten seconds, until it stops', () => {
  const { progress, reported } = start(false);
  progress.advance(100);
  jest.advanceTimersByTime(9999);
  expect(reported()).toBe('');
  progress.advance(12_200);
  jest.advanceTimersByTime(1);
  expect(reported()).toBe('Comparing: 12,300 of 100,000.\n');
  progress.stop();
  jest.advanceTimersByTime(60_000);
  expect(reported()).toBe('');
});

test('says on a terminal before its bar why it pauses and how far it is, because a narrow one cuts what follows', () => {
  const { progress, reported } = start(false, true);
  progress.pause('The sidecar is busy.');
  jest.advanceTimersByTime(1000);
  expect(reported()).toMatch(/The sidecar is busy\. Comparing 0 of 100,000 ░/);
  progress.pause(undefined);
  jest.advanceTimersByTime(1000);
  expect(reported()).not.toContain('busy');
  progress.stop();
});

test('lets the terminal wrap lines again as soon as the user stops it: a second Ctrl-C ends it at once', () => {
  const { progress, reported } = start(false, true);
  expect(reported()).toContain('\u{1b}[?7l');
  process.emit('SIGINT');
  expect(reported()).toContain('\u{1b}[?7h');
  progress.advance(1);
  progress.stop();
  expect(reported()).toBe('');
});

test('reports no progress next to a JSON document', () => {
  const { progress, reported } = start(true);
  jest.advanceTimersByTime(60_000);
  progress.stop();
  expect(reported()).toBe('');
});

test.each<[string, string]>([
  ['plain', 'plain'],
  ['a,b', '"a,b"'],
  ['a "b"', '"a ""b"""'],
  ['a\nb', '"a\nb"'],
  ['a;=1+1', '"a;=1+1"'],
  [' a', '" a"'],
  ['=1+1', `"'=1+1"`],
  ['=HYPERLINK("http://x","y")', `"'=HYPERLINK(""http://x"",""y"")"`],
  ['+49', `"'+49"`],
  ['-1', `"'-1"`],
  ['@SUM(A1)', `"'@SUM(A1)"`],
  ['\t=1', `"'�=1"`],
  ['＝1', `"'＝1"`],
  ['\u001b[2J', '�[2J'],
  ['', ''],
])('writes the cell %j as %j', (cell, text) => {
  expect(csvRow([cell, 'x'])).toBe(`${text},x\r\n`);
});

test.each([
  ['/usr/local/W-1.2', '/usr/local/W-1.2'],
  ['/W sp$(id)', "'/W sp$(id)'"],
  ["/it's", "'/it'\\''s'"],
  ['', "''"],
])('makes %j one word of a shell', (text, word) => {
  expect(shellWord(text)).toBe(word);
});
