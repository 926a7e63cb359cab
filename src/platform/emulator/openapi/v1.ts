import * as z from 'zod';
import {
  type Answer,
  contentOf,
  jsonContent,
  jsonSchema,
  type Operation,
  type PathItem,
  parameter,
  type Schema,
  schemaRef,
} from '../../../http/openapi';
import { CUSTOM, parametersOf } from '../../migration/mapping/fields';
import { LIST_PARAMETERS } from '../../migration/mapping/lists';
import { describeMapping, ROUTES, type RouteMapping, type V1Resource } from '../../migration/mapping/routes';
import { V1_ERRORS } from '../v1/errors';
import { FORMATS } from '../v1/serialize';
import { FORM_PATHS, RESUMABLE_PATH } from '../v1/upload-link';
import { field, type Seeded, text } from './operation';

export const V1_TAG = 'Management API v1';

/** Every route of v1: those that are mapped to v2, and where the files go. */
export function v1Operations({ siteId }: Seeded): Record<string, PathItem> {
  const calls = ROUTES.map((mapping) => [mapping.route, callOf(mapping, siteId)] as const);
  const forms = Object.entries(FORM_PATHS).map(([kind, path]) => [path, { post: formOf(kind) }] as const);
  return { ...Object.fromEntries([...calls, ...forms]), [RESUMABLE_PATH]: { post: chunk() } };
}

/** How the calls of v1 are signed, for the description as a whole. */
export const V1_SIGNATURE =
  'SHA-1, in hexadecimal, over all parameters but this one and the secret: names and values percent-encoded (RFC 3986), sorted by the encoded name, joined as `name=value` with `&`, followed by the secret. The secret is that of the site: `EMULATOR_API_SECRET`, unless `EMULATOR_V1_SECRET` is set.';

const PROTOCOL = {
  api_key: 'The id of the site.',
  api_timestamp: 'When the call is made, in seconds since 1970. Calls of more than 27 hours ago are refused.',
  api_nonce: 'Eight digits, different for each call.',
} as const;

type V1Code = keyof typeof V1_ERRORS;

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
const NOT_OF_CALLS: readonly V1Code[] = [
  'DigestInvalid',
  'FileUploadFailed',
  'PreconditionFailed',
  'CallUnavailable',
];
const CALL_ERRORS = (Object.keys(V1_ERRORS) as V1Code[]).filter((code) => !NOT_OF_CALLS.includes(code));

/** @param statuses with which a body is refused, beside those of the codes. */
function errorsOf(codes: readonly V1Code[], statuses: readonly number[]): Record<string, Answer> {
  const all = new Set([...codes.map((code) => V1_ERRORS[code].status), ...statuses]);
  const answers = [...all].map((status) => {
    const own = codes.filter((code) => V1_ERRORS[code].status === status);
    const lines = own.map((code) => `\`${code}\`: ${V1_ERRORS[code].title}`);
    const description = lines.join('\n\n') || 'The body is refused.';
    return [status, { description, content: jsonContent(schemaRef('V1Error')) }] as const;
  });
  return Object.fromEntries(answers);
}

function callOf(mapping: RouteMapping, siteId: string): PathItem {
  const { route, v2, resource, action } = mapping;
  const names = route.split('/').slice(2);
  const id = `v1${names.map(capital).join('')}`;
  const takesCustom = CUSTOM.includes(resource) && ['create', 'update'].includes(action);
  const summary = capital(names.join(' '));
  const description = [
    `${describeMapping(mapping)}.`,
    ...(takesCustom ? ['`custom.<name>` sets a custom parameter, and `custom.-<name>` deletes it.'] : []),
  ].join('\n\n');
  const call = {
    tags: [V1_TAG],
    summary: v2.length > 0 ? summary : `${summary} (not supported)`,
    security: [{ v1Signature: [] }],
    responses: { ...(v2.length > 0 && { 200: answerOf(mapping) }), ...errorsOf(CALL_ERRORS, [413]) },
  };
  return {
    get: { ...call, operationId: id, description, parameters: parametersIn(mapping, siteId) },
    post: {
      ...call,
      operationId: `${id}ByForm`,
      description: `${description}\n\nThe parameters are those of GET, and are all signed alike.`,
      parameters: [],
      requestBody: { required: true, content: contentOf({ 'application/x-www-form-urlencoded': FORM }) },
    },
  };
}

