import type { OpenAPIV3_1 as OpenApi } from 'openapi-types';
import { writeSpekeRequest } from '../../../drm/cpix/speke';
import { CPIX_PATH, SPEKE_PATHS } from '../upstreams/cpix-provider';
import {
  type AnsweredError,
  operation,
  type PathItem,
  pathParameters,
  type Seeded,
  templateOf,
} from './operation';
import { PROVIDER_TAG } from './provider-operations';

const XML = 'application/xml';
const CPIX = { type: 'string', description: 'A CPIX document.' } as const;
const CONTENT = 'somecontentid';

const REFUSED: readonly AnsweredError[] = [
  {
    status: 400,
    code: 'invalid_content_id',
    when: 'The content id is against the rule.',
    says: 'A content id is 1 to 200 letters, digits, _, - and ., and not . or ..',
  },
  'api_key_missing',
  'api_key_refused',
  'client_unknown',
];

const NOT_A_REQUEST: readonly AnsweredError[] = [
  ...REFUSED,
  {
    status: 400,
    code: 'invalid_cpix',
    when: 'The body is no CPIX document, or one without a content key.',
    says: 'The document names no content key.',
  },
  'body_too_large',
  {
    status: 422,
    code: 'invalid_cpix',
    when: 'The document asks for what this provider has not.',
    says: 'This provider has PlayReady under cenc alone.',
  },
];

/** The key provider as SPEKE and CPIX have it. */
export function cpixOperations(seeded: Seeded): Record<string, PathItem> {
  return {
    [templateOf(SPEKE_PATHS.speke1)]: { post: speke(1, seeded) },
    [templateOf(SPEKE_PATHS.speke2)]: { post: speke(2, seeded) },
    [templateOf(CPIX_PATH)]: { get: document(seeded) },
  };
}

const VERSION_HEADER: OpenApi.ParameterObject = {
  name: 'X-Speke-Version',
  in: 'header',
  required: true,
  description: 'The version of the protocol.',
  schema: { type: 'string', enum: ['2.0'] },
};

function speke(version: 1 | 2, seeded: Seeded) {
  const isFirst = version === 1;
  const path = templateOf(isFirst ? SPEKE_PATHS.speke1 : SPEKE_PATHS.speke2);
  const headers = isFirst ? {} : { headers: { 'x-speke-version': '2.0' } };
  const example = (scheme: 'cenc' | 'cbcs', summary: string) => ({
    summary,
    ...headers,
    body: { type: XML, value: writeSpekeRequest({ version, contentId: CONTENT, scheme }) },
    answer: { status: 200, type: XML },
  });
  return operation({
    method: 'post',
    path,
    operationId: isFirst ? 'spekeKeys' : 'speke2Keys',
    tag: PROVIDER_TAG,
    summary: `Get keys by SPEKE v${version}`,
    description: `The document that was sent, with the provider's key ids, values and signalling. The keys are those of the JSON answers, unless the usage rules name tracks or several periods: each has a key of its own then. Who sends a certificate is answered with encrypted values. ${isFirst ? 'The content id is the attribute `id`.' : 'All keys must have one scheme, and a usage rule each.'}`,
    access: 'client',
    parameters: [...pathParameters(path, seeded), ...(isFirst ? [] : [VERSION_HEADER])],
    body: { [XML]: CPIX },
    answers: { 200: { description: 'The keys.', content: { [XML]: CPIX } } },
    examples: {
      cenc: example('cenc', 'A key for Widevine and PlayReady'),
      cbcs: example('cbcs', 'A key for FairPlay'),
    },
    errors: NOT_A_REQUEST,
  });
}

function document(seeded: Seeded) {
  const path = templateOf(CPIX_PATH);
  return operation({
    method: 'get',
    path,
    operationId: 'cpixKeys',
    tag: PROVIDER_TAG,
    summary: 'Get keys as a CPIX document',
    description:
      'A document with the keys of a content: one for Widevine and PlayReady, one for FairPlay. They are those of the JSON answers.',
    access: 'client',
    parameters: [
      ...pathParameters(path, seeded).map((parameter) =>
        parameter.name === 'content_id' ? { ...parameter, example: CONTENT } : parameter,
      ),
      {
        name: 'scheme',
        in: 'query',
        description: '`cenc`: the key for Widevine and PlayReady alone. `cbcs`: the one for FairPlay alone.',
        schema: { type: 'string', enum: ['cenc', 'cbcs'] },
      },
    ],
    answers: { 200: { description: 'The keys.', content: { [XML]: CPIX } } },
    examples: {
      both: { summary: 'Both keys', answer: { status: 200, type: XML } },
      cenc: {
        summary: 'The key for Widevine and PlayReady',
        query: { scheme: 'cenc' },
        answer: { status: 200, type: XML },
      },
    },
    errors: [
      ...REFUSED,
      {
        status: 400,
        code: 'invalid_cpix',
        when: 'The scheme is unknown.',
        says: 'The scheme must be cenc or cbcs; without one, the keys of both are answered.',
      },
    ],
  });
}
