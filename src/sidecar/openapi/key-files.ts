import type { OpenAPIV3_1 as OpenApi } from 'openapi-types';
import * as z from 'zod';
import { waitSeconds } from '../../api/fleet';
import { cpixQuery, exportBodyQuery, exportQuery } from '../../api/key-file-request';
import { listQuery } from '../../api/list';
import { MAX_CPIX_BYTES } from '../../drm/cpix/read';
import {
  type Answer,
  contentOf,
  jsonSchema,
  type PathItem,
  parameter,
  queryParameters,
  schemaRef,
} from '../../http/openapi';
import { checkQuery } from '../check-routes';
import { CPIX_TYPES, dryRunSwitch, keepUnknownSwitch } from '../key-files/routes';
import { AES_128, CPIX_DOCUMENT, FROM_PROVIDER, fileOf, STREAM, SUPPLIED, SWAPPED } from './examples';
import { ACCEPTED, FLEET_ERRORS, REVISION_HEADER } from './fleet';
import { type Example, pathItem } from './operation';

export const KEY_FILES_TAG = 'Key files';
export const MANY_TAG = 'Many key files';
export const CHECK_TAG = 'Check';

const TEXT_TYPE = 'text/plain';
const JSON_TYPE = 'application/json';
export const CPIX_TYPE = 'application/cpix+xml';

const TEXT: OpenApi.SchemaObject = {
  type: 'string',
  description:
    'Lines `name: value`, each ended by a line feed. With `as=shaka` flags and comments, with `as=bento4` options; of a dry run a diff.',
};
const FILE = { [TEXT_TYPE]: TEXT, [JSON_TYPE]: schemaRef('KeyFile') };

const STREAM_ID = parameter(
  'streamid',
  "The stream's name at the packager: 1 to 200 letters, digits and `. _ - ~ @ +`, no part starting with a dot. Sub-folders are written with `%2F`: `live%2Fnews` is the file `live/news.key`. 8 parts at most.",
  { type: 'string', minLength: 1, maxLength: 200 },
  { in: 'path', required: true, example: STREAM },
);
const REMOVAL = z.strictObject({ wait: waitSeconds });
const CHANGE = z.strictObject({ dryrun: dryRunSwitch, wait: waitSeconds });
const IF_MATCH = parameter(
  'If-Match',
  'The `ETag` that the key file must still have, in its quotes, or `*`: there must be a key file. Otherwise the answer is 412, and nothing is changed. So two people cannot overwrite changes of each other by mistake.',
  { type: 'string' },
  { in: 'header' },
);
const IF_NONE_MATCH = parameter(
  'If-None-Match',
  '`*`: there must be no key file yet. Otherwise the answer is 412, and nothing is changed.',
  { type: 'string' },
  { in: 'header' },
);

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
export const NOT_MODIFIED: Answer = {
  description: 'It still has the entity tag of `If-None-Match`.',
  headers: { ETag: ETAG },
};

const ACCEPTED_FILE: Answer = {
  ...ACCEPTED,
  headers: { ...ACCEPTED.headers, ETag: ETAG },
  content: contentOf(FILE),
};

export const WARNING: OpenApi.HeaderObject = {
  description:
    'One for each warning about the keys, which are written anyway: `299 - "scheme_mismatch: widevine.psshdata is for cbcs, …"`. Codes: `scheme_mismatch`, `key_id_mismatch`, `content_id_mismatch`, `content_key_is_key_id`, `key_id_reused`, `content_key_reused`, `key_is_iv`, `iv_is_key_id`, `all_zero` (of an iv), `hex_text`, `no_drm_system`, `not_skd`, `plain_http`, `key_id_byte_order_suspected`, `box_for_data`; of the Widevine data `names_nothing`, `unsupported_scheme`, `encoded_twice` and `empty`; `group_name`; `provider_cache`: the key provider does not answer, and the values are those of an earlier answer; `not_durable`: the change is made, but a power cut may undo it, since the folder could not be synced; with `PACKAGERDRMAPI_CHECKS=warn` also `checksum_mismatch`, `key_id_byte_order`, `key_and_key_id_swapped`, `session_id_in_address`, `content_key_in_address`, `escaped_ampersand` and `unknown_scheme`. Of a CPIX document `signature_not_checked`, `audio_key_left_out`, `cpix_system_left_out`, `cpix_scheme_left_out`, `cpix_key_left_out`, `cpix_systems_skipped`, `playready_header_reduced`, `fairplay_scheme`, `widevine_data_made`, `playready_address_replaced` and `playready_address_unused`. Of an imported key file every warning of a check, and `checksum_added`, `unknown_line`. Of an export `no_drm_system`, `key_left_out` and `export_too_long`.',
  schema: { type: 'string' },
};

