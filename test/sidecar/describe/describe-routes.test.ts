import request from 'supertest';
import { createApp } from '../../../src/http/app';
import { describeRoutes } from '../../../src/sidecar/describe/describe-routes';
import { recordedLog } from '../../support/recorded-log';
import { DOCUMENT } from '../../support/start-described';

const mockLoaded: string[] = [];

jest.mock('../../../src/sidecar/describe/page/docs-page', () => {
  mockLoaded.push('page');
  return jest.requireActual('../../../src/sidecar/describe/page/docs-page');
});

function described(version = '1.2.3') {
  const { log } = recordedLog();
  const shell = { log, newId: () => 'id', now: () => 0 };
  return request(createApp(shell, (app) => describeRoutes(app, { version })));
}

const PATHS = [
  ['/openapi.json', 'application/json; charset=utf-8', "default-src 'none';frame-ancestors 'none'"],
  [
    '/docs',
    'text/html; charset=utf-8',
    expect.stringMatching(/^default-src 'none';style-src 'sha256-[^']+';img-src data:;/),
  ],
] as const;

it('makes nothing before it is asked for', async () => {
  const service = described();
  expect(mockLoaded).toEqual([]);
  await service.get('/docs').expect(200);
  expect(mockLoaded).toEqual(['page']);
});

describe.each(PATHS)('%s', (path, type, policy) => {
  it('is answered without an API key, to be asked for again each time', async () => {
    const { status, headers } = await described().get(path);
    const { 'content-type': answered, 'cache-control': cache, 'content-security-policy': csp } = headers;
    expect([status, answered, cache, csp]).toEqual([200, type, 'no-cache', policy]);
  });

  it('is answered with 304 to who has it, and in full once the version is another', async () => {
    const service = described();
    const { headers, text } = await service.get(path);
    expect(headers.etag).toMatch(/^"[\w-]{27}"$/);
    const again = await service.get(path).set('if-none-match', String(headers.etag)).expect(304);
    expect(again.text).toBe('');
    const other = await described('1.2.4').get(path).set('if-none-match', String(headers.etag)).expect(200);
    expect(other.text).toBe(text.replaceAll('1.2.3', '1.2.4'));
  });

  it('answers a HEAD without a body', async () => {
    const { headers, text } = await described().head(path).expect(200);
    expect([headers['content-type'], text]).toEqual([type, undefined]);
  });

  it.each(['post', 'put', 'delete', 'patch'] as const)('answers 405 to a %s', async (method) => {
    const answer = await described()[method](path).expect(405);
    const description = `This path takes GET, HEAD, not ${method.toUpperCase()}.`;
    expect([answer.headers.allow, answer.body]).toEqual([
      'GET, HEAD',
      { errors: [{ code: 'method_not_allowed', description }] },
    ]);
  });
});

it('answers the document', async () => {
  const { body } = await described().get('/openapi.json');
  expect(body).toEqual(JSON.parse(JSON.stringify(DOCUMENT)));
});
