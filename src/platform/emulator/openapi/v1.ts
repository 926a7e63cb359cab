import * as z from 'zod';
import { type Answer, jsonSchema, parameter, type Schema, schemaRef } from '../../../http/openapi';
import { listParametersOf } from '../../migration/lists';
import { CUSTOM, parametersOf } from '../../migration/mapping/fields';
import { describeMapping, ROUTES, type RouteMapping } from '../../migration/mapping/routes';
import { field } from '../json-body';
import { capital } from '../resources/fields';
import { V1_ERRORS } from '../v1/errors';
import { FORMATS } from '../v1/serialize';
import { FORM_PATHS, RESUMABLE_PATH } from '../v1/upload-api';
import { answer, type Group, type Row, text } from './operation';

export const V1_SIGNATURE =
  'SHA-1, in hexadecimal, over all parameters but this one and the secret: names and values percent-encoded (RFC 3986), sorted by the encoded name, joined as `name=value` with `&`, followed by the secret. The secret is that of the site: `EMULATOR_API_SECRET`, unless `EMULATOR_V1_SECRET` is set.';

const PROTOCOL = {
  api_key: 'The id of the site.',
  api_timestamp: 'When the call is made, in seconds since 1970. Calls of more than 27 hours ago are refused.',
  api_nonce: 'Eight digits, different for each call.',
} as const;

const needed = (name: string, says: string, place: 'query' | 'header' = 'query') =>
  parameter(name, says, undefined, { in: place, required: true });

const OTHER = { type: 'string', description: 'The same in another format.' } as const;

const inFormats = (description: string, body: Schema | z.ZodType) =>
  answer(description, {
    'application/json': body,
    'application/xml': OTHER,
    'text/plain': OTHER,
    'application/octet-stream': OTHER,
  });

/** The errors of v1 as answers. @param others further statuses of refused bodies. */
function errorsAnd(...others: readonly number[]): Record<string, Answer> {
  const errors = Object.entries(V1_ERRORS);
  const statuses = new Set([...errors.map(([, { status }]) => status), ...others]);
  const answers = [...statuses].map((status) => {
    const lines = errors.flatMap(([code, error]) =>
      error.status === status ? [`\`${code}\`: ${error.title}`] : [],
    );
    const says = lines.join('\n\n') || 'The body is refused.';
    return [status, inFormats(says, schemaRef('V1Error'))] as const;
  });
  return Object.fromEntries(answers);
}

const CALL_ERRORS = errorsAnd(413);

