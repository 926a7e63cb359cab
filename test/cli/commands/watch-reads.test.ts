import { mountOf, untraceable } from '../../../src/cli/commands/watch-reads';

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

test('knows nothing where the system does not tell of mounts', () => {
  expect(untraceable(mountOf('/keys', ''))).toBe('is on an unknown mount (there is no /proc/self/mountinfo)');
});
