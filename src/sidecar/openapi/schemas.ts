import type { OpenAPIV3_1 as OpenApi } from 'openapi-types';
import * as z from 'zod';
import { batchAnswer, groupEntry, memberEntry, streamEntry } from '../../api/batch';
import { importedBody, providerBody, suppliedBody } from '../../api/key-file-request';
import { listAnswer } from '../listing/list-handler';
import { schemaRef } from './operation';

type JsonSchema = z.core.JSONSchema.BaseSchema;

const streamid = z.string().meta({ description: 'The stream id.' });
const etag = z.string().meta({ description: 'The entity tag of the file, quotes included.' });
const lineName = z.string().meta({ description: 'The name of the line.' });

const problem = z.object({
  code: z.string().meta({ description: 'For programs: stable, in snake_case.' }),
  description: z.string().meta({ description: 'For a person: what is wrong and what to do.' }),
});

/** The body of every answer that is not a success. */
const errorsAnswer = z
  .object({
    errors: z.array(problem).min(1).meta({ description: 'Every problem of the request at once, up to 50.' }),
  })
  .meta({ description: 'What is wrong.' });

/** A key file, where JSON is asked for. */
const keyFileAnswer = z
  .object({
    streamid,
    lines: z
      .array(z.object({ name: lineName, value: z.string().meta({ description: 'Its value.' }) }))
      .meta({ description: 'The lines of the file, in its order.' }),
  })
  .meta({ description: 'The lines of a key file.' });

/** What a dry run tells. */
const dryRunAnswer = z
  .object({
    streamid,
    dryrun: z.literal(true),
    result: z
      .enum(['created', 'changed', 'unchanged'])
      .meta({ description: 'What would become of the file.' }),
    etag: etag.meta({ description: 'The entity tag that the file would have.' }),
    present_etag: etag.nullable().meta({
      description: 'The entity tag of the present file, for `If-Match`; `null` when there is none.',
    }),
    lines: z
      .array(
        z.object({
          name: lineName,
          value: z.string().meta({ description: 'Its value; key material is `********`.' }),
          change: z
            .enum(['added', 'changed', 'removed', 'same'])
            .meta({ description: 'What happens to the line.' }),
          former: z
            .string()
            .optional()
            .meta({ description: 'The present value of a line that would change.' }),
        }),
      )
      .meta({ description: 'The lines that would be written, then those that would go.' }),
    warnings: z.array(problem).meta({ description: 'What is odd about the keys and would yet be written.' }),
  })
  .meta({ description: 'What would be written. Nothing was.' });

/** The answers of the probes. */
const aliveAnswer = z.object({ status: z.literal('ok') });
const readyAnswer = z.object({
  status: z.literal('ready'),
  folder: z
    .object({
      device: z.string().meta({ description: 'The number of the device that it lies on.' }),
      inode: z.string().meta({ description: 'Its own number there.' }),
    })
    .optional()
    .meta({
      description:
        'For who sends an API key: which folder has the key files. `packager-drm doctor` compares it with the folder that the packager reads.',
    }),
});

/** The body of a batch. The service reads each entry by itself: one at fault fails alone. */
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

/** The body of a check as JSON, when it is one value. */
const checkedValueBody = z
  .strictObject({ value: z.string().meta({ description: 'What would be the body as text.' }) })
  .meta({ title: 'One value' });

const severity = z.enum(['error', 'warning']).meta({
  description: '`error`: viewers see a black screen. `warning`: it may be meant so.',
});

/** The answer of a check. */
const checkAnswer = z
  .object({
    kind: z
      .enum([
        ...(['key_file', 'request', 'pssh_box', 'widevine_pssh_data'] as const),
        ...(['init_segment', 'media_segment', 'media_file'] as const),
        ...([
          'playready_object',
          'playready_header',
          'key_id',
          'manifest',
          'license_address',
          'unknown',
        ] as const),
      ])
      .meta({ description: 'What it is.' }),
    fields: z
      .array(
        z.object({
          name: z.string().meta({ description: 'Where it stands.' }),
          value: z
            .string()
            .meta({ description: 'What it decodes to; key material is `********` unless revealed.' }),
          note: z.string().optional().meta({ description: 'What it means.' }),
        }),
      )
      .meta({ description: 'What was decoded, up to 300.' }),
    faults: z
      .array(
        z.object({
          severity,
          code: z.string().meta({ description: 'For programs.' }),
          field: z.string().optional().meta({ description: 'Where it lies.' }),
          description: z.string().meta({ description: 'What is wrong and what to do.' }),
        }),
      )
      .meta({ description: 'What is wrong, up to 100.' }),
  })
  .meta({ description: 'What key material decodes to, and what is wrong with it.' });

const NAMED: Readonly<Record<string, z.ZodType>> = {
  SuppliedKeys: suppliedBody,
  ProviderContent: providerBody,
  ImportedKeyFile: importedBody,
  KeyFile: keyFileAnswer,
  DryRun: dryRunAnswer,
  KeyFileList: listAnswer,
  Batch: batchRequest,
  BatchResult: batchAnswer,
  CheckedValue: checkedValueBody,
  CheckResult: checkAnswer,
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
    override: ({ jsonSchema }) => simplify(jsonSchema),
  });
  // Zod's JSON Schema is that of OpenAPI 3.1: draft 2020-12.
  const components = Object.entries(schemas).map(
    ([id, { $schema, $id, ...schema }]) => [id, schema as OpenApi.SchemaObject] as const,
  );
  return {
    KeyFileRequest: { oneOf: ['SuppliedKeys', 'ProviderContent', 'ImportedKeyFile'].map(schemaRef) },
    ...Object.fromEntries(components),
  };
}

/** Says the same in fewer words: people read this. */
function simplify(schema: JsonSchema): void {
  const options = schema.anyOf?.flatMap((option) => option.anyOf ?? [option]);
  const [only, nothing, ...more] = options ?? [];
  if (options) schema.anyOf = options;
  if (isNull(nothing) && more.length === 0 && typeof only?.type === 'string' && !only.enum) {
    delete schema.anyOf;
    Object.assign(schema, { ...only, ...schema, type: [only.type, 'null'] });
  }
  // The pattern of a date-time is a page long, and the bounds of an integer are those of JavaScript.
  if (schema.format !== undefined) delete schema.pattern;
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
}

function isNull(schema: JsonSchema | undefined): boolean {
  return schema?.type === 'null' && Object.keys(schema).length === 1;
}
