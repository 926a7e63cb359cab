import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { openStateFile } from '../../../../src/platform/emulator/control/saved-state';
import { onceForAll, temporaryFolder } from '../../../support/after-test';
import { faultsOf } from '../../../support/faults-of';
import { processorMs } from '../../../support/processor-time';
import { startEmulator } from '../../../support/start-emulator';
import { FILM, startLibrary } from '../../../support/start-library';
import { tableRows } from '../../../support/table-rows';

/** An emulator with something of every kind, and with files, an encoder, and all sorts of work under way. */
async function startFilled(env: Record<string, string> = {}) {
  const library = await startLibrary(env);
  const { stateFile } = library.context.seeds;
  const file = stateFile === undefined ? undefined : openStateFile(library.context, stateFile);
  const { admin, api, control, post, create, createReady, createChannel, connect, site, advance } = library;
  const targets = [{ stream_key: 'elsewhere', stream_url: 'rtmps://target.example/live', title: 't' }];
  const channel = await createChannel({ publishing_mode: 'manual', simulcast_targets: targets });
  const ended = await createChannel({ title: 'Ended', custom_params: { secret: 'no' } });
  const { id: mediaId } = await createReady({ metadata: { title: 'Film', tags: ['a'] } });
  const replayed = await connect(ended);
  await advance(30);
  await admin.put(`${site}/channels/${ended.id}/disable/`).expect(204);
  await admin.put(`${site}/channels/${ended.id}/events/${replayed}/request_master/`).expect(204);
  const event = await connect(channel);
  const english = { metadata: { label: 'English' }, upload: { auto_publish: true } };
  const track = await post(`/media/${mediaId}/text_tracks/`, english);
  await library.send(track.upload_link, Buffer.from('WEBVTT\n'));
  const media = [{ id: mediaId, is_poster: true }];
  const picture = await post('/thumbnails/', { relationships: { media } });
  await library.send(picture.upload_link, Buffer.from('GIF89a'));
  await post(`/media/${mediaId}/originals/`, { metadata: { name: 'Other' } });
  const media_filter = { include: { match: 'any', values: [mediaId] } };
  await post('/playlists/manual_playlist/', { metadata: { media_filter } });
  await post('/playlists/dynamic_playlist/', { metadata: { title: 'D' } });
  await post('/players/', { metadata: { name: 'P' } });
  await post('/imports/', { metadata: { url: 'https://feeds.example/a.xml', password: 'feed-password' } });
  const credential = { name: 'n', permission: 'Viewer', roles: ['editor'] };
  await control.post('/credentials').send(credential).expect(201);
  const fault = { target: 'webhook:*', kind: 'delay', ms: 5, ms_to: 9, rate: 0.5 };
  await control.post('/faults').send(fault).expect(201);
  await api.get('/keyprovider/cenc/demo/content').expect(200);
  // Under way: a processing, a publication, an upload.
  const upload = { method: 'external', source_url: 'https://example.com/a.mp4' };
  await create({ metadata: { title: 'Coming' }, upload });
  await create({ metadata: { publish_start_date: '2031-01-01T00:00:00Z' }, upload });
  await create({ upload: { method: 'multipart' } });
  const stateOf = async (reveal = true) => {
    const { body } = await control.get('/state').query({ reveal }).expect(200);
    return body;
  };
  return { ...library, channel, event, mediaId, stateOf, file };
}

test('another emulator, and the same one, get back all that GET /state gave, and go on with what is under way', async () => {
  const first = await startFilled();
  const folder = { EMULATOR_UPLOADSFOLDER: first.context.seeds.uploadsFolder };
  const given = await first.stateOf();
  const second = await startLibrary(folder);
  const put = await second.control.put('/state').send(given);
  expect([put.status, put.body]).toEqual([200, { missing_files: [] }]);
  const got = (await second.control.get('/state?reveal=true')).body;
  expect({ ...got, uploads: given.uploads }).toEqual({
    ...given,
    uploads: { ...given.uploads, open: given.uploads.open },
  });
  const { body: other } = await (await startEmulator()).control.get('/state?reveal=true');
  for (const { admin, control, unauthenticated, context } of [first, second]) {
    await control.put('/state').send(other).expect(200);
    await control.put('/state').send(given).expect(200);
    await control.get('/state').expect(200);
    const [rendition] = context.state.renditions.all();
    const film = await unauthenticated.get(`/videos/${first.mediaId}-${rendition?.id}.mp4`);
    expect(film.body).toEqual(FILM);
    await control.post('/encoder/connect').send({ stream_key: first.channel.stream_key }).expect(409);
    await control.post('/encoder/disconnect').send({ stream_key: first.channel.stream_key }).expect(200);
    await control.post('/clock').send({ advance_seconds: 61 }).expect(200);
    const { body } = await admin.get(`${first.site}/media/`);
    const coming = body.media.find(
      ({ metadata }: { metadata: { title: string } }) => metadata.title === 'Coming',
    );
    expect(coming.status).toBe('ready');
    expect(context.state.events.find(first.event)?.state).toBe('ended_unpublished');
  }
});

