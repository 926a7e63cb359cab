import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import type { ListAnswer } from '../../../src/api/list';
import { CliError } from '../../../src/cli/cli-error';
import { askSidecar } from '../../../src/cli/doctor/sidecar';
import { listPages } from '../../../src/cli/list-pages';
import { runCli } from '../../../src/cli/run';
import { type FakeUpstream, startFakeUpstream } from '../../support/fake-upstream';
import { cli } from '../../support/run-cli';
import { NO_FLEET } from '../doctor/run-doctor';

const NEWS = {
  streamid: 'live/news',
  modified: '2025-01-31T14:02:11.123Z',
  size: 1234,
  parts: ['cenc', 'widevine', 'playready', 'fairplay', 'cmaf'],
  key_id: '44da52ef-4523-098e-6854-777ee322681d',
  content_id: 'news-1',
  faults: [],
};
const FILM = { ...NEWS, streamid: 'film', parts: ['fairplay'], key_id: null, content_id: null };
const ERROR = { severity: 'error', code: 'checksum_mismatch', description: 'The checksum is another key’s.' };
const WARNING = { severity: 'warning', code: 'scheme_mismatch', description: 'The scheme is another.' };
const BAD = { ...NEWS, streamid: 'live/bad-one', faults: [ERROR, WARNING] };
const ODD = { ...NEWS, streamid: 'odd', faults: [WARNING] };

let upstream: FakeUpstream;

beforeEach(async () => {
  upstream = await startFakeUpstream();
  upstream.on('/api/keyfiles?limit=1000', { body: { keyfiles: [NEWS, FILM], cursor: 'c/1' } });
  upstream.on('/api/keyfiles?limit=1000&cursor=c%2F1', { body: { keyfiles: [], cursor: 'c2' } });
  upstream.on('/api/keyfiles?limit=1000&cursor=c2', { body: { keyfiles: [BAD, ODD], cursor: null } });
});

function list(args: readonly string[], typed?: string) {
  const env = { PACKAGERDRM_URL: upstream.url, PACKAGERDRM_APIKEY: 'k' };
  return cli(['list', ...args], { cwd: '/', env, ...(typed !== undefined && { typed }) });
}

test('shows all pages as one table, each page sorted', async () => {
  expect(await list([])).toEqual({
    code: 0,
    stdout: `\
STREAM     MODIFIED (UTC)       PARTS               KEY ID                                CONTENT ID  FAULTS
film       2025-01-31 14:02:11  fp                  -                                     -           -
live/news  2025-01-31 14:02:11  cenc wv pr fp cmaf  44da52ef-4523-098e-6854-777ee322681d  news-1      -
live/bad-one  2025-01-31 14:02:11  cenc wv pr fp cmaf  44da52ef-4523-098e-6854-777ee322681d  news-1      checksum_mismatch, scheme_mismatch
odd           2025-01-31 14:02:11  cenc wv pr fp cmaf  44da52ef-4523-098e-6854-777ee322681d  news-1      scheme_mismatch
`,
    stderr: '4 key files, 2 of them with faults.\n',
  });
});

test('shows only what has a fault with --faulty, and ends with 1 when one is an error', async () => {
  const { code, stdout } = await list(['--faulty']);
  expect({ code, streams: stdout.split('\n').map((line) => line.split(' ')[0]) }).toEqual({
    code: 1,
    streams: ['STREAM', 'live/bad-one', 'odd', ''],
  });
  upstream.on('/api/keyfiles?limit=1000', { body: { keyfiles: [ODD], cursor: null } });
  expect((await list(['--faulty'])).code).toBe(0);
});

test('asks for no more than --limit, below --prefix', async () => {
  upstream.on('/api/keyfiles?prefix=live%2F&limit=3', { body: { keyfiles: [NEWS, BAD], cursor: 'c3' } });
  upstream.on('/api/keyfiles?prefix=live%2F&limit=1&cursor=c3', { body: { keyfiles: [ODD], cursor: 'c4' } });
  const { code, stderr } = await list(['--prefix', 'live/', '--limit', '3']);
  expect({ code, stderr, requests: upstream.received.length }).toEqual({
    code: 0,
    stderr: '3 key files, 2 of them with faults; --limit ends the list here, there may be more.\n',
    requests: 2,
  });
});

