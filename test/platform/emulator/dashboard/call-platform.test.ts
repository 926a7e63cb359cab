import type { RequestListener } from 'node:http';
import { callPlatform } from '../../../../src/platform/emulator/dashboard/call-platform';
import { until } from '../../../support/until';

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
  const answer = await callPlatform(listener, call);
  expect({ ...answer, body: answer?.body.toString(), headers: {} }).toEqual({
    status: 201,
    headers: {},
    body: `${JSON.stringify(['POST', '/a?b=c', 'here', 'z', 2_000_000])}${text}`,
    isCut: false,
  });
});

test('cuts an answer that is longer than it may be, and one that is asked for no more', async () => {
  let ended = 0;
  const endless: RequestListener = (_request, response) => {
    response.setHeader('x-y', 'z');
    const timer = setInterval(() => response.write('x'.repeat(1000)), 1);
    response.on('close', () => {
      ended += 1;
      clearInterval(timer);
    });
  };
  const cut = await callPlatform(endless, { ...GET, maxBytes: 5000 });
  expect({ ...cut, headers: cut?.headers['x-y'], body: cut?.body.length }).toEqual({
    status: 200,
    headers: 'z',
    body: 5000,
    isCut: true,
  });
  expect(await callPlatform(endless, { ...GET, signal: AbortSignal.timeout(20) })).toBeUndefined();
  await until(() => ended === 2);
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
  expect(answers.map((answer) => answer?.body.toString())).toEqual(
    Array.from({ length: 20 }, (_, at) => `/${at}`),
  );
});
