import Ajv2020 from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import { PlaylistQuery } from '../../../../src/platform/emulator/delivery/playlists';
import { RESOURCES } from '../../../../src/platform/emulator/resources/table';
import { EVENT_NAMES } from '../../../../src/platform/emulator/webhooks/notification';
import { DOCUMENT, OPERATIONS, objections } from '../../../support/start-described-emulator';
import { startEmulator } from '../../../support/start-emulator';
import { validateOpenApi } from '../../../support/validate-openapi';
import { startWebhookReceiver } from '../../../support/webhook-receiver';

it('is OpenAPI 3.1 by an independent validator', () => {
  expect(validateOpenApi(DOCUMENT)).toEqual({ valid: true, version: '3.1', errors: [] });
});

it('is answered to anybody, with the site and the client of this emulator', async () => {
  const { unauthenticated } = await startEmulator({ EMULATOR_SITE_ID: 'mysite01', EMULATOR_CLIENT: 'acme' });
  const { body } = await unauthenticated.get('/openapi.json').expect(200);
  expect(body.paths['/v2/sites/{site_id}/media/'].get.parameters[0].example).toBe('mysite01');
  expect(body.paths['/config/v1/clients/{client}'].get.parameters[0].example).toBe('acme');
});

it('holds no secret of the emulator', async () => {
  const { unauthenticated, client } = await startEmulator();
  const { text } = await unauthenticated.get('/openapi.json').expect(200);
  const secrets = ['demo-api-secret-0123456789', client.apiKey, client.sharedSecret];
  expect(secrets.filter((secret) => text.includes(secret))).toEqual([]);
});

it('gives every operation an id of its own', () => {
  const ids = OPERATIONS.map(({ operation }) => operation.operationId);
  expect(ids).toEqual([...new Set(ids)]);
  expect(ids.filter((id) => !/^[a-z][A-Za-z0-9]+$/.test(id))).toEqual([]);
});

it('names the parameters of every path, and tags that are told of', () => {
  for (const { title, path, operation } of OPERATIONS) {
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const told = operation.parameters.filter((one) => one.in === 'path').map(({ name }) => name);
    expect([title, told]).toEqual([title, inPath]);
    const tags = DOCUMENT.tags.map(({ name }) => name);
    expect([title, operation.tags.filter((tag) => !tags.includes(tag))]).toEqual([title, []]);
  }
});

it.each(Object.keys(DOCUMENT.components.schemas))('%s is a JSON Schema in the strict sense', (name) => {
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, strictRequired: false });
  addFormats(ajv);
  ajv.addVocabulary(['components']);
  const { schemas } = DOCUMENT.components;
  const compile = () => ajv.compile({ $ref: `#/components/schemas/${name}`, components: { schemas } });
  expect(compile).not.toThrow();
});

it('describes every field of every body and answer', () => {
  const silent: string[] = [];
  const look = (place: string, schema: unknown): void => {
    if (typeof schema !== 'object' || schema === null) return;
    const properties: unknown = Reflect.get(schema, 'properties');
    for (const [name, field] of Object.entries(Object(properties))) {
      // Of errors, an answer only narrows what the component describes.
      const isTold = Object(field).description !== undefined || !('type' in schema);
      if (!isTold) silent.push(`${place}.${name}`);
    }
    for (const [name, part] of Object.entries(schema)) {
      if (name !== 'examples' && name !== 'example') look(`${place}.${name}`, part);
    }
  };
  look('components', DOCUMENT.components.schemas);
  look('paths', DOCUMENT.paths);
  look('webhooks', DOCUMENT.webhooks);
  expect(silent).toEqual([]);
});

it.each(RESOURCES.filter(({ verbs }) => verbs.includes('list')))(
  'lists of $plural are filtered by the fields that their description names',
  async ({ collection, plural }) => {
    const emulator = await startEmulator();
    const below = collection.includes(':mediaId') ? await mediaIn(emulator) : '';
    const channel = collection.includes(':channelId') ? await emulator.createChannel() : { id: '' };
    const path = collection
      .replace(':siteId', 'demosite')
      .replace(':mediaId', below)
      .replace(':channelId', channel.id);
    const { body } = await emulator.admin.get(path).query({ q: 'surely_no_field: x' }).expect(400);
    const [, accepted = ''] = /Fields: (.*)\.$/.exec(body.errors[0].description) ?? [];
    const found = OPERATIONS.find(
      ({ operation }) => operation.operationId.toLowerCase() === `list${plural.replaceAll('_', '')}`,
    );
    const q = found?.operation.parameters.find(({ name }) => name === 'q');
    const [, told = ''] = /Fields: (.*)\.$/.exec(q?.description ?? '') ?? [];
    expect(told.replaceAll('`', '')).toBe(accepted);
  },
);

async function mediaIn({ admin }: Awaited<ReturnType<typeof startEmulator>>): Promise<string> {
  const { body } = await admin.post('/v2/sites/demosite/media/').send({}).expect(201);
  return body.id;
}

it('names the parameters that the document of a playlist takes', () => {
  const found = OPERATIONS.find(({ operation }) => operation.operationId === 'playlistDocument');
  const names = found?.operation.parameters.filter((one) => one.in === 'query').map(({ name }) => name);
  expect(names?.sort()).toEqual(Object.keys(PlaylistQuery.shape).sort());
});

it('describes every notification, and webhooks get them so', async () => {
  expect(Object.keys(DOCUMENT.webhooks)).toEqual([...EVENT_NAMES]);
  const { admin, createChannel, connect } = await startEmulator();
  const receiver = await startWebhookReceiver();
  const metadata = {
    name: 'all',
    webhook_url: receiver.url,
    events: [...EVENT_NAMES],
    site_ids: ['demosite'],
  };
  await admin.post('/v2/webhooks/').send({ metadata }).expect(201);
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
