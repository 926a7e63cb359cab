import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import type { PiecewiseSocket } from '../../src/http/piecewise';
import { hostile } from '../support/hostile-client';
import { answer, connections, HEAD, KEY, refused, serve } from '../support/serve-limited';
import { until } from '../support/until';

describe('a client that was refused', () => {
  it.each([
    ['what is no HTTP', 'NONSENSE\r\n\r\n', '400 Bad Request', 'bad_request'],
    [
      ...(['headers of 20 KiB', `${HEAD}x: ${'a'.repeat(20_000)}\r\n\r\n`] as const),
      ...(['431 Request Header Fields Too Large', 'request_header_fields_too_large'] as const),
    ],
  ])('gets the reason, and is cut when it does not close: %s', async (_what, says, status, code) => {
    const { port } = await serve(answer);
    const { socket, ended } = await hostile(port, { says });
    const errors = `{"errors":\\[{"code":"${code}","description":"[^"]+"}\\]}`;
    expect(await ended).toMatch(new RegExp(`^HTTP/1.1 ${status}\r\n.*\r\n\r\n${errors}$`, 's'));
    expect(connections.counts().closing).toBe(1);
    await until(() => connections.counts().closing === 0);
    socket.destroy();
    expect(refused).toEqual([['not_http', '127.0.0.1']]);
  });

  it.each([KEY, ''])('gets the answer to its request before, which is begun once: %j', async (key) => {
    const handler = jest.fn(answer);
    const { port } = await serve(handler);
    const { ended } = await hostile(port, { says: `${HEAD}${key}\r\nNONSENSE\r\n\r\n` });
    expect(await ended).toMatch(/answer to \/x.*bad_request/s);
    expect(handler).toHaveBeenCalledTimes(1);
  });

  it('loses its connection behind the last answer when it does not close', async () => {
    const { port } = await serve(answer);
    const { socket, ended } = await hostile(port, { says: `${HEAD}connection: close\r\n\r\n` });
    expect(await ended).toContain('answer to /x');
    await until(() => Object.values(connections.counts()).every((count) => count === 0));
    socket.destroy();
  });

  it.each<[what: string, handler: RequestListener]>([
    ['nobody reads', answer],
    [
      'is read no further',
      (request, response) => request.once('data', () => answer(request.pause(), response)),
    ],
  ])('gets its last answer, though it still sends a body that %s', async (_what, handler) => {
    const { port } = await serve(handler);
    const head = `POST /x HTTP/1.1\r\nhost: a\r\n${KEY}connection: close\r\ncontent-length: 9000000\r\n\r\n`;
    const { socket, received } = await hostile(port, { says: head, reads: false });
    await new Promise((sent) => socket.write('x'.repeat(8_000_000), sent));
    expect([await text(socket), received()]).toEqual([expect.stringMatching(/answer to \/x$/), '']);
    await until(() => Object.values(connections.counts()).every((count) => count === 0));
  });

  it.each([
    ['nothing', ''],
    ['half a head', 'GET /x HTT'],
    ['half a body', 'POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nabc'],
    ['half a body to nobody', 'POST /wait HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nabc'],
  ])('gets 408 in time, when it sent %s', async (_what, says) => {
    const begun = jest.fn();
    const learned = jest.fn();
    const reading: RequestListener = (request) => {
      begun(request.url);
      if (request.url === '/x') text(request).catch(learned);
    };
    const { port } = await serve(reading, {}, { requestTimeoutMs: 100 });
    const { socket, ended } = await hostile(port, { says });
    expect(await ended).toMatch(/^HTTP\/1.1 408 .*"code":"request_timeout"/s);
    socket.write('GET /after HTTP/1.1\r\nhost: a\r\n\r\n');
    await until(() => Object.values(connections.counts()).every((count) => count === 0));
    const [, path] = /^POST (\S+)/.exec(says) ?? [];
    expect([begun.mock.calls.flat(), learned.mock.calls.length]).toEqual([
      path ? [path] : [],
      path === '/x' ? 1 : 0,
    ]);
    expect(refused).toEqual([['request_timeout', '127.0.0.1']]);
  });

  it('is cut when an answer to it is under way', async () => {
    const { port } = await serve((_request, response) => response.end('x'.repeat(16 * 1024 * 1024)));
    const says = `${HEAD}transfer-encoding: chunked\r\n\r\n`;
    const { socket } = await hostile(port, { says, reads: false });
    await until(() => connections.counts().answering === 1);
    socket.write('NONSENSE\r\n');
    await until(() => Object.values(connections.counts()).every((count) => count === 0));
    expect(refused).toEqual([['not_http', '127.0.0.1']]);
  });

  it('may send the rest of its body, and then the next request', async () => {
    const { port } = await serve(answer);
    const client = await hostile(port, { says: 'POST /a HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\n' });
    await until(() => client.received().endsWith('answer to /a'));
    client.socket.write('abcGET /b HTTP/1.1\r\nhost: a\r\n\r\n');
    await until(() => client.received().endsWith('answer to /b'));
  });
});

