import { MemoryStore } from 'express-rate-limit';
import { createApp } from '../../../src/http/app';
import { listen } from '../../../src/http/server';
import { type FindApiKey, limitUnauthenticated, requireApiKey } from '../../../src/sidecar/access/api-key';
import { recordedLog } from '../../support/recorded-log';
import { until } from '../../support/until';

const KEY = 'the-key-of-the-tests';
const clock = () => new Date();

const closings: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closings.splice(0)) await close();
});

/** A wait that ends when the test says so. */
function heldWait() {
  const waits: { ms: number; end: () => void }[] = [];
  const wait = (ms: number) => new Promise<void>((end) => void waits.push({ ms, end }));
  return { waits, wait };
}

async function serve(wait?: (ms: number) => Promise<void>) {
  const attempts = new MemoryStore();
  closings.push(async () => attempts.shutdown());
  const find: FindApiKey = (given) =>
    given === KEY ? { name: 'ci', scope: 'write', streams: undefined } : undefined;
  const app = createApp({ log: recordedLog().log, newId: () => 'id', now: () => 0 }, (routes) => {
    const limits = { attempts, clock, ...(wait && { wait }) };
    routes.use(limitUnauthenticated(find, limits), requireApiKey(find));
    routes.get('/api/here', (_request, response) => void response.json('here'));
    routes.get('/healthz', (_request, response) => void response.json('well'));
  });
  const server = await listen(app, '127.0.0.1', 0);
  closings.push(() => server.stop(0));
  return (key?: string, path = '/api/here') =>
    fetch(server.url + path, { headers: key === undefined ? {} : { 'x-api-key': key } });
}

test('answers 401 to the first ten unauthenticated requests from an address, and 429 to the next, later and later', async () => {
  const { waits, wait } = heldWait();
  const call = await serve(wait);
  for (let attempt = 1; attempt <= 10; attempt += 1)
    expect((await call(`wrong-${attempt}`)).status).toBe(401);
  expect(waits).toEqual([]);
  for (let attempt = 11; attempt <= 17; attempt += 1) {
    const answering = call();
    await until(() => waits.length === attempt - 10);
    waits.at(-1)?.end();
    const answer = await answering;
    expect(answer.status).toBe(429);
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(Number(answer.headers.get('retry-after'))).toBeLessThanOrEqual(60);
    expect(answer.headers.get('connection')).toBe('close');
    expect(await answer.json()).toEqual({
      errors: [
        {
          code: 'too_many_attempts',
          description:
            'Send the API key of this service in the header x-api-key. Too many requests without a valid key came from this address; one with a valid key is answered at any time.',
        },
      ],
    });
  }
  expect(waits.map(({ ms }) => ms)).toEqual([125, 250, 500, 1000, 2000, 2000, 2000]);
});

test('never slows or refuses who holds a key, nor what needs none', async () => {
  const { waits, wait } = heldWait();
  const call = await serve(wait);
  for (let attempt = 1; attempt <= 10; attempt += 1) await call('wrong');
  const slowed = [call('wrong'), call('wrong'), call('wrong')];
  await until(() => waits.length === 3);
  for (let count = 0; count < 20; count += 1) expect((await call(KEY)).status).toBe(200);
  expect((await call(undefined, '/healthz')).status).toBe(200);
  expect((await call('wrong', '/healthz')).status).toBe(200);
  for (const { end } of waits) end();
  expect((await Promise.all(slowed)).map(({ status }) => status)).toEqual([429, 429, 429]);
  expect(waits).toHaveLength(3);
});

test('delays 64 at most at a time and answers the others at once', async () => {
  const { waits, wait } = heldWait();
  const call = await serve(wait);
  for (let attempt = 1; attempt <= 10; attempt += 1) await call();
  const slowed = Array.from({ length: 64 }, () => call());
  await until(() => waits.length === 64);
  expect((await call()).status).toBe(429);
  expect(waits).toHaveLength(64);
  for (const { end } of waits) end();
  expect(new Set((await Promise.all(slowed)).map(({ status }) => status))).toEqual(new Set([429]));
});

test('waits a while itself', async () => {
  const call = await serve();
  for (let attempt = 1; attempt <= 10; attempt += 1) await call();
  const begun = performance.now();
  expect((await call()).status).toBe(429);
  expect(performance.now() - begun).toBeGreaterThan(100);
});
