import type { OpenAPIV3_1 as OpenApi } from 'openapi-types';
import * as z from 'zod';
import {
  aliveAnswer,
  checkAnswer,
  checkedValueBody,
  dryRunAnswer,
  keyFileAnswer,
  readyAnswer,
} from '../../api/answers';
import { batchAnswer, groupEntry, memberEntry, streamEntry } from '../../api/batch';
import {
  fleetAnswer,
  fleetImportAnswer,
  fleetResealAnswer,
  fleetRetireAnswer,
  fleetStreamAnswer,
} from '../../api/fleet';
import { cpixBody, importedBody, providerBody, suppliedBody } from '../../api/key-file-request';
import { listAnswer } from '../../api/list';
import { errorsAnswer } from '../../http/faults';
import { schemaRef, simplify } from '../../http/openapi';

/** The body of a batch. The service reads each entry by itself: a faulty one fails alone. */
const batchRequest = z
  .object({
    streams: z
      .array(streamEntry)
      .nullish()
      .meta({ description: `Streams with keys of their own. ${streamEntry.meta()?.description}` }),
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
      .meta({
        description: `Groups, as of the renditions of one programme: each member gets a file, the group's own name gets none. ${groupEntry.meta()?.description}`,
      }),
  })
  .meta({ description: 'Streams, groups or both: 10,000 streams at most, members counted, and 16 MiB.' });

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

/** The schemas of bodies and answers as JSON Schema, made of the ones that the service itself checks with. */
export function componentSchemas(): Record<string, OpenApi.SchemaObject> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(NAMED)) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, {
    // What a client may send, before any decoding; answers are open for fields that come later.
    io: 'input',
    uri: (id) => `#/components/schemas/${id}`,
  });
  simplify(schemas);
  const components = Object.entries(schemas).map(
    ([id, { $schema, $id, ...schema }]) => [id, schema as OpenApi.SchemaObject] as const,
  );
  return {
    KeyFileRequest: {
      oneOf: ['SuppliedKeys', 'CpixDocument', 'ProviderContent', 'ImportedKeyFile'].map(schemaRef),
    },
    ...Object.fromEntries(components),
  };
}
