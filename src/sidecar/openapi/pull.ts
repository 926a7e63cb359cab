import { exportQuery } from '../../api/key-file-request';
import { writeSpekeRequest } from '../../drm/cpix/speke';
import { SPEKE_VERSIONS } from '../../drm/cpix/speke-answer';
import { type PathItem, parameter, queryParameters } from '../../http/openapi';
import { STREAM } from './examples';
import {
  CPIX_TYPE,
  DRM_INFO,
  ETAG,
  IF_CHANGED,
  NOT_MODIFIED,
  PROVISION_ERRORS,
  READ_ERRORS,
  WARNING,
  WHOLE,
} from './key-files';
import { pathItem } from './operation';

export const PULL_TAG = 'Packagers that pull';

const XML_TYPE = 'application/xml';
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
const ABOUT =
  'The API key may also come as the password of Basic. A stream that the API key does not reach is a 404, like one that there is not. With `PACKAGERDRMAPI_PROVISIONONREAD`, a stream without a key file is provisioned first; the API key needs the right to write.';
/** What the provisioning of a stream may fail by, and what a key file may. */
const ERRORS = [
  ...(['invalid_stream_id', 'invalid_header', 'invalid_body', 'key_file_not_found'] as const),
  ...(['keys_missing', 'too_many_pulls', 'fleet_joining', ...WHOLE, ...READ_ERRORS] as const),
  ...PROVISION_ERRORS,
];

/** The routes of packagers that ask for their keys. */
export function pullOperations(): Record<string, PathItem> {
  return {
    ...pathItem('/cpix/{client}/{contentId}', PULL_TAG, {
      get: {
        id: 'pullKeys',
        summary: 'Pull the keys of a stream',
        description: `The key file of a stream as a CPIX document, or as \`as\` says. ${ABOUT}`,
        parameters: [...[CLIENT, CONTENT, CLIENT_KEY, IF_CHANGED], ...queryParameters(exportQuery)],
        headers: { ETag: ETAG, Warning: WARNING },
        content: {
          [CPIX_TYPE]: { type: 'string', description: 'A CPIX 2.3 document with plain content keys.' },
          'application/json': DRM_INFO,
          'text/plain': { type: 'string', description: 'With `as` of a form that is text.' },
        },
        answers: { 304: NOT_MODIFIED },
        errors: ['invalid_query', ...ERRORS],
        examples: [{ summary: 'The key of DASH', query: { scheme: 'cenc' }, answer: { type: CPIX_TYPE } }],
      },
    }),
    ...pathItem('/speke/v2/{client}', PULL_TAG, {
      post: {
        id: 'answerSpeke',
        summary: 'Ask by SPEKE',
        description: `A SPEKE 2.0 or 2.1 request (AWS) for one key, whose content id names the stream. The key id of the key file takes the place of the one that was asked for. With a certificate in the request, the key is encrypted for it. ${ABOUT}`,
        parameters: [
          ...[CLIENT, CLIENT_KEY],
          parameter(
            'X-Speke-Version',
            'The version of SPEKE, which the answer repeats.',
            { type: 'string', enum: [...SPEKE_VERSIONS.keys()] },
            { in: 'header', required: true, example: '2.0' },
          ),
        ],
        body: { [XML_TYPE]: { type: 'string', description: 'A CPIX document that asks for a key.' } },
        content: { [XML_TYPE]: { type: 'string', description: 'The document with the key.' } },
        errors: ['invalid_cpix', 'body_too_large', 'unsupported_media_type', 'speke_refused', ...ERRORS],
        examples: [
          {
            summary: 'The key of DASH',
            headers: { 'X-Speke-Version': '2.0' },
            body: {
              type: XML_TYPE,
              value: writeSpekeRequest({ version: 2, contentId: STREAM, scheme: 'cenc' }),
            },
            answer: { type: XML_TYPE },
          },
        ],
      },
    }),
  };
}
