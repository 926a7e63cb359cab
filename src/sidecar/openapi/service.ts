import type { PathItem, Schema } from '../../http/openapi';
import { schemaRef } from '../../http/openapi';
import { ETAG, IF_CHANGED, NOT_MODIFIED } from './key-files';
import { type AnsweredError, pathItem } from './operation';

export const SERVICE_TAG = 'Service';

/** The reasons for which a sidecar should get no requests. */
const NOT_READY = (
  [
    'starting',
    'key_files_not_writable',
    'key_files_not_readable',
    'insufficient_storage',
    'too_many_open_files',
    'server_error',
    'fleet_joining',
    'fleet_name_taken',
    'fleet_unavailable',
    'fleet_denied',
    'fleet_wrong_secret',
    'fleet_other',
    'fleet_lost',
  ] as const
).map((code) => ({ code, status: 503 }));

/** The routes that need no API key: probes, metrics, and the description itself. */
export function serviceOperations(): Record<string, PathItem> {
  return {
    ...probe(
      '/healthz',
      'isAlive',
      'Is the process up?',
      'Alive',
      { status: 'ok' },
      [],
      'For a liveness probe.',
    ),
    ...probe(
      '/readyz',
      'isReady',
      'Could a key file be written now?',
      'Ready',
      { status: 'ready' },
      NOT_READY,
      'For a readiness probe: writes and syncs a file in the key-file folder and removes it. Every problem with the folder has the status 503. In a fleet it is 503, too, until the sidecar has received all key files of the fleet once. With an API key the answer also names the folder.',
    ),
    ...pathItem('/metrics', SERVICE_TAG, {
      get: {
        id: 'readMetrics',
        summary: 'Metrics for Prometheus',
        description:
          'Requests, durations, upstream calls, write phases, key files and failures, in the text format of Prometheus, without names of streams and clients. Absent with `PACKAGERDRMAPI_METRICS=off`.',
        access: 'open',
        content: { 'text/plain': { type: 'string' } },
        errors: ['not_found'],
        examples: [{ summary: 'Scrape', answer: { type: 'text/plain' } }],
      },
    }),
    ...document(
      '/openapi.json',
      'describeApi',
      'This description, for programs',
      'The OpenAPI 3.1 document of this service.',
      ['application/json', { type: 'object' }],
    ),
    ...document(
      '/docs',
      'showApi',
      'This description, for people',
      'The same as a page, on which each request can be tried. It loads nothing from elsewhere, and forgets the API key when it is closed.',
      PAGE,
    ),
    ...document(
      '/fleet',
      'showFleet',
      'The fleet, for people',
      'A page that shows the answer of `GET /api/fleet`: [/fleet](fleet). It asks for an API key that reaches all streams, and forgets it when it is closed. It names what is wrong, and what to do about it.',
      PAGE,
    ),
  };
}

const PAGE = ['text/html', { type: 'string' }] as const;

function probe(
  path: string,
  id: string,
  summary: string,
  schema: string,
  value: object,
  errors: readonly AnsweredError[],
  description: string,
) {
  return pathItem(path, SERVICE_TAG, {
    get: {
      id,
      summary,
      description,
      access: 'probe',
      content: { 'application/json': schemaRef(schema) },
      errors,
      examples: [{ summary: 'Ask', answer: { type: 'application/json', value } }],
    },
  });
}

function document(
  path: string,
  id: string,
  summary: string,
  description: string,
  [type, schema]: readonly [type: string, schema: Schema],
) {
  return pathItem(path, SERVICE_TAG, {
    get: {
      id,
      summary,
      description,
      access: 'open',
      parameters: [IF_CHANGED],
      headers: { ETag: ETAG },
      content: { [type]: schema },
      answers: { 304: NOT_MODIFIED },
      errors: [],
      examples: [{ summary: 'Get it', answer: { type } }],
    },
  });
}
