import { complaintsOf, rowsOf, textOf } from '../../../support/read-page';
import { startEmulator, type TestEmulator } from '../../../support/start-emulator';

const SECRET = 'demo-api-secret-0123456789';

async function addCredential(emulator: TestEmulator, form: object) {
  await emulator.unauthenticated.post('/dashboard/credentials').type('form').send(form).expect(303);
  const made = emulator.context.state.credentials.list().at(-1);
  if (!made) throw new Error('There is no credential.');
  return made;
}

test('lists the credentials with what they may do, and their secrets for who asks', async () => {
  const { unauthenticated } = await startEmulator();
  const { text } = await unauthenticated.get('/dashboard/credentials').expect(200);
  expect(rowsOf(text)[0]?.slice(0, 4)).toEqual([
    'seeded seeded00',
    'Admin',
    'demosite',
    '2030-01-01 00:00:00 UTC',
  ]);
  expect(text).toMatch(new RegExp(`<details class="secret"[^>]*>(?:(?!</details>).)*${SECRET}`, 's'));
  expect(textOf(text)).toContain('Show Credentials');
});

test('shows the key and the secret of each site for v1', async () => {
  const { unauthenticated } = await startEmulator({
    EMULATOR_SITE_ID: 'demosite,othrsite',
    EMULATOR_V1_SECRET: 'a-secret-of-version-1',
  });
  const { text } = await unauthenticated.get('/dashboard/credentials').expect(200);
  const [, v1 = ''] = text.split('V1 API credentials');
  expect(rowsOf(v1).map(([site, key]) => [site, key])).toEqual([
    ['demosite', 'demosite Copy key of demosite'],
    ['othrsite', 'othrsite Copy key of othrsite'],
  ]);
  expect(v1).toMatch(/<details class="secret"[^>]*>(?:(?!<\/details>).)*a-secret-of-version-1/s);
});

test('adds a key name whose secret works with its permission', async () => {
  const emulator = await startEmulator();
  const made = await addCredential(emulator, { name: 'Reader', permission: 'Viewer', site_ids: 'demosite' });
  expect([made.name, made.permission, made.siteIds]).toEqual(['Reader', 'Viewer', ['demosite']]);
  await emulator.as(made.secret).get('/v2/sites/demosite/channels').expect(200);
  await emulator.as(made.secret).post('/v2/sites/demosite/channels').send({ metadata: {} }).expect(403);
});

test('shows the form again with everything that was wrong with it', async () => {
  const { unauthenticated, context } = await startEmulator();
  const sent = { name: ' ', permission: 'Owner' };
  const { text } = await unauthenticated.post('/dashboard/credentials').type('form').send(sent).expect(400);
  expect(complaintsOf(text)).toEqual([
    'Name is empty.',
    'Permission must be one of Viewer, Editor, Admin.',
    'Sites names no site.',
  ]);
  expect(context.state.credentials.list()).toHaveLength(1);
});

test('refuses a key name for a site that no Admin credential reaches', async () => {
  const { unauthenticated, context } = await startEmulator();
  const sent = { name: 'Reader', permission: 'Viewer', site_ids: 'elsewher' };
  const { text } = await unauthenticated.post('/dashboard/credentials').type('form').send(sent).expect(403);
  expect(textOf(text)).toContain('No Admin credential reaches all of these sites');
  expect(context.state.credentials.list()).toHaveLength(1);
});

test('replaces a secret: the new one works and the old one is refused', async () => {
  const emulator = await startEmulator();
  await emulator.unauthenticated.post('/dashboard/credentials/seeded00/replace').expect(303);
  const [replaced] = emulator.context.state.credentials.list();
  expect([replaced?.name, replaced?.permission]).toEqual(['seeded', 'Admin']);
  await emulator.admin.get('/v2/sites/demosite/channels').expect(401);
  await emulator
    .as(replaced?.secret ?? '')
    .get('/v2/sites/demosite/channels')
    .expect(200);
});

test('deletes a credential, but not the last Admin', async () => {
  const emulator = await startEmulator();
  const made = await addCredential(emulator, { name: 'Reader', permission: 'Viewer', site_ids: 'demosite' });
  await emulator.unauthenticated.post(`/dashboard/credentials/${made.id}/delete`).expect(303);
  await emulator.as(made.secret).get('/v2/sites/demosite/channels').expect(401);
  const refused = await emulator.unauthenticated.post('/dashboard/credentials/seeded00/delete').expect(409);
  expect(textOf(refused.text)).toContain('This is the last Admin credential');
  await emulator.admin.get('/v2/sites/demosite/channels').expect(200);
});
