import fsPromises from 'node:fs/promises';
import { join } from 'node:path';
import fs from 'fs-extra';
import request from 'supertest';
import { createApp } from '../../src/http/app';
import { mountApiPage } from '../../src/http/page';
import { temporaryFolder } from '../support/after-test';
import { publicFolder } from '../support/public-folder';
import { recordedLog } from '../support/recorded-log';

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

it.each(PATHS)('answers %s without an API key, and 304 to who has it', async (path, type, policy) => {
  const service = described();
  const { headers } = await service.get(path).expect(200);
  const { 'content-type': answered, 'cache-control': cache, 'content-security-policy': csp, etag } = headers;
  expect([answered, cache, csp]).toEqual([type, 'no-cache', policy]);
  expect(etag).toMatch(/^"[\w-]{27}"$/);
  const again = await service.get(path).set('if-none-match', String(etag)).expect(304);
  expect(again.text).toBe('');
});

it('answers a HEAD without a body', async () => {
  const { headers, text } = await described().head('/docs').expect(200);
  expect([headers['content-type'], text]).toEqual(['text/html; charset=utf-8', undefined]);
});

it.each(['/openapi.json', '/docs', '/docs/docs.js'])('answers 405 to a POST of %s', async (path) => {
  const { headers, body } = await described().post(path).expect(405);
  expect([headers.allow, body.errors[0].code]).toEqual(['GET, HEAD', 'method_not_allowed']);
});

it('answers the document in full to who has that of another version', async () => {
  const { headers, text, body } = await described().get('/openapi.json');
  expect(body).toEqual(documentOf('1.2.3'));
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
