import type { OpenAPIV3_1 as OpenApi } from 'openapi-types';
import * as z from 'zod';
import { waitSeconds } from '../../api/fleet';
import { cpixQuery, exportBodyQuery, exportQuery } from '../../api/key-file-request';
import { listQuery } from '../../api/list';
import { MAX_CPIX_BYTES } from '../../drm/cpix/read';
import { writeSpekeRequest } from '../../drm/cpix/speke';
import { SPEKE_VERSIONS } from '../../drm/cpix/speke-answer';
import {
  type Answer,
  contentOf,
  jsonSchema,
  parameter,
  queryParameters,
  type Schema,
  schemaRef,
} from '../../http/openapi';
import { checkQuery } from '../check-routes';
import { CPIX_TYPES, dryRunSwitch, keepUnknownSwitch } from '../key-files/routes';
import { AES_128, CPIX_DOCUMENT, FROM_PROVIDER, fileOf, STREAM, SUPPLIED, SWAPPED } from './examples';
import { ACCEPTED, FLEET_ERRORS, REVISION_HEADER } from './fleet-and-service';
import { ETAG, IF_CHANGED, IF_NONE_MATCH, JSON_TYPE, json, NOT_MODIFIED, type Operations } from './operation';

const TEXT_TYPE = 'text/plain';
const XML_TYPE = 'application/xml';
const CPIX_TYPE = 'application/cpix+xml';

const textOf = (description: string): Schema => ({ type: 'string', description });
const TEXT = textOf(
  'Lines `name: value`, each ended by a line feed. With `as=shaka` flags and comments, with `as=bento4` options; of a dry run a diff.',
);
const FILE = { [TEXT_TYPE]: TEXT, ...json('KeyFile') };

const STREAM_ID = parameter(
  'streamid',
  "The stream's name at the packager: 1 to 200 letters, digits and `. _ - ~ @ +`, no part starting with a dot. Sub-folders are written with `%2F`: `live%2Fnews` is the file `live/news.key`. 8 parts at most.",
  { type: 'string', minLength: 1, maxLength: 200 },
  { in: 'path', required: true, example: STREAM },
);
const REMOVAL = z.strictObject({ wait: waitSeconds });
const CHANGE = z.strictObject({ dryrun: dryRunSwitch, wait: waitSeconds });
const IF_MATCH: OpenApi.ParameterObject = {
  ...IF_NONE_MATCH,
  name: 'If-Match',
  description:
    'The `ETag` that the key file must still have, in its quotes, or `*`: there must be a key file. Otherwise the answer is 412, and nothing is changed. So two people cannot overwrite changes of each other by mistake.',
};

const ACCEPTED_FILE: Answer = {
  ...ACCEPTED,
  headers: { ...ACCEPTED.headers, ETag: ETAG },
  content: contentOf(FILE),
};

const WARNING: OpenApi.HeaderObject = {
  description:
    'One for each warning about the keys, which are written anyway: `299 - "scheme_mismatch: widevine.psshdata is for cbcs, …"`. Codes: `scheme_mismatch`, `key_id_mismatch`, `content_id_mismatch`, `content_key_is_key_id`, `key_id_reused`, `content_key_reused`, `key_is_iv`, `iv_is_key_id`, `all_zero` (of an iv), `hex_text`, `no_drm_system`, `not_skd`, `plain_http`, `key_id_byte_order_suspected`, `box_for_data`; of the Widevine data `names_nothing`, `unsupported_scheme`, `encoded_twice` and `empty`; `group_name`; `provider_cache`: the key provider does not answer, and the values are those of an earlier answer; `not_durable`: the change is made, but a power cut may undo it, since the folder could not be synced; with `PACKAGERDRMAPI_CHECKS=warn` also `checksum_mismatch`, `key_id_byte_order`, `key_and_key_id_swapped`, `session_id_in_address`, `content_key_in_address`, `escaped_ampersand` and `unknown_scheme`. Of a CPIX document `signature_not_checked`, `audio_key_left_out`, `cpix_system_left_out`, `cpix_scheme_left_out`, `cpix_key_left_out`, `cpix_systems_skipped`, `playready_header_reduced`, `fairplay_scheme`, `widevine_data_made`, `playready_address_replaced` and `playready_address_unused`. Of an imported key file every warning of a check, and `checksum_added`, `unknown_line`. Of an export `no_drm_system`, `key_left_out` and `export_too_long`.',
  schema: { type: 'string' },
};

