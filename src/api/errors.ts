import type { ErrorEntry } from '../http/faults';

/** An entry is its case, or also the sentence and the headers that are always the same. */
function errorsAt<const Entries extends Readonly<Record<string, string | Omit<ErrorEntry, 'status'>>>>(
  status: number,
  entries: Entries,
) {
  const described = Object.entries(entries).map(([code, entry]) => [
    code,
    typeof entry === 'string' ? { status, when: entry } : { status, ...entry },
  ]);
  return Object.fromEntries(described) as {
    readonly [Code in keyof Entries]: { readonly status: number } & (Entries[Code] extends string
      ? { readonly when: string }
      : Entries[Code]);
  };
}

export const ERRORS = {
  ...errorsAt(400, {
    invalid_stream_id: 'The stream id breaks the rule for stream ids.',
    invalid_header:
      '`If-Match` or `If-None-Match` holds no entity tag, or came with a batch: they are for single streams. Or a pull that is to provision its stream has no `API-KEY`.',
    unknown_line: 'The key file has lines with unknown names.',
    missing_line: 'Of an imported key file: a line is missing without which others do nothing.',
    wrong_constant: 'Of an imported key file: a line whose value the packager does not accept.',
    cmaf_disagrees: 'Of an imported key file: one key id with two content keys.',
    no_lines: 'Of an imported key file: none of its lines is known, and all are to be kept.',
    key_id_byte_order: "PlayReady's checksum fits the key id in the other byte order.",
    checksum_mismatch: "PlayReady's checksum belongs to another key or key id.",
    key_and_key_id_swapped: 'Key and key id are swapped, as checksum or Widevine data show.',
    all_zero: 'A key or key id is all zeros: a placeholder.',
    session_id_in_address: "A license address contains the id of a viewer's session.",
    content_key_in_address: "A license address contains the stream's content key. It is not quoted.",
    unknown_scheme: 'The Widevine data names a protection scheme that does not exist.',
    escaped_ampersand: 'A license address has `&amp;` where `&` belongs.',
    invalid_cpix: 'The CPIX document cannot be used: it is not well-formed XML, or contradicts itself.',
    cpix_choice:
      'No key of the CPIX document matches the request, or several do. The description lists its keys.',
    cpix_not_usable:
      'The chosen key cannot be written: its scheme, signalling, license address or initialization vector is missing, or is not one that a packager accepts.',
    cpix_not_opened: 'The encrypted content keys of the CPIX document cannot be decrypted.',
  }),
  ...errorsAt(401, {
    unauthorized: 'The request has no API key, or a wrong one. The body is not read.',
  }),
  ...errorsAt(403, {
    forbidden: 'The API key is read-only, or has no access to the stream.',
  }),
  ...errorsAt(404, {
    key_file_not_found: {
      when: 'The stream has no key file.',
      says: 'This stream has no key file.',
    },
    fleet_not_configured: {
      when: 'The sidecar is not in a fleet.',
      says: 'This sidecar is not in a fleet. To join one, set PACKAGERDRMAPI_FLEET_URLS and PACKAGERDRMAPI_FLEET_SECRET_FILE.',
    },
    fleet_entry_not_found: {
      when: 'The fleet has no entry for the stream.',
      says: 'The fleet has no entry for this stream.',
    },
    packager_not_found: 'No packager of the fleet has the name.',
  }),
  ...errorsAt(409, {
    not_a_key_file:
      'A link, a folder, a device, or a file of more than 1 MiB is in the place of the key file.',
    fleet_entry_unreadable: {
      when: "The fleet's entry for the stream cannot be opened, so a condition on it cannot be checked. Nothing was changed.",
      says: "The fleet's entry for this stream cannot be opened: it was sealed with another secret, or is damaged. Nothing was changed. A POST without If-Match and If-None-Match replaces it.",
    },
    fleet_kept: {
      when: "In a warning: the stream was deleted in the fleet, but the key file here is not the fleet's, and stays.",
      says: 'The stream is deleted in the fleet. The key file next to this sidecar was changed by hand and stays: remove it there if it is not needed.',
    },
    packager_live: 'A running packager cannot be retired.',
    key_file_malformed:
      'The request asks for JSON, but the file is not lines of `name: value`; or for an export, but a packager would not accept the file.',
    keys_missing: 'The request asks for an export, but the key file does not have the lines that it needs.',
  }),
  ...errorsAt(410, {
    cursor_expired: {
      when: 'The cursor is not one that this service made.',
      says: 'This cursor is unknown. Start again without cursor.',
    },
  }),
  ...errorsAt(412, {
    precondition_failed:
      '`If-Match` or `If-None-Match` is not met: the key file has changed. Nothing was changed.',
  }),
  ...errorsAt(422, {
    speke_refused:
      'The SPEKE request asks for what a key file does not have: several content keys, another DRM system or scheme; or breaks a rule of SPEKE, whose text is the description.',
    client_unknown: 'The configuration service does not know `client`.',
    client_api_key_refused: 'An upstream refused `clientApiKey`.',
  }),
  ...errorsAt(429, {
    too_many_attempts: {
      when: 'Too many requests without a valid API key came from the address. The header `retry-after` says when its count starts again; a request with a valid key is answered at any time.',
      headers: { connection: 'close' },
    },
    too_many_pulls: {
      when: 'Too many streams without a key file were pulled with the API key: more than 200 in ten seconds, or 256 are being provisioned. The header `retry-after` says when to try again; streams with a key file are answered at any time.',
      headers: { 'retry-after': '10' },
    },
  }),
  ...errorsAt(500, {
    key_files_not_writable: 'The folder cannot be written to. The old file is intact.',
    key_files_not_readable: 'The folder or the file cannot be read.',
  }),
  ...errorsAt(502, {
    config_service_failed:
      'The configuration service failed, or (504) was too slow. No key file was changed.',
    key_provider_failed:
      'The key provider failed, returned values that cannot be trusted, or (504) was too slow. No key file was changed.',
  }),
  ...errorsAt(503, {
    provisioning_not_configured: 'The service has no address for an upstream.',
    too_many_open_files: {
      when: 'The process has no file descriptor left.',
      says: 'The service has no file descriptor left. Try again, or raise its limit of open files.',
    },
    too_many_batches: {
      when: 'Four batches are under way, or other large ones are being received: two with the API key, or eight in all. The header `retry-after` says when to try again.',
      headers: { 'retry-after': '5' },
    },
    stopping: {
      when: 'The service is stopping. Streams of a batch that were not started are not written.',
      says: 'Not tried: the service is stopping. No key file was changed; send the batch again.',
    },
    starting: {
      when: 'The service has just started.',
      says: 'Left-over files are being swept.',
    },
    fleet_unavailable: {
      when: "The fleet's engine cannot be reached, or its servers have no majority. Nothing was changed; key files can be read.",
      says: 'The engine of the fleet does not answer, or has no majority of its servers. Nothing was changed. Send the request again; packager-drm doctor says what is wrong.',
    },
    fleet_denied: {
      when: "The fleet's engine refuses the user, the certificate, or a right to the keys of the stream. Nothing was changed.",
      says: 'The engine of the fleet refuses this sidecar: its user, its certificate, or a right that it needs. Nothing was changed. Check PACKAGERDRMAPI_FLEET_USER, the rights of its role, and PACKAGERDRMAPI_FLEET_TLSCERT.',
    },
    fleet_wrong_secret: {
      when: 'The fleet was sealed with a secret that this sidecar does not have. Nothing is written here.',
      says: 'The fleet is sealed with a secret that this sidecar does not have. Nothing was changed. Give PACKAGERDRMAPI_FLEET_SECRET_FILE the secret of the fleet.',
    },
    fleet_missing_secret: {
      when: 'Only of `/readyz`: entries of the fleet are sealed with secrets that this sidecar does not have, so key files are missing here.',
      says: 'Append these secrets to the file of PACKAGERDRMAPI_FLEET_SECRET_FILE, or run packager-drm fleet reseal where both are.',
    },
    fleet_other: {
      when: 'The engine holds a different fleet than the one that this packager joined. Nothing is written here.',
      says: 'The engine holds a different fleet than the one that this packager has joined. Nothing was changed. Check PACKAGERDRMAPI_FLEET_URLS and PACKAGERDRMAPI_FLEET_PREFIX; docs/fleet.md says how a packager moves to another fleet.',
    },
    fleet_lost: {
      when: 'The engine is empty, though this packager has joined a fleet. Nothing is written or removed here.',
      says: 'The engine does not hold the fleet that this packager has joined: its data is lost, or these are other servers. Nothing was changed. Restore its backup, or found the fleet again: packager-drm fleet import --found.',
    },
    fleet_name_taken: {
      when: 'Another sidecar of the fleet runs under the same name. Key files still arrive.',
      says: 'Another sidecar of the fleet runs under the name of this one. Give each its own PACKAGERDRMAPI_FLEET_NAME.',
    },
    fleet_joining: {
      when: 'The sidecar has not yet received all key files of the fleet.',
      says: 'This sidecar has not yet received every key file of the fleet.',
    },
  }),
  ...errorsAt(504, {
    fleet_outcome_unknown: {
      when: "The fleet's engine was asked to change the key file and did not answer. It may be changed. Safe to repeat.",
      says: 'The engine of the fleet did not answer in time: the change may be made or not. Send the same request again.',
    },
  }),
  ...errorsAt(507, {
    fleet_full: {
      when: "The quota of the fleet's engine is used up. Nothing was changed; key files can be read.",
      says: 'The engine of the fleet has used up its quota and accepts no changes. Nothing was changed. Compact and defragment it, then disarm its alarm; docs/fleet.md says how.',
    },
    insufficient_storage: {
      when: 'The disk is full. The old file is intact.',
      says: 'There is no space left for key files, or no inode (df -i) or quota; none was damaged. Free some and try again.',
    },
  }),
} satisfies Readonly<Record<string, ErrorEntry>>;
