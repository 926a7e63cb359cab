import { onceForAll } from '../../../support/after-test';
import { invalidBody } from '../../../support/error-body';
import { startEmulator, type TestEmulator } from '../../../support/start-emulator';
import { FILM, startNotifyingLibrary } from '../../../support/start-library';

async function start() {
  const library = await startNotifyingLibrary({ EMULATOR_SITE_ID: 'demosite,othersit' });
  const make = async (...tags: string[]) => (await library.create({ metadata: { tags } })).id;
  const [both, old, none] = [await make('old', 'x', 'new'), await make('old'), await make('x')];
  await library.notifications();
  const tags = () =>
    Promise.all([both, old, none].map(async (id) => (await library.read(`/media/${id}`)).metadata.tags));
  return { ...library, both, old, tags };
}

test.each([[{ old_tag: 'old', new_tag: 'new' }], [{ old_name: 'old', new_name: 'new' }]])(
  'a tag is renamed on all media by %j, with a notification for each; a media with both keeps one',
  async (body) => {
    const { admin, site, tags, notifications, both, old } = await start();
    await admin.put(`${site}/rename_tag/`).send(body).expect(202, '');
    expect(await tags()).toEqual([['new', 'x'], ['new'], ['x']]);
    expect(await notifications()).toEqual([`media_updated ${both}`, `media_updated ${old}`]);
  },
);

test.each([[{ tag: 'x' }], [{ name: 'x' }]])(
  'a tag is taken off all media of the site by %j',
  async (body) => {
    const { admin, site, tags } = await start();
    const path = '/v2/sites/othersit/media';
    const { body: other } = await admin.post(path).send({ metadata: { tags: ['x'] } });
    await admin.put(`${site}/remove_tag`).send(body).expect(202);
    expect(await tags()).toEqual([['old', 'new'], ['old'], []]);
    expect((await admin.get(`${path}/${other.id}`)).body.metadata.tags).toEqual(['x']);
  },
);

// A playlist that no longer asked for its only tag would have every media.
test('playlists ask for a tag by its new name, and go on to ask for one that was removed', async () => {
  const { post, read, admin, site } = await start();
  const media_filter = {
    include: { tags: { match: 'any', values: ['old', 'x'] }, custom_params: { values: { a: 'old' } } },
    exclude: { tags: { values: ['old'] } },
  };
  const dynamic = await post('/playlists/dynamic_playlist/', { metadata: { media_filter } });
  const ofMedia = { media_filter: { include: { values: ['old'] } } };
  const manual = await post('/playlists/manual_playlist/', { metadata: ofMedia });
  const filterOf = async (id: string, type: string) =>
    (await read(`/playlists/${id}/${type}`)).metadata.media_filter;
  await admin.put(`${site}/rename_tag`).send({ old_tag: 'old', new_tag: 'new' }).expect(202);
  await admin.put(`${site}/remove_tag`).send({ tag: 'x' }).expect(202);
  expect(await filterOf(dynamic.id, 'dynamic_playlist')).toEqual({
    include: { tags: { match: 'any', values: ['new', 'x'] }, custom_params: { values: { a: 'old' } } },
    exclude: { tags: { values: ['new'] } },
  });
  expect(await filterOf(manual.id, 'manual_playlist')).toEqual(ofMedia.media_filter);
});

test('a tag that nobody has, and a new name that is the old one, change nothing', async () => {
  const { admin, site, tags, notifications } = await start();
  const before = await tags();
  await admin.put(`${site}/remove_tag`).send({ tag: 'nobody' }).expect(202);
  await admin.put(`${site}/rename_tag`).send({ old_tag: 'old', new_tag: 'old' }).expect(202);
  expect(await tags()).toEqual(before);
  expect(await notifications()).toEqual([]);
});

/** For tests that change nothing. */
const shared = onceForAll(start);

test.each([
  ['rename_tag', {}, ['old_tag: is missing', 'new_tag: is missing']],
  ['rename_tag', undefined, ['old_tag: is missing', 'new_tag: is missing']],
  ['rename_tag', { old_tag: 'old', new_tag: '' }, ['new_tag: is empty']],
  ['remove_tag', { tags: ['x'] }, ['tags is not a field of this request. Did you mean tag?']],
  ['remove_tag', { tag: null }, ['tag: is missing']],
])('%s with %j is refused', async (action, body, faults) => {
  const { admin, site, tags } = await shared();
  const before = await tags();
  const refused = invalidBody(...faults);
  await admin.put(`${site}/${action}/`).send(body).expect(400, refused);
  expect(await tags()).toEqual(before);
});

