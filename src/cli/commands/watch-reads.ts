import { type BigIntStats, readFileSync, realpathSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { showProgress } from '../../terminal/progress';
import { usageError } from '../cli-error';
import type { CliContext } from '../context';
import { resultOrUndefined } from '../input';

const MOUNTINFO = '/proc/self/mountinfo';

export interface Watched {
  readonly read: readonly string[];
  readonly unread: readonly string[];
  /** Streams whose new key file is not in the folder: it is another one. */
  readonly elsewhere: readonly string[];
  readonly end: 'all_read' | 'timeout' | 'interrupted' | 'other_folder';
}

const LOOK_MS = 1000;

/** A folder in which reads of key files leave a trace. @throws CliError with the reason when they do not. */
export function watchableFolder(
  { cwd }: Pick<CliContext, 'cwd'>,
  folder: string,
  mountinfo = MOUNTINFO,
): string {
  const path = resultOrUndefined(() => realpathSync(resolve(cwd, folder)));
  if (path === undefined || !statSync(path).isDirectory())
    throw usageError(`The folder ${folder} of --folder does not exist, or can't be read.`);
  const why = untraceable(mountOf(path, resultOrUndefined(() => readFileSync(mountinfo, 'utf8')) ?? ''));
  if (why === undefined) return path;
  throw usageError(
    `Whether the packager has read a key file can't be known here: ${folder} ${why}. Leave --watch out, and check at the packager when the streams started. Nothing was written.`,
  );
}

/** A key file, without reading it, which would count as a read; undefined when it is not there. */
export function stateOf(folder: string, streamId: string): BigIntStats | undefined {
  return resultOrUndefined(() => statSync(join(folder, `${streamId}.key`), { bigint: true }));
}

/**
 * Notes the present key files of streams. The returned function waits until each of those that were written since has
 * been read. With relatime, too, the first read after a change is later than the change; the reader is not known.
 */
export function watchReads(
  context: CliContext,
  folder: string,
  streamIds: readonly string[],
  timeoutMs: number,
) {
  const before = new Map(streamIds.map((streamId) => [streamId, stateOf(folder, streamId)]));
  return async (written: readonly string[]): Promise<Watched> => {
    const elsewhere = written.filter((streamId) => !isNew(before.get(streamId), stateOf(folder, streamId)));
    if (elsewhere.length > 0) return { read: [], unread: written, elsewhere, end: 'other_folder' };
    let unread = written;
    const progress = showProgress(context, 'Read', written.length);
    const result = (end: Watched['end']): Watched => ({
      read: written.filter((streamId) => !unread.includes(streamId)),
      unread,
      elsewhere,
      end,
    });
    try {
      for (let waited = 0; ; waited += LOOK_MS) {
        const left = unread.filter((streamId) => !isRead(stateOf(folder, streamId)));
        progress.advance(unread.length - left.length);
        unread = left;
        if (unread.length === 0) return result('all_read');
        if (context.interrupted.aborted) return result('interrupted');
        if (waited >= timeoutMs) return result('timeout');
        await context.wait(LOOK_MS, context.interrupted);
      }
    } finally {
      progress.stop();
    }
  };
}

function isNew(before: BigIntStats | undefined, now: BigIntStats | undefined): boolean {
  return now !== undefined && (before?.ino !== now.ino || before.mtimeNs !== now.mtimeNs);
}

function isRead(state: BigIntStats | undefined): boolean {
  return state !== undefined && state.atimeNs > state.mtimeNs;
}

/** The mount that a path without links lies on, by `/proc/self/mountinfo`; the last one at a point hides those before it. */
export function mountOf(path: string, mountinfo: string) {
  let best: { point: string; options: string[]; type: string } | undefined;
  for (const line of mountinfo.split('\n')) {
    const [own = '', rest = ''] = line.split(' - ');
    const [, , , , escaped, options = ''] = own.split(' ');
    if (escaped === undefined) continue;
    const [type = '', , ofDevice = ''] = rest.split(' ');
    const point = escaped.replaceAll(/\\(\d{3})/g, (_whole, octal: string) =>
      String.fromCharCode(Number.parseInt(octal, 8)),
    );
    const isAbove = path === point || path.startsWith(point.endsWith('/') ? point : `${point}/`);
    if (!isAbove || point.length < (best?.point.length ?? 0)) continue;
    best = { point, options: [...options.split(','), ...ofDevice.split(',')], type };
  }
  return best;
}

/** File systems of this machine's own that keep the time of the first read after a change. */
const LOCAL = new Set('ext2 ext3 ext4 xfs btrfs f2fs jfs zfs bcachefs tmpfs overlay'.split(' '));

/** Why reads leave no trace that can be relied on, as the rest of a sentence about the folder; undefined when they do. */
export function untraceable(mount: ReturnType<typeof mountOf>): string | undefined {
  if (!mount) return 'is on an unknown mount (there is no /proc/self/mountinfo)';
  const { point, options, type } = mount;
  if (options.includes('noatime')) return `is mounted noatime (${point}): reads leave no trace`;
  if (options.includes('ro')) return `is mounted read-only (${point}): reads leave no trace`;
  if (LOCAL.has(type)) return undefined;
  return `is on ${type} (${point}), a network or unknown file system: this machine does not see when others read a file`;
}
