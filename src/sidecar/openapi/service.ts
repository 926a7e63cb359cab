import { type PathItem, schemaRef } from '../../http/openapi';
import { ETAG, IF_CHANGED, NOT_MODIFIED } from './key-files';
import { type Described, pathItem } from './operation';

export const SERVICE_TAG = 'Service';
const JSON_TYPE = 'application/json';

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
    'fleet_missing_secret',
    'fleet_other',
    'fleet_lost',
  ] as const
).map((code) => ({ code, status: 503 }));

const PAGE = { 'text/html': { type: 'string' } } as const;

/** The routes that need no API key: probes, metrics, and the description itself. */
export function serviceOperations(): Record<string, PathItem> {
  return {
    ...probe('/healthz', {
      id: 'isAlive',
      summary: 'Is the process up?',
      description: 'For a liveness probe.',
      content: { [JSON_TYPE]: schemaRef('Alive') },
      errors: [],
      examples: [{ summary: 'Ask', answer: { type: JSON_TYPE, value: { status: 'ok' } } }],
    }),
    ...probe('/readyz', {
      id: 'isReady',
      summary: 'Could a key file be written now?',
      description:
        'For a readiness probe: writes and syncs a file in the key-file folder and removes it. Every problem with the folder has the status 503. In a fleet it is 503, too, until the sidecar has received all key files of the fleet once. With an API key the answer also names the folder.',
      content: { [JSON_TYPE]: schemaRef('Ready') },
      errors: NOT_READY,
      examples: [{ summary: 'Ask', answer: { type: JSON_TYPE, value: { status: 'ready' } } }],
    }),
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
    ...document('/openapi.json', {
      id: 'describeApi',
      summary: 'This description, for programs',
      description: 'The OpenAPI 3.1 document of this service.',
      content: { [JSON_TYPE]: { type: 'object' } },
    }),
    ...document('/docs', {
      id: 'showApi',
      summary: 'This description, for people',
      description:
        'The same as a page, on which each request can be tried. It loads nothing from elsewhere, and forgets the API key when it is closed.',
      content: PAGE,
    }),
    ...document('/fleet', {
      id: 'showFleet',
      summary: 'The fleet, for people',
      description:
        'A page that shows the answer of `GET /api/fleet`: [/fleet](fleet). It asks for an API key without stream limits, because it shows the streams of everyone, and forgets it when it is closed. It names what is wrong, and what to do about it.',
      content: PAGE,
    }),
  };
}

function probe(path: string, described: Described) {
  return pathItem(path, SERVICE_TAG, { get: { access: 'probe', ...described } });
}

function document(path: string, described: Omit<Described, 'errors' | 'examples'>) {
  const [type = ''] = Object.keys(described.content);
  const common = {
    ...{ access: 'open' as const, parameters: [IF_CHANGED], headers: { ETag: ETAG } },
    ...{ answers: { 304: NOT_MODIFIED }, errors: [], examples: [{ summary: 'Get it', answer: { type } }] },
  };
  return pathItem(path, SERVICE_TAG, { get: { ...described, ...common } });
}
