import request from 'supertest';
import { onceForAll } from '../../support/after-test';
import { errorBody } from '../../support/error-body';
import { rowsOf, textOf } from '../../support/read-page';
import { startEmulator, type TestEmulator } from '../../support/start-emulator';

const CHANNELS = '/v2/sites/demosite/channels/';
const SECRET = 'demo-api-secret-0123456789';

const MISSING = errorBody(
  'credential_missing',
  'Send the V2 API secret in the header Authorization: Bearer <secret>.',
);
const REFUSED = errorBody(
  'credential_refused',
  'The header Authorization does not hold the secret of an API credential.',
);
const FORBIDDEN_SITE = errorBody('site_forbidden', 'This credential does not reach a site with this id.');

/** Makes a credential through the control port and answers it with its secret. */
async function credential({ control }: TestEmulator, wanted: object) {
  const sent = { name: 'made', ...wanted };
  return (await control.post('/credentials').send(sent).expect(201)).body;
}

/** Calls of each kind, with what they need at least. */
const OPERATIONS: readonly (readonly ['get' | 'post' | 'patch' | 'put', string, string])[] = [
  ['get', CHANNELS, 'Viewer'],
  ['get', `${CHANNELS}nothing0/events/nothing0/master/`, 'Viewer'],
  ['post', CHANNELS, 'Editor'],
  ['patch', `${CHANNELS}nothing0/`, 'Editor'],
  ['put', `${CHANNELS}nothing0/enable/`, 'Editor'],
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
      const answered = [answer.status, answer.headers['www-authenticate'], answer.body];
      expect(answered).toEqual([status, challenge, refusal]);
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
  ['an empty header', '', 401],
  ['another scheme', `Basic ${SECRET}`, 401],
  ['a part of the secret', SECRET.slice(0, -1), 401],
])('takes %s for what it is', async (_name, authorization, status) => {
  const { unauthenticated } = await twoSites();
  await unauthenticated.get(CHANNELS).set('authorization', authorization).expect(status);
});

