import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import fs from 'fs-extra';
import { folderOfEachTest } from '../../support/after-test';
import { type FakeUpstream, startFakeUpstream } from '../../support/fake-upstream';
import { CENC_ONLY } from '../../support/post-manual';
import { startProxy } from '../../support/proxy';
import { type CliOptions, cli, endOf, jsonOf, refused } from '../../support/run-cli';
import { startSidecar, type TestSidecar } from '../../support/start-sidecar';

describe('delete', () => {
  const FILE = 'mpegdashstreaming-cenc-key-id: RNpS70UjCY5oVHd+4yJoHQ==\n';
  const STREAMS = ['film', 'live/a', 'live/b', 'live/old', 'vod/x'];

  const cwd = folderOfEachTest();
  let sidecar: TestSidecar;

  beforeEach(async () => {
    sidecar = await startSidecar();
    for (const stream of STREAMS) await fs.outputFile(keyFile(stream), FILE);
    await fs.writeFile(
      join(cwd, 'manifest.csv'),
      'streamid,contentId\nlive/a,a\nlive/b,b\nlive/new,n\nfilm,f\n',
    );
  });

  function keyFile(stream: string): string {
    return join(sidecar.folder, `${stream}.key`);
  }

  const run = (args: readonly string[], options: Partial<CliOptions> = {}) =>
    cli(['delete', ...args], { cwd, sidecar, ...options });

  async function left(): Promise<string[]> {
    return Object.keys(await sidecar.files())
      .filter((name) => name.endsWith('.key'))
      .map((name) => name.slice(0, -4));
  }

  function without(...gone: readonly string[]): string[] {
    return STREAMS.filter((stream) => !gone.includes(stream));
  }

  const DATED = /of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/g;

  test('deletes several streams after a look, and reports one that has no key file', async () => {
    expect(await run(['live/a', 'none', 'vod/x', 'live/a', '--yes'])).toEqual({
      code: 1,
      stdout: `\
2 key files would be deleted
  - live/a
  - vod/x
1 key file can't be deleted
  ! none
      This stream has no key file.
`,
      stderr: 'Key files: 2 deleted, 1 failed.\n',
    });
    expect(await left()).toEqual(without('live/a', 'vod/x'));
  });

  test('deletes what is below a prefix', async () => {
    const keys = { ...CENC_ONLY, widevine: {}, contentId: 'news-1' };
    await sidecar.api.post('/api/keyfile/live%2Fb').send(keys);
    const { code, stdout, stderr } = await run(['--prefix', 'live/', '--yes']);
    expect({ code, stdout: stdout.replaceAll(DATED, 'DATE'), stderr, left: await left() }).toEqual({
      code: 0,
      stdout:
        '3 key files would be deleted\n  - live/a  (DATE)\n  - live/b  (DATE, content news-1)\n  - live/old  (DATE)\n',
      stderr: 'Key files: 3 deleted.\n',
      left: ['film', 'vod/x'],
    });
    const stderrOfNone = 'There is nothing to delete.\n';
    expect(await run(['--prefix', 'live/', '--yes'])).toEqual({ code: 0, stdout: '', stderr: stderrOfNone });
  });

  test('deletes what a manifest does not name, and nothing else', async () => {
    const { code, stdout, stderr } = await run(['--not-in', 'manifest.csv', '--yes']);
    expect({ code, stdout: stdout.replaceAll(DATED, 'DATE'), stderr, left: await left() }).toEqual({
      code: 0,
      stdout:
        '2 key files would be deleted\n  - live/old  (DATE)\n  - vod/x  (DATE)\n3 key files would stay\n',
      stderr: 'Key files: 2 deleted.\n',
      left: ['film', 'live/a', 'live/b'],
    });
  });

  test('looks below a prefix alone for what a manifest does not name', async () => {
    expect((await run(['--not-in', 'manifest.csv', '--prefix', 'live/', '--yes'])).code).toBe(0);
    expect(await left()).toEqual(without('live/old'));
  });

  test('only shows it with --dry-run', async () => {
    const results = ['live/old', 'vod/x'].map((streamid) => ({ streamid, result: 'deleted', errors: [] }));
    const summary = { deleted: 2, gone: 0, failed: 0, not_reached: 0 };
    expect(jsonOf(await run(['--not-in', 'manifest.csv', '--dry-run', '--json']))).toEqual({
      code: 0,
      stderr: '',
      document: { dry_run: true, stopped: null, results, summary },
    });
    expect((await run(['film', '--dry-run'])).stderr).toBe('Nothing was deleted.\n');
    expect(await left()).toEqual(STREAMS);
  });

  test('shows with --dry-run that a key file has another ETag than the one of --if-match', async () => {
    expect(await run(['film', '--dry-run', '--if-match', 'another'])).toEqual({
      code: 1,
      stdout:
        "1 key file can't be deleted\n  ! film\n      The key file has another ETag than the one of --if-match.\n",
      stderr: 'Nothing was deleted.\n',
    });
    const { etag = '' } = (await sidecar.api.get('/api/keyfile/film')).headers;
    for (const given of [etag, etag.replaceAll('"', ''), `"x", ${etag}`, '*'])
      expect((await run(['film', '--dry-run', '--if-match', given])).code).toBe(0);
  });

  test.each([
    ['y', ['film', 'vod/x'], 'Key files: 3 deleted.\n'],
    ['', STREAMS, 'Nothing was deleted.\n'],
  ])('asks at a terminal, and does as the answer %j says', async (typed, expected, end) => {
    const { code, stderr } = await run(['--prefix', 'live/'], { typed });
    expect(stderr).toContain(`Delete 3 key files at ${sidecar.url}? [y/N] `);
    expect(stderr.slice(-end.length)).toBe(end);
    expect({ code, left: await left() }).toEqual({ code: 0, left: expected });
  });

  test.each(
    Object.entries({
      'a b':
        "This is not a terminal, so the question can't be answered. Add --yes to delete the key files, or --dry-run to preview it.",
      '--yes':
        'No key files are given: name their streams, or give --prefix, or --not-in with the manifest of the streams that stay.',
      'a --prefix b --yes': 'Name streams, or select them with --prefix and --not-in, not both.',
      'a b --if-match x --yes': '--if-match is for one stream: an ETag belongs to one file.',
      '--prefix b --if-match x --yes': '--if-match is for one stream: an ETag belongs to one file.',
      '--not-in empty.yaml --yes': 'empty.yaml: the file names no streams and no groups.',
      '--not-in smil.yaml --yes': "smil.yaml:2: smil names a file that can't be read, or is not UTF-8.",
    }),
  )('deletes nothing when it is called as %j', async (args, sentence) => {
    await fs.writeFile(join(cwd, 'empty.yaml'), 'streams: []\n');
    await fs.writeFile(join(cwd, 'smil.yaml'), 'streams: [film]\ngroups: [{ smil: none.smil }]\n');
    expect(await run(args.split(' '))).toEqual(refused(2, sentence));
    expect(await left()).toEqual(STREAMS);
  });

  test('prunes nothing by a manifest that names none of the key files', async () => {
    await fs.writeFile(join(cwd, 'other.yaml'), 'streams: [other/a, other/b]\n');
    const sentence = `other.yaml names none of the 5 key files at ${sidecar.url}, so all would be deleted. Is it the manifest of this sidecar? To delete them anyway, use only --prefix.`;
    expect(await run(['--not-in', 'other.yaml', '--yes'])).toEqual(refused(2, sentence));
    expect(await left()).toEqual(STREAMS);
  });

  const between = (deletion: () => void) =>
    startProxy(sidecar.url, ({ method }) => method === 'DELETE' && deletion());

  test('leaves a key file that changes between the look and the deletion', async () => {
    const changed = `${FILE}# another\n`;
    const url = await between(() => fs.writeFileSync(keyFile('live/b'), changed));
    const { code, stdout, stderr } = await run(['live/a', 'live/b', 'live/old', '--yes', '--url', url]);
    expect({ code, stdout, stderr, left: await left() }).toEqual({
      code: 1,
      stdout: `\
3 key files would be deleted
  - live/a
  - live/b
  - live/old
1 key file can't be deleted
  ! live/b
      The key file has changed: its ETag is not the one in If-Match. GET it, check it, and send its new ETag.
`,
      stderr: 'Key files: 2 deleted, 1 failed.\n',
      left: without('live/a', 'live/old'),
    });
    expect(await fs.readFile(keyFile('live/b'), 'utf8')).toBe(changed);
  });

  test('ends after the deletion under way on SIGINT, and goes on when it runs again', async () => {
    const interrupt = new AbortController();
    const url = await between(() => interrupt.abort());
    const args = ['--prefix', 'live/', '--yes'];
    const ended = await run([...args, '--url', url], { interrupt: interrupt.signal });
    expect({ code: ended.code, stderr: ended.stderr, left: await left() }).toEqual({
      code: 130,
      stderr:
        'Run the same command again to continue: finished streams are left as they are.\nKey files: 1 deleted, 2 not reached.\n',
      left: without('live/a'),
    });
    expect((await run(args)).stderr).toBe('Key files: 2 deleted.\n');
  });

  test('asks for no key material to look at key files', async () => {
    const requests: string[] = [];
    const url = await startProxy(sidecar.url, (request) => requests.push(`${request.method} ${request.url}`));
    expect((await run(['live/a', 'film', '--yes', '--url', url])).code).toBe(0);
    expect(requests.sort()).toEqual(
      ['DELETE', 'HEAD'].flatMap((method) => [
        `${method} /api/keyfile/film`,
        `${method} /api/keyfile/live%2Fa`,
      ]),
    );
  });

  test('tries a sidecar that goes away again, and takes a deletion whose answer was lost for done', async () => {
    const pauses: number[] = [];
    const upstream = await startFakeUpstream();
    const refusal = (status: number, code: string) => ({
      status,
      body: { errors: [{ code, description: 'No.' }] },
    });
    const [absent, changed] = [refusal(404, 'key_file_not_found'), refusal(412, 'precondition_failed')];
    const there = { headers: { etag: '"e"', 'content-type': 'text/plain' } };
    upstream.on('/api/keyfile/a', there, 'reset', changed, absent);
    upstream.on('/api/keyfile/b', there, 'reset', there);
    const onWait = (ms: number) => pauses.push(ms);
    const ended = await run(['a', 'b', '--yes', '--url', upstream.url], { onWait });
    expect([...endOf(ended), pauses]).toEqual([0, 'Key files: 1 deleted, 1 gone.', [1000, 1000]]);
  });

  test('ends the look at a sidecar that stays busy, and does not wait for each key file again', async () => {
    const upstream = await startFakeUpstream();
    const errors = [{ code: 'too_many_requests', description: 'The sidecar is busy.' }];
    for (const stream of ['a', 'b']) upstream.on(`/api/keyfile/${stream}`, { status: 503, body: { errors } });
    let pauses = 0;
    const onWait = () => {
      pauses += 1;
    };
    const ended = await run(['a', 'b', '--yes', '--url', upstream.url], { onWait });
    expect([...endOf(ended), pauses]).toEqual([3, 'error: The sidecar is busy.', 5]);
  });
});

