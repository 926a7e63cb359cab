import request from 'supertest';
import { VARIABLES } from '../../../../src/platform/emulator/config';
import { servedDocument } from '../../../../src/platform/emulator/openapi/document';
import { templateOf } from '../../../../src/platform/emulator/openapi/operation';
import { RESOURCES } from '../../../../src/platform/emulator/resources/library';
import { EVENT_NAMES } from '../../../../src/platform/emulator/webhooks/notification';
import { onceForAll } from '../../../support/after-test';
import { itDescribesAnApi } from '../../../support/describes-api';
import { pathWith } from '../../../support/resource-bodies';
import { signedPath } from '../../../support/sign-v1';
import {
  contentOf,
  DOCUMENT,
  OPERATIONS,
  objections,
  startDescribedEmulator,
} from '../../../support/start-described-emulator';
import { startEmulator } from '../../../support/start-emulator';
import { startWebhookReceiver } from '../../../support/webhook-receiver';

const shared = onceForAll(() => startEmulator());

const SERVED = servedDocument({ siteId: 'demosite', client: 'demo' });

itDescribesAnApi(DOCUMENT, SERVED);

it('is answered to anybody, with the site and the client of this emulator, and without its secrets', async () => {
  const env = { EMULATOR_SITE_ID: 'mysite01', EMULATOR_CLIENT: 'acme' };
  const { unauthenticated, client } = await startEmulator(env);
  const { text, body } = await unauthenticated.get('/openapi.json').expect(200);
  for (const secret of ['demo-api-secret-0123456789', client.apiKey, client.sharedSecret])
    expect(text).not.toContain(secret);
  const document = resolved(body, body.components);
  expect(document.paths['/v2/sites/{site_id}/media/'].get.parameters[0].example).toBe('mysite01');
  expect(document.paths['/config/v1/clients/{client}'].get.parameters[0].example).toBe('acme');
});

/** A document with its parameters and answers where they are used. */
function resolved(document: object, components: Record<string, Record<string, unknown>>) {
  return JSON.parse(JSON.stringify(document), (_name, value) => {
    const [, kind = '', name = ''] = /^#\/components\/(parameters|responses)\/(.*)$/.exec(value?.$ref) ?? [];
    return kind === '' ? value : components[kind]?.[name];
  });
}

it('is served with what is repeated as components: the same, in half the length', () => {
  const { parameters, responses, ...components } = SERVED.components;
  expect(Object.keys(responses)).toEqual(expect.arrayContaining(['Unauthorized', 'NotFound', 'NotFound2']));
  const whole = resolved({ ...SERVED, components }, { parameters, responses });
  const written = JSON.stringify(DOCUMENT);
  expect(whole).toEqual(JSON.parse(written));
  expect(JSON.stringify(SERVED).length).toBeLessThan(written.length * 0.6);
});

it('names variables that the emulator reads', () => {
  const named = new Set(JSON.stringify(DOCUMENT).match(/EMULATOR_\w+/g));
  // The address of the first request is a variable of the reader's shell.
  expect([...named].filter((name) => !(name in VARIABLES.shape))).toEqual(['EMULATOR_URL']);
});

it.each(RESOURCES.filter(({ verbs }) => verbs.includes('list')))(
  'lists of $plural are filtered by the fields that their description names',
  async ({ collection, plural }) => {
    const { admin, createChannel } = await shared();
    const { body: media } = await admin.post('/v2/sites/demosite/media/').send({}).expect(201);
    const { id: channelId } = await createChannel();
    const path = pathWith(collection, { siteId: 'demosite', mediaId: media.id, channelId });
    const { body } = await admin.get(path).query({ q: 'surely_no_field: x' }).expect(400);
    const [, accepted = ''] = /Fields: (.*)\.$/.exec(body.errors[0].description) ?? [];
    const found = OPERATIONS.find(
      ({ operation }) => operation.operationId.toLowerCase() === `list${plural.replaceAll('_', '')}`,
    );
    const q = found?.operation.parameters.find(({ name }) => name === 'q');
    const [, documented = ''] = /Fields: (.*)\.$/.exec(q?.description ?? '') ?? [];
    expect(documented.replaceAll('`', '')).toBe(accepted);
  },
);

