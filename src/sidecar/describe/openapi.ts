import { CHECK_TAG, checkOperations } from './check-operations';
import type { OpenApiDocument } from './document';
import { errorResponse } from './error-answers';
import { KEY_FILES_TAG, keyFileOperations } from './key-file-operations';
import { LINE_UP_TAG, lineUpOperations } from './line-up-operations';
import { componentSchemas } from './schemas';
import { SERVICE_TAG, serviceOperations } from './service-operations';

const ABOUT = `Provisions, reads and deletes the per-stream key files of a streaming packager, for Widevine, PlayReady and FairPlay.

Errors are \`{"errors":[{"code","description"}]}\`, with every problem of a request at once: \`code\` is for programs and stays as it is, \`description\` is for a person and says what to do. No error quotes a key.

Every answer carries \`x-request-id\`: the one that came with the request, or a new one. The log has its lines under it.`;

const API_KEY = `Every request to \`/api\` needs an API key in the header \`x-api-key\`. A key may be limited to reading, or to streams whose ids have certain beginnings. A service with \`PACKAGERDRMAPI_TLSCLIENTCA\` asks for a client certificate besides, for all but the probes.`;

/** The OpenAPI document of the service. */
export function openApiDocument(version: string): OpenApiDocument {
  return {
    openapi: '3.1.1',
    info: {
      title: 'packager-drm-api',
      version,
      summary: 'Key files for a streaming packager',
      description: ABOUT,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'The service that answered this document.' }],
    tags: [
      { name: KEY_FILES_TAG, description: 'One stream, one key file.' },
      { name: LINE_UP_TAG, description: 'Many streams at once.' },
      { name: CHECK_TAG, description: 'Before a viewer sees a black screen.' },
      { name: SERVICE_TAG, description: 'For probes, monitoring and readers. No API key is needed.' },
    ],
    paths: { ...keyFileOperations(), ...lineUpOperations(), ...checkOperations(), ...serviceOperations() },
    components: {
      schemas: componentSchemas(),
      responses: {
        NoSuchPath: errorResponse([404, 'not_found']),
        NoSuchMethod: errorResponse([405, 'method_not_allowed']),
      },
      securitySchemes: {
        apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key', description: API_KEY },
      },
    },
  };
}
