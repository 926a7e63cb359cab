import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { errorBody } from '../support/error-body';
import { listening } from '../support/listening';
import { POST_MANUAL, POST_MANUAL_FILE } from '../support/post-manual';
import { rawExchange, rawRequest } from '../support/raw-http';
import {
  API_KEY,
  apiKeysFile,
  type LogEntry,
  startSidecar,
  type TestSidecar,
} from '../support/start-sidecar';
import { until } from '../support/until';

const PATH = '/api/keyfile/live';
/** The same path in other words. */
const PATHS = [PATH, `${PATH}/`, '/api/keyfile/l%69ve', '/api/KeyFile/live'];

/** The headers of every answer that is a key file, but for its own: date, entity tag and length. */
const HEADERS = {
  'cache-control': 'no-store',
  connection: 'keep-alive',
  'content-security-policy': "default-src 'none';frame-ancestors 'none'",
  'content-type': 'text/plain; charset=utf-8',
  'cross-origin-resource-policy': 'same-origin',
  'keep-alive': 'timeout=65',
  'referrer-policy': 'no-referrer',
  'strict-transport-security': 'max-age=31536000; includeSubDomains',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'x-request-id': 'the-same',
};
const TAG = '"SaGjsBPoW4ykt-En28y6-QW6cBR"';

const text = (body: object) => JSON.stringify(body);

async function send(url: string, init: RequestInit) {
  const response = await fetch(url, init);
  const { date: _date, ...headers } = Object.fromEntries(response.headers);
  return { status: response.status, headers, text: await response.text() };
}

const asking = (headers: Record<string, string> = {}) => ({
  ...headers,
  'x-api-key': API_KEY,
  'x-request-id': 'the-same',
});

/** The log, followed by the one line of the audit. */
async function wholeLog(sidecar: TestSidecar): Promise<readonly LogEntry[]> {
  let entries: LogEntry[] = [];
  await until(async () => {
    entries = await sidecar.logEntries();
    return entries.some(({ audit }) => audit);
  });
  const audited = entries.filter(({ audit }) => audit);
  expect(audited).toHaveLength(1);
  return [...entries.filter(({ audit }) => !audit), ...audited];
}

test.each(PATHS)('answers and logs a GET of %s', async (path) => {
  const sidecar = await startSidecar();
  await sidecar.api.post(PATH).send(POST_MANUAL).expect(200);
  for (const headers of [{}, { accept: '*/*' }, { accept: 'text/html' }])
    expect(await send(sidecar.url + path, { headers: asking(headers) })).toEqual({
      status: 200,
      headers: { ...HEADERS, etag: TAG, 'content-length': String(POST_MANUAL_FILE.length) },
      text: POST_MANUAL_FILE,
    });
  const logged = (await sidecar.logEntries()).filter(({ method }) => method === 'GET');
  const fields = { requestId: 'the-same', route: '/api/keyfile/:streamid', status: 200, streamId: 'live' };
  const client = { key: 'default', address: expect.stringContaining('127.0.0.1') };
  expect(logged[0]).toMatchObject({ message: 'request', ...fields, ...client });
});

test.each(['as=shaka', 'as=cpix&scheme=cbcs'])('answers an export alike by each path: %s', async (query) => {
  const sidecar = await startSidecar();
  await sidecar.api.post(PATH).send(POST_MANUAL).expect(200);
  const answers = [];
  for (const path of PATHS) answers.push(await send(`${sidecar.url}${path}?${query}`, { headers: asking() }));
  expect(answers[0]).toMatchObject({ status: 200, headers: { 'x-frame-options': 'DENY' } });
  expect(answers[0]?.headers['content-disposition']).toMatch(/^attachment; filename="live\./);
  for (const answer of answers) expect(answer).toEqual(answers[0]);
  const logged = (await sidecar.logEntries()).filter(({ method }) => method === 'GET');
  for (const { time: _time, ms: _ms, ...entry } of logged) expect(logged[0]).toMatchObject(entry);
});

test.each([
  ['that finds nothing', 404, `${PATH}-none`, {}],
  ['of a folder in the place of the file', 409, '/api/keyfile/folder', {}],
  ['that asks for a key that is not there', 409, `${PATH}?as=ffmpeg&scheme=aes-128`, {}],
  ['that asks for an unknown form', 400, `${PATH}?as=other`, {}],
  ['of a stream that the key may not read', 403, PATH, { 'x-api-key': 'key-of-another-stream' }],
  ['of its export by such a key', 403, `${PATH}?as=shaka`, { 'x-api-key': 'key-of-another-stream' }],
  ['by a client that has the file', 304, PATH, { 'if-none-match': TAG }],
  ['by a client that asks for JSON', 200, PATH, { accept: 'application/json' }],
] as const)('logs a read %s once', async (_what, status, path, headers) => {
  const other = await apiKeysFile({ name: 'b', key: 'key-of-another-stream', scope: 'read', streams: ['b'] });
  const sidecar = await startSidecar(other);
  await sidecar.api.post(PATH).send(POST_MANUAL).expect(200);
  await mkdir(join(sidecar.folder, 'folder.key'));
  const answer = await send(sidecar.url + path, { headers: { ...asking(), ...headers } });
  expect(answer).toMatchObject({
    status,
    headers: { 'x-request-id': 'the-same', 'x-frame-options': 'DENY' },
  });
  const logged = (await sidecar.logEntries()).filter(({ requestId }) => requestId === 'the-same');
  expect(logged.map((entry) => entry.status)).toEqual([status]);
});

test.each(['end', 'destroy', 'resetAndDestroy'] as const)(
  'writes nothing of a body that does not arrive whole, and logs its client as gone (%s)',
  async (leave) => {
    const sidecar = await startSidecar({ audit: 'stdout' });
    const body = text(POST_MANUAL);
    const socket = connect(sidecar.port, '127.0.0.1');
    socket.on('error', () => undefined);
    const head = `POST ${PATH} HTTP/1.1\r\nhost: here\r\nx-api-key: ${API_KEY}\r\nx-request-id: half\r\n`;
    socket.write(
      `${head}content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body.slice(0, -1)}`,
    );
    await until(() => sidecar.counts().receiving === 1);
    socket[leave]();
    await new Promise((resolve) => socket.resume().once('close', resolve));
    await until(() => sidecar.counts().receiving === 0);
    expect(await sidecar.files()).toEqual({});
    expect(await wholeLog(sidecar)).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ message: 'request', requestId: 'half', status: 499, aborted: true }),
      ]),
    );
  },
);

