import { schemaRef } from '../../http/openapi';
import { ETAG, IF_CHANGED, NOT_MODIFIED } from './key-file-operations';
import { operation, type PathItem } from './operation';

export const SERVICE_TAG = 'Service';

const FOLDER_ERRORS = [
  'key_files_not_writable',
  'key_files_not_readable',
  'insufficient_storage',
  'too_many_open_files',
  'server_error',
] as const;

/** Why a sidecar of a fleet should get no requests. */
const FLEET_ERRORS = [
  'fleet_joining',
  'fleet_name_taken',
  'fleet_unavailable',
  'fleet_denied',
  'fleet_wrong_secret',
  'fleet_other',
  'fleet_lost',
] as const;

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
      'For a readiness probe: writes and syncs a file in the key-file folder and removes it. Whatever is wrong with the folder, the status is 503. In a fleet it is 503, too, until the sidecar has had all key files of the fleet once. With an API key the answer tells, too, which folder it is.',
    access: 'probe',
    answers: { 200: { description: 'Yes.', content: { 'application/json': schemaRef('Ready') } } },
    examples: {
      ready: {
        summary: 'Ask',
        answer: { status: 200, type: 'application/json', value: { status: 'ready' } },
      },
    },
    errors: (['starting', ...FOLDER_ERRORS, ...FLEET_ERRORS] as const).map((code) => ({ code, status: 503 })),
  });
}

function metrics() {
  return operation({
    method: 'get',
    path: '/metrics',
    operationId: 'readMetrics',
    tag: SERVICE_TAG,
    summary: 'Metrics for Prometheus',
    description:
      'Requests, durations, upstream calls, write phases, key files and failures, in the text format of Prometheus. No stream and no client is named. Not there with `PACKAGERDRMAPI_METRICS=off`.',
    access: 'open',
    answers: {
      200: { description: 'The metrics.', content: { 'text/plain': { type: 'string' } } },
    },
    examples: { metrics: { summary: 'Scrape', answer: { status: 200, type: 'text/plain' } } },
    errors: ['not_found'],
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
    parameters: [IF_CHANGED],
    answers: {
      200: {
        description: 'The document.',
        headers: { ETag: ETAG },
        content: { 'application/json': { type: 'object' } },
      },
      304: NOT_MODIFIED,
    },
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
    description:
      'The same as a page, on which each request can be tried. It loads nothing from elsewhere, and forgets the API key when it is closed.',
    access: 'open',
    parameters: [IF_CHANGED],
    answers: {
      200: {
        description: 'The page.',
        headers: { ETag: ETAG },
        content: { 'text/html': { type: 'string' } },
      },
      304: NOT_MODIFIED,
    },
    examples: { page: { summary: 'Get it', answer: { status: 200, type: 'text/html' } } },
    errors: [],
  });
}