const base64 = z.string().describe('base64');
const block = z.string().describe('base64 of 16 bytes');
const box = z.object({
  uuid: z.string().meta({ format: 'uuid', description: 'The DRM system.' }),
  data: base64,
});
const DRM_INFO = jsonSchema(
  z
    .array(
      z.object({
        pssh: z.array(box).optional().describe('The boxes of the DRM systems.'),
        key: block,
        key_id: block,
        iv: block.optional().describe('base64 of 16 bytes; only of FairPlay'),
      }),
    )
    .length(1)
    .describe('With `as=nginx-vod`: one object.'),
);

const CPIX_BODY = textOf(
  `A CPIX document in UTF-8 or UTF-16, ${MAX_CPIX_BYTES / 1024} KiB at most. The query chooses among its keys.`,
);
const CPIX_BODIES = Object.fromEntries(CPIX_TYPES.map((type) => [type, CPIX_BODY]));
const CPIX_PARAMETERS = queryParameters(cpixQuery).map(({ description, ...each }) => ({
  ...each,
  description: `Only with a CPIX document as the body. ${description}`,
}));
const EXPORTED_CPIX = textOf('With `as=cpix`: a CPIX 2.3 document (DASH-IF) with plain content keys.');

const READ_ERRORS = ['key_files_not_readable', 'too_many_open_files'] as const;
const WHOLE = ['not_a_key_file', 'key_file_malformed'] as const;
const PROVISION_ERRORS = [
  ...(['client_unknown', 'client_api_key_refused', 'key_files_not_writable'] as const),
  ...(['config_service_failed', 'key_provider_failed', 'provisioning_not_configured'] as const),
  { code: 'config_service_failed', status: 504 } as const,
  { code: 'key_provider_failed', status: 504 } as const,
  'insufficient_storage' as const,
  ...FLEET_ERRORS,
];

const THE_FILE = { summary: 'The file', answer: { type: TEXT_TYPE, value: fileOf(SUPPLIED) } };

export const KEY_FILES: Operations = {
  'get /api/keyfile/{streamid}': {
    id: 'readKeyFile',
    summary: 'Read a key file',
    description:
      'The key file of a stream, byte for byte, or its lines as JSON (`accept: application/json`). With `as` it is exported for another packager; such an answer has its own entity tag. HEAD returns only the headers.',
    parameters: [STREAM_ID, ...queryParameters(exportQuery.partial()), IF_CHANGED],
    headers: { ETag: ETAG, Warning: WARNING },
    content: {
      [TEXT_TYPE]: TEXT,
      [JSON_TYPE]: { oneOf: [schemaRef('KeyFile'), DRM_INFO] },
      [CPIX_TYPE]: EXPORTED_CPIX,
    },
    answers: { 304: NOT_MODIFIED },
    errors: ['forbidden', 'key_file_not_found', 'keys_missing', ...WHOLE, ...READ_ERRORS],
    examples: [THE_FILE],
  },
  'post /api/keyfile/{streamid}': {
    id: 'writeKeyFile',
    summary: 'Write a key file',
    description:
      'Creates or replaces the key file of a stream. A body with `cenc`, `fairplay` or `aes` supplies the keys itself, and so does a CPIX document (`cpix` in JSON, or `application/cpix+xml`), plain or encrypted for this service; any other names a content, whose keys are fetched from the key provider. The lines of an existing key file (`text/plain`, or `keyfile` in JSON) are taken over: no value becomes another. A packager finds the old file whole or the new one whole; when anything fails, the old one stays. The packager reads a key file when the stream starts, so a change takes effect at the next start.',
    parameters: [
      STREAM_ID,
      ...queryParameters(CHANGE.extend({ keepunknown: keepUnknownSwitch })),
      ...CPIX_PARAMETERS,
      ...[IF_MATCH, IF_NONE_MATCH],
    ],
    body: {
      ...json('KeyFileRequest'),
      [TEXT_TYPE]: textOf(
        'An existing key file: lines `name: value` in UTF-8. Line ends, a byte order mark, white space around a line, empty lines and `#` comments do not matter; comments are not kept.',
      ),
      ...CPIX_BODIES,
    },
    headers: { ETag: ETAG, Warning: WARNING, ...REVISION_HEADER },
    content: { [TEXT_TYPE]: TEXT, [JSON_TYPE]: { anyOf: [schemaRef('KeyFile'), schemaRef('DryRun')] } },
    answers: { 202: ACCEPTED_FILE },
    errors: [
      ...(['unknown_field', 'unknown_line', 'key_id_byte_order', 'checksum_mismatch'] as const),
      ...(['key_and_key_id_swapped', 'all_zero'] as const),
      ...(['session_id_in_address', 'content_key_in_address'] as const),
      ...(['escaped_ampersand', 'unknown_scheme'] as const),
      ...(['missing_line', 'wrong_constant', 'cmaf_disagrees', 'no_lines'] as const),
      ...(['invalid_cpix', 'cpix_choice', 'cpix_not_usable', 'cpix_not_opened'] as const),
      ...(['invalid_header', 'forbidden', 'precondition_failed', ...WHOLE] as const),
      ...READ_ERRORS,
      ...PROVISION_ERRORS,
    ],
    examples: [
      { summary: 'Keys supplied', body: { type: JSON_TYPE, value: SUPPLIED }, answer: THE_FILE.answer },
      { summary: 'AES-128 for HLS', body: { type: JSON_TYPE, value: AES_128 } },
      { summary: 'Keys from the key provider', body: { type: JSON_TYPE, value: FROM_PROVIDER } },
      { summary: 'An existing key file', body: { type: TEXT_TYPE, value: fileOf(SUPPLIED) } },
      {
        summary: 'A CPIX document',
        query: { laurl: SUPPLIED.playready.laurl },
        body: { type: CPIX_TYPE, value: CPIX_DOCUMENT },
      },
    ],
  },
  'delete /api/keyfile/{streamid}': {
    id: 'removeKeyFile',
    summary: 'Remove a key file',
    description: 'Removes the key file of a stream and returns what it held.',
    parameters: [STREAM_ID, ...queryParameters(REMOVAL), IF_MATCH],
    headers: { ETag: ETAG, ...REVISION_HEADER },
    content: FILE,
    answers: { 202: ACCEPTED_FILE },
    errors: [
      ...(['invalid_header', 'forbidden', 'key_file_not_found', 'precondition_failed'] as const),
      ...(['key_files_not_writable', ...WHOLE, ...READ_ERRORS, ...FLEET_ERRORS] as const),
    ],
    examples: [THE_FILE],
  },
};

