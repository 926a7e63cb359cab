import type { OpenAPIV3_1 as OpenApi } from 'openapi-types';
import { exportKeyFile } from '../../drm/export/export-key-file';
import { EXPORT_FORMS } from '../../drm/export/forms';
import { EXPORT_NAMES, EXPORT_SCHEMES, type ExportName, type ExportScheme } from '../../drm/export/names';
import { type Example, schemaRef } from '../../http/openapi';
import { CPIX_BODIES, CPIX_ERRORS, CPIX_PARAMETERS, cpixExamples } from './cpix-body';
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
  STREAM,
  SUPPLIED,
  tagOf,
  WITH_UNKNOWN,
} from './examples';
import { acceptedAnswer, FLEET_ERRORS, REVISION_HEADER, WAIT } from './fleet-operations';
import { type AnsweredError, operation, type PathItem } from './operation';

export const KEY_FILES_TAG = 'Key files';

const PATH = '/api/keyfile/{streamid}';
const TEXT: OpenApi.SchemaObject = {
  type: 'string',
  description: 'Lines `name: value`, each ended by a line feed.',
};
const LINES: OpenApi.SchemaObject = {
  type: 'string',
  description:
    'An existing key file: lines `name: value` in UTF-8. Line ends, a byte order mark, white space around a line, empty lines and `#` comments are no matter; comments are not kept.',
};
const FILE = { 'text/plain': TEXT, 'application/json': schemaRef('KeyFile') };

const STREAM_ID: OpenApi.ParameterObject = {
  name: 'streamid',
  in: 'path',
  required: true,
  description:
    "The stream's name at the packager: 1 to 200 letters, digits and `. _ - ~ @ +`, no part starting with a dot. Sub-folders are written with `%2F`: `live%2Fnews` is the file `live/news.key`. 8 parts at most.",
  schema: { type: 'string', minLength: 1, maxLength: 200 },
  example: STREAM,
};

export const DRY_RUN: OpenApi.ParameterObject = {
  name: 'dryrun',
  in: 'query',
  required: false,
  description: '`true`: nothing is written, and the answer tells what would be.',
  schema: { type: 'string', enum: ['true', 'false'], default: 'false' },
};

const KEEP_UNKNOWN: OpenApi.ParameterObject = {
  name: 'keepunknown',
  in: 'query',
  required: false,
  description:
    'Only with a body of `text/plain`. `true`: lines with unknown names are kept as they are, after the others; otherwise they are refused.',
  schema: { type: 'string', enum: ['true', 'false'] },
};

const AS: OpenApi.ParameterObject = {
  name: 'as',
  in: 'query',
  required: false,
  description:
    'The keys as another packager takes them, in place of the key file: a file of flags for shaka-packager (`--flagfile`), the JSON that nginx-vod-module fetches (`vod_drm_upstream_location`), options for Bento4 (`mp4-dash.py`, one a line), or a CPIX 2.3 document for Unified Streaming and others.',
  schema: { type: 'string', enum: [...EXPORT_NAMES] },
};

const SCHEME: OpenApi.ParameterObject = {
  name: 'scheme',
  in: 'query',
  required: false,
  description:
    'Only with `as`: which of the two keys. `cenc` is the one of Widevine and PlayReady, `cbcs` the one of FairPlay, under a key id made of its license address. Without it, `cpix` holds all keys that there are, each with its scheme; the others hold that of `cenc` if there is one, else that of `cbcs`.',
  schema: { type: 'string', enum: [...EXPORT_SCHEMES] },
};

const IF_MATCH: OpenApi.ParameterObject = {
  name: 'If-Match',
  in: 'header',
  required: false,
  description:
    'The `ETag` that the key file must still have, in its quotes, or `*`: there must be a key file. Otherwise the answer is 412, and nothing is changed. So two people cannot overwrite each other unawares.',
  schema: { type: 'string' },
};

const IF_NONE_MATCH: OpenApi.ParameterObject = {
  name: 'If-None-Match',
  in: 'header',
  required: false,
  description: '`*`: there must be no key file yet. Otherwise the answer is 412, and nothing is changed.',
  schema: { type: 'string' },
};

export const IF_CHANGED: OpenApi.ParameterObject = {
  ...IF_NONE_MATCH,
  description:
    'The `ETag` of what the client has, in its quotes. While it is still that, the answer is 304 without a body.',
};

export const ETAG: OpenApi.HeaderObject = {
  description: 'The entity tag of the answer: it changes with every byte of it.',
  schema: { type: 'string' },
};

/** The answer to `If-None-Match`. */
export const NOT_MODIFIED = {
  description: 'It still has the entity tag of `If-None-Match`.',
  headers: { ETag: ETAG },
};

