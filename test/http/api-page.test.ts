import fsPromises from 'node:fs/promises';
import { join } from 'node:path';
import fs from 'fs-extra';
import request from 'supertest';
import { mountApiPage } from '../../src/http/api-page';
import { createApp } from '../../src/http/app';
import { publicFolder } from '../support/public-folder';
import { recordedLog } from '../support/recorded-log';
import { temporaryFolder } from '../support/start-sidecar';

const documentOf = (version: string) => ({ openapi: '3.1.1', info: { title: 'A service', version } });

function described(version = '1.2.3', folder = publicFolder('sidecar'), makes: () => void = () => undefined) {
  const { log } = recordedLog();
  const shell = { log, newId: () => 'id', now: () => 0 };
  const document = async () => {
    makes();
    return documentOf(version);
  };
  return request(createApp(shell, (app) => mountApiPage(app, { document, publicFolder: folder })));
}

const API_POLICY = "default-src 'none';frame-ancestors 'none'";
const PAGE_POLICY =
  "default-src 'none';script-src 'self';style-src 'self';img-src 'self' data:;connect-src 'self';base-uri 'none';form-action 'none';frame-ancestors 'none'";

const PATHS = [
  ['/openapi.json', 'application/json; charset=utf-8', API_POLICY],
  ['/docs', 'text/html; charset=utf-8', PAGE_POLICY],
  ['/docs/colors.css', 'text/css; charset=utf-8', API_POLICY],
  ['/docs/docs.css', 'text/css; charset=utf-8', API_POLICY],
  ['/docs/docs.js', 'text/javascript; charset=utf-8', API_POLICY],
  ['/docs/icon.svg', 'image/svg+xml', API_POLICY],
  ['/docs/oat.min.css', 'text/css; charset=utf-8', API_POLICY],
  ['/docs/style.css', 'text/css; charset=utf-8', API_POLICY],
  ['/docs/swagger-ui.css', 'text/css; charset=utf-8', API_POLICY],
  ['/docs/swagger-ui-bundle.js', 'text/javascript; charset=utf-8', API_POLICY],
] as const;

it('reads a file of the page once, however many ask for it at the same time', async () => {
  const read = jest.spyOn(fsPromises, 'readFile');
  const service = described();
  const bundle = () => service.get('/docs/swagger-ui-bundle.js').expect(200);
  await Promise.all(Array.from({ length: 20 }, bundle));
  expect(read).toHaveBeenCalledTimes(1);
  read.mockRestore();
});

it('makes no document before it is asked for, and then one', async () => {
  const makes = jest.fn();
  const service = described('1.2.3', undefined, makes);
  await service.get('/docs').expect(200);
  expect(makes).not.toHaveBeenCalled();
  await service.get('/openapi.json').expect(200);
  await service.get('/openapi.json').expect(200);
  expect(makes).toHaveBeenCalledTimes(1);
});

describe.each(PATHS)('%s', (path, type, policy) => {
  it('is answered without an API key, to be asked for again each time', async () => {
    const { status, headers } = await described().get(path);
    const { 'content-type': answered, 'cache-control': cache, 'content-security-policy': csp } = headers;
    expect([status, answered, cache, csp]).toEqual([200, type, 'no-cache', policy]);
  });

  it('is answered with 304 to who has it', async () => {
    const service = described();
    const { headers } = await service.get(path);
    expect(headers.etag).toMatch(/^"[\w-]{27}"$/);
    const again = await service.get(path).set('if-none-match', String(headers.etag)).expect(304);
    expect(again.text).toBe('');
  });

  it('answers a HEAD without a body', async () => {
    const { headers, text } = await described().head(path).expect(200);
    expect([headers['content-type'], text]).toEqual([type, undefined]);
  });

  it.each(['post', 'put', 'delete', 'patch'] as const)('answers 405 to a %s', async (method) => {
    const answer = await described()[method](path).expect(405);
    const description = `This path accepts GET, HEAD, not ${method.toUpperCase()}.`;
    expect([answer.headers.allow, answer.body]).toEqual([
      'GET, HEAD',
      { errors: [{ code: 'method_not_allowed', description }] },
    ]);
  });
});

it('answers the document', async () => {
  const { body } = await described().get('/openapi.json');
  expect(body).toEqual(documentOf('1.2.3'));
});

it('answers the document in full to who has that of another version', async () => {
  const { headers, text } = await described().get('/openapi.json');
  const tag = String(headers.etag);
  const other = await described('1.2.4').get('/openapi.json').set('if-none-match', tag).expect(200);
  expect(other.text).toBe(text.replaceAll('1.2.3', '1.2.4'));
});

it('leads from the page with a slash at its end, where its relative addresses lead astray, to the page', async () => {
  const { headers } = await described().get('/docs/').expect(308);
  expect(new URL(String(headers.location), 'http://a/prefix/docs/').pathname).toBe('/prefix/docs');
});

it.each(['/docs/docs.html', '/docs/swagger-ui.js', '/docs/..%2f..%2fpackage.json', '/docs/%2e%2e/main.js'])(
  'answers 404 for %s, which is no part of the page',
  async (path) => {
    const { body } = await described().get(path).expect(404);
    expect(body).toEqual({
      errors: [{ code: 'not_found', description: 'There is nothing at this path.' }],
    });
  },
);

it('answers 500, and says in the log why, while a file of the page is missing; 200 once it is there', async () => {
  const folder = await temporaryFolder();
  const service = described('1.2.3', folder);
  const { body } = await service.get('/docs/docs.js').expect(500);
  expect(body.errors).toEqual([expect.objectContaining({ code: 'server_error' })]);
  await fs.writeFile(join(folder, 'docs.js'), '// a script');
  const { text } = await service.get('/docs/docs.js').expect(200);
  expect(text).toBe('// a script');
});
