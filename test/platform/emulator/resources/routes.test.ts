import { RESOURCES } from '../../../../src/platform/emulator/resources/library';
import { onceForAll } from '../../../support/after-test';
import { errorBody, invalidBody } from '../../../support/error-body';
import { CREATABLE, idName, pathWith } from '../../../support/resource-bodies';
import { startLibrary, type TestLibrary } from '../../../support/start-library';

const shared = onceForAll(() => startLibrary({ EMULATOR_SITE_ID: 'demosite,othersit' }));

describe.each(CREATABLE)('$type', ({ resource, body, type }) => {
  /** An emulator of two sites with one of the resource, and the ids of its path. */
  async function start() {
    const library = await shared();
    const mediaId = resource.collection.includes(':mediaId') ? (await library.create()).id : 'nothing0';
    const parent = { siteId: library.siteId, mediaId };
    const { body: made } = await library.admin.post(pathWith(resource.collection, parent)).send(body);
    return { ...library, ids: { ...parent, [idName(resource)]: made.id as string } };
  }

  test('answers each verb at its path, and no other', async () => {
    const { admin, ids } = await start();
    const [all, one] = [pathWith(resource.collection, ids), pathWith(resource.one, ids)];
    const statuses = [
      (await admin.get(all)).status,
      (await admin.get(one)).status,
      (await admin.patch(one).send({ metadata: {} })).status,
      (await admin.delete(one).type('json')).status,
      (await admin.get(one)).status,
    ];
    const has = (verb: (typeof resource.verbs)[number], status: number) =>
      resource.verbs.includes(verb) ? status : 405;
    expect(statuses).toEqual([has('list', 200), 200, has('update', 200), 204, 404]);
    const { body: refusal } = await admin.put(all).expect(405);
    expect(refusal).toEqual(errorBody('method_not_allowed', expect.stringContaining('not PUT')));
    await admin.post(one).send(body).expect(405);
  });

  test('is found at its own site alone', async () => {
    if (type === 'webhook') return;
    const { admin, ids: own } = await start();
    const ids = { ...own, siteId: 'othersit' };
    await admin.get(pathWith(resource.one, ids)).expect(404);
    await admin.delete(pathWith(resource.one, ids)).expect(404);
    if (resource.verbs.includes('update'))
      await admin.patch(pathWith(resource.one, ids)).send({ metadata: {} }).expect(404);
    await admin.get(pathWith(resource.one, own)).expect(200);
    await admin.get(pathWith(resource.one, { ...ids, siteId: 'nosuch00' })).expect(403);
  });

  test('is read by who may view, and changed by who may edit', async () => {
    const { as, control, unauthenticated, ids } = await start();
    const credential = { name: 'viewer', permission: 'Viewer' };
    const { body: viewer } = await control.post('/credentials').send(credential).expect(201);
    const one = pathWith(resource.one, ids);
    const caller = as(viewer.secret);
    const statuses = [
      (await caller.get(one)).status,
      (await caller.delete(one)).status,
      (await caller.post(pathWith(resource.collection, ids)).send(body)).status,
      (await unauthenticated.get(one)).status,
    ];
    expect(statuses).toEqual([200, 403, 403, 401]);
  });

  if (type.endsWith('_playlist')) return;

  test('an update shows in the next read, and moves last_modified', async () => {
    if (!resource.verbs.includes('update')) return;
    const { admin, advance, ids } = await start();
    const one = pathWith(resource.one, ids);
    await advance(60);
    const { body: made } = await admin.get(one);
    const nothing = { metadata: {}, upload: {}, relationships: {} };
    const { body: changed } = await admin.patch(one).send(nothing).expect(200);
    expect(changed).toEqual({ ...made, last_modified: changed.last_modified });
    expect(Date.parse(changed.last_modified) - Date.parse(changed.created)).toBeGreaterThanOrEqual(60_000);
    expect((await admin.get(one)).body).toEqual(changed);
  });
});

test.each(['text/plain; charset=ISO-8859-1', 'application/x-www-form-urlencoded', 'multipart/form-data'])(
  'reads a body as JSON when it is declared as %s',
  async (declared) => {
    const { admin, site } = await shared();
    await admin.post(`${site}/media/`).set('content-type', declared).send('{"metadata":{}}').expect(201);
  },
);

test('refuses JSON that is not UTF-8', async () => {
  const { admin, site } = await shared();
  const body = Buffer.from('{"metadata":{"title":"caf\u00e9"}}', 'latin1');
  // As JSON, supertest would send its own text of the bytes.
  const sent = admin.post(`${site}/media/`).type('application/octet-stream').send(body);
  await sent.expect(400, errorBody('malformed_json', 'The body is not UTF-8. Send the JSON as UTF-8.'));
});

const ODD_IDS = ['%2F', '..%2F..%2Fetc%2Fpasswd', '%00', '__proto__', 'constructor', 'a'.repeat(3000)];

test.each(ODD_IDS)('an id such as %s is of nothing', async (id) => {
  const { admin, siteId, create } = await shared();
  const ids = { siteId, mediaId: (await create()).id };
  for (const resource of RESOURCES) {
    const own = idName(resource);
    if (own === 'channelId' || own === 'webhookId') continue;
    const path = pathWith(resource.one, { ...ids, [own]: id });
    const { status, body } = await admin.get(path);
    expect([own, status, body.errors?.[0]?.code]).toEqual([own, 404, 'not_found']);
  }
});

const NESTED = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;

async function playerWith({ admin, site }: TestLibrary, config: string) {
  return admin.post(`${site}/players/`).type('json').send(`{"metadata":{"setup_config":${config}}}`);
}

test('a free object is kept as it is, with names that mean something to JavaScript', async () => {
  const library = await shared();
  const config =
    '{"a":{"__proto__":{"polluted":true}},"constructor":{"prototype":{"polluted":true}},"n":[0.5,null],"":true}';
  const { status, text } = await playerWith(library, config);
  expect(status).toBe(201);
  expect(text).toContain(`"setup_config":${config}`);
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
});

test.each(['{"__proto__":"x"}', '{"a":"b","__proto__":{"x":"y"}}'])(
  'a name that would be lost, as in %s, is refused in custom parameters and settings',
  async (text) => {
    const { admin, site } = await shared();
    for (const name of ['custom_params', 'setup_config']) {
      const sent = `{"metadata":{"${name}":${text}}}`;
      const { body } = await admin.post(`${site}/players/`).type('json').send(sent).expect(400);
      expect(body.errors[0].description).toBe(`metadata.${name}: must not have the name __proto__`);
    }
  },
);

test('a free object of 20 levels or with very many entries is kept, a deeper one is refused', async () => {
  const library = await shared();
  for (const kept of [NESTED(20), `{"list":[${'1,'.repeat(120_000)}1]}`])
    expect((await playerWith(library, kept)).status).toBe(201);
  const refused = invalidBody('metadata.setup_config: is nested more than 20 levels deep');
  for (const depth of [21, 30_000]) {
    const { status, body } = await playerWith(library, NESTED(depth));
    expect([status, body]).toEqual([400, refused]);
  }
});

test('a body that is larger than 256 KB is refused', async () => {
  const { admin, site } = await shared();
  const metadata = { description: 'x'.repeat(300_000) };
  const { body } = await admin.post(`${site}/media/`).send({ metadata }).expect(413);
  expect(body.errors[0].code).toBe('body_too_large');
});
