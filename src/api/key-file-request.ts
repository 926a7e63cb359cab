import * as z from 'zod';
import { type Checked, decodeBase64Block, decodeHexBlock, isJsonObject, parseUuid } from '../drm/bytes';
import { CMAF_CBCS_REFUSED } from '../drm/cmaf-cbcs';
import type { CpixSystemName } from '../drm/cpix/document';
import { MAX_CPIX_BYTES } from '../drm/cpix/read';
import { CLIENT_API_KEY, PROVIDER_ID } from '../drm/envelope';
import { EXPORT_NAMES, EXPORT_SCHEMES } from '../drm/export/names';
import { checkLicenseUrl } from '../drm/key-file';
import { decodePlayReadyChecksum } from '../drm/playready';
import { MAX_PSSH_CHARACTERS, readWidevinePsshData } from '../drm/widevine';

const text = z.string('must be a string');

/** The check's sentence becomes the problem of the field. */
export function checkedText<T>(check: (text: string) => Checked<T>): z.ZodType<string> {
  return text.superRefine((value, context) => {
    const checked = check(value);
    if (!checked.ok) context.addIssue({ code: 'custom', message: checked.problem.description });
  });
}

/** The same for a value whose decoded form is used. */
export function checkedValue<T>(check: (text: string) => Checked<T>): z.ZodType<T> {
  return text.transform((value, context) => {
    const checked = check(value);
    if (checked.ok) return checked.value;
    context.addIssue({ code: 'custom', message: checked.problem.description });
    return z.NEVER;
  });
}

/** `null` means the same as leaving a field out: clients that serialise a class send it. */
const part = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z
    .strictObject(shape, {
      error: (issue) => (issue.code === 'invalid_type' ? 'must be an object' : undefined),
    })
    .nullish();

const providerId = text.regex(PROVIDER_ID.pattern, PROVIDER_ID.problem.description);
const apiKey = text.regex(CLIENT_API_KEY.pattern, CLIENT_API_KEY.problem.description);

/** For readers of the JSON Schema; the checks themselves are in `drm/bytes.ts`. */
const BASE64_BLOCK = { contentEncoding: 'base64', pattern: '^[A-Za-z0-9+/]{21}[AQgw]==$' };
const HEX_BLOCK = { pattern: '^[0-9A-Fa-f]{32}$' };

/** `expected` names the values that `cmaf` takes. */
export function cmafFault(expected: string): (issue: { readonly input?: unknown }) => string {
  return ({ input }) => (input === 'cbcs' ? CMAF_CBCS_REFUSED : `must be ${expected}`);
}

const cmaf = z
  .union([z.boolean(), z.literal('cenc')], { error: cmafFault('true, "cenc" or false') })
  .transform((value) => value !== false)
  .nullish()
  .describe(
    'Whether there are lines for CMAF next to those for MPEG-DASH: `true`, or `cenc`, which is the scheme of both; `false` for none. Left out: as the service is configured.',
  );

/** `cmaf` as a text, in a query or a variable. */
export const cmafText = z
  .enum(['true', 'cenc', 'false'], { error: cmafFault('true, cenc or false') })
  .transform((value) => value !== 'false');

const ignored = z.unknown().optional().describe('Ignored, whatever it holds.');
/** Old clients write `drmJson`. */
const anything = { drmjson: ignored, drmJson: ignored.meta({ deprecated: true }) };

const cenc = {
  keyid: checkedText(decodeBase64Block).meta({
    ...BASE64_BLOCK,
    description: 'The key id: base64 of its 16 bytes, big endian (the order of a UUID).',
  }),
  contentkey: checkedText(decodeBase64Block).meta({
    ...BASE64_BLOCK,
    description: 'The content key: base64 of its 16 bytes.',
  }),
};

