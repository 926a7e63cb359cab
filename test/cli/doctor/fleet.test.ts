import { join } from 'node:path';
import fs from 'fs-extra';
import type { LackReason } from '../../../src/api/fleet';
import type { FleetAnswer, FleetPackager } from '../../../src/api/fleet-answers';
import { CliError, EXIT } from '../../../src/cli/cli-error';
import { readKeyFolder } from '../../../src/cli/doctor/key-folder';
import { createFakeFleet, PACKAGER as LEVEL } from '../../support/fake-fleet';
import { startSidecar } from '../../support/start-sidecar';
import { install } from './installation';
import { clientOf, type Finding, lineOf, runDoctor, sectionsOf, sidecarOn } from './run-doctor';

const PACKAGER: FleetPackager = { ...LEVEL, name: 'a' };

const SERVER = { url: 'http://etcd-1:2379', version: '3.4.23', leader: true, size: 24_576, alarms: [] };

const ANSWER: FleetAnswer = {
  name: 'a',
  fleet: 'fleet-id',
  state: 'level',
  since: '2030-06-01T12:00:00.000Z',
  revision: 7,
  engine: [SERVER, { ...SERVER, url: 'http://etcd-2:2379' }, { ...SERVER, url: 'http://etcd-3:2379' }],
  compacted: true,
  streams: 3,
  deleted: 0,
  missing: 0,
  packagers: [PACKAGER, { ...PACKAGER, name: 'b' }],
};

let packager: string;

beforeEach(async () => {
  packager = await install();
});

const saying = (status: () => Promise<FleetAnswer>) => () =>
  sidecarOn(join(packager, 'keys'), { fleet: { status } });

async function fleetFindings(changes: Partial<FleetAnswer>): Promise<Finding[]> {
  const sidecar = saying(async () => ({ ...ANSWER, ...changes }));
  const sections = await sectionsOf(packager, [], { sidecar });
  return sections.flatMap(({ kind, findings }) => (kind === 'fleet' ? [...findings] : []));
}

const wrong = async (changes: Partial<FleetAnswer>) =>
  (await fleetFindings(changes)).filter(({ severity }) => severity !== 'ok');

const codesOf = async (changes: Partial<FleetAnswer>) => (await wrong(changes)).map(({ code }) => code);

test('finds a fleet well', async () => {
  expect(await fleetFindings({})).toEqual([
    { severity: 'ok', code: 'fleet_state', message: 'a is level with the fleet' },
    { severity: 'ok', code: 'fleet_engine', message: 'All 3 servers of the engine can be reached' },
    { severity: 'ok', code: 'fleet_packagers', message: 'All 2 packagers are live and have everything' },
  ]);
});

test("shows a real sidecar's fleet after the sidecar, and what to do about a packager that is gone", async () => {
  const fleet = createFakeFleet();
  fleet.setLive('origin-3', false);
  const keyFilesPath = join(packager, 'keys');
  const { url } = await startSidecar({ keyFilesPath }, undefined, { fleet: fleet.open });
  const { stdout } = await runDoctor(packager, [], { sidecar: clientOf(url) });
  expect(stdout).toContain(`
  ok       It lists 3 key files

5b1f2a52-6f0e-4a0f-9d0c-3f4d2b1a0c9e  the fleet of packagers, as origin-1 sees it
  ok       origin-1 is level with the fleet
  ok       The server of the engine can be reached
  warning  origin-3 is not live, and reported last at 2030-06-01T12:00:00.000Z
           to do: start its sidecar, or let it reach the engine; retire a packager that no longer exists with:
             packager-drm fleet retire origin-3
`);
});

test.each([
  ['joining', 'warning'],
  ['away', 'fault'],
  ['wrong_secret', 'fault'],
  ['other_fleet', 'fault'],
  ['lost_fleet', 'fault'],
  ['name_taken', 'fault'],
  ['denied', 'fault'],
  ['no_folder', 'fault'],
] as const)('says what to do in the state %s, of this sidecar and of another', async (state, severity) => {
  const [own] = await wrong({ state });
  expect(own).toMatchObject({
    severity,
    code: `fleet_${state}`,
    message: expect.stringContaining(`(${state}, since `),
  });
  const [other] = await wrong({ packagers: [PACKAGER, { ...PACKAGER, name: 'b', state }] });
  expect(other).toMatchObject({ severity, code: `fleet_packager_${state}`, todo: `at b: ${own?.todo}` });
});

const one = (changes: Partial<FleetPackager>) => ({ packagers: [{ ...PACKAGER, ...changes }] });
const lacking = (why: LackReason, number: number, changes: Partial<FleetPackager> = {}) => ({
  lacking: number,
  lacks: Array.from({ length: number }, (_item, index) => ({ streamid: `s${index}`, why })),
  ...changes,
});
const server = (changes: Partial<FleetAnswer['engine'][number]>) => ({ engine: [{ ...SERVER, ...changes }] });

