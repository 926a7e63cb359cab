/** How a folder is mounted, by a line of `/proc/self/mountinfo`. */
export interface Mount {
  readonly point: string;
  readonly options: readonly string[];
  readonly type: string;
}

/** The mount that a path without links lies on; the last one at a point hides those before it. */
export function mountOf(path: string, mountinfo: string): Mount | undefined {
  let best: Mount | undefined;
  for (const line of mountinfo.split('\n')) {
    const [own = '', rest = ''] = line.split(' - ');
    const [, , , , escaped, options = ''] = own.split(' ');
    if (escaped === undefined) continue;
    const [type = '', , ofDevice = ''] = rest.split(' ');
    const point = unescaped(escaped);
    const isAbove = path === point || path.startsWith(point.endsWith('/') ? point : `${point}/`);
    if (!isAbove || point.length < (best?.point.length ?? 0)) continue;
    best = { point, options: [...options.split(','), ...ofDevice.split(',')], type };
  }
  return best;
}

function unescaped(text: string): string {
  return text.replaceAll(/\\(\d{3})/g, (_whole, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
}

/** File systems of this machine's own that keep the time of the first read after a change. */
const LOCAL = new Set([
  'ext2',
  'ext3',
  'ext4',
  'xfs',
  'btrfs',
  'f2fs',
  'jfs',
  'zfs',
  'bcachefs',
  'tmpfs',
  'overlay',
]);

/** Why reads leave no trace that can be relied on, as the rest of a sentence about the folder; undefined when they do. */
export function untraceable(mount: Mount | undefined): string | undefined {
  if (!mount) return 'is on a mount that this system does not tell of (there is no /proc/self/mountinfo)';
  const { point, options, type } = mount;
  if (options.includes('noatime')) return `is mounted noatime (${point}): reads leave no trace`;
  if (options.includes('ro')) return `is mounted read-only (${point}): reads leave no trace`;
  if (LOCAL.has(type)) return undefined;
  return `is on ${type} (${point}), a network or unknown file system: when others read a file there is not seen here`;
}
