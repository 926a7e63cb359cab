import {
  fillPattern,
  readPattern,
  restartCommands,
  rotateManifest,
} from '../../../src/cli/commands/rotation';
import { mountOf, untraceable } from '../../../src/cli/commands/watch-reads';
import type { JsonObject } from '../../../src/drm/bytes';

const NOW = new Date('2026-01-31T23:05:09.123Z');
const VALUES = { streamid: 'live/a+b@c~d', contentId: 'news', old: 'news-2025' };

test.each([
  ['{streamid}-{date}', 'live_a_b_c_d-2026-01-31'],
  ['{name}-{date}-{time}', 'a_b_c_d-2026-01-31-230509'],
  ['{contentId}.{date}', 'news.2026-01-31'],
  ['{old}-b', 'news-2025-b'],
  ['x-{name}-{name}', 'x-a_b_c_d-a_b_c_d'],
])('fills %s', (text, expected) => {
  const read = readPattern(text, NOW);
  expect(read.ok && fillPattern(read.value, VALUES)).toEqual({ ok: true, value: expected });
});

test('shows itself with date and time filled in, so that a run can be repeated', () => {
  expect(readPattern('{streamid}-{date}-{time}', NOW)).toEqual({
    ok: true,
    value: '{streamid}-2026-01-31-230509',
  });
});

const SAME = 'needs {streamid}, {name}, {contentId} or {old}: all streams would get one key otherwise';

test.each([
  [
    '{streamid}-{day}',
    'unknown_place',
    'has the unknown placeholder {day}; it takes {streamid}, {name}, {contentId}, {old}, {date}, {time}',
  ],
  ['news', 'same_for_all', SAME],
  ['{date}{time}', 'same_for_all', SAME],
])('refuses %s', (text, code, description) => {
  expect(readPattern(text, NOW)).toEqual({ ok: false, problem: { code, description } });
});

test.each(['contentId', 'old'])('refuses {%s} for one stream, which has no manifest', (name) => {
  const description = `has the unknown placeholder {${name}}; it takes {streamid}, {name}, {date}, {time}`;
  const problem = { code: 'unknown_place', description };
  expect(readPattern(`{${name}}-{date}`, NOW, true)).toEqual({ ok: false, problem });
});

test.each([
  ['{contentId}-1', 'missing', 'has no content id in the manifest for {contentId}'],
  ['{old}-1', 'missing', 'has no key file with a content id for {old}'],
  [
    '{streamid} 1',
    'wrong_value',
    'would get the content id a 1, which must be 1 to 200 letters, digits and _ - . (and not a dot or two alone)',
  ],
])('says why %s gives a stream no content id', (text, code, description) => {
  expect(fillPattern(text, { streamid: 'a' })).toEqual({ ok: false, problem: { code, description } });
});

describe('a group with a key for each quality', () => {
  const rotated = (body: JsonObject, streamIds: readonly string[], pattern = '{name}-b') => {
    const item = { kind: 'groups', name: 'the group', line: 1, streamIds, body } as const;
    const { manifest, ...rest } = rotateManifest([item], pattern, new Map());
    return { ...rest, bodies: manifest.map((each) => each.body) };
  };
  const members = ['s:SD', 'h:HD', 'i:HD', 'u:UHD', 'v:UHD'].map((text) => {
    const [streamid, quality] = text.split(':');
    return { streamid, quality };
  });
  const ids = members.map(({ streamid = '' }) => streamid);

  test('gets a content id for each, and keeps what is of one alone; whose keys are in the manifest is left', () => {
    const keys = { SD: { contentId: 'old' }, HD: { contentId: 'h-b', cmaf: false }, UHD: { cenc: {} } };
    expect(rotated({ members, folder: 'live', cmaf: true, contentId: 'n', keys }, ids)).toEqual({
      bodies: [
        {
          cmaf: true,
          members: members.slice(0, 3),
          keys: {
            SD: { contentId: 's-b' },
            HD: { cmaf: false, contentId: 'h-b' },
          },
        },
      ],
      contentIds: new Map(Object.entries({ s: 's-b', h: 'h-b', i: 'h-b' })),
      supplied: ['u', 'v'],
      namesOthers: true,
      faults: [],
    });
  });

  test('of a SMIL document is divided by its limits', () => {
    const video = (name: string, lines: number) => `<video src="mp4:${name}" height="${lines}"/>`;
    const smil = `<smil><body><switch>${video('s', 360)}${video('h', 720)}</switch></body></smil>`;
    const keys = { LOW: {}, TOP: {} };
    const body = { smil, contentId: 'n', heights: { LOW: 400, TOP: 800 }, keys };
    expect(rotated(body, ['s', 'h'], '{contentId}-b').bodies).toEqual([
      {
        members: [
          { streamid: 's', quality: 'LOW' },
          { streamid: 'h', quality: 'TOP' },
        ],
        keys: { LOW: { contentId: 'n-low-b' }, TOP: { contentId: 'n-top-b' } },
      },
    ]);
  });

  test('is left out when all its keys are in the manifest', () => {
    const keys = { SD: { cenc: {} }, HD: { cenc: {} }, UHD: { cenc: {} } };
    expect(rotated({ members, keys }, ids)).toMatchObject({ bodies: [], supplied: ids });
    expect(rotated({ members, cpix: '<x/>', keys: 'quality' }, ids)).toMatchObject({
      bodies: [],
      supplied: ids,
    });
  });
});

