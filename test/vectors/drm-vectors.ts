import { z } from 'zod';
import type { KeyFile } from '../../src/drm/key-file';
import type { WidevinePsshData } from '../../src/drm/widevine';
import vectors from './drm-vectors.json';

/*
 * The shape of drm-vectors.json. Lists and maps are open: the tests walk them, so an entry added to the file is tested
 * without a change here. Fields are closed: a field that no test knows stops every test that reads the file.
 */

const widevineDecoded = z.strictObject({
  algorithm: z.number().optional(),
  key_id: z.array(z.string()).optional(),
  provider: z.string().optional(),
  content_id: z.string().optional(),
  track_type_deprecated: z.string().optional(),
  policy: z.string().optional(),
  protection_scheme: z.strictObject({ uint32: z.number(), fourcc: z.string() }).optional(),
});

const keyFileValues = z.strictObject({
  cenc: z.strictObject({ keyid: z.string(), contentkey: z.string() }),
  playready: z.strictObject({ laurl: z.string(), checksum: z.string() }),
  widevine: z.strictObject({ psshdata: z.string() }),
  fairplay: z.strictObject({ key: z.string(), iv: z.string(), laurl: z.string() }),
});

const keyFileSample = z.strictObject({
  status: z.string(),
  request_body: keyFileValues.nullable(),
  values: keyFileValues,
  section_order: z.enum(['widevine-first', 'playready-first']),
  iv_include_in_chunklist: z.enum(['true', 'false']),
  trailing: z.string().nullable(),
  note: z.string().nullable(),
  lines: z.array(z.string()),
  derived: z.strictObject({
    kid_uuid: z.string(),
    kid_be_b64: z.string(),
    kid_le_b64: z.string(),
    key_hex: z.string(),
    playready_checksum: z.string(),
    checksum_if_kid_not_swapped: z.string(),
    widevine_decoded: widevineDecoded,
    widevine_pssh_box_v0_b64: z.string(),
    widevine_pssh_box_v0_size: z.number(),
    widevine_kid_only_data_b64: z.string(),
    contentid_from_fairplay_url: z.string(),
  }),
});

const envelope = z.strictObject({ key: z.string() });

const file = z.strictObject({
  about: z.string(),
  constants: z.strictObject({
    system_ids: z.record(z.string(), z.string()),
    schemes: z.record(z.string(), z.strictObject({ uint32: z.number(), field9_hex: z.string() })),
  }),
  key_file_samples: z.object({ source: z.string() }).catchall(keyFileSample),
  key_provider: z.strictObject({
    source: z.string(),
    plain_texts: z.record(z.string(), z.record(z.string(), z.string())),
    checks: z.strictObject({
      cenc_key_id_hex_equals_big_endian_bytes: z.boolean(),
      cenc_checksum_needs_swap: z.boolean(),
      playready_key_id_is_little_endian: z.boolean(),
      playready_key_id_uuid_is_malformed: z.boolean(),
      cenc_kid_uuid: z.string(),
      cenc_checksum_if_not_swapped: z.string(),
      cenc_widevine_decoded: widevineDecoded,
      widevine_decoded: widevineDecoded,
    }),
  }),
  envelope: z
    .object({
      form: z.string(),
      status: z.string(),
      shared_secret: z.string(),
      client: z.string(),
      negative: z.record(z.string(), envelope),
    })
    .catchall(envelope),
  playready_checksum: z.strictObject({
    rule: z.string(),
    vectors: z.array(
      z.strictObject({
        source: z.string(),
        status: z.string(),
        kid_uuid: z.string(),
        kid_be_b64: z.string(),
        kid_le_b64: z.string(),
        key_hex: z.string(),
        key_b64: z.string(),
        checksum: z.string(),
        checksum_if_kid_not_swapped: z.string(),
      }),
    ),
  }),
  widevine_pssh_data: z.array(
    z.strictObject({
      source: z.string(),
      data_b64: z.string(),
      decoded: widevineDecoded,
      box_v0_b64: z.string(),
    }),
  ),
  widevine_pssh_data_rejects: z.array(
    z.strictObject({
      name: z.string(),
      data_b64: z.string(),
      decoded: widevineDecoded.optional(),
      expect: z.string(),
    }),
  ),
  pssh_boxes: z.array(
    z.strictObject({
      source: z.string(),
      b64: z.string(),
      size: z.number(),
      version: z.union([z.literal(0), z.literal(1)]),
      flags: z.number(),
      system_id: z.string(),
      kids: z.array(z.string()).optional(),
      data_size: z.number(),
      widevine: widevineDecoded.optional(),
      data_b64: z.string(),
      note: z.string().optional(),
    }),
  ),
  playready_object_self_made: z.strictObject({
    status: z.string(),
    for_sample: z.string(),
    xml: z.string(),
    pro_bytes: z.number(),
    pro_b64: z.string(),
    pssh_v0_bytes: z.number(),
    pssh_v0_sha256: z.string(),
  }),
  clearkey: z.strictObject({
    source: z.string(),
    request: z.strictObject({ kids: z.array(z.string()), type: z.literal('temporary') }),
    license: z.strictObject({
      keys: z.array(z.strictObject({ kty: z.literal('oct'), k: z.string(), kid: z.string() })),
      type: z.literal('temporary'),
    }),
  }),
});

export const drmVectors = file.parse(vectors);

const { source: _, ...samples } = drmVectors.key_file_samples;
/** The key file samples as rows of a test table: name and sample. */
export const keyFileSamples = Object.entries(samples);

export type KeyFileValues = z.output<typeof keyFileValues>;

/** A sample's values as `src/drm` takes them. */
export function keyFileOf({ cenc, playready, widevine, fairplay }: KeyFileValues): KeyFile {
  return {
    cenc: { keyId: cenc.keyid, contentKey: cenc.contentkey },
    playready: { licenseUrl: playready.laurl, checksum: playready.checksum },
    widevine: { psshData: widevine.psshdata },
    fairplay: { key: fairplay.key, iv: fairplay.iv, licenseUrl: fairplay.laurl },
  };
}

/** The content of a Widevine message by the file, as `src/drm` reads it. */
export function widevineDataOf(decoded: z.output<typeof widevineDecoded>): WidevinePsshData {
  const { algorithm, key_id, provider, content_id, track_type_deprecated, policy, protection_scheme } =
    decoded;
  return {
    ...(algorithm === undefined ? {} : { algorithm }),
    keyIds: (key_id ?? []).map((uuid) => Buffer.from(uuid.replaceAll('-', ''), 'hex')),
    ...(provider === undefined ? {} : { provider }),
    ...(content_id === undefined ? {} : { contentId: Buffer.from(content_id) }),
    ...(track_type_deprecated === undefined ? {} : { trackType: track_type_deprecated }),
    ...(policy === undefined ? {} : { policy }),
    ...(protection_scheme === undefined ? {} : { protectionScheme: protection_scheme.uint32 }),
  };
}
