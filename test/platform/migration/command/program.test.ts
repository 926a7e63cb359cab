import { join } from 'node:path';
import { PassThrough, Readable, Writable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import fs from 'fs-extra';
import { runMigrate } from '../../../../src/platform/migration/command/program';
import { folderOfEachTest } from '../../../support/after-test';
import { tableRows } from '../../../support/table-rows';

const A = 'https://api.jwplatform.com/v1';
const SECRET = 'uA96CFtJa138E2T5GhKfngml';

const cwd = folderOfEachTest();

class Sink extends Writable {
  text = '';
  isTTY = false;
  override _write(chunk: unknown, _encoding: string, done: () => void): void {
    this.text += String(chunk);
    done();
  }
}

interface Given {
  readonly stdin?: string | Buffer;
  readonly isTTY?: boolean;
  readonly interrupted?: AbortSignal;
}

async function migrate(argv: readonly string[], { stdin = '', isTTY = false, interrupted }: Given = {}) {
  const stdout = new Sink();
  const stderr = new Sink();
  stderr.isTTY = isTTY;
  const input = isTTY ? new PassThrough() : Readable.from([Buffer.from(stdin)]);
  const code = await runMigrate({
    argv,
    version: '1.2.3',
    env: { NO_COLOR: '1' },
    cwd,
    stdin: Object.assign(input, { isTTY }),
    stdout,
    stderr,
    interrupted: interrupted ?? new AbortController().signal,
  });
  return { code, stdout: stdout.text, stderr: stderr.text };
}

async function report(argv: readonly string[], given?: Given) {
  const { code, stdout, stderr } = await migrate(['--json', ...argv], given);
  expect(stderr).toBe('');
  return { code, ...JSON.parse(stdout) };
}

/** Route, number and places of each entry. */
async function found(argv: readonly string[], given?: Given) {
  const { code, entries } = await report(argv, given);
  return [code, ...entries.map(({ route, count }: { route: string; count: number }) => `${route} ${count}`)];
}

const put = (name: string, text: string | Buffer) => fs.outputFile(join(cwd, name), text);

test('a call is shown as commands, with what changes', async () => {
  const address = `${A}/videos/update?video_key=v&md5=x&api_key=${SECRET}`;
  const { code, stdout, stderr } = await migrate(['--site', 'S', address]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain(`/v1/videos/update can be migrated as it is

  curl -X PATCH https://api.jwplayer.com/v2/sites/S/media/v/ \\
    -H "Authorization: Bearer $V2_API_SECRET" \\
    -H 'Content-Type: application/json' \\
    --data '{}'
  jwplatform_client.Media.update(site_id="S", media_id="v", body={})

  - changed: /v1/videos/update → PATCH /v2/sites/{site_id}/media/{media_id}/
  - changed: Resource renames: video → media
  - removed: md5: \`md5\` and \`size\` removed
  - changed: answer: key is id, title is metadata.title, `);
  expect(stdout).toMatch(
    /\n\nFor every call:\n {2}Management API v2 uses Bearer.*\n\n1 call of v1: 1 can be migrated as it is\.\n$/s,
  );
});

test('the report for programs has the calls with their bodies', async () => {
  const curl = `curl -d video_key=v -d 'title=a' -d tags=b -d tags=c ${A}/videos/update`;
  expect(
    await report(['--site', 'S', '--client', 'php', '--address', 'http://127.0.0.1:8080/', curl]),
  ).toEqual({
    code: 0,
    calls: 1,
    totals: { ready: 1, by_hand: 0, unsupported: 0, unknown: 0 },
    uncounted: 0,
    inputs: [{ name: 'The argument', kind: 'curl', calls: 1, leftOut: [] }],
    entries: [
      {
        route: '/v1/videos/update',
        verdict: 'ready',
        count: 1,
        places: [],
        more_places: 0,
        calls: [
          {
            method: 'PATCH',
            path: '/v2/sites/S/media/v/',
            query: {},
            headers: { Authorization: 'Bearer $V2_API_SECRET', 'Content-Type': 'application/json' },
            body: { metadata: { title: 'a', tags: ['b', 'c'] } },
            curl: `curl -X PATCH http://127.0.0.1:8080/v2/sites/S/media/v/ \\
  -H "Authorization: Bearer $V2_API_SECRET" \\
  -H 'Content-Type: application/json' \\
  --data '{"metadata":{"title":"a","tags":["b","c"]}}'`,
            client:
              "$jwplatform_client->Media->update('S', 'v', ['metadata' => ['title' => 'a', 'tags' => ['b', 'c']]]);",
          },
        ],
        answers: expect.arrayContaining([{ v1: 'date', v2: 'metadata.publish_start_date' }]),
        notes: expect.arrayContaining([
          { kind: 'changed', sentence: 'Resource renames: video → media', by_hand: false },
        ]),
      },
    ],
  });
});

test('a curl command needs no quotes of its own', async () => {
  const words = ['curl', '-X', 'POST', '-d', 'title=a b', '--json', '{}', `${A}/videos/create`];
  expect(await found(words)).toEqual([0, '/v1/videos/create 1']);
});

test('the kind of an input is detected by its content: a file, a folder, standard input, gzip or not', async () => {
  const line = (route: string) => `1.2.3.4 - - [x] "GET /v1/${route} HTTP/1.1" 200 1\n`;
  await put('a.log', line('videos/list').repeat(3) + line('status') + line('things/list'));
  await put('b.log.gz', gzipSync(line('players/list').repeat(2)));
  await put('c', JSON.stringify({ log: { entries: [{ request: { url: `${A}/channels/list` } }] } }));
  await put('commands.sh', `#!/bin/sh\ncurl ${A}/videos/show?video_key=v\n`);
  await put('urls.txt', `${A}/players/show?player_key=p\n\n/v1/players/show?player_key=p\n`);
  expect(await found(['a.log'])).toEqual([1, '/v1/videos/list 3', '/v1/status 1', '/v1/things/list 1']);
  expect(await found(['b.log.gz'])).toEqual([0, '/v1/players/list 2']);
  expect(await found(['c'])).toEqual([0, '/v1/channels/list 1']);
  expect(await found(['commands.sh'])).toEqual([0, '/v1/videos/show 1']);
  expect(await found(['urls.txt'])).toEqual([0, '/v1/players/show 2']);
  expect(await found([], { stdin: line('videos/list') })).toEqual([0, '/v1/videos/list 1']);
  expect(await found(['-'], { stdin: gzipSync(line('videos/list')) })).toEqual([0, '/v1/videos/list 1']);
  expect(await found(['--from', 'source'], { stdin: "<?php $a->call('/players/list');" })).toEqual([
    0,
    '/v1/players/list 1',
  ]);
  expect(await found(['a.log', 'b.log.gz', '/v1/status'])).toEqual([
    1,
    '/v1/videos/list 3',
    '/v1/status 2',
    '/v1/players/list 2',
    '/v1/things/list 1',
  ]);
});

test('the programs of a folder are read with their lines, and nothing that is not of it', async () => {
  await put('src/b.py', "import jwplatform\n\nc.videos.show(video_key='k')\nc.videos.show(video_key='k')\n");
  await put('src/a.js', "jwplatform.videos.show({ video_key: 'k' })");
  await put('src/sub/c.php', "<?php\n$jwplatform->call('/videos/show', ['video_key' => 'k']);");
  await put('src/node_modules/x/a.js', 'jwplatform.videos.list()');
  await put('src/.git/a.js', 'jwplatform.videos.list()');
  await put('src/readme.txt', 'jwplatform.videos.list()');
  await put('src/binary.js', 'jwplatform.videos.list()\0');
  await put('src/huge.js', `jwplatform.videos.list()//${'x'.repeat(2 * 1024 * 1024)}`);
  await put('outside/d.js', 'jwplatform.videos.list()');
  await fs.symlink(join(cwd, 'outside'), join(cwd, 'src/link'));
  await fs.symlink(join(cwd, 'outside/d.js'), join(cwd, 'src/link.js'));
  await fs.symlink('.', join(cwd, 'src/circle'));
  await put('src/deep.js', `jwplatform.videos.list(${'['.repeat(6000)}`);
  const { code, entries, inputs } = await report(['src']);
  expect(code).toBe(0);
  expect(entries).toMatchObject([
    {
      route: '/v1/videos/show',
      count: 4,
      places: [
        { file: 'src/a.js', line: 1 },
        { file: 'src/b.py', line: 3 },
        { file: 'src/b.py', line: 4 },
        { file: 'src/sub/c.php', line: 2 },
      ],
    },
  ]);
  expect(entries).toHaveLength(1);
  expect(inputs).toEqual([
    {
      name: 'src',
      kind: 'source, 4 files',
      calls: 4,
      leftOut: [
        '1 larger than 2 MiB left out',
        'src/deep.js is nested deeper than 5000 brackets and left out',
      ],
    },
  ]);
});

test('a file of a folder that cannot be read is named once', async () => {
  // Its path became longer than Linux takes (4096 bytes) when the folder above got a longer name.
  const path = [...Array(20).fill('d'.repeat(190)), 'long-name.js'].join('/');
  await put(`s/${path}`, '');
  const name = 's'.repeat(4100 - cwd.length - path.length);
  await fs.move(join(cwd, 's'), join(cwd, name));
  const { inputs } = await report([name]);
  await fs.move(join(cwd, name), join(cwd, 's'));
  expect(inputs).toMatchObject([{ leftOut: [`${name}/${path} can't be read`] }]);
});

test('the report as a page needs nothing else, and has no markup of others', async () => {
  const evil = '<script>alert(1)</script>"\'&';
  const { code, stdout } = await migrate([
    '--html',
    'out.html',
    `curl --data-urlencode 'title=${evil.replace("'", '')}' -d 'api_key=${SECRET}' '${A}/videos/create?<i>=1'`,
  ]);
  expect({ code, stdout }).toEqual({
    code: 1,
    stdout: '1 call of v1: 1 needs work by hand. The report is in out.html.\n',
  });
  const page = await fs.readFile(join(cwd, 'out.html'), 'utf8');
  expect(page).toContain('<title>Migration of Management API v1 to v2</title>');
  expect(page).toContain('&#60;script&#62;alert(1)');
  expect(page).not.toMatch(/<script|<i>|(?:src|href)="(?!#)/);
  expect(page).not.toContain(SECRET);
  expect(page).toContain('POST /v2/sites/{site_id}/media/');
});

/** Arguments and what is wrong with them, one a line. */
const WRONG = `
["nothing.log"] → nothing.log is no file or folder that is there, and no curl command or address with /v1/.
["https://example.com/"] → The argument calls no route of v1: the path has no /v1/ in it.
["curl https://example.com/"] → The argument calls no route of v1: the path has no /v1/ in it.
["--from","curl","wget x"] → The argument has no curl command.
["curl 'API/videos/list"] → The argument has a quote (') that is not closed.
[""] → An input is empty; name a file or a folder.
["--from","har","API/videos/list?api_key=SECRET"] → The argument is no file or folder that is there, and no curl command or address with /v1/.
["--api-key=SECRET"] → unknown option '--api-key'
["--from","har","a.log"] → a.log is no HAR file; export it as HAR 1.2.
["--from","log","folder"] → folder is a folder, which is read as --from source only.
["folder"] → folder has no program in JavaScript, TypeScript, Python or PHP.
["broken.har"] → broken.har ends in the middle; export it again.
["broken.gz"] → broken.gz can't be read (Z_DATA_ERROR).
["dangling"] → dangling is a link that leads nowhere.
["--site","../x","a.log"] → option '--site <id>' argument '../x' is invalid. It is an id of letters and digits.
["--address","x","a.log"] → option '--address <url>' argument 'x' is invalid. It must be an address such as http://127.0.0.1:8080.
["--html","no/such/folder","a.log"] → no/such/folder can't be written (ENOENT).
`
  .replaceAll('API', A)
  .replaceAll('SECRET', SECRET);

test.each(tableRows(WRONG))(
  'bad input is reported, and the program ends with 2: %s',
  async (given = '', description) => {
    const argv: string[] = JSON.parse(given);
    await put('a.log', '"GET /v1/status HTTP/1.1"\n');
    await put('broken.har', '{"log":{"entries":[');
    await put('broken.gz', Buffer.concat([Buffer.from([0x1f, 0x8b]), Buffer.alloc(100)]));
    await put('folder/a', '');
    await fs.symlink('nowhere', join(cwd, 'dangling'));
    expect(await migrate(argv)).toEqual({ code: 2, stdout: '', stderr: `error: ${description}\n` });
    const { code, stdout } = await migrate(['--json', ...argv]);
    expect({ code, errors: JSON.parse(stdout).errors }).toEqual({
      code: 2,
      errors: [{ code: expect.any(String), description }],
    });
  },
);

test('without an input at a terminal, it says what to name', async () => {
  expect(await migrate([], { isTTY: true })).toEqual({
    code: 2,
    stdout: '',
    stderr: 'error: Nothing to read. Name a curl command, an address, a file or a folder.\n',
  });
});

test('a call by POST in a log may have more parameters than the log shows', async () => {
  const [post, get] = ['"POST /v1/videos/update?video_key=v"', '"GET /v1/videos/show?video_key=v"'];
  await put('a.log', `${post}\n${get}\n`);
  const { code, entries } = await report(['a.log']);
  expect(code).toBe(1);
  const mayHaveMore = entries.map(({ notes }: { notes: { sentence: string }[] }) =>
    notes.some(({ sentence }) => sentence.startsWith('Further parameters may be there')),
  );
  expect(mayHaveMore).toEqual([true, false]);
  expect(entries.map(({ verdict }: { verdict: string }) => verdict)).toEqual(['by_hand', 'ready']);
});

test('the last line counts what was found', async () => {
  const line = (route: string) => `"GET /v1/${route} HTTP/1.1"\n`;
  const routes = ['videos/list', 'status', 'things', 'videos/show'];
  await put('a.log', routes.map((route) => line(route).repeat(2)).join(''));
  expect((await migrate(['a.log'])).stdout.split('\n').at(-2)).toBe(
    '8 calls of v1: 2 can be migrated as they are, 2 need work by hand, 2 have no counterpart in v2, 2 are not known.',
  );
});

test('a log without calls is no fault', async () => {
  await put('a.log', '"GET / HTTP/1.1"\n');
  expect(await migrate(['a.log'])).toEqual({ code: 0, stdout: 'No call of v1 was found.\n', stderr: '' });
});

test('a file in UTF-16, as PowerShell writes, is refused: its calls would not be found', async () => {
  await put('a.log', Buffer.from('\ufeff"GET /v1/status HTTP/1.1"\r\n', 'utf16le'));
  const stderr = 'error: a.log is UTF-16; save it as UTF-8.\n';
  expect(await migrate(['a.log'])).toEqual({ code: 2, stdout: '', stderr });
});

test('a large file has a bar at a terminal, and none elsewhere', async () => {
  await put('a.log', `${'x'.repeat(99)}\n`.repeat(100_000));
  expect((await migrate(['a.log'], { isTTY: true })).stderr).toContain('of 10 ');
  expect((await migrate(['a.log'])).stderr).toBe('');
});

test('it stops when it is interrupted', async () => {
  await put('a.log', '"GET /v1/status HTTP/1.1"\n');
  expect(await migrate(['a.log'], { interrupted: AbortSignal.abort() })).toEqual({
    code: 130,
    stdout: '',
    stderr: 'Stopped.\n',
  });
});

test('no secret is in any form of the report, whatever it was read from', async () => {
  const query = [
    ...['api_key', 'api_signature', 'api_secret', 'apikey', 'access_token', 'password', 'authorization'],
    ...['custom.client_secret', 'custom.-token'],
  ].reduce((all, name) => `${all}&${name}=${SECRET}`, 'player_key=p');
  await put('a.log', `"GET /v1/players/update?${query} HTTP/1.1"\n"GET /v1/x/${SECRET}?${query} HTTP/1.1"\n`);
  await put(
    'a.har',
    JSON.stringify({ log: { entries: [{ request: { url: `${A}/players/update?${query}` } }] } }),
  );
  await put(
    'src/a.js',
    `new JW({ apiSecret: '${SECRET}' }).videos.list({ api_key: '${SECRET}' }); jw.videos.show({ video_key: f('${SECRET}') });`,
  );
  const curl = `curl -u me:${SECRET} -H 'Authorization: Bearer ${SECRET}' '${A}/videos/show?${query}'`;
  for (const input of ['a.log', 'a.har', 'src', curl, `${A}/videos/list?${query}`]) {
    const text = await migrate(['--html', 'out.html', input], { isTTY: true });
    const all = [
      text,
      await migrate([input]),
      await migrate(['--json', input]),
      await fs.readFile(join(cwd, 'out.html'), 'utf8'),
    ];
    expect(JSON.stringify(all)).not.toContain(SECRET);
  }
});
