import { startEmulator } from '../support/start-emulator';

test('answers /healthz without a credential', async () => {
  const response = await (await startEmulator()).stranger.get('/healthz');
  expect(response.status).toBe(200);
  expect(response.body).toEqual({ status: 'ok' });
});

test('answers 404 in the error form where nothing is', async () => {
  const response = await (await startEmulator()).stranger.get('/nothing');
  expect(response.status).toBe(404);
  expect(response.body).toEqual({
    errors: [{ code: 'not_found', description: 'There is nothing at this path.' }],
  });
});

test("carries the caller's request id, or a new one, in every answer", async () => {
  const { api, stranger } = await startEmulator();
  const path = '/keyprovider/cenc/demo/film';
  const given = await api.get(path).set('x-request-id', 'from-caller');
  const made = await stranger.get(path);
  expect(given.headers['x-request-id']).toBe('from-caller');
  expect(made.headers['x-request-id']).toBe('request-1');
});
