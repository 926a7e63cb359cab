import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020';
import addFormats from 'ajv-formats';

type Fields = 'told' | 'any';

/** What a schema of a description has against a value; an answer may hold no field that it does not tell of. */
export type Objections = (schema: object, value: unknown, fields?: Fields) => unknown[];

/** @param schemas those of the description's components. */
export function objectionsOf(schemas: object): Objections {
  const compiled = {
    told: new WeakMap<object, ValidateFunction>(),
    any: new WeakMap<object, ValidateFunction>(),
  };
  const closedSchemas = closed(schemas);
  return (schema, value, fields = 'told') => {
    const validate = compiled[fields].get(schema) ?? compile(schema, fields);
    compiled[fields].set(schema, validate);
    validate(value);
    return validate.errors ?? [];
  };

  function compile(schema: object, fields: Fields): ValidateFunction {
    const ajv = new Ajv2020({ allErrors: true, strict: false });
    addFormats(ajv);
    return fields === 'told'
      ? ajv.compile({ ...Object(closed(schema)), components: { schemas: closedSchemas } })
      : ajv.compile({ ...schema, components: { schemas } });
  }
}

function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== 'object' || value === null) return value;
  const inner = Object.fromEntries(Object.entries(value).map(([name, part]) => [name, closed(part)]));
  return 'properties' in inner && !('additionalProperties' in inner) && 'type' in inner
    ? { ...inner, additionalProperties: false }
    : inner;
}
