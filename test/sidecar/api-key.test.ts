import { POST_MANUAL, POST_MANUAL_FILE } from '../support/post-manual';
import { rawExchange, rawRequest } from '../support/raw-http';
import { API_KEY, startSidecar } from '../support/start-sidecar';

const PATH = '/api/keyfile/demo';
const METHODS = ['GET', 'HEAD', 'POST', 'DELETE', 'PUT', 'OPTIONS'];

function unauthorized(description: string) {
  return { errors: [{ code: 'unauthorized', description }] };
}

const MISSING = unauthorized('Send the API key of this service in the header x-api-key.');
const WRONG = unauthorized('The API key in x-api-key is not one of this service.');
const MISNAMED = unauthorized('Send the API key in the header x-api-key; API-KEY is not read.');

describe('the API key', () => {
  it.each(METHODS)('answers 401 to a %s without the key', async (method) => {
    const { port } = await startSidecar();
    const answer = await rawRequest(port, method, PATH, {});
    expect(answer.status).toBe(401);
    expect(answer.text).toBe(method === 'HEAD' ? '' : JSON.stringify(MISSING));
  });

  it.each([
    ['another key', `${API_KEY.slice(0, -1)}X`],
    ['a shorter key', API_KEY.slice(0, -1)],
    ['a longer key', `${API_KEY}s`],
    ['the key in other case', API_KEY.toUpperCase()],
    ['an empty key', ''],
    ['the key in quotes', `"${API_KEY}"`],
    ['the key as a Bearer token', `Bearer ${API_KEY}`],
    ['a very long key', 'k'.repeat(10_000)],
  ])('answers 401 to %s', async (_what, key) => {
    const { unauthenticated } = await startSidecar();
    await unauthenticated.get(PATH).set('x-api-key', key).expect(401, WRONG);
  });

  it('answers 401 to two x-api-key headers, even when both are right', async () => {
    const { port } = await startSidecar();
    const answer = await rawRequest(port, 'GET', PATH, { 'x-api-key': [API_KEY, API_KEY] });
    expect([answer.status, JSON.parse(answer.text)]).toEqual([401, WRONG]);
  });

  it('names the right header when the key is sent as API-KEY', async () => {
    const { unauthenticated } = await startSidecar();
    await unauthenticated.get(PATH).set('API-KEY', API_KEY).expect(401, MISNAMED);
  });

  it('takes no key from the query, from Authorization or from a cookie', async () => {
    const { unauthenticated } = await startSidecar();
    await unauthenticated
      .get(`${PATH}?x-api-key=${API_KEY}&api-key=${API_KEY}`)
      .set('authorization', `Bearer ${API_KEY}`)
      .set('cookie', `x-api-key=${API_KEY}`)
      .expect(401, MISSING);
  });

  it('changes nothing on a refused POST or DELETE', async () => {
    const { api, unauthenticated, files } = await startSidecar();
    await api.post(PATH).send(POST_MANUAL).expect(200);
    await unauthenticated.post(PATH).send({ cenc: POST_MANUAL.cenc }).expect(401);
    await unauthenticated.post('/api/keyfile/other').send(POST_MANUAL).expect(401);
    await unauthenticated.delete(PATH).expect(401);
    expect(await files()).toEqual({ 'demo.key': POST_MANUAL_FILE });
  });

  it.each([
    ['a path that names nothing', '/api/nothing'],
    ['a refused stream id', '/api/keyfile/..'],
    ['an undecodable stream id', '/api/keyfile/%E0%A4%A'],
    ['the path in capitals', '/API/KEYFILE/demo'],
  ])('tells an unauthenticated client nothing about %s', async (_what, path) => {
    const { port } = await startSidecar();
    const answer = await rawRequest(port, 'GET', path, {});
    expect([answer.status, JSON.parse(answer.text)]).toEqual([401, MISSING]);
  });

  it('answers before a body arrives', async () => {
    const { port } = await startSidecar();
    const head = `POST ${PATH} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n`;
    const answer = await rawExchange(port, `${head}content-length: 60000\r\n\r\n`, /\}\]\}$/);
    expect(answer).toMatch(/^HTTP\/1\.1 401 Unauthorized\r\n/);
    expect(answer.split('\r\n\r\n')[1]).toBe(JSON.stringify(MISSING));
  });

  it.each(['application/json', 'text/html'])(
    'looks at no %s body of an unauthenticated client',
    async (type) => {
      const { unauthenticated } = await startSidecar();
      const body = `{"broken": ${'x'.repeat(70_000)}`;
      await unauthenticated.post(PATH).set('content-type', type).send(body).expect(401, MISSING);
    },
  );
});
