import { startLibrary } from '../../../support/start-library';

/** A part of what the typed client in Go sends: every field of a structure, with its zero value. */
const GO_IMPORT = {
  url: '',
  host_on_import: false,
  state: '',
  type: '',
  tags: null,
  ingest_metadata: Object.fromEntries(
    'captions categories credits description keywords publish_date tags thumbnails'
      .split(' ')
      .map((name) => [name, false]),
  ),
  ingest_tags: null,
};
const GO_PLAYER = { name: 'x', release_channel: '', setup_config: null, custom_params: null };

/** The type of a field in a typed client. */
type Kind = 'string' | 'number' | 'boolean' | 'strings' | 'object' | 'map of strings';

/** The fields of each model, by their kind. */
type Model = Partial<Record<Kind, string>>;

const MODELS = {
  media: {
    string:
      'external_id trim_in_point trim_out_point status error_message mime_type media_type hosting_type source_url metadata.title metadata.external_id metadata.publish_start_date',
    number: 'duration',
    strings: 'metadata.tags',
    'map of strings': 'metadata.custom_params',
  },
  thumbnail: { string: 'thumbnail_type delivery_url source_type', object: 'metadata' },
  track: {
    string: 'track_kind error_message delivery_url status metadata.label metadata.srclang',
    number: 'metadata.position',
  },
  original: { string: 'container_format md5 status metadata.type', object: 'includes', number: 'size' },
  rendition: { string: 'delivery_url media_type', number: 'filesize height width', object: 'metadata' },
  player: {
    string: 'metadata.name',
    object: 'metadata.setup_config',
    'map of strings': 'metadata.custom_params',
  },
  import: {
    string: 'last_import metadata.url metadata.state metadata.type',
    number: 'total_items_ingested',
    boolean: 'metadata.host_on_import',
    strings: 'metadata.tags metadata.ingest_tags',
    object: 'metadata.ingest_metadata',
  },
} as const satisfies Record<string, Model>;

const ALL: Model = { string: 'id created last_modified type', object: 'relationships' };

/** Go takes null for an absent text, and no other type for another. */
function isOf(kind: Kind, value: unknown): boolean {
  if (kind === 'string') return value === null || typeof value === 'string';
  if (kind === 'strings') return Array.isArray(value) && value.every((each) => typeof each === 'string');
  if (kind === 'number' || kind === 'boolean') return typeof value === kind;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return kind === 'object' || Object.values(value).every((each) => typeof each === 'string');
}

function undecodable(answer: unknown, model: Model): string[] {
  const fields = [ALL, model].flatMap((each) => Object.entries(each) as [Kind, string][]);
  return fields.flatMap(([kind, paths]) =>
    paths.split(' ').flatMap((path) => {
      const value = path.split('.').reduce<unknown>((at, name) => Reflect.get(Object(at), name), answer);
      return isOf(kind, value) ? [] : [`${path} is ${JSON.stringify(value)}, not a ${kind}`];
    }),
  );
}

