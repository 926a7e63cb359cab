import { linkSync, lstatSync, renameSync, unlinkSync } from 'node:fs';
import { createConnection, createServer, type Server } from 'node:net';
import { systemCode } from './errors';

export type FolderLock = ReturnType<typeof lockOf>;

const LOCK_NAME = 'lock';
/** The longest path of a socket on macOS. Node 20 cuts a longer one, and has the socket elsewhere. */
const MAX_PATH_BYTES = 103;
/** A socket refuses connections between bind and listen: only one that refuses twice is dead. */
const PAUSE_MS = 50;
const TRIES = 10;

/**
 * The lock is a Unix socket: the kernel closes it with the process, and it works between containers on one
 * machine, but not between machines.
 * @returns undefined where sockets are not supported, or the path is too long for one.
 */
export async function lockFolder(
  folder: string,
  newId: () => string,
): Promise<FolderLock | 'taken' | undefined> {
  const path = `${folder}/${LOCK_NAME}`;
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) return undefined;
  for (let tries = TRIES; tries > 0; tries -= 1) {
    const server = await listenAt(path);
    if (server === 'not possible') return undefined;
    if (server !== 'taken') return lockOf(server, path);
    const inode = inodeAt(path);
    if (inode === undefined) continue;
    if (await isListening(path)) return 'taken';
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    if (await isListening(path)) return 'taken';
    if (inodeAt(path) === inode) removeDead(path, `${path}-${newId()}`, inode);
  }
  return 'taken';
}

function lockOf(server: Server, path: string) {
  const inode = inodeAt(path);
  return {
    isHeld: () => inodeAt(path) === inode,
    // libuv removes the socket file when the server closes.
    release: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

function listenAt(path: string): Promise<Server | 'taken' | 'not possible'> {
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (thrown) => resolve(systemCode(thrown) === 'EADDRINUSE' ? 'taken' : 'not possible'));
    server.listen(path, () => resolve(server.unref()));
  });
}

/** The kernel accepts the connection even if the listening process is stopped. */
function isListening(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(path, () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', (thrown) =>
      resolve(!['ECONNREFUSED', 'ENOENT', 'ENOTSOCK'].includes(systemCode(thrown) ?? '')),
    );
  });
}

/** Under another name: at its own name another process may have made a new socket by now. */
function removeDead(path: string, aside: string, inode: number): void {
  try {
    renameSync(path, aside);
    if (inodeAt(aside) !== inode) linkSync(aside, path);
    unlinkSync(aside);
  } catch (thrown) {
    if (systemCode(thrown) !== 'ENOENT' && systemCode(thrown) !== 'EEXIST') throw thrown;
  }
}

function inodeAt(path: string): number | undefined {
  return lstatSync(path, { throwIfNoEntry: false })?.ino;
}
