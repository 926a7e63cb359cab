import { EventEmitter } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { createApp } from '../../../src/http/app';
import { HttpError } from '../../../src/http/errors';
import { listen } from '../../../src/http/server';
import { type FindApiKey, requireApiKey } from '../../../src/sidecar/access/api-key';
import {
  createRefuseUnauthenticated,
  type RefuseUnauthenticated,
} from '../../../src/sidecar/access/unauthenticated';
import { recordedLog } from '../../support/recorded-log';
import { until } from '../../support/until';

const KEY = 'the-key-of-the-tests';
const WHY = 'No key.';
const now = () => performance.now();

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

async function serve(refuse: RefuseUnauthenticated) {
  const find: FindApiKey = (given) =>
    given === KEY ? { name: 'ci', scope: 'write', streams: undefined } : undefined;
  const app = createApp({ log: recordedLog().log, newId: () => 'id', now: () => 0 }, (routes) => {
    routes.use(requireApiKey(find, refuse));
    routes.get('/api/here', (_request, response) => void response.json('here'));
    routes.get('/healthz', (_request, response) => void response.json('well'));
  });
  const server = await listen(app, '127.0.0.1', 0);
  closings.push(() => server.stop(0));
  return (key?: string, path = '/api/here') =>
    fetch(server.url + path, { headers: key === undefined ? {} : { 'x-api-key': key } });
}

/** Refuses a request from an address, and answers the error. */
async function refuseFrom(refuse: RefuseUnauthenticated, address: string): Promise<HttpError> {
  const socket = Object.defineProperty(new Socket(), 'remoteAddress', { value: address });
  const request = new IncomingMessage(socket);
  return refuse(request, new ServerResponse(request), WHY).then(
    () => new HttpError(200, []),
    (thrown: HttpError) => thrown,
  );
}

const statusFrom = async (refuse: RefuseUnauthenticated, address: string) =>
  (await refuseFrom(refuse, address)).status;

test('answers 401 to the first ten unauthenticated requests from an address, and 429 to the next, later and later', async () => {
  const { waits, wait } = heldWait();
  const call = await serve(createRefuseUnauthenticated({ now, wait }));
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
  const call = await serve(createRefuseUnauthenticated({ now, wait }));
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
  const refuse = createRefuseUnauthenticated({ now, wait });
  for (let attempt = 1; attempt <= 10; attempt += 1) await refuseFrom(refuse, '192.0.2.1');
  const slowed = Array.from({ length: 64 }, () => statusFrom(refuse, '192.0.2.1'));
  await until(() => waits.length === 64);
  expect(await statusFrom(refuse, '192.0.2.1')).toBe(429);
  expect(waits).toHaveLength(64);
  for (const { end } of waits.splice(0)) end();
  expect(new Set(await Promise.all(slowed))).toEqual(new Set([429]));
  const next = statusFrom(refuse, '192.0.2.1');
  await until(() => waits.length === 1);
  waits[0]?.end();
  expect(await next).toBe(429);
});

test('ends its own delay by time, and by the end of the response', async () => {
  jest.useFakeTimers();
  try {
    const refuse = createRefuseUnauthenticated({ now });
    const [request, response] = [new IncomingMessage(new Socket()), new EventEmitter()];
    const attempt = () =>
      refuse(request, response as ServerResponse, WHY).catch(({ status }: HttpError) => status);
    for (let count = 1; count <= 10; count += 1) expect(await attempt()).toBe(401);
    const first = attempt();
    await jest.advanceTimersByTimeAsync(125);
    expect(await first).toBe(429);
    const second = attempt();
    await jest.advanceTimersByTimeAsync(0);
    response.emit('close');
    expect(await second).toBe(429);
    expect(response.listenerCount('close')).toBe(0);
  } finally {
    jest.useRealTimers();
  }
});

test('counts each IPv4 address and each /64 of IPv6 by itself', async () => {
  const refuse = createRefuseUnauthenticated({ now, wait: () => Promise.resolve() });
  for (let attempt = 1; attempt <= 10; attempt += 1) {
    await refuseFrom(refuse, `2001:db8:0:1::${attempt}`);
    await refuseFrom(refuse, attempt % 2 ? '192.0.2.1' : '::ffff:192.0.2.1');
  }
  expect(await statusFrom(refuse, '2001:db8:0:1:ffff::')).toBe(429);
  expect(await statusFrom(refuse, '2001:db8:0:2::1')).toBe(401);
  expect(await statusFrom(refuse, '192.0.2.1')).toBe(429);
  expect(await statusFrom(refuse, '192.0.2.2')).toBe(401);
});

test('starts anew after a minute', async () => {
  jest.useFakeTimers();
  try {
    const refuse = createRefuseUnauthenticated({ now, wait: () => Promise.resolve() });
    for (let attempt = 1; attempt <= 10; attempt += 1) await refuseFrom(refuse, '192.0.2.1');
    expect(await statusFrom(refuse, '192.0.2.1')).toBe(429);
    jest.advanceTimersByTime(59_000);
    expect((await refuseFrom(refuse, '192.0.2.1')).headers).toEqual({
      'retry-after': '1',
      connection: 'close',
    });
    jest.advanceTimersByTime(1000);
    expect(await statusFrom(refuse, '192.0.2.1')).toBe(401);
  } finally {
    jest.useRealTimers();
  }
});

test('tells the rest of the minute also when the wall clock jumps', async () => {
  jest.useFakeTimers({ now: Date.UTC(2026, 0, 1) });
  try {
    const refuse = createRefuseUnauthenticated({ now, wait: () => Promise.resolve() });
    for (let attempt = 1; attempt <= 10; attempt += 1) await refuseFrom(refuse, '192.0.2.1');
    jest.advanceTimersByTime(20_000);
    for (const time of [Date.UTC(1998, 0, 1), Date.UTC(2026, 0, 1)]) {
      jest.setSystemTime(time);
      expect((await refuseFrom(refuse, '192.0.2.1')).headers['retry-after']).toBe('40');
    }
  } finally {
    jest.useRealTimers();
  }
});

test('remembers no more than 8192 counters, however many addresses come', async () => {
  jest.useFakeTimers();
  try {
    const refuse = createRefuseUnauthenticated({ now, wait: () => Promise.resolve() });
    // Real sockets and responses take longer to make than to refuse.
    const response = new ServerResponse(new IncomingMessage(new Socket()));
    // 81,174 of these addresses take every counter once.
    for (let address = 0; address < 85_000; address += 1) {
      const remoteAddress = `10.${address >> 16}.${(address >> 8) & 255}.${address & 255}`;
      const request = { headers: {}, socket: { remoteAddress } } as IncomingMessage;
      await refuse(request, response, WHY).catch(() => undefined);
    }
    // Each counter has the one timer that forgets it.
    expect(jest.getTimerCount()).toBe(8192);
    jest.advanceTimersByTime(60_000);
    expect(jest.getTimerCount()).toBe(0);
  } finally {
    jest.useRealTimers();
  }
});
