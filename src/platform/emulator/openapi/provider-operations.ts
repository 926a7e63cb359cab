import * as z from 'zod';
import type { Example } from '../../../http/openapi';
import { clientRecord } from '../upstreams/config-service';
import { deriveKeys } from '../upstreams/derive-keys';
import { KEY_ANSWERS } from '../upstreams/key-provider';
import { operation, type PathItem, pathParameters, type Seeded, templateOf } from './operation';
import { jsonSchema } from './schemas';

export const PROVIDER_TAG = 'Key provider';

const JSON_TYPE = 'application/json';
const RECORD = templateOf('/config/v1/clients/:client');
const LICENSE = '/keyprovider/clearkey';

/** What the sidecar and players call: the key provider, the configuration service and the license server. */
export function providerOperations(seeded: Seeded): Record<string, PathItem> {
  const kinds = Object.keys(KEY_ANSWERS).map((kind) => {
    const path = templateOf(`/keyprovider/${kind}/:client/:contentId`);
    return [path, { get: keys(path, kind as Kind, seeded) }] as const;
  });
  return { ...Object.fromEntries(kinds), [LICENSE]: { post: license() }, [RECORD]: { get: record(seeded) } };
}

const CLIENT_ERRORS = ['api_key_missing', 'api_key_refused', 'client_unknown'] as const;

const ENVELOPE = {
  key: 'T8cKrSQpfxMJGpn1F0tVCQ==|2fd4e1c67a2d28fced849ee1bb76e7391b93eb12',
};

const Envelope = z.object({
  key: z
    .string()
    .regex(/^[A-Za-z0-9+/]+={0,2}\|[0-9a-f]{40}$/)
    .meta({
      description:
        'The fields as JSON in AES-128-ECB under the first 16 characters of the shared secret, in base64; behind a `|` the SHA-1 of shared secret, client and base64 in hexadecimal.',
    }),
});

type Kind = keyof typeof KEY_ANSWERS;

const KINDS: Readonly<Record<Kind, string>> = {
  cenc: 'CENC, with PlayReady and Widevine',
  fairplay: 'FairPlay',
  widevine: 'Widevine',
  playready: 'PlayReady',
  aes: 'AES-128',
};

/** Of nobody: what is asked of an answer is the names of its fields. */
const NOBODY = { name: 'nobody', apiKey: '', sharedSecret: '' };

function keys(path: string, kind: Kind, seeded: Seeded) {
  const contentId = 'somecontentid';
  const sample = { client: NOBODY.name, contentId, keys: deriveKeys(NOBODY, contentId) };
  const fields = Object.keys(KEY_ANSWERS[kind].fields(sample));
  return operation({
    method: 'get',
    path,
    operationId: `${kind}Keys`,
    tag: PROVIDER_TAG,
    summary: `Get keys for ${KINDS[kind]}`,
    description: `The keys of a content, in an envelope that the client's shared secret opens: ${fields.map((name) => `\`${name}\``).join(', ')}. They are the same for the same client and content, also after a restart.`,
    access: 'client',
    parameters: pathParameters(path, seeded).map((parameter) =>
      parameter.name === 'content_id' ? { ...parameter, example: contentId } : parameter,
    ),
    answers: { 200: { description: 'The keys.', content: { [JSON_TYPE]: jsonSchema(Envelope) } } },
    examples: {
      keys: { summary: 'The keys of a content', answer: { status: 200, type: JSON_TYPE, value: ENVELOPE } },
    },
    errors: [
      {
        status: 400,
        code: 'invalid_content_id',
        when: 'The content id is against the rule.',
        says: 'A content id is 1 to 200 letters, digits, _, - and ., and not . or ..',
      },
      ...CLIENT_ERRORS,
    ],
  });
}

const ClientRecord = z.object({
  client: z.string().meta({ description: 'The name of the client.' }),
  shared_secret: z.string().meta({ description: 'What the envelopes of the key provider are sealed with.' }),
  drm_providers: z.array(z.string()).meta({ description: 'The DRM systems of the client.' }),
  license_urls: z
    .record(z.string(), z.string())
    .meta({ description: 'Where players get licenses, by the DRM system.' }),
});

function record(seeded: Seeded) {
  const value = clientRecord({ name: seeded.client, apiKey: '', sharedSecret: '…' });
  return operation({
    method: 'get',
    path: RECORD,
    operationId: 'readClient',
    tag: PROVIDER_TAG,
    summary: 'Read the record of a client',
    description: "The configuration service: a client's DRM settings, its shared secret among them.",
    access: 'client',
    parameters: pathParameters(RECORD, seeded),
    answers: { 200: { description: 'The record.', content: { [JSON_TYPE]: jsonSchema(ClientRecord) } } },
    examples: { client: { summary: 'The record', answer: { status: 200, type: JSON_TYPE, value } } },
    errors: CLIENT_ERRORS,
  });
}

const keyId = z.string().meta({ description: 'A key id: 16 bytes in base64url without padding.' });

const LicenseRequest = z.object({
  kids: z
    .array(keyId)
    .min(1)
    .max(100)
    .meta({ description: 'The ids of the keys, which the key provider has given out since its start.' }),
  type: z.literal('temporary').optional().meta({ description: 'What the license is for.' }),
});

const License = z.object({
  keys: z
    .array(
      z.object({
        kty: z.literal('oct').meta({ description: 'What it is.' }),
        kid: keyId,
        k: z.string().meta({ description: 'The content key, in base64url without padding.' }),
      }),
    )
    .meta({ description: 'The keys.' }),
  type: z.literal('temporary').meta({ description: 'What the license is for.' }),
});

function license() {
  const example: Example = {
    summary: 'A license for one key',
    body: { type: JSON_TYPE, value: { kids: ['KEY_ID'], type: 'temporary' } },
    answer: {
      status: 200,
      type: JSON_TYPE,
      value: {
        keys: [{ kty: 'oct', kid: 'qMTumUz5drgbusWY-fi5LA', k: 'ETweRxyDIuDqAadsWdx0HQ' }],
        type: 'temporary',
      },
    },
  };
  return operation({
    method: 'post',
    path: LICENSE,
    operationId: 'clearKeyLicense',
    tag: PROVIDER_TAG,
    summary: 'Get a ClearKey license',
    description:
      'The license request and the license of W3C Encrypted Media Extensions § 9.1, as a player sends and takes them.',
    access: 'open',
    body: { [JSON_TYPE]: jsonSchema(LicenseRequest) },
    answers: { 200: { description: 'The license.', content: { [JSON_TYPE]: jsonSchema(License) } } },
    examples: { license: example },
    errors: [
      'invalid_body',
      'malformed_json',
      {
        status: 404,
        code: 'key_unknown',
        when: 'The key provider has given out no key with one of these ids. One error a key.',
      },
      {
        status: 413,
        code: 'body_too_large',
        when: 'The body has more than 16 KiB.',
        says: 'The body is larger than this route accepts: 16 KiB.',
      },
    ],
  });
}