const DEFECTS: Readonly<Record<string, Partial<FleetAnswer>>> = {
  'a server that is away': {
    engine: [...ANSWER.engine.slice(1), { url: 'http://etcd-1:2379', fault: 'ECONNREFUSED' }],
  },
  'an engine without a leader': server({ leader: false }),
  'a server that does not say who leads': { engine: [{ url: 'http://etcd-1:2379' }] },
  'a full engine': {
    engine: [
      { ...SERVER, alarms: ['NOSPACE'] },
      { ...SERVER, url: 'http://etcd-2:2379' },
    ],
  },
  'damaged data': server({ alarms: ['CORRUPT'] }),
  'a quota that is nearly used up': server({ size: 850, quota: 1000 }),
  'a quota that is not reported': server({ size: 1_900_000_000 }),
  'no compaction': { compacted: false },
  'key files that the engine has lost': { missing: 2 },
  'a rotation that was not resealed': { former_secret: { entries: 3000, streamids: ['s0', 's1'] } },
  'a secret that is missing': { missing_secret: { entries: 1, streamids: ['s0'] } },
  'odd names in the engine': { ignored: 2 },
  'a clock that is off': one({ clock_ahead_ms: 2500 }),
  'a clock that is an hour off': one({ clock_ahead_ms: -3_600_000 }),
  'a packager that is behind': one({ behind: 3, behind_seconds: 30 }),
  'a packager that is gone': one({ live: false, behind: 1 }),
  'kept files': one(lacking('kept', 7)),
  'a newer state at two packagers': {
    packagers: ['a', 'b'].map((name) => ({ ...PACKAGER, name, ...lacking('older', 1) })),
  },
  'no room': one(lacking('failed', 1)),
  'an entry that cannot be opened': one(lacking('unreadable', 1, { lacking: 101 })),
};

test('says exactly what is wrong, and what to do', async () => {
  const reported: string[] = [];
  for (const [defect, changes] of Object.entries(DEFECTS))
    for (const finding of await wrong(changes))
      reported.push(`${defect}:\n  ${lineOf(finding)}${finding.command ? `: ${finding.command}` : ''}`);
  expect(reported.join('\n')).toMatchInlineSnapshot(`
"a server that is away:
  warning fleet_server_unreachable: 1 server of the engine can't be reached: http://etcd-1:2379 (ECONNREFUSED) → start it, or take its address out of PACKAGERDRMAPI_FLEET_URLS: without a majority nothing can be changed
an engine without a leader:
  fault fleet_no_leader: None of the servers that answer is the leader of the engine → an election takes a few seconds; if it lasts, the servers do not reach each other, or some of them are missing in PACKAGERDRMAPI_FLEET_URLS
a full engine:
  fault fleet_engine_alarm: The engine warns of NOSPACE (http://etcd-1:2379): its quota is used up, and it accepts no changes → compact and defragment it, then disarm the alarm, with the user and certificates that etcdctl needs there; then turn compaction on, or give it a larger --quota-backend-bytes: etcdctl --endpoints=http://etcd-1:2379,http://etcd-2:2379 compact 7 && etcdctl --endpoints=http://etcd-1:2379,http://etcd-2:2379 defrag && etcdctl --endpoints=http://etcd-1:2379,http://etcd-2:2379 alarm disarm
damaged data:
  fault fleet_engine_alarm: The engine warns of CORRUPT (http://etcd-1:2379) → a server has damaged data, and no change is accepted. It may be one that does not answer or is gone: etcdctl alarm list shows its member id. Remove that one from the cluster, add it again with an empty folder, and then disarm the alarm; docs/fleet.md says how
a quota that is nearly used up:
  warning fleet_quota: More than 80 % of the quota of the engine is used: http://etcd-1:2379 (85 %). When it is used up nothing can be changed → compact and defragment it, with the user and certificates that etcdctl needs there, or give it a larger --quota-backend-bytes: etcdctl --endpoints=http://etcd-1:2379 compact 7 && etcdctl --endpoints=http://etcd-1:2379 defrag
a quota that is not reported:
  warning fleet_quota: More than 80 % of the quota (2 GiB unless --quota-backend-bytes says another) of the engine is used: http://etcd-1:2379 (88 %). When it is used up nothing can be changed → compact and defragment it, with the user and certificates that etcdctl needs there, or give it a larger --quota-backend-bytes: etcdctl --endpoints=http://etcd-1:2379 compact 7 && etcdctl --endpoints=http://etcd-1:2379 defrag
no compaction:
  warning fleet_compaction_off: The engine is not compacted: it keeps every former revision until its quota is used up → start its servers with --auto-compaction-mode=periodic --auto-compaction-retention=1h
key files that the engine has lost:
  warning fleet_missing: 2 key files of the fleet are here that the engine no longer knows → they stay; packager-drm fleet import brings them back into the fleet, unless a newer backup of the engine is still to be restored
a rotation that was not resealed:
  warning fleet_former_secret: Sealed with another secret than the first of the file: 3,000 entries of the fleet (such as s0, s1) → before a secret is removed from any file, seal them with the first one: packager-drm fleet reseal
a secret that is missing:
  fault fleet_missing_secret: Sealed with a secret that is missing here: 1 entry of the fleet (s0) → append that secret to the file of PACKAGERDRMAPI_FLEET_SECRET_FILE, or reseal at a sidecar that has it; if no secret of the fleet is missing, another writer has changed the engine: POST the streams again
odd names in the engine:
  warning fleet_ignored_names: 2 keys of the engine below packagers/, live/ or reports/ have no name of a packager → they have no effect; find out which other writer reaches the engine, and remove them with etcdctl
a clock that is off:
  warning fleet_clock: The clock differs from the engine's: a (+2.5 s) → synchronize it with NTP (timedatectl, chronyc tracking), on the engine's servers, too
a clock that is an hour off:
  fault fleet_clock: The clock differs from the engine's: a (-60 min) → synchronize it with NTP (timedatectl, chronyc tracking), on the engine's servers, too
a packager that is behind:
  warning fleet_packager_behind: a is 3 changes behind, for 30 s → check its load, its disk and its connection to the engine; its log says more
a packager that is gone:
  warning fleet_packager_not_live: a is not live, and reported last at 2030-06-01T12:00:00.000Z; it is 1 change behind → start its sidecar, or let it reach the engine; retire a packager that no longer exists with: packager-drm fleet retire a
kept files:
  warning fleet_kept: 7 streams differ from the fleet, because a file that is not the fleet's is in its place, and stays until a POST replaces it: s0 at a, s1 at a, s2 at a, s3 at a, s4 at a and 2 more → if the fleet is right, remove the file from the packager's folder: the fleet's file then arrives automatically; else provision the stream with the keys of the file. Until then the packager uses its own file
a newer state at two packagers:
  warning fleet_older: 1 stream differs from the fleet, because the engine holds an older state than the packager: a backup was restored, or an old entry replayed: s0 at a, s0 at b → the packager keeps its newer state; bring it back with packager-drm fleet import there, or provision or delete the stream again, or restore a newer backup
no room:
  fault fleet_failed: 1 stream differs from the fleet, because the file could not be written or removed; the sidecar retries: s0 at a → free space on its disk, or correct the rights of its folder; its log says more
an entry that cannot be opened:
  fault fleet_unreadable: 1 stream differs from the fleet, because the packager cannot open the engine's entry: sealed with another secret, or damaged: s0 at a, and maybe more → give it the secret that they were sealed with; a POST replaces a damaged entry"
`);
});

