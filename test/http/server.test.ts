import { type EventEmitter, once } from 'node:events';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import fs from 'fs-extra';
import request from 'supertest';
import { createApp } from '../../src/http/app';
import { createLog, type Log, type LogLevel } from '../../src/http/log';
import { mountApiPage } from '../../src/http/page';
import { createRefusalLog } from '../../src/http/refusal-log';
import { listen, type RunningServer, runAsProcess } from '../../src/http/server';
import { afterTest, temporaryFolder } from '../support/after-test';
import { bundledScript, runScript } from '../support/built-program';
import { ipv6Localhost } from '../support/ipv6-localhost';
import { publicFolder } from '../support/public-folder';
import { rawExchange } from '../support/raw-http';
import { type LogLine, recordedLog } from '../support/recorded-log';
import { gate } from '../support/until';

const documentOf = (version: string) => ({ openapi: '3.1.1', info: { title: 'A service', version } });

function described(version = '1.2.3', folder = publicFolder('sidecar'), makes: () => void = () => undefined) {
  const { log } = recordedLog();
  const shell = { log, newId: () => 'id', now: () => 0 };
  const document = async () => {
    makes();
    return documentOf(version);
  };
  return request(createApp(shell, (app) => mountApiPage(app, { document, publicFolder: folder })));
}

const API_POLICY = "default-src 'none';frame-ancestors 'none'";
const PAGE_POLICY =
  "default-src 'none';script-src 'self';style-src 'self';img-src 'self' data:;connect-src 'self';base-uri 'none';form-action 'none';frame-ancestors 'none'";

/** One of each kind; a browser loads the others. */
const PATHS = [
  ['/openapi.json', 'application/json; charset=utf-8', API_POLICY],
  ['/docs', 'text/html; charset=utf-8', PAGE_POLICY],
  ['/docs/docs.css', 'text/css; charset=utf-8', API_POLICY],
  ['/docs/docs.js', 'text/javascript; charset=utf-8', API_POLICY],
  ['/docs/icon.svg', 'image/svg+xml', API_POLICY],
] as const;

it('makes no document before it is asked for, and then one', async () => {
  const makes = jest.fn();
  const service = described('1.2.3', undefined, makes);
  await service.get('/docs').expect(200);
  expect(makes).not.toHaveBeenCalled();
  await service.get('/openapi.json').expect(200);
  await service.get('/openapi.json').expect(200);
  expect(makes).toHaveBeenCalledTimes(1);
});

it.each(PATHS)('answers %s without an API key, and 304 to who has it', async (path, type, policy) => {
  const service = described();
  const { headers } = await service.get(path).expect(200);
  const { 'content-type': answered, 'cache-control': cache, 'content-security-policy': csp, etag } = headers;
  expect([answered, cache, csp]).toEqual([type, 'no-cache', policy]);
  expect(etag).toMatch(/^"[\w-]{27}"$/);
  const again = await service.get(path).set('if-none-match', String(etag)).expect(304);
  expect(again.text).toBe('');
});

it('is read by GET and HEAD alone', async () => {
  const { headers, text } = await described().head('/docs').expect(200);
  expect([headers['content-type'], text]).toEqual(['text/html; charset=utf-8', undefined]);
  const { headers: refused, body } = await described().post('/docs').expect(405);
  expect([refused.allow, body.errors[0].code]).toEqual(['GET, HEAD', 'method_not_allowed']);
});

it('answers the document in full to who has that of another version', async () => {
  const { headers, text, body } = await described().get('/openapi.json');
  expect(body).toEqual(documentOf('1.2.3'));
  const tag = String(headers.etag);
  const other = await described('1.2.4').get('/openapi.json').set('if-none-match', tag).expect(200);
  expect(other.text).toBe(text.replaceAll('1.2.3', '1.2.4'));
});

it('leads from the page with a slash at its end, where its relative addresses lead astray, to the page', async () => {
  const { headers } = await described().get('/docs/').expect(308);
  expect(new URL(String(headers.location), 'http://a/prefix/docs/').pathname).toBe('/prefix/docs');
});

