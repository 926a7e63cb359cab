import type { FleetAnswer, FleetPackager } from '../../../src/api/fleet-answers';
import { folderOfEachTest } from '../../support/after-test';
import { createFakeFleet, type FakeFleet, PACKAGER } from '../../support/fake-fleet';
import { type CliOptions, cli, refused } from '../../support/run-cli';
import { startSidecar, type TestSidecar } from '../../support/start-sidecar';

const FILE = Buffer.from('mpegdashstreaming-cenc-key-id: RNpS70UjCY5oVHd+4yJoHQ==\n');

let fleet: FakeFleet;
let sidecar: TestSidecar;
const cwd = folderOfEachTest();

beforeEach(async () => {
  fleet = createFakeFleet({
    here: { name: 'origin-1' },
    others: [{ name: 'origin-2' }, { name: 'site-b', streams: ['live/'] }],
  });
  sidecar = await startSidecar({}, undefined, { fleet: fleet.open });
});

const status = (args: readonly string[] = [], options: Partial<CliOptions> = {}) =>
  cli(['fleet', 'status', ...args], { cwd, sidecar, ...options });

const packager = (changes: Partial<FleetPackager>): FleetPackager => ({ ...PACKAGER, ...changes });

const HEAD = `\
fleet     5b1f2a52-6f0e-4a0f-9d0c-3f4d2b1a0c9e, as origin-1 sees it
state     level since 2030-06-01 12:00:00 UTC: it has every change of the engine, and receives every change
`;

test('shows that every packager has everything, and ends with 0', async () => {
  await fleet.arrive('live/a', FILE);
  await fleet.arrive('vod/b', FILE);
  await fleet.arrive('vod/b', undefined);
  fleet.say({ revision: 4 });
  expect(await status()).toEqual({
    code: 0,
    stdout: `${HEAD}revision  4
streams   1 with a key file, 1 deleted

ENGINE              ROLE    VERSION  DATABASE                       ALARMS
http://etcd-1:2379  leader  3.4.23   24 KiB (16 KiB used) of 2 GiB  -

PACKAGER  LIVE  STATE  BEHIND  KEPT  UNREADABLE  FAILED  OLDER  CLOCK  VERSION  STREAMS
origin-1  yes   level  -       -     -           -       -      ±1 s   1.2.3    all
origin-2  yes   level  -       -     -           -       -      ±1 s   1.2.3    all
site-b    yes   level  -       -     -           -       -      ±1 s   1.2.3    live/
`,
    stderr: 'All 3 live packagers have everything.\n',
  });
});

