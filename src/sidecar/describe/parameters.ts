import type { Header, Parameter } from './document';
import { fileOf, STREAM, SUPPLIED, tagOf } from './samples-wire';

export const STREAM_ID: Parameter = {
  name: 'streamid',
  in: 'path',
  required: true,
  description:
    "The stream's name at the packager: 1 to 200 letters, digits and `. _ - ~ @ +`, no part starting with a dot. Sub-folders are written with `%2F`: `live%2Fnews` is the file `live/news.key`. 8 parts at most.",
  schema: { type: 'string', minLength: 1, maxLength: 200 },
  example: STREAM,
};

export const DRY_RUN: Parameter = {
  name: 'dryrun',
  in: 'query',
  required: false,
  description: '`true`: nothing is written, and the answer tells what would be.',
  schema: { type: 'string', enum: ['true', 'false'], default: 'false' },
};

export const KEEP_UNKNOWN: Parameter = {
  name: 'keepunknown',
  in: 'query',
  required: false,
  description:
    'With a body of `text/plain` alone. `true`: lines of unknown names are kept as they are, behind the others; otherwise they are refused.',
  schema: { type: 'string', enum: ['true', 'false'], default: 'false' },
};

export const IF_MATCH: Parameter = {
  name: 'If-Match',
  in: 'header',
  required: false,
  description:
    'The `ETag` that the key file must still have, or `*`: there must be a key file. Otherwise the answer is 412, and nothing is changed. So two people cannot overwrite each other unawares.',
  schema: { type: 'string' },
  example: tagOf(fileOf(SUPPLIED)),
};

export const IF_NONE_MATCH: Parameter = {
  name: 'If-None-Match',
  in: 'header',
  required: false,
  description: '`*`: there must be no key file yet. Otherwise the answer is 412, and nothing is changed.',
  schema: { type: 'string' },
  example: '*',
};

export const IF_CHANGED: Parameter = {
  ...IF_NONE_MATCH,
  description:
    'An `ETag` that the client has the file of. While the file still has it, the answer is 304 without a body.',
  example: tagOf(fileOf(SUPPLIED)),
};

export const ETAG: Header = {
  description: 'The entity tag of the file: it changes with every byte of it.',
  schema: { type: 'string' },
};

export const WARNING: Header = {
  description:
    'One for each thing that is odd about the keys and yet written: `299 - "scheme_mismatch: widevine.psshdata says cbcs, but the algorithm is AESCTR (cenc); make them agree"`. Codes: `scheme_mismatch`, `key_id_mismatch`, `content_id_mismatch`, `content_key_is_key_id`, `key_id_reused`, `content_key_reused`, `key_is_iv`, `all_zero` (of a FairPlay iv), `no_drm_system`, `not_skd`, `plain_http`, `key_id_byte_order_suspected`, `box_for_data`; of the Widevine data `names_nothing`, `unsupported_scheme`, `encoded_twice` and `empty`; `group_name`; `provider_cache` when the key provider can not be asked and the values are those of an earlier answer; `not_durable` when the change is made but a power cut may undo it, since the folder could not be synced; with `PACKAGERDRMAPI_CHECKS=warn` also `checksum_mismatch`, `key_id_byte_order`, `key_and_key_id_swapped`, `all_zero`, `session_id_in_address`, `escaped_ampersand` and `unknown_scheme`. Of an imported key file all that a check of it warns of, and `checksum_added`, `unknown_line`: what was added and kept.',
  schema: { type: 'string' },
};
