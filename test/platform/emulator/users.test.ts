import request from 'supertest';
import { rowsOf, textOf } from '../../support/read-page';
import { startEmulator, type TestEmulator } from '../../support/start-emulator';

const SITE = '/v2/sites/demosite/channels/';
const CREDENTIALS = '/dashboard/credentials';

async function limitedTo(emulator: TestEmulator, ...roles: string[]) {
  const sent = { name: `for ${roles}`, permission: 'Admin', roles };
  const { body } = await emulator.control.post('/credentials').send(sent).expect(201);
  return body;
}

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
  const refused = await viewer.post('/dashboard/channels').type('form').send(channel).expect(403);
  expect(textOf(refused.text)).toContain('Choose another user');
  const call = { call: '/v1/videos/list', site: 'demosite' };
  await viewer.post('/dashboard/migration').type('form').send(call).expect(200);
  await viewer
    .post('/dashboard/migration')
    .type('form')
    .send({ ...call, do: 'run' })
    .expect(403);
  await editor.post('/dashboard/channels').type('form').send(channel).expect(303);
  const key = { name: 'Key', permission: 'Viewer', site_ids: 'demosite' };
  await editor.post(CREDENTIALS).type('form').send(key).expect(403);
  expect((await editor.get(CREDENTIALS)).text).not.toContain('Add key name');
  expect(
    [emulator.context.state.channels, emulator.context.state.credentials].map((each) => each.all().length),
  ).toEqual([1, 1]);
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