test('answers one JSON document with --json', async () => {
  const { code, stdout, stderr } = await list(['--json']);
  expect({ code, stderr, document: JSON.parse(stdout) }).toEqual({
    code: 0,
    stderr: '',
    document: { keyfiles: [FILM, NEWS, BAD, ODD] },
  });
  upstream.on('/api/keyfiles?limit=1000', { body: { keyfiles: [], cursor: null } });
  expect(JSON.parse((await list(['--json'])).stdout)).toEqual({ keyfiles: [] });
});

test('keeps the JSON document whole when a later page fails', async () => {
  const errors = [{ code: 'cursor_expired', description: 'Start again without cursor.' }];
  upstream.on('/api/keyfiles?limit=1000&cursor=c%2F1', { status: 410, body: { errors } });
  const { code, stdout } = await list(['--json']);
  expect({ code, document: JSON.parse(stdout) }).toEqual({
    code: 1,
    document: { keyfiles: [FILM, NEWS], errors },
  });
  expect((await list([])).stderr).toBe('error: Start again without cursor.\n');
});

test('shows no escape sequence of a name, and colours faults on a terminal', async () => {
  const evil = { ...BAD, streamid: 'a\u{1b}[2J\nb' };
  upstream.on('/api/keyfiles?limit=1000', { body: { keyfiles: [evil, ODD], cursor: null } });
  const { stdout } = await list([], '');
  const [, first = '', second = ''] = stdout.split('\n');
  expect([first.slice(0, 12), second.slice(0, 8)]).toEqual([
    '\u{1b}[31ma\u{fffd}[2J\u{fffd}b',
    '\u{1b}[33modd',
  ]);
  expect([first, second].map((line) => line.slice(-5))).toEqual(['\u{1b}[39m', '\u{1b}[39m']);
});

test('asks for no further page when the reader of its output is gone', async () => {
  const stdout = new PassThrough();
  const gone = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' });
  stdout.write = () => {
    stdout.destroy(gone);
    return false;
  };
  const code = await runCli({
    argv: ['list', '--url', upstream.url, '--key', 'k'],
    version: '',
    env: {},
    cwd: '/',
    stdin: new PassThrough(),
    stdout,
    stderr: new PassThrough(),
    interrupted: new AbortController().signal,
    random: randomBytes,
    wait: async () => undefined,
  });
  expect({ code, requests: upstream.received.length }).toEqual({ code: 0, requests: 1 });
});

test.each(['0', '-1', '1.5', 'ten'])('refuses the limit %j', async (limit) => {
  expect((await list([`--limit=${limit}`])).code).toBe(2);
  expect(upstream.received).toEqual([]);
});

const cleanups: (() => void)[] = [];

afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

const keyFile = (streamid: string) => ({
  streamid,
  modified: '2025-01-31T14:02:11.123Z',
  size: 1234,
  parts: ['cenc'],
  key_id: null,
  content_id: null,
  faults: [],
});

interface Asked {
  readonly url: string;
  /** Of each request. */
  readonly cursors: (string | null)[];
  /** Distinct connections that requests came over. */
  readonly connections: Set<unknown>;
}

/** Starts a server whose list is what `page` makes of the number of the request, from 0. */
async function start(page: (number: number, limit: number) => ListAnswer): Promise<Asked> {
  const cursors: (string | null)[] = [];
  const connections = new Set<unknown>();
  const server = createServer((request, response) => {
    connections.add(request.socket);
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://h');
    response.setHeader('content-type', 'application/json');
    if (pathname === '/readyz') {
      response.end('{"status":"ready"}');
      return;
    }
    cursors.push(searchParams.get('cursor'));
    response.end(JSON.stringify(page(cursors.length - 1, Number(searchParams.get('limit')))));
  });
  cleanups.push(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, cursors, connections };
}

const listAt = (url: string, ...args: string[]) =>
  cli(['list', '--url', url, '--key', 'k', ...args], { cwd: '/' });

const endless = (url: string, what: string) =>
  `What answers at ${url} ${what}: its list does not end. Check the address, and any proxy in front of the sidecar.`;
const AGAIN = 'gives a cursor of its list a second time';
const SHORT = 'gives 1001 pages with few or no key files, and says that there are more';

test('ends with 3 when a cursor comes again', async () => {
  const { url, cursors } = await start(() => ({ keyfiles: [keyFile('a')], cursor: 'same' }));
  expect(await listAt(url)).toMatchObject({ code: 3, stderr: `error: ${endless(url, AGAIN)}\n` });
  expect(cursors).toEqual([null, 'same']);
});

