import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import fs from 'fs-extra';
import { LACK_REASONS } from '../../../src/api/fleet';
import type { FleetPackager } from '../../../src/api/fleet-answers';
import { apiError } from '../../../src/sidecar/errors';
import { folderOfEachTest } from '../../support/after-test';
import { createFakeFleet, type FakeFleet, PACKAGER } from '../../support/fake-fleet';
import { startProxy } from '../../support/proxy';
import { type CliOptions, type CliRun, cli, endOf, jsonOf } from '../../support/run-cli';
import { apiKeysFile, startSidecar, type TestSidecar } from '../../support/start-sidecar';

const KEY = ['--cenc-keyid', 'RNpS70UjCY5oVHd+4yJoHQ==', '--cenc-contentkey', 'lnA03mLuxnL3toiRMxV4Zw=='];
const CSV = `streamid,cenc.keyid,cenc.contentkey
live/a,RNpS70UjCY5oVHd+4yJoHQ==,lnA03mLuxnL3toiRMxV4Zw==
vod/b,RNpS70UjCY5oVHd+4yJoHQ==,lnA03mLuxnL3toiRMxV4Zw==
`;

let fleet: FakeFleet;
let sidecar: TestSidecar;
const cwd = folderOfEachTest();

beforeEach(async () => {
  fleet = createFakeFleet({
    here: { name: 'origin-1' },
    others: [{ name: 'origin-2' }, { name: 'site-b', streams: ['vod/'] }],
  });
  sidecar = await startSidecar({}, undefined, { fleet: fleet.open });
  await fs.writeFile(join(cwd, 'many.csv'), CSV);
});

const run = (args: readonly string[], options: Partial<CliOptions> = {}) =>
  cli(args, { cwd, sidecar, ...options });

const apply = (args: readonly string[], options?: Partial<CliOptions>) =>
  run(['apply', 'many.csv', '--yes', ...args], options);

const noted = ({ code, stderr }: CliRun) => ({ code, stderr });

describe('of one stream', () => {
  test('put and delete wait in the sidecar, and end with 0 when every packager has it', async () => {
    expect((await run(['put', 'live/a', ...KEY, '--wait'])).code).toBe(0);
    expect(await run(['delete', 'live/a', '--wait', '5'])).toEqual({
      code: 0,
      stdout: '',
      stderr: 'Removed the key file of live/a.\n',
    });
    expect(fleet.waits.map(({ seconds }) => seconds)).toEqual([30, 5]);
  });

  test('they end with 1, and name who is behind, when it takes longer', async () => {
    fleet.hold('origin-2');
    const behind =
      'warning: fleet_behind: not everything is at origin-2 after 1 second; the fleet has accepted the change, and each packager takes it as soon as it can. GET /api/fleet/{streamid} lists who has it\n';
    expect(noted(await run(['put', 'live/a', ...KEY, '--wait', '1']))).toEqual({
      code: 1,
      stderr: expect.stringContaining(`${behind}Wrote the key file of live/a, ETag `),
    });
    expect(await run(['delete', 'live/a', '--wait', '1'])).toEqual({
      code: 1,
      stdout: '',
      stderr: `${behind}Removed the key file of live/a.\n`,
    });
  });

  test('without --wait, what is accepted and not yet here is done, with a warning', async () => {
    fleet.faultHere = apiError('insufficient_storage');
    const { code, stderr } = await run(['put', 'live/a', ...KEY]);
    expect(code).toBe(0);
    expect(stderr).toContain('warning: fleet_not_here: the fleet has accepted the change');
    const warnings = [{ code: 'fleet_not_here' }];
    expect(jsonOf(await run(['put', 'live/a', ...KEY, '--json'])).document).toMatchObject({
      warnings: [{ code: 'no_drm_system' }, ...warnings],
    });
    fleet.faultHere = undefined;
    await run(['put', 'live/a', ...KEY]);
    fleet.faultHere = apiError('insufficient_storage');
    const { document } = jsonOf(await run(['delete', 'live/a', '--json']));
    expect(document).toMatchObject({ result: 'deleted', warnings });
  });

  test.each([
    [['put', 'live/a', ...KEY, '--wait', '31'], '--wait takes at most 30 seconds for one stream.'],
    [['delete', 'live/a', '--wait', '31'], '--wait takes at most 30 seconds for one stream.'],
    [
      ['put', 'live/a', ...KEY, '--dry-run', '--wait'],
      "option '--wait [seconds]' cannot be used with option '--dry-run'",
    ],
    [
      ['apply', 'many.csv', '--dry-run', '--wait'],
      "option '--wait [seconds]' cannot be used with option '--dry-run'",
    ],
    [['put', 'live/a', ...KEY, '--wait', 'long'], 'It must be a whole number from 1.'],
  ])('%j is wrong usage', async (args, sentence) => {
    expect(noted(await run(args))).toEqual({ code: 2, stderr: expect.stringContaining(sentence) });
  });
});