const playready = {
  laurl: checkedText(checkLicenseUrl('playready')).describe(
    'The license address: `https://…` or `http://…`.',
  ),
  checksum: checkedText(decodePlayReadyChecksum).nullish().meta({
    contentEncoding: 'base64',
    description:
      'The checksum of key id and content key, base64 of 8 bytes. Left out: computed. Given: checked.',
  }),
};

const widevine = {
  psshdata: checkedValue(readWidevinePsshData).nullish().meta({
    contentEncoding: 'base64',
    maxLength: MAX_PSSH_CHARACTERS,
    description:
      'The data of a Widevine `pssh` box, base64; a whole box is unwrapped. Left out (`"widevine": {}`): made of key id and `contentId`.',
  }),
};

const fairplay = {
  key: checkedText(decodeHexBlock).meta({
    ...HEX_BLOCK,
    description: 'The key: 32 hex digits, written as given.',
  }),
  iv: checkedText(decodeHexBlock).meta({
    ...HEX_BLOCK,
    description: 'The initialization vector: 32 hex digits, written as given.',
  }),
  laurl: checkedText(checkLicenseUrl('fairplay')).describe(
    'The license address: `skd://…`, `https://…` or `http://…`.',
  ),
};

const aes = {
  key: checkedText(decodeHexBlock).meta({
    ...HEX_BLOCK,
    description: 'The key: 32 hex digits, written as given.',
  }),
  url: checkedText(checkLicenseUrl('aes')).describe(
    'The address where players fetch the key: `https://…` or `http://…`.',
  ),
  iv: checkedText(decodeHexBlock)
    .nullish()
    .meta({
      ...HEX_BLOCK,
      description:
        'The initialization vector: 32 hex digits, written as given. Left out: the packager takes the number of the segment.',
    }),
};

/** Of the body of a POST, without a CPIX document in it. */
export const MAX_BODY_BYTES = 64 * 1024;

/** Bytes of the fields as JSON without the text of a CPIX document, and characters of that text. */
export function sizeOf(fields: unknown): { readonly fields: number; readonly document: number } {
  const cpix = isJsonObject(fields) ? fields.cpix : undefined;
  if (typeof cpix === 'string')
    return { fields: bytesOf({ ...Object(fields), cpix: '' }), document: cpix.length };
  return { fields: bytesOf(fields), document: 0 };
}

function bytesOf(value: unknown): number {
  try {
    return Buffer.byteLength(JSON.stringify(value) ?? '');
  } catch {
    // Nested deeper than the stack allows.
    return Number.POSITIVE_INFINITY;
  }
}

/** Refused with a sentence that names the missing field, instead of the schema's. */
const needing = (name: string) =>
  z
    .unknown()
    .optional()
    .meta({ type: 'null', description: `Not here: it needs \`${name}\`.` });
/** The field makes a body one of another form. */
const excluded = (why: string) => z.null().optional().describe(`Not here: it would ${why}.`);
const choosing = needing('cpix');
const noDocument = {
  cpix: excluded('hold the keys'),
  ...{ kid: choosing, track: choosing, period: choosing, systems: choosing },
};

const withKeys = z.unknown().optional().describe('Ignored where the body supplies the keys.');
const noLines = {
  keyfile: excluded('hold all of the key file'),
  keepunknown: needing('keyfile'),
};

export const SUPPLYING = ['cenc', 'fairplay', 'aes'] as const;