const FORM: Schema = {
  type: 'object',
  description: 'The parameters of GET.',
  properties: Object.fromEntries(
    Object.entries({ ...PROTOCOL, api_signature: V1_SIGNATURE }).map(([name, description]) => [
      name,
      { type: 'string', description },
    ]),
  ),
  required: [...Object.keys(PROTOCOL), 'api_signature'],
  additionalProperties: { type: 'string' },
};

const API_FORMAT = parameter('api_format', 'The format of the answer.', {
  type: 'string',
  enum: Object.keys(FORMATS),
  default: 'json',
});

function parametersIn(mapping: RouteMapping, siteId: string) {
  const listed = mapping.action === 'list' ? (LIST_PARAMETERS[mapping.resource] ?? []) : [];
  const places = new Map<string, string | undefined>(listed.map(({ v1 }) => [v1, undefined]));
  for (const { v1, request } of parametersOf(mapping)) places.set(v1, request);
  return [
    ...[...places].map(([name, place]) =>
      parameter(name, place === undefined ? 'As in v1.' : `In v2: \`${place}\`.`),
    ),
    ...Object.entries(PROTOCOL).map(([name, says]) =>
      parameter(
        name,
        says,
        { type: 'string' },
        {
          required: true,
          ...(name === 'api_key' && { example: siteId }),
        },
      ),
    ),
    API_FORMAT,
  ];
}

const RateLimit = z.object({
  limit: field(z.int(), 'How many calls a site may make in a minute.'),
  remaining: field(z.int(), 'How many of them are left.'),
  reset: field(z.int(), 'When there are all of them again, in seconds since 1970.'),
});
const status = (value: 'ok' | 'error') => field(z.literal(value), 'How the call went.');

function answerOf(mapping: RouteMapping): Answer {
  const schema = z.object({
    status: status('ok'),
    ...answerFields(mapping),
    rate_limit: field(RateLimit, 'The rate limit of the site.'),
  });
  const other: Schema = { type: 'string', description: 'The same in another format.' };
  return {
    description: 'It is done.',
    content: contentOf({
      'application/json': jsonSchema(schema),
      'application/xml': other,
      'text/plain': other,
      'application/octet-stream': other,
    }),
  };
}

/** The body of every error of v1. */
export const V1_ERROR_SCHEMA = jsonSchema(
  field(
    z.object({
      status: status('error'),
      code: field(text, 'For programs.'),
      title: field(text, 'The code in words.'),
      message: field(text, 'For a person: what is wrong, and what to do.'),
      rate_limit: field(RateLimit.optional(), 'The rate limit of the site, once that is known.'),
    }),
    'What is wrong with a call of v1.',
  ),
);

/** The names in answers of the resources that have another name there. */
const NAMES: Partial<Readonly<Record<V1Resource, string>>> = { channel_video: 'video', video_tag: 'tag' };

const Keyed = z.looseObject({ key: field(text, 'Its key.') });

