import { type JsonSchema, type PathItem, schemaRef } from './document';
import { type Example, operation } from './operation';
import {
  DRY_RUN,
  ETAG,
  IF_CHANGED,
  IF_MATCH,
  IF_NONE_MATCH,
  KEEP_UNKNOWN,
  STREAM_ID,
  WARNING,
} from './parameters';
import {
  CHANGED,
  COMPUTED,
  dryRunOf,
  EXISTING,
  FOR_CMAF,
  FROM_PROVIDER,
  fileOf,
  linesOf,
  providedFile,
  SUPPLIED,
  tagOf,
  WITH_UNKNOWN,
} from './samples-wire';

const NO_ENTITY_TAG = [
  'invalid_header',
  'If-Match must be * or entity tags in their quotes, as they came: If-Match: "…". Nothing was changed.',
] as const;

export const KEY_FILES_TAG = 'Key files';

const PATH = '/api/keyfile/{streamid}';
const TEXT: JsonSchema = { type: 'string', description: 'Lines `name: value`, each ended by a line feed.' };
const LINES: JsonSchema = {
  type: 'string',
  description:
    'An existing key file: lines `name: value` in UTF-8. Line ends, a byte order mark, blanks around a line, empty lines and `#` comments are no matter; comments are not kept.',
};
const FILE = { 'text/plain': TEXT, 'application/json': schemaRef('KeyFile') };

/** GET, POST and DELETE of a stream's key file. */
export function keyFileOperations(): Record<string, PathItem> {
  return { [PATH]: { get: read(), post: write(), delete: remove() } };
}

function read() {
  const file = fileOf(SUPPLIED);
  return operation({
    method: 'get',
    path: PATH,
    operationId: 'readKeyFile',
    tag: KEY_FILES_TAG,
    summary: 'Read a key file',
    description:
      'The key file of a stream, byte for byte. A client that would rather have JSON (`accept: application/json`) gets its lines. HEAD answers the headers alone.',
    parameters: [STREAM_ID, IF_CHANGED],
    answers: {
      200: { description: 'The key file.', headers: { ETag: ETAG }, content: FILE },
      304: { description: 'The file still has the entity tag of `If-None-Match`.', headers: { ETag: ETAG } },
    },
    examples: {
      file: { summary: 'The file', answer: { status: 200, type: 'text/plain', value: file } },
      lines: {
        summary: 'Its lines as JSON',
        headers: { accept: 'application/json' },
        answer: { status: 200, type: 'application/json', value: linesOf(file) },
      },
      unchanged: {
        summary: 'Only when it has changed',
        headers: { 'if-none-match': tagOf(file) },
        answer: { status: 304 },
      },
    },
    errors: [
      [400, 'invalid_stream_id'],
      [403, 'forbidden'],
      [404, 'key_file_not_found'],
      [409, 'not_a_key_file', 'key_file_malformed'],
      [500, 'key_files_not_readable'],
      [503, 'too_many_open_files'],
    ],
  });
}

function write() {
  return operation({
    method: 'post',
    path: PATH,
    operationId: 'writeKeyFile',
    tag: KEY_FILES_TAG,
    summary: 'Write a key file',
    description:
      'Creates or replaces the key file of a stream. A body with `cenc` or `fairplay` supplies the keys itself; any other names a content, whose keys are fetched from the key provider. The lines of an existing key file (`text/plain`, or `keyfile` in JSON) are taken over: no value becomes another, and lines that this service would not write so are kept as they are. A packager finds the old file whole or the new one whole; when anything fails, the old one stays. The packager reads a key file when the stream starts, so a change shows at the next start.',
    parameters: [STREAM_ID, DRY_RUN, KEEP_UNKNOWN, IF_MATCH, IF_NONE_MATCH],
    body: { 'application/json': schemaRef('KeyFileRequest'), 'text/plain': LINES },
    answers: {
      200: {
        description: 'The key file as it was written, or what a dry run tells.',
        headers: { ETag: ETAG, Warning: WARNING },
        content: {
          'text/plain': {
            ...TEXT,
            description: `${TEXT.description} Of a dry run a diff: \`+\` before what comes, \`-\` before what goes.`,
          },
          'application/json': { oneOf: [schemaRef('KeyFile'), schemaRef('DryRun')] },
        },
      },
    },
    examples: { ...writing(), ...dryRuns() },
    errors: [
      [
        400,
        ...(['invalid_body', 'unknown_field', 'unknown_line', 'malformed_json'] as const),
        ...(['key_id_byte_order', 'checksum_mismatch', 'key_and_key_id_swapped', 'all_zero'] as const),
        ...(['session_id_in_address', 'escaped_ampersand', 'unknown_scheme'] as const),
        ...(['missing_line', 'wrong_constant', 'checksum_with_aescbc'] as const),
        ...(['cmaf_disagrees', 'no_lines'] as const),
        ...(['invalid_stream_id', 'invalid_query'] as const),
        NO_ENTITY_TAG,
      ],
      [403, 'forbidden'],
      [409, 'not_a_key_file', 'key_file_malformed'],
      [412, 'precondition_failed'],
      [413, 'body_too_large'],
      [
        415,
        [
          'unsupported_media_type',
          'Send the body as JSON, with content-type: application/json, or the lines of a key file as text/plain.',
        ],
      ],
      [422, 'client_unknown', 'client_api_key_refused'],
      [500, 'key_files_not_writable', 'key_files_not_readable'],
      [502, 'config_service_failed', 'key_provider_failed'],
      [503, 'provisioning_not_configured', 'too_many_open_files'],
      [504, 'config_service_failed', 'key_provider_failed'],
      [507, 'insufficient_storage'],
    ],
  });
}