const base64 = z.string().meta({ description: 'base64' });
const block = z.string().meta({ description: 'base64 of 16 bytes' });
const box = z.object({
  uuid: z.string().meta({ format: 'uuid', description: 'The DRM system.' }),
  data: base64,
});
export const DRM_INFO = jsonSchema(
  z
    .array(
      z.object({
        pssh: z.array(box).optional().meta({ description: 'The boxes of the DRM systems.' }),
        key: block,
        key_id: block,
        iv: block.optional().meta({ description: 'base64 of 16 bytes; only of FairPlay' }),
      }),
    )
    .length(1)
    .meta({ description: 'With `as=nginx-vod`: one object.' }),
);

/** The document as the body itself, and what the query may say then. */
const CPIX_BODY: OpenApi.SchemaObject = {
  type: 'string',
  description: `A CPIX document in UTF-8 or UTF-16, ${MAX_CPIX_BYTES / 1024} KiB at most. The query chooses among its keys.`,
};
const CPIX_BODIES = Object.fromEntries(CPIX_TYPES.map((type) => [type, CPIX_BODY]));
const CPIX_PARAMETERS = textParameters(cpixQuery).map(({ description, ...each }) => ({
  ...each,
  description: `Only with a CPIX document as the body. ${description}`,
}));

/** The parameters of a query whose values are texts: an address has no null. */
function textParameters(query: z.ZodObject): OpenApi.ParameterObject[] {
  return queryParameters(query).map(({ schema, ...each }) => {
    const { anyOf, ...rest } = Object(schema);
    return { ...each, schema: { ...anyOf?.[0], ...rest, type: 'string' } };
  });
}

const EXPORTED_CPIX: OpenApi.SchemaObject = {
  type: 'string',
  description: 'With `as=cpix`: a CPIX 2.3 document (DASH-IF) with plain content keys.',
};

export const READ_ERRORS = ['key_files_not_readable', 'too_many_open_files'] as const;
/** Of a change of a key file whose keys may be fetched. */
export const PROVISION_ERRORS = [
  ...(['client_unknown', 'client_api_key_refused', 'key_files_not_writable'] as const),
  ...(['config_service_failed', 'key_provider_failed', 'provisioning_not_configured'] as const),
  { code: 'config_service_failed', status: 504 } as const,
  { code: 'key_provider_failed', status: 504 } as const,
  'insufficient_storage' as const,
  ...FLEET_ERRORS,
];
export const WHOLE = ['not_a_key_file', 'key_file_malformed'] as const;

/** GET, POST and DELETE of a stream's key file, and of many. */
export function keyFileOperations(): Record<string, PathItem> {
  return { ...oneKeyFile(), ...manyKeyFiles(), ...check(), ...exportKeys() };
}

