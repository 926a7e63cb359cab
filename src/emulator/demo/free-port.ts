import { createServer } from 'node:net';

const LOOPBACK = '127.0.0.1';
const TRIES = 100;

/** The first port from `wanted` on that nothing listens on. @throws Error when a hundred in a row are taken. */
export async function freePort(wanted: number): Promise<number> {
  for (let port = wanted; port < wanted + TRIES; port += 1) {
    if (await isFree(port)) return port;
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