/** Sends as the Go client does: no slash at the end, and no media type. */
async function start() {
  const library = await startLibrary();
  const { url, site, context } = library;
  const call = async (method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${context.seeds.apiSecret}` };
    const bytes = body && new TextEncoder().encode(JSON.stringify(body));
    const answer = await fetch(`${url}${site}${path}`, { method, headers, ...(bytes && { body: bytes }) });
    const text = await answer.text();
    return { status: answer.status, body: text === '' ? undefined : JSON.parse(text) };
  };
  const decode = async (method: string, path: string, model: keyof typeof MODELS, body?: object) => {
    const answer = await call(method, path, body);
    const good = method === 'POST' && !path.endsWith('reupload') ? 201 : 200;
    expect([path, answer.status, answer.body.errors]).toEqual([path, good, undefined]);
    expect([path, undecodable(answer.body, MODELS[model])]).toEqual([path, []]);
    return answer.body;
  };
  return { ...library, call, decode };
}

test('all that the typed client in Go sends for a media is taken, and its answers can be decoded', async () => {
  const { decode, call, send, advance } = await start();
  const { id, upload_link } = await decode('POST', '/media', 'media', { metadata: {}, upload: {} });
  const upload = { method: 'fetch', source_url: 'http://127.0.0.1:9/a.mp4' };
  await decode('POST', '/media', 'media', { metadata: { title: 'x' }, upload });
  await send(upload_link);
  await advance(3);
  await decode('PATCH', `/media/${id}`, 'media', { metadata: { title: 'Another title' } });
  await decode('POST', `/media/${id}/reupload`, 'media', { upload: {} });
  await decode('GET', `/media/${id}`, 'media');
  const { body } = await call('GET', '/media?page=1&page_length=5&q=&sort=');
  for (const media of body.media) expect(undecodable(media, MODELS.media)).toEqual([]);
  expect(await call('DELETE', `/media/${id}`)).toEqual({ status: 204, body: undefined });
});

test('all that it sends for parts of a media is taken, and the answers can be decoded', async () => {
  const { decode, createReady, call } = await start();
  const { id } = await createReady();
  const of = `/media/${id}`;
  const own = { media: [{ id, is_poster: false }] };
  const makePicture = (upload: object, relationships: object) =>
    decode('POST', '/thumbnails', 'thumbnail', { metadata: {}, upload, relationships });
  const thumbnail = await makePicture({ method: 'direct' }, own);
  const picture = await makePicture({ source_media_id: id }, { media: null });
  expect(picture.status).toBe('ready');
  const none = { relationships: { media: null }, metadata: {} };
  await decode('PATCH', `/thumbnails/${thumbnail.id}`, 'thumbnail', none);
  const track = await decode('POST', `${of}/text_tracks`, 'track', {
    metadata: { label: '', srclang: '', position: 0, track_kind: '' },
    upload: { method: '' },
  });
  expect(track.track_kind).toBe('captions');
  const metadata = { language: '', language_code: '', name: '', type: '' };
  const original = await decode('POST', `${of}/originals`, 'original', { metadata, upload: { method: '' } });
  expect(original.metadata).toMatchObject({ name: 'Original', type: 'alternate' });
  await decode('PATCH', `${of}/originals/${original.id}`, 'original', { metadata });
  const relationships = { media_rendition_template: { id: 'template' } };
  await decode('POST', `${of}/media_renditions`, 'rendition', { metadata: {}, relationships });
  for (const [path, name, model] of [
    ['/thumbnails', 'thumbnail', 'thumbnail'],
    [`${of}/text_tracks`, 'text_tracks', 'track'],
    [`${of}/originals`, 'originals', 'original'],
    [`${of}/media_renditions`, 'media_renditions', 'rendition'],
  ] as const) {
    const { body } = await call('GET', path);
    expect(body[name].length).toBeGreaterThan(0);
    for (const each of body[name]) expect(undecodable(each, MODELS[model])).toEqual([]);
  }
});

test('all that it sends for players and imports is taken, and the answers can be decoded', async () => {
  const { decode } = await start();
  const player = await decode('POST', '/players', 'player', { metadata: GO_PLAYER, relationships: {} });
  expect(player.metadata.release_channel).toBe('production');
  await decode('PATCH', `/players/${player.id}`, 'player', { metadata: GO_PLAYER, relationships: null });
  const metadata = { ...GO_IMPORT, url: 'http://127.0.0.1:9/feed' };
  const made = await decode('POST', '/imports', 'import', { metadata });
  expect(made.metadata).toMatchObject({ state: 'active', type: 'mrss', tags: [] });
  const changed = await decode('PATCH', `/imports/${made.id}`, 'import', {
    metadata: { ...GO_IMPORT, title: 'Another title' },
  });
  const defaults = { tags: [], ingest_tags: [], state: 'active', type: 'mrss' };
  expect(changed.metadata).toMatchObject({ ...metadata, ...defaults, title: 'Another title' });
});

test('an empty list, which PHP writes for an object without entries, is taken', async () => {
  const { create, post } = await startLibrary();
  const { id } = await create({ metadata: [], upload: [], relationships: [] });
  const { metadata } = await create({ metadata: { custom_params: [] } });
  expect(metadata.custom_params).toEqual({});
  await post('/players/', { metadata: { setup_config: [], custom_params: [] }, relationships: [] });
  await post('/playlists/manual_playlist/', { metadata: { media_filter: [] } });
  await post('/thumbnails/', { metadata: [], relationships: { media: [{ id }] } });
});
