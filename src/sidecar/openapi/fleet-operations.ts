import type { OpenAPIV3_1 as OpenApi } from 'openapi-types';
import type { FleetAnswer, FleetPackager, FleetStreamAnswer } from '../../api/fleet';
import { MAX_FLEET_STEP, MAX_WAIT_SECONDS } from '../../api/fleet';
import { type Answer, schemaRef } from '../../http/openapi';
import { fileOf, STREAM, SUPPLIED, tagOf } from './examples';
import { type AnsweredError, operation, type PathItem } from './operation';

export const FLEET_TAG = 'Fleet';

const PATH = '/api/fleet';

/** `?wait=` of requests that change key files. */
export const WAIT: OpenApi.ParameterObject = {
  name: 'wait',
  in: 'query',
  required: false,
  description:
    'Only in a fleet of packagers: for so many seconds the answer waits until every registered packager that takes the stream has the change. It is 200 when all have it, else 202 with a `Warning` that names who has not. A dry run does not wait.',
  schema: { type: 'integer', minimum: 1, maximum: MAX_WAIT_SECONDS },
};

/** In a fleet, every answer to an accepted change has it. */
export const REVISION_HEADER = {
  'x-fleet-revision': {
    description:
      "Only in a fleet: the revision of the fleet's engine from which on a packager has the change.",
    schema: { type: 'string', pattern: '^\\d+$' },
  },
} as const satisfies Record<string, OpenApi.HeaderObject>;

/** Of an answer 202. */
const BEHIND_WARNING: OpenApi.HeaderObject = {
  description:
    "What the warnings of a 200 are, and: `fleet_behind` names up to ten packagers that have not got the change within the seconds of `wait`; `fleet_not_here` when the fleet has accepted the change and it is not made beside this sidecar: its folder could not be changed, which is tried again, or the file there is not the fleet's.",
  schema: { type: 'string' },
};

const BEHIND =
  'The fleet has accepted the change, and not every packager has it that should. Each takes it as soon as it can.';

/** The answer 202 in place of a 200. */
export function acceptedAnswer({ headers, content, description = '' }: Partial<Answer>): Answer {
  return {
    description: `${description} ${BEHIND}`.trimStart(),
    headers: { ...headers, Warning: BEHIND_WARNING, ...REVISION_HEADER },
    ...(content && { content }),
  };
}

/** What a change of a key file is refused with in a fleet, beside the errors of any. */
export const FLEET_ERRORS = [
  'fleet_entry_unreadable',
  'fleet_unavailable',
  'fleet_denied',
  'fleet_wrong_secret',
  'fleet_other',
  'fleet_lost',
  'fleet_outcome_unknown',
  'fleet_full',
] as const satisfies readonly AnsweredError[];

const ENGINE_ERRORS = FLEET_ERRORS.filter((code) => code !== 'fleet_entry_unreadable');
const READ_ERRORS = ENGINE_ERRORS.filter((code) => code !== 'fleet_outcome_unknown' && code !== 'fleet_full');

const TENANTS =
  'It shows the stream ids of all tenants: the API key must not be limited to some streams (`streams`).';

const ALL_TENANTS: AnsweredError = {
  code: 'forbidden',
  says: 'The API key site-a reaches some streams only, and the fleet tells of all. Use another API key, or have its rights changed in the file of API keys.',
};
const UNKNOWN_PARAMETER: AnsweredError = {
  code: 'invalid_query',
  says: 'prefix is not a parameter of this request.',
};

/** The state of the fleet of packagers, and what is done with all of them. */
export function fleetOperations(): Record<string, PathItem> {
  return {
    [PATH]: { get: status() },
    [`${PATH}/{streamid}`]: { get: whereIs() },
    [`${PATH}/import`]: { post: importing() },
    [`${PATH}/reseal`]: { post: resealing() },
    [`${PATH}/packagers/{name}`]: { delete: retire() },
  };
}

