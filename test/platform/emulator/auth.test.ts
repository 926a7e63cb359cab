import { onceForAll } from '../../support/after-test';
import { startEmulator, type TestEmulator } from '../../support/start-emulator';

const CHANNELS = '/v2/sites/demosite/channels/';
const SECRET = 'demo-api-secret-0123456789';
const problem = (code: string, description: string) => ({ errors: [{ code, description }] });

const MISSING = problem(
  'credential_missing',
  'Send the V2 API secret in the header Authorization: Bearer <secret>.',
);
const REFUSED = problem(
  'credential_refused',
  'The header Authorization does not hold the secret of an API credential.',
);
const FORBIDDEN_SITE = problem('site_forbidden', 'This credential does not reach a site with this id.');

/** Makes a credential through the control port and answers it with its secret. */
async function credential({ control }: TestEmulator, wanted: object) {
  const { body } = await control
    .post('/credentials')
    .send({ name: 'made', ...wanted })
    .expect(201);
  return body;
}

/** One call of every management operation of channels and events, with what it needs at least. */
const OPERATIONS: readonly (readonly ['get' | 'post' | 'put' | 'patch' | 'delete', string, string])[] = [
  ['get', CHANNELS, 'Viewer'],
  ['get', `${CHANNELS}nothing0/`, 'Viewer'],
  ['get', `${CHANNELS}nothing0/events/`, 'Viewer'],
  ['get', `${CHANNELS}nothing0/events/nothing0/`, 'Viewer'],
  ['get', `${CHANNELS}nothing0/events/nothing0/master/`, 'Viewer'],
  ['post', CHANNELS, 'Editor'],
  ['patch', `${CHANNELS}nothing0/`, 'Editor'],
  ['delete', `${CHANNELS}nothing0/`, 'Editor'],
  ['put', `${CHANNELS}nothing0/enable/`, 'Editor'],
  ['put', `${CHANNELS}nothing0/disable/`, 'Editor'],
  ['put', `${CHANNELS}nothing0/events/nothing0/publish/`, 'Editor'],
  ['put', `${CHANNELS}nothing0/events/nothing0/request_master/`, 'Editor'],
  ['put', `${CHANNELS}nothing0/events/nothing0/clip/`, 'Editor'],
];

const twoSites = onceForAll(() => startEmulator({ EMULATOR_SITE_ID: 'demosite,site0002' }));

test.each(OPERATIONS)(
  '%s %s needs a credential of the site, with the permission %s',
  async (method, path, needed) => {
    const emulator = await twoSites();
    const foreign = await credential(emulator, { permission: 'Admin', site_ids: ['site0002'] });
    for (const [agent, status, challenge, refusal] of [
      [emulator.unauthenticated, 401, 'Bearer', MISSING],
      [emulator.as(`${SECRET}x`), 401, 'Bearer', REFUSED],
      [emulator.as(foreign.secret), 403, undefined, FORBIDDEN_SITE],
    ] as const) {
      const answer = await agent[method](path);
      expect([answer.status, answer.headers['www-authenticate'], answer.body]).toEqual([
        status,
        challenge,
        refusal,
      ]);
    }
    for (const permission of ['Viewer', 'Editor', 'Admin']) {
      const { secret } = await credential(emulator, { permission });
      const { status, body } = await emulator.as(secret)[method](path);
      if (needed === 'Editor' && permission === 'Viewer')
        expect([status, body.errors[0].code]).toEqual([403, 'permission_insufficient']);
      else expect([permission, [200, 400, 404].includes(status)]).toEqual([permission, true]);
    }
  },
);

test.each([
  ['Bearer and the secret', `Bearer ${SECRET}`, 200],
  ['bearer in small letters', `bearer   ${SECRET}`, 200],
  ['the bare secret', SECRET, 200],
  ['Bearer alone', 'Bearer', 401],
  ['Bearer and a space', 'Bearer ', 401],
  ['an empty header', '', 401],
  ['another scheme', `Basic ${SECRET}`, 401],
  ['a part of the secret', SECRET.slice(0, -1), 401],
  ['the secret in capitals', SECRET.toUpperCase(), 401],
])('takes %s for what it is', async (_name, authorization, status) => {
  const { unauthenticated } = await startEmulator();
  await unauthenticated.get(CHANNELS).set('authorization', authorization).expect(status);
});

test('answers the same to a site that exists elsewhere and one that exists nowhere', async () => {
  const emulator = await startEmulator({ EMULATOR_SITE_ID: 'demosite,site0002' });
  const { secret } = await credential(emulator, { permission: 'Editor', site_ids: ['demosite'] });
  const answers = [];
  for (const site of ['site0002', 'nowhere0']) {
    const { status, body } = await emulator.as(secret).get(`/v2/sites/${site}/channels/`);
    answers.push([status, body]);
  }
  expect(answers).toEqual([
    [403, FORBIDDEN_SITE],
    [403, FORBIDDEN_SITE],
  ]);
});

