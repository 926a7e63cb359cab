import { servedDocument } from '../../../../src/platform/emulator/openapi/document';
import { RESOURCES } from '../../../../src/platform/emulator/resources/table';
import { EVENT_NAMES } from '../../../../src/platform/emulator/webhooks/notification';
import { onceForAll } from '../../../support/after-test';
import { itDescribesAnApi, validateOpenApi } from '../../../support/describes-api';
import { DOCUMENT, OPERATIONS, objections } from '../../../support/start-described-emulator';
import { startEmulator } from '../../../support/start-emulator';
import { startWebhookReceiver } from '../../../support/webhook-receiver';

const shared = onceForAll(() => startEmulator());

itDescribesAnApi(DOCUMENT);

it('is answered to anybody, with the site and the client of this emulator', async () => {
  const { unauthenticated } = await startEmulator({ EMULATOR_SITE_ID: 'mysite01', EMULATOR_CLIENT: 'acme' });
  const { body } = await unauthenticated.get('/openapi.json').expect(200);
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
  const seeded = { siteId: 'demosite', client: 'demo' };
  const served = servedDocument(seeded);
  const { parameters, responses, ...components } = served.components;
  expect(Object.keys(responses)).toEqual(expect.arrayContaining(['Unauthorized', 'NotFound', 'NotFound2']));
  const whole = resolved({ ...served, components }, { parameters, responses });
  expect(whole).toEqual(JSON.parse(JSON.stringify(DOCUMENT)));
  expect(JSON.stringify(served).length).toBeLessThan(JSON.stringify(DOCUMENT).length * 0.6);
  expect(validateOpenApi(served)).toEqual({ valid: true, version: '3.1', errors: [] });
});

it('holds no secret of the emulator', async () => {
  const { unauthenticated, client } = await shared();
  const { text } = await unauthenticated.get('/openapi.json').expect(200);
  const secrets = ['demo-api-secret-0123456789', client.apiKey, client.sharedSecret];
  expect(secrets.filter((secret) => text.includes(secret))).toEqual([]);
});

it.each(RESOURCES.filter(({ verbs }) => verbs.includes('list')))(
  'lists of $plural are filtered by the fields that their description names',
  async ({ collection, plural }) => {
    const emulator = await shared();
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
