import type { OpenAPIV3_1 as OpenApi } from 'openapi-types';
import * as z from 'zod';
import {
  aliveAnswer,
  batchAnswer,
  checkAnswer,
  checkedValueBody,
  dryRunAnswer,
  keyFileAnswer,
  listAnswer,
  readyAnswer,
} from '../../api/answers';
import { groupEntry, memberEntry, streamEntry } from '../../api/batch';
import {
  fleetAnswer,
  fleetImportAnswer,
  fleetResealAnswer,
  fleetRetireAnswer,
  fleetStreamAnswer,
} from '../../api/fleet-answers';
import { cpixBody, importedBody, providerBody, suppliedBody } from '../../api/key-file-request';
import { errorsAnswer } from '../../http/faults';
import { jsonSchema, type Method, type Operation, schemaRef } from '../../http/openapi';
import { FLEET, SERVICE } from './fleet-and-service';
import { CHECK, KEY_FILES, MANY_KEY_FILES, PULL } from './key-files';
import { API_KEY_VARIABLE, errorAnswer, type Operations, operation, URL_VARIABLE } from './operation';

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

const TAGS: readonly { name: string; description: string; operations: Operations }[] = [
  { name: 'Key files', description: 'One stream, one key file.', operations: KEY_FILES },
  {
    name: 'Many key files',
    description: 'A list of what there is, and a batch that writes many at once.',
    operations: MANY_KEY_FILES,
  },
  { name: 'Check', description: 'Before a viewer sees a black screen.', operations: CHECK },
  {
    name: 'Packagers that pull',
    description: 'For packagers that ask for their keys instead of reading a file.',
    operations: PULL,
  },
  {
    name: 'Fleet',
    description: 'Many packagers that get each key file from one request to any of them.',
    operations: FLEET,
  },
  {
    name: 'Service',
    description: 'For probes, monitoring and readers. No API key is needed.',
    operations: SERVICE,
  },
];

export function openApiDocument(version: string) {
  const paths: Record<string, { [method in Method]?: Operation }> = {};
  for (const { name: tag, operations } of TAGS) {
    for (const [place, described] of Object.entries(operations)) {
      const [method = '', path = ''] = place.split(' ');
      paths[path] = { ...paths[path], [method]: operation(path, method as Method, tag, described) };
    }
  }
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
    tags: TAGS.map(({ name, description }) => ({ name, description })),
    components: {
      schemas: {
        KeyFileRequest: {
          oneOf: ['SuppliedKeys', 'CpixDocument', 'ProviderContent', 'ImportedKeyFile'].map(schemaRef),
        },
        ...Object.fromEntries(Object.entries(NAMED).map(([id, schema]) => [id, jsonSchema(schema)])),
      },
      responses: {
        NoSuchPath: errorAnswer('not_found'),
        NoSuchMethod: errorAnswer('method_not_allowed'),
      },
      securitySchemes: {
        apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key', description: API_KEY },
      },
    },
  } satisfies OpenApi.Document;
  return { ...about, paths };
}

/** The service reads each entry by itself: a faulty one fails alone. */
const batchRequest = z
  .object({
    streams: z
      .array(streamEntry)
      .nullish()
      .describe(`Streams with keys of their own. ${streamEntry.meta()?.description}`),
    groups: z
      .array(
        groupEntry
          .extend({
            members: z
              .array(z.union([z.string(), memberEntry]))
              .nullish()
              .meta({
                description: groupEntry.shape.members.meta()?.description ?? '',
              }),
          })
          .meta({ description: groupEntry.meta()?.description ?? '' }),
      )
      .nullish()
      .describe(
        `Groups, as of the renditions of one programme: each member gets a file, the group's own name gets none. ${groupEntry.meta()?.description}`,
      ),
  })
  .describe('Streams, groups or both: 10,000 streams at most, members counted, and 16 MiB.');

const NAMED: Readonly<Record<string, z.ZodType>> = {
  SuppliedKeys: suppliedBody,
  CpixDocument: cpixBody,
  ProviderContent: providerBody,
  ImportedKeyFile: importedBody,
  KeyFile: keyFileAnswer,
  DryRun: dryRunAnswer,
  KeyFileList: listAnswer,
  Batch: batchRequest,
  BatchResult: batchAnswer,
  CheckedValue: checkedValueBody,
  CheckResult: checkAnswer,
  Fleet: fleetAnswer,
  FleetStream: fleetStreamAnswer,
  FleetImport: fleetImportAnswer,
  FleetReseal: fleetResealAnswer,
  FleetRetired: fleetRetireAnswer,
  Alive: aliveAnswer,
  Ready: readyAnswer,
  Errors: errorsAnswer,
};