describe('list', () => {
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
  const ERROR = {
    severity: 'error',
    code: 'checksum_mismatch',
    description: "The checksum is another key's.",
  };
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

  test('shows all pages as one table, sorted', async () => {
    expect(await list([])).toEqual({
      code: 0,
      stdout: `\
STREAM        MODIFIED (UTC)       PARTS               KEY ID                                CONTENT ID  FAULTS
film          2025-01-31 14:02:11  fp                  -                                     -           -
live/bad-one  2025-01-31 14:02:11  cenc wv pr fp cmaf  44da52ef-4523-098e-6854-777ee322681d  news-1      checksum_mismatch, scheme_mismatch
live/news     2025-01-31 14:02:11  cenc wv pr fp cmaf  44da52ef-4523-098e-6854-777ee322681d  news-1      -
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
    upstream.on('/api/keyfiles?prefix=live%2F&limit=1&cursor=c3', {
      body: { keyfiles: [ODD], cursor: 'c4' },
    });
    const { code, stderr } = await list(['--prefix', 'live/', '--limit', '3']);
    expect({ code, stderr, requests: upstream.received.length }).toEqual({
      code: 0,
      stderr: '3 key files, 2 of them with faults; --limit ends the list here, there may be more.\n',
      requests: 2,
    });
  });

  test('answers one JSON document with --json', async () => {
    const document = { keyfiles: [FILM, BAD, NEWS, ODD] };
    expect(jsonOf(await list(['--json']))).toEqual({ code: 0, stderr: '', document });
    upstream.on('/api/keyfiles?limit=1000', { body: { keyfiles: [], cursor: null } });
    expect(JSON.parse((await list(['--json'])).stdout)).toEqual({ keyfiles: [] });
    expect(await list([])).toEqual({ code: 0, stdout: '', stderr: '0 key files, no faults.\n' });
  });

  test('prints a header and a row for each key file with --csv, none of them a formula', async () => {
    const faults = [WARNING, { ...ERROR, description: 'It is, as "e".' }];
    const keyfiles = [
      { ...NEWS, content_id: '=cmd|calc' },
      { ...FILM, streamid: '@bad', faults },
    ];
    upstream.on('/api/keyfiles?limit=1000', { body: { keyfiles, cursor: null } });
    const header = 'streamid,modified,size,parts,key_id,content_id,severity,faults,descriptions\r\n';
    const bad = `"'@bad",${NEWS.modified},1234,fairplay,,,error,scheme_mismatch checksum_mismatch,`;
    const news = `live/news,${NEWS.modified},1234,${NEWS.parts.join(' ')},${NEWS.key_id},"'=cmd|calc",,,\r\n`;
    expect(await list(['--csv'])).toEqual({
      code: 0,
      stdout: `${header}${bad}"The scheme is another.\nIt is, as ""e""."\r\n${news}`,
      stderr: '2 key files, 1 of them with faults.\n',
    });
    upstream.on('/api/keyfiles?limit=1000', { body: { keyfiles: [], cursor: null } });
    expect((await list(['--csv'])).stdout).toBe(header);
    const errors = [{ code: 'usage', description: 'Give --csv or --json, not both.' }];
    expect(jsonOf(await list(['--csv', '--json']))).toEqual({ code: 2, stderr: '', document: { errors } });
  });

  test('keeps the JSON document whole when a later page fails', async () => {
    const errors = [{ code: 'cursor_expired', description: 'Start again without cursor.' }];
    upstream.on('/api/keyfiles?limit=1000&cursor=c%2F1', { status: 410, body: { errors } });
    const document = { keyfiles: [FILM, NEWS], errors };
    expect(jsonOf(await list(['--json']))).toEqual({ code: 1, stderr: '', document });
    expect((await list([])).stderr).toBe('error: Start again without cursor.\n');
  });

  test('shows no escape sequence of a name, and colours faults on a terminal', async () => {
    const evil = { ...BAD, streamid: 'a\u{1b}[2J\nb' };
    upstream.on('/api/keyfiles?limit=1000', { body: { keyfiles: [evil, ODD], cursor: null } });
    const { stdout } = await list([], '');
    const [, first = '', second = ''] = stdout.split('\n');
    expect([first.slice(0, 12), first.slice(-5)]).toEqual(['\u{1b}[31ma\u{fffd}[2J\u{fffd}b', '\u{1b}[39m']);
    expect([second.slice(0, 8), second.slice(-5)]).toEqual(['\u{1b}[33modd', '\u{1b}[39m']);
  });

  test('ends well when the reader of its output is gone', async () => {
    const gone = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' });
    const output = new PassThrough();
    output.write = () => {
      output.destroy(gone);
      return false;
    };
    const { code, stderr } = await cli(['list', '--url', upstream.url, '--key', 'k'], { cwd: '/', output });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
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
});
