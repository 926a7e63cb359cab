import { CMAF, DASH } from '../drm/check/key-file-wire';

interface ErrorEntry {
  /** When it is answered. */
  readonly when: string;
  /** The sentence of an answer, for an example. */
  readonly says: string;
}

/** Every error of this service, by its code. */
export const ERRORS = {
  invalid_stream_id: {
    when: 'The stream id breaks the rule for stream ids.',
    says: 'No part of a stream id may start with a dot.',
  },
  invalid_path: {
    when: 'The path can not be decoded.',
    says: 'The path holds a percent-encoding that is not UTF-8. Encode each part of it once.',
  },
  invalid_query: {
    when: 'A parameter of the query is unknown, or its value is.',
    says: 'dryrun must be true or false. Nothing was written.',
  },
  invalid_header: {
    when: '`If-Match` or `If-None-Match` holds no entity tag, or came with a batch: they are for single streams.',
    says: 'If-Match and If-None-Match are for single streams: a batch has many files. Nothing was written; leave them out, or POST to /api/keyfile/{streamid}.',
  },
  invalid_body: {
    when: 'A field is missing, of the wrong form, or lacks another one. One error a field.',
    says: 'cenc.keyid: looks like hex (read as base64 it is 24 bytes); send the base64 of the 16 bytes',
  },
  unknown_field: {
    when: 'A field is not one of this request: most likely misspelt.',
    says: 'widevin is not a field of this request. Did you mean widevine?',
  },
  unknown_line: {
    when: 'The key file has lines of unknown names.',
    says: 'These lines are not known: vendor-tier (line 18). Send ?keepunknown=true to keep them as they are, or take them away.',
  },
  missing_line: {
    when: 'Of an imported key file: a line without which others do nothing.',
    says: `${CMAF}-algorithm is missing; add it, the other ${CMAF} lines need it.`,
  },
  wrong_constant: {
    when: 'Of an imported key file: a line whose value is none that the packager takes.',
    says: `${CMAF}-algorithm must be AESCTR (cenc) or AESCBC (cbcs).`,
  },
  checksum_with_aescbc: {
    when: 'Of an imported key file: a PlayReady checksum beside `AESCBC`.',
    says: `${CMAF}-keyserver-playready-checksum goes with AESCTR alone; take it away, PlayReady takes none with AESCBC.`,
  },
  cmaf_disagrees: {
    when: 'Of an imported key file: one key id with two content keys.',
    says: `${CMAF}-content-key differs from ${DASH}-content-key though the key id is the same; give both the key of that key id.`,
  },
  no_lines: {
    when: 'Of an imported key file: none of its lines is known, and all are to be kept.',
    says: 'The file has no line that the packager knows; it protects nothing.',
  },
  malformed_json: {
    when: 'The body is not JSON. It is not quoted.',
    says: 'The body is not valid JSON. Send one JSON object.',
  },
  key_id_byte_order: {
    when: "PlayReady's checksum fits the key id in the other byte order.",
    says: 'playready.checksum belongs to this key with its key id in the other byte order: cenc.keyid must be big endian (as in a UUID); send it with bytes 0-3, 4-5 and 6-7 reversed.',
  },
  checksum_mismatch: {
    when: "PlayReady's checksum belongs to another key or key id.",
    says: 'playready.checksum is not the checksum of cenc.keyid and cenc.contentkey; leave it out to have it computed, or send the three of one key.',
  },
  key_and_key_id_swapped: {
    when: "Key and key id stand in each other's place, as checksum or Widevine data tell.",
    says: "cenc.keyid and cenc.contentkey stand in each other's place, as the other values tell; swap them, and take a new key if they were in use so.",
  },
  all_zero: {
    when: 'A key or key id is all zeros: a placeholder.',
    says: 'cenc.contentkey is all zeros; send the real key.',
  },
  session_id_in_address: {
    when: "A license address carries the id of a viewer's session.",
    says: 'fairplay.laurl carries the id of a session; take it off, and set cupertinoAppendQueryParamsToEncUrl to false in the packager so that it does not come back.',
  },
  unknown_scheme: {
    when: 'The Widevine data names a protection scheme that there is none of.',
    says: 'widevine.psshdata.protection_scheme is none of cenc, cens, cbc1 and cbcs; it must be the four characters as one big-endian number.',
  },
  escaped_ampersand: {
    when: 'A license address has `&amp;` where `&` belongs.',
    says: 'playready.laurl has &amp; where & belongs; it was copied from XML or HTML as it stood.',
  },
  bad_request: {
    when: 'What arrived is not valid HTTP.',
    says: 'The request is not valid HTTP.',
  },
  unauthorized: {
    when: 'No API key came with the request, or a wrong one. The body is not read.',
    says: 'Send the API key of this service in the header x-api-key.',
  },
  https_required: {
    when: 'The service speaks HTTPS, and was called without.',
    says: 'This port speaks HTTPS: call it with https://.',
  },
  client_certificate_required: {
    when: 'The service asks for client certificates (`PACKAGERDRMAPI_TLSCLIENTCA`), and none was shown.',
    says: 'Show a client certificate that an authority of this service has signed.',
  },
  client_certificate_refused: {
    when: 'A client certificate was shown that does not hold.',
    says: 'The client certificate is refused: it has expired.',
  },
  forbidden: {
    when: 'The API key may read only, or does not reach the stream.',
    says: 'The API key monitoring may read only. Use another API key, or have its rights changed in the file of API keys.',
  },
  not_found: {
    when: 'There is nothing at the path.',
    says: 'There is nothing at this path.',
  },
  key_file_not_found: {
    when: 'The stream has no key file.',
    says: 'This stream has no key file.',
  },
  method_not_allowed: {
    when: 'The path takes other methods; the header `allow` names them.',
    says: 'This path takes GET, HEAD, POST, DELETE, not PUT.',
  },
  request_timeout: {
    when: 'The head of the request did not arrive within 10 seconds, or its body within a minute (of a batch: 30 seconds).',
    says: 'The request did not arrive in time.',
  },
  not_a_key_file: {
    when: 'A link, a folder or a device stands where the key file belongs.',
    says: 'There is a symbolic link where the key file belongs; it is left as it is. Remove it, or use another stream id.',
  },
  key_file_malformed: {
    when: 'JSON was asked for, but the file is not lines of `name: value`.',
    says: 'Line 3 of the key file is not "name: value". Read the file as text/plain, or write it again.',
  },
  cursor_expired: {
    when: 'The cursor is unknown: its listing was closed after 5 minutes without a request, for newer ones, or by a restart.',
    says: 'This cursor is unknown or has expired: a listing is closed after 5 minutes without a request, when too many are open, and when the service stops. Start again without cursor.',
  },
  precondition_failed: {
    when: '`If-Match` or `If-None-Match` does not hold: the key file is another by now. Nothing was changed.',
    says: 'The key file has changed since: it is another than If-Match names. GET it, look, and send its new ETag.',
  },
  body_too_large: {
    when: 'The body is larger than the request takes.',
    says: 'The body is larger than this route takes: 64 KiB.',
  },
  unsupported_media_type: {
    when: 'The body is declared as another type, or as compressed.',
    says: 'Send the body as JSON, with content-type: application/json.',
  },
  client_unknown: {
    when: 'The configuration service does not know `client`.',
    says: 'The configuration service does not know this client. Check client.',
  },
  client_api_key_refused: {
    when: 'An upstream refused `clientApiKey`.',
    says: 'The configuration service refused the API key of this client. Check clientApiKey.',
  },
  too_many_attempts: {
    when: 'Too many requests without a valid API key came from the address. The header `retry-after` says when its count begins anew; a request with a valid key is answered at any time.',
    says: 'The API key in x-api-key is not the one of this service. Too many requests without a valid key came from this address; one with a valid key is answered at any time.',
  },
  request_header_fields_too_large: {
    when: 'The headers have more than 16 KiB.',
    says: 'The headers are larger than this service takes.',
  },
  server_error: {
    when: "A fault of the service. Its log has the cause under the answer's `x-request-id`.",
    says: 'The service failed. The cause is in its log under the request id of this answer.',
  },
  key_files_not_writable: {
    when: 'The folder refuses to be written. The old file is whole.',
    says: 'The key-file folder is not writable: the folder is mounted read-only (EROFS). Check PACKAGERDRMAPI_KEYFILESPATH, its mount and its owner.',
  },
  key_files_not_readable: {
    when: 'The folder or the file refuses to be read.',
    says: 'The key-file folder is not readable: the folder is gone (ENOENT). Check PACKAGERDRMAPI_KEYFILESPATH, its mount and its owner.',
  },
  config_service_failed: {
    when: 'The configuration service failed, or (504) was too slow. No key file was changed.',
    says: 'The configuration service answered 500. No key file was changed.',
  },
  key_provider_failed: {
    when: 'The key provider failed, answered what is not to be trusted, or (504) was too slow. No key file was changed.',
    says: 'The key provider answered 500. No key file was changed.',
  },
  provisioning_not_configured: {
    when: 'The service has no address of an upstream.',
    says: "Keys can't be provisioned: set PACKAGERDRMAPI_GRANDCENTRALURL and PACKAGERDRMAPI_KEYPROVIDERURL, or supply cenc and fairplay in the body.",
  },
  too_many_open_files: {
    when: 'The process has no file descriptor left.',
    says: 'The service has no file descriptor left. Try again, or raise its limit of open files.',
  },
  too_many_batches: {
    when: 'Four batches are under way, or other large ones are being received: two of the API key, or eight. The header `retry-after` says when to try again.',
    says: '4 batches are under way. Nothing of this one was written; send it again when they are done.',
  },
  too_many_connections: {
    when: 'All places for connections are taken by clients with a valid API key. The header `retry-after` says when to try again.',
    says: 'All places for connections are taken by other clients. Try again in a moment.',
  },
  too_many_requests_ahead: {
    when: 'More requests were sent on a connection before their answers than may wait. The connection ends.',
    says: 'Too many requests were sent before their answers were read. Send the rest again.',
  },
  stopping: {
    when: 'The service is stopping: of a batch, what was not begun is not done.',
    says: 'Not tried: the service is stopping. No key file was changed; send the batch again.',
  },
  starting: {
    when: 'The service has just started.',
    says: 'Left-over files are being swept.',
  },
  insufficient_storage: {
    when: 'The disk is full. The old file is whole.',
    says: 'There is no space left for key files; none was damaged. Free some space and try again.',
  },
} as const satisfies Readonly<Record<string, ErrorEntry>>;

export type ErrorCode = keyof typeof ERRORS;
