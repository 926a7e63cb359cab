import * as z from 'zod';
import { batchAnswer } from '../../api/batch';
import { importedBody, providerBody, suppliedBody } from '../../api/key-file-request';
import { listAnswer } from '../listing/list-handler';
import { aliveAnswer, dryRunAnswer, errorsAnswer, keyFileAnswer, readyAnswer } from './answers-wire';
import { batchRequest } from './batch-request-wire';
import { checkAnswer, checkedValueBody } from './check-wire';
import { type JsonSchema, schemaRef } from './document';
import { tellFields } from './told-fields';

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
export function componentSchemas(): Record<string, JsonSchema> {
  tellFields();
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(NAMED)) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, {
    // What a client may send, before any decoding; answers are open for fields that come later.
    io: 'input',
    uri: (id) => `#/components/schemas/${id}`,
    override: ({ jsonSchema }) => simplify(jsonSchema),
  });
  const components = Object.entries(schemas).map(
    ([id, { $schema, $id, ...schema }]) => [id, schema] as const,
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
