import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import * as fc from 'fast-check';
import { openEngine, put, watchAll } from '../../../support/engine-contract';
import { startFakeEtcd } from '../../../support/fake-etcd';
import { pem, shows } from '../../../support/tls';
import { until } from '../../../support/until';

interface Listening {
  listen(port: number, host: string, listening: () => void): unknown;
  address(): unknown;
  close(): unknown;
}

const open = new Set<Listening>();

afterEach(() => {
  for (const server of open) server.close();
  open.clear();
});

async function listening(server: Listening, host = '127.0.0.1'): Promise<number> {
  open.add(server);
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  return (server.address() as AddressInfo).port;
}

/** A server that answers as it likes, and ends with the test. */
async function startFake(listener: RequestListener): Promise<string> {
  const server: Server = createServer(listener);
  const port = await listening(server);
  const close = server.close.bind(server);
  server.close = (done) => {
    server.closeAllConnections();
    return close(done);
  };
  return `http://127.0.0.1:${port}`;
}

const header = { cluster_id: '5', member_id: '6', revision: '100', raft_term: '2' };
const base64 = (text: string) => Buffer.from(text, 'latin1').toString('base64');
const event = (key: string, revision: number, value: Buffer) => ({
  kv: { key: base64(key), mod_revision: String(revision), value: value.toString('base64') },
});
const line = (result: object) => `${JSON.stringify({ result: { header, ...result } })}\n`;
const answerJson = (response: ServerResponse, body: object) => response.end(JSON.stringify(body));

describe('a server that', () => {
  test('answers what is not of etcd is passed over, and named when there is no other', async () => {
    const gateway = await startFakeEtcd();
    const answers: RequestListener[] = [
      (_request, response) => response.end('<html>hello</html>'),
      (_request, response) => answerJson(response, {}),
      (_request, response) => response.writeHead(404).end('Not Found'),
      (_request, response) => response.end('{"header":'),
      (_request, response) => response.writeHead(502).end('bad gateway'),
      (_request, response) => response.writeHead(101).end(),
    ];
    for (const answer of answers) {
      const url = await startFake(answer);
      const engine = openEngine([url, gateway.url]);
      expect((await engine.read(['a'])).values).toEqual([undefined]);
      const alone = openEngine([url], { timeoutMs: 300 });
      await expect(alone.read(['a'])).rejects.toMatchObject({
        kind: expect.stringMatching(/^(?:refused|unavailable)$/),
        message: expect.stringContaining(url),
      });
    }
  });

  test('begins an answer and falls silent is given up', async () => {
    const url = await startFake((_request, response) => {
      response.writeHead(200, { 'content-length': '1000' });
      response.write('{"header":');
    });
    const engine = openEngine([url], { timeoutMs: 600 });
    const [read, change] = await Promise.allSettled([
      engine.read(['a']),
      engine.change([{ key: 'a', expected: 0, value: undefined }]),
    ]);
    expect(read).toMatchObject({
      reason: { kind: 'unavailable', message: `${url}: no answer came in time` },
    });
    expect(change).toMatchObject({ reason: { kind: 'unknown' } });
  });

  test('takes long, but goes on sending, is waited for', async () => {
    const url = await startFake(async (_request, response) => {
      const text = JSON.stringify({ header, kvs: [{ key: base64('a'), mod_revision: '7' }], count: '1' });
      for (const character of text) {
        response.write(character);
        await new Promise((resolve) => setTimeout(resolve, 3));
      }
      response.end();
    });
    const engine = openEngine([url], { timeoutMs: 300 });
    const { values } = await engine.list({ prefix: 'a' }, { limit: 9 });
    expect(values).toEqual([{ key: 'a', value: Buffer.alloc(0), revision: 7 }]);
  });

  test('closed the kept connection meanwhile is asked again', async () => {
    let asked = 0;
    const url = await startFake((request, response) => {
      asked += 1;
      // The second request on a connection finds it gone.
      if (asked === 2) request.socket.destroy();
      else answerJson(response, { header });
    });
    const engine = openEngine([url]);
    await engine.read(['a']);
    await engine.read(['a']);
    expect(asked).toBe(3);
  });
});