test('ends with 3 when cursors go round', async () => {
  const { url, cursors } = await start((number) => ({ keyfiles: [], cursor: `c${number % 3}` }));
  expect(await listAt(url)).toEqual({ code: 3, stdout: '', stderr: `error: ${endless(url, AGAIN)}\n` });
  expect(cursors).toEqual([null, 'c0', 'c1', 'c2']);
});

test.each<[string, (number: number) => ListAnswer['keyfiles']]>([
  ['empty pages', () => []],
  ['pages of one key file', (number) => [keyFile(`s${number}`)]],
  ['pages of the same key file', () => [keyFile('a')]],
])(
  'ends with 3 when %s go on under new cursors',
  async (_name, keyfiles) => {
    const { url, cursors, connections } = await start((number) => ({
      keyfiles: keyfiles(number),
      cursor: `c${number}`,
    }));
    const { code, stderr } = await listAt(url);
    expect({ code, stderr, requests: cursors.length }).toEqual({
      code: 3,
      stderr: `error: ${endless(url, SHORT)}\n`,
      requests: 1001,
    });
    expect(connections.size).toBe(1);
  },
  30_000,
);

test('ends the JSON document when the list does not end', async () => {
  const { url } = await start(() => ({ keyfiles: [keyFile('a')], cursor: 'same' }));
  const { code, stdout } = await listAt(url, '--json');
  expect({ code, document: JSON.parse(stdout) }).toEqual({
    code: 3,
    document: {
      keyfiles: [keyFile('a'), keyFile('a')],
      errors: [{ code: 'not_a_sidecar', description: endless(url, AGAIN) }],
    },
  });
});

test('passes over many empty pages, as a sidecar gives them when few names have the prefix', async () => {
  const { url } = await start((number) =>
    number < 900 ? { keyfiles: [], cursor: `c${number}` } : { keyfiles: [keyFile('a')], cursor: null },
  );
  const { code, stderr } = await listAt(url, '--prefix', 'a');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '1 key file, no faults.\n' });
}, 30_000);

test('takes no page with more key files than it asked for', async () => {
  const { url } = await start((_number, limit) => ({
    keyfiles: Array.from({ length: limit + 1 }, (_item, index) => keyFile(`s${index}`)),
    cursor: null,
  }));
  const what = 'sends 3 key files for 2';
  expect(await listAt(url, '--limit', '2')).toEqual({
    code: 3,
    stdout: '',
    stderr: `error: ${endless(url, what)}\n`,
  });
});

test('ends a list of full pages at a number that no folder reaches', async () => {
  const full = Array.from({ length: 1000 }, (_item, index) => keyFile(`s${index}`));
  let asked = 0;
  const sidecar = {
    address: 'http://sidecar',
    list: async () => {
      asked += 1;
      return { keyfiles: full, cursor: `c${asked}` };
    },
  };
  const read = async () => {
    for await (const { keyfiles } of listPages(sidecar)) expect(keyfiles).toBe(full);
  };
  await expect(read()).rejects.toMatchObject({
    exitCode: 1,
    problems: [
      {
        code: 'list_too_long',
        description: 'The list has more than 10,000,000 key files. List a part of them by --prefix.',
      },
    ],
  });
  expect(asked).toBe(10_001);
  asked = 0;
  const { listed, problems } = await askSidecar(() => ({
    ...sidecar,
    ready: async () => undefined,
    fleet: NO_FLEET,
  }));
  expect({ listed, codes: problems.map(({ code }) => code), asked }).toEqual({
    listed: undefined,
    codes: ['list_too_long'],
    asked: 2001,
  });
}, 30_000);

test('the doctor, too, ends a list whose cursor comes again', async () => {
  let asked = 0;
  const { listed, problems } = await askSidecar(() => ({
    address: 'http://sidecar',
    ready: async () => undefined,
    fleet: NO_FLEET,
    list: async () => {
      asked += 1;
      if (asked > 5) throw new CliError(1, { code: 'asked_on', description: '' });
      return { keyfiles: [], cursor: 'same' };
    },
  }));
  expect({ listed, problems }).toEqual({
    listed: undefined,
    problems: [{ code: 'not_a_sidecar', description: endless('http://sidecar', AGAIN) }],
  });
});

test('a command keeps one connection for all pages', async () => {
  const { url, connections, cursors } = await start((number) => ({
    keyfiles: [keyFile(`s${number}`)],
    cursor: number < 20 ? `c${number}` : null,
  }));
  expect((await listAt(url)).code).toBe(0);
  expect({ requests: cursors.length, connections: connections.size }).toEqual({
    requests: 21,
    connections: 1,
  });
});
