import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { connect as tlsConnect } from 'node:tls';
import { openTls } from '../../src/http/tls';
import { temporaryFolder } from '../support/after-test';
import { type HostileClient, hostile } from '../support/hostile-client';
import { recordedLog } from '../support/recorded-log';
import { answer, connections, HEAD, KEY, refused, serve } from '../support/serve-limited';
import { pem, place, secureGet } from '../support/tls';
import { until } from '../support/until';

async function serveTls() {
  const folder = await temporaryFolder();
  const files = {
    certificate: join(folder, 'crt'),
    key: join(folder, 'key'),
    clientAuthorities: undefined,
  };
  place('server', files.certificate);
  place('server-key', files.key);
  const tls = openTls(files, 'TLS', { log: recordedLog().log, clock: () => new Date() });
  return serve(
    (_request, response) => response.end('"hello"'),
    { limits: { total: 8, perAddress: 8 } },
    { tls },
  );
}

/** GETs over a connection of its own. */

async function get(port: number, path: string, { from = '127.0.0.2', key = true } = {}) {
  const headers = { connection: 'keep-alive', ...(key && { 'x-api-key': 'valid' }) };
  const to = { host: '127.0.0.1', port, path, localAddress: from, agent: false, headers };
  const [response] = (await once(httpRequest(to).end(), 'response')) as [IncomingMessage];
  return { status: response.statusCode, body: await text(response), connection: response.headers.connection };
}

async function times<T>(count: number, make: () => Promise<T>): Promise<T[]> {
  const made: T[] = [];
  for (let each = 0; each < count; each += 1) made.push(await make());
  return made;
}

/** How many of the clients the server has ended. */

function endedOf(clients: readonly HostileClient[]): number {
  return clients.filter(({ socket }) => socket.readableEnded || socket.destroyed).length;
}

describe('when places run out', () => {
  const LIMITS = { total: 8, perAddress: 8 };

  it.each([
    ['silent ones', undefined],
    ['half bodies without a key', 'POST /wait HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nabc'],
    ['refused ones that do not close', 'NONSENSE\r\n\r\n'],
    ['waiting ones without a key', 'GET /wait HTTP/1.1\r\nhost: a\r\n\r\n'],
  ])('%s make way for a client with a key, the oldest first', async (_what, says) => {
    const { port } = await serve(answer, { limits: LIMITS });
    const clients = await times(8, () => hostile(port, says === undefined ? {} : { says }));
    expect(await get(port, '/here')).toMatchObject({ status: 200, body: 'answer to /here' });
    await clients[0]?.ended;
    expect(refused.filter(([cause]) => cause === 'limit')).toEqual([['limit', '127.0.0.1']]);
    expect(connections.refused()).toMatchObject({ limit: 1, address_limit: 0 });
  });

  it('a client that has shown a key is kept while others can go', async () => {
    const { port } = await serve(answer, { limits: LIMITS });
    const trusted = await times(4, () => hostile(port, { says: `${HEAD}${KEY}\r\n${HEAD}\r\n` }));
    await times(20, () => hostile(port, { says: `${HEAD}\r\n`, from: '127.0.0.3' }));
    await until(() => refused.length === 16);
    expect(endedOf(trusted)).toBe(0);
  });

  it('idle ones with a key make way when all have one', async () => {
    const { port } = await serve(answer, { limits: LIMITS });
    await times(8, () => hostile(port, { says: `${HEAD}${KEY}\r\n` }));
    expect(await get(port, '/here')).toMatchObject({ status: 200 });
  });

  it('keeps a reserve for probes while rightful requests take every place', async () => {
    const { port } = await serve(answer, { limits: LIMITS });
    const busy = await times(8, () => hostile(port, { says: `GET /wait HTTP/1.1\r\nhost: a\r\n${KEY}\r\n` }));
    await until(() => connections.counts().working === 8);
    expect(await get(port, '/healthz', { key: false })).toEqual({
      status: 200,
      body: 'answer to /healthz',
      connection: 'close',
    });
    expect(await get(port, '/here')).toEqual({
      status: 503,
      connection: 'close',
      body: '{"errors":[{"code":"too_many_connections","description":"All places for connections are taken by other clients. Try again in a moment."}]}',
    });
    const early = await hostile(port);
    busy[0]?.socket.destroy();
    await until(() => connections.counts().working === 7);
    early.socket.write(`${HEAD}${KEY}\r\n`);
    await until(() => early.received().endsWith('answer to /x'));
    expect(early.received()).toMatch(/^HTTP\/1.1 200 .*connection: keep-alive/is);
  });

  it('holds no more than the reserve beyond its places', async () => {
    const { port } = await serve(answer, { limits: LIMITS });
    await times(8, () => hostile(port, { says: `GET /wait HTTP/1.1\r\nhost: a\r\n${KEY}\r\n` }));
    await until(() => connections.counts().working === 8);
    const more = await times(30, () => hostile(port));
    await until(() => endedOf(more) === 14);
    expect(connections.counts()).toMatchObject({ working: 8, opening: 16 });
    expect(endedOf(more.slice(14))).toBe(0);
  });
});