test('shows credentials without their secrets, and with them when they are to be revealed', async () => {
  const { control } = await startEmulator();
  const seeded = {
    id: 'seeded00',
    name: 'seeded',
    permission: 'Admin',
    site_ids: ['demosite'],
    created: '2030-01-01T00:00:00.000000+00:00',
    secret: '***',
  };
  expect((await control.get('/credentials')).body).toEqual({ credentials: [seeded] });
  expect((await control.get('/credentials?reveal=true')).body).toEqual({
    credentials: [{ ...seeded, secret: SECRET }],
  });
});

test('makes a credential that works at once, for the sites of its maker when it names none', async () => {
  const emulator = await startEmulator({ EMULATOR_SITE_ID: 'demosite,site0002' });
  const made = await credential(emulator, { permission: 'Viewer' });
  expect(made).toEqual({
    id: 'id000001',
    name: 'made',
    permission: 'Viewer',
    site_ids: ['demosite', 'site0002'],
    created: '2030-01-01T00:00:00.000000+00:00',
    secret: 'secret-000000000000000000000000000000001',
  });
  await emulator.as(made.secret).get(CHANNELS).expect(200);
});

test('deletes a credential, whose secret is refused from then on', async () => {
  const emulator = await startEmulator();
  const { id, secret } = await credential(emulator, { permission: 'Editor' });
  await emulator.control.delete(`/credentials/${id}`).expect(204);
  expect((await emulator.as(secret).get(CHANNELS)).body).toEqual(REFUSED);
  await emulator.control.delete(`/credentials/${id}`).expect(404);
});

test('replaces a credential: the old secret is refused, the new one has the same rights', async () => {
  const emulator = await startEmulator();
  const old = await credential(emulator, { permission: 'Viewer' });
  const { status, body: fresh } = await emulator.control.post(`/credentials/${old.id}/replace`);
  expect([status, fresh]).toEqual([
    201,
    { ...old, id: 'id000002', secret: 'secret-000000000000000000000000000000002' },
  ]);
  await emulator.as(old.secret).get(CHANNELS).expect(401);
  await emulator.as(fresh.secret).get(CHANNELS).expect(200);
});

test('keeps the last Admin credential, which can only be replaced', async () => {
  const { control, as } = await startEmulator();
  const refused = await control.delete('/credentials/seeded00');
  expect([refused.status, refused.body.errors[0].code]).toEqual([409, 'last_admin']);
  const { body: fresh } = await control.post('/credentials/seeded00/replace').expect(201);
  await as(SECRET).get(CHANNELS).expect(401);
  await as(fresh.secret).get(CHANNELS).expect(200);
});

const CHANGES = [
  ['post', '/credentials'],
  ['delete', '/credentials/seeded00'],
  ['post', '/credentials/seeded00/replace'],
] as const;

test.each(CHANGES)('%s %s needs an Admin that reaches the sites', async (method, path) => {
  const emulator = await startEmulator({ EMULATOR_SITE_ID: 'demosite,site0002' });
  const editor = await credential(emulator, { permission: 'Editor' });
  const elsewhere = await credential(emulator, { permission: 'Admin', site_ids: ['site0002'] });
  const before = (await emulator.control.get('/credentials?reveal=true')).body;
  const body = { name: 'new', permission: 'Viewer', site_ids: ['demosite'] };
  const answers = [];
  for (const authorization of ['', 'wrong', editor.secret, elsewhere.secret]) {
    const call = emulator.control[method](path).set('authorization', authorization);
    const { status, body: answer } = await call.send(body);
    answers.push([status, answer.errors[0].code]);
  }
  expect(answers).toEqual([
    [401, 'credential_missing'],
    [401, 'credential_refused'],
    [403, 'permission_insufficient'],
    [403, 'site_forbidden'],
  ]);
  expect((await emulator.control.get('/credentials?reveal=true')).body).toEqual(before);
});

test('tells everything that is wrong with a new credential, and makes none', async () => {
  const { control, context } = await startEmulator();
  const wrong = { name: ' ', permission: 'God', site_ids: ['demosite', 'x'], secret: 'mine' };
  const { status, body } = await control.post('/credentials').send(wrong);
  const told = [
    'name: is empty',
    'permission: must be one of Viewer, Editor, Admin',
    'site_ids.1: must be a site id',
    'secret is not a field of this request. Fields of the body: name, permission, site_ids, roles.',
  ];
  const errors = told.map((description) => ({ code: 'invalid_body', description }));
  expect([status, body]).toEqual([400, { errors }]);
  expect(context.state.credentials.all()).toHaveLength(1);
});

test('writes no secret, stream key or credential to the log', async () => {
  const emulator = await startEmulator();
  const { secret } = await credential(emulator, { permission: 'Editor' });
  const channel = await emulator.createChannel();
  await emulator.connect(channel);
  await emulator.as(secret).get(CHANNELS);
  await emulator.control.get('/state?reveal=true');
  const log = await emulator.logOf(5);
  expect([SECRET, secret, channel.stream_key].filter((each) => log.includes(each))).toEqual([]);
});
