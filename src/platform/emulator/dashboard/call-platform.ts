import type { RequestListener } from 'node:http';
import { createGet } from '../../../http/get';
import type { GetRequest } from '../../../http/get-request';
import { listen } from '../../../http/server';

/** Calls of the platform's own routes, as a client makes them: at a port of loopback that is there until `close`. */
export async function callPlatform(platform: RequestListener) {
  const server = await listen(platform, '127.0.0.1', 0);
  const { get, close } = createGet({});
  return {
    /** Calls a path, which may have a query. It rejects with GetFailed alone. */
    call: (target: string, request: Omit<GetRequest, 'url'>) =>
      get({ ...request, url: `${server.url}${target}` }),
    close() {
      close();
      void server.stop(0);
    },
  };
}
