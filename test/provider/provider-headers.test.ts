import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { openProviderHeaders, parseProviderHeaders } from '../../src/provider/provider-headers';
import { afterTest, folderOfEachTest } from '../support/after-test';
import { faultsOf } from '../support/faults-of';
import { type LogLine, recordedLog } from '../support/recorded-log';
import { PATHS, PROVIDED, startProvisioning } from '../support/start-provisioning';
import { CONTENT_ID, reference, SPEKE_PATH, startSpeke } from '../support/start-speke';
import { until } from '../support/until';

/** In pieces too short to be taken for key material: it is hidden because it was sent. */
const SECRET = 'secret.value.of.the.tests';
const file = join(folderOfEachTest(), 'headers.txt');
let lines: LogLine[];

function open(content: string) {
  writeFileSync(file, content, { mode: 0o600 });
  const recorded = recordedLog();
  lines = recorded.lines;
  const opened = openProviderHeaders(file, { log: recorded.log, intervalMs: 10 });
  afterTest(opened.close);
  return opened.current;
}

/** Headers of the connection and of every call. */
const SET_HERE = [
  ...['Host', 'Content-Length', 'TRANSFER-ENCODING', 'Content-Encoding', 'Accept-Encoding', 'Expect'],
  ...['Connection', 'Keep-Alive', 'Proxy-Connection', 'Upgrade', 'TE', 'Trailer', 'HTTP2-Settings'],
  ...['X-Request-Id', 'X-Speke-Version'],
];

describe('a file of headers', () => {
  it.each([
    [`\ufeffX-Api-Key: ${SECRET}\n`, { 'X-Api-Key': SECRET }],
    [
      `# of the provider\r\n\r\nX-Api-Key:${SECRET}\r\nx-tenant:\t a b \r\n`,
      { 'X-Api-Key': SECRET, 'x-tenant': 'a b' },
    ],
    ['Authorization: Basic dXNlcjpwYXNz==', { Authorization: 'Basic dXNlcjpwYXNz==' }],
    [' # indented comment\nCookie: a=1; b="2" # no comment', { Cookie: 'a=1; b="2" # no comment' }],
  ])('is read: %j', (content, headers) => {
    expect(parseProviderHeaders(Buffer.from(content))).toEqual(headers);
  });

  it.each<[content: string, ...faults: string[]]>([
    ['', 'the file holds no header; write lines "Name: value" into it'],
    ['# none\n\n', 'the file holds no header; write lines "Name: value" into it'],
    [SECRET, 'line 1 is not "Name: value"'],
    [`X-Key : ${SECRET}`, 'line 1 is not "Name: value"'],
    [` X-Key: ${SECRET}`, 'line 1 is not "Name: value"'],
    ['X-Key:', 'line 1 is not "Name: value"'],
    [`X-Key: ${SECRET}\u0000`, 'line 1 is not "Name: value"'],
    [`X-Key: ä${SECRET}`, 'line 1 holds other characters than ASCII, which headers do not have'],
    [`X-Key: ${SECRET}\n continued`, 'line 2 is not "Name: value"'],
    [`X-Key: a\n\nx-key: ${SECRET}`, 'line 3 has the same name as line 1; a header is sent once'],
    [
      SET_HERE.map((name) => `${name}: a`).join('\n'),
      ...SET_HERE.map(
        (name, index) =>
          `line ${index + 1} sets ${name.toLowerCase()}, which this service sets itself; remove it`,
      ),
    ],
    [`X-Key: ${'a'.repeat(9000)}`, 'the file has more than 8192 bytes'],
    [
      `${'no header\n'.repeat(25)}`,
      ...Array.from({ length: 20 }, (_, at) => `line ${at + 1} is not "Name: value"`),
      'and 5 more',
    ],
  ])('is refused with what is wrong in which line, and no value (case %#)', (content, ...faults) => {
    expect(faultsOf(() => parseProviderHeaders(Buffer.from(content)))).toEqual(faults);
  });

  it('gives headers that can be sent, or faults without its text, whatever is in it', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.string(), fc.constant('X: 1'))), (given) => {
        const bytes = Buffer.from(given.join('\n'));
        for (const fault of faultsOf(() => new Headers(parseProviderHeaders(bytes)))) {
          expect(fault).toMatch(
            /^(?:line \d+ (?:is not|holds|sets|has)|the file (?:holds|has)|and \d+ more)/,
          );
        }
      }),
      { numRuns: 200 },
    );
  });

  it('refuses the start when it is not there or can not be used, and names the variable', () => {
    expect(faultsOf(() => openProviderHeaders(file, { log: recordedLog().log }))).toEqual([
      `PACKAGERDRMAPI_KEYPROVIDERHEADERS_FILE: ${file}: there is no such file`,
    ]);
    expect(faultsOf(() => open(SECRET))).toEqual([
      'PACKAGERDRMAPI_KEYPROVIDERHEADERS_FILE: line 1 is not "Name: value"',
    ]);
  });

  it('is read again when it changes; a broken one is reported and changes nothing', async () => {
    const read = open(`X-Key: ${SECRET}`);
    expect(read()).toEqual({ 'X-Key': SECRET });
    writeFileSync(file, 'X-Key: next-secret');
    await until(() => read()['X-Key'] === 'next-secret');
    writeFileSync(file, SECRET);
    await until(() => lines.length === 3);
    expect(read()).toEqual({ 'X-Key': 'next-secret' });
    chmodSync(file, 0o644);
    writeFileSync(file, 'X-Key: third-secret');
    await until(() => lines.length === 5);
    expect(lines).toEqual([
      ['info', 'key provider headers read', { file, count: 1 }],
      ['info', 'key provider headers read', { file, count: 1 }],
      [
        'error',
        'the file of key provider headers cannot be used; the previous headers stay in use',
        { file, faults: ['PACKAGERDRMAPI_KEYPROVIDERHEADERS_FILE: line 1 is not "Name: value"'] },
      ],
      ['info', 'key provider headers read', { file, count: 1 }],
      [
        'warn',
        'every user of this machine can read this secret',
        { variable: 'PACKAGERDRMAPI_KEYPROVIDERHEADERS_FILE', file },
      ],
    ]);
  });
});

