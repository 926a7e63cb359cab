import { chmodSync, realpathSync, statSync } from 'node:fs';
import { sep } from 'node:path';
import fs from 'fs-extra';
import type { StreamId } from '../../api/stream-id';
import { etagOf, namesEtag } from '../../drm/bytes';
import { isSameKeyFile } from '../../drm/key-file';
import type { HttpError } from '../../http/errors';
import { apiError } from '../errors';
import type { DurableWriter, NotSynced } from './durable-file';
import {
  FOLDER_MODE,
  type FoundFile,
  type HeldFolder,
  holdFolder,
  makeFolder,
  notAKeyFile,
  readSmallFile,
  rootFolder,
  toStorageError,
} from './open-file';

/**
 * The key files under one folder. Reads see a file whole, before or after a change. Changes to one stream are made one
 * after another in the order of the calls; those to other streams go on in parallel.
 * Every method throws `HttpError` for a refusal of the folder or the file system.
 */
export interface KeyFileStore {
  /** The bytes of a stream's key file, or undefined when it has none. */
  read(streamId: StreamId): Buffer | undefined;
  /**
   * Writes a stream's key file durably and returns the former one. Sub-folders of the stream id are made as needed.
   * The conditions are checked when the stream's turn has come. @throws HttpError 412.
   */
  write(streamId: StreamId, bytes: Buffer, conditions?: Conditions, context?: ChangeContext): Promise<Change>;
  /** Removes a stream's key file durably and returns its bytes, or undefined when it had none. @throws HttpError 412. */
  remove(streamId: StreamId, conditions?: Conditions, context?: ChangeContext): Promise<Change>;
  /** Resolves when a key file could be written now. */
  probe(): Promise<void>;
  /** Throws when the folder can't be used, or is another than at the start. */
  check(): void;
}

/** When a change is made, in view of the present file. */
export interface Conditions {
  /** The value of `If-Match` (RFC 9110 § 13.1.1). */
  readonly ifMatch?: string | undefined;
  /** The value of `If-None-Match` (RFC 9110 § 13.1.2). */
  readonly ifNoneMatch?: string | undefined;
  /** A file that already has this content is not written. */
  readonly skipUnchanged?: boolean;
  /** Nothing is written. */
  readonly dryRun?: boolean;
}

/** The result of a change. */
export interface Change {
  /** The file before. */
  readonly former: Buffer | undefined;
  /** Set when the change is made but may be undone by a power cut: why its folder could not be synced. */
  readonly notSynced: NotSynced | undefined;
  /** Set when a fleet of packagers has accepted the change, or has its result already. */
  readonly fleet?: FleetChange;
}

/** The fleet's part of a change. */
export interface FleetChange {
  /** The engine's revision from which on a packager has it. */
  readonly revision: number;
  /** Whether the stream's key file belongs in this folder. */
  readonly isHere: boolean;
  /** Why this folder does not have it yet, though it should. */
  readonly notHere?: HttpError;
}

/** The client that changes a key file. */
export interface ChangedBy {
  /** The name of the API key. */
  readonly key: string;
  /** The address that the request came from. */
  readonly address: string;
  readonly requestId: string;
}

/** The origin of a change, for the fleet. */
export interface ChangeContext {
  readonly by: ChangedBy;
  /** Whether the client waits until every packager has it. */
  readonly awaited: boolean;
}