test('of the connections of one address its own make way for its next, and no other address is touched', async () => {
  const { port } = await serve(answer, { limits: { total: 100, perAddress: 4 } });
  const others = await times(4, () => hostile(port, { from: '127.0.0.3' }));
  const clients = await times(10, () => hostile(port, { says: `${HEAD}\r\n` }));
  await until(() => endedOf(clients) === 6);
  expect(endedOf(others)).toBe(0);
  expect(await get(port, '/here')).toMatchObject({ status: 200 });
  expect(refused).toEqual(Array(6).fill(['address_limit', '127.0.0.1']));
});

describe('over TLS', () => {
  it.each([
    ['silent ones', undefined],
    ['half handshakes', '\x16\x03\x01\x02\x00\x01'],
  ])('%s make way for a client that speaks TLS', async (_what, says) => {
    const { port } = await serveTls();
    const clients = await times(8, () => hostile(port, says === undefined ? {} : { says }));
    const answered = await secureGet(port, '/', { localAddress: '127.0.0.2' });
    expect(answered).toMatchObject({ status: 200, body: 'hello' });
    await until(() => endedOf(clients) > 0);
    expect(connections.refused().limit).toBe(1);
  });
});

test('counts connections by what happens on them', async () => {
  const { port } = await serve(answer);
  await hostile(port);
  await hostile(port, { says: 'GET / HT' });
  await hostile(port, { says: `${HEAD}\r\n` });
  await hostile(port, { says: 'GET /wait HTTP/1.1\r\nhost: a\r\n\r\n' });
  await hostile(port, { says: 'POST /wait HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nabc' });
  await hostile(port, {
    says: 'POST /wait HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n',
  });
  await hostile(port, { says: 'NONSENSE\r\n\r\n' });
  const expected = { opening: 2, idle: 1, receiving: 2, working: 1, answering: 0, closing: 1 };
  await until(() => connections.counts().closing === 1 && connections.counts().idle === 1);
  expect(connections.counts()).toEqual(expected);
});

test('counts a request without a body as being worked on, also before Node says that it is complete', async () => {
  const { port } = await serve((_request, response) => response.end(JSON.stringify(connections.counts())));
  expect(JSON.parse((await get(port, '/')).body)).toMatchObject({ receiving: 0, working: 1 });
});