const WARNING: OpenApi.HeaderObject = {
  description:
    'One for each warning about the keys, which are written nevertheless: `299 - "scheme_mismatch: widevine.psshdata says cbcs, but the algorithm is AESCTR (cenc); make them agree"`. Codes: `scheme_mismatch`, `key_id_mismatch`, `content_id_mismatch`, `content_key_is_key_id`, `key_id_reused`, `content_key_reused`, `key_is_iv`, `all_zero` (of a FairPlay iv), `hex_text`, `no_drm_system`, `not_skd`, `plain_http`, `key_id_byte_order_suspected`, `box_for_data`; of the Widevine data `names_nothing`, `unsupported_scheme`, `encoded_twice` and `empty`; `group_name`; `provider_cache` when the key provider can not be asked and the values are those of an earlier answer; `not_durable` when the change is made but a power cut may undo it, since the folder could not be synced; with `PACKAGERDRMAPI_CHECKS=warn` also `checksum_mismatch`, `key_id_byte_order`, `key_and_key_id_swapped`, `session_id_in_address`, `escaped_ampersand` and `unknown_scheme`. Of a CPIX document `signature_not_checked`, `audio_key_left_out`, `cpix_system_left_out`, `cpix_scheme_left_out`, `fairplay_scheme`, `widevine_data_made`, `playready_address_replaced` and `playready_address_unused`. Of an imported key file all that a check of it warns of, and `checksum_added`, `unknown_line`: what was added and kept.',
  schema: { type: 'string' },
};

const EXPORT_WARNING: OpenApi.HeaderObject = {
  description:
    'Of an export, one for each warning: `no_drm_system` when a key has neither Widevine nor PlayReady, `export_too_long` when nginx-vod-module takes so much only with a higher `vod_drm_max_info_length`.',
  schema: { type: 'string' },
};

const BASE64: OpenApi.SchemaObject = { type: 'string', description: 'base64' };
const BLOCK: OpenApi.SchemaObject = { type: 'string', description: 'base64 of 16 bytes' };
const DRM_INFO: OpenApi.SchemaObject = {
  type: 'array',
  description: 'With `as=nginx-vod`: one object.',
  minItems: 1,
  maxItems: 1,
  items: {
    type: 'object',
    required: ['key', 'key_id'],
    properties: {
      pssh: {
        type: 'array',
        items: {
          type: 'object',
          required: ['uuid', 'data'],
          properties: { uuid: { type: 'string', format: 'uuid' }, data: BASE64 },
        },
      },
      key: BLOCK,
      key_id: BLOCK,
      iv: { ...BLOCK, description: 'base64 of 16 bytes; of FairPlay alone' },
    },
  },
};

const READ = {
  'text/plain': {
    ...TEXT,
    description: `${TEXT.description} With \`as=shaka\` flags and comments, with \`as=bento4\` options, one a line.`,
  },
  'application/json': { oneOf: [schemaRef('KeyFile'), DRM_INFO] },
  'application/cpix+xml': {
    type: 'string',
    description: 'With `as=cpix`: a CPIX 2.3 document (DASH-IF) with plain content keys.',
  },
} satisfies Record<string, OpenApi.SchemaObject>;

const NO_ENTITY_TAG: AnsweredError = {
  code: 'invalid_header',
  says: 'If-Match must be * or entity tags in their quotes, as they came: If-Match: "…". Nothing was changed.',
};

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
      'The key file of a stream, byte for byte. A client that would rather have JSON (`accept: application/json`) gets its lines. With `as` it is exported for another packager; such an answer has an entity tag of its own. HEAD answers only the headers.',
    parameters: [STREAM_ID, AS, SCHEME, IF_CHANGED],
    answers: {
      200: {
        description: 'The key file, or its keys in the form that `as` names.',
        headers: { ETag: ETAG, Warning: EXPORT_WARNING },
        content: READ,
      },
      304: NOT_MODIFIED,
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
      ...exporting(file),
    },
    errors: [
      'invalid_stream_id',
      {
        code: 'invalid_query',
        says: 'as must be one of shaka, nginx-vod, bento4 and cpix, not shakka. Did you mean shaka?',
      },
      'forbidden',
      'key_file_not_found',
      'not_a_key_file',
      'key_file_malformed',
      'keys_missing',
      'key_files_not_readable',
      'too_many_open_files',
    ],
  });
}

/** What each form is for, and of which key it is shown. */
const EXPORTS: Readonly<Record<ExportName, readonly [summary: string, scheme: ExportScheme | undefined]>> = {
  shaka: ['For shaka-packager', 'cenc'],
  'nginx-vod': ['For nginx-vod-module, FairPlay', 'cbcs'],
  bento4: ['For Bento4', 'cenc'],
  cpix: ['As CPIX', undefined],
};

function exporting(file: string): Record<string, Example> {
  return Object.fromEntries(
    EXPORT_NAMES.map((as): [string, Example] => {
      const [summary, scheme] = EXPORTS[as];
      const exported = exportKeyFile(file, as, scheme);
      if (!exported.ok) throw new TypeError(`The example ${exported.problem.description}`);
      const [type = ''] = EXPORT_FORMS[as].mediaType.split(';');
      const value: unknown = type === 'application/json' ? JSON.parse(exported.text) : exported.text;
      const query = { as, ...(scheme && { scheme }) };
      return [as, { summary, query, answer: { status: 200, type, value } }];
    }),
  );
}

