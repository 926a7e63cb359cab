import { inspect } from 'node:util';
import type { SetFields } from '../../../../src/platform/emulator/resources/fields';
import { onceForAll } from '../../../support/after-test';
import { invalidBody } from '../../../support/error-body';
import { rawExchange } from '../../../support/raw-http';
import { CREATABLE, idName, pathWith } from '../../../support/resource-bodies';
import { startNotifyingLibrary, type TestLibrary } from '../../../support/start-library';
import { tableRows } from '../../../support/table-rows';

const TEXTS = ['', 'a text', 'x'.repeat(10_001)];
const OBJECTS: readonly object[] = [{}, { a: 7 }, { a: 'a text' }, { constructor: 7 }];
const TIMES = ['2030-02-31T00:00:00Z', '99:99:99'];
const VALUES = [7, -1, 1.5, true, ...TEXTS, [], [7], ['a text'], ...OBJECTS, ...TIMES];

/** Everything that the platform has, as text. */
function everything({ context }: TestLibrary): string {
  const { credentials: _, rateWindows: _windows, ...stores } = context.state;
  return inspect([stores, context.uploads.list()], {
    depth: 7,
    maxArrayLength: null,
    maxStringLength: null,
  });
}

const start = onceForAll(async () => {
  const library = await startNotifyingLibrary();
  const media = await library.createReady();
  return { ...library, ids: { siteId: library.siteId, mediaId: media.id } };
});

/** The fields of a resource, and the values that each does not take; clients send "" and [] for what they have not. */
const wrongFields = (resource: (typeof CREATABLE)[number]['resource']) =>
  (['metadata', 'upload', 'relationships'] as const).flatMap((part) =>
    Object.entries((resource[part] ?? {}) as SetFields).map(([name, { schema, required }]) => {
      const given = VALUES.filter((value) => value !== '' && !(Array.isArray(value) && value.length === 0));
      return { part, name, required, wrong: given.filter((value) => !schema.safeParse(value).success) };
    }),
  );

/** Expects a refusal all of whose errors are about these places, and each of these has one at least. */
function expectNamed({ status, body }: { status: number; body: object }, sent: Map<string, unknown>): void {
  const { errors = [] } = body as { errors?: readonly { code: string; description: string }[] };
  const silent = new Map(sent);
  const others = errors.filter(({ code, description }) => {
    const places = [...sent.keys()].filter((place) => description.startsWith(place));
    for (const place of places) silent.delete(place);
    return code !== 'invalid_body' || places.length === 0;
  });
  expect([status, silent, others]).toEqual([400, new Map(), []]);
}

// These have the fields of the others.
const REPEATED = ['trending_playlist', 'article_matching_playlist', 'recommendations_playlist'];

describe.each(CREATABLE.filter(({ type }) => !REPEATED.includes(type)))('$type', ({ resource, body }) => {
  /** The library as all tests have it, and the path of the resource. */
  async function arrange() {
    const library = await start();
    const before = everything(library);
    const expectUnchanged = () => expect(everything(library)).toBe(before);
    return { ...library, path: pathWith(resource.collection, library.ids), expectUnchanged };
  }

  const fields = wrongFields(resource);

  /** A body with a wrong value in each field, in each turn another one, and the values by their places. */
  function wrongBody(right: Record<string, object>, turn: number) {
    const given = { ...right };
    const sent = new Map<string, unknown>();
    for (const { part, name, wrong } of fields) {
      const value = wrong[turn % wrong.length];
      given[part] = { ...given[part], [name]: value };
      sent.set(`${part}.${name}`, value);
    }
    return { given, sent };
  }

  test('refuses each wrong value of each field when it is made, names the field, and keeps nothing', async () => {
    const { admin, path, expectUnchanged } = await arrange();
    expect(fields.filter(({ wrong }) => wrong.length === 0)).toEqual([]);
    for (let turn = 0; fields.some(({ wrong }) => turn < wrong.length); turn += 1) {
      const { given, sent } = wrongBody(body as Record<string, object>, turn);
      expectNamed(await admin.post(path).send(given), sent);
    }
    expectUnchanged();
  });

  test('refuses a body whose parts are no objects', async () => {
    const { admin, path, expectUnchanged } = await arrange();
    for (const part of ['metadata', 'upload', 'relationships'])
      expectNamed(await admin.post(path).send({ ...body, [part]: 'text' }), new Map([[part, 'text']]));
    expectUnchanged();
  });

  test('takes null for every field that is not required', async () => {
    const { admin, ids } = await start();
    const given: Record<string, object> = { ...body };
    for (const { part, name, required } of fields)
      if (!required) given[part] = { [name]: null, ...given[part] };
    await admin.post(pathWith(resource.collection, ids)).send(given).expect(201);
  });

  if (!resource.verbs.includes('update')) return;

  test('refuses a wrong value of each field when it is changed, and changes nothing', async () => {
    const library = await start();
    const { body: made } = await library.admin.post(pathWith(resource.collection, library.ids)).send(body);
    const path = pathWith(resource.one, { ...library.ids, [idName(resource)]: made.id });
    const before = everything(library);
    const metadata = resource.metadata.title ? { title: 'changed' } : {};
    const { given, sent } = wrongBody({ metadata }, 0);
    expectNamed(await library.admin.patch(path).send(given), sent);
    expect(everything(library)).toBe(before);
  });
});

