import { createServer } from 'node:net';

const LOOPBACK = '127.0.0.1';
const TRIES = 100;

/**
 * The first port from `wanted` on that nothing listens on and that isn't `promised` to another program.
 * @throws Error when a hundred in a row are taken.
 */
export async function freePort(wanted: number, promised: ReadonlySet<number> = new Set()): Promise<number> {
  for (let port = wanted; port < wanted + TRIES; port += 1) {
    if (!promised.has(port) && (await isFree(port))) return port;
  }
  throw new Error(`The ports ${wanted} to ${wanted + TRIES - 1} are all taken.`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, LOOPBACK, () => probe.close(() => resolve(true)));
  });
}
