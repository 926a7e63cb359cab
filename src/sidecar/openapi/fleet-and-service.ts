import type { OpenAPIV3_1 as OpenApi } from 'openapi-types';
import { fleetImportQuery, fleetStepQuery } from '../../api/fleet';
import { type Answer, parameter, queryParameters, type Schema } from '../../http/openapi';
import { STREAM } from './examples';
import { ETAG, IF_CHANGED, JSON_TYPE, json, NOT_MODIFIED, type Operations } from './operation';

export const REVISION_HEADER: Record<string, OpenApi.HeaderObject> = {
  'x-fleet-revision': {
    description:
      "Only in a fleet: the revision of the fleet's engine from which on a packager has the change.",
    schema: { type: 'string', pattern: '^\\d+$' },
  },
};

export const ACCEPTED: Answer = {
  description:
    'The fleet has accepted the change, and it is missing at some packagers. Each takes it as soon as it can.',
  headers: {
    Warning: {
      description:
        "Those of a 200, and: `fleet_behind` names up to ten packagers that have not received the change within the seconds of `wait`; `fleet_not_here`: the fleet has accepted the change, but it is missing next to this sidecar, since its folder could not be changed, which is tried again, or the file there is not the fleet's.",
      schema: { type: 'string' },
    },
    ...REVISION_HEADER,
  },
};

const ENGINE_READ_ERRORS = [
  ...(['fleet_unavailable', 'fleet_denied', 'fleet_wrong_secret'] as const),
  ...(['fleet_other', 'fleet_lost'] as const),
];
const ENGINE_ERRORS = [...ENGINE_READ_ERRORS, 'fleet_outcome_unknown', 'fleet_full'] as const;
export const FLEET_ERRORS = ['fleet_entry_unreadable', ...ENGINE_ERRORS] as const;
const COMMON = ['invalid_query', 'forbidden', 'fleet_not_configured'] as const;

const TENANTS = "The API key must have no stream limits, because the answer has everyone's streams.";
const AND_WRITE = 'The API key must have no stream limits, and the right to write.';

const pathParameter = (name: string, description: string, maxLength: number, example: string) =>
  parameter(
    name,
    description,
    { type: 'string', minLength: 1, maxLength },
    { in: 'path', required: true, example },
  );

export const FLEET: Operations = {
  'get /api/fleet': {
    id: 'readFleet',
    summary: 'State of the fleet',
    description: `The membership state of this sidecar, the servers of the fleet's engine, and what every packager has and what is missing there. While the engine does not answer, it reports what is known here. ${TENANTS}`,
    content: json('Fleet'),
    errors: COMMON,
    examples: [{ summary: 'The fleet' }],
  },
  'get /api/fleet/{streamid}': {
    id: 'readFleetStream',
    summary: 'Which packagers have the key file of a stream',
    description: `The state of a stream in the fleet, its last change, and which of the packagers that take it have it. It covers deleted streams, too. ${TENANTS}`,
    parameters: [pathParameter('streamid', 'The stream id, its slashes written as `%2F`.', 200, STREAM)],
    content: json('FleetStream'),
    errors: [...COMMON, 'fleet_entry_not_found', ...ENGINE_READ_ERRORS],
    examples: [{ summary: 'Ask' }],
  },
  'post /api/fleet/import': {
    id: 'importIntoFleet',
    summary: 'Import the key files of this packager into the fleet',
    description: `One step: key files of the folder here that the fleet does not hold become its key files. Neither entries of the fleet nor files here change; differences are reported. Ask again with \`after\` until \`next\` is \`null\`. It can be repeated safely. ${AND_WRITE}`,
    parameters: queryParameters(fleetImportQuery),
    content: json('FleetImport'),
    errors: [...COMMON, 'key_files_not_readable', 'too_many_open_files', ...ENGINE_ERRORS],
    examples: [
      {
        summary: 'The first step',
        query: { limit: '100' },
        answer: { type: JSON_TYPE, value: { imported: 0, same: 1, refused: [], next: null, total: 1 } },
      },
    ],
  },
  'post /api/fleet/reseal': {
    id: 'resealFleet',
    summary: 'Seal the fleet with its new secret',
    description: `One step: entries sealed with a former secret are sealed with the first one of \`PACKAGERDRMAPI_FLEET_SECRET_FILE\`. Afterwards the former one can be removed from the file. No key file changes. Ask again with \`after\` until \`next\` is \`null\`. ${AND_WRITE}`,
    parameters: queryParameters(fleetStepQuery),
    content: json('FleetReseal'),
    errors: [...COMMON, ...ENGINE_ERRORS],
    examples: [
      {
        summary: 'The first step',
        query: { limit: '100' },
        answer: {
          type: JSON_TYPE,
          value: { resealed: 1, current: 0, unreadable: [], next: null, total: 1 },
        },
      },
    ],
  },
  'delete /api/fleet/packagers/{name}': {
    id: 'retirePackager',
    summary: 'Retire a packager',
    description: `Removes a packager that no longer runs from the list of those that should have key files: no request waits for it any more. No key file is removed. One that comes back registers again. ${AND_WRITE}`,
    parameters: [
      pathParameter('name', 'The name of the packager, `PACKAGERDRMAPI_FLEET_NAME`.', 64, 'origin-9'),
    ],
    content: json('FleetRetired'),
    errors: [
      ...COMMON,
      'packager_not_found',
      'packager_live',
      ...ENGINE_READ_ERRORS,
      'fleet_outcome_unknown',
    ],
    examples: [
      { summary: 'Retire it', answer: { type: JSON_TYPE, value: { name: 'origin-9', retired: true } } },
    ],
  },
};