it.each(['/docs/docs.html', '/docs/swagger-ui.js', '/docs/..%2f..%2fpackage.json', '/docs/%2e%2e/main.js'])(
  'answers 404 for %s, which is no part of the page',
  async (path) => {
    const { body } = await described().get(path).expect(404);
    expect(body).toEqual({
      errors: [{ code: 'not_found', description: 'There is nothing at this path.' }],
    });
  },
);

it('answers 500, and says in the log why, while a file of the page is missing; 200 once it is there', async () => {
  const folder = await temporaryFolder();
  const service = described('1.2.3', folder);
  const { body } = await service.get('/docs/docs.js').expect(500);
  expect(body.errors).toEqual([expect.objectContaining({ code: 'server_error' })]);
  await fs.writeFile(join(folder, 'docs.js'), '// a script');
  const { text } = await service.get('/docs/docs.js').expect(200);
  expect(text).toBe('// a script');
});

test('is at 127.0.0.1 when it listens on localhost, whose first address is ::1', async () => {
  ipv6Localhost();
  const server = await listen((_request, response) => response.end(), 'localhost', 0);
  afterTest(() => server.stop(0));
  expect([server.url, (await fetch(`http://127.0.0.1:${server.port}`)).status]).toEqual([
    `http://localhost:${server.port}`,
    200,
  ]);
});

describe('a server', () => {
  let server: RunningServer;
  let lines: LogLine[];

  beforeEach(async () => {
    const recorded = recordedLog();
    lines = recorded.lines;
    const app = createApp({ log: recorded.log, newId: () => 'id', now: () => 0 }, (routes) => {
      routes.get('/here', ({ url }, response) => void response.json({ url }));
    });
    server = await listen(app, '127.0.0.1', 0);
  });

  afterEach(() => server.stop(0));

  const send = (line: string) =>
    rawExchange(server.port, `${line}\r\nHost: a\r\nConnection: close\r\n\r\n`, /\}$/);

  // From Node 24 on, the built programs would warn of Express's way with a fragment.
  test.each(['http://any.example/here?x=1', '/here?x=1#y', 'http://any.example/here?x=1#y'])(
    'answers the request target %s as the path in it',
    async (target) => {
      expect(await send(`GET ${target} HTTP/1.1`)).toMatch(/^HTTP\/1\.1 200 .*\{"url":"\/here\?x=1"\}$/s);
    },
  );

  test.each([
    ['without Host', 'GET /here HTTP/1.1', /^HTTP\/1\.1 400 .*"The request has no Host header\."/s],
    ['of HTTP/1.0 without Host', 'GET /here HTTP/1.0', /^HTTP\/1\.1 200 /],
    ['with an unknown expectation', 'GET /here HTTP/1.1\r\nHost: a\r\nExpect: more', /^HTTP\/1\.1 200 /],
    ['for a tunnel', 'CONNECT a:1 HTTP/1.1\r\nHost: a', /^HTTP\/1\.1 400 .*does not support CONNECT/s],
    ['of all that there is', 'OPTIONS * HTTP/1.1\r\nHost: a', /^HTTP\/1\.1 404 .*"not_found"/s],
  ])('answers a request %s', async (_what, head, expected) => {
    expect(await rawExchange(server.port, `${head}\r\nConnection: close\r\n\r\n`, /\}$/)).toMatch(expected);
  });

  test.each(['http://[/', 'a://h?x'])(
    'answers a target that is no address, %s, with an error of its own form, and logs it',
    async (target) => {
      const answer = await send(`GET ${target} HTTP/1.1`);
      expect(answer).toMatch(
        /^HTTP\/1\.1 404 .*x-request-id: id.*\{"errors":\[\{"code":"not_found",[^\]]*\}\]\}$/s,
      );
      const fields = expect.objectContaining({ status: 404, route: 'unmatched' });
      expect(lines).toEqual([['info', 'request', fields]]);
    },
  );
});

