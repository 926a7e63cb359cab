import { inspect } from 'node:util';
import type { SetFields } from '../../../../src/platform/emulator/resources/fields';
import { onceForAll } from '../../../support/after-test';
import { CREATABLE, idName, pathWith } from '../../../support/resource-bodies';
import { startLibrary, type TestLibrary } from '../../../support/start-library';

const VALUES: readonly unknown[] = [
  7,
  -1,
  1.5,
  true,
  '',
  'a text',
  'x'.repeat(10_001),
  [],
  [7],
  ['a text'],
  {},
  { a: 7 },
  { a: 'a text' },
  { constructor: 7 },
  '2030-02-31T00:00:00Z',
  '99:99:99',
];

/** Everything that the platform has, as text. */
function everything({ context }: TestLibrary): string {
  const { credentials: _, rateWindows: _windows, ...stores } = context.state;
  return inspect([stores, context.uploads.list(), context.webhooks.list()], {
    depth: 7,
    maxArrayLength: null,
    maxStringLength: null,
  });
}

async function startWithMedia() {
  const library = await startLibrary();
  const media = await library.createReady();
  return { ...library, ids: { siteId: library.siteId, mediaId: media.id } };
}

/** Some of the values that a field does not take; clients send "" and an empty list for what they have not. */
function wrongFor({ schema }: SetFields[string]): readonly unknown[] {
  const wrong = VALUES.filter((value) => {
    const isEmpty = value === '' || (Array.isArray(value) && value.length === 0);
    return !isEmpty && !schema.safeParse(value).success;
  });
  return wrong.filter((_value, at) => at % 3 === wrong.length % 3);
}

interface Answer {
  readonly status: number;
  readonly body: { readonly errors: readonly { code: string; description: string }[] };
}

function expectNamed({ status, body }: Answer, place: string, value: unknown): void {
  const named = body.errors?.filter(({ description }) => description.startsWith(place));
  expect([place, value, status, body.errors?.length, named?.length]).toEqual([
    place,
    value,
    400,
    expect.any(Number),
    body.errors?.length,
  ]);
  for (const { code } of body.errors) expect(code).toBe('invalid_body');
}

// These have the fields of the others.
const REPEATED = ['trending_playlist', 'article_matching_playlist', 'recommendations_playlist'];

describe.each(CREATABLE.filter(({ type }) => !REPEATED.includes(type)))('$type', ({ resource, body }) => {
  const start = onceForAll(startWithMedia);
  const parts = (['metadata', 'upload', 'relationships'] as const).flatMap((part) =>
    Object.entries((resource[part] ?? {}) as SetFields).map(([name, field]) => ({ part, name, field })),
  );

  test('refuses each wrong value of each field when it is made, names the field, and keeps nothing', async () => {
    const library = await start();
    const path = pathWith(resource.collection, library.ids);
    const before = everything(library);
    for (const { part, name, field } of parts) {
      const wrong = wrongFor(field);
      expect([name, wrong.length > 0]).toEqual([name, true]);
      for (const value of wrong) {
        const given = { ...body, [part]: { ...(body as Record<string, object>)[part], [name]: value } };
        expectNamed(await library.admin.post(path).send(given), `${part}.${name}`, value);
      }
    }
    expect(everything(library)).toBe(before);
  });

  test('refuses a body that is no object, or whose parts are none', async () => {
    const library = await start();
    const path = pathWith(resource.collection, library.ids);
    const before = everything(library);
    for (const text of ['[]', '[{}]', '7', '"x"', 'null', '{', '{"metadata":7}', '{"metadata":[7]}'])
      expect([text, (await library.admin.post(path).type('json').send(text)).status]).toEqual([text, 400]);
    for (const part of ['metadata', 'upload', 'relationships']) {
      const answer = await library.admin.post(path).send({ ...body, [part]: 'text' });
      expectNamed(answer, part, 'text');
    }
    expect(everything(library)).toBe(before);
  });

  test('tells every wrong field of a body at once', async () => {
    const { admin, ids } = await start();
    const given: Record<string, Record<string, unknown>> = { metadata: { nonsense: 1 } };
    for (const { part, name, field } of parts) given[part] = { ...given[part], [name]: wrongFor(field)[0] };
    const { body: answered } = await admin
      .post(pathWith(resource.collection, ids))
      .send({ ...given, nonsense: 1 })
      .expect(400);
    const told = answered.errors.map(({ description }: { description: string }) => description).join('\n');
    for (const { part, name } of parts) expect(told).toContain(`${part}.${name}`);
    expect(told).toContain('metadata.nonsense');
    expect(told).toMatch(/^nonsense/m);
  });

  test('takes null for every field that is not required', async () => {
    const { admin, ids } = await start();
    const given: Record<string, object> = { ...body };
    for (const { part, name, field } of parts)
      if (!field.required) given[part] = { [name]: null, ...given[part] };
    await admin.post(pathWith(resource.collection, ids)).send(given).expect(201);
  });

  if (!resource.verbs.includes('update')) return;

  test('refuses each wrong value of each field when it is changed, and changes nothing', async () => {
    const library = await start();
    const { body: made } = await library.admin.post(pathWith(resource.collection, library.ids)).send(body);
    const path = pathWith(resource.one, { ...library.ids, [idName(resource)]: made.id });
    const before = everything(library);
    for (const { part, name, field } of parts) {
      for (const value of wrongFor(field).slice(0, 1)) {
        const right = resource.metadata.title ? { title: 'changed' } : {};
        const given = { metadata: right, [part]: { ...(part === 'metadata' && right), [name]: value } };
        expectNamed(await library.admin.patch(path).send(given), `${part}.${name}`, value);
      }
    }
    expect(everything(library)).toBe(before);
  });

  test('takes an update that changes nothing', async () => {
    const { admin, ids } = await start();
    const { body: made } = await admin.post(pathWith(resource.collection, ids)).send(body).expect(201);
    const path = pathWith(resource.one, { ...ids, [idName(resource)]: made.id });
    const { body: changed } = await admin.patch(path).send({ metadata: {}, upload: {}, relationships: {} });
    expect(changed.metadata).toEqual(made.metadata);
  });
});