describe('stop', () => {
  it.each([
    ['says nothing', undefined],
    ['was refused and does not close', 'NONSENSE\r\n\r\n'],
    ['is idle', `${HEAD}\r\n`],
    ['owes a body that nobody waits for', 'POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n'],
  ])('does not wait for a client that %s', async (_what, says) => {
    const server = await serve(answer);
    const { ended } = await hostile(server.port, says === undefined ? {} : { says });
    await get(server.port, '/');
    await server.stop(60_000);
    await ended;
  });

  it.each([
    ['an unauthenticated client', `${HEAD}\r\n`],
    ['a client with a key', `${HEAD}${KEY}\r\n`],
    ['a client that has sent its next request', `${HEAD}\r\n`.repeat(2)],
  ])('waits for the answer to %s only as long as it takes something of it', async (_whom, says) => {
    const big = 'x'.repeat(16 * 1024 * 1024);
    const server = await serve((_request, response) => response.end(big));
    const { socket, ended } = await hostile(server.port, { says, reads: false });
    await until(() => connections.counts().answering === 1);
    await server.stop(60_000);
    expect(refused).toEqual([['answer_timeout', '127.0.0.1']]);
    socket.destroy();
    await ended;
  });

  it('waits for an answer that is being taken', async () => {
    const size = 16 * 1024 * 1024;
    const server = await serve((_request, response) => response.end('x'.repeat(size)));
    const { socket } = await hostile(server.port, { says: `${HEAD}\r\n`, reads: false });
    await until(() => connections.counts().answering === 1);
    const stopped = server.stop(60_000);
    let taken = 0;
    socket.on('data', (chunk) => {
      taken += chunk.length;
    });
    await stopped;
    await until(() => taken > size);
  });

  it('answers a request that comes on a connection taken before', async () => {
    const server = await serve(answer);
    const { socket, ended } = await hostile(server.port);
    await until(() => connections.counts().opening === 1);
    const stopped = server.stop(60_000);
    socket.write(`${HEAD}\r\n`);
    expect(await ended).toMatch(/connection: close.*answer to \/x$/is);
    await stopped;
  });

  it('has answers under way say that the connection ends', async () => {
    let finish = () => {};
    const server = await serve((_request, response) => {
      finish = () => response.end('done');
    });
    const client = await hostile(server.port, { says: `${HEAD}\r\n` });
    await until(() => connections.counts().working === 1);
    const stopped = server.stop(60_000);
    finish();
    expect(await client.ended).toMatch(/connection: close.*done$/is);
    await stopped;
  });

  it('waits for a body that is on its way to somebody', async () => {
    const server = await serve(async (request, response) => response.end(`took ${await text(request)}`));
    const head = 'POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: 6\r\n\r\nabc';
    const client = await hostile(server.port, { says: head });
    await until(() => connections.counts().receiving === 1);
    const stopped = server.stop(60_000);
    client.socket.write('def');
    expect(await client.ended).toMatch(/took abcdef$/);
    await stopped;
  });
});

test('knows the address of a client whose connection is reset meanwhile', async () => {
  let addressOf = (): string | undefined => 'not asked';
  const { port } = await serve((request, response) => {
    request.socket.once('close', () => {
      addressOf = () => request.socket.remoteAddress;
    });
    response.flushHeaders();
  });
  const client = await hostile(port, { says: `${HEAD}\r\n` });
  await until(() => client.received() !== '');
  client.socket.resetAndDestroy();
  await until(() => addressOf() !== 'not asked');
  expect(addressOf()).toBe('127.0.0.1');
});

test('answers a client that has called another address of this machine from the same port of its own', async () => {
  const { port } = await serve(answer, {}, { host: '0.0.0.0' });
  const first = await hostile(port);
  const to = { port, host: '127.0.0.2', localAddress: '127.0.0.1', localPort: first.socket.localPort };
  const second = connect(to, () => second.end(`${HEAD}connection: close\r\n\r\n`));
  expect(await text(second)).toMatch(/answer to \/x$/);
  first.socket.write(`${HEAD}\r\n`);
  await until(() => first.received().endsWith('answer to /x'));
});

describe('a client that has reset its connection by the time that its address is read', () => {
  it('has nothing done: the audit could not say where it came from', async () => {
    const served: (string | undefined)[] = [];
    const { port } = await serve(({ url }, response) => {
      served.push(url);
      response.end();
    });
    const client = `
      const socket = require('node:net').connect(${port}, '127.0.0.1', () => {
        socket.write('DELETE /gone HTTP/1.1\\r\\nhost: a\\r\\nx-api-key: valid\\r\\n\\r\\n');
        socket.resetAndDestroy();
      });`;
    // This process takes the connection when the client has gone.
    execFileSync(process.execPath, ['-e', client]);
    await get(port, '/next');
    expect(served).toEqual(['/next']);
  });

  it('does not keep its place after a TLS handshake', async () => {
    const { port } = await serveTls();
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    const secure = tlsConnect({ socket, ca: pem('authority'), host: '127.0.0.1' }, () => {
      secure.write(`${HEAD}\r\n`);
      socket.resetAndDestroy();
    });
    secure.on('error', () => undefined);
    await until(() => socket.destroyed);
    await until(() => Object.values(connections.counts()).every((count) => count === 0));
  });
});