describe('the log', () => {
  const clock = () => new Date('2026-01-02T03:04:05.678Z');
  const TIME = '2026-01-02T03:04:05.678Z';

  /** The lines of a log, in the real format. */
  async function linesOf(level: LogLevel, write: (log: Log) => void): Promise<unknown[]> {
    const stream = new PassThrough();
    write(createLog(level, stream, clock));
    await new Promise((resolve) => setImmediate(resolve));
    const text = String(stream.read() ?? '');
    expect(text === '' || text.endsWith('\n')).toBe(true);
    return text
      .split('\n')
      .slice(0, -1)
      .map((line): unknown => JSON.parse(line));
  }

  function writeEach(log: Log): void {
    log.error('e');
    log.warn('w');
    log.info('i');
    log.debug('d');
  }

  describe('createLog', () => {
    it('writes one JSON line an entry: time, level, message, then the fields', async () => {
      const lines = await linesOf('info', (log) => {
        log.info('request', { status: 200, route: '/api/keyfile/:streamid', absent: undefined });
        log.warn('two\nlines', { nested: { list: [1, null] } });
      });
      expect(lines.map((line) => JSON.stringify(line))).toEqual([
        `{"time":"${TIME}","level":"info","message":"request","status":200,"route":"/api/keyfile/:streamid"}`,
        `{"time":"${TIME}","level":"warn","message":"two\\nlines","nested":{"list":[1,null]}}`,
      ]);
    });

    it.each<[level: LogLevel, written: string[]]>([
      ['debug', ['e', 'w', 'i', 'd']],
      ['info', ['e', 'w', 'i']],
      ['warn', ['e', 'w']],
      ['error', ['e']],
      ['silent', []],
    ])('writes at level %s what is as grave or graver', async (level, written) => {
      const lines = await linesOf(level, writeEach);
      expect(lines.map((line) => Reflect.get(Object(line), 'message'))).toEqual(written);
    });

    it('keeps at most a mebibyte for a reader that is too slow, and reports how many lines it dropped', async () => {
      const taken: string[] = [];
      let release: () => void = () => undefined;
      const stream = new Writable({
        decodeStrings: false,
        highWaterMark: 1,
        write(chunk: string, _encoding, done) {
          taken.push(chunk);
          release = done;
        },
      });
      const log = createLog('info', stream, clock);
      const turn = () => new Promise((resolve) => setImmediate(resolve));
      for (let count = 0; count < 30; count += 1) {
        log.info('line', { filling: 'x'.repeat(100_000) });
        await turn();
      }
      const waiting = stream.writableLength;
      expect(waiting).toBeGreaterThan(1024 * 1024);
      expect(waiting).toBeLessThan(1.2 * 1024 * 1024);
      while (stream.writableLength > 0) {
        release();
        await turn();
      }
      const before = taken.length;
      log.info('after');
      await turn();
      expect(taken.slice(before).join('')).toBe(
        `{"time":"${TIME}","level":"warn","message":"log lines dropped","count":${30 - before}}\n{"time":"${TIME}","level":"info","message":"after"}\n`,
      );
    });

    it('goes on when its stream fails', async () => {
      const stream = new Writable({ write: (_chunk, _encoding, done) => done(new Error('disk full')) });
      const log = createLog('info', stream, clock);
      createLog('info', stream, clock);
      expect(stream.listenerCount('error')).toBe(1);
      for (let count = 0; count < 3; count += 1) {
        log.info('lost');
        await new Promise((resolve) => setImmediate(resolve));
      }
    });
  });

  describe('refused connections', () => {
    beforeEach(() => {
      jest.useFakeTimers();
    });

    afterEach(() => {
      jest.useRealTimers();
    });

    const MINUTE = 60_000;

    test('reports refused connections as sums, a second after the first and then once a minute', () => {
      const { log, lines } = recordedLog();
      const refused = createRefusalLog(log);
      for (let count = 0; count < 500; count += 1) refused('address_limit', '192.0.2.1');
      refused('limit', '192.0.2.2');
      refused('request_timeout', '192.0.2.3');
      expect(lines).toEqual([]);
      jest.advanceTimersByTime(1000);
      const first = { address_limit: 500, limit: 1, request_timeout: 1, mostFrom: '192.0.2.1' };
      expect(lines).toEqual([['warn', 'connections refused', first]]);
      refused('answer_timeout', '192.0.2.2');
      jest.advanceTimersByTime(MINUTE - 1);
      expect(lines).toHaveLength(1);
      jest.advanceTimersByTime(1);
      expect(lines[1]).toEqual(['warn', 'connections refused', { answer_timeout: 1, mostFrom: '192.0.2.2' }]);
      jest.advanceTimersByTime(10 * MINUTE);
      expect(lines).toHaveLength(2);
      refused('limit', '192.0.2.2');
      jest.advanceTimersByTime(1000);
      expect(lines).toHaveLength(3);
    });

    test('says nothing while only slow clients and what is no HTTP come', () => {
      const { log, lines } = recordedLog();
      const refused = createRefusalLog(log);
      refused('request_timeout', '192.0.2.3');
      refused('not_http', '192.0.2.3');
      jest.advanceTimersByTime(10 * MINUTE);
      expect(lines).toEqual([]);
    });

    test('holds no more than a thousand addresses', () => {
      const { log, lines } = recordedLog();
      const refused = createRefusalLog(log);
      for (let count = 0; count < 5000; count += 1) refused('limit', `2001:db8:0:${count}`);
      for (let count = 0; count < 2; count += 1) refused('limit', '2001:db8:0:999');
      jest.advanceTimersByTime(1000);
      expect(lines).toEqual([['warn', 'connections refused', { limit: 5002, mostFrom: '2001:db8:0:999' }]]);
    });
  });
});

