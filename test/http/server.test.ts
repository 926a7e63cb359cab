import { createApp } from '../../src/http/app';
import { listen, type RunningServer } from '../../src/http/server';
import { rawExchange } from '../support/raw-http';

let server: RunningServer;
const logged: object[] = [];

beforeEach(async () => {
  logged.length = 0;
  const silent = () => undefined;
  const log = {
    error: silent,
    warn: silent,
    debug: silent,
    info: (_text: string, fields = {}) => void logged.push(fields),
  };
  const app = createApp({ log, newId: () => 'id', now: () => 0 }, (routes) => {
    routes.get('/here', (_request, response) => void response.json({ url: 'here' }));
  });
  server = await listen(app, '127.0.0.1', 0);
});

afterEach(() => server.stop(0));

const send = (line: string, more = '') =>
  rawExchange(server.port, `${line}\r\nHost: a\r\nConnection: close\r\n${more}\r\n`, /\}$/);

test('answers an absolute request target as the path in it', async () => {
  expect(await send('GET http://any.example/here?x=1 HTTP/1.1')).toMatch(
    /^HTTP\/1\.1 200 .*\{"url":"here"\}$/s,
  );
});

test.each(['http://[/', 'http://[::1/here', 'a://h', 'a://h?x'])(
  'answers a target that is no address, %s, with an error of its own form, and logs it',
  async (target) => {
    const answer = await send(`GET ${target} HTTP/1.1`);
    expect(answer).toMatch(
      /^HTTP\/1\.1 404 .*x-request-id: id.*\{"errors":\[\{"code":"not_found",[^\]]*\}\]\}$/s,
    );
    expect(logged).toEqual([expect.objectContaining({ status: 404, route: 'unmatched' })]);
  },
);

test.each([
  ['what is no HTTP', 'NONSENSE', '', 400, 'bad_request'],
  [
    'a length given twice',
    'POST /here HTTP/1.1',
    'Content-Length: 1\r\nContent-Length: 2\r\n',
    400,
    'bad_request',
  ],
  [
    'headers of 20 KiB',
    'GET /here HTTP/1.1',
    `X: ${'a'.repeat(20_000)}\r\n`,
    431,
    'request_header_fields_too_large',
  ],
])('answers %s with an error of the usual form', async (_what, line, headers, status, code) => {
  const answer = await send(line, headers);
  expect(answer).toMatch(
    new RegExp(
      `^HTTP/1.1 ${status} .*\\{"errors":\\[\\{"code":"${code}","description":"[^"]+"\\}\\]\\}$`,
      's',
    ),
  );
});
