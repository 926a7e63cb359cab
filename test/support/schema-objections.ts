import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020';
import addFormats from 'ajv-formats';

type Fields = 'told' | 'any';

/** What a schema of a description has against a value; an answer may hold no field that it does not tell of. */
export type Objections = (schema: object, value: unknown, fields?: Fields) => unknown[];

/** @param schemas those of the description's components. */
export function objectionsOf(schemas: object): Objections {
  const compilers = {
    told: compilerOf(closed(schemas), closed),
    any: compilerOf(schemas, (schema) => schema),
  };
  return (schema, value, fields = 'told') => {
    const validate = compilers[fields](schema);
    validate(value);
    return validate.errors ?? [];
  };
}

/** Compiles each schema once, wherever it is, and what it refers to as well. */
function compilerOf(schemas: unknown, prepare: (schema: unknown) => unknown) {
  const ajv = new Ajv2020({ allErrors: true, strict: false });
  addFormats(ajv);
  ajv.addSchema({ $id: 'description', components: { schemas } });
  const compiled = new Map<string, ValidateFunction>();
  return (schema: object): ValidateFunction => {
    const text = JSON.stringify(prepare(schema)).replaceAll('"$ref":"#/', '"$ref":"description#/');
    const validate = compiled.get(text) ?? ajv.compile(JSON.parse(text));
    compiled.set(text, validate);
    return validate;
  };
}

function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== 'object' || value === null) return value;
  const inner = Object.fromEntries(Object.entries(value).map(([name, part]) => [name, closed(part)]));
  return 'properties' in inner && !('additionalProperties' in inner) && 'type' in inner
    ? { ...inner, additionalProperties: false }
    : inner;
}