describe('a watch whose bytes', () => {
  const values = [Buffer.from('one'), Buffer.alloc(100_000, 7), Buffer.from([0, 10, 13, 255])];
  const stream = Buffer.from(
    [
      line({ created: true }),
      line({ events: [event('a/1', 101, Buffer.from('one'))] }),
      line({
        events: [
          event('a/2', 102, values[1] ?? Buffer.alloc(0)),
          event('a/3', 102, values[2] ?? Buffer.alloc(0)),
        ],
      }),
      line({ events: [{ type: 'DELETE', kv: { key: base64('a/1'), mod_revision: '103' } }] }),
    ].join(''),
  );
  const expected = [
    { key: 'a/1', value: values[0], revision: 101 },
    { key: 'a/2', value: values[1], revision: 102 },
    { key: 'a/3', value: values[2], revision: 102 },
    { key: 'a/1', value: undefined, revision: 103 },
  ];

  test('come in any parts tells the same', async () => {
    let parts: Buffer[] = [];
    const url = await startFake(async (request, response) => {
      if (request.url !== '/v3/watch') {
        answerJson(response, { header });
        return;
      }
      for (const part of parts) {
        response.write(part);
        await new Promise((resolve) => setImmediate(resolve));
      }
    });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(stream.length), { maxLength: 12 }), async (cuts) => {
        const ends = [...cuts, 0, stream.length].sort((one, other) => one - other);
        parts = ends.slice(1).map((end, index) => stream.subarray(ends[index], end));
        const engine = openEngine([url]);
        const told = await watchAll(engine, 'a/', { from: 101 });
        await until(() => told.events.length === 4);
        engine.close();
        expect(told.events).toEqual(expected);
        // Of a revision, all at once.
        for (const batch of told.batches)
          expect(batch.filter(({ revision }) => revision === 102)).not.toHaveLength(1);
      }),
      { numRuns: 15 },
    );
  });

  test('are cut in the middle of a line goes on after the last revision that was told', async () => {
    const began: unknown[] = [];
    const half = stream.indexOf('\n', stream.indexOf('\n') + 1) + 5000;
    const url = await startFake((request, response) => {
      if (request.url !== '/v3/watch') return answerJson(response, { header });
      request.on('data', (chunk) => {
        const { start_revision } = JSON.parse(String(chunk)).create_request;
        began.push(start_revision);
        if (began.length > 1) response.write(stream);
        else response.write(stream.subarray(0, half), () => setTimeout(() => request.socket.destroy(), 20));
      });
      return undefined;
    });
    const engine = openEngine([url]);
    const told = await watchAll(engine, 'a/', { from: 101 });
    await until(() => told.events.at(-1)?.revision === 103);
    expect(began).toEqual(['101', '102']);
    expect(told.losses).toEqual(['unavailable']);
  });

  test('are of parts of a revision, in messages of their own, tells that revision at once', async () => {
    const url = await startFake((request, response) => {
      if (request.url !== '/v3/watch') return answerJson(response, { header });
      response.write(line({ created: true }));
      response.write(
        line({
          fragment: true,
          events: [event('a/1', 101, Buffer.from('1')), event('a/2', 102, Buffer.from('2'))],
        }),
      );
      setTimeout(
        () => response.write(line({ fragment: true, events: [event('a/3', 102, Buffer.from('3'))] })),
        30,
      );
      setTimeout(
        () =>
          response.write(
            line({ events: [event('a/4', 102, Buffer.from('4')), event('a/5', 103, Buffer.from('5'))] }),
          ),
        60,
      );
      return undefined;
    });
    const engine = openEngine([url]);
    const told = await watchAll(engine, 'a/', { from: 101 });
    await until(() => told.events.length === 5);
    expect(told.batches.map((batch) => batch.map(({ key }) => key))).toEqual([
      ['a/1'],
      ['a/2', 'a/3', 'a/4', 'a/5'],
    ]);
  });

  test.each([
    ['never begin', () => undefined],
    ['are garbage', (response: ServerResponse) => response.write('hello\n')],
    [
      'are an error',
      (response: ServerResponse) =>
        response.write('{"error":{"grpc_code":14,"message":"etcdserver: server stopped"}}\n'),
    ],
  ])('%s is opened at the next server', async (_what, begin) => {
    const gateway = await startFakeEtcd();
    const url = await startFake((request, response) => {
      if (request.url !== '/v3/watch') return answerJson(response, { header });
      response.flushHeaders();
      begin(response);
      return undefined;
    });
    const engine = openEngine([url, gateway.url]);
    const told = await watchAll(engine, 'a/', { from: 2, since: gateway.cluster.moment });
    gateway.cluster.set('a/1', 'x');
    await until(() => told.events.length === 1);
    expect(told.losses).toHaveLength(1);
  });
});

