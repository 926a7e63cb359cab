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
  const take = async (method: string, path: string, body?: object) => {
    const answer = await call(method, path, body);
    const good = method === 'POST' && !path.endsWith('reupload') ? 201 : 200;
    expect([path, answer.status, answer.body.errors]).toEqual([path, good, undefined]);
    return answer.body;
  };
  return { ...library, call, take };
}

// Other tests compare whole answers, whose fields are of the types of the client.
test('all that the typed client in Go sends for parts of a media is taken', async () => {
  const { take, createReady } = await start();
  const { id } = await createReady();
  const of = `/media/${id}`;
  const own = { media: [{ id, is_poster: false }] };
  const makePicture = (upload: object, relationships: object) =>
    take('POST', '/thumbnails', { metadata: {}, upload, relationships });
  const thumbnail = await makePicture({ method: 'direct' }, own);
  const picture = await makePicture({ source_media_id: id }, { media: null });
  expect(picture.status).toBe('ready');
  const none = { relationships: { media: null }, metadata: {} };
  await take('PATCH', `/thumbnails/${thumbnail.id}`, none);
  const track = await take('POST', `${of}/text_tracks`, {
    metadata: { label: '', srclang: '', position: 0, track_kind: '' },
    upload: { method: '' },
  });
  expect(track.track_kind).toBe('captions');
  const metadata = { language: '', language_code: '', name: '', type: '' };
  const original = await take('POST', `${of}/originals`, { metadata, upload: { method: '' } });
  expect(original.metadata).toMatchObject({ name: 'Original', type: 'alternate' });
  await take('PATCH', `${of}/originals/${original.id}`, { metadata });
  const relationships = { media_rendition_template: { id: 'template' } };
  await take('POST', `${of}/media_renditions`, { metadata: {}, relationships });
});

test('all that it sends for players and imports is taken', async () => {
  const { take } = await start();
  const player = await take('POST', '/players', { metadata: GO_PLAYER, relationships: {} });
  expect(player.metadata.release_channel).toBe('production');
  await take('PATCH', `/players/${player.id}`, { metadata: GO_PLAYER, relationships: null });
  const metadata = { ...GO_IMPORT, url: 'http://127.0.0.1:9/feed' };
  const made = await take('POST', '/imports', { metadata });
  expect(made.metadata).toMatchObject({ state: 'active', type: 'mrss', tags: [] });
  const changed = await take('PATCH', `/imports/${made.id}`, {
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