function write() {
  return operation({
    method: 'post',
    path: PATH,
    operationId: 'writeKeyFile',
    tag: KEY_FILES_TAG,
    summary: 'Write a key file',
    description:
      'Creates or replaces the key file of a stream. A body with `cenc` or `fairplay` supplies the keys itself, and so does a CPIX document (`cpix` in JSON, or `application/cpix+xml`), plain or encrypted for this service; any other names a content, whose keys are fetched from the key provider. The lines of an existing key file (`text/plain`, or `keyfile` in JSON) are taken over: no value becomes another, and lines that this service would not write so are kept as they are. A packager finds the old file whole or the new one whole; when anything fails, the old one stays. The packager reads a key file when the stream starts, so a change shows at the next start.',
    parameters: [STREAM_ID, DRY_RUN, WAIT, KEEP_UNKNOWN, ...CPIX_PARAMETERS, IF_MATCH, IF_NONE_MATCH],
    body: { 'application/json': schemaRef('KeyFileRequest'), 'text/plain': LINES, ...CPIX_BODIES },
    answers: {
      200: {
        description: 'The key file as it was written, or what a dry run tells.',
        headers: { ETag: ETAG, Warning: WARNING, ...REVISION_HEADER },
        content: {
          'text/plain': {
            ...TEXT,
            description: `${TEXT.description} Of a dry run a diff: \`+\` before what comes, \`-\` before what goes.`,
          },
          'application/json': { oneOf: [schemaRef('KeyFile'), schemaRef('DryRun')] },
        },
      },
      202: acceptedAnswer({ headers: { ETag: ETAG }, content: FILE }),
    },
    examples: { ...writing(), ...cpixExamples(), ...dryRuns() },
    errors: [
      ...(['invalid_body', 'unknown_field', 'unknown_line', 'malformed_json'] as const),
      ...(['key_id_byte_order', 'checksum_mismatch', 'key_and_key_id_swapped', 'all_zero'] as const),
      ...(['session_id_in_address', 'escaped_ampersand', 'unknown_scheme'] as const),
      ...(['missing_line', 'wrong_constant', 'cmaf_disagrees', 'no_lines'] as const),
      ...CPIX_ERRORS,
      ...(['invalid_stream_id', 'invalid_query'] as const),
      NO_ENTITY_TAG,
      ...(['forbidden', 'not_a_key_file', 'key_file_malformed', 'precondition_failed'] as const),
      'body_too_large',
      {
        code: 'unsupported_media_type',
        says: 'Send the body as JSON, with content-type: application/json, the lines of a key file as text/plain, or a CPIX document as application/cpix+xml.',
      },
      ...(['client_unknown', 'client_api_key_refused'] as const),
      ...(['key_files_not_writable', 'key_files_not_readable'] as const),
      ...(['config_service_failed', 'key_provider_failed'] as const),
      ...(['provisioning_not_configured', 'too_many_open_files'] as const),
      { code: 'config_service_failed', status: 504 },
      { code: 'key_provider_failed', status: 504 },
      'insufficient_storage',
      ...FLEET_ERRORS,
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
    cmaf: { summary: 'With CMAF lines', ...written(FOR_CMAF, fileOf(FOR_CMAF)) },
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
    awaited: {
      summary: 'Wait until all packagers of a fleet have it',
      query: { wait: '1' },
      body: { type: 'application/json', value: SUPPLIED },
      answer: { status: 202, type: 'text/plain', value: fileOf(SUPPLIED) },
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
    parameters: [STREAM_ID, WAIT, IF_MATCH],
    answers: {
      200: {
        description: 'The key file as it was.',
        headers: { ETag: ETAG, ...REVISION_HEADER },
        content: FILE,
      },
      202: acceptedAnswer({ headers: { ETag: ETAG }, content: FILE }),
    },
    examples: {
      removed: { summary: 'Remove it', answer: { status: 200, type: 'text/plain', value: file } },
      awaited: {
        summary: 'Wait until it is gone from all packagers of a fleet',
        query: { wait: '1' },
        answer: { status: 202, type: 'text/plain', value: file },
      },
      guarded: {
        summary: 'Only the file that was seen',
        headers: { 'if-match': tagOf(file), accept: 'application/json' },
        answer: { status: 200, type: 'application/json', value: linesOf(file) },
      },
    },
    errors: [
      'invalid_stream_id',
      {
        code: 'invalid_query',
        says: 'dryrun is not a parameter of this request. Nothing was changed.',
      },
      NO_ENTITY_TAG,
      ...(['forbidden', 'key_file_not_found', 'not_a_key_file', 'key_file_malformed'] as const),
      ...(['precondition_failed', 'key_files_not_writable', 'key_files_not_readable'] as const),
      'too_many_open_files',
      ...FLEET_ERRORS,
    ],
  });
}