test('a state without its secrets restores all else: secrets stay under the same ids, and are new ones elsewhere', async () => {
  const first = await startFilled();
  const before = await first.stateOf();
  const shown = await first.stateOf(false);
  const { events, keys } = before.saved;
  const secrets = [first.channel.stream_key, events[0].previewToken, keys[0].key];
  for (const secret of ['feed-password', 'elsewhere', ...secrets])
    expect(JSON.stringify(shown)).not.toContain(secret);
  await first.admin.delete(`${first.site}/media/${first.mediaId}/`).expect(204);
  const { body } = await first.control.put('/state').send(shown).expect(200);
  expect(body.missing_files).toHaveLength(3);
  const again = await first.stateOf();
  expect(again.saved.channels[0].streamKey).toBe(first.channel.stream_key);
  expect(again.saved.keys).toEqual(before.saved.keys);
  expect(again.saved.media.length).toBe(before.saved.media.length);
  const second = await startEmulator();
  await second.control.put('/state').send(shown).expect(200);
  const [channel] = second.context.state.channels.all();
  expect(channel?.streamKey).toMatch(/^secret-/);
  await second.admin.get('/v2/sites/demosite/media/').expect(200);
});

interface State {
  readonly saved: object;
}

/** What a place of the saved state gets, as JSON, and the fault of it, one a line. */
const WRONG = `
saved → {"version":2,"media":1} → saved.version: must be 1: another release of the emulator has saved this state
saved.channels.0 → {"created":"today"} → saved.channels.0.created: must be a time such as 2030-01-01T00:00:00.000Z
saved.channels.0 → {"id":"../../ab"} → saved.channels.0.id: must be 8 letters and digits
saved.channels.0 → {"metadata":{}} → saved.channels.0.metadata.title: is missing
saved → {"clockOffsetMs":1e15} → saved.clockOffsetMs: must be at most 1e14
saved.channels.0 → {"streamkey":"x"} → saved.channels.0.streamkey is not a field of this request. Did you mean saved.channels.0.streamKey?
saved → {"faults":[{"target":"webhook:*","kind":"fail","status":200}]} → saved.faults.0.status: must be 400 to 599
saved.webhooks.0.metadata → {"webhook_url":"receiver"} → saved.webhooks.0.metadata.webhook_url: must be an absolute https address
saved.playlists.0 → {"metadata":{"title":"t","description":null,"author":null,"link":null,"custom_params":{}}} → saved.playlists.0.metadata.media_filter: is missing
saved.playlists.0 → {"playlistType":"none"} → saved.playlists.0.playlistType: must be an object with a known playlistType
saved → {"channels":[]} → saved.events.0.channelId: the state has no channel with this id on its site
`;

const changed = (place: string, fields: string) => (state: State) => {
  const copy = structuredClone(state);
  const at = place.split('.').reduce<object>((inner, name) => Reflect.get(inner, name), copy);
  Object.assign(at, JSON.parse(fields));
  return JSON.stringify(copy);
};

const withSome = onceForAll(async () => {
  const emulator = await startEmulator();
  const { admin, createChannel, createWebhook, connect } = emulator;
  await connect(await createChannel());
  createWebhook('https://receiver.example/', ['channel_idle']);
  await admin.post('/v2/sites/demosite/playlists/manual_playlist/').send({ metadata: {} }).expect(201);
  return emulator;
});

type Wrong = [what: string, text: (state: State) => string, description: string | undefined];

