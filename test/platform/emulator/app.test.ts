import { deriveKeys } from '../../../src/platform/emulator/upstreams/derive-keys';
import { signedPath } from '../../support/sign-v1';
import { startEmulator } from '../../support/start-emulator';

test('answers /healthz without a credential', async () => {
  const response = await (await startEmulator()).unauthenticated.get('/healthz');
  expect(response.status).toBe(200);
  expect(response.body).toEqual({ status: 'ok' });
});

test('answers 404 in the error form where nothing is', async () => {
  const response = await (await startEmulator()).unauthenticated.get('/nothing');
  expect(response.status).toBe(404);
  expect(response.body).toEqual({
    errors: [{ code: 'not_found', description: 'There is nothing at this path.' }],
  });
});

test.each(['a b', '[::1', 'x:99999', '%', 'user@host', 'host/path', 'host?', 'host#', '\\'])(
  'addresses in answers are those of loopback when the Host header %j is none',
  async (host) => {
    const emulator = await startEmulator();
    const playlist = await emulator.admin
      .post('/v2/sites/demosite/playlists/manual_playlist/')
      .send({ metadata: { title: 'P' } })
      .expect(201);
    const document = await emulator.unauthenticated
      .get(`/v2/playlists/${playlist.body.id}`)
      .set('host', host)
      .expect(200);
    expect(new URL(document.body.links.first).origin).toBe(emulator.url);
    const made = await emulator.unauthenticated.get(signedPath('/v1/videos/create')).set('host', host);
    expect([made.status, made.body.link.address]).toEqual([200, new URL(emulator.url).host]);
  },
);

test("carries the caller's request id, or a new one, in every answer", async () => {
  const { api, unauthenticated } = await startEmulator();
  const path = '/keyprovider/cenc/demo/film';
  const given = await api.get(path).set('x-request-id', 'from-caller');
  const made = await unauthenticated.get(path);
  expect(given.headers['x-request-id']).toBe('from-caller');
  expect(made.headers['x-request-id']).toBe('request-1');
});

test('logs one line for each request and no secret, API key or key in any of them', async () => {
  const { api, client, logOf, unauthenticated } = await startEmulator();
  const { keyId, contentKey, fairPlayKey, fairPlayIv, aesKey } = deriveKeys(client, 'film');
  const kids = [keyId.toString('base64url')];
  const secretInPath = `/keyprovider/${client.sharedSecret}/${client.apiKey}`;
  for (const path of [`/config/v1/clients/${client.name}`, secretInPath]) {
    await api.get(path);
  }
  for (const kind of ['cenc', 'fairplay', 'widevine', 'playready', 'aes']) {
    await api.get(`/keyprovider/${kind}/demo/film`);
    await unauthenticated.get(`/keyprovider/${kind}/demo/film`).set('API-KEY', `${client.apiKey}-wrong`);
  }
  await unauthenticated.post('/keyprovider/clearkey').send({ kids, type: 'temporary' });
  await unauthenticated
    .post('/keyprovider/clearkey')
    .set('content-type', 'application/json')
    .send(`{"${contentKey.toString('base64')}`);

  const log = await logOf(14);
  expect(log.trimEnd().split('\n')).toHaveLength(14);
  const secrets = [contentKey, fairPlayKey, fairPlayIv, aesKey].flatMap((key) => [
    key.toString('hex'),
    key.toString('base64'),
    key.toString('base64url'),
  ]);
  const found = [client.apiKey, client.sharedSecret, ...secrets].filter((secret) =>
    log.toLowerCase().includes(secret.toLowerCase()),
  );
  expect(found).toEqual([]);
});

test('tells time, request id, method, route, status and milliseconds in the line of a request', async () => {
  const { api, logOf } = await startEmulator();
  await api.get('/keyprovider/cenc/demo/film');
  expect(JSON.parse(await logOf(1))).toEqual({
    level: 'info',
    message: 'request',
    time: '2030-01-01T00:00:00.000Z',
    requestId: 'request-1',
    method: 'GET',
    route: '/keyprovider/cenc/:client/:contentId',
    status: 200,
    ms: 0,
  });
});