export function createKeyFileStore(folder: string, mode: number, writer: DurableWriter): KeyFileStore {
  const inTurn = queueByName();
  const root = rootFolder(folder);
  // Sub-folders that would survive a power cut. One that merely exists may have been made a moment ago by another write.
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

  /** Opens the folder of a key file; undefined when a sub-folder is missing. */
  const hold = ({ subFolders }: KeyFilePath): HeldFolder | undefined => {
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
  };

  const find = (at: KeyFilePath): FoundFile | undefined => {
    const held = hold(at);
    try {
      return held && readSmallFile(`${held.path}/${at.name}`);
    } finally {
      held?.close();
    }
  };

  const read = (at: KeyFilePath): Buffer | undefined => {
    const found = find(at);
    // The device of an existing file is known at no cost; only another one needs a second look.
    if (!found || found.device !== device) check();
    return found && bytesOf(found);
  };

  /** Opens the folder of a key file, and makes the sub-folders that are missing so that they last. */
  const make = async ({ subFolders }: KeyFilePath): Promise<HeldFolder> => {
    let held = root;
    for (const [index, part] of subFolders.entries()) {
      const logical = subFolders.slice(0, index + 1).join('/');
      try {
        const present = lasting.has(logical) ? holdFolder(held, part) : undefined;
        if (present) {
          held.close();
          held = present;
          continue;
        }
        if (makeFolder(held, part)) lasting.delete(logical);
        if (!lasting.has(logical)) {
          await writer.syncFolder(held.path, held.id);
          lasting.add(logical);
        }
        const next = holdFolder(held, part);
        if (!next) throw Object.assign(new Error('The sub-folder is gone again'), { code: 'ENOENT' });
        held.close();
        held = next;
      } catch (thrown) {
        held.close();
        throw thrown;
      }
    }
    return held;
  };

  /** Runs a change in a folder, if it is there, and remembers whether it would survive a power cut. */
  const settle = async (
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

  /** Makes a change when the stream's turn has come, if the present file meets the conditions. */
  const change = (
    streamId: StreamId,
    conditions: Conditions,
    apply: (at: KeyFilePath, former: Buffer | undefined) => Promise<Change>,
  ): Promise<Change> =>
    inTurn(streamId, () =>
      guard('write', async () => {
        const at = keyFilePath(folder, streamId);
        const former = read(at);
        requireMatch(conditions, former);
        return apply(at, former);
      }),
    );

  return {
    read: (streamId) => guardSync('read', () => read(keyFilePath(folder, streamId))),
    write: (streamId, bytes, conditions = {}) =>
      change(streamId, conditions, async (at, former) => {
        if (!isLeftAlone(conditions, former, bytes)) {
          const write = ({ path, id }: HeldFolder) => writer.write(`${path}/${at.name}`, bytes, mode, id);
          return { former, notSynced: await settle(await make(at), write) };
        }
        if (unsynced.size === 0) return { former, notSynced: undefined };
        // The file already has this content; make sure that it is synced.
        const sync = async ({ path, id }: HeldFolder) =>
          unsynced.has(id) ? writer.trySync(path, id) : undefined;
        return { former, notSynced: await settle(hold(at), sync) };
      }),
    remove: (streamId, conditions = {}) =>
      change(streamId, conditions, async (at, former) => {
        if (!former) return { former, notSynced: undefined };
        let isRemoved = false;
        const notSynced = await settle(hold(at), async ({ path, id }) => {
          const removed = await writer.remove(`${path}/${at.name}`, id);
          isRemoved = removed !== 'absent';
          return typeof removed === 'object' ? removed : undefined;
        });
        if (isRemoved) return { former, notSynced };
        // Another process was faster; reading again shows whether the file is gone, or the folder with it.
        read(at);
        return { former: undefined, notSynced: undefined };
      }),
    probe: () =>
      guard('write', async () => {
        check();
        await writer.probe(folder);
      }),
    check: () => guardSync('read', check),
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
 * Makes the key-file folder when it isn't there, with no wider rights than 0750, and returns its real path and whether
 * it is new. A link to the folder may be configured, while none below it is followed.
 */
export function openKeyFilesFolder(path: string): { readonly keyFilesPath: string; readonly isNew: boolean } {
  const isNew = !fs.existsSync(path);
  fs.ensureDirSync(path, { mode: FOLDER_MODE });
  if (isNew) {
    const { mode } = statSync(path);
    if ((mode & 0o777) !== FOLDER_MODE) chmodSync(path, FOLDER_MODE | (mode & 0o2000));
  }
  return { keyFilesPath: realpathSync(path), isNew };
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

function guardSync<T>(doing: 'read' | 'write', action: () => T): T {
  try {
    return action();
  } catch (thrown) {
    throw toStorageError(doing, thrown);
  }
}

async function guard<T>(doing: 'read' | 'write', action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (thrown) {
    throw toStorageError(doing, thrown);
  }
}

type KeyFilePath = ReturnType<typeof keyFilePath>;

/** Empty parts, `.` and `..`, and characters that end a path. */
const LEADS_ELSEWHERE = /(?:^|\/)\.{0,2}(?:\/|$)|\0/;

/**
 * Where a stream's key file lies under `folder` (absolute): its path, the names of the sub-folders on the way to it, and its
 * name in the last of them.
 * @throws RangeError when the path would leave the folder.
 */
export function keyFilePath(folder: string, streamId: StreamId) {
  if (LEADS_ELSEWHERE.test(streamId)) throw new RangeError('A key file must lie in its folder');
  const path = `${folder.endsWith(sep) ? folder : folder + sep}${streamId}.key`;
  const end = streamId.lastIndexOf('/');
  const subFolders = end < 0 ? [] : streamId.slice(0, end).split('/');
  return { path, subFolders, name: `${streamId.slice(end + 1)}.key` };
}

/** Runs tasks of the same name one after another, in the order given; tasks of other names run in parallel. */
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

/**
 * Checks the entity tags of a change against the present file.
 * @param read the file that a GET shows, if that may be another one.
 * @throws HttpError 412.
 */
export function requireMatch(
  { ifMatch, ifNoneMatch }: Conditions,
  present: Buffer | undefined,
  read: () => Buffer | undefined = () => undefined,
): void {
  if (ifMatch === undefined && ifNoneMatch === undefined) return;
  const etag = present && etagOf(present);
  if (ifMatch !== undefined && !(etag && namesEtag(ifMatch, etag)))
    throw failed(whyNoMatch(ifMatch, etag, read()));
  if (ifNoneMatch !== undefined && etag && isNamed(ifNoneMatch, etag)) {
    throw failed('The key file exists already, and If-None-Match does not allow changing it.');
  }
}

/** Whether a write that is allowed changes nothing: a dry run, or a file that already has this content. */
export function isLeftAlone(
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
    return 'This stream has no key file (any more), but If-Match asks for one. Leave If-Match out to create it.';
  if (isNamed(ifMatch, etag))
    return 'If-Match accepts only strong entity tags: send the ETag as received, without W/.';
  if (here && namesEtag(ifMatch, etagOf(here)))
    return 'The key file here is not the one of the fleet, which If-Match is compared with: GET /api/fleet/{streamid} has its ETag. Without If-Match, the change replaces both.';
  return 'The key file has changed: its ETag is not the one in If-Match. GET it, check it, and send its new ETag.';
}

/** Whether `If-None-Match` names an entity tag, by the weak comparison of reads. */
export function isNamed(header: string, etag: string): boolean {
  return namesEtag(header.replaceAll('W/', ''), etag);
}

function failed(description: string): HttpError {
  return apiError('precondition_failed', description);
}
