import * as z from 'zod';
import { SPEKE_VERSIONS } from '../../../drm/cpix/speke-answer';
import { parameter } from '../../../http/openapi';
import { field } from '../json-body';
import { LicenseRequest } from '../upstreams/clearkey-license';
import { ClientRecord } from '../upstreams/config-service';
import { CPIX_PATH, SPEKE_PATHS, STUDIO_PATHS } from '../upstreams/cpix-provider';
import { deriveKeys, KEY_ANSWERS } from '../upstreams/key-provider';
import {
  type AnsweredError,
  answer,
  type Details,
  type Group,
  json,
  type Row,
  rowsOf,
  text,
} from './operation';

const CPIX = { 'application/xml': { type: 'string', description: 'A CPIX document.' } } as const;

type Kind = keyof typeof KEY_ANSWERS;

const KINDS: Readonly<Record<Kind, string>> = {
  cenc: 'CENC, with PlayReady and Widevine',
  fairplay: 'FairPlay',
  widevine: 'Widevine',
  playready: 'PlayReady',
  aes: 'AES-128',
};

const SOME_CLIENT = { name: 'client', apiKey: '', sharedSecret: '' };

/** The names of the fields of an envelope, read from a sample. */
function fieldsOf(kind: Kind): string {
  const sample = { client: SOME_CLIENT.name, contentId: 'id', keys: deriveKeys(SOME_CLIENT, 'id') };
  const names = Object.keys(KEY_ANSWERS[kind].fields(sample)).map((name) => `\`${name}\``);
  return names.join(', ');
}

const Envelope = z.object({
  key: field(
    text.regex(/^[A-Za-z0-9+/]+={0,2}\|[0-9a-f]{40}$/),
    'The fields as JSON in AES-128-ECB under the first 16 characters of the shared secret, in base64; after a `|` the SHA-1 of shared secret, client and base64 in hexadecimal.',
  ),
});

const Key = z.object({
  kty: field(z.literal('oct'), 'The key type.'),
  kid: field(text, 'The key id: 16 bytes in base64url without padding.'),
  k: field(text, 'The content key, in base64url without padding.'),
});
const License = z.object({
  keys: field(z.array(Key), 'The keys.'),
  type: LicenseRequest.shape.type.unwrap(),
});

const NOT_A_REQUEST: readonly AnsweredError[] = [
  'invalid_content_id',
  [400, 'invalid_cpix', 'The body is no CPIX document, or one without a content key.'],
  'body_too_large',
  [
    422,
    'invalid_cpix',
    'The document asks for something that this provider does not have, or breaks a rule of SPEKE v2.',
  ],
];

const VERSION_HEADER = parameter(
  'X-Speke-Version',
  'The version of the protocol.',
  { type: 'string', enum: [...SPEKE_VERSIONS.keys()] },
  { in: 'header', required: true },
);

const SCHEME = parameter(
  'scheme',
  '`cenc`: only the key for Widevine and PlayReady. `cbcs`: only the one for FairPlay.',
  { type: 'string', enum: ['cenc', 'cbcs'] },
);

const DRM = parameter(
  'drm',
  'Only these of `fairplay`, `playready` and `widevine`, with commas between them.',
);

const StudioKeys = z.object({
  key_id_hex: field(text, 'The key id.'),
  content_key_hex: field(text, 'The content key.'),
  iv_hex: field(text, 'The initialization vector of FairPlay.'),
  playready_pssh_data: field(text.optional(), 'The PlayReady object, in base64.'),
  playready_system_id: field(text.optional(), 'The id of PlayReady.'),
  widevine_drm_specific_data: field(text.optional(), 'A whole box, in base64.'),
  widevine_system_id: field(text.optional(), 'The id of Widevine.'),
  fairplay_system_id: field(text.optional(), 'The id of FairPlay.'),
  fairplay_laurl: field(text.optional(), 'The license address of FairPlay.'),
});