test.each(['[]', '[{}]', '7', '"x"', 'null', '{', '{"metadata":7}', '{"metadata":[7]}'])(
  'refuses the body %s, and keeps nothing',
  async (text) => {
    const library = await start();
    const before = everything(library);
    await library.admin.post(`${library.site}/media/`).type('json').send(text).expect(400);
    expect(everything(library)).toBe(before);
  },
);

/** An upload and its faults, one a line. */
const WRONG_UPLOADS = `
{"method":"fetch"} → upload.download_url: is missing; the method fetch needs it
{"method":"external"} → upload.source_url: is missing; the method external needs it
{"download_url":"https://a.example"} → upload.download_url: goes with the method fetch, not with direct
{"method":"multipart","source_url":"https://a.example"} → upload.source_url: goes with the method external or fetch, not with multipart
{"method":"fetch","source_url":"https://a.example","download_url":"https://a.example"} → upload.source_url: goes with the method external, not with fetch
{"method":"external","source_url":"https://a.example","trim_in_point":"00:00:01"} → upload.trim_in_point and trim_out_point: cannot be set for the method external
{"trim_in_point":"00:00:02","trim_out_point":"00:00:02.000"} → upload.trim_out_point: must be after trim_in_point
{"method":"external","download_url":"file:///etc/passwd","trim_out_point":3} → upload.download_url: must be an absolute address with https or http → upload.trim_out_point: must be a string → upload.download_url: goes with the method fetch, not with external → upload.source_url: is missing; the method external needs it → upload.trim_in_point and trim_out_point: cannot be set for the method external
`;

test.each(tableRows(WRONG_UPLOADS))(
  'an upload of %s is refused with each of its faults, next to those of other fields',
  async (upload = '', ...faults) => {
    const library = await start();
    const { admin, site, notifications } = library;
    await notifications();
    const before = everything(library);
    const given = { metadata: { title: 7 }, upload: JSON.parse(upload) };
    const expected = invalidBody('metadata.title: must be a string', ...faults);
    await admin.post(`${site}/media/`).send(given).expect(400, expected);
    expect(everything(library)).toBe(before);
    expect(await notifications()).toEqual([]);
  },
);

test('fields at the wrong place are reported with the right one, and misspelled ones with the nearest', async () => {
  const { admin, site } = await start();
  const metadata = { titel: 'x' };
  const given = { title: 'x', id: 'x', status: 'ready', metadata, upload: { methd: 'direct' }, uplod: {} };
  const expected = invalidBody(
    'metadata.titel is not a field of this request. Did you mean metadata.title?',
    'upload.methd is not a field of this request. Did you mean upload.method?',
    'title belongs into metadata: send it as metadata.title.',
    'id is set by the platform, and a request cannot change it. Leave it out.',
    'status is set by the platform, and a request cannot change it. Leave it out.',
    'uplod is not a field of this request. Did you mean upload?',
  );
  await admin.post(`${site}/media/`).send(given).expect(400, expected);
});

test('a body of nonsense gets fifty faults at most', async () => {
  const { admin, site } = await start();
  const metadata = Object.fromEntries(Array.from({ length: 5000 }, (_, n) => [`field${n}`, n]));
  const { body } = await admin.post(`${site}/media/`).send({ metadata }).expect(400);
  expect(body.errors).toHaveLength(50);
});

