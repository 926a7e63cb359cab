import { realpathSync, statSync } from 'node:fs';
import { sep } from 'node:path';
import type { StreamId } from '../../api/stream-id';
import { etagOf, isStrongMatch } from '../../drm/bytes';
import { isSameKeyFile } from '../../drm/key-file';
import type { HttpError } from '../../http/errors';
import { apiError } from '../errors';
import type { DurableWriter, NotSynced } from './durable-file';
import {
  type FoundFile,
  type HeldFolder,
  holdFolder,
  makeFolder,
  makeFolders,
  notAKeyFile,
  readSmallFile,
  rootFolder,
  toStorageError,
} from './open-file';

/**
 * Reads see a file whole, before or after a change. Changes of a stream are made in the order of the calls, those of
 * other streams in parallel. Every method throws `HttpError` for a refusal of the folder or the file system.
 */
export interface KeyFileStore {
  /** Undefined: the stream has no key file. */
  read(streamId: StreamId): Buffer | undefined;
  /**
   * Writes durably, and returns the former bytes. Makes the sub-folders of the stream id that are missing.
   * The conditions are checked when the stream's turn has come. @throws HttpError 412.
   */
  write(streamId: StreamId, bytes: Buffer, conditions?: Conditions, context?: ChangeContext): Promise<Change>;
  /** Removes durably, and returns the removed bytes as `former`; undefined: there were none. @throws HttpError 412. */
  remove(streamId: StreamId, conditions?: Conditions, context?: ChangeContext): Promise<Change>;
  /** Resolves when a key file could be written now, and rejects when none could be. */
  probe(): Promise<void>;
  /** Throws when the folder can't be used, or is another than at the start. */
  check(): void;
}

export interface Conditions {
  /** RFC 9110 § 13.1.1. */
  readonly ifMatch?: string | undefined;
  /** RFC 9110 § 13.1.2. */
  readonly ifNoneMatch?: string | undefined;
  /** A file that already has this content is not written. */
  readonly skipUnchanged?: boolean;
  readonly dryRun?: boolean;
}

export interface Change {
  readonly former: Buffer | undefined;
  /** Set when the change is made but a power cut may undo it. */
  readonly notSynced: NotSynced | undefined;
  /** Set when a fleet has accepted the change, or has its result already. */
  readonly fleet?: FleetChange;
}

export interface FleetChange {
  /** The engine's revision from which on a packager has the change. */
  readonly revision: number;
  /** Whether the stream's key file belongs in this folder. */
  readonly isTaken: boolean;
  /** Why this folder does not have it yet, though it should. */
  readonly notHere?: HttpError;
}

export interface ChangedBy {
  /** The name of the API key, not the key. */
  readonly key: string;
  readonly address: string;
  readonly requestId: string;
}

export interface ChangeContext {
  readonly by: ChangedBy;
  /** Whether the client waits until every packager has the change. */
  readonly awaited: boolean;
}