it('describes how public delivery refuses a parameter', async () => {
  const { admin } = await shared();
  const { body: made } = await admin
    .post('/v2/sites/demosite/playlists/manual_playlist/')
    .send({ metadata: {} });
  const { body } = await admin.get(`/v2/playlists/${made.id}?format=pdf`).expect(400);
  const found = OPERATIONS.find(({ title }) => title === 'GET /v2/playlists/{playlist_id}');
  const content = contentOf(found?.operation.responses[400], 'application/json');
  expect(objections(content?.schema ?? {}, body)).toEqual([]);
});

it('describes every notification, and webhooks get them so', async () => {
  expect(Object.keys(DOCUMENT.webhooks)).toEqual([...EVENT_NAMES]);
  const { admin, createChannel, createWebhook, connect } = await startEmulator();
  const receiver = await startWebhookReceiver();
  createWebhook(receiver.url, EVENT_NAMES);
  await connect(await createChannel());
  const { body } = await admin.post('/v2/sites/demosite/media/').send({}).expect(201);
  await admin.patch(`/v2/sites/demosite/media/${body.id}/`).send({ metadata: { title: 'New' } });
  await admin.delete(`/v2/sites/demosite/media/${body.id}/`).expect(204);
  const calls = await receiver.until(5);
  for (const { text } of calls) {
    const sent = JSON.parse(text);
    const { post } = DOCUMENT.webhooks[sent.event] ?? {};
    const { schema } = post?.requestBody.content['application/json'] ?? {};
    expect([sent.event, schema && objections(schema, sent)]).toEqual([sent.event, []]);
  }
  expect(new Set(calls.map(({ text }) => JSON.parse(text).event)).size).toBe(5);
});

/** `site` is in place of the site of the examples, `id` in place of every other id. */
type Oddity = Partial<Record<'authorization' | 'query' | 'body' | 'site' | 'id', string>>;

const ADMIN = 'Bearer demo-api-secret-0123456789';

/** Odd requests, refused or not. Bodies are declared as JSON. */
const ODDITIES: Readonly<Record<string, Oddity>> = {
  'an unknown credential': { authorization: 'Bearer nobody' },
  'a credential that only reads': { authorization: 'Bearer viewer-secret' },
  'a site out of reach': { site: 'othrsite' },
  'an id with an encoding that is none': { id: '%ff' },
  'an id with a slash': { id: 'a%2Fb' },
  'wrong parameters': { query: '?page=0&page_length=-1&q=(((&sort=x&format=pdf&width=-5&tags_mode=x' },
  'a parameter twice': { query: '?page=1&page=2&trim_in_point=1&trim_in_point=2&token=a&token=b' },
  'an empty object': { body: '{}' },
  'a list': { body: '[]' },
  'fields of other types': { body: '{"metadata":1,"upload":[7],"relationships":"x","kids":7}' },
  'an unknown field': { body: '{"metadata":{"titel":"x"},"tag":"a","tog":"b"}' },
  'JSON that is none': { body: '{"metadata":' },
  'another format': { query: '?api_format=xml&api_key=demosite' },
  'a body of 300,000 bytes': { body: JSON.stringify({ metadata: 'x'.repeat(300_000) }) },
};

const isOfV1 = (path: string) => path.startsWith('/v1/');

/** Each goes to every third operation, and to a few of v1, which refuses calls that are not signed before it reads them. */
const oddRequests = (path: string, at: number) =>
  Object.entries(ODDITIES).filter((_each, number) => (at + number) % (isOfV1(path) ? 14 : 3) === 0);

const IN_BODIES = ['post', 'put', 'patch'];

/** Of what the odd requests make, no other one is about. */
const platform = onceForAll(async () => {
  const emulator = await startEmulator();
  emulator.context.state.credentials.add({
    id: 'viewer00',
    name: 'reads',
    permission: 'Viewer',
    siteIds: ['demosite'],
    secret: 'viewer-secret',
    created: new Date(0),
  });
  return emulator;
});