describe('the usage', () => {
  const DAY = 24 * 3600;
  const NOTHING = { media_created: 0, uploaded_bytes: 0, deliveries: 0, delivered_bytes: 0, live_seconds: 0 };

  test('usage is counted for each day by the clock of the platform', async () => {
    const { createReady, create, onAir, disconnect, admin, site, advance, unauthenticated } =
      await startNotifyingLibrary();
    const { id } = await createReady();
    await create();
    await unauthenticated.get(`/v2/media/${id}`).expect(200);
    await advance(DAY);
    const { channel } = await onAir();
    await advance(90);
    await disconnect(channel);
    await advance(60);
    const days = { start_date: '2029-12-31', end_date: '2030-01-02' };
    const used = { media_created: 2, uploaded_bytes: FILM.length, deliveries: 1 };
    const results = [
      { site_id: 'demosite', date: '2029-12-31', ...NOTHING },
      { site_id: 'demosite', date: '2030-01-01', ...NOTHING, ...used },
      { site_id: 'demosite', date: '2030-01-02', ...NOTHING, live_seconds: 90 },
    ];
    const usage = { ...days, results };
    await admin.put(`${site}/query_usage/`).send(days).expect(200, usage);
  });

  test('without days, and without a body, the latest 30 days are returned; days may be in the query', async () => {
    const { admin, site } = await startNotifyingLibrary();
    const { body: latest } = await admin.put(`${site}/query_usage`).type('json').expect(200);
    const { start_date, end_date, results } = latest;
    expect([start_date, end_date, results.length]).toEqual(['2029-12-03', '2030-01-01', 30]);
    // Next to additions of a released client.
    const days = 'start_date=2029-12-31&end_date=2030-01-01&api_format=json&api_nonce=12345678';
    const { body } = await admin.put(`${site}/query_usage/?${days}`).expect(200);
    expect(body.results).toHaveLength(2);
  });

  test('the usage of the account has all sites that the credential reaches', async () => {
    const { admin, control, as } = await startNotifyingLibrary({ EMULATOR_SITE_ID: 'demosite,othersit' });
    const day = { start_date: '2030-01-01', end_date: '2030-01-01' };
    const sitesOf = async (caller: typeof admin) =>
      (await caller.put('/v2/query_usage/').send(day).expect(200)).body.results.map(
        ({ site_id }: { site_id: string }) => site_id,
      );
    expect(await sitesOf(admin)).toEqual(['demosite', 'othersit']);
    const credential = { name: 'one', permission: 'Viewer', site_ids: ['othersit'] };
    const { body } = await control.post('/credentials').send(credential).expect(201);
    expect(await sitesOf(as(body.secret))).toEqual(['othersit']);
  });

  test.each([
    [{ start_date: '2030-01-02', end_date: '2030-01-01' }, ['end_date: must not be before start_date']],
    [{ start_date: '2020-01-01' }, ['start_date: is more than 366 days before']],
    [
      { start_date: '2030-02-31', end_date: 'today' },
      ['start_date: is no day that exists', 'end_date: must be a day such as 2030-01-31'],
    ],
    [{ end_date: '0000-01-10' }, ['end_date: is no day that exists']],
    [{ start_date: 7 }, ['start_date: must be a string']],
  ])('days such as %j are refused', async (body, faults) => {
    const { admin, site } = await shared();
    const refused = invalidBody(...faults);
    await admin.put(`${site}/query_usage/`).send(body).expect(400, refused);
  });

  /** The seconds of each of the first three days. */
  async function usedOf({ admin, siteId }: TestEmulator): Promise<readonly number[]> {
    const days = { start_date: '2030-01-01', end_date: '2030-01-03' };
    const { body } = await admin.put(`/v2/sites/${siteId}/query_usage/`).send(days).expect(200);
    return body.results.map(({ live_seconds }: { readonly live_seconds: number }) => live_seconds);
  }

  test('counts the seconds that encoders stream, each on its own day', async () => {
    const emulator = await startEmulator();
    const { onAir, connect, disconnect, advance } = emulator;
    const { channel } = await onAir();
    await advance(90);
    expect(await usedOf(emulator)).toEqual([0, 0, 0]);
    await disconnect(channel);
    expect(await usedOf(emulator)).toEqual([90, 0, 0]);
    // While the encoder is away, nothing streams.
    await advance(30);
    await connect(channel);
    // The platform ends the event twelve hours after its start.
    await advance(20 * 3600);
    expect(await usedOf(emulator)).toEqual([90 + 12 * 3600 - 120, 0, 0]);
  });

  test('counts over midnight, and what the platform ends', async () => {
    const emulator = await startEmulator();
    const { admin, siteId, createChannel, connect, advance } = emulator;
    const channel = await createChannel();
    await advance(23 * 3600);
    await connect(channel);
    await advance(2 * 3600);
    await admin.put(`/v2/sites/${siteId}/channels/${channel.id}/disable/`).expect(204);
    expect(await usedOf(emulator)).toEqual([3600, 3600, 0]);
  });
});
