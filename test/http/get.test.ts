import { getEventListeners } from 'node:events';
import type { Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createGet } from '../../src/http/get';
import type { GetRequest } from '../../src/http/get-request';
import { serveRaw } from '../support/serve';
import { until } from '../support/until';

const MIB = 1024 * 1024;

function call(url: string, changes: Partial<GetRequest> = {}) {
  return createGet({}).get({ url, headers: {}, maxBytes: 64 * MIB, timeoutMs: 60_000, ...changes });
}

/** Writes a text again and again until the other side is gone. */
async function pour(socket: Socket, text: string): Promise<void> {
  while (!socket.destroyed) {
    if (!socket.write(text))
      await new Promise((resolve) => socket.once('drain', resolve).once('close', resolve));
  }
}

test.each<[string, string, string]>([
  ['before the head', '', 'ECONNRESET'],
  ['amid the head', 'HTTP/1.1 200 OK\r\ncontent-', 'ECONNRESET'],
  ['amid a body of a known length', 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345', 'ECONNRESET'],
  ['amid a body of chunks', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n123', 'ECONNRESET'],
  [
    'after other protocols',
    'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n',
    'ECONNRESET',
  ],
  ['after an early hint', 'HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n', 'ECONNRESET'],
])('an answer that is cut %s is none', async (_name, bytes, causeCode) => {
  const ended = await serveRaw((socket) => socket.end(bytes));
  await expect(call(ended)).rejects.toMatchObject({ name: 'GetFailed', causeCode });
  const kept = await serveRaw((socket) => socket.write(bytes, () => setImmediate(() => socket.destroy())));
  await expect(call(kept)).rejects.toMatchObject({ name: 'GetFailed', causeCode });
});

test.each([
  ['an alert of TLS', Buffer.from('15030300020228', 'hex'), /^ERR_SSL_\w+_ALERT_HANDSHAKE_FAILURE$/],
  ['a byte that is no TLS', 'HTTP/1.1 400 Bad Request\r\n\r\n', /^EPROTO$/],
])('tells a handshake that ends by %s', async (_name, bytes, causeCode) => {
  const url = await serveRaw((socket) => socket.end(bytes));
  const secure = url.replace('http:', 'https:');
  await expect(call(secure)).rejects.toMatchObject({ causeCode: expect.stringMatching(causeCode) });
});

test('an answer without a length is whole when the connection ends', async () => {
  const url = await serveRaw((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\nall of it'));
  expect(String((await call(url)).body)).toBe('all of it');
});

test.each<[string, (body: Buffer) => Buffer[]]>([
  ['with its length', (body) => [Buffer.from(`content-length: ${body.length}\r\n\r\n`), body]],
  [
    'in a chunk',
    (body) => [
      Buffer.from(`transfer-encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n`),
      body,
      Buffer.from('\r\n0\r\n\r\n'),
    ],
  ],
])('takes a body of the maximum length, and cuts one that is a byte longer, %s', async (_name, frame) => {
  const answer = (length: number) => (socket: Socket) => {
    socket.write('HTTP/1.1 200 OK\r\n');
    for (const piece of frame(Buffer.alloc(length, 'x'))) socket.write(piece);
  };
  const ask = async (length: number) => call(await serveRaw(answer(length)), { maxBytes: MIB });
  expect((await ask(MIB)).body.equals(Buffer.alloc(MIB, 'x'))).toBe(true);
  expect((await ask(MIB + 1)).isCut).toBe(true);
});

test('keeps little more of a body than its bytes, however small its pieces are', async () => {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const memory = () => {
    collect();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const pieces = '1\r\n.\r\n'.repeat(1000);
  let before = 0;
  let after = 0;
  const url = await serveRaw(async (socket) => {
    socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
    before = memory();
    for (let thousands = 1; thousands <= 100; thousands += 1) {
      if (!socket.write(pieces)) await new Promise((resolve) => socket.once('drain', resolve));
    }
    // Time to read all that: it is a few dozen blocks.
    for (let turns = 0; turns < 500; turns += 1) await new Promise((resolve) => setImmediate(resolve));
    after = memory();
    socket.end('0\r\n\r\n');
  });
  expect((await call(url)).body).toHaveLength(100_000);
  expect((after - before) / MIB).toBeLessThan(5);
}, 30_000);

const OVERFLOW = expect.stringMatching(/^HPE_/);

test.each<[string, string, unknown]>([
  ['header lines', 'x: y\r\n'.repeat(1000), OVERFLOW],
  ['a header line without end', 'x'.repeat(1000), OVERFLOW],
  ['trailers', 'TRAILERS', OVERFLOW],
])('cuts a server that pours %s', async (_name, text, causeCode) => {
  const url = await serveRaw((socket) => {
    const isTrailers = text === 'TRAILERS';
    socket.write(`HTTP/1.1 200 OK\r\n${isTrailers ? 'transfer-encoding: chunked\r\n\r\n0\r\n' : ''}`);
    return pour(socket, isTrailers ? 'x: y\r\n'.repeat(1000) : text);
  });
  await expect(call(url)).rejects.toMatchObject({ causeCode });
});

test.each<[string, (socket: Socket) => unknown]>([
  ['pours preliminary answers', (socket) => pour(socket, 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(100))],
  ['stops amid its answer', (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345')],
  [
    'answers drop by drop',
    (socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      const timer = setInterval(() => socket.write(' '), 20);
      socket.on('close', () => clearInterval(timer));
    },
  ],
])('waits no longer than it may for a server that %s', async (_name, speak) => {
  await expect(call(await serveRaw(speak), { timeoutMs: 200 })).rejects.toMatchObject({
    causeCode: 'ETIMEDOUT',
  });
});

test('leaves a server that answers and reads no further', async () => {
  const connections: Socket[] = [];
  const url = await serveRaw((socket) => {
    socket.pause();
    connections.push(socket);
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
  });
  const { status } = await call(url, { method: 'POST', body: Buffer.alloc(32 * MIB, 'x') });
  expect(status).toBe(200);
  // The rest of the request would else keep the program from ending.
  let received = 0;
  let isOver = false;
  for (const socket of connections) {
    socket.on('data', ({ length }) => {
      received += length;
    });
    socket.on('close', () => {
      isOver = true;
    });
    socket.resume();
  }
  await until(() => isOver || received > 31 * MIB);
  expect({ isOver, isWhole: received > 31 * MIB }).toEqual({ isOver: true, isWhole: false });
});

test('asks again when a kept connection is closed just as it is used, and only what can be asked again', async () => {
  const connections: string[][] = [];
  const url = await serveRaw((first) => {
    const requests: string[] = [''];
    connections.push(requests);
    first.write('HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na');
    first.on('data', () => {
      requests.push('');
      first.destroy();
    });
  });
  const { get: send } = createGet({});
  const get = { url, headers: {}, maxBytes: MIB, timeoutMs: 60_000 } as const;
  await send(get);
  expect((await send(get)).status).toBe(200);
  expect(connections.map(({ length }) => length)).toEqual([2, 1]);
  await expect(send({ ...get, method: 'POST', body: Buffer.from('{}') })).rejects.toMatchObject({
    causeCode: 'ECONNRESET',
  });
  expect(connections.map(({ length }) => length)).toEqual([2, 2]);
});

test('ends when its caller does not want the answer any more', async () => {
  const caller = new AbortController();
  const url = await serveRaw(() => caller.abort());
  await expect(call(url, { signal: caller.signal })).rejects.toMatchObject({ causeCode: 'ABORT_ERR' });
});

test('keeps nothing of its calls at a signal that outlasts them', async () => {
  const { signal } = new AbortController();
  const url = await serveRaw((socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'));
  await Promise.all(Array.from({ length: 20 }, () => call(url, { signal })));
  const kept = Object.getOwnPropertySymbols(signal).flatMap((name) => {
    const { size = 0 } = Object(Reflect.get(signal, name));
    return size;
  });
  // A map that Node has in each signal has one entry for each kind of event with listeners.
  expect(Math.max(0, ...kept)).toBeLessThan(2);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});