function oneKeyFile() {
  const file: Example = { summary: 'The file', answer: { type: TEXT_TYPE, value: fileOf(SUPPLIED) } };
  const written = (summary: string, type: string, value: unknown): Example => ({
    summary,
    body: { type, value },
    answer: { type: TEXT_TYPE },
  });
  return pathItem('/api/keyfile/{streamid}', KEY_FILES_TAG, {
    get: {
      id: 'readKeyFile',
      summary: 'Read a key file',
      description:
        'The key file of a stream, byte for byte, or its lines as JSON (`accept: application/json`). With `as` it is exported for another packager; such an answer has its own entity tag. HEAD returns only the headers.',
      parameters: [STREAM_ID, ...queryParameters(exportQuery), IF_CHANGED],
      headers: { ETag: ETAG, Warning: WARNING },
      content: {
        [TEXT_TYPE]: TEXT,
        [JSON_TYPE]: { oneOf: [schemaRef('KeyFile'), DRM_INFO] },
        [CPIX_TYPE]: EXPORTED_CPIX,
      },
      answers: { 304: NOT_MODIFIED },
      errors: [
        ...([
          'invalid_stream_id',
          'invalid_query',
          'forbidden',
          'key_file_not_found',
          'keys_missing',
        ] as const),
        ...WHOLE,
        ...READ_ERRORS,
      ],
      examples: [file],
    },
    post: {
      id: 'writeKeyFile',
      summary: 'Write a key file',
      description:
        'Creates or replaces the key file of a stream. A body with `cenc`, `fairplay` or `aes` supplies the keys itself, and so does a CPIX document (`cpix` in JSON, or `application/cpix+xml`), plain or encrypted for this service; any other names a content, whose keys are fetched from the key provider. The lines of an existing key file (`text/plain`, or `keyfile` in JSON) are taken over: no value becomes another. A packager finds the old file whole or the new one whole; when anything fails, the old one stays. The packager reads a key file when the stream starts, so a change takes effect at the next start.',
      parameters: [
        STREAM_ID,
        ...queryParameters(CHANGE.extend({ keepunknown: keepUnknownSwitch })),
        ...CPIX_PARAMETERS,
        IF_MATCH,
        IF_NONE_MATCH,
      ],
      body: {
        [JSON_TYPE]: schemaRef('KeyFileRequest'),
        [TEXT_TYPE]: {
          type: 'string',
          description:
            'An existing key file: lines `name: value` in UTF-8. Line ends, a byte order mark, white space around a line, empty lines and `#` comments do not matter; comments are not kept.',
        },
        ...CPIX_BODIES,
      },
      headers: { ETag: ETAG, Warning: WARNING, ...REVISION_HEADER },
      content: { [TEXT_TYPE]: TEXT, [JSON_TYPE]: { oneOf: [schemaRef('KeyFile'), schemaRef('DryRun')] } },
      answers: { 202: ACCEPTED_FILE },
      errors: [
        ...(['invalid_body', 'unknown_field', 'unknown_line', 'malformed_json'] as const),
        ...(['key_id_byte_order', 'checksum_mismatch', 'key_and_key_id_swapped', 'all_zero'] as const),
        ...(['session_id_in_address', 'content_key_in_address'] as const),
        ...(['escaped_ampersand', 'unknown_scheme'] as const),
        ...(['missing_line', 'wrong_constant', 'cmaf_disagrees', 'no_lines'] as const),
        ...(['invalid_cpix', 'cpix_choice', 'cpix_not_usable', 'cpix_not_opened'] as const),
        ...(['invalid_stream_id', 'invalid_query', 'invalid_header', 'forbidden'] as const),
        ...WHOLE,
        ...(['precondition_failed', 'body_too_large', 'unsupported_media_type'] as const),
        ...READ_ERRORS,
        ...PROVISION_ERRORS,
      ],
      examples: [
        { ...written('Keys supplied', JSON_TYPE, SUPPLIED), answer: file.answer },
        written('AES-128 for HLS', JSON_TYPE, AES_128),
        written('Keys from the key provider', JSON_TYPE, FROM_PROVIDER),
        written('An existing key file', TEXT_TYPE, fileOf(SUPPLIED)),
        {
          ...written('A CPIX document', CPIX_TYPE, CPIX_DOCUMENT),
          query: { laurl: SUPPLIED.playready.laurl },
        },
      ],
    },
    delete: {
      id: 'removeKeyFile',
      summary: 'Remove a key file',
      description: 'Removes the key file of a stream and returns what it held.',
      parameters: [STREAM_ID, ...queryParameters(REMOVAL), IF_MATCH],
      headers: { ETag: ETAG, ...REVISION_HEADER },
      content: FILE,
      answers: { 202: ACCEPTED_FILE },
      errors: [
        ...(['invalid_stream_id', 'invalid_query', 'invalid_header', 'forbidden'] as const),
        ...(['key_file_not_found', 'precondition_failed', 'key_files_not_writable'] as const),
        ...WHOLE,
        ...READ_ERRORS,
        ...FLEET_ERRORS,
      ],
      examples: [file],
    },
  });
}