/** The time of all examples. */
const TIME = '2030-06-01T12:00:00.000Z';
const MEMBER: FleetPackager = {
  name: 'origin-1',
  live: true,
  streams: null,
  since: TIME,
  version: '1.2.3',
  state: 'level',
  applied: 2,
  reported: TIME,
  behind: 0,
  behind_seconds: 0,
  lacks: [],
  lacking: 0,
  clock_ahead_ms: 12,
  propagation_ms: [21.5],
};

const STATUS: FleetAnswer = {
  name: 'origin-1',
  fleet: '5b1f2a52-6f0e-4a0f-9d0c-3f4d2b1a0c9e',
  state: 'level',
  since: TIME,
  revision: 2,
  engine: [
    {
      url: 'http://etcd-1:2379',
      version: '3.4.23',
      leader: true,
      size: 24_576,
      size_in_use: 16_384,
      quota: 2_147_483_648,
      alarms: [],
    },
  ],
  compacted: true,
  streams: 1,
  deleted: 0,
  missing: 0,
  packagers: [
    MEMBER,
    {
      ...MEMBER,
      name: 'origin-9',
      live: false,
      applied: 1,
      behind: 1,
      behind_seconds: 1,
      lacks: [{ streamid: STREAM, why: 'behind' }],
      lacking: 1,
      propagation_ms: [],
    },
  ],
};

function status() {
  return operation({
    method: 'get',
    path: PATH,
    operationId: 'readFleet',
    tag: FLEET_TAG,
    summary: 'State of the fleet',
    description: `How this sidecar is with its fleet, how the servers of the fleet's engine are, and what every packager has and lacks. It is answered, too, while the engine is away, with what is known here. ${TENANTS}`,
    answers: {
      200: { description: 'The fleet.', content: { 'application/json': schemaRef('Fleet') } },
    },
    examples: {
      fleet: {
        summary: 'The fleet',
        answer: { status: 200, type: 'application/json', value: STATUS },
      },
    },
    errors: [UNKNOWN_PARAMETER, ALL_TENANTS, 'fleet_not_configured'],
  });
}

function whereIs() {
  const answer: FleetStreamAnswer = {
    streamid: STREAM,
    revision: 2,
    state: 'file',
    etag: tagOf(fileOf(SUPPLIED)),
    changed: TIME,
    key: 'default',
    from: 'origin-1',
    packagers: [
      { name: 'origin-1', live: true, has: true },
      { name: 'origin-9', live: false, has: false, why: 'behind' },
    ],
  };
  return operation({
    method: 'get',
    path: `${PATH}/{streamid}`,
    operationId: 'readFleetStream',
    tag: FLEET_TAG,
    summary: 'Who has the key file of a stream',
    description: `What the fleet holds of a stream, who changed it last, and which of the packagers that take it have it. A deleted stream is told of, too. ${TENANTS}`,
    parameters: [
      {
        name: 'streamid',
        in: 'path',
        required: true,
        description: 'The stream id, its slashes written as `%2F`.',
        schema: { type: 'string', minLength: 1, maxLength: 200 },
        example: STREAM,
      },
    ],
    answers: {
      200: { description: 'Where it is.', content: { 'application/json': schemaRef('FleetStream') } },
    },
    examples: {
      stream: {
        summary: 'Ask',
        answer: { status: 200, type: 'application/json', value: answer },
      },
    },
    errors: [
      'invalid_stream_id',
      UNKNOWN_PARAMETER,
      ALL_TENANTS,
      'fleet_not_configured',
      'fleet_entry_not_found',
      ...READ_ERRORS,
    ],
  });
}

const AFTER: OpenApi.ParameterObject = {
  name: 'after',
  in: 'query',
  required: false,
  description: 'The `next` of the step before; left out for the first one.',
  schema: { type: 'string', maxLength: 200 },
};

const LIMIT: OpenApi.ParameterObject = {
  name: 'limit',
  in: 'query',
  required: false,
  description: 'How many streams a step goes through at most.',
  schema: { type: 'integer', minimum: 1, maximum: MAX_FLEET_STEP, default: MAX_FLEET_STEP },
};

