import { randomBytes } from 'node:crypto';
import { PassThrough } from 'node:stream';
import { runCli } from '../../../src/cli/run';
import { type FakeUpstream, startFakeUpstream } from '../../support/fake-upstream';
import { cli } from '../../support/run-cli';

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

test('ends a list whose cursors go round', async () => {
  upstream.on('/api/keyfiles?limit=1000&cursor=c2', { body: { keyfiles: [], cursor: 'c/1' } });
  expect((await list([])).stderr).toBe(
    `error: The server at ${upstream.url} returned the same cursor twice: its list does not end. Check the address, and any proxy in front of the sidecar.\n`,
  );
});