test('names the streams that are missing at packagers, those in trouble first, and ends with 1', async () => {
  const late = { behind: 1, behind_seconds: 0.42, clock_ahead_ms: -3_600_000 };
  const wrong = { state: 'wrong_secret', clock_ahead_ms: 2500 } as const;
  const lacks = (['kept', 'behind', 'failed'] as const).map((why) => ({ streamid: `live/${why}`, why }));
  fleet.say({
    revision: 1,
    missing: 2,
    former_secret: { entries: 3000, streamids: Array.from({ length: 100 }, (_, index) => `live/${index}`) },
    missing_secret: { entries: 1, streamids: ['live/x'] },
    ignored: 2,
    compacted: false,
    engine: [
      { url: 'http://etcd-1:2379', fault: 'ECONNREFUSED' },
      { url: 'http://etcd-2:2379', version: '3.4.23', leader: false, size: 2e9, alarms: ['NOSPACE'] },
      { url: 'http://etcd-3:2379' },
    ],
    packagers: [
      packager({ name: 'a' }),
      packager({ name: 'b', live: false, behind: 1234, behind_seconds: 4000 }),
      packager({ ...late, name: 'c', lacking: 3, lacks }),
      packager({ ...wrong, name: 'd', lacking: 200, lacks: unreadable(100) }),
    ],
  });
  const { code, stdout, stderr } = await status();
  expect({ code, stdout: stdout.split('\n').slice(2), stderr }).toEqual({
    code: 1,
    stdout: `\
revision  1
streams   0 with a key file, 0 deleted, 2 key files here that the engine does not know
secret    3,000 entries sealed with a former one (such as live/0, live/1, live/2, live/3, live/4): run fleet reseal before it is removed from any file
secret    1 entry sealed with one that is missing here (live/x): append it to the file of secrets
ignored   2 keys of the engine without a name of a packager

ENGINE              ROLE      VERSION  DATABASE (not compacted)  ALARMS
http://etcd-1:2379  can't be reached: ECONNREFUSED
http://etcd-2:2379  follower  3.4.23   1.9 GiB                   NOSPACE
http://etcd-3:2379  -         -        -                         -

PACKAGER  LIVE  STATE         BEHIND                 KEPT  UNREADABLE  FAILED  OLDER  CLOCK    VERSION  STREAMS
c         yes   level         1 change, 0.4 s        1     -           1       -      -60 min  1.2.3    all
d         yes   wrong_secret  -                      -     100+        -       -      +2.5 s   1.2.3    all
b         no    level         1,234 changes, 67 min  -     -           -       -      -        1.2.3    all
a         yes   level         -                      -     -           -       -      -        1.2.3    all

LACKS
  c: live/kept: kept, a file that is not the fleet's is in its place, and stays until a POST replaces it
  c: live/failed: failed, the file could not be written or removed; the sidecar retries
${unreadable(20)
  .map(
    ({ streamid }) =>
      `  d: ${streamid}: unreadable, the packager cannot open the engine's entry: sealed with another secret, or damaged\n`,
  )
  .join('')}  d: and 180 more; --all names up to 100
`.split('\n'),
    stderr: '2 of 3 live packagers are incomplete: c, d. 1 packager is not live: b.\n',
  });
});

function unreadable(number: number): FleetPackager['lacks'] {
  return Array.from({ length: number }, (_item, index) => ({ streamid: `s${index}`, why: 'unreadable' }));
}

test('names 20 packagers, those in trouble among them, and all with --all', async () => {
  const packagers = Array.from({ length: 300 }, (_item, index) => packager({ name: `p${index}` }));
  fleet.say({ packagers: [...packagers, packager({ name: 'slow', behind: 2, behind_seconds: 30 })] });
  const rows = (text: string) => text.split('PACKAGER')[1]?.trim().split('\n').slice(1) ?? [];
  const { stdout } = await status();
  expect(stdout).toContain('\nPACKAGER  LIVE  ');
  const some = rows(stdout);
  expect([some.length, some[0]?.replaceAll(/ +/g, ' '), some.at(-1)]).toEqual([
    21,
    'slow yes level 2 changes, 30 s - - - - - 1.2.3 all',
    'and 281 more; --all names them',
  ]);
  expect(rows((await status(['--all'])).stdout)).toHaveLength(301);
});

test.each<[string, Partial<FleetAnswer>, number, string]>([
  [
    'a packager that is not live does not count',
    { packagers: [packager({ name: 'a' }), packager({ name: 'b', live: false, behind: 2, lacking: 2 })] },
    0,
    'The live packager has everything. 1 packager is not live: b.\n',
  ],
  [
    'a full engine is reported, and leaves everybody with everything',
    { engine: [{ url: 'http://etcd-1:2379', alarms: ['NOSPACE'] }], packagers: [packager({ name: 'a' })] },
    0,
    'The live packager has everything. The engine has used up its quota and accepts no changes: see packager-drm doctor.\n',
  ],
  [
    'this sidecar being away does',
    { state: 'away', packagers: [packager({ name: 'a' })] },
    1,
    'This sidecar is not level with the fleet: it does not reach the engine; the key files in its folder stay.\n',
  ],
])('ends as its sentence says: %s', async (_name, said, code, sentence) => {
  fleet.say(said);
  const ended = await status();
  expect([ended.code, ended.stderr]).toEqual([code, sentence]);
});

test("shows no control character of a name, and prints the API's answer with --json", async () => {
  fleet.say({ packagers: [packager({ name: 'a\u001b[2J' })] });
  expect((await status()).stdout).toContain('a\ufffd[2J');
  const { stdout } = await status(['--json']);
  const { body } = await sidecar.api.get('/api/fleet').expect(200);
  expect(JSON.parse(stdout)).toEqual(body);
  expect(stdout).not.toContain('\u001b');
});

describe('of a stream', () => {
  test('shows who has it, and why not', async () => {
    fleet.hold('origin-2', 'kept');
    await fleet.arrive('live/a', FILE, 'site-b', { key: 'ops' });
    const shown = await status(['live/a']);
    const { body } = await sidecar.api.get('/api/fleet/live%2Fa').expect(200);
    expect(shown).toEqual({
      code: 1,
      stdout: `\
stream    live/a has a key file, ETag ${body.etag}
revision  ${body.revision}
changed   2030-06-01 12:00:00 UTC by the API key ops at site-b

PACKAGER  LIVE  HAS IT  WHY NOT
origin-1  yes   yes
origin-2  yes   no      kept: a file that is not the fleet's is in its place, and stays until a POST replaces it
site-b    yes   yes
`,
      stderr: '2 of 3 packagers have it.\n',
    });
    expect(JSON.parse((await status(['live/a', '--json'])).stdout)).toEqual(body);
    fleet.setLive('origin-2', false);
    expect((await status(['live/a'])).code).toBe(0);
  });

  test("says when the fleet has none, and when it can't be opened", async () => {
    expect(await status(['live/a'])).toEqual(refused(1, 'The fleet has no entry for this stream.'));
    await fleet.arrive('live/a', FILE);
    fleet.spoil('live/a');
    expect(await status(['live/a'])).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^stream {4}live\/a has an entry that can't be opened here\n/),
      stderr: "Its entry in the fleet can't be opened here; 2 of 3 packagers have it.\n",
    });
    expect((await status(['../a'])).code).toBe(2);
  });
});

describe('--watch', () => {
  /** Does something at each wait, and stops at the last one. */
  function watch(last: number, atWait: (wait: number) => void, args: string[] = [], typed?: string) {
    const stop = new AbortController();
    let waits = 0;
    const onWait = (ms: number) => {
      waits += 1;
      expect(ms).toBe(1000);
      atWait(waits);
      if (waits === last) stop.abort();
    };
    const options = { interrupt: stop.signal, onWait, ...(typed !== undefined && { typed }) };
    return status(['--watch', ...args], options);
  }

  test('draws what changes until Ctrl-C, and leaves the last of it', async () => {
    const slow = packager({ name: 'slow', behind: 5, behind_seconds: 9 });
    const { code, stdout } = await watch(2, (wait) => wait === 1 && fleet.say({ packagers: [slow] }), [], '');
    expect(code).toBe(1);
    const screens = stdout.split('\u001b[H');
    expect(screens).toHaveLength(3);
    expect(screens[0]).toBe('\u001b[?1049h\u001b[?7l\u001b[?25l');
    expect(screens[1]).toContain('All 3 live packagers have everything.\u001b[K\r\n');
    const [last, after] = screens[2]?.split('\u001b[?25h\u001b[?7h\u001b[?1049l') ?? [];
    expect(last).toMatch(/slow +yes +level +5 changes, 9 s /);
    expect(last?.endsWith('\u001b[J')).toBe(true);
    const packagers = Array.from({ length: 30 }, (_item, index) => packager({ name: `p${index}` }));
    fleet.say({ packagers });
    expect((await watch(1, () => undefined, [], '')).stdout).toContain(
      'and 10 more lines; the window is too small\u001b[K\u001b[J',
    );
    expect(after).toMatch(/^fleet .*slow +yes +level +5 changes, 9 s .*\n$/s);
  });

  test('goes on while the sidecar does not answer, and says so', async () => {
    let wait = 0;
    fleet.say({
      get state() {
        if (wait === 1) throw new TypeError();
        return 'level' as const;
      },
    });
    const at = (number: number) => {
      wait = number;
    };
    const screens = (await watch(3, at, [], '')).stdout.split('\u001b[H');
    expect(screens[2]).toContain('The service failed.');
    expect(screens[3]).toContain('All 3 live packagers have everything.');
    const { stdout, stderr } = await watch(3, at, ['--json']);
    expect([stdout.trimEnd().split('\n').length, stderr]).toEqual([
      2,
      expect.stringMatching(/^warning: The service failed\./),
    ]);
  });

  test('writes an answer a line with --json, and needs a terminal without', async () => {
    const { code, stdout } = await watch(2, () => undefined, ['--json']);
    const lines = stdout.trimEnd().split('\n');
    expect({ code, states: lines.map((line) => JSON.parse(line).state) }).toEqual({
      code: 0,
      states: ['level', 'level'],
    });
    expect(await status(['--watch'])).toEqual(
      refused(2, '--watch needs a terminal. With --json it writes an answer each second anywhere.'),
    );
  });
});
