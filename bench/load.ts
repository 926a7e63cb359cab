import { Agent, request } from 'node:http';
import autocannon from 'autocannon';

export const API_KEY = 'bench-api-key-0123456789';

export interface Load {
  readonly url: string;
  readonly method: 'GET' | 'POST';
  readonly paths: readonly string[];
  readonly body?: string;
  readonly connections: number;
  /** How long to load, in seconds, or how many requests to send. */
  readonly seconds?: number;
  readonly amount?: number;
}

const headersOf = (body: string | undefined) => ({
  'x-api-key': API_KEY,
  ...(body === undefined ? {} : { 'content-type': 'application/json' }),
});

/** Loads a server over kept-alive connections and answers its requests per second. Any answer but 2xx is an error. */
export async function load({
  url,
  method,
  paths,
  body,
  connections,
  seconds,
  amount,
}: Load): Promise<number> {
  let next = 0;
  const headers = headersOf(body);
  const result = await autocannon({
    url,
    connections,
    ...(amount === undefined ? { duration: seconds ?? 3 } : { amount }),
    // Each connection walks the paths from another place, so that no two write the same stream at once.
    requests: paths.map((path) => ({ method, path, headers, ...(body === undefined ? {} : { body }) })),
    setupClient: (client) => {
      const from = Math.floor((next * paths.length) / connections) % paths.length;
      next += 1;
      const turned = [...paths.slice(from), ...paths.slice(0, from)];
      const requests = turned.map((path) => ({
        method,
        path,
        headers,
        ...(body === undefined ? {} : { body }),
      }));
      client.setRequests(requests);
    },
  });
  const wrong = result.non2xx + result.errors + result.timeouts;
  if (wrong > 0) throw new Error(`${wrong} of ${result.requests.total} requests to ${url} failed`);
  return result.requests.total / result.duration;
}

/** Sends requests one after another over one connection and answers the duration of each, in milliseconds. */
export async function oneByOne(
  url: string,
  method: string,
  paths: readonly string[],
  options: { body?: string; headers?: Record<string, string>; count: number },
): Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const durations: number[] = [];
  for (let index = 0; index < options.count; index += 1) {
    const started = performance.now();
    await once(agent, url + paths[index % paths.length], method, options);
    durations.push(performance.now() - started);
  }
  agent.destroy();
  return durations;
}

function once(
  agent: Agent,
  url: string,
  method: string,
  { body, headers }: { body?: string; headers?: Record<string, string> },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      url,
      { method, agent, headers: { ...headersOf(body), ...headers } },
      (answer) => {
        if (Math.floor((answer.statusCode ?? 0) / 100) !== 2)
          reject(new Error(`${method} ${url} answered ${answer.statusCode}`));
        answer.resume().on('end', resolve);
      },
    );
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
