import { deriveKeys } from '../../src/emulator/upstreams/derive-keys';
import { startEmulator } from '../support/start-emulator';

test('logs one line for each request and no secret, API key or key in any of them', async () => {
  const { api, client, logOf, stranger } = await startEmulator();
  const { keyId, contentKey, fairPlayKey, fairPlayIv, aesKey } = deriveKeys(client, 'film');
  const kids = [keyId.toString('base64url')];
  const secretInPath = `/keyprovider/${client.sharedSecret}/${client.apiKey}`;
  for (const path of [`/config/v1/clients/${client.name}`, secretInPath]) {
    await api.get(path);
  }
  for (const kind of ['cenc', 'fairplay', 'widevine', 'playready', 'aes']) {
    await api.get(`/keyprovider/${kind}/demo/film`);
    await stranger.get(`/keyprovider/${kind}/demo/film`).set('API-KEY', `${client.apiKey}-wrong`);
  }
  await stranger.post('/keyprovider/clearkey').send({ kids, type: 'temporary' });
  await stranger
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
