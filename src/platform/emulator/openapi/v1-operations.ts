import * as z from 'zod';
import {
  type Answer,
  type Answered,
  describeOperation,
  type Example,
  type Operation,
  type OperationOptions,
  type Schema,
  schemaRef,
} from '../../../http/openapi';
import { CUSTOM, parametersOf } from '../../migration/mapping/fields';
import { LIST_PARAMETERS } from '../../migration/mapping/lists';
import { describeMapping, ROUTES, type RouteMapping } from '../../migration/mapping/routes';
import { V1_ERRORS } from '../v1/errors';
import { FORMATS } from '../v1/serialize';
import { FORM_PATHS, RESUMABLE_PATH } from '../v1/upload-link';
import { type PathItem, type Seeded, URL_VARIABLE } from './operation';
import { jsonSchema } from './schemas';
import { answerFields, V1_EXAMPLES } from './v1-examples';

export const V1_TAG = 'Management API v1';

const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';
const FILE_FORM_TYPE = 'multipart/form-data';

/** Every route of v1: those that are mapped to v2, and where the files go. */
export function v1Operations(seeded: Seeded): Record<string, PathItem> {
  const calls = ROUTES.map((mapping) => [mapping.route, callOf(mapping, seeded)] as const);
  const forms = Object.entries(FORM_PATHS).map(
    ([kind, path]) => [path, { post: formOf(kind, path) }] as const,
  );
  return {
    ...Object.fromEntries(calls),
    ...Object.fromEntries(forms),
    [RESUMABLE_PATH]: { post: chunk() },
  };
}

/** How the calls of v1 are signed, for the description as a whole. */
export const V1_SIGNATURE =
  'SHA-1, in hexadecimal, over all parameters but this one and the secret: names and values percent-encoded (RFC 3986), sorted by the encoded name, joined as `name=value` with `&`, with the secret behind. The secret is that of the site: `EMULATOR_API_SECRET`, unless `EMULATOR_V1_SECRET` says otherwise.';

const PROTOCOL = {
  api_key: 'The id of the site.',
  api_timestamp: 'When the call is made, in seconds since 1970. Calls of more than 27 hours ago are refused.',
  api_nonce: 'Eight digits, another for each call.',
} as const;

type V1Code = keyof typeof V1_ERRORS;

const CALL_ERRORS: readonly V1Code[] = [
  'ApiKeyMissing',
  'ApiKeyInvalid',
  'TimestampMissing',
  'TimestampInvalid',
  'TimestampExpired',
  'NonceMissing',
  'NonceInvalid',
  'SignatureMissing',
  'SignatureInvalid',
  'CallInvalid',
  'PermissionDenied',
  'ParameterEncodingError',
  'ParameterInvalid',
  'ParameterMissing',
  'ParameterEmpty',
  'NotFound',
  'NotSupported',
  'ItemAlreadyExists',
  'FileSizeInvalid',
  'RateLimitExceeded',
  'InternalError',
];

const FILE_ERRORS: readonly V1Code[] = [
  'ParameterMissing',
  'ParameterInvalid',
  'PermissionDenied',
  'NotFound',
  'DigestInvalid',
  'FileUploadFailed',
  'FileSizeInvalid',
  'InternalError',
];

/** A call's parameters have 256 KiB at most. */
const TOO_LARGE = 413;

/** The statuses that a file may be refused with, beside those of the codes. */
const FILE_STATUSES = [408, 409, 410, TOO_LARGE, 415];

function errorsOf(codes: readonly V1Code[], statuses: readonly number[] = []): Record<string, Answered> {
  const all = [...new Set([...codes.map((code) => V1_ERRORS[code].status), ...statuses])].sort(
    (a, b) => a - b,
  );
  return Object.fromEntries(
    all.map((status) => {
      const own = codes.filter((code) => V1_ERRORS[code].status === status);
      const told = own.map((code) => `\`${code}\`: ${V1_ERRORS[code].title}`);
      const description = told.length > 0 ? told.join('\n\n') : 'The body is refused.';
      return [status, { description, content: { [JSON_TYPE]: { schema: schemaRef('V1Error') } } }];
    }),
  );
}

