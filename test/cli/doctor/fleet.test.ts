import { join } from 'node:path';
import fs from 'fs-extra';
import type { FleetAnswer, FleetPackager } from '../../../src/api/fleet';
import { CliError, EXIT } from '../../../src/cli/cli-error';
import { createHttpCall, createSidecarApi } from '../../../src/cli/client';
import { readConnection } from '../../../src/cli/connection';
import { readKeyFolder } from '../../../src/cli/doctor/key-folder';
import { createFakeFleet } from '../../support/fake-fleet';
import { API_KEY, startSidecar } from '../../support/start-sidecar';
import { install } from './installation';
import { type Finding, runDoctor, sectionsOf, sidecarOn } from './run-doctor';

const PACKAGER: FleetPackager = {
  name: 'a',
  live: true,
  streams: null,
  since: '2030-06-01T12:00:00.000Z',
  version: '1.2.3',
  state: 'level',
  applied: 7,
  reported: '2030-06-01T12:00:00.000Z',
  behind: 0,
  behind_seconds: 0,
  lacks: [],
  lacking: 0,
  clock_ahead_ms: 300,
  propagation_ms: [],
};

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

test('finds a fleet well', async () => {
  expect(await fleetFindings({})).toEqual([
    { severity: 'ok', code: 'fleet_state', message: 'a is level with the fleet' },
    { severity: 'ok', code: 'fleet_engine', message: 'All 3 servers of the engine can be reached' },
    { severity: 'ok', code: 'fleet_packagers', message: 'All 2 packagers are live and have everything' },
  ]);
});