const said = (lines: readonly LogLine[]) => lines.map(([level, message]) => `${level}: ${message}`);

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('a process', () => {
  const events = ['uncaughtException', 'unhandledRejection', 'SIGTERM', 'SIGINT'];
  const emitter: EventEmitter = process;
  const before = events.map((event) => [event, emitter.listeners(event)] as const);
  let exits: unknown[];
  let ended: Promise<unknown>;

  beforeEach(() => {
    exits = [];
    const first = gate();
    ended = first.opened.then(() => exits[0]);
    jest.spyOn(process, 'exit').mockImplementation(((code: unknown) => {
      exits.push(code);
      first.open();
    }) as typeof process.exit);
  });

  afterEach(() => {
    jest.restoreAllMocks();
    for (const [event, listeners] of before) {
      for (const listener of emitter.listeners(event)) {
        if (!listeners.includes(listener)) emitter.off(event, listener as () => void);
      }
    }
  });

  test.each(['SIGTERM', 'SIGINT'] as const)('stops on %s and ends with 0', async (signal) => {
    const { log, lines } = recordedLog();
    await runAsProcess({ name: 'sidecar', page: '', log, start: async () => ({ stop: async () => {} }) });
    process.emit(signal);
    expect(await ended).toBe(0);
    expect(said(lines)).toEqual(['info: stopping', 'info: stopped']);
  });

  test('that gets a signal before its start is done stops as soon as it is', async () => {
    const { log } = recordedLog();
    const started = gate();
    const steps: string[] = [];
    const stop = async () => void steps.push('stopped');
    const start = async () => {
      await started.opened;
      steps.push('started');
      return { stop };
    };
    void runAsProcess({ name: 'sidecar', page: '', log, start });
    process.emit('SIGTERM');
    await turn();
    expect(exits).toEqual([]);
    started.open();
    expect(await ended).toBe(0);
    expect(steps).toEqual(['started', 'stopped']);
  });

  test('ends at once on a second signal', async () => {
    const { log } = recordedLog();
    const stopped = gate();
    await runAsProcess({
      name: 'sidecar',
      page: '',
      log,
      start: async () => ({ stop: () => stopped.opened }),
    });
    process.emit('SIGTERM');
    await turn();
    expect(exits).toEqual([]);
    process.emit('SIGINT');
    expect(exits).toEqual([1]);
    stopped.open();
    await turn();
  });

  test('ends with 1 when stopping fails', async () => {
    const { log, lines } = recordedLog();
    const stop = () => Promise.reject(new Error('no'));
    await runAsProcess({ name: 'sidecar', page: '', log, start: async () => ({ stop }) });
    process.emit('SIGTERM');
    expect(await ended).toBe(1);
    expect(said(lines)).toEqual(['info: stopping', 'error: stop failed']);
  });

  test.each([
    ['EADDRINUSE', 'port 81 is taken by another program; choose another port'],
    ['EACCES', 'this user may not listen on port 81; choose one above 1023'],
    ['EADDRNOTAVAIL', 'the host address is not one of this machine'],
    ['ENOTFOUND', 'no host has the name to listen on; give a name or address without scheme, port, brackets'],
    ['EAI_AGAIN', 'no host has the name to listen on; give a name or address without scheme, port, brackets'],
  ])('ends with 1 when it cannot start, and says what %s means', async (code, meaning) => {
    const { log, lines } = recordedLog();
    // Node names no port where any is taken.
    const port = code === 'EADDRNOTAVAIL' ? undefined : 81;
    const start = () => Promise.reject(Object.assign(new Error(code), { code, port }));
    await runAsProcess({ name: 'sidecar', page: '', log, start });
    expect(exits).toEqual([1]);
    expect(said(lines)).toEqual([`error: cannot start: ${meaning}`]);
  });
});

