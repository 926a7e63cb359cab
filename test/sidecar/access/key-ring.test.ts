import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MemoryStore } from 'express-rate-limit';
import { createApp } from '../../../src/http/app';
import { ConfigError } from '../../../src/http/config';
import { listen } from '../../../src/http/server';
import {
  callerOf,
  createKeyRing,
  digestOf,
  type FindApiKey,
  requireApiKey,
  requireRead,
  requireWrite,
} from '../../../src/sidecar/api-key';
import { afterTest, folderOfEachTest } from '../../support/after-test';
import { errorBody } from '../../support/error-body';
import { type LogLine, recordedLog } from '../../support/recorded-log';
import { until } from '../../support/until';

describe('the keys of a file', () => {
  const OLD = 'the-old-key-of-the-tests';
  const NEW = 'the-new-key-of-the-tests';
  const SINGLE = 'short';

  type KeyRing = ReturnType<typeof createKeyRing>;

  const folder = folderOfEachTest();
  const path = join(folder, 'keys.json');
  let lines: LogLine[];

  function write(...keys: object[]) {
    writeFileSync(path, JSON.stringify({ keys }), { mode: 0o600 });
  }

  function open(single?: string, file: string | undefined = path): KeyRing {
    const recorded = recordedLog();
    lines = recorded.lines;
    const ring = createKeyRing({ single, file, log: recorded.log, intervalMs: 10 });
    afterTest(ring.close);
    return ring;
  }

  /** Serves a stream's name behind the guard; answers how to call it. */
  async function serve({ find }: KeyRing) {
    const attempts = new MemoryStore();
    afterTest(async () => attempts.shutdown());
    const app = createApp({ log: recordedLog().log, newId: () => 'id', now: () => 0 }, (routes) => {
      routes.use(requireApiKey(find, { attempts, clock: () => new Date(0) }));
      routes.all('/api/:stream', (request, response) => {
        const apiKey = callerOf(response);
        (request.method === 'GET' ? requireRead : requireWrite)(apiKey, request.params.stream);
        response.json({ name: apiKey.name });
      });
    });
    const server = await listen(app, '127.0.0.1', 0);
    afterTest(() => server.stop(0));
    return async (key: string, method = 'GET', stream = 'news') => {
      const headers = { 'x-api-key': key };
      const answer = await fetch(`${server.url}/api/${encodeURIComponent(stream)}`, { method, headers });
      return { status: answer.status, body: await answer.json() };
    };
  }

  const logged = (message: string) => until(() => lines.some(([, text]) => text === message));
  const KEPT = 'the file of API keys cannot be used; the previous keys stay in use';
  const okAs = (name: string) => ({ status: 200, body: { name } });

  test('knows the single key by the name default, with all rights', () => {
    const { find } = createKeyRing({ single: SINGLE, file: undefined, log: recordedLog().log });
    expect(find(SINGLE)).toEqual({ name: 'default', scope: 'write', streams: undefined });
    for (const other of [undefined, '', 'shorter', [SINGLE, SINGLE]]) expect(find(other)).toBeUndefined();
  });

  test('finds each of its keys, and the single one with them, and returns nothing but name and rights', () => {
    write(...['a', 'b', 'c'].map((name) => ({ name, key: `${OLD}-${name}` })));
    const { find } = open(SINGLE);
    for (const name of ['a', 'b', 'c'])
      expect(find(`${OLD}-${name}`)).toEqual({ name, scope: 'write', streams: undefined });
    expect([find(`${OLD}-d`), find(SINGLE)?.name]).toEqual([undefined, 'default']);
  });

  describe('with keys of several rights', () => {
    const reads = 'is read-only';
    const reach = 'has no access to this stream';
    test.each([
      ['all', 'GET', 'news', 200, 'all'],
      ['all', 'POST', 'live/news', 200, 'all'],
      ['reader', 'GET', 'live/news', 200, 'reader'],
      ['reader', 'POST', 'live/news', 403, reads],
      ['reader', 'DELETE', 'live/news', 403, reads],
      ['live', 'GET', 'live/news', 200, 'live'],
      ['live', 'POST', 'live/news', 200, 'live'],
      ['live', 'GET', 'live', 403, reach],
      ['live', 'GET', 'Live/news', 403, reach],
      ['live', 'POST', 'news', 403, reach],
      ['live', 'DELETE', 'other/live/news', 403, reach],
      ['some', 'GET', 'newsroom', 200, 'some'],
      ['some', 'GET', 'sport/1', 200, 'some'],
      ['some', 'POST', 'sport/1', 403, reads],
      ['some', 'POST', 'live/news', 403, reach],
    ])(
      'a request with the key %s to %s %s is answered %i, %s',
      async (name, method, stream, status, says) => {
        write(
          { name: 'all', key: `${OLD}-all` },
          { name: 'reader', key: `${OLD}-reader`, scope: 'read' },
          {
            name: 'live',
            sha256: digestOf(`${OLD}-live`).toString('hex'),
            scope: 'write',
            streams: ['live/'],
          },
          { name: 'some', key: `${OLD}-some`, scope: 'read', streams: ['news', 'sport/'] },
        );
        const call = await serve(open());
        const answer = await call(`${OLD}-${name}`, method, stream);
        expect(answer.status).toBe(status);
        expect(JSON.stringify(answer.body)).toContain(says);
      },
    );
  });

  test('rotates a key without a restart and without a refused request', async () => {
    write({ name: 'ci', key: OLD });
    const call = await serve(open());
    let done = false;
    const statuses = new Set<number>();
    const rightful = (async () => {
      while (!done) statuses.add((await call(OLD)).status);
    })();
    expect((await call(NEW)).status).toBe(401);
    write({ name: 'ci', key: OLD }, { name: 'ci-2', key: NEW });
    // Each refused look counts as an attempt.
    await until(() => lines.some(([, , fields]) => fields?.count === 2));
    expect(await call(NEW)).toEqual(okAs('ci-2'));
    done = true;
    await rightful;
    expect([...statuses]).toEqual([200]);
    write({ name: 'ci-2', key: NEW });
    await until(() => lines.filter(([, , fields]) => fields?.count === 1).length === 2);
    expect((await call(OLD)).status).toBe(401);
    expect(await call(NEW)).toEqual(okAs('ci-2'));
    const read = (...names: string[]) => [
      'info',
      'API keys read',
      { file: path, count: names.length, names },
    ];
    expect(lines).toEqual([read('ci'), read('ci', 'ci-2'), read('ci-2')]);
  });

  test.each<[what: string, spoil: () => void, fault: string]>([
    [
      'malformed',
      () => writeFileSync(path, `{"keys":[{"name":"ci","key":"${NEW}"`),
      'the file is not valid JSON',
    ],
    ['deleted', () => rmSync(path), 'there is no such file'],
  ])('keeps the keys of a file that is %s, and says once why', async (_what, spoil, fault) => {
    write({ name: 'ci', key: OLD });
    const call = await serve(open());
    spoil();
    await logged(KEPT);
    expect(await call(OLD)).toEqual(okAs('ci'));
    write({ name: 'ci-2', key: NEW });
    await until(() => lines.at(-1)?.[0] === 'info');
    const faults = lines.filter(([level]) => level === 'error');
    expect(faults).toEqual([['error', KEPT, { file: path, faults: [expect.stringContaining(fault)] }]]);
    expect(JSON.stringify(lines)).not.toMatch(/of-the-tests/);
  });

  test('refuses the start with a file that cannot be used', () => {
    const missing = new ConfigError([`PACKAGERDRMAPI_APIKEYS_FILE: ${path}: there is no such file`]);
    expect(() => open()).toThrow(missing);
    write({ name: 'ci' });
    const keyless = new ConfigError(['PACKAGERDRMAPI_APIKEYS_FILE: keys[0]: needs key or sha256']);
    expect(() => open(SINGLE)).toThrow(keyless);
  });

  test('warns of a file that everybody can read', () => {
    write({ name: 'ci', key: OLD });
    chmodSync(path, 0o644);
    open();
    expect(lines).toEqual([
      ['info', 'API keys read', { file: path, count: 1, names: ['ci'] }],
      [
        'warn',
        'every user of this machine can read this secret',
        { variable: 'PACKAGERDRMAPI_APIKEYS_FILE', file: path },
      ],
    ]);
  });
});