it.each(OPERATIONS.map((described, at) => ({ ...described, at })))(
  '$title answers nothing that its description does not name',
  async ({ method, path, operation, at }) => {
    const { url } = await platform();
    const bare = { 'no credential': { authorization: '' } };
    const each = { 'nothing but what must be sent': {}, ...(!isOfV1(path) && bare) };
    for (const [what, oddity] of [...Object.entries<Oddity>(each), ...oddRequests(path, at)]) {
      const { authorization = ADMIN, query = '', body, site = 'demosite', id = 'absent00' } = oddity;
      if (body !== undefined && !IN_BODIES.includes(method)) continue;
      const target = path.replace('{site_id}', site).replaceAll(/\{\w+\}/g, id) + query;
      const sent = request(url)[method](target).set({ authorization });
      if (body !== undefined) void sent.type('application/json').send(body);
      const answer = await sent.buffer(true);
      const documented = operation.responses[answer.status];
      expect([what, answer.status, documented === undefined]).toEqual([what, answer.status, false]);
      const content = contentOf(documented, answer.type);
      const missing = content || answer.type === '' ? [] : 'not described';
      const isJson = content && answer.type === 'application/json';
      expect([what, isJson ? objections(content.schema, answer.body) : missing]).toEqual([what, []]);
      // Where the management API says that it asks for a credential, and nowhere else.
      if (what === 'no credential' && path.startsWith('/v2/'))
        expect(answer.status === 401).toBe(operation.security.length > 0);
    }
  },
);

/** Other words in v1's names of parameters: `video_key` is the id of a media. */
const IN_V1: Readonly<Record<string, string>> = {
  media: 'video',
  playlist: 'channel',
  rendition: 'conversion',
};

/** Calls of v1 change things by GET, too. */
const CHANGES = /^\/v1\/.*\/(?:create|update|delete|upload\/\w+)$/;

/** Needs a packager, a master or a position, or is not supported. */
const NOT_SHOWN =
  /\{file\}|\.mpd |event_id\}\.m3u8|masters?\/|usage\/show|channels\/videos\/show|tags\/|v1\/status/;

it('answers right requests in the form that it describes, one after the other', async () => {
  const { url, idsOf, client } = await startDescribedEmulator();
  const silent: string[] = [];
  for (const { title, method, path, operation } of OPERATIONS) {
    if (CHANGES.test(path)) continue;
    const ids = idsOf(path);
    const filled = path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => ids[name] ?? 'absent00');
    const isUpload = operation.security.some((one) => 'uploadToken' in one);
    const keys = Object.entries(ids).map(([name, value]) => {
      const noun = name.replace(/_id$/, '');
      return [`${IN_V1[noun] ?? noun}_key`, value] as const;
    });
    const parameters = keys.filter(([key]) => operation.parameters.some(({ name }) => name === key));
    const target = isOfV1(path) ? signedPath(filled, parameters) : filled;
    const sent = request(url)[method](target).redirects(0);
    void sent.set({ 'api-key': client.apiKey, authorization: isUpload ? `Bearer ${ids.token}` : ADMIN });
    const { schema } = operation.requestBody?.content['application/json'] ?? {};
    const [example] = Object(resolve(schema ?? {})).examples ?? [];
    if (schema) void sent.send(example ?? {});
    const answer = await sent.buffer(true);
    const described = operation.responses[answer.status];
    expect([title, answer.status, described === undefined]).toEqual([title, answer.status, false]);
    const content = contentOf(described, answer.type);
    const isJson = content && answer.type === 'application/json';
    expect([title, isJson ? objections(content.schema, answer.body) : []]).toEqual([title, []]);
    if ((method === 'get' || example) && answer.status >= 400) silent.push(`${title} ${answer.status}`);
  }
  expect(silent.filter((title) => !NOT_SHOWN.test(title))).toEqual([]);
  // Some 170 requests, and a schema compiled for nearly each.
}, 20_000);

function resolve(schema: object): unknown {
  const name = /[^/]*$/.exec(Object(schema).$ref ?? '')?.[0] ?? '';
  return new Map(Object.entries(DOCUMENT.components.schemas)).get(name) ?? schema;
}

/** Pages for a person and what they load, and forms that they send. */
const isOfPages = (path: string) => /^\/(?:dashboard|verify)\b/.test(path);

/** Without the names of parameters. */
const namelessly = (path: string) => path.replaceAll(/\{\w+\}/g, '{}').replace(/\/$/, '');

const titles = OPERATIONS.map(({ method, path }) => `${method.toUpperCase()} ${namelessly(path)}`);

/** What no fault switch fails. */
const OWN = ['GET /docs', 'GET /healthz', 'GET /openapi.json'];

it('describes every route of the platform port, which a fault switch can mean, and no other', async () => {
  const { context } = await startEmulator();
  const present = context.faults.routes.flatMap(({ path, methods }) =>
    isOfPages(path) ? [] : methods.map((method) => `${method} ${namelessly(templateOf(path))}`),
  );
  expect(present.length).toBeGreaterThan(150);
  expect([...titles].sort()).toEqual([...present, ...OWN].sort());
});
