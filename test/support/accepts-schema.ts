import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import { DOCUMENT } from './start-described';

type Fields = 'told' | 'any';

const compiled = {
  told: new WeakMap<object, ValidateFunction>(),
  any: new WeakMap<object, ValidateFunction>(),
};

/** What a schema of the description has against a value; an answer may hold no field that it does not tell of. */
export function objections(schema: object, value: unknown, fields: Fields = 'told'): unknown[] {
  const validate = compiled[fields].get(schema) ?? compile(schema, fields);
  compiled[fields].set(schema, validate);
  validate(value);
  return validate.errors ?? [];
}

function compile(schema: object, fields: Fields): ValidateFunction {
  const ajv = new Ajv2020({ allErrors: true, strict: false });
  addFormats(ajv);
  const schemas = fields === 'told' ? closed(DOCUMENT.components.schemas) : DOCUMENT.components.schemas;
  return ajv.compile({ ...schema, components: { schemas } });
}

function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== 'object' || value === null) return value;
  const inner = Object.fromEntries(Object.entries(value).map(([name, part]) => [name, closed(part)]));
  return 'properties' in inner && !('additionalProperties' in inner) && 'type' in inner
    ? { ...inner, additionalProperties: false }
    : inner;
}