// Without a length, a request has no body at all, and not an empty one.
test('a request that announces no body is one with nothing in it', async () => {
  const { port, context, site } = await startNotifyingLibrary();
  const ask = (method: string, path: string) =>
    rawExchange(
      port,
      `${method} ${site}${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${context.seeds.apiSecret}\r\ncontent-type: application/json\r\n\r\n`,
      /\r\n\r\n.*/,
    );
  expect(await ask('POST', '/media/')).toMatch(/^HTTP\/1\.1 201 /);
  const [media] = context.state.media.all();
  // A released client writes parameters of its own into the query.
  expect(await ask('PUT', `/media/${media?.id}/reupload?api_format=json&api_nonce=12345678`)).toMatch(
    /^HTTP\/1\.1 200 /,
  );
  expect(await ask('PATCH', `/media/${media?.id}`)).toMatch(/^HTTP\/1\.1 200 /);
  expect(await ask('POST', '/imports/')).toMatch(/^HTTP\/1\.1 400 /);
  expect(await ask('DELETE', `/media/${media?.id}/`)).toMatch(/^HTTP\/1\.1 204 /);
});

const PATH = '/v2/sites/demosite/channels/';
/** Metadata and its faults, one a line; "x*201" is so many letters, ["a" * 101] so many entries. */
const WRONG_METADATA = `
null → metadata: must be an object
{"wholly_unknown_field":"x"} → metadata.wholly_unknown_field is not a field of this request. Fields of metadata: title, tags, custom_params, dvr, publishing_mode, latency, reconnect_window, simulcast_targets, text_tracks.
{"tags":["a",1,null,"x*201"],"custom_params":{"a":1,"b":null},"text_tracks":[1]} → metadata.tags.1: must be a string → metadata.tags.2: must be a string → metadata.tags.3: is longer than 200 characters → metadata.custom_params.a: must be a string → metadata.custom_params.b: must be a string → metadata.text_tracks.0: must be an object
{"title":"x*1001"} → metadata.title: is longer than 1000 characters
{"tags":["a" * 101]} → metadata.tags: has more than 100 entries
{"custom_params":PARAMS} → metadata.custom_params: has more than 100 entries
{"latency":"x*51","simulcast_targets":[TARGET * 21],"text_tracks":[{} * 51]} → metadata.latency: is longer than 50 characters → metadata.simulcast_targets: has more than 20 entries → metadata.text_tracks: has more than 50 entries
{"text_tracks":[{"label":"en"},{"cues":DEEP}]} → metadata.text_tracks.1.cues: must be a string of at most 4000 characters, a number, true, false or null
{"reconnect_window":1801} → metadata.reconnect_window: must be at most 1800 seconds
{"custom_params":{"":"a","b":"c"},"text_tracks":[{"x*201":"a"}]} → metadata.custom_params: has a name that is empty or longer than 200 characters → metadata.text_tracks.0: has a name that is empty or longer than 200 characters
{"reconnect_window":-1} → metadata.reconnect_window: must not be negative
{"simulcast_targets":[{"stream_key":"k","title":"t"}]} → metadata.simulcast_targets.0.stream_url: is missing
{"simulcast_targets":[{"stream_key":"k","title":"t","stream_url":"https://target.example/"}]} → metadata.simulcast_targets.0.stream_url: must be an rtmps:// address
{"simulcast_targets":[{"stream_key":"k","title":"t","stream_url":"rtmps://a.test/live","stream_urls":"x"}]} → metadata.simulcast_targets.0.stream_urls is not a field of this request. Did you mean metadata.simulcast_targets.0.stream_url?
`
  .replaceAll(/"x\*(\d+)"/g, (_all, count) => JSON.stringify('x'.repeat(Number(count))))
  .replaceAll(/\[(\S+) \* (\d+)\]/g, (_all, item, count) => `[${Array(Number(count)).fill(item)}]`)
  .replaceAll('TARGET', '{"stream_key":"k","stream_url":"rtmps://target.example/live","title":"t"}')
  // A value of this depth could not be written again.
  .replace('DEEP', `${'['.repeat(50_000)}${']'.repeat(50_000)}`)
  .replace('PARAMS', JSON.stringify({ ...Array(101).fill('') }));

test.each([
  ['{}', 'metadata: is missing'],
  ...tableRows(WRONG_METADATA).map(([metadata, ...faults]) => [`{"metadata":${metadata}}`, ...faults]),
])('refuses the body %# with 400, and neither makes nor changes a channel', async (body, ...faults) => {
  const { admin, createChannel } = await start();
  const { id } = await createChannel({ title: 'Before', tags: ['kept'] });
  const before = (await admin.get(PATH)).body;
  const refused = invalidBody(...faults);
  for (const call of [admin.post(PATH), admin.patch(`${PATH}${id}/`)])
    await call.type('json').send(body).expect(400, refused);
  expect((await admin.get(PATH)).body).toEqual(before);
});