export const MANY_KEY_FILES: Operations = {
  'get /api/keyfiles': {
    id: 'listKeyFiles',
    summary: 'List key files',
    description:
      'The key files that the API key reaches, page by page, with their contents and what is wrong with them, and no secrets. Ask again with `cursor` until it is `null`.',
    parameters: queryParameters(listQuery),
    content: json('KeyFileList'),
    errors: ['cursor_expired', ...READ_ERRORS],
    examples: [{ summary: 'A page', query: { prefix: 'ne', limit: '10' } }],
  },
  'post /api/keyfiles': {
    id: 'writeKeyFiles',
    summary: 'Write many key files',
    description:
      'Provisions many streams and groups at once, in parallel, with a result for each: a failed one does not stop the others. A file that would not change is not written, so a batch can be repeated safely. The status is 200 also when streams failed; `summary` counts them.',
    parameters: queryParameters(CHANGE),
    body: json('Batch'),
    headers: REVISION_HEADER,
    content: json('BatchResult'),
    answers: { 202: { ...ACCEPTED, content: contentOf(json('BatchResult')) } },
    errors: ['unknown_field', 'invalid_header', 'forbidden', 'too_many_batches', 'stopping'],
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
      },
    ],
  },
};

export const CHECK: Operations = {
  'post /api/check': {
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
      [TEXT_TYPE]: textOf("A key file's text, a CPIX document, or one value."),
      [CPIX_TYPE]: textOf(
        'A CPIX document, in UTF-8 or UTF-16. `application/xml` and `text/xml` will do, too.',
      ),
    },
    content: json('CheckResult'),
    examples: [
      {
        summary: 'A body whose key id has the wrong byte order',
        body: { type: JSON_TYPE, value: SWAPPED },
      },
    ],
  },
  'post /api/export': {
    id: 'exportKeys',
    summary: 'Export keys for another packager',
    description:
      'Returns the keys of the body in the form of another packager, without a key file: those of a CPIX document, which may have one key for Widevine, PlayReady and FairPlay (`cbcs`), or of the lines of a key file. Encrypted content keys are refused. Nothing is written, kept or logged. Any API key will do.',
    parameters: queryParameters(exportBodyQuery),
    body: { ...CPIX_BODIES, [TEXT_TYPE]: textOf('The lines of a key file, or a CPIX document.') },
    headers: { Warning: WARNING },
    content: { [TEXT_TYPE]: TEXT, [JSON_TYPE]: DRM_INFO, [CPIX_TYPE]: EXPORTED_CPIX },
    errors: [
      ...(['invalid_body', 'invalid_cpix', 'cpix_choice', 'cpix_not_usable', 'cpix_not_opened'] as const),
      { code: 'keys_missing', status: 400 },
      { code: 'key_file_malformed', status: 400 },
    ],
    examples: [
      {
        summary: 'The keys of a key file, for shaka-packager',
        query: { as: 'shaka' },
        body: { type: TEXT_TYPE, value: fileOf(SUPPLIED) },
      },
    ],
  },
};

