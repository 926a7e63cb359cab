import { type PathItem, schemaRef } from './document';
import { operation } from './operation';

export const SERVICE_TAG = 'Service';

/** The routes that need no API key: probes, metrics, and the description itself. */
export function serviceOperations(): Record<string, PathItem> {
  return {
    '/healthz': { get: alive() },
    '/readyz': { get: ready() },
    '/metrics': { get: metrics() },
    '/openapi.json': { get: description() },
    '/docs': { get: page() },
  };
}

function alive() {
  return operation({
    method: 'get',
    path: '/healthz',
    operationId: 'isAlive',
    tag: SERVICE_TAG,
    summary: 'Is the process up?',
    description: 'For a liveness probe: answers as long as the process does.',
    access: 'probe',
    answers: { 200: { description: 'It is.', content: { 'application/json': schemaRef('Alive') } } },
    examples: {
      alive: { summary: 'Ask', answer: { status: 200, type: 'application/json', value: { status: 'ok' } } },
    },
    errors: [],
  });
}

function ready() {
  return operation({
    method: 'get',
    path: '/readyz',
    operationId: 'isReady',
    tag: SERVICE_TAG,
    summary: 'Could a key file be written now?',
    description:
      'For a readiness probe: writes and syncs a file in the key-file folder and removes it. Whatever is wrong with the folder, the status is 503.',
    access: 'probe',
    answers: { 200: { description: 'Yes.', content: { 'application/json': schemaRef('Ready') } } },
    examples: {
      ready: {
        summary: 'Ask',
        answer: { status: 200, type: 'application/json', value: { status: 'ready' } },
      },
    },
    errors: [
      [503, 'starting', 'key_files_not_writable', 'key_files_not_readable'],
      [503, 'insufficient_storage', 'too_many_open_files', 'server_error'],
    ],
  });
}

function metrics() {
  return operation({
    method: 'get',
    path: '/metrics',
    operationId: 'readMetrics',
    tag: SERVICE_TAG,
    summary: 'Figures for Prometheus',
    description:
      'Requests, durations, upstream calls, write phases, key files and failures, in the text format of Prometheus. No stream and no caller is named. Not there with `PACKAGERDRMAPI_METRICS=off`.',
    access: 'open',
    answers: {
      200: { description: 'The figures.', content: { 'text/plain': { type: 'string' } } },
    },
    examples: { metrics: { summary: 'Scrape', answer: { status: 200, type: 'text/plain' } } },
    errors: [[404, 'not_found']],
  });
}

function description() {
  return operation({
    method: 'get',
    path: '/openapi.json',
    operationId: 'describeApi',
    tag: SERVICE_TAG,
    summary: 'This description, for programs',
    description: 'The OpenAPI 3.1 document of this service.',
    access: 'open',
    answers: { 200: { description: 'The document.', content: { 'application/json': { type: 'object' } } } },
    examples: { document: { summary: 'Get it', answer: { status: 200, type: 'application/json' } } },
    errors: [],
  });
}

function page() {
  return operation({
    method: 'get',
    path: '/docs',
    operationId: 'showApi',
    tag: SERVICE_TAG,
    summary: 'This description, for people',
    description: 'The same as one page. It loads nothing from anywhere.',
    access: 'open',
    answers: { 200: { description: 'The page.', content: { 'text/html': { type: 'string' } } } },
    examples: { page: { summary: 'Get it', answer: { status: 200, type: 'text/html' } } },
    errors: [],
  });
}
