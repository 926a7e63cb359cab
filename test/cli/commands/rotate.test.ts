import { readFileSync, realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import fs from 'fs-extra';
import { mountOf, untraceable } from '../../../src/cli/commands/watch-reads';
import { folderOfEachTest } from '../../support/after-test';
import { type CliOptions, cli, endOf, jsonOf, refused } from '../../support/run-cli';
import type { TestSidecar } from '../../support/start-sidecar';
import { startProvided } from './start-provided';

const OWN_KEYS = '{ keyid: RNpS70UjCY5oVHd+4yJoHQ==, contentkey: lnA03mLuxnL3toiRMxV4Zw== }';

const MANIFEST = `\
defaults: { client: demo, clientApiKey: demo-client-api-key, contentId: "{name}-1" }
streams:
  - live/news
  - camera.stream
  - { streamid: own, cenc: ${OWN_KEYS} }
groups:
  - { members: [hi, lo], folder: vod, contentId: film }
  - { members: [x, { streamid: y, contentId: y-own }], keys: each }
`;

const cwd = folderOfEachTest();
let sidecar: TestSidecar;

beforeEach(async () => {
  ({ sidecar } = await startProvided());
  await fs.writeFile(join(cwd, 'manifest.yaml'), MANIFEST);
});

const run = (args: readonly string[], options: Partial<CliOptions> = {}) =>
  cli(args, { cwd, sidecar, ...options });

const rotate = (...args: string[]) => run(['rotate', 'manifest.yaml', ...args]);

/** The content id and the key id of each key file. */
async function contents(): Promise<Record<string, readonly [string, string]>> {
  const { stdout } = await run(['list', '--json']);
  const { keyfiles }: { keyfiles: { streamid: string; content_id: string; key_id: string }[] } =
    JSON.parse(stdout);
  return Object.fromEntries(
    keyfiles
      .sort((one, other) => (one.streamid < other.streamid ? -1 : 1))
      .map(({ streamid, content_id, key_id }) => [streamid, [content_id, key_id]]),
  );
}

const contentIds = async () =>
  Object.fromEntries(
    Object.entries(await contents()).map(([streamid, [contentId]]) => [streamid, contentId]),
  );

const ROTATED = {
  'camera.stream': 'camera.stream-1970-01-01',
  'live/news': 'live_news-1970-01-01',
  'vod/hi': 'vod_hi-1970-01-01',
  'vod/lo': 'vod_hi-1970-01-01',
  x: 'x-1970-01-01',
  y: 'y-1970-01-01',
};

const CURL = `curl -sS --fail-with-body --anyauth -u "$PACKAGER_LOGIN" -X PUT -H 'accept: application/json' http://127.0.0.1:8087/v2/servers/_defaultServer_/vhosts/_defaultVHost_/applications`;

/** A variable that stops a shell until it is set. */
const UNKNOWN = `"\${APPLICATION:?}"`;

test('shows both key ids and content ids, writes new keys, and prints what restarts the streams', async () => {
  await run(['apply', 'manifest.yaml', '--yes']);
  const before = await contents();
  const { code, stdout, stderr } = await rotate('--yes');
  const after = await contents();
  const ids = (streamid: string) => `${before[streamid]?.[1]} → ${after[streamid]?.[1]}`;
  const changed = (streamid: string, former: string, now: string) =>
    `  ~ ${streamid}\n      key id ${ids(streamid)}\n      content id ${former} → ${now}\n`;
  expect(await contentIds()).toEqual({ ...ROTATED, own: null });
  expect(new Set(Object.values(after).map(([, keyId]) => keyId)).size).toBe(6);
  const restart = (application: string, name: string, action = 'disconnectStream') =>
    `${CURL}/${application}/instances/_definst_/incomingstreams/${name}/actions/${action}\n`;
  expect({ code, stdout, stderr }).toEqual({
    code: 0,
    stdout: [
      '6 streams would get a new key\n',
      changed('live/news', 'news-1', 'live_news-1970-01-01'),
      changed('camera.stream', 'camera.stream-1', 'camera.stream-1970-01-01'),
      changed('vod/hi', 'film', 'vod_hi-1970-01-01'),
      changed('vod/lo', 'film', 'vod_hi-1970-01-01'),
      changed('x', 'x-1', 'x-1970-01-01'),
      changed('y', 'y-own', 'y-1970-01-01'),
      '1 stream not rotated: the manifest has the keys; write new ones there\n',
      '  = own\n',
      '# 6 streams to restart: each goes on with its former key until it starts again.\n',
      '# At a Wowza Streaming Engine (the commands of other packagers are not known here), with PACKAGER_LOGIN=user:password and APPLICATION=application:\n',
      restart('live', 'news'),
      restart(UNKNOWN, 'camera.stream', 'resetStream'),
      restart('vod', 'hi'),
      restart('vod', 'lo'),
      restart(UNKNOWN, 'x'),
      restart(UNKNOWN, 'y'),
    ].join(''),
    stderr: `\
manifest.yaml: 6 changed.
warning: manifest.yaml still gives other content ids: applying it unchanged restores the former keys; write the new ones into it (--json lists them)
`,
  });
});

test('writes nothing with --dry-run, nor a second time with the same content ids', async () => {
  await run(['apply', 'manifest.yaml', '--yes']);
  const before = await sidecar.files();
  const { code, stdout, stderr } = await rotate('--dry-run');
  expect([code, stderr, await sidecar.files()]).toEqual([0, 'Nothing was written.\n', before]);
  expect(stdout).not.toContain('curl');
  await rotate('--yes');
  expect(await rotate('--yes')).toEqual({
    code: 0,
    stdout: `\
6 streams would stay: they have this content id already
1 stream not rotated: the manifest has the keys; write new ones there
  = own
`,
    stderr: 'There is nothing to write.\n',
  });
});

test('asks at a terminal', async () => {
  const { code, stderr } = await run(['rotate', 'manifest.yaml'], { typed: 'n' });
  expect(stderr).toContain(`Write 6 key files at ${sidecar.url}? [y/N] `);
  expect({ code, contents: await contentIds() }).toEqual({ code: 0, contents: {} });
});

test('leaves what the sidecar refuses of a group with a key for each to the sidecar', async () => {
  await fs.writeFile(
    join(cwd, 'manifest.yaml'),
    MANIFEST.replace('keys: each', 'keys: each, heights: { sd: 720 }'),
  );
  expect((await rotate('--yes')).stderr).toContain('heights: ');
});

test('makes content ids from those of now, and of the manifest', async () => {
  await run(['apply', 'manifest.yaml', '--yes']);
  await rotate('--yes', '--content-id', '{old}-{time}');
  expect(await contentIds()).toMatchObject({ 'live/news': 'news-1-000000', 'vod/lo': 'film-000000' });
  await rotate('--yes', '--content-id', '{contentId}-b');
  expect(await contentIds()).toMatchObject({ 'live/news': 'news-1-b', 'vod/lo': 'film-b', y: 'y-own-b' });
});

test('gives each quality of a group a content id of its own, by its first member, and leaves its own keys', async () => {
  const members =
    '[{ streamid: s, quality: SD }, { streamid: h1, quality: HD }, { streamid: h2, quality: HD }, { streamid: u, quality: UHD }]';
  await fs.writeFile(
    join(cwd, 'manifest.yaml'),
    `defaults: { client: demo, clientApiKey: demo-client-api-key }\ngroups:\n  - { members: ${members}, contentId: news, keys: { SD: {}, HD: { contentId: high }, UHD: { cenc: ${OWN_KEYS} } } }\n`,
  );
  expect((await rotate('--yes', '--content-id', '{name}-{contentId}')).code).toBe(0);
  expect(await contentIds()).toEqual({ s: 's-news-sd', h1: 'h1-high', h2: 'h1-high' });
});

test('says which streams have no content id that the pattern needs', async () => {
  await fs.writeFile(
    join(cwd, 'manifest.yaml'),
    'defaults: { client: demo, clientApiKey: k }\nstreams: [{ streamid: a, contentId: a-1 }]\ngroups:\n  - { members: [b, c], keys: each }\n',
  );
  expect((await rotate('--yes', '--content-id', '{contentId}-b')).stderr).toBe(`\
error: manifest.yaml:4: b has no content id in the manifest for {contentId}.
error: manifest.yaml:4: c has no content id in the manifest for {contentId}.
`);
});

test('needs no content ids in the manifest, and makes first key files', async () => {
  await fs.writeFile(join(cwd, 'ids.csv'), 'streamid\nlive/a\nlive/b\n');
  const provider = ['--client', 'demo', '--client-api-key', 'demo-client-api-key'];
  expect(await run(['rotate', 'ids.csv', ...provider, '--yes', '--application', 'app'])).toEqual({
    code: 0,
    stdout: `\
2 streams would get a first key file
  + live/a
      content id live_a-1970-01-01
  + live/b
      content id live_b-1970-01-01
# 2 streams to restart: each goes on with its former key until it starts again.
# At a Wowza Streaming Engine (the commands of other packagers are not known here), with PACKAGER_LOGIN=user:password:
${CURL}/app/instances/_definst_/incomingstreams/a/actions/disconnectStream
${CURL}/app/instances/_definst_/incomingstreams/b/actions/disconnectStream
`,
    stderr: 'ids.csv: 2 created.\n',
  });
});

test('answers one JSON document with --json', async () => {
  await fs.writeFile(
    join(cwd, 'one.yaml'),
    `${MANIFEST.split('  - camera')[0]}  - { streamid: own, cenc: ${OWN_KEYS} }\n`,
  );
  await run(['apply', 'one.yaml', '--yes']);
  const { 'live/news': before } = await contents();
  const ended = await run(['rotate', 'one.yaml', '--yes', '--json']);
  const { 'live/news': after } = await contents();
  expect(jsonOf(ended)).toEqual({
    code: 0,
    stderr: '',
    document: {
      lineup: 'one.yaml',
      dry_run: false,
      content_id: '{streamid}-1970-01-01',
      stopped: null,
      results: [
        {
          streamid: 'live/news',
          result: 'changed',
          line: 3,
          key_id: after?.[1],
          former_key_id: before?.[1],
          content_id: 'live_news-1970-01-01',
          former_content_id: 'news-1',
          errors: [],
          warnings: [],
        },
      ],
      supplied: ['own'],
      summary: { created: 0, changed: 1, unchanged: 0, failed: 0, not_reached: 0 },
      restart: [
        {
          streamid: 'live/news',
          command: `${CURL}/live/instances/_definst_/incomingstreams/news/actions/disconnectStream`,
        },
      ],
      watched: null,
    },
  });
});

test('goes on after a stream that the provider refuses, and says how to go on after a stop', async () => {
  await fs.writeFile(
    join(cwd, 'manifest.yaml'),
    `${MANIFEST.split('groups:')[0]}  - { streamid: bad, client: nobody }\n`,
  );
  const { code, stdout, stderr } = await rotate('--yes');
  expect([code, stderr.split('\n')[0]]).toEqual([1, 'manifest.yaml: 2 created, 1 failed.']);
  expect(stdout).toContain("1 stream can't be provisioned\n  ! bad (line 6)\n");
  expect(Object.keys(await contents())).toEqual(['camera.stream', 'live/news']);
});

test.each(
  Object.entries({
    '': "This is not a terminal, so the question can't be answered. Add --yes to write the new keys, or --dry-run to preview it.",
    '--yes --content-id {date}':
      'The pattern of --content-id needs {streamid}, {name}, {contentId} or {old}: all streams would get one key otherwise.',
    '--yes --watch':
      '--watch needs --folder, the key folder of the sidecar on this machine: only the machine with the folder can see whether the packager has read a key file.',
    '--yes --random': '--random is for --stream; leave it out.',
    '--yes --folder .': '--folder and --timeout are for --watch; add it, or leave them out.',
    '--dry-run --watch --folder .': "option '--watch' cannot be used with option '--dry-run'",
    '--yes --watch --folder none': "The folder none of --folder does not exist, or can't be read.",
    '--yes --packager-url http://user:secret@host':
      '--packager-url must be an address without user and query, such as http://127.0.0.1:8087.',
  }),
)('writes nothing when it is called with %j', async (args, sentence) => {
  expect(await rotate(...args.split(' ').filter(Boolean))).toEqual(refused(2, sentence));
  expect(await sidecar.files()).toEqual({});
});

test('writes nothing for a manifest that brings all its keys, or whose streams would share one', async () => {
  await fs.writeFile(join(cwd, 'manifest.yaml'), `streams: [{ streamid: own, cenc: ${OWN_KEYS} }]\n`);
  expect((await rotate('--yes')).stderr).toBe(
    'error: No stream of manifest.yaml gets its keys from the key provider, because the manifest has the keys. Write new ones into it, and apply it.\n',
  );
  await fs.writeFile(
    join(cwd, 'manifest.yaml'),
    'defaults: { client: demo, clientApiKey: k }\nstreams:\n  - a/news\n  - b/news\n  - a_news\n',
  );
  expect((await rotate('--yes', '--content-id', '{name}-1')).stderr).toBe(
    'error: manifest.yaml:4: b/news would get the content id news-1 of a/news, and so its key; use {streamid}.\n',
  );
  expect((await rotate('--yes')).stderr).toContain('manifest.yaml:5: a_news would get the content id');
  expect(await sidecar.files()).toEqual({});
});

const isLinux = process.platform === 'linux';
const folderIsTraceable =
  isLinux &&
  untraceable(mountOf(realpathSync('/tmp'), readFileSync('/proc/self/mountinfo', 'utf8'))) === undefined;

(isLinux ? test : test.skip)("writes nothing when it can't know whether a file was read", async () => {
  const sentence =
    "Whether the packager has read a key file can't be known here: /proc/self is on proc (/proc), a network or unknown file system: this machine does not see when others read a file. Leave --watch out, and check at the packager when the streams started. Nothing was written.";
  expect(await rotate('--yes', '--watch', '--folder', '/proc/self')).toEqual(refused(2, sentence));
  expect(await sidecar.files()).toEqual({});
});

(folderIsTraceable ? describe : describe.skip)('--watch', () => {
  const watch = (timeout: string, onWait: (ms: number) => void, interrupt?: AbortSignal) =>
    run(['rotate', 'manifest.yaml', '--yes', '--watch', '--folder', sidecar.folder, '--timeout', timeout], {
      onWait,
      ...(interrupt && { interrupt }),
    });

  /** Reads a key file as a packager does; the clock of a file system goes in steps. */
  const read = (streamId: string) => {
    const path = join(sidecar.folder, `${streamId}.key`);
    for (;;) {
      readFileSync(path);
      const { atimeNs, mtimeNs } = statSync(path, { bigint: true });
      if (atimeNs > mtimeNs) return;
    }
  };

  const ALL = ['live/news', 'camera.stream', 'vod/hi', 'vod/lo', 'x', 'y'];

  test('waits until each new key file was read', async () => {
    await run(['apply', 'manifest.yaml', '--yes']);
    for (const streamId of ALL) read(streamId);
    const unread = [...ALL];
    const pauses: number[] = [];
    const ended = await watch('60', (ms) => {
      pauses.push(ms);
      read(unread.pop() ?? '');
    });
    expect(pauses).toEqual(Array(6).fill(1000));
    expect(endOf(ended)).toEqual([
      0,
      'All 6 key files were read since (the access time does not say by which program).',
    ]);
  });

  test('ends with 1 after its time, and names what was not read', async () => {
    let pauses = 0;
    const ended = await watch('5', () => {
      pauses += 1;
      if (pauses === 1) for (const streamId of ALL.slice(0, 4)) read(streamId);
    });
    expect([...endOf(ended), pauses]).toEqual([
      1,
      'Not read in time: x, y (4 of 6 key files read). Restart these streams. A packager that mounts the folder read-only, as a container may, leaves no trace: check there when they started.',
      5,
    ]);
  });

  test('ends with 130 on SIGINT, and says that the keys are written', async () => {
    const interrupt = new AbortController();
    expect(endOf(await watch('60', () => interrupt.abort(), interrupt.signal))).toEqual([
      130,
      'Stopped waiting: 0 of 6 key files read, not live/news, camera.stream, vod/hi, vod/lo, x, y. The new keys are written.',
    ]);
    expect(await contentIds()).toEqual(ROTATED);
  });

  test("says that a folder is not the sidecar's", async () => {
    expect(endOf(await rotate('--yes', '--watch', '--folder', cwd))).toEqual([
      1,
      "--folder is not the sidecar's key folder: the new key file of live/news, camera.stream, vod/hi, vod/lo, x, y is not there. The new keys are written; it is not known whether they were read.",
    ]);
    const before = await contentIds();
    const again = ['--content-id', '{streamid}-2', '--watch', '--folder', cwd];
    expect(await rotate('--yes', ...again)).toEqual(
      refused(
        2,
        "--folder is not the sidecar's key folder: it has no key file of camera.stream, live/news, vod/hi, vod/lo, x, y. Nothing was written.",
      ),
    );
    expect(await contentIds()).toEqual(before);
  });
});
