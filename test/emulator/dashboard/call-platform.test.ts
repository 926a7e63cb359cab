import type { RequestListener } from 'node:http';
import { callPlatform } from '../../../src/emulator/dashboard/call-platform';

const GET = { method: 'GET', target: '/a?b=c', headers: { host: 'here' } };

test('calls as a client does, and answers the status and the whole text', async () => {
  const text = 'é'.repeat(1_000_000);
  const listener: RequestListener = (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method, url, headers } = request;
      response.writeHead(201);
      response.write(
        JSON.stringify([method, url, headers.host, headers['x-y'], Buffer.concat(chunks).length]),
      );
      response.end(text);
    });
  };
  const call = { method: 'POST', target: '/a?b=c', headers: { host: 'here', 'x-y': 'z' }, body: text };
  expect(await callPlatform(listener, call)).toEqual({
    status: 201,
    text: `${JSON.stringify(['POST', '/a?b=c', 'here', 'z', 2_000_000])}${text}`,
  });
});

test('answers nothing when the connection breaks before, or amid, an answer', async () => {
  const breaks: RequestListener[] = [
    (request) => void request.socket.destroy(),
    (request) => void request.socket.resetAndDestroy(),
    (_request, response) => {
      response.writeHead(200, { 'content-length': 10 });
      response.write('half');
      response.destroy();
    },
  ];
  for (const listener of breaks) expect(await callPlatform(listener, GET)).toBeUndefined();
});

test('makes calls one beside the other', async () => {
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, at) =>
      callPlatform((request, response) => void response.end(request.url), { ...GET, target: `/${at}` }),
    ),
  );
  expect(answers.map((answer) => answer?.text)).toEqual(Array.from({ length: 20 }, (_, at) => `/${at}`));
});