test('an answer to a slow client goes on while that takes something of it', async () => {
  const size = 8 * 1024 * 1024;
  const { port } = await serve((_request, response) => response.end('x'.repeat(size)), { answerMs: 1000 });
  const { socket } = await hostile(port, { says: `${HEAD}\r\n`, reads: false });
  let taken = 0;
  socket.on('data', (chunk) => {
    taken += chunk.length;
    socket.pause();
    setTimeout(() => socket.resume(), 10);
  });
  await until(() => taken > size);
  expect(refused).toEqual([]);
});

test.each([
  ['a request has all its time when an answer before it', `${HEAD}\r\nGET /late HTTP/1.1\r\nhost: a\r\n\r\n`],
  ['an answer has all its time when a part of it', 'GET /parts HTTP/1.1\r\nhost: a\r\n\r\n'],
])('%s was taken late', async (_what, says) => {
  const big = 'x'.repeat(16 * 1024 * 1024);
  let spoken: Socket | undefined;
  const { port } = await serve(({ url, socket }, response) => {
    spoken = (socket as unknown as PiecewiseSocket).inner;
    const end = () => setTimeout(() => response.end('made late'), 600);
    if (url === '/x') response.end(big);
    else if (url === '/late') end();
    else
      response
        .writeHead(200, { 'content-length': big.length + 9 })
        .once('drain', end)
        .write(big);
  });
  const { socket } = await hostile(port, { says, reads: false });
  await until(() => connections.counts().answering === 1);
  setTimeout(() => socket.resume(), 150);
  let end = '';
  socket.on('data', (chunk) => {
    end = chunk.toString('latin1').slice(-9);
  });
  await until(() => end === 'made late' && connections.counts().idle === 1);
  expect([refused, spoken?.timeout]).toEqual([[], expect.closeTo(65_000, -4)]);
  socket.pause().write(`${HEAD}\r\n`);
  await until(() => refused.length > 0);
  await until(() => Object.values(connections.counts()).every((count) => count === 0));
  expect(refused).toEqual([['answer_timeout', '127.0.0.1']]);
});

test('an answer that stops and goes on again and again keeps no more listeners', async () => {
  const big = 'x'.repeat(16 * 1024 * 1024);
  const listeners: number[] = [];
  const { port } = await serve(
    async ({ socket: spoken }, response) => {
      for (let round = 0; round < 3; round += 1) {
        response.write(big);
        await until(() => (spoken as unknown as PiecewiseSocket).inner.timeout === 1000);
        listeners.push(response.listenerCount('close'));
        client.socket.resume();
        await once(response, 'drain');
        client.socket.pause();
      }
      response.end();
    },
    { answerMs: 1000 },
  );
  const client = await hostile(port, { says: `${HEAD}\r\n`, reads: false });
  await until(() => listeners.length === 3);
  expect(new Set(listeners).size).toBe(1);
  client.socket.resume();
});