describe('apply --wait', () => {
  test('ends when every packager has everything', async () => {
    fleet.hold('origin-2');
    let waits = 0;
    const onWait = (ms: number) => {
      waits += 1;
      expect(ms).toBe(500);
      if (waits === 3) fleet.release('origin-2');
    };
    expect(noted(await apply(['--wait'], { onWait }))).toEqual({
      code: 0,
      stderr: 'many.csv: 2 created.\nAll 3 packagers have everything.\n',
    });
    expect(waits).toBe(3);
    // The packagers are asked to report at once by the last request alone, which waits for a second.
    expect(fleet.waits.map(({ seconds }) => seconds)).toEqual([1]);
  });

  test('waits for what was there before, too', async () => {
    fleet.hold('origin-2');
    await apply([]);
    expect(noted(await apply(['--wait', '1']))).toEqual({
      code: 1,
      stderr: `\
There is nothing to write.
Not everywhere in time: origin-2 (2 changes behind) (2 of 3 packagers have everything). The fleet has accepted the changes, and these packagers receive them as soon as they can: packager-drm fleet status shows it.
`,
    });
  });

  test('does not wait for a packager that takes none of the streams', async () => {
    await fleet.arrive('vod/other', Buffer.from('x: 1\n'));
    fleet.hold('site-b', 'kept');
    await fleet.arrive('vod/other', Buffer.from('x: 2\n'));
    await fs.writeFile(join(cwd, 'many.csv'), CSV.replace(/vod\/b.*\n/, ''));
    expect(noted(await apply(['--wait']))).toEqual({
      code: 0,
      stderr: 'many.csv: 1 created.\nAll 2 packagers have everything.\n',
    });
  });

  test('asks who has a stream that the sidecar does not take', async () => {
    const others = [{ name: 'origin-2' }, { name: 'site-b', streams: ['vod/'] }];
    fleet = createFakeFleet({ here: { name: 'origin-1', streams: ['live/'] }, others });
    sidecar = await startSidecar({}, undefined, { fleet: fleet.open });
    fleet.hold('site-b');
    expect(noted(await apply(['--wait', '1']))).toEqual({
      code: 1,
      stderr: expect.stringContaining(
        `\nNot everywhere in time: site-b (vod/b: ${LACK_REASONS.behind}) (2 of 3 packagers have everything).`,
      ),
    });
    expect(endOf(await apply(['--wait'], { onWait: () => fleet.release('site-b') }))).toEqual([
      0,
      'All 3 packagers have everything.',
    ]);
  });

  test('says that no packager takes the streams', async () => {
    fleet = createFakeFleet({ here: { name: 'origin-1', streams: ['other/'] }, others: [] });
    sidecar = await startSidecar({}, undefined, { fleet: fleet.open });
    expect(endOf(await apply(['--wait']))).toEqual([
      0,
      'No registered packager takes these streams. The fleet keeps the changes for one that does.',
    ]);
  });

  test('names a packager whose file stays as it is, and why, with --json, too', async () => {
    fleet.hold('site-b', 'kept');
    const { code, stdout } = await apply(['--wait', '1', '--json']);
    const lacks = [{ streamid: 'vod/b', why: 'kept' }];
    const behind = [{ name: 'site-b', live: true, behind: 0, lacks }];
    expect([code, JSON.parse(stdout).fleet]).toEqual([1, { end: 'timeout', packagers: 3, behind }]);
    const { stderr } = await apply(['--wait', '1']);
    expect(stderr).toContain(
      `Not everywhere in time: site-b (vod/b: ${LACK_REASONS.kept}) (2 of 3 packagers`,
    );
  });

  test('names a packager that is not live, and ends with 130 when the user stops waiting', async () => {
    fleet.setLive('origin-2', false);
    const stop = new AbortController();
    expect(noted(await apply(['--wait'], { interrupt: stop.signal, onWait: () => stop.abort() }))).toEqual({
      code: 130,
      stderr:
        'many.csv: 2 created.\nStopped waiting: 2 of 3 packagers have everything, not origin-2 (not live). The fleet has accepted the changes.\n',
    });
  });

  test('shows on a terminal how many packagers have everything', async () => {
    fleet.hold('origin-2');
    const { stderr } = await apply(['--wait'], { typed: '', onWait: () => fleet.release('origin-2') });
    expect(stderr).toMatch(/Packagers with everything 3 of 3 █/);
  });

  test('waits a minute by default, by the clock if its pauses are shorter', async () => {
    fleet.hold('origin-2');
    let at = 0;
    const onWait = () => {
      at += 20_000;
    };
    expect((await apply(['--wait'], { now: () => new Date(at), onWait })).code).toBe(1);
    expect(at).toBe(60_000);
  });

  test('waits also when it has nothing to send', async () => {
    await apply([]);
    expect(endOf(await apply(['--verbose', '--wait']))).toEqual([0, 'All 3 packagers have everything.']);
  });

  test('says nothing of packagers when nothing, or not everything, was written', async () => {
    const client = ['--wait', '--client', 'c', '--client-api-key', 'k'];
    await fs.writeFile(join(cwd, 'many.csv'), 'streamid,contentId\nlive/a,c\n');
    expect(noted(await apply(client))).toEqual({ code: 1, stderr: 'many.csv: 1 failed.\n' });
    const [head = '', row = ''] = CSV.split('\n');
    const rows = Array.from({ length: 101 }, (_, index) => row.replace('live/a', `s${index}`));
    await fs.writeFile(join(cwd, 'many.csv'), [head, ...rows].join('\n'));
    const stop = new AbortController();
    const url = await startProxy(sidecar.url, ({ method }) => method === 'POST' && stop.abort());
    expect(endOf(await apply(['--wait', '--url', url], { interrupt: stop.signal }))).toEqual([
      130,
      'many.csv: 100 created, 1 not reached.',
    ]);
  });

  const FAR = 1_000_000;

  test.each<[what: string, packager: Partial<FleetPackager>, revision: number, code: number]>([
    ['misses another stream', { lacks: [{ streamid: 'x', why: 'kept' }], lacking: 1, applied: FAR }, FAR, 0],
    ['misses more than it names', { lacking: 1, applied: FAR }, FAR, 1],
    [
      'misses later changes',
      { lacks: [{ streamid: 'live/a', why: 'behind' }], lacking: 1, behind: 1, applied: FAR },
      FAR,
      0,
    ],
    ['has everything of its streams', { applied: null }, FAR, 0],
    ['had everything before', { applied: 1 }, 1, 1],
  ])('of a packager that %s', async (_what, packager, revision, code) => {
    fleet.say({ revision, packagers: [{ ...PACKAGER, ...packager }] });
    const ended = await apply(['--wait', '1']);
    expect(ended.code).toBe(code);
    if (code === 0) expect(endOf(ended)[1]).toBe('The packager has everything.');
  });

  describe('when the sidecar', () => {
    /** A proxy before it that does something when the fleet is asked for, after the first time. */
    const atLooks = (what: (look: number, request: IncomingMessage) => unknown) => {
      let looks = -1;
      return startProxy(sidecar.url, (request) => {
        if (request.url !== '/api/fleet') return undefined;
        looks += 1;
        return looks > 0 && what(looks, request);
      });
    };
    const UNKNOWN = 'Whether every packager has everything is not known. The fleet has accepted the changes.';

    test('is away for a moment, asks again', async () => {
      const url = await atLooks((look) => look < 3 && 'cut');
      expect((await apply(['--wait', '--url', url])).code).toBe(0);
    });

    test('stays away, ends with 3', async () => {
      const url = await atLooks(() => 'cut');
      const { code, stderr } = await apply(['--wait', '1', '--url', url]);
      expect([code, stderr]).toEqual([3, expect.stringMatching(/^error: No answer from /m)]);
      expect(stderr).toContain(`\n${UNKNOWN}\n`);
    });

    test('refuses, ends with 3 at once', async () => {
      expect((await apply(['--wait', '--key', 'another'])).code).toBe(3);
      const url = await atLooks((_look, { headers }) => delete headers['x-api-key']);
      const onWait = jest.fn();
      const { code, document } = jsonOf(await apply(['--wait', '--json', '--url', url], { onWait }));
      const errors = [{ code: 'unauthorized', description: expect.any(String) }];
      expect([code, document.fleet]).toEqual([3, { end: 'unknown', packagers: 0, behind: [], errors }]);
      expect(onWait).not.toHaveBeenCalled();
    });

    test('is asked while the user stops, ends with 130', async () => {
      const stop = new AbortController();
      const url = await atLooks(() => stop.abort());
      expect((await apply(['--wait', '--url', url], { interrupt: stop.signal })).code).toBe(130);
    });
  });

  test('sends nothing when the sidecar is in no fleet, or does not show it', async () => {
    const alone = await startSidecar();
    expect(noted(await apply(['--wait'], { sidecar: alone }))).toEqual({
      code: 1,
      stderr:
        'error: This sidecar is not in a fleet. To join one, set PACKAGERDRMAPI_FLEET_URLS and PACKAGERDRMAPI_FLEET_SECRET_FILE. Or leave --wait out. Nothing was sent.\n',
    });
    expect(await alone.files()).toEqual({});
    const keys = await apiKeysFile({ name: 'live', key: 'k'.repeat(32), streams: ['live/'] });
    const limited = await startSidecar(keys, undefined, { fleet: createFakeFleet().open });
    const env = { PACKAGERDRM_URL: limited.url, PACKAGERDRM_APIKEY: 'k'.repeat(32) };
    const sentence =
      '--wait needs an API key without stream limits, because it checks the whole fleet. Nothing was sent.\n';
    expect(noted(await apply(['--wait'], { env }))).toEqual({
      code: 1,
      stderr: expect.stringContaining(sentence),
    });
    expect(Object.keys(await limited.files()).filter((name) => name.endsWith('.key'))).toEqual([]);
  });
});

test('delete --wait of several waits for all of them to be gone', async () => {
  await apply([]);
  expect(noted(await run(['delete', 'live/a', 'vod/b', '--yes', '--wait']))).toEqual({
    code: 0,
    stderr: 'Key files: 2 deleted.\nAll 3 packagers have everything.\n',
  });
  await apply([]);
  fleet.hold('origin-2');
  expect((await run(['delete', '--prefix', 'vod/', '--yes', '--wait', '1'])).code).toBe(1);
});