function callOf(mapping: RouteMapping, seeded: Seeded): PathItem {
  const { route, v2 } = mapping;
  const query = V1_EXAMPLES[route] ?? {};
  const isThere = v2.length > 0;
  const answer: Example['answer'] = { status: isThere ? 200 : 405, type: JSON_TYPE };
  const protocol = {
    api_key: seeded.siteId,
    api_timestamp: '$TIMESTAMP',
    api_nonce: '$NONCE',
    api_signature: '$SIGNATURE',
  };
  const words = route.split('/').slice(2);
  const id = words.map((word, place) => (place === 0 ? word : capital(word))).join('');
  const has = CUSTOM.includes(mapping.resource) && ['create', 'update'].includes(mapping.action);
  const told = {
    path: route,
    tag: V1_TAG,
    summary: isThere ? capital(words.join(' ')) : `${capital(words.join(' '))} (not supported)`,
    description: [
      `${describeMapping(mapping)}.`,
      ...(has ? ['`custom.<name>` sets a custom parameter, and `custom.-<name>` deletes it.'] : []),
    ].join('\n\n'),
    answers: isThere ? { 200: ok(mapping) } : {},
  };
  return {
    get: describe({
      ...told,
      method: 'get',
      operationId: `v1${capital(id)}`,
      parameters: parametersIn(mapping, seeded),
      examples: {
        call: { summary: 'A signed call', query: { ...query, ...protocol }, answer },
      },
    }),
    post: describe({
      ...told,
      method: 'post',
      operationId: `v1${capital(id)}ByForm`,
      description: `${told.description}\n\nThe parameters are those of GET, and are all signed alike.`,
      body: { [FORM_TYPE]: Form },
      examples: {
        call: {
          summary: 'A signed call with a form',
          body: { type: FORM_TYPE, value: { ...query, ...protocol } },
          answer,
        },
      },
    }),
  };
}

const Form: Schema = {
  type: 'object',
  description: 'The parameters of GET.',
  properties: {
    ...Object.fromEntries(
      Object.entries(PROTOCOL).map(([name, description]) => [name, { type: 'string', description }]),
    ),
    api_signature: { type: 'string', description: V1_SIGNATURE },
  },
  required: [...Object.keys(PROTOCOL), 'api_signature'],
  additionalProperties: { type: 'string' },
};

function describe(options: OperationOptions): Operation {
  return describeOperation(options, {
    security: [{ v1Signature: [] }],
    errors: errorsOf(CALL_ERRORS, [TOO_LARGE]),
    command: { urlVariable: URL_VARIABLE, headers: [] },
  });
}

function parametersIn(mapping: RouteMapping, { siteId }: Seeded) {
  const listed = mapping.action === 'list' ? (LIST_PARAMETERS[mapping.resource] ?? []) : [];
  const names = [...parametersOf(mapping), ...listed].map(({ v1 }) => v1);
  const parameter = (name: string, description: string, required: boolean, example?: string) => ({
    name,
    in: 'query',
    required,
    description,
    schema: { type: 'string' } as const,
    ...(example !== undefined && { example }),
  });
  const sentences = new Map(parametersOf(mapping).map(({ v1, request }) => [v1, request]));
  return [
    ...[...new Set(names)].map((name) => {
      const place = sentences.get(name);
      const says = place === undefined ? 'As in v1.' : `In v2: \`${place}\`.`;
      return parameter(name, says, false);
    }),
    ...Object.entries(PROTOCOL).map(([name, says]) =>
      parameter(name, says, true, name === 'api_key' ? siteId : undefined),
    ),
    {
      ...parameter('api_format', 'The format of the answer.', false),
      schema: { type: 'string' as const, enum: Object.keys(FORMATS), default: 'json' },
    },
  ];
}

const RateLimit = z.object({
  limit: z.int().meta({ description: 'How many calls a site may make in a minute.' }),
  remaining: z.int().meta({ description: 'How many of them are left.' }),
  reset: z.int().meta({ description: 'When there are all of them again, in seconds since 1970.' }),
});

const status = (value: 'ok' | 'error') => z.literal(value).meta({ description: 'How the call went.' });

function ok(mapping: RouteMapping): Answer {
  const schema = jsonSchema(
    z.object({
      status: status('ok'),
      ...answerFields(mapping),
      rate_limit: RateLimit.meta({ description: 'The rate limit of the site.' }),
    }),
  );
  const text: Schema = { type: 'string', description: 'The same in another format.' };
  return {
    description: 'It is done.',
    content: {
      [JSON_TYPE]: schema,
      'application/xml': text,
      'text/plain': text,
      'application/octet-stream': text,
    },
  };
}

