import type { OpenAPIV3_1 as OpenApi } from 'openapi-types';
import type { PathItem } from '../../http/openapi';
import { FLEET_TAG, fleetOperations } from './fleet';
import { CHECK_TAG, KEY_FILES_TAG, keyFileOperations, MANY_TAG } from './key-files';
import { API_KEY_VARIABLE, errorAnswer, URL_VARIABLE } from './operation';
import { PULL_TAG, pullOperations } from './pull';
import { componentSchemas } from './schemas';
import { SERVICE_TAG, serviceOperations } from './service';

const API_KEY = `Every request to \`/api\`, \`/cpix\` and \`/speke\` needs an API key in the header \`x-api-key\`. A key may be limited to reading, or to streams whose ids begin with certain prefixes. A service with \`PACKAGERDRMAPI_TLSCLIENTCA\` also requires a client certificate, except from probes.`;

const ABOUT = `Provisions, reads and deletes the per-stream key files of a streaming packager, for Widevine, PlayReady and FairPlay.

### First request

~~~sh
export ${URL_VARIABLE}=http://127.0.0.1:9000
export ${API_KEY_VARIABLE}=...

curl -sS "$${URL_VARIABLE}/readyz"
~~~

All examples take address and API key from these two variables. Their key material is that of published samples.

### API key

${API_KEY}

### Errors

Errors are \`{"errors":[{"code","description"}]}\`, with every problem of a request at once: \`code\` is for programs and stays as it is, \`description\` is for a person and says what to do. No error quotes a key.

Every answer carries \`x-request-id\`: the one that came with the request, or a new one. The log has its lines under it.`;

/** The OpenAPI document of the service. */
export function openApiDocument(version: string) {
  const paths: Record<string, PathItem> = {
    ...keyFileOperations(),
    ...pullOperations(),
    ...fleetOperations(),
    ...serviceOperations(),
  };
  const about = {
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
      { name: MANY_TAG, description: 'A list of what there is, and a batch that writes many at once.' },
      { name: CHECK_TAG, description: 'Before a viewer sees a black screen.' },
      { name: PULL_TAG, description: 'For packagers that ask for their keys instead of reading a file.' },
      {
        name: FLEET_TAG,
        description: 'Many packagers that get each key file from one request to any of them.',
      },
      { name: SERVICE_TAG, description: 'For probes, monitoring and readers. No API key is needed.' },
    ],
    components: {
      schemas: componentSchemas(),
      responses: {
        NoSuchPath: errorAnswer('not_found'),
        NoSuchMethod: errorAnswer('method_not_allowed'),
      },
      securitySchemes: {
        apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key', description: API_KEY },
      },
    },
  } satisfies OpenApi.Document;
  // Each operation is checked against the type of OpenAPI where it is made.
  return { ...about, paths };
}