function callRows(mapping: RouteMapping): Row[] {
  const { route, v2, resource, action } = mapping;
  const names = route.split('/').slice(2);
  const id = `v1${names.map(capital).join('')}`;
  const takesCustom = CUSTOM.includes(resource) && ['create', 'update'].includes(action);
  const custom = '\n\n`custom.<name>` sets a custom parameter, and `custom.-<name>` deletes it.';
  const description = `${describeMapping(mapping)}.${takesCustom ? custom : ''}`;
  const call = {
    summary: `${capital(names.join(' '))}${v2.length > 0 ? '' : ' (not supported)'}`,
    access: 'v1Signature',
    answers: v2.length > 0 ? { 200: answerOf(mapping) } : {},
    failures: CALL_ERRORS,
  } as const;
  return [
    { ...call, at: `GET ${route}`, id, description, parameters: parametersIn(mapping) },
    {
      ...call,
      at: `POST ${route}`,
      id: `${id}ByForm`,
      description: `${description}\n\nThe parameters are those of GET, and are all signed alike.`,
      body: { 'application/x-www-form-urlencoded': FORM },
    },
  ];
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

function parametersIn(mapping: RouteMapping) {
  const listed = listParametersOf(mapping);
  const places = new Map<string, string | undefined>(listed.map(({ v1 }) => [v1, undefined]));
  for (const { v1, request } of parametersOf(mapping)) places.set(v1, request);
  return [
    ...[...places].map(([name, place]) =>
      parameter(name, place === undefined ? 'As in v1.' : `In v2: \`${place}\`.`),
    ),
    ...Object.entries(PROTOCOL).map(([name, says]) => needed(name, says)),
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
  const schema = z.looseObject({
    status: status('ok'),
    ...answerFields(mapping),
    rate_limit: field(RateLimit, 'The rate limit of the site.'),
  });
  return inFormats('It is done.', schema);
}

export const V1_ERROR_SCHEMA = jsonSchema(
  field(
    z.object({
      status: status('error'),
      code: field(text, 'For programs.'),
      title: field(text, 'The code in words.'),
      message: field(text, 'For a person: the problem, and the remedy.'),
      rate_limit: field(RateLimit.optional(), 'The rate limit of the site, once that is known.'),
    }),
    'The error of a v1 call.',
  ),
);

const Keyed = z.looseObject({ key: field(text, 'Its key.') });

/** The fields of an answer in addition to `status` and `rate_limit`, with those of a file that is wanted. */
function answerFields({ resource, action }: RouteMapping): Readonly<Record<string, z.ZodType>> {
  const name = resource.split('_').at(-1) ?? '';
  if (action === 'list')
    return {
      limit: field(z.int(), 'How many are listed at most.'),
      offset: field(z.int(), 'How many before the first are left out.'),
      total: field(z.int(), 'How many there are.'),
      [`${name}s`]: field(z.array(Keyed), 'Those that were asked for.'),
    };
  if (action === 'show' && resource !== 'usage') return { [name]: field(Keyed, 'The resource.') };
  if (!['video', 'track', 'thumbnail'].includes(resource) || action === 'delete') return {};
  return {
    media: field(Keyed.optional(), 'The created resource, with its kind of content.'),
    link: field(z.looseObject({}).optional(), 'Where the file goes, when the call has asked for one.'),
    session_id: field(text.optional(), 'Needed to send the chunks of a large file.'),
  };
}

const FileAnswer = z.looseObject({
  status: status('ok'),
  media: field(z.looseObject({}).optional(), 'The resource of the file.'),
  file: field(
    z.looseObject({ size: field(text, 'Bytes.') }),
    'The file: its size, and its MD5 if it came at once.',
  ),
});

const KEY = needed('key', 'The key of the link.');
const ARRIVED = inFormats('The file has arrived.', FileAnswer);
const FILE_ERRORS = errorsAnd(408, 410, 413, 415, 507);

const formRow = (kind: string, path: string): Row => ({
  at: `POST ${path}`,
  id: `v1Upload${capital(kind)}`,
  summary: `Send the file of a ${kind} as a form`,
  description:
    'Takes the file that a call of v1 has asked for. The whole address is the `link` of its answer.',
  parameters: [KEY, needed('token', 'The secret of the link.'), API_FORMAT],
  body: {
    'multipart/form-data': {
      type: 'object',
      required: ['file'],
      properties: { file: { type: 'string', format: 'binary', description: 'The file.' } },
    },
  },
  answers: { 200: ARRIVED },
  failures: FILE_ERRORS,
});

const CHUNK: Row = {
  at: `POST ${RESUMABLE_PATH}`,
  id: 'v1UploadChunk',
  summary: 'Send a chunk of a large file',
  description:
    'Takes a large file in chunks, one after the other. The whole address is the `link` of the answer that asked for the file.',
  parameters: [
    KEY,
    API_FORMAT,
    needed('X-Session-ID', 'The `session_id` of the answer that asked for the file.', 'header'),
    needed('X-Content-Range', 'Which bytes these are, as `bytes 0-499/1000`.', 'header'),
  ],
  body: { 'application/octet-stream': { type: 'string', format: 'binary' } },
  answers: {
    200: ARRIVED,
    201: answer(
      'The chunk has arrived.',
      { 'text/plain': { type: 'string', description: 'Which bytes have arrived.' } },
      { range: { description: 'Which bytes have arrived.', schema: { type: 'string' } } },
    ),
  },
  failures: FILE_ERRORS,
};

export const V1: Group = {
  tag: 'Management API v1',
  says: 'The same resources under their old routes, each call with a signature.',
  rows: [
    ...ROUTES.flatMap(callRows),
    ...Object.entries(FORM_PATHS).map(([kind, path]) => formRow(kind, path)),
    CHUNK,
  ],
};