export function createKeyFileStore(folder: string, mode: number, writer: DurableWriter): KeyFileStore {
  const queue = queueByName();
  const root = rootFolder(folder);
  // Sub-folders that would survive a power cut; others may have been made a moment ago by another write.
  const lasting = new Set<string>();
  /** Folders with changes that a power cut may undo. */
  const unsynced = new Set<string>();
  /** The file system on which the folder lay first. */
  let device = deviceOf(folder);

  /** An empty mount point, or another folder, must not count as the key files. */
  const check = (): void => {
    const { dev } = statSync(`${folder}/.`);
    device ??= dev;
    if (dev === device) return;
    throw Object.assign(new Error('The folder lies on another device than at the start'), { code: 'ENODEV' });
  };

  const find = (at: KeyFilePath) => inSubFolder(root, at, readSmallFile);

  const read = (at: KeyFilePath): Buffer | undefined => {
    const found = find(at);
    // The device of an existing file is known at no cost; only another one needs a second look.
    if (!found || found.device !== device) check();
    return found && bytesOf(found);
  };

  /** Holds a sub-folder, and makes a missing one so that it survives a power cut. */
  const makeIn = async (held: HeldFolder, part: string, logical: string): Promise<HeldFolder> => {
    const present = lasting.has(logical) && holdFolder(held, part);
    if (present) return present;
    if (makeFolder(held, part)) lasting.delete(logical);
    if (!lasting.has(logical)) {
      await writer.syncFolder(held.path, held.id);
      lasting.add(logical);
    }
    const made = holdFolder(held, part);
    if (!made) throw Object.assign(new Error('The sub-folder is gone again'), { code: 'ENOENT' });
    return made;
  };

  const make = async ({ subFolders }: KeyFilePath): Promise<HeldFolder> => {
    let held = root;
    for (const [index, part] of subFolders.entries()) {
      const above = held;
      held = await makeIn(above, part, subFolders.slice(0, index + 1).join('/')).finally(() => above.close());
    }
    return held;
  };

  const changeIn = async (
    held: HeldFolder | undefined,
    change: (held: HeldFolder) => Promise<NotSynced | undefined>,
  ): Promise<NotSynced | undefined> => {
    if (!held) return undefined;
    try {
      const notSynced = await change(held);
      if (notSynced) unsynced.add(held.id);
      else unsynced.delete(held.id);
      return notSynced;
    } finally {
      held.close();
    }
  };

  const syncAgain = async ({ path, id }: HeldFolder) =>
    unsynced.has(id) ? writer.trySync(path, id) : undefined;

  /** For a change that is there already, but may not be synced. */
  const repeat = (at: KeyFilePath) =>
    unsynced.size === 0 ? undefined : changeIn(holdSubFolder(root, at), syncAgain);

  const change = (
    streamId: StreamId,
    conditions: Conditions,
    apply: (at: KeyFilePath, former: Buffer | undefined) => Promise<Change>,
  ): Promise<Change> =>
    queue(streamId, () =>
      withStorageErrors('write', async () => {
        const at = keyFilePath(folder, streamId);
        const former = read(at);
        requireMatch(conditions, former);
        return apply(at, former);
      }),
    );

  return {
    read: (streamId) => withStorageErrorsSync('read', () => read(keyFilePath(folder, streamId))),
    write: (streamId, bytes, conditions = {}) =>
      change(streamId, conditions, async (at, former) => {
        if (isWriteSkipped(conditions, former, bytes)) return { former, notSynced: await repeat(at) };
        const write = ({ path, id }: HeldFolder) => writer.write(`${path}/${at.name}`, bytes, mode, id);
        return { former, notSynced: await changeIn(await make(at), write) };
      }),
    remove: (streamId, conditions = {}) =>
      change(streamId, conditions, async (at, former) => {
        if (!former) return { former, notSynced: await repeat(at) };
        let isRemoved = false;
        const notSynced = await changeIn(holdSubFolder(root, at), async (held) => {
          const removed = await writer.remove(`${held.path}/${at.name}`, held.id);
          isRemoved = removed !== 'absent';
          if (!isRemoved) return syncAgain(held);
          return typeof removed === 'object' ? removed : undefined;
        });
        if (isRemoved) return { former, notSynced };
        // Another process was faster; reading again shows whether the file is gone, or the folder with it.
        read(at);
        return { former: undefined, notSynced: undefined };
      }),
    probe: () =>
      withStorageErrors('write', async () => {
        check();
        await writer.probe(folder);
      }),
    check: () => withStorageErrorsSync('read', check),
  };
}

/** Undefined while the folder can't be used: the mount may still come. */
function deviceOf(folder: string): number | undefined {
  try {
    return statSync(`${folder}/.`).dev;
  } catch {
    return undefined;
  }
}

/**
 * Makes the folder, with mode 0750, when it is missing; `isNew`: it was made. Returns the real path: the folder itself
 * may be configured as a link, while none below it is followed.
 */
export function openKeyFilesFolder(path: string): { readonly keyFilesPath: string; readonly isNew: boolean } {
  return { isNew: makeFolders(path), keyFilesPath: realpathSync(path) };
}

const OTHER_KINDS = {
  link: 'A symbolic link is in the place of the key file',
  not_a_file: 'A folder or a device is in the place of the key file',
  too_large: 'The file is too large for a key file',
} as const;

function bytesOf(found: FoundFile): Buffer {
  if (found.kind === 'file') return found.bytes;
  throw notAKeyFile(OTHER_KINDS[found.kind]);
}

function withStorageErrorsSync<T>(doing: 'read' | 'write', action: () => T): T {
  try {
    return action();
  } catch (thrown) {
    throw toStorageError(doing, thrown);
  }
}

async function withStorageErrors<T>(doing: 'read' | 'write', action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (thrown) {
    throw toStorageError(doing, thrown);
  }
}