const NOT_READY = [
  ...(['starting', 'key_files_not_writable', 'key_files_not_readable', 'insufficient_storage'] as const),
  ...(['too_many_open_files', 'server_error', 'fleet_joining', 'fleet_name_taken'] as const),
  ...(['fleet_unavailable', 'fleet_denied', 'fleet_wrong_secret', 'fleet_missing_secret'] as const),
  ...(['fleet_other', 'fleet_lost'] as const),
].map((code) => ({ code, status: 503 }));

export const SERVICE: Operations = {
  'get /healthz': {
    id: 'isAlive',
    summary: 'Is the process up?',
    description: 'For a liveness probe.',
    access: 'probe',
    content: json('Alive'),
    examples: [{ summary: 'Ask', answer: { type: JSON_TYPE, value: { status: 'ok' } } }],
  },
  'get /readyz': {
    id: 'isReady',
    summary: 'Could a key file be written now?',
    description:
      'For a readiness probe: writes and syncs a file in the key-file folder and removes it. Every problem with the folder has the status 503. In a fleet it is 503, too, until the sidecar has received all key files of the fleet once. With an API key the answer also names the folder.',
    access: 'probe',
    content: json('Ready'),
    errors: NOT_READY,
    examples: [{ summary: 'Ask', answer: { type: JSON_TYPE, value: { status: 'ready' } } }],
  },
  'get /metrics': {
    id: 'readMetrics',
    summary: 'Metrics for Prometheus',
    description:
      'Requests, durations, upstream calls, write phases, key files and failures, in the text format of Prometheus, without names of streams and clients. Absent with `PACKAGERDRMAPI_METRICS=off`.',
    access: 'open',
    content: { 'text/plain': { type: 'string' } },
    errors: ['not_found'],
    examples: [{ summary: 'Scrape' }],
  },
  'get /openapi.json': page(
    'describeApi',
    'This description, for programs',
    'The OpenAPI 3.1 document of this service.',
    { [JSON_TYPE]: { type: 'object' } },
  ),
  'get /docs': page(
    'showApi',
    'This description, for people',
    'The same as a page, on which each request can be tried. It loads nothing from elsewhere, and forgets the API key when it is closed.',
  ),
  'get /fleet': page(
    'showFleet',
    'The fleet, for people',
    'A page that shows the answer of `GET /api/fleet`: [/fleet](fleet). It asks for an API key without stream limits, because it shows the streams of everyone, and forgets it when it is closed. It names what is wrong, and what to do about it.',
  ),
};

function page(
  id: string,
  summary: string,
  description: string,
  content: Readonly<Record<string, Schema>> = { 'text/html': { type: 'string' } },
) {
  return {
    ...{ id, summary, description, content, access: 'open' as const },
    ...{ parameters: [IF_CHANGED], headers: { ETag: ETAG }, answers: { 304: NOT_MODIFIED } },
    examples: [{ summary: 'Get it' }],
  };
}