function manyKeyFiles() {
  return pathItem('/api/keyfiles', MANY_TAG, {
    get: {
      id: 'listKeyFiles',
      summary: 'List key files',
      description:
        'The key files that the API key reaches, page by page, with their contents and what is wrong with them, and no secrets. Ask again with `cursor` until it is `null`.',
      parameters: queryParameters(listQuery),
      content: { [JSON_TYPE]: schemaRef('KeyFileList') },
      errors: ['invalid_query', 'cursor_expired', ...READ_ERRORS],
      examples: [{ summary: 'A page', query: { prefix: 'ne', limit: '10' }, answer: { type: JSON_TYPE } }],
    },
    post: {
      id: 'writeKeyFiles',
      summary: 'Write many key files',
      description:
        'Provisions many streams and groups at once, in parallel, with a result for each: a failed one does not stop the others. A file that would not change is not written, so a batch can be repeated safely. The status is 200 also when streams failed; `summary` counts them.',
      parameters: queryParameters(CHANGE),
      body: { [JSON_TYPE]: schemaRef('Batch') },
      headers: { ...REVISION_HEADER },
      content: { [JSON_TYPE]: schemaRef('BatchResult') },
      answers: { 202: { ...ACCEPTED, content: contentOf({ [JSON_TYPE]: schemaRef('BatchResult') }) } },
      errors: [
        ...(['invalid_body', 'unknown_field', 'malformed_json', 'invalid_query', 'invalid_header'] as const),
        ...([
          'forbidden',
          'body_too_large',
          'unsupported_media_type',
          'too_many_batches',
          'stopping',
        ] as const),
      ],
      examples: [
        {
          summary: 'A stream, and a group with the same keys',
          body: {
            type: JSON_TYPE,
            value: {
              streams: [{ streamid: 'live/films', ...FROM_PROVIDER }],
              groups: [{ folder: 'live', members: ['news_720p', 'news_360p'], ...SUPPLIED }],
            },
          },
          answer: { type: JSON_TYPE },
        },
      ],
    },
  });
}

function check() {
  return pathItem('/api/check', CHECK_TAG, {
    post: {
      id: 'checkKeyMaterial',
      summary: 'Check key material',
      description:
        'Reports what key material decodes to, field by field, and every fault with what to do about it. It takes a key file, a body of the key-file API, a CPIX document (whose encrypted content keys are not opened), or one value in base64, hex or as a UUID: a PSSH box, an init segment or a media segment, Widevine PSSH data, a PlayReady object or header, a key id, a license address, a manifest or playlist, or an element or a key line of one. Nothing is written, kept or logged. Any API key will do.',
      parameters: queryParameters(checkQuery),
      body: {
        [JSON_TYPE]: {
          oneOf: [
            schemaRef('CheckedValue'),
            {
              type: 'object',
              title: 'A body of the key-file API',
              description: 'As for writing a key file, faulty or not.',
              not: { required: ['value'] },
            },
          ],
        },
        [TEXT_TYPE]: { type: 'string', description: "A key file's text, a CPIX document, or one value." },
        [CPIX_TYPE]: {
          type: 'string',
          description: 'A CPIX document, in UTF-8 or UTF-16. `application/xml` and `text/xml` will do, too.',
        },
      },
      content: { [JSON_TYPE]: schemaRef('CheckResult') },
      errors: ['invalid_query', 'invalid_body', 'malformed_json', 'body_too_large', 'unsupported_media_type'],
      examples: [
        {
          summary: 'A body whose key id has the wrong byte order',
          body: { type: JSON_TYPE, value: SWAPPED },
          answer: { type: JSON_TYPE },
        },
      ],
    },
  });
}

function exportKeys() {
  const faults = ['keys_missing', 'key_file_malformed'] as const;
  return pathItem('/api/export', CHECK_TAG, {
    post: {
      id: 'exportKeys',
      summary: 'Export keys for another packager',
      description:
        'Returns the keys of the body in the form of another packager, without a key file: those of a CPIX document, which may have one key for Widevine, PlayReady and FairPlay (`cbcs`), or of the lines of a key file. Encrypted content keys are refused. Nothing is written, kept or logged. Any API key will do.',
      parameters: textParameters(exportBodyQuery).map((each) => ({ ...each, required: each.name === 'as' })),
      body: {
        ...CPIX_BODIES,
        [TEXT_TYPE]: { type: 'string', description: 'The lines of a key file, or a CPIX document.' },
      },
      headers: { Warning: WARNING },
      content: { [TEXT_TYPE]: TEXT, [JSON_TYPE]: DRM_INFO, [CPIX_TYPE]: EXPORTED_CPIX },
      errors: [
        ...(['invalid_query', 'invalid_body', 'invalid_cpix', 'cpix_choice'] as const),
        ...(['cpix_not_usable', 'cpix_not_opened', 'body_too_large', 'unsupported_media_type'] as const),
        ...faults.map((code) => ({ code, status: 400 })),
      ],
      examples: [
        {
          summary: 'The keys of a key file, for shaka-packager',
          query: { as: 'shaka' },
          body: { type: TEXT_TYPE, value: fileOf(SUPPLIED) },
          answer: { type: TEXT_TYPE },
        },
      ],
    },
  });
}
