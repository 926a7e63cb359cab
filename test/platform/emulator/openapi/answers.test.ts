import request from 'supertest';
import { contentOf, OPERATIONS, objections } from '../../../support/start-described-emulator';
import { onceForAll, startEmulator } from '../../../support/start-emulator';

interface Oddity {
  readonly authorization?: string;
  readonly query?: string;
  readonly type?: string;
  readonly body?: string;
  /** In place of the site of the examples. */
  readonly site?: string;
  /** In place of every other id. */
  readonly id?: string;
}

const ADMIN = 'Bearer demo-api-secret-0123456789';

/** What clients send that is refused, or is no matter: each to every operation. */
const ODDITIES: readonly [what: string, oddity: Oddity][] = [
  ['nothing but what must be sent', {}],
  ['no credential', { authorization: '' }],
  ['a credential that nobody has', { authorization: 'Bearer nobody' }],
  ['a credential that only reads', { authorization: 'Bearer viewer-secret' }],
  ['a site out of reach', { site: 'othrsite' }],
  ['an id with an encoding that is none', { id: '%ff' }],
  ['an id with a slash', { id: 'a%2Fb' }],
  [
    'parameters that are none',
    { query: '?page=0&page_length=-1&q=(((&sort=x&format=pdf&width=-5&tags_mode=x' },
  ],
  ['a parameter twice', { query: '?page=1&page=2&trim_in_point=1&trim_in_point=2&token=a&token=b' }],
  ['an empty object', { type: 'application/json', body: '{}' }],
  ['a list', { type: 'application/json', body: '[]' }],
  [
    'fields of other types',
    { type: 'application/json', body: '{"metadata":1,"upload":[7],"relationships":"x","kids":7}' },
  ],
  [
    'a field that there is none of',
    { type: 'application/json', body: '{"metadata":{"titel":"x"},"tag":"a","tog":"b"}' },
  ],
  ['JSON that is none', { type: 'application/json', body: '{"metadata":' }],
  [
    'a body of 300,000 bytes',
    { type: 'application/json', body: JSON.stringify({ metadata: 'x'.repeat(300_000) }) },
  ],
];

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

it.each(OPERATIONS)(
  '$title answers nothing that its description does not tell of',
  async ({ method, path, operation }) => {
    const { url } = await platform();
    for (const [
      what,
      { authorization = ADMIN, query = '', type, body, site = 'demosite', id = 'absent00' },
    ] of ODDITIES) {
      const target = path.replace('{site_id}', site).replaceAll(/\{\w+\}/g, id) + query;
      const sent = request(url)[method](target).set({ authorization });
      if (body !== undefined && IN_BODIES.includes(method)) void sent.type(type ?? '').send(body);
      const answer = await sent.buffer(true);
      const told = operation.responses[answer.status];
      expect([what, answer.status, told === undefined]).toEqual([what, answer.status, false]);
      if (answer.type !== 'application/json') continue;
      const content = contentOf(told, answer.type);
      expect([what, content ? objections(content.schema, answer.body) : 'not told']).toEqual([what, []]);
    }
  },
);

/** The sentence that the description shows for an error of an operation. */
function toldBy(operationId: string, status: number, code: string): unknown {
  const found = OPERATIONS.find(({ operation }) => operation.operationId === operationId);
  const examples = found?.operation.responses[status]?.content?.['application/json']?.examples;
  return examples?.[code]?.value;
}

it('shows errors in the words in which they are answered', async () => {
  const { admin, unauthenticated, as, api, client } = await startEmulator();
  const media = '/v2/sites/demosite/media/';
  const keys = `/keyprovider/cenc/${client.name}`;
  const { body: made } = await admin.post(media).send({}).expect(201);
  const link = new URL(made.upload_link).pathname;
  const { body: parts } = await admin.post(media).send({ upload: { method: 'multipart' } });
  const partsPath = `/v2/uploads/${parts.upload_id}/parts`;
  const provoked: [operationId: string, call: PromiseLike<request.Response>][] = [
    ['listMedia', unauthenticated.get(media)],
    ['listMedia', as('nobody').get(media)],
    ['listMedia', admin.get('/v2/sites/othrsite/media/')],
    ['listMedia', admin.get(media).query({ page: '0' })],
    ['readMedia', admin.get(`${media}absent00/`)],
    ['createMedia', admin.post(media).send({ metadata: { title: 1 } })],
    ['createMedia', admin.post(media).type('json').send('{')],
    ['createMedia', admin.post(media).send({ metadata: { title: 'x'.repeat(300_000) } })],
    ['readOriginal', admin.get(`${media}${made.id}/originals/absent00/`)],
    ['readWebhook', admin.get('/v2/webhooks/absent00/')],
    ['cencKeys', unauthenticated.get(`${keys}/a`)],
    ['cencKeys', unauthenticated.get(`${keys}/a`).set('api-key', 'wrong')],
    ['cencKeys', api.get('/keyprovider/cenc/nobody/a')],
    ['cencKeys', api.get(`${keys}/a%20b`)],
    ['uploadFile', unauthenticated.put(link).send('x')],
    ['uploadFile', unauthenticated.put('/uploads/absent00').send('x')],
    ['listParts', unauthenticated.get(partsPath)],
    ['listParts', as('wrong').get(partsPath)],
  ];
  for (const [operationId, call] of provoked) {
    const { status, body } = await call;
    const [{ code }] = body.errors;
    expect([operationId, status, toldBy(operationId, status, code)]).toEqual([operationId, status, body]);
  }
});
