import { linkSync, lstatSync, renameSync, unlinkSync } from 'node:fs';
import { createConnection, createServer, type Server } from 'node:net';
import { hostname } from 'node:os';
import { systemCode } from '../../../http/errors';

/** A folder that no other process has while this one runs. */
export interface FolderLock {
  /** Whether it is still this process's: nobody took its socket away. */
  isHeld(): boolean;
  release(): Promise<void>;
}

/** Who holds the lock of a folder, in words. */
export interface Held {
  readonly holder: string;
}

const NAME = 'lock';
const ANSWER_MS = 1000;
/** Between the bind and the listen of another process its socket refuses, too: what refuses twice is dead. */
const PAUSE_MS = 50;
const TRIES = 10;

/**
 * Takes a folder for this process alone. The lock is a Unix socket that it listens on: the kernel closes that with the
 * process, however it ends, so that a socket which nobody answers at is a dead process's, and another one is locked
 * out also when it is in another container on this machine. Processes of other machines are not seen.
 * @param folder its path, which may lead through a descriptor that stays open until the release.
 * @returns who holds it when another process does; undefined where the file system takes no sockets.
 */
export async function lockFolder(
  folder: string,
  newId: () => string,
): Promise<FolderLock | Held | undefined> {
  const path = `${folder}/${NAME}`;
  for (let tries = TRIES; tries > 0; tries -= 1) {
    const server = await listenAt(path);
    if (server === 'not possible') return undefined;
    if (server !== 'taken') return lockOf(server, path);
    const inode = inodeAt(path);
    if (inode === undefined) continue;
    const holder = (await ask(path)) ?? (await later(() => ask(path)));
    if (holder !== undefined) return { holder };
    if (inodeAt(path) === inode) takeAway(path, `${path}-${newId()}`, inode);
  }
  return { holder: 'a process that takes and leaves it all the time' };
}

function lockOf(server: Server, path: string): FolderLock {
  const inode = inodeAt(path);
  return {
    isHeld: () => inodeAt(path) === inode,
    // libuv removes the socket with it.
    release: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

function listenAt(path: string): Promise<Server | 'taken' | 'not possible'> {
  return new Promise((resolve) => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.end(`process ${process.pid} on ${hostname()}`, () => socket.destroy());
    });
    server.once('error', (thrown) => resolve(systemCode(thrown) === 'EADDRINUSE' ? 'taken' : 'not possible'));
    server.listen(path, () => {
      server.unref();
      resolve(server);
    });
  });
}

/** Who listens at a socket; undefined: nobody. */
function ask(path: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = createConnection(path);
    const end = (holder: string | undefined) => {
      socket.destroy();
      resolve(holder);
    };
    // One that is stopped, or too busy to answer, holds it yet.
    socket.setTimeout(ANSWER_MS, () => end('a process that does not answer'));
    socket.on('data', (bytes) => {
      answer += bytes;
    });
    socket.once('end', () => end(answer));
    socket.once('error', (thrown) => {
      const isGone = ['ECONNREFUSED', 'ENOENT', 'ENOTSOCK'].includes(systemCode(thrown) ?? '');
      end(isGone ? undefined : `a process that does not answer (${systemCode(thrown)})`);
    });
  });
}

function later<T>(ask: () => Promise<T>): Promise<T> {
  return new Promise((resolve) => setTimeout(resolve, PAUSE_MS)).then(ask);
}

/** Removes a dead socket. It gets another name first: at its own there may be one by now that another process has made. */
function takeAway(path: string, aside: string, inode: number): void {
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
