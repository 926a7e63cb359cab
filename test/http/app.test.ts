import { connect } from 'node:net';
import type { Express } from 'express';
import request from 'supertest';
import { type AnsweredRequest, createApp, requireJson, routeAt } from '../../src/http/app';
import { HttpError } from '../../src/http/errors';
import type { LogFields } from '../../src/http/log';
import { listen } from '../../src/http/server';
import { afterTest } from '../support/after-test';
import { rawRequest } from '../support/raw-http';
import { type LogLine, recordedLog } from '../support/recorded-log';
import { until } from '../support/until';

let observed: AnsweredRequest[];
let errors: HttpError[];

/** Serves what `mount` adds; `entries` stops the server, so that the last line is there. */
async function serve(mount: (app: Express) => void, quietPaths: string[] = []) {
  const { log, lines } = recordedLog();
  observed = [];
  errors = [];
  const observe = (answered: AnsweredRequest) => observed.push(answered);
  const onError = (error: HttpError) => errors.push(error);
  let time = 0;
  const now = () => {
    time += 1.23456;
    return time;
  };
  const running = await listen(
    createApp({ log, newId: () => 'new-id', now, quietPaths, observe, onError }, mount),
    '127.0.0.1',
    0,
  );
  afterTest(() => running.stop(0));
  const entries = async () => {
    await running.stop(0);
    return lines;
  };
  return { http: request(running.url), port: running.port, entries };
}

function requestEntry(
  level: string,
  method: string,
  route: string,
  status: number,
  more: LogFields = {},
): LogLine {
  return [level, 'request', { requestId: 'new-id', method, route, status, ms: 1.23, ...more }];
}

const SERVER_ERROR = {
  code: 'server_error',
  description: 'The service failed. The cause is in its log under the request id of this answer.',
};