describe('a server that stops', () => {
  let server: RunningServer;
  let answer: ReturnType<typeof gate>;
  let asked: ReturnType<typeof gate>;

  beforeEach(async () => {
    answer = gate();
    asked = gate();
    server = await listen(
      (_request, response) => {
        asked.open();
        void answer.opened.then(() => response.end('whole'));
      },
      '127.0.0.1',
      0,
    );
  });

  afterEach(async () => {
    answer.open();
    await server.stop(0);
  });

  test('answers the request under way, takes no new connection, and closes the kept-alive one', async () => {
    // Its connection is kept alive.
    const answered = fetch(server.url).then((response) => response.text());
    await asked.opened;
    const stopped = server.stop(60_000);
    const late = connect(server.port, '127.0.0.1');
    expect(await once(late, 'error')).toEqual([expect.objectContaining({ code: 'ECONNREFUSED' })]);
    answer.open();
    expect(await answered).toBe('whole');
    await stopped;
  });
});

test('a process does not end before its stop is done, even if that waits for nothing that keeps it alive', async () => {
  const program = runScript(bundledScript('idle-stop'), { cwd: await temporaryFolder() });
  await program.until(/listening/);
  program.send('SIGTERM');
  const { code, stdout } = await program.ended;
  expect([code, stdout]).toEqual([0, expect.stringContaining('"message":"stopped"')]);
});

// Containers have no IPv6 by default.
const hasIpv6 = Object.values(networkInterfaces()).some((own) => own?.some((each) => each.address === '::1'));

test.each([['0.0.0.0', '127.0.0.1'], ['::', '127.0.0.1'], ...(hasIpv6 ? [['::1', '[::1]']] : [])])(
  'reports the address to call for a server that listens on %s: %s',
  async (host, address) => {
    const server = await listen((_request, response) => response.end(), host, 0);
    expect(server.url).toBe(`http://${address}:${server.port}`);
    await server.stop(0);
  },
);

test('rejects with the system error when the port is taken', async () => {
  const server = await listen((_request, response) => response.end(), '127.0.0.1', 0);
  const second = listen((_request, response) => response.end(), '127.0.0.1', server.port);
  await expect(second).rejects.toMatchObject({ code: 'EADDRINUSE' });
  await server.stop(0);
});