/** The fields of an answer beside `status` and `rate_limit`. */
function answerFields({ resource, action }: RouteMapping): Readonly<Record<string, z.ZodType>> {
  const name = NAMES[resource] ?? resource;
  if (resource === 'usage')
    return {
      account: field(Keyed, 'The site.'),
      start_date: field(text, 'The first day.'),
      end_date: field(text, 'The last day.'),
      usage: field(z.array(z.looseObject({})), 'What was used, day by day.'),
    };
  if (action === 'list')
    return {
      limit: field(z.int(), 'How many are listed at most.'),
      offset: field(z.int(), 'How many before the first are left out.'),
      total: field(z.int(), 'How many there are.'),
      [`${name}s`]: field(z.array(Keyed), 'Those that were asked for.'),
    };
  if (action === 'show') return { [name]: field(Keyed, 'What was asked for.') };
  if (['video', 'track', 'thumbnail'].includes(resource) && action !== 'delete')
    return {
      media: field(Keyed.optional(), 'What was created, and which kind of content it is.'),
      video: field(Keyed.optional(), 'The media.'),
      link: field(z.looseObject({}).optional(), 'Where the file goes, when the call has asked for one.'),
      session_id: field(text.optional(), 'What the chunks of a large file are sent with.'),
      ...(resource === 'track' && { track: field(Keyed.optional(), 'The text track.') }),
    };
  return action === 'create' && resource !== 'channel_video'
    ? { [name]: field(Keyed, 'What was created.') }
    : {};
}

const FileAnswer = z.object({
  status: status('ok'),
  media: field(z.looseObject({}).optional(), 'What it is for.'),
  video: field(z.looseObject({}).optional(), 'The media that it is of.'),
  track: field(z.looseObject({}).optional(), 'The text track that it is of.'),
  file: field(
    z.object({
      size: field(text, 'Bytes.'),
      md5: field(text.optional(), 'Its MD5 in hexadecimal.'),
    }),
    'The file.',
  ),
});

const KEY = parameter('key', 'The key of the link.', { type: 'string' }, { required: true });
const ARRIVED: Answer = {
  description: 'The file has arrived.',
  content: jsonContent(jsonSchema(FileAnswer)),
};

type Sent = Pick<Operation, 'operationId' | 'summary' | 'description' | 'parameters' | 'responses'>;

const fileOperation = (sent: Sent, type: string, schema: Schema): Operation => ({
  ...sent,
  tags: [V1_TAG],
  security: [],
  requestBody: { required: true, content: contentOf({ [type]: schema }) },
  responses: {
    ...sent.responses,
    ...errorsOf([...FILE_ERRORS, 'PreconditionFailed'], [408, 409, 410, 413, 415, 507]),
  },
});

function formOf(kind: string): Operation {
  const token = parameter('token', 'The secret of the link.', { type: 'string' }, { required: true });
  return fileOperation(
    {
      operationId: `v1Upload${capital(kind)}`,
      summary: `Send the file of a ${kind} as a form`,
      description:
        'Takes the file that a call of v1 has asked for. The whole address is the `link` of its answer.',
      parameters: [KEY, token, API_FORMAT],
      responses: { 200: ARRIVED },
    },
    'multipart/form-data',
    {
      type: 'object',
      required: ['file'],
      properties: { file: { type: 'string', format: 'binary', description: 'The file.' } },
    },
  );
}

function chunk(): Operation {
  const header = (name: string, says: string) =>
    parameter(name, says, { type: 'string' }, { in: 'header', required: true });
  return fileOperation(
    {
      operationId: 'v1UploadChunk',
      summary: 'Send a chunk of a large file',
      description:
        'Takes a large file in chunks, one after the other. The whole address is the `link` of the answer that asked for the file.',
      parameters: [
        KEY,
        API_FORMAT,
        header('X-Session-ID', 'The `session_id` of the answer that asked for the file.'),
        header('X-Content-Range', 'Which bytes these are, as `bytes 0-499/1000`.'),
      ],
      responses: {
        200: ARRIVED,
        201: {
          description: 'The chunk has arrived.',
          headers: { range: { description: 'Which bytes have arrived.', schema: { type: 'string' } } },
          content: contentOf({ 'text/plain': { type: 'string', description: 'Which bytes have arrived.' } }),
        },
      },
    },
    'application/octet-stream',
    { type: 'string', format: 'binary' },
  );
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
