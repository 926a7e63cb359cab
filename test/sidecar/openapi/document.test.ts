import Ajv2020 from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import { DOCUMENT, OPERATIONS } from '../../support/start-described';
import { validateOpenApi } from '../../support/validate-openapi';

it('is OpenAPI 3.1 by an independent validator', () => {
  expect(validateOpenApi(DOCUMENT)).toEqual({ valid: true, version: '3.1', errors: [] });
});

it.each<[string, object]>([
  ['without paths and components', { ...DOCUMENT, paths: undefined, components: undefined }],
  ['with a method that is none', { ...DOCUMENT, paths: { '/x': { fetch: {} } } }],
  ['with a reference to nothing', { ...DOCUMENT, components: {} }],
])('the validator refuses the document %s', (_what, document) => {
  expect(validateOpenApi(document)).toMatchObject({ valid: false });
});

it('has the version that it is given', () => {
  expect(DOCUMENT.info.version).toBe('1.2.3');
});

it('gives every operation an id of its own', () => {
  const ids = OPERATIONS.map(({ operation }) => operation.operationId);
  expect(ids).toEqual([...new Set(ids)]);
});

it.each(OPERATIONS)(
  '$title names the parameters of its path, and a tag that is told of',
  ({ path, operation }) => {
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    expect(operation.parameters.filter((one) => one.in === 'path').map(({ name }) => name)).toEqual(inPath);
    expect(DOCUMENT.tags.map(({ name }) => name)).toEqual(expect.arrayContaining([...operation.tags]));
  },
);

it.each(Object.keys(DOCUMENT.components.schemas))('%s is a JSON Schema in the strict sense', (name) => {
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, strictRequired: false });
  addFormats(ajv);
  const { schemas } = DOCUMENT.components;
  const compile = () => ajv.compile({ $ref: `#/components/schemas/${name}`, components: { schemas } });
  ajv.addVocabulary(['components']);
  expect(compile).not.toThrow();
});

it('describes every parameter, by a description that is there', () => {
  const told = OPERATIONS.flatMap(({ operation }) => operation.parameters);
  expect(told.filter(({ description = '' }) => !/^[^.]+\./.test(description))).toEqual([]);
  expect(JSON.stringify(DOCUMENT)).not.toContain(' undefined');
});

it('describes every field of every body and answer', () => {
  const silent: string[] = [];
  const look = (place: string, schema: unknown): void => {
    if (typeof schema !== 'object' || schema === null) return;
    const properties: unknown = Reflect.get(schema, 'properties');
    for (const [name, field] of Object.entries(Object(properties))) {
      const told = Object(field).description !== undefined || Object(field).const !== undefined;
      if (!told && !isCondition(schema)) silent.push(`${place}.${name}`);
    }
    for (const [name, part] of Object.entries(schema)) look(`${place}.${name}`, part);
  };
  look('', DOCUMENT.components.schemas);
  expect(silent).toEqual([]);
});

/** A schema that only says when another holds. */
function isCondition(schema: object): boolean {
  return !('type' in schema);
}
