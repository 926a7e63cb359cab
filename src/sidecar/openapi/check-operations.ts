import { check } from '../../api/check';
import { type Example, schemaRef } from '../../http/openapi';
import { fileOf, SUPPLIED, SWAPPED, WIDEVINE_BOX } from './examples';
import { operation, type PathItem } from './operation';

export const CHECK_TAG = 'Check';

/** `POST /api/check`. */
export function checkOperations(): Record<string, PathItem> {
  const body = {
    'text/plain': {
      type: 'string' as const,
      description: "A key file's text, a CPIX document, or one value.",
    },
    'application/cpix+xml': {
      type: 'string' as const,
      description: 'A CPIX document, in UTF-8 or UTF-16. `application/xml` and `text/xml` will do, too.',
    },
    'application/json': {
      oneOf: [
        schemaRef('CheckedValue'),
        {
          type: 'object' as const,
          title: 'A body of the key-file API',
          description: 'As for writing a key file, faulty or not.',
          not: { required: ['value'] },
        },
      ],
    },
  };
  return {
    '/api/check': {
      post: operation({
        method: 'post',
        path: '/api/check',
        operationId: 'checkKeyMaterial',
        tag: CHECK_TAG,
        summary: 'Check key material',
        description:
          'Tells what key material decodes to, field by field, and every fault with what to do about it. It takes a key file, a body of the key-file API, a CPIX document (whose encrypted content keys are not opened), or one value in base64, hex or as a UUID: a PSSH box, an init segment or a media segment, Widevine PSSH data, a PlayReady object or header, a key id, a license address, a manifest or playlist, or an element or a key line of one. Nothing is written, kept or logged. Any API key will do.',
        parameters: [
          {
            name: 'reveal',
            in: 'query',
            required: false,
            description: '`true`: the answer shows key material.',
            schema: { type: 'string', enum: ['true', 'false'], default: 'false' },
          },
        ],
        body,
        answers: {
          200: {
            description: 'What was found, faults or none.',
            content: { 'application/json': schemaRef('CheckResult') },
          },
        },
        examples: {
          box: checked('A PSSH box', 'text/plain', WIDEVINE_BOX),
          body: checked('A body whose key id has the wrong byte order', 'application/json', SWAPPED),
          file: checked('A key file', 'text/plain', fileOf(SUPPLIED)),
          value: checked('One value in JSON', 'application/json', { value: WIDEVINE_BOX }),
        },
        errors: [
          { code: 'invalid_query', says: 'reveal: must be true or false' },
          {
            code: 'invalid_body',
            says: 'Send a key file, a body of the key-file API or one value to check.',
          },
          'malformed_json',
          'body_too_large',
          {
            code: 'unsupported_media_type',
            says: 'Send the body as text/plain, as JSON with content-type: application/json, or a CPIX document as application/cpix+xml.',
          },
        ],
      }),
    },
  };
}

function checked(summary: string, type: string, value: unknown): Example {
  return {
    summary,
    body: { type, value },
    answer: { status: 200, type: 'application/json', value: check(value) },
  };
}