describe('TLS', () => {
  /** Puts TLS before a server. */
  async function startSecure(options: TlsOptions, port: number, host?: string): Promise<string> {
    const server = createTlsServer(options, (socket) => {
      const inner = connect(port, '127.0.0.1');
      socket.on('error', () => inner.destroy()).on('close', () => inner.destroy());
      inner.on('error', () => socket.destroy());
      socket.pipe(inner).pipe(socket);
    });
    server.on('tlsClientError', () => undefined);
    return `https://${host ?? '127.0.0.1'}:${await listening(server, host)}`;
  }
  const portOf = (url: string) => Number(new URL(url).port);
  const ca = pem('authority');
  const trusted = { ca };

  test('asks for certificates at each new connection, and shows one where it is wanted', async () => {
    const gateway = await startFakeEtcd();
    const options = { ...shows('server'), ca, requestCert: true, rejectUnauthorized: true };
    const url = await startSecure(options, portOf(gateway.url));
    let shown: object = { ca };
    const engine = openEngine([url], { timeoutMs: 400, tls: () => shown });
    await expect(engine.read(['a'])).rejects.toMatchObject({
      kind: expect.stringMatching(/^(?:denied|unavailable)$/),
    });
    shown = { ca, ...shows('client') };
    expect((await engine.read(['a'])).values).toEqual([undefined]);
    const told = await watchAll(engine, 'a', { from: 2 });
    await put(engine, 'a', Buffer.from('x'));
    await until(() => told.events.length === 1);
  });

  test.each([
    ['has expired', 'expired-client', { ca }, 'its certificate has expired'],
    [
      'is of another authority',
      'server',
      { ca: pem('other-authority') },
      'its certificate is not trusted; name the authority that signed it with PACKAGERDRMAPI_FLEET_TLSCA',
    ],
    [
      'is for clients',
      'client',
      { ca },
      'its certificate is not one for servers (extended key usage serverAuth)',
    ],
  ])('names a certificate that %s', async (_what, name, tls, why) => {
    const gateway = await startFakeEtcd();
    const url = await startSecure(shows(name), portOf(gateway.url));
    const engine = openEngine([url], { timeoutMs: 300, tls: () => tls });
    await expect(put(engine, 'a', Buffer.from('x'))).rejects.toMatchObject({
      kind: 'unavailable',
      message: `${url}: ${why}`,
    });
    expect(await engine.servers()).toEqual([{ url, fault: why }]);
  });

  test('names a certificate that is made out to another name', async () => {
    const gateway = await startFakeEtcd();
    const url = await startSecure(shows('server'), portOf(gateway.url), '127.0.0.2');
    const engine = openEngine([url], { timeoutMs: 300, tls: () => trusted });
    const why = 'its certificate is made out to another name';
    expect(await engine.servers()).toEqual([{ url, fault: why }]);
  });

  test('that is not there, or not asked for, is named', async () => {
    const gateway = await startFakeEtcd();
    const wrong = gateway.url.replace('http:', 'https:');
    await expect(openEngine([wrong], { timeoutMs: 300 }).read(['a'])).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringMatching(/TLS/),
    });
    const secure = await startSecure(shows('server'), portOf(gateway.url));
    await expect(
      openEngine([secure.replace('https:', 'http:')], { timeoutMs: 300 }).read(['a']),
    ).rejects.toMatchObject({ kind: 'unavailable' });
  });
});
