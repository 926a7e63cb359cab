import type { RequestListener } from 'node:http';
import { type Connections, createConnections } from '../../src/http/connections';
import { listen, type RunningServer } from '../../src/http/server';
import { hostile } from '../support/hostile-client';
import { until } from '../support/until';

let connections: Connections;
let server: RunningServer | undefined;
/** Requests that are begun and not answered, each with what answers it. */
let underWay: { readonly url: string; readonly answer: () => void }[];
let begun: string[];

beforeEach(() => {
  underWay = [];
  begun = [];
});

afterEach(async () => {
  await server?.stop(0);
  server = undefined;
});

/** Reads each request's body, and answers when the test says so. */
const onDemand: RequestListener = (request, response) => {
  const { url = '' } = request;
  begun.push(url);
  let body = '';
  request.on('data', (chunk) => {
    body += String(chunk);
  });
  request.on('end', () => {
    underWay.push({ url, answer: () => response.end(`<${url} ${body}>`) });
  });
};

async function serve(handler: RequestListener = onDemand): Promise<number> {
  connections = createConnections();
  server = await listen(handler, '127.0.0.1', 0, { connections });
  return server.port;
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`;
const post = (path: string, body: string) =>
  `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
const bodiesIn = (received: string) => received.match(/<[^>]*>/g) ?? [];

test('pipelined requests run one after another, in their order', async () => {
  const port = await serve();
  const client = await hostile(port, { says: post('/1', 'abc') + get('/2') + post('/3', 'de') + get('/4') });
  for (const [index, expected] of ['</1 abc>', '</2 >', '</3 de>', '</4 >'].entries()) {
    await until(() => underWay.length === index + 1);
    // A request too many would have begun by then.
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(begun).toHaveLength(index + 1);
    underWay[index]?.answer();
    await until(() => bodiesIn(client.received()).length === index + 1);
    expect(bodiesIn(client.received()).at(-1)).toBe(expected);
  }
});

test('requests that come in pieces of any size are answered in their order', async () => {
  const port = await serve((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += String(chunk);
    });
    request.on('end', () => setImmediate(() => response.end(`<${request.url} ${body}>`)));
  });
  const chunked =
    'POST /4 HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n';
  const text = post('/1', 'a\r\n\r\nb') + get('/2') + post('/3', 'x'.repeat(3000)) + chunked + get('/5');
  const expected = ['</1 a\r\n\r\nb>', '</2 >', `</3 ${'x'.repeat(3000)}>`, '</4 abc>', '</5 >'];
  for (const size of [1, 2, 3, 7, 50, 97, 1000, 4000]) {
    const client = await hostile(port);
    for (let at = 0; at < text.length; at += size) {
      client.socket.write(text.slice(at, at + size));
      if (size > 10 || at % 40 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await until(() => bodiesIn(client.received()).length === expected.length);
    expect(bodiesIn(client.received())).toEqual(expected);
  }
});

test('a client that closes its side behind its requests gets every answer', async () => {
  const port = await serve();
  const client = await hostile(port);
  client.socket.end(get('/1') + get('/2') + get('/3'));
  for (let index = 0; index < 3; index += 1) {
    await until(() => underWay.length === index + 1);
    underWay[index]?.answer();
  }
  expect(bodiesIn(await client.ended)).toEqual(['</1 >', '</2 >', '</3 >']);
});

test('what is no HTTP behind a request is told after its answer', async () => {
  const port = await serve();
  for (const garbage of ['NONSENSE\r\n\r\n', 'NONSENSE', '\x00\x01']) {
    underWay = [];
    const client = await hostile(port, { says: post('/1', 'abc') + garbage });
    await until(() => underWay.length === 1);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(client.received()).toBe('');
    underWay[0]?.answer();
    expect(await client.ended).toMatch(/^HTTP\/1.1 200 .*<\/1 abc>HTTP\/1.1 400 .*"code":"bad_request"/s);
  }
});

test('Expect: 100-continue on a pipelined request is answered in its turn', async () => {
  const port = await serve();
  const expecting = 'GET /2 HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\n\r\n';
  const client = await hostile(port, { says: get('/1') + expecting + get('/3') });
  for (let index = 0; index < 3; index += 1) {
    await until(() => underWay.length === index + 1);
    underWay[index]?.answer();
  }
  await until(() => bodiesIn(client.received()).length === 3);
  expect(client.received()).toMatch(
    /^HTTP\/1.1 200 .*<\/1 >HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 .*<\/2 >HTTP\/1.1 200 .*<\/3 >$/s,
  );
});

test('thousands of pipelined requests whose answers nobody reads cost one request at a time', async () => {
  const big = 'x'.repeat(8 * 1024 * 1024);
  const port = await serve((request, response) => {
    begun.push(request.url ?? '');
    response.end(big);
  });
  const many = Array.from({ length: 20_000 }, (_none, index) => get(`/${index}`)).join('');
  const clients = await Promise.all(
    Array.from({ length: 4 }, () => hostile(port, { says: many, reads: false })),
  );
  await until(() => connections.counts().answering === 4);
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(begun).toEqual(['/0', '/0', '/0', '/0']);
  for (const { socket } of clients) socket.destroy();
});

test('takes four requests ahead of each client, and ends a connection with more while a thousand wait', async () => {
  const port = await serve();
  const many = (name: string, count: number) =>
    Array.from({ length: count }, (_none, index) => get(`/${name}${index}`)).join('');
  const answerAll = async (name: string, count: number) => {
    for (let answered = 0; answered < count; answered += 1) {
      await until(() => underWay.some(({ url }) => url.startsWith(`/${name}`)));
      const next = underWay.findIndex(({ url }) => url.startsWith(`/${name}`));
      underWay.splice(next, 1)[0]?.answer();
    }
  };
  // Of all unauthenticated clients together 1,024 wait, beside four of each.
  const others = await Promise.all(
    Array.from({ length: 20 }, () => hostile(port, { says: many('other', 100) })),
  );
  await until(() => begun.length === 20);
  const next = await hostile(port, { says: many('next', 50) });
  const last = await hostile(port, { says: many('last', 5) });
  await until(() => begun.length === 22);
  await answerAll('next', 5);
  const received = await next.ended;
  expect(bodiesIn(received)).toEqual(Array.from({ length: 5 }, (_none, index) => `</next${index} >`));
  expect(received).toMatch(/HTTP\/1.1 503 .*"code":"too_many_requests_ahead"[^<]*$/s);
  await answerAll('last', 5);
  await until(() => bodiesIn(last.received()).length === 5);
  for (const { socket } of others) socket.resetAndDestroy();
  // What waited with them is forgotten once it shows that they are gone: there is room again.
  for (const { answer } of underWay.splice(0)) answer();
  await until(() => connections.counts().working === 0);
  const after = await hostile(port, { says: many('after', 50) });
  await answerAll('after', 50);
  await until(() => bodiesIn(after.received()).length === 50);
});

test('what is wrong with the body of a request that waits is told in its turn', async () => {
  const port = await serve();
  const chunked = 'POST /2 HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n';
  const client = await hostile(port, { says: get('/1') + chunked });
  await until(() => underWay.length === 1);
  underWay[0]?.answer();
  expect(await client.ended).toMatch(/<\/1 >HTTP\/1.1 400 .*"code":"bad_request"/s);
  await until(() => connections.counts().receiving === 0);
});

test('a client that closes its side while its last request runs gets that answer, too', async () => {
  const port = await serve();
  const client = await hostile(port, { says: get('/1') + get('/2') });
  await until(() => underWay.length === 1);
  underWay[0]?.answer();
  await until(() => underWay.length === 2);
  client.socket.end();
  await new Promise((resolve) => setTimeout(resolve, 30));
  underWay[1]?.answer();
  expect(bodiesIn(await client.ended)).toEqual(['</1 >', '</2 >']);
});

test('behind CONNECT and Upgrade nothing is lost without a word', async () => {
  const port = await serve((request, response) => setImmediate(() => response.end(`<${request.url}>`)));
  const tunnel = await hostile(port, {
    says: `${get('/1') + get('/2')}CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n`,
  });
  expect(await tunnel.ended).toMatch(/<\/1>.*<\/2>HTTP\/1.1 400 .*"code":"bad_request"/s);
  for (let round = 0; round < 10; round += 1) {
    const gone = await hostile(port, {
      says: `${get('/1') + get('/2')}CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n`,
      reads: false,
    });
    setTimeout(() => gone.socket.resetAndDestroy(), round % 3);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const upgrade = 'GET /2 HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n';
  const other = await hostile(port, { says: get('/1') + upgrade + get('/3') });
  expect(await other.ended).toMatch(/<\/1>HTTP\/1.1 200 OK\r\nconnection: close\r\n.*<\/2>$/is);
});

test('a request that came with a client that is gone does not run', async () => {
  const port = await serve();
  const client = await hostile(port, { says: get('/1') + get('/2') });
  await until(() => underWay.length === 1);
  client.socket.resetAndDestroy();
  await new Promise((resolve) => setTimeout(resolve, 50));
  underWay[0]?.answer();
  await until(() => connections.counts().working === 0);
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(begun).toEqual(['/1']);
});

describe('goes on, and ends no process, with', () => {
  const many = (text: string, count: number) => text.repeat(count);
  it.each([
    ['requests without Host', many('GET / HTTP/1.1\r\n\r\n', 300)],
    ['expectations that nobody knows', many('GET / HTTP/1.1\r\nhost: a\r\nexpect: foo\r\n\r\n', 300)],
    ['CONNECT', `CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n${get('/x')}`],
    ['the preface of HTTP/2', `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${get('/x')}`],
    ['Upgrade', `GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n${get('/x')}`],
  ])('%s behind a request', async (_what, text) => {
    const port = await serve((request, response) => void response.end(`<${request.url}>`));
    const client = await hostile(port, { says: get('/first') + text });
    await until(() => client.received().includes('</first>'));
    const silent = await hostile(port, { says: get('/first') + text, reads: false });
    await new Promise((resolve) => setTimeout(resolve, 50));
    silent.socket.destroy();
    const next = await hostile(port, { says: get('/next') });
    await until(() => next.received().endsWith('</next>'));
  });
});

test('whole pipelined POSTs are answered, also when their client closes its side at once', async () => {
  const port = await serve((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += String(chunk);
    });
    request.on('end', () => setTimeout(() => response.end(`<${request.url} ${body}>`), 5));
  });
  const client = await hostile(port);
  client.socket.end(post('/1', 'one') + post('/2', 'two') + post('/3', 'three'));
  expect(bodiesIn(await client.ended)).toEqual(['</1 one>', '</2 two>', '</3 three>']);
});

test('hands a body of empty lines over in large pieces', async () => {
  const body = '\r\n'.repeat(200_000);
  const pieces: number[] = [];
  const port = await serve((request, response) => {
    request.on('data', (chunk: Buffer) => pieces.push(chunk.length));
    request.on('end', () => response.end('<done>'));
  });
  const client = await hostile(port, { says: post('/1', body) + get('/2') });
  await until(() => bodiesIn(client.received()).length === 2);
  expect(pieces.reduce((sum, each) => sum + each, 0)).toBe(body.length);
  expect(pieces.length).toBeLessThan(200);
});

test('a head whose end comes in two pieces is cut where it ends', async () => {
  const port = await serve();
  const text = post('/1', 'x'.repeat(200)) + get('/2').repeat(500);
  const end = text.indexOf('\r\n\r\n');
  for (const cut of [1, 2, 3]) {
    underWay = [];
    begun = [];
    const client = await hostile(port, { says: text.slice(0, end + cut) });
    await new Promise((resolve) => setTimeout(resolve, 10));
    client.socket.write(text.slice(end + cut));
    await until(() => underWay.length === 1);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(begun).toEqual(['/1']);
    client.socket.destroy();
  }
});