test('audits a body that came too late and was answered already', async () => {
  const sidecar = await startSidecar({ audit: 'stdout' });
  // As the server does with a request that takes longer than a minute.
  const server = createServer((incoming, response) => {
    sidecar.handler(incoming, response);
    setTimeout(() => {
      response.once('finish', () => incoming.destroy());
      response.writeHead(408).end('late');
    }, 20);
  });
  const socket = connect(await listening(server), '127.0.0.1');
  let received = '';
  socket.on('data', (chunk) => {
    received += String(chunk);
  });
  const head = `POST ${PATH} HTTP/1.1\r\nhost: here\r\nx-api-key: ${API_KEY}\r\ncontent-type: application/json\r\n`;
  socket.write(`${head}content-length: 100\r\n\r\n{`);
  await new Promise((resolve) => socket.once('close', resolve));
  expect(received).toMatch(/^HTTP\/1.1 408 /);
  // It comes last of all that is done about the request.
  expect((await wholeLog(sidecar)).at(-1)).toMatchObject({
    audit: true,
    action: 'refused',
    result: 'request_timeout',
  });
  expect(await sidecar.files()).toEqual({});
});

test('answers bytes that are no UTF-8 as they are, and an empty file as empty', async () => {
  const sidecar = await startSidecar();
  const bytes = Buffer.from([0xff, 0xfe, 0x00, 0x80, 0x0a, 0xc3]);
  await writeFile(join(sidecar.folder, 'live.key'), bytes);
  await writeFile(join(sidecar.folder, 'empty.key'), '');
  const read = async (name: string) => {
    const response = await fetch(`${sidecar.url}/api/keyfile/${name}`, { headers: { 'x-api-key': API_KEY } });
    return {
      length: response.headers.get('content-length'),
      bytes: Buffer.from(await response.arrayBuffer()),
    };
  };
  expect(await read('live')).toEqual({ length: '6', bytes });
  expect(await read('empty')).toEqual({ length: '0', bytes: Buffer.alloc(0) });
});

test.each([`x-api-key: ${API_KEY}\r\n`, ''])(
  'answers a POST whose body is no HTTP with the request id and the headers of every answer (key: %j)',
  async (key) => {
    const sidecar = await startSidecar();
    const head = `POST ${PATH} HTTP/1.1\r\nhost: here\r\n${key}x-request-id: the-same\r\n`;
    const body = 'content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n';
    const answer = await rawExchange(sidecar.port, head + body, /\}$/);
    expect(answer).toMatch(/^HTTP\/1.1 400 /);
    expect(answer).toMatch(/^x-request-id: the-same\r$/m);
    expect(answer).toMatch(/^x-content-type-options: nosniff\r$/im);
  },
);

describe('a request', () => {
  const PATH = '/api/keyfile/demo';
  const METHODS = ['GET', 'HEAD', 'POST', 'DELETE', 'PUT', 'OPTIONS'];

  const unauthorized = (description: string) => errorBody('unauthorized', description);
  const MISSING = unauthorized('Send the API key of this service in the header x-api-key.');
  const WRONG = unauthorized('The API key in x-api-key is not one of this service.');
  const MISNAMED = unauthorized('Send the API key in the header x-api-key; API-KEY is not read.');

  describe('the API key', () => {
    it('answers 401 to every method without the key', async () => {
      const { port } = await startSidecar();
      for (const method of METHODS) {
        const answer = await rawRequest(port, method, PATH, {});
        expect([answer.status, answer.text]).toEqual([401, method === 'HEAD' ? '' : JSON.stringify(MISSING)]);
      }
    });

    it('answers 401 to another key, and to the key with something more or less', async () => {
      const { unauthenticated } = await startSidecar();
      const near = [`${API_KEY.slice(0, -1)}X`, API_KEY.slice(0, -1), `${API_KEY}s`, API_KEY.toUpperCase()];
      for (const key of [...near, `"${API_KEY}"`, `Bearer ${API_KEY}`, 'k'.repeat(10_000), ''])
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

    it('shows an unauthenticated client nothing about any path', async () => {
      const { port } = await startSidecar();
      for (const path of ['/api/nothing', '/api/keyfile/..', '/api/keyfile/%E0%A4%A', '/API/KEYFILE/demo']) {
        const answer = await rawRequest(port, 'GET', path, {});
        expect([path, answer.status, JSON.parse(answer.text)]).toEqual([path, 401, MISSING]);
      }
    });

    it('answers before a body arrives', async () => {
      const { port } = await startSidecar();
      const head = `POST ${PATH} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n`;
      const answer = await rawExchange(port, `${head}content-length: 60000\r\n\r\n`, /\}\]\}$/);
      expect(answer).toMatch(/^HTTP\/1\.1 401 Unauthorized\r\n/);
      expect(answer.split('\r\n\r\n')[1]).toBe(JSON.stringify(MISSING));
    });
  });
});