function writing(): Record<string, Example> {
  const written = (value: unknown, file: string) => ({
    body: { type: 'application/json', value },
    answer: { status: 200, type: 'text/plain', value: file },
  });
  return {
    supplied: { summary: 'Keys supplied', ...written(SUPPLIED, fileOf(SUPPLIED)) },
    computed: { summary: 'Checksum and Widevine data computed', ...written(COMPUTED, fileOf(COMPUTED)) },
    cmaf: { summary: 'With CMAF lines, cbcs', ...written(FOR_CMAF, fileOf(FOR_CMAF)) },
    provided: { summary: 'Keys from the key provider', ...written(FROM_PROVIDER, providedFile()) },
    imported: {
      summary: 'An existing key file taken over',
      body: { type: 'text/plain', value: EXISTING },
      answer: { status: 200, type: 'text/plain', value: fileOf(SUPPLIED) },
    },
    kept: {
      summary: 'With a line that is not known',
      query: { keepunknown: 'true' },
      body: { type: 'text/plain', value: WITH_UNKNOWN },
      answer: { status: 200, type: 'text/plain', value: WITH_UNKNOWN },
    },
    guarded: {
      summary: 'Only over the file that was seen',
      headers: { 'if-match': tagOf(fileOf(SUPPLIED)) },
      ...written(COMPUTED, fileOf(COMPUTED)),
    },
  };
}

function dryRuns(): Record<string, Example> {
  const { json, diff } = dryRunOf(CHANGED);
  const asked = { query: { dryrun: 'true' }, body: { type: 'application/json', value: CHANGED } };
  return {
    dryrun: {
      summary: 'Dry run',
      ...asked,
      answer: { status: 200, type: 'application/json', value: json },
    },
    diff: {
      summary: 'Dry run as a diff',
      ...asked,
      headers: { accept: 'text/plain' },
      answer: { status: 200, type: 'text/plain', value: diff },
    },
  };
}

function remove() {
  const file = fileOf(SUPPLIED);
  return operation({
    method: 'delete',
    path: PATH,
    operationId: 'removeKeyFile',
    tag: KEY_FILES_TAG,
    summary: 'Remove a key file',
    description: 'Removes the key file of a stream and answers what it held.',
    parameters: [STREAM_ID, IF_MATCH],
    answers: { 200: { description: 'The key file as it was.', headers: { ETag: ETAG }, content: FILE } },
    examples: {
      removed: { summary: 'Remove it', answer: { status: 200, type: 'text/plain', value: file } },
      guarded: {
        summary: 'Only the file that was seen',
        headers: { 'if-match': tagOf(file), accept: 'application/json' },
        answer: { status: 200, type: 'application/json', value: linesOf(file) },
      },
    },
    errors: [
      [
        400,
        'invalid_stream_id',
        ['invalid_query', 'dryrun is no parameter of this request. Nothing was changed.'],
        NO_ENTITY_TAG,
      ],
      [403, 'forbidden'],
      [404, 'key_file_not_found'],
      [409, 'not_a_key_file', 'key_file_malformed'],
      [412, 'precondition_failed'],
      [500, 'key_files_not_writable', 'key_files_not_readable'],
      [503, 'too_many_open_files'],
    ],
  });
}
