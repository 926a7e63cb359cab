import type { OpenAPIV3_1 as OpenApi } from 'openapi-types';
import { fleetImportQuery, fleetStepQuery } from '../../api/fleet';
import { type Answer, type PathItem, parameter, queryParameters, schemaRef } from '../../http/openapi';
import { STREAM } from './examples';
import { type Example, pathItem } from './operation';

export const FLEET_TAG = 'Fleet';

const PATH = '/api/fleet';

/** In a fleet, every answer to an accepted change has it. */
export const REVISION_HEADER = {
  'x-fleet-revision': {
    description:
      "Only in a fleet: the revision of the fleet's engine from which on a packager has the change.",
    schema: { type: 'string', pattern: '^\\d+$' },
  },
} as const satisfies Record<string, OpenApi.HeaderObject>;

/** The answer 202, without its content. */
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

const READ_ERRORS = [
  'fleet_unavailable',
  'fleet_denied',
  'fleet_wrong_secret',
  'fleet_other',
  'fleet_lost',
] as const;
const ENGINE_ERRORS = [...READ_ERRORS, 'fleet_outcome_unknown', 'fleet_full'] as const;

/** The errors of a change of a key file in a fleet, in addition to those of any. */
export const FLEET_ERRORS = ['fleet_entry_unreadable', ...ENGINE_ERRORS] as const;

const TENANTS = "The API key must have no stream limits, because the answer has everyone's streams.";
const AND_WRITE = 'The API key must have no stream limits, and the right to write.';
const JSON_TYPE = 'application/json';

const COMMON = ['invalid_query', 'forbidden', 'fleet_not_configured'] as const;

const example = (summary: string, value?: object, query?: Example['query']): Example[] => [
  { summary, ...(query && { query }), answer: { type: JSON_TYPE, value } },
];

/** The state of the fleet of packagers, and what is done with all of them. */
export function fleetOperations(): Record<string, PathItem> {
  return {
    ...pathItem(PATH, FLEET_TAG, {
      get: {
        id: 'readFleet',
        summary: 'State of the fleet',
        description: `The membership state of this sidecar, the servers of the fleet's engine, and what every packager has and what is missing there. While the engine does not answer, it reports what is known here. ${TENANTS}`,
        content: { [JSON_TYPE]: schemaRef('Fleet') },
        errors: COMMON,
        examples: example('The fleet'),
      },
    }),
    ...pathItem(`${PATH}/{streamid}`, FLEET_TAG, {
      get: {
        id: 'readFleetStream',
        summary: 'Which packagers have the key file of a stream',
        description: `The state of a stream in the fleet, its last change, and which of the packagers that take it have it. It covers deleted streams, too. ${TENANTS}`,
        parameters: [
          parameter(
            'streamid',
            'The stream id, its slashes written as `%2F`.',
            { type: 'string', minLength: 1, maxLength: 200 },
            { in: 'path', required: true, example: STREAM },
          ),
        ],
        content: { [JSON_TYPE]: schemaRef('FleetStream') },
        errors: [...COMMON, 'invalid_stream_id', 'fleet_entry_not_found', ...READ_ERRORS],
        examples: example('Ask'),
      },
    }),
    ...pathItem(`${PATH}/import`, FLEET_TAG, {
      post: {
        id: 'importIntoFleet',
        summary: 'Import the key files of this packager into the fleet',
        description: `One step: key files of the folder here that the fleet does not hold become its key files. Neither entries of the fleet nor files here change; differences are reported. Ask again with \`after\` until \`next\` is \`null\`. It can be repeated safely. ${AND_WRITE}`,
        parameters: queryParameters(fleetImportQuery),
        content: { [JSON_TYPE]: schemaRef('FleetImport') },
        errors: [...COMMON, 'key_files_not_readable', 'too_many_open_files', ...ENGINE_ERRORS],
        examples: example(
          'The first step',
          { imported: 0, same: 1, refused: [], next: null, total: 1 },
          { limit: '100' },
        ),
      },
    }),
    ...pathItem(`${PATH}/reseal`, FLEET_TAG, {
      post: {
        id: 'resealFleet',
        summary: 'Seal the fleet with its new secret',
        description: `One step: entries sealed with a former secret are sealed with the first one of \`PACKAGERDRMAPI_FLEET_SECRET_FILE\`. Afterwards the former one can be removed from the file. No key file changes. Ask again with \`after\` until \`next\` is \`null\`. ${AND_WRITE}`,
        parameters: queryParameters(fleetStepQuery),
        content: { [JSON_TYPE]: schemaRef('FleetReseal') },
        errors: [...COMMON, ...ENGINE_ERRORS],
        examples: example(
          'The first step',
          { resealed: 1, current: 0, unreadable: [], next: null, total: 1 },
          { limit: '100' },
        ),
      },
    }),
    ...pathItem(`${PATH}/packagers/{name}`, FLEET_TAG, {
      delete: {
        id: 'retirePackager',
        summary: 'Retire a packager',
        description: `Removes a packager that no longer runs from the list of those that should have key files: no request waits for it any more. No key file is removed. One that comes back registers again. ${AND_WRITE}`,
        parameters: [
          parameter(
            'name',
            'The name of the packager, `PACKAGERDRMAPI_FLEET_NAME`.',
            { type: 'string', minLength: 1, maxLength: 64 },
            { in: 'path', required: true, example: 'origin-9' },
          ),
        ],
        content: { [JSON_TYPE]: schemaRef('FleetRetired') },
        errors: [...COMMON, 'packager_not_found', 'packager_live', ...READ_ERRORS, 'fleet_outcome_unknown'],
        examples: example('Retire it', { name: 'origin-9', retired: true }),
      },
    }),
  };
}
