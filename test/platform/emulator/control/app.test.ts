import { startEmulator } from '../../../support/start-emulator';

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

const problem = (code: string, description: string) => ({ errors: [{ code, description }] });

test('connects and disconnects a simulated encoder by its stream key', async () => {
  const { control, createChannel } = await startEmulator();
  const { id, stream_key } = await createChannel();
  const session = { channel_id: id, event_id: 'id000002' };
  const connected = await control.post('/encoder/connect').send({ stream_key });
  expect([connected.status, connected.body]).toEqual([200, session]);
  const gone = await control.post('/encoder/disconnect').send({ stream_key });
  expect([gone.status, gone.body]).toEqual([200, session]);
});

test('refuses a second encoder with the same key, and leaves the first its event', async () => {
  const { connect, control, context, createChannel } = await startEmulator();
  const channel = await createChannel();
  const event = await connect(channel);
  const { status, body } = await control.post('/encoder/connect').send({ stream_key: channel.stream_key });
  expect([status, body]).toEqual([
    409,
    problem(
      'already_streaming',
      'Another encoder streams to this channel. Connect after it has disconnected.',
    ),
  ]);
  expect(context.broadcast.sessionOf(channel.id)?.eventId).toBe(event);
});

test.each(['/encoder/connect', '/encoder/disconnect'])(
  '%s answers 404 to an unknown stream key',
  async (path) => {
    const { control } = await startEmulator();
    const { status, body } = await control.post(path).send({ stream_key: 'nothing' });
    expect([status, body]).toEqual([404, problem('unknown_stream_key', 'No channel has this stream key.')]);
  },
);

test('answers 409 to the disconnect of an encoder that is not there', async () => {
  const { control, createChannel, connect, disconnect } = await startEmulator();
  const channel = await createChannel();
  const gone = async () => {
    const { status, body } = await control
      .post('/encoder/disconnect')
      .send({ stream_key: channel.stream_key });
    expect([status, body]).toEqual([
      409,
      problem('not_streaming', 'No encoder streams to this channel. Connect one first.'),
    ]);
  };
  await gone();
  await connect(channel);
  await disconnect(channel);
  await gone();
});

test.each([
  [{}, 'stream_key: is missing'],
  [{ stream_key: 1 }, 'stream_key: must be a string'],
  [[], 'The body must be a JSON object with stream_key.'],
  [{ stream_key: 'k', streamkey: 'k' }, 'streamkey is not a field of this request. Did you mean stream_key?'],
])('refuses the body %j', async (body, description) => {
  const { control } = await startEmulator();
  const { status, body: answer } = await control.post('/encoder/connect').send(body);
  expect([status, answer]).toEqual([400, problem('invalid_body', description)]);
});
