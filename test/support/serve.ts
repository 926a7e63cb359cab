import type { RequestListener } from 'node:http';
import { listen } from '../../src/http/server';
import { afterTest } from './after-test';

/** Serves on loopback until the test is over. */
export async function serve(listener: RequestListener) {
  const server = await listen(listener, '127.0.0.1', 0);
  afterTest(() => server.stop(0));
  return server;
}
