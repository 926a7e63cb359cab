import { constants, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { systemCode } from '../../http/errors';
import { type RunProgram, runProgram } from '../running-program';

/** How often is looked whether the reader has opened it. */
const TRY_MS = 10;

/** Makes FIFOs with mode 0600; Node has no call for it. @throws Error with what `mkfifo` said. */
export async function makeFifos(paths: readonly string[], options: RunProgram): Promise<void> {
  const { ended } = runProgram('mkfifo', ['-m', '600', ...paths], options);
  const { code, notStarted, lastWords } = await ended;
  if (code !== 0) throw new Error(`mkfifo: ${notStarted ?? lastWords}`);
}

/**
 * Opens a FIFO for writing when its reader has. It never waits within a call of the system: those of 20 streams would
 * take all of Node's few threads. Undefined when `signal` ends the wait.
 */
export async function openFifo(path: string, signal: AbortSignal): Promise<Socket | undefined> {
  while (!signal.aborted) {
    try {
      const fd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
      return new Socket({ fd, readable: false, writable: true });
    } catch (thrown) {
      if (systemCode(thrown) !== 'ENXIO') throw thrown;
    }
    await new Promise((resolve) => setTimeout(resolve, TRY_MS));
  }
  return undefined;
}