test.each([
  ['with', KEY],
  ['without', ''],
])('of a body that nobody reads little is taken, from a client %s a key', async (_whom, key) => {
  const { port } = await serve(answer);
  const says = `POST /wait HTTP/1.1\r\nhost: a\r\n${key}content-length: 100000000\r\n\r\n`;
  const { socket } = await hostile(port, { says });
  socket.write(Buffer.alloc(64 * 1024 * 1024));
  await until(() => connections.counts().receiving === 1);
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(socket.writableLength).toBeGreaterThan(0);
});

test('a client that is lost is none that was refused', async () => {
  const { port } = await serve(({ socket }) => {
    (socket as unknown as PiecewiseSocket).inner.destroy(
      Object.assign(new Error('read ETIMEDOUT'), { code: 'ETIMEDOUT' }),
    );
  });
  await (await hostile(port, { says: `${HEAD}\r\n` })).ended;
  await until(() => Object.values(connections.counts()).every((count) => count === 0));
  expect(refused).toEqual([]);
});

test.each([
  ['small', 0],
  ['of two pieces', 600],
  ['of many pieces', 6000],
])('answers a client that ends its side behind its requests: %s', async (_what, size) => {
  const { port } = await serve((_request, response) => setTimeout(() => response.end('late'), 20));
  for (const key of [KEY, '']) {
    const says = `${HEAD}${key}x: ${'y'.repeat(size)}\r\n\r\n`.repeat(2);
    const client = await hostile(port, { says });
    client.socket.end();
    expect(await client.ended).toMatch(/late.*late$/s);
  }
  const half = await hostile(port, { says: `${HEAD}x: ${'y'.repeat(size)}` });
  half.socket.end();
  expect(await half.ended).toBe('');
});

describe('pipelined requests', () => {
  /** Requests that are begun and not answered, each with what answers it. */
  let underWay: (() => void)[];
  const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`;
  const post = (path: string, body: string) =>
    `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  const bodiesIn = (received: string) => received.match(/<[^>]*>/g) ?? [];
  const onDemand: RequestListener = async (request, response) => {
    const body = await text(request);
    underWay.push(() => response.end(`<${request.url} ${body}>`));
  };

  beforeEach(() => {
    underWay = [];
  });

  test('pipelined requests run one after another, in their order', async () => {
    const { port } = await serve(onDemand);
    const client = await hostile(port, {
      says: post('/1', 'abc') + get('/2') + post('/3', 'de') + get('/4'),
    });
    for (const [index, expected] of ['</1 abc>', '</2 >', '</3 de>', '</4 >'].entries()) {
      await until(() => underWay.length === index + 1);
      underWay[index]?.();
      await until(() => bodiesIn(client.received()).length === index + 1);
      expect(bodiesIn(client.received()).at(-1)).toBe(expected);
    }
  });

  test('requests that come in pieces of any size are answered in their order', async () => {
    const { port } = await serve(async (request, response) => {
      const body = await text(request);
      setImmediate(() => response.end(`<${request.url} ${body}>`));
    });
    const chunked =
      'POST /4 HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n';
    const sent = post('/1', 'a\r\n\r\nb') + get('/2') + post('/3', 'x'.repeat(3000)) + chunked;
    const expected = ['</1 a\r\n\r\nb>', '</2 >', `</3 ${'x'.repeat(3000)}>`, '</4 abc>'];
    for (const size of [1, 7, 97, 4000]) {
      const client = await hostile(port);
      for (let at = 0; at < sent.length; at += size) {
        client.socket.write(sent.slice(at, at + size));
        if (size > 10 || at % 40 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      await until(() => bodiesIn(client.received()).length === expected.length);
      expect(bodiesIn(client.received())).toEqual(expected);
    }
  });

  test.each([
    ['a fifth', get('/').repeat(5), 'pipelined'],
    ['what is no HTTP behind two', `${get('/').repeat(2)}NONSENSE\r\n\r\n`, 'not_http'],
  ])('%s under way ends the connection', async (_what, says, cause) => {
    const { port } = await serve(onDemand);
    const client = await hostile(port, { says });
    expect(await client.ended).toBe('');
    expect(refused).toEqual([[cause, '127.0.0.1']]);
  });
});
