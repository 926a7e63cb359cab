import { connect, type Socket } from 'node:net';
import { listen } from '../../src/kernel/server';

const stops: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

test('makes room for new connections when idle ones take nearly all places', async () => {
  const { port, stop } = await listen((_request, response) => response.end('here'), '127.0.0.1', 0);
  const sockets: Socket[] = [];
  const open = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1');
      sockets.push(socket);
      socket.once('data', () => resolve(true));
      socket.once('error', () => resolve(false));
      socket.once('close', () => resolve(false));
      socket.write('GET / HTTP/1.1\r\nhost: here\r\n\r\n');
    });
  const answered: boolean[] = [];
  for (let count = 0; count < 600; count += 1) answered.push(await open());
  expect(answered.filter((ok) => !ok)).toEqual([]);
  for (const socket of sockets) socket.destroy();
  await stop(0);
});

test('knows the address of a client whose connection is reset meanwhile', async () => {
  let addressOf = (): string | undefined => 'not asked';
  const asked = new Promise<void>((resolve) => {
    void listen(
      (request, response) => {
        request.socket.once('close', () => {
          addressOf = () => request.socket.remoteAddress;
          resolve();
        });
        response.flushHeaders();
      },
      '127.0.0.1',
      0,
    ).then(({ port, stop }) => {
      stops.push(() => stop(0));
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => undefined);
      socket.once('data', () => socket.resetAndDestroy());
      socket.write('GET / HTTP/1.1\r\nhost: here\r\n\r\n');
    });
  });
  await asked;
  expect(addressOf()).toBe('127.0.0.1');
});