test('shows credentials without their secrets, and with them when they are to be revealed', async () => {
  const { control } = await startEmulator();
  const seeded = {
    id: 'seeded00',
    name: 'seeded',
    permission: 'Admin',
    site_ids: ['demosite'],
    created: '2030-01-01T00:00:00.000000+00:00',
  };
  const shown = async (path: string) => (await control.get(path)).body.credentials;
  expect(await shown('/credentials')).toEqual([{ ...seeded, secret: '***' }]);
  expect(await shown('/credentials?reveal=true')).toEqual([{ ...seeded, secret: SECRET }]);
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
  const { body: fresh } = await emulator.control.post(`/credentials/${old.id}/replace`).expect(201);
  expect(fresh).toEqual({ ...old, id: 'id000002', secret: 'secret-000000000000000000000000000000002' });
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

const SITE = '/v2/sites/demosite/channels/';
const CREDENTIALS = '/dashboard/credentials';

const limitedTo = (emulator: TestEmulator, ...roles: string[]) =>
  credential(emulator, { name: `for ${roles}`, permission: 'Admin', roles });

/** A browser in which a user was chosen. */
async function browserOf({ url }: TestEmulator, user: string) {
  const browser = request.agent(url);
  const chosen = { user, back: CREDENTIALS };
  const { headers } = await browser.post('/dashboard/user').type('form').send(chosen).expect(303);
  expect(headers.location).toBe(CREDENTIALS);
  return browser;
}

const namesOn = (text: string) => rowsOf(text).map(([name = '']) => name.replace(/ \w+$/, ''));

test('a credential that is limited to a role is refused to other users as an unknown secret is', async () => {
  const emulator = await startEmulator();
  const { secret } = await limitedTo(emulator, 'editor');
  const unknown = await emulator.as('nothing').get(SITE).expect(401);
  const { body } = await emulator.as(secret).get(SITE).set('x-emulator-user', 'viewer').expect(401);
  expect(body).toEqual(unknown.body);
  await emulator.as(secret).post(SITE).set('x-emulator-user', 'viewer').send({ metadata: {} }).expect(401);
  await emulator.as(secret).get(SITE).set('x-emulator-user', 'editor').expect(200);
  await emulator.as(secret).get(SITE).set('x-emulator-user', 'admin').expect(200);
  await emulator.as(secret).get(SITE).expect(200);
  await emulator.admin.get(SITE).set('x-emulator-user', 'viewer').expect(200);
});

test('a user that is not there is refused, and so is a role', async () => {
  const emulator = await startEmulator();
  const { body } = await emulator.admin.get(SITE).set('x-emulator-user', 'owner').expect(400);
  expect(body.errors[0].code).toBe('user_unknown');
  const wanted = { name: 'x', permission: 'Viewer', roles: ['owner'] };
  await emulator.control.post('/credentials').send(wanted).expect(400);
  expect(emulator.context.state.credentials.all()).toHaveLength(1);
});

test('the control port shows and changes the credentials that its user sees, and all without a user', async () => {
  const emulator = await startEmulator();
  const { id, roles } = await limitedTo(emulator, 'editor', 'editor');
  expect(roles).toEqual(['editor']);
  const seenBy = async (path: string, user?: string) => {
    const call = emulator.control.get(path);
    const { body } = await (user === undefined ? call : call.set('x-emulator-user', user));
    return body.credentials.map((each: { roles: string[] }) => each.roles);
  };
  for (const path of ['/credentials', '/state']) {
    expect(await seenBy(path, 'viewer')).toEqual([undefined]);
    expect(await seenBy(path, 'editor')).toEqual([undefined, ['editor']]);
    expect(await seenBy(path)).toEqual([undefined, ['editor']]);
  }
  const missing = await emulator.control.delete('/credentials/nothing0').expect(404);
  const hidden = emulator.control.delete(`/credentials/${id}`).set('x-emulator-user', 'viewer');
  expect((await hidden.expect(404)).body).toEqual(missing.body);
  const replaced = await emulator.control.post(`/credentials/${id}/replace`).expect(201);
  expect(replaced.body.roles).toEqual(['editor']);
});

test('the page shows a user the credentials of its role, and others once another user is chosen', async () => {
  const emulator = await startEmulator();
  const { secret } = await limitedTo(emulator, 'editor');
  await limitedTo(emulator, 'admin');
  const browser = await browserOf(emulator, 'admin');
  const shown = async () => (await browser.get(CREDENTIALS).expect(200)).text;
  expect(namesOn(await shown()).slice(0, 3)).toEqual(['for admin', 'for editor', 'seeded']);
  await browser.post('/dashboard/user').type('form').send({ user: 'editor' }).expect(303);
  expect(namesOn(await shown()).slice(0, 2)).toEqual(['for editor', 'seeded']);
  await browser.post('/dashboard/user').type('form').send({ user: 'viewer' }).expect(303);
  const text = await shown();
  expect(namesOn(text)[0]).toBe('seeded');
  expect(text).not.toContain(secret);
  expect(text).toContain('<option value="viewer" selected>');
  expect(textOf((await browser.get('/dashboard')).text)).toContain('1 credential');
});

test('a credential is made for the users that are ticked', async () => {
  const emulator = await startEmulator();
  const browser = await browserOf(emulator, 'admin');
  const sent = { name: 'Key', permission: 'Viewer', site_ids: 'demosite', roles: 'editor' };
  await browser.post(CREDENTIALS).type('form').send(sent).expect(303);
  expect(emulator.context.state.credentials.all().at(-1)?.roles).toEqual(['editor']);
});

test('the address of a hidden credential answers as the one of a missing credential', async () => {
  const emulator = await startEmulator();
  const { id } = await limitedTo(emulator, 'admin');
  const bare = ({ text }: { text: string }) => textOf(text).replace(/request [\w-]+/, '');
  for (const act of ['delete', 'replace']) {
    const editor = await browserOf(emulator, 'editor');
    const missing = await editor.post(`${CREDENTIALS}/nothing0/${act}`).expect(404);
    const hidden = await editor.post(`${CREDENTIALS}/${id}/${act}`).expect(404);
    expect(bare(hidden)).toBe(bare(missing));
    await editor.post(`${CREDENTIALS}/seeded00/${act}`).expect(403);
    await (await browserOf(emulator, 'viewer')).post(`${CREDENTIALS}/${id}/${act}`).expect(403);
  }
  expect(emulator.context.state.credentials.all()).toHaveLength(2);
});

test('a viewer changes nothing, an editor everything but credentials', async () => {
  const emulator = await startEmulator();
  const viewer = await browserOf(emulator, 'viewer');
  const editor = await browserOf(emulator, 'editor');
  const channel = { title: 'News', site: 'demosite' };
  await viewer.post('/dashboard/channels').type('form').send(channel).expect(403);
  const from = `${emulator.url}/dashboard/tags?q=news`;
  const refused = await viewer.post('/dashboard/tags/remove_tag').set('referer', from).expect(403);
  expect(textOf(refused.text)).toContain('Choose another user');
  // The address of the refusal has no page to come back to.
  expect(refused.text).toContain('name="back" value="/dashboard/tags"');
  const isWarned = async (browser: typeof viewer, path: string) =>
    (await browser.get(path).expect(200)).text.includes('changes nothing');
  const pages: [typeof viewer, string][] = [
    [viewer, '/dashboard/channels'],
    [viewer, '/dashboard/migration'],
    [editor, '/dashboard/channels'],
  ];
  expect(await Promise.all(pages.map((page) => isWarned(...page)))).toEqual([true, false, false]);
  const call = { call: '/v1/videos/list', site: 'demosite' };
  await viewer.post('/dashboard/migration').type('form').send(call).expect(200);
  const run = { ...call, do: 'run' };
  await viewer.post('/dashboard/migration').type('form').send(run).expect(403);
  await editor.post('/dashboard/channels').type('form').send(channel).expect(303);
  const key = { name: 'Key', permission: 'Viewer', site_ids: 'demosite' };
  await editor.post(CREDENTIALS).type('form').send(key).expect(403);
  expect((await editor.get(CREDENTIALS)).text).not.toContain('Add key name');
  const { channels, credentials } = emulator.context.state;
  expect([channels.all().length, credentials.all().length]).toEqual([1, 1]);
});

test('a choice of no user is refused, and leads to no other site', async () => {
  const { unauthenticated } = await startEmulator();
  const send = (form: object) => unauthenticated.post('/dashboard/user').type('form').send(form);
  await send({ user: 'owner' }).expect(400);
  for (const back of ['//elsewhere.example/dashboard', '/dashboardx', 'https://elsewhere.example/', ''])
    expect((await send({ user: 'viewer', back }).expect(303)).headers.location).toBe('/dashboard');
  const { text } = await unauthenticated.get('/dashboard').set('cookie', 'emulator-user=owner').expect(200);
  expect(text).toContain('<option value="admin" selected>');
});
