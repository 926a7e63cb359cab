import { startEmulator } from '../../support/start-emulator';

const REFUSED = {
  errors: [
    {
      code: 'page_refused',
      description: 'The control port is for programs on this machine, called by address or private name.',
    },
  ],
};

test.each(['https://evil.example', 'http://127.0.0.1:8080', 'null'])(
  'refuses a page from %s',
  async (origin) => {
    const { control, createChannel } = await startEmulator();
    await createChannel();
    const reset = await control.post('/reset').set('origin', origin);
    expect([reset.status, reset.body]).toEqual([403, REFUSED]);
    expect((await control.get('/state')).body.channels).toHaveLength(1);
  },
);

test.each(['cross-site', 'same-site', 'same-origin'])(
  'refuses a request without an origin that a %s page sent',
  async (sender) => {
    const { control } = await startEmulator();
    const state = await control.get('/state').set('sec-fetch-site', sender);
    expect([state.status, state.body]).toEqual([403, REFUSED]);
  },
);

test('answers a person who calls it in a browser', async () => {
  const { control } = await startEmulator();
  await control.get('/state').set('sec-fetch-site', 'none').expect(200);
});

test.each([
  ['evil.example', 403],
  ['evil.example:8081', 403],
  ['127.0.0.1.evil.example', 403],
  ['evil.example.', 403],
  ['bad host', 403],
  ['localhost', 200],
  ['LOCALHOST:8081', 200],
  ['127.0.0.1', 200],
  ['192.168.1.5:8081', 200],
  ['[::1]:8081', 200],
  ['emulator:8081', 200],
  ['host.docker.internal:8081', 200],
])('answers a call by the name %s with %d', async (host, status) => {
  const { control } = await startEmulator();
  await control.get('/state?reveal=true').set('host', host).expect(status);
});