/** The body of every error of v1. */
export const V1_ERROR_SCHEMA = jsonSchema(
  z
    .object({
      status: status('error'),
      code: z.string().meta({ description: 'For programs.' }),
      title: z.string().meta({ description: 'The code in words.' }),
      message: z.string().meta({ description: 'For a person: what is wrong, and what to do.' }),
      rate_limit: RateLimit.optional().meta({
        description: 'The rate limit of the site, once that is known.',
      }),
    })
    .meta({ description: 'What is wrong with a call of v1.' }),
);

const File = z.object({
  size: z.string().meta({ description: 'Bytes.' }),
  md5: z.string().optional().meta({ description: 'Its MD5 in hexadecimal.' }),
});

function fileAnswer(): Record<string, Schema> {
  const schema = z.object({
    status: status('ok'),
    media: z.looseObject({}).optional().meta({ description: 'What it is for.' }),
    video: z.looseObject({}).optional().meta({ description: 'The media that it is of.' }),
    track: z.looseObject({}).optional().meta({ description: 'The text track that it is of.' }),
    file: File.meta({ description: 'The file.' }),
  });
  return { [JSON_TYPE]: jsonSchema(schema) };
}

const linkParameter = (name: string, description: string, required: boolean) => ({
  name,
  in: 'query',
  required,
  description,
  schema: { type: 'string' } as const,
});

function fileOperation(options: Omit<OperationOptions, 'method' | 'tag'>): Operation {
  return describeOperation(
    { ...options, method: 'post', tag: V1_TAG },
    {
      security: [],
      errors: errorsOf([...FILE_ERRORS, 'PreconditionFailed'], [...FILE_STATUSES, 507]),
      command: { urlVariable: URL_VARIABLE, headers: [] },
    },
  );
}

function formOf(kind: string, path: string): Operation {
  return fileOperation({
    path,
    operationId: `v1Upload${capital(kind)}`,
    summary: `Send the file of a ${kind} as a form`,
    description:
      'Takes the file that a call of v1 has asked for. The whole address is the `link` of its answer.',
    parameters: [
      linkParameter('key', 'The key of the link.', true),
      linkParameter('token', 'The secret of the link.', true),
      linkParameter('api_format', 'The format of the answer.', false),
    ],
    body: {
      [FILE_FORM_TYPE]: {
        type: 'object',
        required: ['file'],
        properties: { file: { type: 'string', format: 'binary', description: 'The file.' } },
      },
    },
    answers: { 200: { description: 'The file is there.', content: fileAnswer() } },
    examples: {
      file: {
        summary: 'Send a file',
        query: { key: '$UPLOAD_ID', token: '$TOKEN' },
        body: { type: FILE_FORM_TYPE, value: { file: '@video.mp4' } },
        answer: { status: 200, type: JSON_TYPE },
      },
    },
  });
}

function chunk(): Operation {
  return fileOperation({
    path: RESUMABLE_PATH,
    operationId: 'v1UploadChunk',
    summary: 'Send a chunk of a large file',
    description:
      'Takes a large file in chunks, one behind the other. The whole address is the `link` of the answer that asked for the file.',
    parameters: [
      linkParameter('key', 'The key of the link.', true),
      linkParameter('api_format', 'The format of the answer.', false),
      {
        name: 'X-Session-ID',
        in: 'header',
        required: true,
        description: 'The `session_id` of the answer that asked for the file.',
        schema: { type: 'string' },
      },
      {
        name: 'X-Content-Range',
        in: 'header',
        required: true,
        description: 'Which bytes these are, as `bytes 0-499/1000`.',
        schema: { type: 'string' },
      },
    ],
    body: { 'application/octet-stream': { type: 'string', format: 'binary' } },
    answers: {
      200: { description: 'The file is there.', content: fileAnswer() },
      201: {
        description: 'The chunk is there.',
        headers: { range: { description: 'Which bytes are there.', schema: { type: 'string' } } },
        content: { 'text/plain': { type: 'string', description: 'Which bytes are there.' } },
      },
    },
    examples: {
      first: {
        summary: 'Send the first bytes',
        query: { key: '$UPLOAD_ID' },
        headers: { 'x-session-id': '$UPLOAD_TOKEN', 'x-content-range': 'bytes 0-17/36' },
        body: { type: 'application/octet-stream', value: '@video.mp4' },
        answer: { status: 201, type: 'text/plain', value: '0-17/36' },
      },
    },
  });
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
