import { startEmulator } from '../../../support/start-emulator';

const PATH = '/config/v1/clients/demo';
const KEY = 'demo-client-api-key';

const RECORD = {
  client: 'demo',
  shared_secret: 'demo-shared-secret-0123456789',
  drm_providers: ['widevine', 'playready', 'fairplay'],
  license_urls: {
    widevine: 'https://widevine-license.example.com/proxy',
    playready: 'https://playready-license.example.com/rightsmanager.asmx',
    fairplay: 'skd://fairplay-license.example.com/license',
  },
};

const MISSING = {
  errors: [{ code: 'api_key_missing', description: "Send the client's API key in the header API-KEY." }],
};

const REFUSED = {
  errors: [
    { code: 'api_key_refused', description: "The header API-KEY does not hold this client's API key." },
  ],
};

test.each<[string, Record<string, string>]>([
  ['API-KEY', { 'API-KEY': KEY }],
  ['API_KEY', { API_KEY: KEY }],
  ['both headers', { 'API-KEY': KEY, API_KEY: KEY }],
])('answers the record to the API key in %s', async (_case, headers) => {
  const response = await (await startEmulator()).unauthenticated.get(PATH).set(headers);
  expect(response.status).toBe(200);
  expect(response.headers['content-type']).toBe('application/json; charset=utf-8');
  expect(response.headers['cache-control']).toBe('no-store');
  expect(response.body).toEqual(RECORD);
});

test.each<[string, Record<string, string>, object]>([
  ['no key', {}, MISSING],
  ['the key in x-api-key', { 'x-api-key': KEY }, MISSING],
  ['an empty key', { 'API-KEY': '' }, REFUSED],
  ['another key', { 'API-KEY': 'demo-client-api-kez' }, REFUSED],
  ['a longer key', { 'API-KEY': `${KEY}x` }, REFUSED],
  ['a right and a wrong key', { 'API-KEY': KEY, API_KEY: 'other' }, REFUSED],
])('answers 401 to %s', async (_case, headers, body) => {
  const response = await (await startEmulator()).unauthenticated.get(PATH).set(headers);
  expect(response.status).toBe(401);
  expect(response.body).toEqual(body);
});

test('answers 404 to the name of a client that does not exist', async () => {
  const response = await (await startEmulator()).unauthenticated
    .get('/config/v1/clients/nobody')
    .set('API-KEY', KEY);
  expect(response.status).toBe(404);
  expect(response.body).toEqual({
    errors: [
      {
        code: 'client_unknown',
        description:
          'There is no client of this name. The emulator knows the one that EMULATOR_CLIENT names.',
      },
    ],
  });
});

test('answers the record of the client that the environment names', async () => {
  const { unauthenticated } = await startEmulator({
    EMULATOR_CLIENT: 'acme',
    EMULATOR_CLIENT_API_KEY: 'acme-key',
    EMULATOR_CLIENT_SHARED_SECRET: 'acme-shared-secret',
  });
  const response = await unauthenticated.get('/config/v1/clients/acme').set('API-KEY', 'acme-key');
  expect(response.body).toEqual({ ...RECORD, client: 'acme', shared_secret: 'acme-shared-secret' });
});

test('answers 405 to another method and names the one there is', async () => {
  const response = await (await startEmulator()).unauthenticated.put(PATH).set('API-KEY', KEY);
  expect(response.status).toBe(405);
  expect(response.headers.allow).toBe('GET');
  expect(response.body).toEqual({
    errors: [{ code: 'method_not_allowed', description: 'This path accepts GET, not PUT.' }],
  });
});