describe('createApp', () => {
  it('logs one line a request with the route, never the path, and with the fields of the handler', async () => {
    const { http, entries } = await serve((app) => {
      app.get('/things/:id', (_request, response) => {
        response.locals.logFields = { thing: 'seven' };
        response.json({ id: 7 });
      });
    });
    await http.get('/things/7?key=secret').expect(200, { id: 7 });
    expect(await entries()).toEqual([requestEntry('info', 'GET', '/things/:id', 200, { thing: 'seven' })]);
    const figures = { method: 'GET', route: '/things/:id', status: 200, ms: 1.23, aborted: false };
    expect(observed).toEqual([figures]);
  });

  it('answers 404 as JSON for what is not mounted, and logs no path', async () => {
    const { http, entries } = await serve(() => undefined);
    await http
      .get('/secret')
      .expect(404, { errors: [{ code: 'not_found', description: 'There is nothing at this path.' }] })
      .expect('content-type', 'application/json; charset=utf-8');
    expect(await entries()).toEqual([requestEntry('info', 'GET', 'unmatched', 404)]);
    expect(observed).toEqual([{ method: 'GET', route: 'unmatched', status: 404, ms: 1.23, aborted: false }]);
  });

  it('reports a request whose client went away before the answer', async () => {
    let hasArrived = false;
    const { port, entries } = await serve((app) => {
      app.get('/slow', () => {
        hasArrived = true;
      });
    });
    const socket = connect(port, '127.0.0.1', () => socket.write('GET /slow HTTP/1.1\r\nhost: a\r\n\r\n'));
    await until(() => hasArrived);
    socket.destroy();
    await until(() => observed.length > 0);
    expect(observed).toEqual([{ method: 'GET', route: '/slow', status: 499, ms: 1.23, aborted: true }]);
    expect(await entries()).toEqual([requestEntry('info', 'GET', '/slow', 499, { aborted: true })]);
  });

  it.each(['abc-123', 'A.b_c:d', 'x'.repeat(128)])('keeps the request id %.20s', async (id) => {
    const { http } = await serve(() => undefined);
    await http.get('/').set('x-request-id', id).expect('x-request-id', id);
  });

  it.each<[what: string, id: string | string[]]>([
    ['that is empty', ''],
    ['with a space', 'a b'],
    ['with markup', '<script>'],
    ['of 129 characters', 'x'.repeat(129)],
    ['sent twice', ['a', 'b']],
  ])('makes a new request id in place of one %s', async (_what, id) => {
    const { port } = await serve(() => undefined);
    const { headers } = await rawRequest(port, 'GET', '/', { 'x-request-id': id });
    expect(headers['x-request-id']).toBe('new-id');
  });

  it('sends security headers, and neither x-powered-by nor an etag', async () => {
    const { http } = await serve((app) => app.get('/', (_request, response) => void response.send('text')));
    const { headers } = await http.get('/').expect(200);
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'x-frame-options': expect.any(String),
    });
    expect([headers['x-powered-by'], headers.etag]).toEqual([undefined, undefined]);
  });

  it('answers 500 without a word of an error that is thrown, and logs its cause', async () => {
    const { http, entries } = await serve((app) => app.get('/', () => Promise.reject(new Error('secret'))));
    const answer = await http.get('/').expect(500, { errors: [SERVER_ERROR] });
    expect(JSON.stringify(answer.headers)).not.toContain('secret');
    const cause = { name: 'Error', message: 'secret', stack: expect.any(Array) };
    expect(await entries()).toEqual([
      ['error', 'request failed', { requestId: 'new-id', status: 500, codes: ['server_error'], cause }],
      requestEntry('info', 'GET', '/', 500),
    ]);
    expect(errors).toEqual([expect.objectContaining({ status: 500 })]);
  });

  it('answers an HttpError with its status, headers and problems, and logs no cause below 500', async () => {
    const problems = [
      { code: 'one', description: 'One.' },
      { code: 'two', description: 'Two.' },
    ];
    const { http, entries } = await serve((app) =>
      app.get('/', () => {
        throw new HttpError(409, problems, { headers: { 'retry-after': '5' }, cause: new Error('secret') });
      }),
    );
    await http.get('/').expect(409, { errors: problems }).expect('retry-after', '5');
    expect(await entries()).toEqual([requestEntry('info', 'GET', '/', 409)]);
    expect(errors).toEqual([expect.objectContaining({ status: 409, problems })]);
  });

  it('cuts the connection when an answer fails after its head is sent, and logs it as aborted', async () => {
    const { http, entries } = await serve((app) =>
      app.get('/', (_request, response) => {
        response.write('half');
        throw new Error('late');
      }),
    );
    await expect(http.get('/').then(() => 'answered')).rejects.toThrow(/aborted|socket hang up/);
    expect((await entries()).map(([level, message, fields]) => [level, message, fields?.aborted])).toEqual([
      ['error', 'request failed', undefined],
      ['info', 'request', true],
    ]);
  });

  it('logs the quiet paths at debug while they succeed', async () => {
    let status = 200;
    const { http, entries } = await serve(
      (app) => app.get('/readyz', (_request, response) => void response.status(status).end()),
      ['/readyz'],
    );
    await http.get('/readyz').expect(200);
    status = 503;
    await http.get('/readyz').expect(503);
    expect(await entries()).toEqual([
      requestEntry('debug', 'GET', '/readyz', 200),
      requestEntry('info', 'GET', '/readyz', 503),
    ]);
  });
});

test('of a path with some methods the others are a 405 that names those', async () => {
  const { http } = await serve((app) => {
    routeAt(app, '/')
      .get((_request, response) => void response.end())
      .post((_request, response) => void response.end());
  });
  await http.head('/').expect(200);
  const description = 'This path accepts GET, HEAD, POST, not PUT.';
  const { headers } = await http
    .put('/')
    .expect(405, { errors: [{ code: 'method_not_allowed', description }] });
  expect(headers.allow).toBe('GET, HEAD, POST');
});

test('only a body of JSON passes where it is required', async () => {
  const { http } = await serve((app) => {
    app.post('/', requireJson, (_request, response) => void response.json({ passed: true }));
  });
  const send = (type: string) => http.post('/').set('content-type', type).send('{}');
  for (const type of ['application/json', 'application/json; charset=utf-8', 'APPLICATION/JSON'])
    await send(type).expect(200, { passed: true });
  const description = 'Send the body as JSON, with content-type: application/json.';
  for (const type of ['text/json', 'application/xml', 'json', 'application/json-seq'])
    await send(type).expect(415, { errors: [{ code: 'unsupported_media_type', description }] });
});
