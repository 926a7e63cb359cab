import { connect } from 'node:net';
import { listen } from '../../src/kernel/server';

test('a stop does not wait for a connection on which nothing was said', async () => {
  const server = await listen((_request, response) => void response.end(), '127.0.0.1', 0);
  const silent = connect(server.port, '127.0.0.1');
  const ended = new Promise((resolve) => silent.on('close', resolve));
  await new Promise((resolve) => silent.on('connect', resolve));
  // Connections are taken in their order: with the second one, the first is there.
  await fetch(server.url);
  await server.stop(60_000);
  await ended;
});