const WRONG_LIMIT: AnsweredError = {
  code: 'invalid_query',
  says: `limit: must be from 1 to ${MAX_FLEET_STEP}`,
};

function importing() {
  return operation({
    method: 'post',
    path: `${PATH}/import`,
    operationId: 'importIntoFleet',
    tag: FLEET_TAG,
    summary: 'Import the key files of this packager into the fleet',
    description:
      'One step: of the key files in the folder here, those of which the fleet holds nothing become its key files. Nothing that the fleet holds is changed, and no file here: what differs is told of. Ask again with `after` until `next` is `null`. It can be repeated safely. The API key must reach all streams, and write.',
    parameters: [
      AFTER,
      LIMIT,
      {
        name: 'found',
        in: 'query',
        required: false,
        description:
          "`true`, with the first step: the engine has lost the fleet, and it is founded again. Refused while the fleet is there, and while another one is. Restore the engine's backup instead, if there is one.",
        schema: { type: 'string', enum: ['true', 'false'], default: 'false' },
      },
    ],
    answers: {
      200: {
        description: 'What became of the key files of this step.',
        content: { 'application/json': schemaRef('FleetImport') },
      },
    },
    examples: {
      step: {
        summary: 'The first step',
        query: { limit: '100' },
        answer: {
          status: 200,
          type: 'application/json',
          value: { imported: 0, same: 1, refused: [], next: null, total: 1 },
        },
      },
    },
    errors: [
      WRONG_LIMIT,
      ALL_TENANTS,
      'fleet_not_configured',
      'key_files_not_readable',
      'too_many_open_files',
      ...ENGINE_ERRORS,
    ],
  });
}

function resealing() {
  return operation({
    method: 'post',
    path: `${PATH}/reseal`,
    operationId: 'resealFleet',
    tag: FLEET_TAG,
    summary: 'Seal the fleet with its new secret',
    description:
      'One step: what is sealed with a former secret is sealed with the first one of `PACKAGERDRMAPI_FLEET_SECRET_FILE`. Afterwards the former one can be removed from the file. No key file changes. Ask again with `after` until `next` is `null`. The API key must reach all streams, and write.',
    parameters: [AFTER, LIMIT],
    answers: {
      200: {
        description: 'What became of the entries of this step.',
        content: { 'application/json': schemaRef('FleetReseal') },
      },
    },
    examples: {
      step: {
        summary: 'The first step',
        query: { limit: '100' },
        answer: {
          status: 200,
          type: 'application/json',
          value: { resealed: 1, current: 0, unreadable: [], next: null, total: 1 },
        },
      },
    },
    errors: [WRONG_LIMIT, ALL_TENANTS, 'fleet_not_configured', ...ENGINE_ERRORS],
  });
}

function retire() {
  return operation({
    method: 'delete',
    path: `${PATH}/packagers/{name}`,
    operationId: 'retirePackager',
    tag: FLEET_TAG,
    summary: 'Retire a packager',
    description:
      'Removes a packager that no longer runs from the list of those that should have key files: nobody waits for it any more. No key file is removed. One that comes back registers again. The API key must reach all streams, and write.',
    parameters: [
      {
        name: 'name',
        in: 'path',
        required: true,
        description: 'The name of the packager, `PACKAGERDRMAPI_FLEET_NAME`.',
        schema: { type: 'string', minLength: 1, maxLength: 64 },
        example: 'origin-9',
      },
    ],
    answers: {
      200: { description: 'It is retired.', content: { 'application/json': schemaRef('FleetRetired') } },
    },
    examples: {
      retired: {
        summary: 'Retire it',
        answer: { status: 200, type: 'application/json', value: { name: 'origin-9', retired: true } },
      },
    },
    errors: [
      { code: 'invalid_query', says: 'force is not a parameter of this request. Nothing was changed.' },
      ALL_TENANTS,
      'fleet_not_configured',
      'packager_not_found',
      'packager_live',
      ...ENGINE_ERRORS.filter((code) => code !== 'fleet_full'),
    ],
  });
}
