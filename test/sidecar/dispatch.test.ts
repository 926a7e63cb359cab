import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import fs from 'fs-extra';
import { CENC_ONLY, POST_MANUAL, POST_MANUAL_FILE } from '../support/post-manual';
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

test('answers 304 to a GET for who has the file', async () => {
  const sidecar = await startSidecar();
  await sidecar.api.post(PATH).send(POST_MANUAL).expect(200);
  const answer = await send(sidecar.url + PATH, { headers: asking({ 'if-none-match': TAG }) });
  expect(answer).toMatchObject({ status: 304, headers: { etag: TAG }, text: '' });
});

const WARNED = { ...CENC_ONLY, widevine: { psshdata: 'SPPGiZsG' }, contentId: 'other' };
const BODIES: readonly [
  what: string,
  body: string,
  status: number,
  result: string,
  headers?: Record<string, string>,
][] = [
  ['keys', text(POST_MANUAL), 200, 'changed'],
  ['keys behind a byte order mark', `\ufeff${text(POST_MANUAL)}`, 200, 'changed'],
  ['keys behind white space', ` \r\n\t${text(POST_MANUAL)}`, 200, 'changed'],
  ['keys with a warning', text(WARNED), 200, 'changed'],
  ['keys with several faults', text({ cenc: { keyid: 'x' }, plaready: {} }), 400, 'invalid_body'],
  ['a list', '[]', 400, 'invalid_body'],
  ['a text', '"cenc"', 400, 'malformed_json'],
  ['null', 'null', 400, 'malformed_json'],
  ['a number', '1', 400, 'malformed_json'],
  ['half a body', text(POST_MANUAL).slice(0, 40), 400, 'malformed_json'],
  ['bytes that are no UTF-8', '{"\ud800":1}', 400, 'unknown_field'],
  ['a tag of another file', text(POST_MANUAL), 412, 'precondition_failed', { 'if-match': '"other"' }],
  ['a file that must not be there', text(POST_MANUAL), 412, 'precondition_failed', { 'if-none-match': '*' }],
  [
    'a provider that is not configured',
    text({ client: 'a', clientApiKey: 'b', contentId: 'c' }),
    503,
    'provisioning_not_configured',
  ],
];

test.each([PATH, `${PATH}?dryrun=true`])('answers a POST of %s with all its warnings', async (path) => {
  const sidecar = await startSidecar();
  const body = text({
    ...POST_MANUAL,
    fairplay: { ...POST_MANUAL.fairplay, laurl: 'https://a/b' },
    contentId: 'other',
  });
  const { headers } = await send(sidecar.url + path, {
    method: 'POST',
    headers: { ...asking(), 'content-type': 'application/json' },
    body,
  });
  const codes = [...(headers.warning ?? '').matchAll(/299 - "(\w+): /g)].map(([, code]) => code);
  expect(codes).toEqual(['content_id_mismatch', 'content_id_mismatch', 'not_skd']);
});

test.each(BODIES)(
  'answers, logs and audits a POST of %s',
  async (_what, body, status, result, headers = {}) => {
    const sidecar = await startSidecar({ audit: 'stdout' });
    await fs.outputFile(join(sidecar.folder, 'live.key'), 'old: 1\n');
    const answer = await send(sidecar.url + PATH, {
      method: 'POST',
      headers: { ...asking(headers), 'content-type': 'application/json' },
      body,
    });
    const { etag, warning, 'content-length': length, ...common } = answer.headers;
    const kind = status === 200 ? 'text/plain' : 'application/json';
    const changed = status === 200 ? { 'cache-control': 'no-store' } : {};
    const { 'cache-control': _noStore, ...always } = HEADERS;
    expect(common).toEqual({ ...always, ...changed, 'content-type': `${kind}; charset=utf-8` });
    expect([answer.status, Number(length)]).toEqual([status, Buffer.byteLength(answer.text)]);
    expect([etag !== undefined, warning !== undefined]).toEqual([status === 200, body === text(WARNED)]);
    const written = status === 200 ? answer.text : 'old: 1\n';
    expect(await sidecar.files()).toEqual({ 'live.key': written });
    const log = await wholeLog(sidecar);
    expect(log.at(-1)).toMatchObject({ audit: true, stream_id: 'live', result, request_id: 'the-same' });
    expect(log.filter(({ message }) => message === 'request')).toEqual([
      expect.objectContaining({ route: '/api/keyfile/:streamid', status, streamId: 'live' }),
    ]);
    if (status >= 400) expect(JSON.parse(answer.text).errors[0].code).toBe(result);
  },
);

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