export const suppliedBody = z
  .strictObject(
    {
      cenc: part(cenc).describe('Common encryption. PlayReady and Widevine need it.'),
      playready: part(playready).describe('PlayReady.'),
      widevine: part(widevine).describe('Widevine.'),
      fairplay: part(fairplay).describe('FairPlay. It needs no `cenc`.'),
      aes: part(aes).describe(
        'HLS with AES-128, which is no DRM: players fetch the key itself. It needs no `cenc`. Not with `fairplay`, which has the same lines of the key file.',
      ),
      client: withKeys,
      clientApiKey: withKeys,
      contentId: providerId
        .nullish()
        .describe(
          'The content id to compare Widevine data and the FairPlay address with, or to make Widevine data from.',
        ),
      cmaf,
      ...noLines,
      ...noDocument,
      ...anything,
    },
    'The body must be a JSON object.',
  )
  .refine((body) => !body.aes || !body.fairplay, {
    path: ['aes'],
    error: 'has the same lines of the key file as fairplay; give one of the two',
  })
  .meta({
    title: 'Keys supplied',
    description:
      'The keys themselves, and nothing is fetched. One of `cenc`, `fairplay` and `aes` at least; what is left out has no lines in the file, and `null` is the same as left out.',
    anyOf: SUPPLYING.map((name) => ({
      required: [name],
      properties: { [name]: { type: 'object' } },
    })),
  });

const MAX_NAME = 200;
const name = text
  .refine((value) => value !== '' && value.length <= MAX_NAME, `must have 1 to ${MAX_NAME} characters`)
  .meta({ minLength: 1, maxLength: MAX_NAME });

/** The same in a body and in a query. */
const choice = {
  kid: checkedValue(parseUuid).nullish().meta({
    format: 'uuid',
    description:
      'The key id, as the document has it: a UUID. For a system without this key, its only key is used.',
  }),
  track: name
    .nullish()
    .describe(
      'The track that the keys are for: a track type (`intendedTrackType`) or a label of the usage rules, or `VIDEO` or `AUDIO` by their filters.',
    ),
  period: name
    .nullish()
    .describe('The key period, by its id or its index. Needed where periods have different keys.'),
};

const SYSTEMS = ['widevine', 'playready', 'fairplay'] as const satisfies readonly CpixSystemName[];
const listOf = <Name extends string>(names: readonly [Name, ...Name[]]) =>
  z
    .array(z.enum(names, `must be one of ${names.join(', ')}`), `must be a list of ${names.join(', ')}`)
    .refine((given) => given.length > 0, 'is empty')
    .meta({ minItems: 1 });
const systems = listOf(SYSTEMS);
/** AES-128 is no DRM system. */
const providerSystems = listOf([...SYSTEMS, 'aes'])
  .refine(
    (names) => !names.includes('aes') || !names.includes('fairplay'),
    'has aes and fairplay, which have the same lines of the key file; name one of the two',
  )
  .meta({ minItems: 1 });
/** The names with commas between them, in a query or a variable. */
export const systemNames = text
  .transform((names) => names.split(',').map((name) => name.trim()))
  .pipe(systems);
const SYSTEMS_SAID =
  'The DRM systems to write. Left out: those that the document has for the key. Widevine data that the document does not have is made.';

const laurl = playready.laurl.describe(
  "PlayReady's license address, instead of the one in the document. Needed if it has none.",
);

/** The protocol of the key provider decides which of the fields are needed. */
export const providerBody = z
  .strictObject(
    {
      client: providerId
        .nullish()
        .describe(
          'The client, as the configuration service knows it. Needed where the key provider is asked by JSON, or where its address has `{client}`.',
        ),
      clientApiKey: apiKey
        .nullish()
        .describe(
          "The client's key at the configuration service. Needed where the key provider is asked by JSON.",
        ),
      contentId: providerId.describe('The content. The same content id always gives the same keys.'),
      cmaf,
      cenc: excluded('supply the keys'),
      fairplay: excluded('supply the keys'),
      aes: excluded('supply the keys'),
      widevine: needing('cenc'),
      cpix: noDocument.cpix,
      ...choice,
      systems: providerSystems
        .nullish()
        .describe(
          'The DRM systems to ask for. Left out: all; of a CPIX document that is fetched, those that it has. With `aes`, which is for a provider that is asked by JSON, HLS has AES-128 in place of FairPlay: `["aes"]` for HLS alone, `["widevine", "playready", "aes"]` with DASH.',
        ),
      playready: part({ laurl }).describe('PlayReady.'),
      ...noLines,
      ...anything,
    },
    'The body must be a JSON object.',
  )
  .meta({
    title: 'Keys from the key provider',
    description:
      'A content at the key provider: CENC, Widevine, PlayReady and FairPlay are fetched. `systems` without `aes`, `playready` and `track` are for a provider that speaks SPEKE or answers CPIX documents, `kid` and `period` for one of CPIX documents; others refuse them.',
  });

