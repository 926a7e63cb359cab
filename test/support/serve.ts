import type { RequestListener } from 'node:http';
import { listen } from '../../src/http/server';
import { afterTest } from './after-test';

/** Serves on loopback until the test is over, or all are. */
export async function serve(listener: RequestListener, after = afterTest) {
  const server = await listen(listener, '127.0.0.1', 0);
  after(() => server.stop(0));
  return server;
}
