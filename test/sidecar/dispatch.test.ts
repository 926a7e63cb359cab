import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { POST_MANUAL, POST_MANUAL_FILE } from '../support/post-manual';
import { rawExchange } from '../support/raw-http';
import { API_KEY, type LogEntry, startSidecar, type TestSidecar } from '../support/start-sidecar';
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

/** What is logged, and behind it the one line of the audit. */
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
  expect(logged[0]).toMatchObject({ message: 'request', ...fields });
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
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  let received = '';
  socket.on('data', (chunk) => {
    received += String(chunk);
  });
  const head = `POST ${PATH} HTTP/1.1\r\nhost: here\r\nx-api-key: ${API_KEY}\r\ncontent-type: application/json\r\n`;
  socket.write(`${head}content-length: 100\r\n\r\n{`);
  await new Promise((resolve) => socket.once('close', resolve));
  server.close();
  expect(received).toMatch(/^HTTP\/1.1 408 /);
  // It comes last of all that is done about the request.
  expect((await wholeLog(sidecar)).at(-1)).toMatchObject({ audit: true, action: 'refused' });
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