export const importedBody = z
  .strictObject(
    {
      keyfile: text.describe('The lines `name: value`, of a key file that some program or person wrote.'),
      keepunknown: z
        .boolean('must be true or false')
        .nullish()
        .describe(
          'Whether lines with unknown names are kept as they are, after the others. Left out: they are refused.',
        ),
      ...anything,
    },
    'The body must be a JSON object.',
  )
  .meta({
    title: 'An existing key file',
    description:
      'The text of a key file, to be taken over; the same as sending it as `text/plain`. No value becomes another.',
  });

export const cpixBody = z
  .strictObject(
    {
      cpix: text.meta({
        contentMediaType: 'application/cpix+xml',
        description: `The text of a CPIX document (DASH-IF, 2.0 to 2.4), ${MAX_CPIX_BYTES / 1024} KiB at most.`,
      }),
      ...choice,
      systems: systems.nullish().meta({ description: SYSTEMS_SAID }),
      playready: part({ laurl }).describe('PlayReady.'),
      contentId: providerId
        .nullish()
        .describe("The content id for Widevine data that is made. Left out: the document's."),
      client: withKeys,
      clientApiKey: withKeys,
      cmaf,
      ...noLines,
      ...anything,
    },
    'The body must be a JSON object.',
  )
  .meta({
    title: 'A CPIX document',
    description:
      'A document with the keys of a content, plain or encrypted for this service. One key is taken for Widevine and PlayReady and one for FairPlay, which may be the same. Where there are several, `track` or `kid` chooses.',
  });

/** The query of a request whose body is the document itself. */
export const cpixQuery = z.strictObject({
  ...choice,
  systems: systemNames
    .nullish()
    .describe(`${SYSTEMS_SAID} \`widevine\`, \`playready\` and \`fairplay\`, with commas between them.`),
  laurl: laurl.nullish(),
  contentid: cpixBody.shape.contentId,
  cmaf: cmafText.nullish().meta({ description: cmaf.meta()?.description ?? '' }),
});

export const exportQuery = z.strictObject({
  as: z
    .enum(EXPORT_NAMES, `must be one of ${EXPORT_NAMES.join(', ')}`)
    .describe(
      'The keys in the form of another packager, in place of the key file: a file of flags for shaka-packager (`--flagfile`), the JSON that nginx-vod-module fetches (`vod_drm_upstream_location`), options for Bento4 (`mp4-dash.py`, one a line), a CPIX 2.3 document for Unified Streaming and others, the part `encryption` of the pipeline of shaka-streamer, the DRM file of GPAC (`MP4Box -crypt`), or for ffmpeg a file of options (`-fpre`), of AES-128 the one for `-hls_key_info_file`.',
    ),
  scheme: z
    .enum(
      EXPORT_SCHEMES,
      'must be cenc, the key of Widevine and PlayReady, cbcs, the key of FairPlay, or aes-128, the key of HLS without DRM',
    )
    .optional()
    .describe(
      'Only with `as`: which key. `cenc` is the key of Widevine and PlayReady, `cbcs` the key of FairPlay, under a key id made from its license address; `aes-128`, for `ffmpeg` alone, is the key of HLS that players fetch. Without it, `cpix` holds all keys, each with its scheme; the others hold the key of `cenc` if there is one, else the other.',
    ),
});

/** The query of a request that exports the keys of its body. */
export const exportBodyQuery = exportQuery.extend(choice);