test('finds an engine without a majority, once the sidecar is not level', async () => {
  const engine = [
    SERVER,
    ...['2', '3'].map((name) => ({ url: `http://etcd-${name}:2379`, fault: 'ETIMEDOUT' })),
  ];
  expect(await codesOf({ engine, state: 'away' })).toEqual(['fleet_away', 'fleet_no_majority']);
  expect(await codesOf({ engine })).toEqual(['fleet_server_unreachable']);
});

test('says nothing of packagers that may be of another fleet, so that nobody retires them, and of none', async () => {
  const packagers = [{ ...PACKAGER, name: 'gone', live: false }];
  for (const state of ['other_fleet', 'wrong_secret', 'lost_fleet'] as const)
    expect(await codesOf({ packagers, state })).toEqual([`fleet_${state}`]);
  const codes = (await fleetFindings({ packagers: [], state: 'away' })).map(({ code }) => code);
  expect(codes).toEqual(['fleet_away', 'fleet_engine']);
});

test('leaves alone what is behind for a moment, and a clock that is right to a second', async () => {
  const packagers = [{ ...PACKAGER, behind: 3, behind_seconds: 4, clock_ahead_ms: -1900 }];
  expect(await wrong({ packagers })).toEqual([]);
});

test('says which API key shows the fleet when this one does not', async () => {
  const status = () =>
    Promise.reject(new CliError(EXIT.failed, { code: 'forbidden', description: 'Not with this key.' }));
  const sections = await sectionsOf(packager, [], { sidecar: saying(status) });
  expect(sections.find(({ kind }) => kind === 'fleet')?.findings).toEqual([
    {
      severity: 'warning',
      code: 'fleet_not_shown',
      message: 'The sidecar does not show its fleet (forbidden): Not with this key.',
      todo: 'give an API key without stream limits, with --key-file or PACKAGERDRM_APIKEY',
    },
  ]);
});

test('says nothing of a fleet where there is none, but that a folder has left one', async () => {
  expect((await sectionsOf(packager)).map(({ kind }) => kind)).not.toContain('fleet');
  await fs.outputFile(join(packager, 'keys/.packagerdrmapi-fleet/ledger'), '');
  await fs.chmod(join(packager, 'keys/.packagerdrmapi-fleet'), 0o700);
  const sections = await sectionsOf(packager);
  const [left] = sections.find(({ kind }) => kind === 'fleet')?.findings ?? [];
  expect(left).toMatchObject({ severity: 'warning', code: 'fleet_left' });
  // The packager's user has no business there, so that its rights are not judged.
  const folder = await readKeyFolder(join(packager, 'keys'));
  const { rights } = 'problem' in folder ? { rights: [] } : folder;
  expect(rights.length).toBeGreaterThan(0);
  expect(JSON.stringify(rights)).not.toContain('.packagerdrmapi-fleet');
});
