import { STATUS_CODES } from 'node:http';
import type { OpenAPIV3_1 as OpenApi } from 'openapi-types';
import { errorsAnswer } from '../../../http/faults';
import { jsonSchema, type Operation } from '../../../http/openapi';
import { DELIVERY } from './delivery';
import { PROVIDER } from './key-provider';
import { pathsOf, type Seeded } from './operation';
import { LIBRARY, resourceSchemas, SITES } from './resources';
import { NOTIFICATIONS, notifications, SERVICE, UPLOADS } from './uploads-and-embed';
import { V1, V1_ERROR_SCHEMA, V1_SIGNATURE } from './v1';

const API_SECRET =
  'The management API takes the secret of an API credential as `Authorization: Bearer <secret>`, or bare. `Viewer` reads, `Editor` also changes, `Admin` also creates credentials. A credential may be limited to user roles; the header `x-emulator-user` (`viewer`, `editor`, `admin`) names the user of a call. The dashboard shows the secrets.';

const NOTIFICATION_TOKEN =
  "A JWT (HS256) whose key is the webhook's `secret` and whose payload is the body, byte for byte. When they differ, the notification is not from the platform.";

const ABOUT = `The emulator of a video platform: Management API v2 and v1, uploads, public delivery, key provider and webhooks, for development and tests.

### First request

~~~sh
export EMULATOR_URL=http://127.0.0.1:8080
export EMULATOR_API_SECRET=...

curl -sS "$EMULATOR_URL/v2/sites/demosite/media/" -H "authorization: Bearer $EMULATOR_API_SECRET"
~~~

### Paths and bodies

Every path is taken with a slash at its end and without. Bodies are read as JSON whatever their content type. \`null\` is the same as leaving a field out, where the field has a value of its own.

### Errors

Errors of Management API v2 are \`{"errors":[{"code","description"}]}\`, with every problem of a request at once. Public delivery answers 404 with \`{"message"}\`. Errors of v1 have one \`code\`, \`title\` and \`message\`.`;

const GROUPS = [...LIBRARY, SITES, UPLOADS, DELIVERY, PROVIDER, V1, NOTIFICATIONS, SERVICE];

export function openApiDocument(seeded: Seeded) {
  const about = {
    openapi: '3.1.1',
    info: {
      title: 'Platform emulator',
      version: '2',
      summary: 'Management API v2 and v1, uploads, delivery, keys and webhooks',
      description: ABOUT,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'The emulator that answered this document.' }],
    tags: GROUPS.map(({ tag, says }) => ({ name: tag, description: says })),
    components: {
      schemas: {
        Errors: jsonSchema(errorsAnswer),
        V1Error: V1_ERROR_SCHEMA,
        ...resourceSchemas(seeded.siteId),
      },
      securitySchemes: {
        apiSecret: { type: 'http', scheme: 'bearer', description: API_SECRET },
        uploadToken: {
          type: 'http',
          scheme: 'bearer',
          description: 'The `upload_token` of the answer that began the upload.',
        },
        clientApiKey: {
          type: 'apiKey',
          in: 'header',
          name: 'API-KEY',
          description: 'The API key of a client of the key provider (`EMULATOR_CLIENT_API_KEY`).',
        },
        v1Signature: { type: 'apiKey', in: 'query', name: 'api_signature', description: V1_SIGNATURE },
        notificationToken: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description: NOTIFICATION_TOKEN,
        },
      },
    },
  } satisfies OpenApi.Document;
  // Each operation is checked against the type of OpenAPI where it is made.
  return { ...about, paths: pathsOf(GROUPS, seeded), webhooks: notifications() };
}

/** Parameters and answers are components: readers, which parse all for each operation, need half the time. */
export function servedDocument(seeded: Seeded) {
  const { paths, components, ...document } = openApiDocument(seeded);
  const shared = { parameters: {} as Record<string, object>, responses: {} as Record<string, object> };
  const names = new Map<string, string>();
  const share = (kind: keyof typeof shared, title: string, part: object) => {
    const text = JSON.stringify(part);
    const word = title.replaceAll(/\W/g, '');
    let name = names.get(text) ?? word;
    // `NotFound`, `NotFound2`, …
    for (let number = 2; !names.has(text) && Object.hasOwn(shared[kind], name); number += 1)
      name = `${word}${number}`;
    names.set(text, name);
    shared[kind][name] = part;
    return { $ref: `#/components/${kind}/${name}` };
  };
  const operation = ({ parameters, responses, ...rest }: Operation) => ({
    ...rest,
    parameters: parameters.map((each) => share('parameters', each.name, each)),
    responses: mapped(responses, (each, status) => share('responses', STATUS_CODES[status] ?? status, each)),
  });
  return {
    ...document,
    paths: mapped(paths, (item) => mapped(item, operation)),
    components: { ...components, ...shared },
  };
}

function mapped<Value, Made>(
  of: Readonly<Record<string, Value>>,
  make: (value: Value, name: string) => Made,
) {
  return Object.fromEntries(Object.entries(of).map(([name, value]) => [name, make(value, name)]));
}
