import type { Express, RequestHandler } from 'express';
import { onlyMethods } from '../../http/app';
import { etagOf } from '../key-files/etag';

export interface DescribeOptions {
  /** The version of the service. */
  readonly version: string;
}

/** What the routes answer, as it is sent. */
interface Prepared {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * `/openapi.json` and, of the same document, the page `/docs`. Without a key: they tell what the source does. Both are
 * made when they are first asked for.
 */
export function describeRoutes(app: Express, { version }: DescribeOptions): void {
  const documentOf = once(() => {
    // None of it is loaded at the start: it takes as long as a third of that.
    const { openApiDocument }: typeof import('./openapi') = require('./openapi');
    return openApiDocument(version);
  });
  const json = once(() =>
    prepare(JSON.stringify(documentOf()), { 'content-type': 'application/json; charset=utf-8' }),
  );
  const page = once(() => {
    const { docsPage, PAGE_POLICY }: typeof import('./page/docs-page') = require('./page/docs-page');
    return prepare(docsPage(documentOf()), {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': PAGE_POLICY,
    });
  });
  app.route('/openapi.json').get(answer(json)).all(onlyMethods('GET', 'HEAD'));
  app.route('/docs').get(answer(page)).all(onlyMethods('GET', 'HEAD'));
}

function answer(prepared: () => Prepared): RequestHandler {
  return (_request, response) => {
    const { bytes, etag, headers } = prepared();
    // Answers 304 to who has this entity tag.
    response.set({ ...headers, etag, 'cache-control': 'no-cache' }).send(bytes);
  };
}

function prepare(text: string, headers: Readonly<Record<string, string>>): Prepared {
  const bytes = Buffer.from(text, 'utf8');
  return { bytes, etag: etagOf(bytes), headers };
}

function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