test.each<Wrong>([
  ...tableRows(WRONG).map(([place = '', fields = '', fault]): Wrong => {
    return [`with ${fields} in ${place}`, changed(place, fields), fault];
  }),
  [
    'without a part',
    ({ saved }) => JSON.stringify({ saved: { ...saved, media: undefined } }),
    'saved.media: is missing',
  ],
  ['that is no object', () => '[]', 'A state is a JSON object with saved, as GET /state answers it.'],
  ['that is cut', (state) => JSON.stringify(state).slice(0, -9), undefined],
])(
  'refuses a state %s, by PUT and as a file, and keeps the one that there is',
  async (_name, text, description) => {
    const { control, context } = await withSome();
    const { body: state } = await control.get('/state?reveal=true');
    const sent = text(state);
    const { status, body } = await control.put('/state').type('json').send(sent);
    const refused = description ?? 'The body is not valid JSON. Send one JSON object.';
    expect([status, body.errors[0].description]).toEqual([400, refused]);
    const path = join(await temporaryFolder(), 'state.json');
    writeFileSync(path, sent);
    const why =
      description ?? 'is not JSON, or was cut; restore a copy, or remove it to start without a state';
    expect(faultsOf(() => openStateFile(context, path))[0]).toBe(`EMULATOR_STATEFILE: ${path}: ${why}`);
    expect(readFileSync(path, 'utf8')).toBe(sent);
    expect((await control.get('/state?reveal=true')).body).toEqual(state);
  },
);

test('refuses a file of 1 GB before it reads it, one that it cannot read, and a place where it cannot write', async () => {
  const { context } = await startEmulator();
  const folder = await temporaryFolder();
  const large = join(folder, 'large.json');
  writeFileSync(large, '{');
  truncateSync(large, 2 ** 30);
  const took = await processorMs(() => {
    expect(faultsOf(() => openStateFile(context, large))).toEqual([
      `EMULATOR_STATEFILE: ${large}: has 1073741824 bytes, and a state has at most 134217728; name another file`,
    ]);
  });
  expect(took).toBeLessThan(100);
  const directory = join(folder, 'directory');
  mkdirSync(directory);
  const opened = (path: string) => faultsOf(() => openStateFile(context, path))[0];
  expect(opened(directory)).toMatch(/cannot be used \(EISDIR\)/);
  expect(opened(join(large, 'state.json'))).toMatch(/cannot be used \(EEXIST\)/);
});

test('a state file has the state of the end, with files, for the next start, also where it was moved to, for its user alone', async () => {
  const folder = await temporaryFolder();
  const made = join(folder, 'made', 'state.json');
  const first = await startFilled({ EMULATOR_STATEFILE: made });
  expect(JSON.parse(readFileSync(made, 'utf8')).saved.channels).toEqual([]);
  expect(statSync(made).mode & 0o777).toBe(0o600);
  const given = await first.stateOf();
  first.file?.close();
  expect(existsSync(`${made}.new`)).toBe(false);
  expect(JSON.parse(readFileSync(made, 'utf8'))).toEqual({ saved: given.saved });
  renameSync(join(folder, 'made'), join(folder, 'moved'));
  const path = join(folder, 'moved', 'state.json');
  const second = await startLibrary({ EMULATOR_STATEFILE: path });
  // One that the next start would refuse is not written.
  const limited = openStateFile(second.context, path, statSync(path).size);
  await second.create();
  expect(() => limited.close()).toThrow(/^The state has \d+ bytes/);
  expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual({ saved: given.saved });
  expect(await second.logOf(3)).toMatch(/"state not written".*"The state has \d+ bytes, .* at most \d+; /);
  openStateFile(second.context, path).close();
  const moved = JSON.parse(JSON.stringify(given.saved).replaceAll(made, path));
  expect((await second.control.get('/state?reveal=true')).body.saved).toEqual(moved);
  // What has not changed is not written again.
  const { ino } = statSync(path);
  openStateFile(second.context, path).close();
  expect(statSync(path).ino).toBe(ino);
  expect(second.context.uploads.files.usedBytes).toBe(first.context.uploads.files.usedBytes);
});

test('restores 10,000 media', async () => {
  const { control, context, createReady } = await startLibrary();
  await createReady({ metadata: { title: 'Film' } });
  const { body: state } = await control.get('/state?reveal=true');
  const id = (each: number) => `m${String(each).padStart(7, '0')}`;
  const many = <Item extends object>(items: readonly Item[], fields: (each: number) => object) =>
    Array.from({ length: 10_000 }, (_, each) => ({ ...items[0], ...fields(each) }));
  state.saved.media = many(state.saved.media, (each) => ({ id: id(each) }));
  const path = join(await temporaryFolder(), 'state.json');
  writeFileSync(path, JSON.stringify(state));
  openStateFile(context, path).close();
  expect(context.state.media.all()).toHaveLength(10_000);
});