const CLIENT = parameter(
  'client',
  'The client. It is part of the stream id if `PACKAGERDRMAPI_PULLPATTERN` says so, and is named to the key provider.',
  { type: 'string' },
  { in: 'path', required: true, example: 'demo' },
);
const CONTENT = parameter(
  'contentId',
  'The content id: without `PACKAGERDRMAPI_PULLPATTERN`, the stream id, with its slashes written as `%2F`.',
  { type: 'string' },
  { in: 'path', required: true, example: STREAM },
);
const CLIENT_KEY = parameter(
  'API-KEY',
  'The API key of the client. Only where the stream is provisioned, and the key provider needs it.',
  { type: 'string' },
  { in: 'header' },
);
const SPEKE_VERSION = parameter(
  'X-Speke-Version',
  'The version of SPEKE, which the answer repeats.',
  { type: 'string', enum: [...SPEKE_VERSIONS.keys()] },
  { in: 'header', required: true, example: '2.0' },
);
const ABOUT_PULLS =
  'The API key may also come as the password of Basic. A stream that the API key does not reach is a 404, like a missing one. With `PACKAGERDRMAPI_PROVISIONONREAD`, a stream without a key file is provisioned first; the API key needs the right to write.';
const PULL_ERRORS = [
  ...(['invalid_stream_id', 'invalid_header', 'invalid_body', 'key_file_not_found'] as const),
  ...(['keys_missing', 'too_many_pulls', 'fleet_joining', ...WHOLE, ...READ_ERRORS] as const),
  ...PROVISION_ERRORS,
];

export const PULL: Operations = {
  'get /cpix/{client}/{contentId}': {
    id: 'pullKeys',
    summary: 'Pull the keys of a stream',
    description: `The key file of a stream as a CPIX document, or as \`as\` says. ${ABOUT_PULLS}`,
    parameters: [CLIENT, CONTENT, CLIENT_KEY, IF_CHANGED, ...queryParameters(exportQuery.partial())],
    headers: { ETag: ETAG, Warning: WARNING },
    content: {
      [CPIX_TYPE]: textOf('A CPIX 2.3 document with plain content keys.'),
      [JSON_TYPE]: DRM_INFO,
      [TEXT_TYPE]: textOf('With `as` of a form that is text.'),
    },
    answers: { 304: NOT_MODIFIED },
    errors: PULL_ERRORS,
    examples: [{ summary: 'The key of DASH', query: { scheme: 'cenc' } }],
  },
  'post /speke/v2/{client}': {
    id: 'answerSpeke',
    summary: 'Ask by SPEKE',
    description: `A SPEKE 2.0 or 2.1 request (AWS) for one key, whose content id names the stream. The key id of the key file replaces the requested one. With a certificate in the request, the key is encrypted for it. ${ABOUT_PULLS}`,
    parameters: [CLIENT, CLIENT_KEY, SPEKE_VERSION],
    body: { [XML_TYPE]: textOf('A CPIX document that asks for a key.') },
    content: { [XML_TYPE]: textOf('The document with the key.') },
    errors: ['invalid_cpix', 'speke_refused', ...PULL_ERRORS],
    examples: [
      {
        summary: 'The key of DASH',
        headers: { 'X-Speke-Version': '2.0' },
        body: {
          type: XML_TYPE,
          value: writeSpekeRequest({ version: 2, contentId: STREAM, scheme: 'cenc' }),
        },
      },
    ],
  },
};
