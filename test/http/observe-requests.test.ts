import { connect } from 'node:net';
import type { Express } from 'express';
import request from 'supertest';
import { createApp } from '../../src/http/app';
import { HttpError } from '../../src/http/errors';
import type { Log } from '../../src/http/log';
import { listen, type RunningServer } from '../../src/http/server';
import type { AnsweredRequest } from '../../src/http/shell';

const log: Log = {
  error: () => undefined,
  warn: () => undefined,
  info: () => undefined,
  debug: () => undefined,
};

let server: RunningServer | undefined;

afterEach(async () => {
  await server?.stop(0);
  server = undefined;
});

/** Serves what `mount` adds; `observed` stops the server, so that the last request is in it. */
async function serve(mount: (app: Express) => void) {
  const answered: AnsweredRequest[] = [];
  const errors: HttpError[] = [];
  let clock = 0;
  const now = () => {
    clock += 1.23456;
    return clock;
  };
  const shell = {
    log,
    newId: () => 'id',
    now,
    observe: (one: AnsweredRequest) => answered.push(one),
    onError: (error: HttpError) => errors.push(error),
  };
  const running = await listen(createApp(shell, mount), '127.0.0.1', 0);
  server = running;
  const observed = async () => {
    await running.stop(0);
    return {
      answered,
      codes: errors.map(({ status, problems }) => [status, ...problems.map(({ code }) => code)]),
    };
  };
  return { http: request(running.url), port: running.port, observed };
}

test('hands on the figures of every request, with the pattern of its route', async () => {
  const { http, observed } = await serve((app) => {
    app.get('/things/:id', (_request, response) => void response.json({}));
  });
  await http.get('/things/7');
  await http.delete('/nothing/8');
  expect(await observed()).toEqual({
    answered: [
      { method: 'GET', route: '/things/:id', status: 200, ms: 1.23, aborted: false },
      { method: 'DELETE', route: 'unmatched', status: 404, ms: 1.23, aborted: false },
    ],
    codes: [[404, 'not_found']],
  });
});

test('hands on every error that is answered, with all its problems', async () => {
  const { http, observed } = await serve((app) => {
    app.get('/refused', () => {
      throw new HttpError(400, [
        { code: 'one', description: 'One.' },
        { code: 'two', description: 'Two.' },
      ]);
    });
    app.get('/failed', () => {
      throw new Error('unforeseen');
    });
  });
  await http.get('/refused').expect(400);
  await http.get('/failed').expect(500);
  expect((await observed()).codes).toEqual([
    [400, 'one', 'two'],
    [500, 'server_error'],
  ]);
});

test('tells a request whose client went away before the answer', async () => {
  let reached = () => {};
  const arrived = new Promise<void>((resolve) => {
    reached = resolve;
  });
  let gone = () => {};
  const closed = new Promise<void>((resolve) => {
    gone = resolve;
  });
  const { port, observed } = await serve((app) => {
    app.get('/slow', (_request, response) => {
      response.on('close', () => gone());
      reached();
    });
  });
  const socket = connect(port, '127.0.0.1', () => socket.write('GET /slow HTTP/1.1\r\nhost: here\r\n\r\n'));
  await arrived;
  socket.destroy();
  await closed;
  const { answered } = await observed();
  expect(answered).toEqual([{ method: 'GET', route: '/slow', status: 499, ms: 1.23, aborted: true }]);
});
