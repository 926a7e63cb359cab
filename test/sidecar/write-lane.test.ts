import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import fs from 'fs-extra';
import { CENC_ONLY, POST_MANUAL, POST_MANUAL_FILE } from '../support/post-manual';
import { API_KEY, type LogEntry, startSidecar, type TestSidecar } from '../support/start-sidecar';
import { until } from '../support/until';

// A trailing slash and an encoded letter go through Express, as does a media type with a charset; the plain POST does not.
const PLAIN = { path: '/api/keyfile/live', type: 'application/json' };
const AROUND = [
  { ...PLAIN, path: '/api/keyfile/live/' },
  { ...PLAIN, path: '/api/keyfile/l%69ve' },
  { ...PLAIN, type: 'application/json; charset=utf-8' },
];

const WARNED = { ...CENC_ONLY, widevine: { psshdata: 'SPPGiZsG' }, contentId: 'other' };
const text = (body: object) => JSON.stringify(body);

const BODIES: readonly [what: string, body: string, headers?: Record<string, string>][] = [
  ['keys', text(POST_MANUAL)],
  ['keys behind a byte order mark', `\ufeff${text(POST_MANUAL)}`],
  ['keys behind white space', ` \r\n\t${text(POST_MANUAL)}`],
  ['keys with a warning', text(WARNED)],
  ['keys with several faults', text({ cenc: { keyid: 'x' }, plaready: {} })],
  ['a list', '[]'],
  ['a text', '"cenc"'],
  ['null', 'null'],
  ['a number', '1'],
  ['half a body', text(POST_MANUAL).slice(0, 40)],
  ['bytes that are no UTF-8', '{"\ud800":1}'],
  ['a tag of another file', text(POST_MANUAL), { 'if-match': '"other"' }],
  ['a file that must not be there', text(POST_MANUAL), { 'if-none-match': '*' }],
  ['a provider that is not configured', text({ client: 'a', clientApiKey: 'b', contentId: 'c' })],
];

async function post(
  url: string,
  { path, type }: typeof PLAIN,
  body: string,
  headers: Record<string, string>,
) {
  const response = await fetch(url + path, {
    method: 'POST',
    headers: { ...headers, 'content-type': type, 'x-api-key': API_KEY, 'x-request-id': 'the-same' },
    body,
  });
  const { date: _date, ...rest } = Object.fromEntries(response.headers);
  return { status: response.status, headers: rest, text: await response.text() };
}

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

test.each(BODIES)(
  'answers and logs a plain POST of %s as Express does',
  async (_what, body, headers = {}) => {
    const answers = [];
    for (const around of [PLAIN, ...AROUND]) {
      const sidecar = await startSidecar({ audit: 'stdout' });
      await fs.outputFile(join(sidecar.folder, 'live.key'), 'old: 1\n');
      const answer = await post(sidecar.url, around, body, headers);
      answers.push({ answer, files: await sidecar.files(), log: await wholeLog(sidecar) });
    }
    const [plain, ...others] = answers;
    for (const other of others) expect(plain).toEqual(other);
  },
);

test('answers a key file that is written', async () => {
  const { url } = await startSidecar();
  expect(await post(url, PLAIN, text(POST_MANUAL), {})).toMatchObject({
    status: 200,
    text: POST_MANUAL_FILE,
  });
});

test('answers the failures of the disk as Express does', async () => {
  const answers = [];
  for (const around of [PLAIN, ...AROUND]) {
    const sidecar = await startSidecar();
    await fs.ensureDir(join(sidecar.folder, 'live.key'));
    answers.push(await post(sidecar.url, around, text(POST_MANUAL), {}));
  }
  expect(answers[0]).toMatchObject({ status: 409 });
  for (const other of answers) expect(other).toEqual(answers[0]);
});

test.each(['end', 'destroy', 'resetAndDestroy'] as const)(
  'writes nothing of a body that does not arrive whole, and logs its client as gone (%s)',
  async (leave) => {
    const answers = [];
    for (const { path, type } of [PLAIN, ...AROUND]) {
      const sidecar = await startSidecar({ audit: 'stdout' });
      const body = text(POST_MANUAL);
      const socket = connect(sidecar.port, '127.0.0.1');
      socket.on('error', () => undefined);
      const head = `POST ${path} HTTP/1.1\r\nhost: here\r\nx-api-key: ${API_KEY}\r\nx-request-id: half\r\n`;
      socket.write(
        `${head}content-type: ${type}\r\ncontent-length: ${body.length}\r\n\r\n${body.slice(0, -1)}`,
      );
      await until(() => sidecar.counts().receiving === 1);
      socket[leave]();
      await new Promise((resolve) => socket.resume().once('close', resolve));
      await until(() => sidecar.counts().receiving === 0);
      expect(await sidecar.files()).toEqual({});
      answers.push(await wholeLog(sidecar));
    }
    expect(answers[0]).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ message: 'request', requestId: 'half', status: 499, aborted: true }),
      ]),
    );
    for (const other of answers) expect(other).toEqual(answers[0]);
  },
);

test.each([PLAIN, ...AROUND])(
  'audits a body that came too late and was answered already: %j',
  async ({ path, type }) => {
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
    const head = `POST ${path} HTTP/1.1\r\nhost: here\r\nx-api-key: ${API_KEY}\r\ncontent-type: ${type}\r\n`;
    socket.write(`${head}content-length: 100\r\n\r\n{`);
    await new Promise((resolve) => socket.once('close', resolve));
    server.close();
    expect(received).toMatch(/^HTTP\/1.1 408 /);
    // It comes last of all that is done about the request.
    expect((await wholeLog(sidecar)).at(-1)).toMatchObject({ audit: true, action: 'refused' });
    expect(await sidecar.files()).toEqual({});
  },
);
