import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';
import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import type { Method, Operation } from '../../src/http/openapi';

export interface DescribedOperation {
  readonly title: string;
  readonly method: Method;
  readonly path: string;
  readonly operation: Operation;
}

interface Description {
  readonly paths: Readonly<Record<string, { readonly [method in Method]?: Operation }>>;
  readonly tags: readonly { readonly name: string }[];
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
}

/** The operations of a document, with the names that tests give them; what deletes comes last. */
export function operationsOf({ paths }: Description): DescribedOperation[] {
  return (['get', 'patch', 'put', 'post', 'delete'] as const).flatMap((method) =>
    Object.entries(paths).flatMap(([path, { [method]: operation }]) =>
      operation ? [{ title: `${method.toUpperCase()} ${path}`, method, path, operation }] : [],
    ),
  );
}

/** A program, since the validator is an ES module. It reports what is wrong with the OpenAPI document on its input. */
const VALIDATE = `
import { Validator } from '@seriousme/openapi-schema-validator';
let text = '';
for await (const chunk of process.stdin) text += chunk;
const validator = new Validator();
const { valid, errors = [] } = await validator.validate(JSON.parse(text));
process.stdout.write(JSON.stringify({ valid, version: validator.version, errors }));
`;

/** The verdict of an independent validator about an OpenAPI document. */
export function validateOpenApi(document: unknown): unknown {
  const answer = execFileSync(process.execPath, ['--input-type=module', '--eval', VALIDATE], {
    cwd: resolve(__dirname, '../..'),
    input: JSON.stringify(document),
  });
  return JSON.parse(String(answer));
}

/** Tests for every description of an API. @param served the document in the form that clients get. */
export function itDescribesAnApi(document: Description, served: object = document): void {
  const operations = operationsOf(document);

  it('is OpenAPI 3.1 by an independent validator', () => {
    expect(validateOpenApi(served)).toEqual({ valid: true, version: '3.1', errors: [] });
  });

  it('gives every operation an id of its own', () => {
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(ids).toEqual([...new Set(ids)]);
    expect(ids.filter((id) => !/^[a-z][A-Za-z0-9]+$/.test(id))).toEqual([]);
  });

  it('names the parameters of every path, and tags that it lists', () => {
    const known = document.tags.map(({ name }) => name);
    for (const { title, path, operation } of operations) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const named = operation.parameters.filter((one) => one.in === 'path').map(({ name }) => name);
      const unknown = operation.tags.filter((tag) => !known.includes(tag));
      expect([title, named, unknown]).toEqual([title, inPath, []]);
    }
  });

  it('has schemas that are JSON Schema in the strict sense', () => {
    const strict = { strict: true, allowUnionTypes: true, strictRequired: false };
    // What is compiled is not run.
    const ajv = new Ajv2020({ ...strict, code: { optimize: false } });
    addFormats(ajv);
    ajv.addVocabulary(['components']);
    const { schemas } = document.components;
    const anyOf = Object.keys(schemas).map((name) => ({ $ref: `#/components/schemas/${name}` }));
    expect(() => ajv.compile({ anyOf, components: { schemas } })).not.toThrow();
  });

  it('describes every parameter, and every field of every body and answer', () => {
    const silent: string[] = [];
    const look = (place: string, schema: unknown): void => {
      if (typeof schema !== 'object' || schema === null) return;
      const fields = Object(schema).properties;
      for (const [name, field] of Object.entries(Object(fields))) {
        // Without a type it only narrows what is described elsewhere.
        const isDescribed = Object(field).description !== undefined || Object(field).const !== undefined;
        if (!isDescribed && 'type' in schema) silent.push(`${place}.${name}`);
      }
      for (const [name, part] of Object.entries(schema))
        if (name !== 'examples' && name !== 'example') look(`${place}.${name}`, part);
    };
    look('', document);
    for (const { title, operation } of operations)
      for (const { name, description = '' } of operation.parameters)
        if (!/^[^.]+\./.test(description)) silent.push(`${title} ${name}`);
    expect(silent).toEqual([]);
    expect(JSON.stringify(document)).not.toContain(' undefined');
  });
}

type Fields = 'described' | 'any';

/** The faults of a value by a schema of a description; an answer must have no field that it does not describe. */
type Objections = (schema: object, value: unknown, fields?: Fields) => unknown[];

/** @param schemas those of the description's components. */
export function objectionsOf(schemas: object): Objections {
  const compilers = {
    described: compilerOf(closed(schemas), closed),
    any: compilerOf(schemas, (schema) => schema),
  };
  return (schema, value, fields = 'described') => {
    const validate = compilers[fields](schema);
    validate(value);
    return validate.errors ?? [];
  };
}

/** Compiles each schema once, wherever it is, and what it refers to as well. */
function compilerOf(schemas: unknown, prepare: (schema: unknown) => unknown) {
  // Another test looks at the schemas themselves; and each compiled function runs a few times only.
  const cheap = { meta: false, validateSchema: false, code: { optimize: false } };
  const ajv = new Ajv2020({ allErrors: true, strict: false, ...cheap });
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