describe('an unauthenticated client', () => {
  const KEY = 'the-key-of-the-tests';
  let setBackMs = 0;
  const clock = () => new Date(Date.now() - setBackMs);

  /** A wait that ends when the test says so. */
  function heldWait() {
    const waits: { ms: number; end: () => void }[] = [];
    const wait = (ms: number) => new Promise<void>((end) => void waits.push({ ms, end }));
    return { waits, wait };
  }

  async function serve(wait?: (ms: number) => Promise<void>) {
    const attempts = new MemoryStore();
    afterTest(async () => attempts.shutdown());
    const find: FindApiKey = (given) =>
      given === KEY ? { name: 'ci', scope: 'write', streams: undefined } : undefined;
    const app = createApp({ log: recordedLog().log, newId: () => 'id', now: () => 0 }, (routes) => {
      const limits = { attempts, clock, ...(wait && { wait }) };
      routes.use(requireApiKey(find, limits));
      routes.get('/api/here', (_request, response) => void response.json('here'));
      routes.get('/healthz', (_request, response) => void response.json('well'));
    });
    const server = await listen(app, '127.0.0.1', 0);
    afterTest(() => server.stop(0));
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
      if (attempt === 17) setBackMs = 3_600_000;
      const answering = call();
      await until(() => waits.length === attempt - 10);
      waits.at(-1)?.end();
      const answer = await answering;
      expect(answer.status).toBe(429);
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
      expect(Number(answer.headers.get('retry-after'))).toBeLessThanOrEqual(60);
      expect(answer.headers.get('connection')).toBe('close');
      expect(await answer.json()).toEqual(
        errorBody(
          'too_many_attempts',
          'Send the API key of this service in the header x-api-key. Too many requests without a valid key came from this address; one with a valid key is answered at any time.',
        ),
      );
    }
    expect(waits.map(({ ms }) => ms)).toEqual([125, 250, 500, 1000, 2000, 2000, 2000]);
    // The clock was set back before the last one: the window would end in an hour.
    expect((await call()).status).toBe(401);
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
});