const CPIX_KEYS = { 200: answer('The keys.', CPIX) };

const SPEKE: Details = {
  body: CPIX,
  answers: CPIX_KEYS,
  errors: NOT_A_REQUEST,
};

const studio = (answers: Row['answers']): Details => ({
  parameters: [DRM],
  answers,
  errors: ['invalid_content_id', [400, 'invalid_cpix', 'A name in `drm` is unknown.']],
});

const DETAILS: Readonly<Record<string, Details>> = {
  clearKeyLicense: {
    access: undefined,
    body: { 'application/json': LicenseRequest },
    answers: { 200: json('The license.', License) },
    errors: [[404, 'key_unknown', 'The key provider has given out none of these keys. One error a key.']],
  },
  readClient: { answers: { 200: json('The record.', ClientRecord) } },
  spekeKeys: SPEKE,
  speke2Keys: { ...SPEKE, parameters: [VERSION_HEADER] },
  cpixKeys: {
    parameters: [SCHEME],
    answers: CPIX_KEYS,
    errors: ['invalid_content_id', [400, 'invalid_cpix', 'The scheme is unknown.']],
  },
  studiocpix: studio(CPIX_KEYS),
  studiomultikey: studio(CPIX_KEYS),
  studiokeys: studio({ 200: json('The keys.', StudioKeys) }),
};

const ENVELOPE: Details = { answers: { 200: json('The keys.', Envelope) }, errors: ['invalid_content_id'] };

const spekeOf = (id: string, path: string, version: number, rules: string) =>
  `${id} | POST ${path} | Get keys by SPEKE v${version} | The document that was sent, with the provider's key ids, values and signalling. The keys are those of the JSON answers, unless the usage rules name tracks or several periods: each has a key of its own then. A request with a certificate is answered with encrypted values. ${rules}`;

const envelopeOf = ([kind, name]: readonly [string, string]) =>
  `${kind}Keys | GET /keyprovider/${kind}/:client/:contentId | Get keys for ${name} | The keys of a content, in an envelope that the client's shared secret opens: ${fieldsOf(kind as Kind)}. They are the same for the same client and content, also after a restart.`;

const CALLS = `
${Object.entries(KINDS).map(envelopeOf).join('\n')}
clearKeyLicense | POST /keyprovider/clearkey | Get a ClearKey license | The license request and the license of W3C Encrypted Media Extensions § 9.1, as a player sends and takes them. Key ids that are not known are left out.
readClient | GET /config/v1/clients/:client | Read the record of a client | The configuration service: a client's DRM settings, its shared secret among them.
${spekeOf('spekeKeys', SPEKE_PATHS.speke1, 1, 'The content id is the attribute `id`.')}
${spekeOf('speke2Keys', SPEKE_PATHS.speke2, 2, 'All keys must have one scheme, and a usage rule each. With 2.0 the document is CPIX 2.3, with 2.1 CPIX 2.4.')}
cpixKeys | GET ${CPIX_PATH} | Get keys as a CPIX document | A document with the keys of a content: one for Widevine and PlayReady, one for FairPlay. They are those of the JSON answers.
studiocpix | GET ${STUDIO_PATHS.cpix} | Get the key of a content as Studio DRM answers it | CPIX 2.1 with one key for all systems: the JSON answers' key of CENC.
studiomultikey | GET ${STUDIO_PATHS.multikey} | Get one key for pictures and one for sound | The same for DASH, with a usage rule for video and one for audio.
studiokeys | GET ${STUDIO_PATHS.keys} | Get the key of a content as JSON | The key of the CPIX document.
`;

export const PROVIDER: Group = {
  tag: 'Key provider',
  says: 'The DRM key provider, its configuration service and a ClearKey license server.',
  rows: rowsOf(CALLS, ({ id }) => ({ access: 'clientApiKey', ...(DETAILS[id] ?? ENVELOPE) })),
};