describe('the headers of the file', () => {
  const PATH = '/api/keyfile/demo';

  it('go to the key provider as they are at the time, and stand back for the key of a request', async () => {
    let key = SECRET;
    const providerHeaders = () => ({ 'API-Key': key, 'Content-Type': 'text/xml', 'X-Tenant': 'a' });
    const { sidecar, upstream } = await startSpeke({ dependencies: { providerHeaders } });
    const body = { contentId: CONTENT_ID, systems: ['fairplay'] };
    await sidecar.api.post(PATH).send(body).expect(200);
    key = 'next';
    await sidecar.api.post(PATH).send(body).expect(200);
    await sidecar.api
      .post(PATH)
      .send({ ...body, clientApiKey: 'of-the-request' })
      .expect(200);
    expect(upstream.received.map(({ headers }) => [headers['api-key'], headers['content-type']])).toEqual([
      [SECRET, 'text/xml'],
      ['next', 'text/xml'],
      ['of-the-request', 'text/xml'],
    ]);
    expect(upstream.received.map(({ headers }) => headers['x-tenant'])).toEqual(['a', 'a', 'a']);
  });

  it('go to a provider of JSON, too, and never to the configuration service', async () => {
    const { sidecar, upstream } = await startProvisioning({}, undefined, {
      providerHeaders: () => ({ 'x-tenant': SECRET, Accept: 'application/vnd.keys+json' }),
    });
    await sidecar.api.post(PATH).send(PROVIDED).expect(200);
    const sent = upstream.received.map(({ path, headers }) => [
      path.split('/')[1],
      headers['x-tenant'],
      headers.accept,
    ]);
    expect(sent.sort()).toEqual([
      ['config', undefined, 'application/json'],
      ['keys', SECRET, 'application/vnd.keys+json'],
      ['keys', SECRET, 'application/vnd.keys+json'],
    ]);
    upstream.on(PATHS.cenc, { status: 400, body: SECRET });
    await sidecar.api.post(PATH).send(PROVIDED).expect(502);
    expect(await sidecar.logText()).not.toContain(SECRET);
  });

  it.each([
    [
      401,
      {},
      502,
      'answered 401: it refused the headers of the file that PACKAGERDRMAPI_KEYPROVIDERHEADERS_FILE names; correct that file. No key file was changed.',
    ],
    [
      403,
      { clientApiKey: 'of-the-request' },
      422,
      'refused the API key of this client, or the headers of the file that PACKAGERDRMAPI_KEYPROVIDERHEADERS_FILE names. Check clientApiKey and that file.',
    ],
  ])('are what to look at when the provider answers %j to %j', async (status, named, expected, why) => {
    const { sidecar, upstream } = await startSpeke({
      dependencies: { providerHeaders: () => ({ 'x-key': SECRET }) },
    });
    upstream.on(SPEKE_PATH, { status, body: SECRET });
    const { body } = await sidecar.api
      .post(PATH)
      .send({ contentId: CONTENT_ID, ...named })
      .expect(expected);
    expect(body.errors[0].description).toBe(`The key provider ${why}`);
  });

  it('are in no log, error, metric or audit, even when the provider sends them back', async () => {
    const { sidecar, upstream } = await startSpeke({
      config: { audit: 'stdout' },
      dependencies: { providerHeaders: () => ({ 'x-key': SECRET }) },
    });
    const echo = {
      status: 400,
      headers: { 'x-error': SECRET, 'content-type': 'application/xml' },
      body: `<e>${SECRET}</e>`,
    };
    upstream.on(SPEKE_PATH, echo);
    const refused = await sidecar.api.post(PATH).send({ contentId: CONTENT_ID }).expect(502);
    upstream.on(SPEKE_PATH, { ...echo, status: 200 });
    const odd = await sidecar.api.post(PATH).send({ contentId: CONTENT_ID }).expect(502);
    upstream.on(SPEKE_PATH, reference());
    await sidecar.api.post(PATH).send({ contentId: CONTENT_ID }).expect(200);
    const metrics = await sidecar.unauthenticated.get('/metrics').expect(200);
    const page = await sidecar.unauthenticated.get('/openapi.json').expect(200);
    const texts = [refused.text, odd.text, metrics.text, page.text, await sidecar.logText()];
    expect(texts.filter((text) => text.includes(SECRET))).toEqual([]);
    expect(upstream.received.every(({ headers }) => headers['x-key'] === SECRET)).toBe(true);
  });
});