const CURL = `curl -sS --fail-with-body --anyauth -u "$PACKAGER_LOGIN" -X PUT -H 'accept: application/json'`;
const SERVER = 'http://127.0.0.1:8087/v2/servers/_defaultServer_/vhosts/_defaultVHost_/applications';

test.each([
  ['live/news', undefined, 'live', 'news/actions/disconnectStream'],
  ['live/camera.stream', undefined, 'live', 'camera.stream/actions/resetStream'],
  ['a/b/x+1', 'my app', 'my%20app', 'x%2B1/actions/disconnectStream'],
  ['news', undefined, `"\${APPLICATION:?}"`, 'news/actions/disconnectStream'],
])('restarts %s of the application %s', (streamid, application, shown, rest) => {
  const address = `${SERVER}/${shown}/instances/_definst_/incomingstreams/${rest}`;
  expect(restartCommands([streamid], { application, packagerUrl: 'http://127.0.0.1:8087/' })).toEqual([
    { streamid, command: `${CURL} ${address}` },
  ]);
});

test("keeps an application's name from a shell", () => {
  const [{ command } = { command: '' }] = restartCommands(['a'], {
    application: "x'; rm -rf $HOME",
    packagerUrl: 'http://127.0.0.1:8087',
  });
  expect(command).toBe(
    `${CURL} '${SERVER}/x'\\''%3B%20rm%20-rf%20%24HOME/instances/_definst_/incomingstreams/a/actions/disconnectStream'`,
  );
});

const MOUNTINFO = `\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 8:2 / /keys rw,noatime shared:2 - xfs /dev/sdb1 rw,attr2
31 22 8:3 / /a\\040b rw,relatime - ext4 /dev/sdc1 rw
32 22 0:40 / /nas rw,relatime - nfs4 server:/x rw,vers=4.2
33 22 8:4 / /ro ro,relatime - ext4 /dev/sdd1 rw
34 22 8:5 / /super rw,relatime - ext4 /dev/sde1 ro
35 22 0:50 / /over rw,relatime - tmpfs tmpfs rw
36 35 0:51 / /over rw,relatime - fuse.sshfs x rw
37 22 0:52 / /keys2 rw - btrfs /dev/sdf rw,space_cache
`;

test.each([
  ['/', '/'],
  ['/keysandmore', '/'],
  ['/keys/live', '/keys'],
  ['/keys', '/keys'],
  ['/a b/c', '/a b'],
])('finds the mount of %s', (path, point) => {
  expect(mountOf(path, MOUNTINFO)?.point).toBe(point);
});

test.each([
  ['/home/keys', undefined],
  ['/keys2', undefined],
  ['/a b', undefined],
  ['/keys/live', 'is mounted noatime (/keys): reads leave no trace'],
  ['/ro', 'is mounted read-only (/ro): reads leave no trace'],
  ['/super', 'is mounted read-only (/super): reads leave no trace'],
  [
    '/nas/keys',
    'is on nfs4 (/nas), a network or unknown file system: this machine does not see when others read a file',
  ],
  [
    '/over',
    'is on fuse.sshfs (/over), a network or unknown file system: this machine does not see when others read a file',
  ],
])('says of %s why reads leave no trace there: %s', (path, why) => {
  expect(untraceable(mountOf(path, MOUNTINFO))).toBe(why);
});

test('knows nothing where the system does not list mounts', () => {
  expect(untraceable(mountOf('/keys', ''))).toBe('is on an unknown mount (there is no /proc/self/mountinfo)');
});