test('shows a real sidecar’s fleet after the sidecar, and what to do about a packager that is gone', async () => {
  const fleet = createFakeFleet();
  fleet.setLive('origin-3', false);
  const { url } = await startSidecar({ keyFilesPath: join(packager, 'keys') }, undefined, {
    fleet: fleet.open,
  });
  const connection = readConnection({ url, key: API_KEY }, {}, packager);
  const client = createSidecarApi(connection, new AbortController().signal, createHttpCall(connection));
  const { stdout } = await runDoctor(packager, [], { sidecar: () => client });
  expect(stdout).toContain(`
  ok       It lists 3 key files

5b1f2a52-6f0e-4a0f-9d0c-3f4d2b1a0c9e  the fleet of packagers, as origin-1 sees it
  ok       origin-1 is level with the fleet
  ok       The server of the engine can be reached
  warning  origin-3 is not live, and reported last at 2030-06-01T12:00:00.000Z
           to do: start its sidecar, or let it reach the engine; one that is no more is retired by:
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

test.each<[string, Partial<FleetAnswer>, Partial<Finding>]>([
  [
    'a server that is away',
    { engine: [...ANSWER.engine.slice(1), { url: 'http://etcd-1:2379', fault: 'ECONNREFUSED' }] },
    {
      severity: 'warning',
      code: 'fleet_server_unreachable',
      message: "1 server of the engine can't be reached: http://etcd-1:2379 (ECONNREFUSED)",
    },
  ],
  [
    'a full engine',
    {
      engine: [
        { ...SERVER, alarms: ['NOSPACE'] },
        { ...SERVER, url: 'http://etcd-2:2379' },
      ],
    },
    {
      severity: 'fault',
      code: 'fleet_engine_alarm',
      message:
        'The engine warns of NOSPACE (http://etcd-1:2379): its quota is used up, and it takes no change',
      command:
        'etcdctl --endpoints=http://etcd-1:2379,http://etcd-2:2379 compact 7 && etcdctl --endpoints=http://etcd-1:2379,http://etcd-2:2379 defrag && etcdctl --endpoints=http://etcd-1:2379,http://etcd-2:2379 alarm disarm',
    },
  ],
  [
    'damaged data',
    { engine: [{ ...SERVER, alarms: ['CORRUPT'] }] },
    {
      severity: 'fault',
      code: 'fleet_engine_alarm',
      message: 'The engine warns of CORRUPT (http://etcd-1:2379)',
    },
  ],
  [
    'a quota that is nearly used up',
    { engine: [{ ...SERVER, size: 850, quota: 1000 }] },
    {
      severity: 'warning',
      code: 'fleet_quota',
      message:
        'More than 80 % of the quota of the engine is used: http://etcd-1:2379 (85 %). When it is used up nothing can be changed',
    },
  ],
  [
    'a quota that is not told',
    { engine: [{ ...SERVER, size: 1_900_000_000 }] },
    {
      severity: 'warning',
      code: 'fleet_quota',
      message: expect.stringContaining('2 GiB unless --quota-backend-bytes'),
    },
  ],
  ['no compaction', { compacted: false }, { severity: 'warning', code: 'fleet_compaction_off' }],
  [
    'key files that the engine has lost',
    { missing: 2 },
    {
      severity: 'warning',
      code: 'fleet_missing',
      message: '2 key files of the fleet are here that the engine no longer knows',
    },
  ],
  [
    'a clock that is off',
    { packagers: [{ ...PACKAGER, clock_ahead_ms: 2500 }] },
    { severity: 'warning', code: 'fleet_clock', message: "The clock differs from the engine's: a (+2.5 s)" },
  ],
  [
    'a clock that is an hour off',
    { packagers: [{ ...PACKAGER, clock_ahead_ms: -3_600_000 }] },
    { severity: 'fault', code: 'fleet_clock', message: "The clock differs from the engine's: a (-60 min)" },
  ],
  [
    'a packager that is behind',
    { packagers: [{ ...PACKAGER, behind: 3, behind_seconds: 30 }] },
    { severity: 'warning', code: 'fleet_packager_behind', message: 'a is 3 changes behind, for 30 s' },
  ],
  [
    'kept files',
    {
      packagers: [
        {
          ...PACKAGER,
          lacking: 7,
          lacks: Array.from({ length: 7 }, (_item, index) => ({
            streamid: `s${index}`,
            why: 'kept' as const,
          })),
        },
      ],
    },
    {
      severity: 'warning',
      code: 'fleet_kept',
      message:
        "7 streams not as the fleet has them, since a file that is not the fleet's stands there, and stays until a POST replaces it: s0 at a, s1 at a, s2 at a, s3 at a, s4 at a and 2 more",
    },
  ],
  [
    'one stream of which two packagers have a newer state',
    {
      packagers: ['a', 'b'].map((name) => ({
        ...PACKAGER,
        name,
        lacking: 1,
        lacks: [{ streamid: 'news', why: 'older' as const }],
      })),
    },
    {
      severity: 'warning',
      code: 'fleet_older',
      message:
        '1 stream not as the fleet has it, since the engine holds an older state than the packager: a backup, or something replayed: news at a, news at b',
    },
  ],
  [
    'what cannot be opened',
    { packagers: [{ ...PACKAGER, lacking: 101, lacks: [{ streamid: 'x', why: 'unreadable' }] }] },
    {
      severity: 'fault',
      code: 'fleet_unreadable',
      message:
        '1 stream not as the fleet has it, since it cannot open what the engine holds: another secret, or damaged: x at a, and maybe more',
    },
  ],
])('finds %s', async (_name, changes, finding) => {
  expect(await wrong(changes)).toEqual([expect.objectContaining(finding)]);
});

test('finds an engine without a majority, once the sidecar is not level', async () => {
  const engine = [
    SERVER,
    ...['2', '3'].map((name) => ({ url: `http://etcd-${name}:2379`, fault: 'ETIMEDOUT' })),
  ];
  expect((await wrong({ engine, state: 'away' })).map(({ code }) => code)).toEqual([
    'fleet_away',
    'fleet_no_majority',
  ]);
  expect((await wrong({ engine })).map(({ code }) => code)).toEqual(['fleet_server_unreachable']);
});

test('says nothing of packagers that may be of another fleet, so that nobody retires them, and of none', async () => {
  const packagers = [{ ...PACKAGER, name: 'gone', live: false }];
  for (const state of ['other_fleet', 'wrong_secret', 'lost_fleet'] as const)
    expect((await wrong({ packagers, state })).map(({ code }) => code)).toEqual([`fleet_${state}`]);
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
      todo: 'give an API key without streams, by --key-file or PACKAGERDRM_APIKEY',
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