type KeyFilePath = ReturnType<typeof keyFilePath>;

/** Empty parts, `.` and `..`, and the character that ends a path. */
const LEADS_ELSEWHERE = /(?:^|\/)\.{0,2}(?:\/|$)|\0/;

/** `folder` is absolute; `name` is that in the last sub-folder. @throws RangeError when the path leaves the folder. */
export function keyFilePath(folder: string, streamId: StreamId) {
  if (LEADS_ELSEWHERE.test(streamId)) throw new RangeError('A key file must lie in its folder');
  const path = `${folder.endsWith(sep) ? folder : folder + sep}${streamId}.key`;
  const end = streamId.lastIndexOf('/');
  const subFolders = end < 0 ? [] : streamId.slice(0, end).split('/');
  return { path, subFolders, name: `${streamId.slice(end + 1)}.key` };
}

/** Undefined: a sub-folder is missing. */
function holdSubFolder(root: HeldFolder, { subFolders }: KeyFilePath): HeldFolder | undefined {
  let held: HeldFolder | undefined = root;
  for (const part of subFolders) {
    const parent: HeldFolder = held;
    try {
      held = holdFolder(parent, part);
    } finally {
      parent.close();
    }
    if (!held) return undefined;
  }
  return held;
}

/** Calls `use` with a path that leads there even if a link takes the place of a sub-folder. Undefined: one is missing. */
export function inSubFolder<Result>(
  root: HeldFolder,
  at: KeyFilePath,
  use: (path: string) => Result,
): Result | undefined {
  const held = holdSubFolder(root, at);
  try {
    return held && use(`${held.path}/${at.name}`);
  } finally {
    held?.close();
  }
}

/** Tasks of the same name run one after another, in the order given, those of other names in parallel. */
export function queueByName(): <T>(name: string, task: () => Promise<T>) => Promise<T> {
  const tails = new Map<string, Promise<unknown>>();
  return (name, task) => {
    const before = tails.get(name);
    // A task runs also after a failed one.
    const result = before ? before.then(task, task) : task();
    tails.set(name, result);
    const leave = () => {
      if (tails.get(name) === result) tails.delete(name);
    };
    result.then(leave, leave);
    return result;
  };
}

/** `read` returns the file that a GET shows, where that may be another than `present`. @throws HttpError 412. */
export function requireMatch(
  { ifMatch, ifNoneMatch }: Conditions,
  present: Buffer | undefined,
  read: () => Buffer | undefined = () => undefined,
): void {
  if (ifMatch === undefined && ifNoneMatch === undefined) return;
  const etag = present && etagOf(present);
  if (ifMatch !== undefined && !(etag && isStrongMatch(ifMatch, etag)))
    throw failed(whyNoMatch(ifMatch, etag, read()));
  if (ifNoneMatch !== undefined && etag && isWeakMatch(ifNoneMatch, etag)) {
    throw failed('The key file exists already, and If-None-Match does not allow changing it.');
  }
}

/** Whether a write that is allowed changes nothing: a dry run, or a file that already has this content. */
export function isWriteSkipped(
  { dryRun, skipUnchanged }: Conditions,
  present: Buffer | undefined,
  bytes: Buffer,
): boolean {
  return (
    dryRun === true || (skipUnchanged === true && present !== undefined && isSameKeyFile(present, bytes))
  );
}

function whyNoMatch(ifMatch: string, etag: string | undefined, here: Buffer | undefined): string {
  if (!etag)
    return 'This stream has no key file (any more), but If-Match asks for one. A POST without it creates one.';
  if (isWeakMatch(ifMatch, etag))
    return 'If-Match accepts only strong entity tags: send the ETag as received, without W/.';
  if (here && isStrongMatch(ifMatch, etagOf(here)))
    return 'The key file here is not the one of the fleet, which If-Match is compared with: GET /api/fleet/{streamid} has its ETag. Without If-Match, the change replaces both.';
  return 'The key file has changed: its ETag is not the one in If-Match. GET it, check it, and send its new ETag.';
}

/** By the weak comparison of reads (RFC 9110 § 13.1.2). */
export function isWeakMatch(header: string, etag: string): boolean {
  return isStrongMatch(header.replaceAll('W/', ''), etag);
}

function failed(description: string): HttpError {
  return apiError('precondition_failed', description);
}
