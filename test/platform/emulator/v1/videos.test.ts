import { onceForAll } from '../../../support/after-test';
import {
  callV1,
  createV1,
  type Fields,
  okV1,
  processFile,
  readyVideo,
  refusedV1,
  uploadForm,
} from '../../../support/call-v1';
import { queryOf, START, signedPairs, signedPath } from '../../../support/sign-v1';
import { startEmulator } from '../../../support/start-emulator';

type Parameters = Readonly<Record<string, string>>;

/** Videos that are created a second apart, the last one the newest, and the titles that a list finds. */
async function startVideos(videos: readonly Parameters[]) {
  const emulator = await startEmulator();
  for (const video of videos) {
    await createV1(emulator, 'video', video);
    await emulator.advance(1);
  }
  const titlesOf = async (parameters: Parameters) => {
    const { videos: found } = await okV1(emulator, 'videos/list', parameters);
    return (found as readonly { title: string }[]).map(({ title }) => title);
  };
  return { emulator, titlesOf };
}

const SEVEN = Array.from({ length: 7 }, (_, at) => ({ title: `T${at}` }));
/** For tests that make nothing. */
const sevenVideos = onceForAll(() => startVideos(SEVEN));

test('a list has the newest first, fifty at most when nothing is said', async () => {
  const { emulator, titlesOf } = await sevenVideos();
  const { limit, offset, total } = await okV1(emulator, 'videos/list');
  expect([limit, offset, total]).toEqual([50, 0, 7]);
  expect(await titlesOf({})).toEqual(['T6', 'T5', 'T4', 'T3', 'T2', 'T1', 'T0']);
});

test.each([
  [{ result_limit: '3' }, ['T6', 'T5', 'T4']],
  [{ result_limit: '3', result_offset: '2' }, ['T4', 'T3', 'T2']],
  [{ result_limit: '3', result_offset: '5' }, ['T1', 'T0']],
  [{ result_limit: '0', result_offset: '6' }, ['T0']],
  [{ result_limit: '1000', result_offset: '999999999999999' }, []],
] as const)('the window %j may begin anywhere', async (parameters, titles) => {
  const { emulator, titlesOf } = await sevenVideos();
  expect(await titlesOf(parameters)).toEqual(titles);
  expect((await okV1(emulator, 'videos/list', parameters)).total).toBe(7);
});

test('a list is ordered by any of the fields, in both directions', async () => {
  const { titlesOf } = await startVideos([
    { title: 'b', author: 'z' },
    { title: 'a', author: 'y' },
    { title: 'c', author: 'y' },
  ]);
  expect(await titlesOf({ order_by: 'title:asc' })).toEqual(['a', 'b', 'c']);
  expect(await titlesOf({ order_by: 'title:desc' })).toEqual(['c', 'b', 'a']);
  expect(await titlesOf({ order_by: 'author:asc,title:desc' })).toEqual(['c', 'a', 'b']);
});

test('ordered by date, a video without one counts with its creation', async () => {
  const { emulator, titlesOf } = await startVideos([
    { title: 'created first' },
    { title: 'dated late', date: String(START + 3600) },
    { title: 'created last' },
    { title: 'dated early', date: String(START - 3600) },
  ]);
  for (const { id, metadata } of emulator.context.state.media.all()) {
    if (!metadata.title.startsWith('created')) continue;
    const body = { metadata: { publish_start_date: null } };
    await emulator.admin.patch(`/v2/sites/demosite/media/${id}/`).send(body).expect(200);
  }
  const inOrder = ['dated early', 'created first', 'created last', 'dated late'];
  expect(await titlesOf({ order_by: 'date:asc' })).toEqual(inOrder);
  expect(await titlesOf({ order_by: 'date:desc' })).toEqual(inOrder.toReversed());
});

const SEARCHED = [
  { title: 'Red "fox" film', author: 'Ann', 'custom.topic': 'Winter*' },
  { title: 'Blue', description: 'a fox in it', tags: 'animals', 'custom.topic': 'summer' },
  { title: 'Green', link: 'https://fox.test/', tags: 'animals,plants', 'custom.other': 'fox' },
];
const searched = onceForAll(() => startVideos(SEARCHED));

test.each([
  [{ search: '"fox" f' }, ['Red "fox" film']],
  [{ search: '' }, ['Green', 'Blue', 'Red "fox" film']],
  [{ 'search:*': 'fox' }, ['Green', 'Blue', 'Red "fox" film']],
  [{ 'search:custom.topic': 'r*' }, ['Red "fox" film']],
  [{ 'search:custom.*': 'fox' }, ['Green']],
  [{ 'search:title,custom.*': 'fox' }, ['Green', 'Red "fox" film']],
  [{ 'search:*,custom.*': 'fox', tags: 'animals' }, ['Green', 'Blue']],
  [{ tags: 'plants,animals', tags_mode: 'any' }, ['Green', 'Blue']],
  [{ start_date: String(START + 1) }, ['Green', 'Blue']],
] as readonly (readonly [Parameters, readonly string[]])[])(
  'a list with %j finds %j',
  async (parameters, titles) => {
    const { titlesOf } = await searched();
    expect(await titlesOf(parameters)).toEqual(titles);
  },
);

const V2 = '/v2/sites/demosite/media/';
/** Of `a film`. */
const MD5 = '4bb9c7ebce490264f7903f3b8c1bdbf3';

test('a video is created, uploaded as a form, and shown as v1 shows it', async () => {
  const emulator = await startEmulator();
  const made = await okV1(emulator, 'videos/create', {
    title: 'Démo',
    description: 'About it',
    author: 'Me',
    tags: 'a, b',
    date: String(START - 60),
    expires_date: String(START + 60),
    link: 'https://site.test/page',
    'custom.One': '1',
    'custom.two words': 'é',
  });
  const { key } = made.video as { key: string };
  expect(made).toEqual({
    status: 'ok',
    media: { type: 'video', key },
    video: { key },
    link: {
      protocol: 'http',
      address: `127.0.0.1:${emulator.port}`,
      path: '/v1/videos/upload',
      query: { key: expect.stringMatching(/^id\d{6}$/), token: expect.stringMatching(/^secret-\d{33}$/) },
    },
  });
  expect(await uploadForm(emulator, made, 'a film')).toEqual({
    status: 200,
    body: { status: 'ok', media: { type: 'video', key }, video: { key }, file: { md5: MD5, size: '6' } },
  });
  await processFile(emulator, key);
  expect((await okV1(emulator, 'videos/show', { video_key: key })).video).toEqual({
    key,
    title: 'Démo',
    description: 'About it',
    author: 'Me',
    tags: 'a,b',
    date: START - 60,
    expires_date: START + 60,
    link: 'https://site.test/page',
    category: null,
    language: null,
    protectionrule_key: null,
    status: 'ready',
    error: null,
    mediatype: 'video',
    updated: START + 1,
    duration: '0.00',
    sourcetype: 'file',
    sourceformat: 'mp4',
    sourceurl: null,
    trim_in_point: null,
    trim_out_point: null,
    custom: { One: '1', 'two words': 'é' },
    md5: MD5,
    size: '6',
    upload_session_id: null,
    views: 0,
  });
});

test('an update changes what it names: single custom parameters, too', async () => {
  const emulator = await startEmulator();
  const custom = { 'custom.keep': '1', 'custom.change': '1', 'custom.go': '1' };
  const video_key = await createV1(emulator, 'video', { title: 'A', author: 'Me', ...custom });
  const changes = {
    title: 'B',
    'custom.change': '2',
    'custom.-go': '',
    'custom.-never': '',
    'custom.new': '3',
  };
  expect(await okV1(emulator, 'videos/update', { video_key, ...changes })).toEqual({ status: 'ok' });
  const { body } = await emulator.admin.get(`${V2}${video_key}/`);
  const custom_params = { keep: '1', change: '2', new: '3' };
  expect(body.metadata).toMatchObject({ title: 'B', author: 'Me', custom_params });
});

test.each(['text/plain; charset=ISO-8859-1', 'application/x-www-form-urlencoded'])(
  'parameters come as JSON that is declared as %s next to a signed query, with inner objects and lists',
  async (declared) => {
    const emulator = await startEmulator();
    const { body } = await emulator.unauthenticated
      .post(signedPath('/v1/videos/create'))
      .set('content-type', declared)
      .send(JSON.stringify({ title: 'é', tags: ['a', 'b,c'], custom: { x: 1, y: true }, author: null }))
      .expect(200);
    expect((await okV1(emulator, 'videos/show', { video_key: body.video.key })).video).toMatchObject({
      title: 'é',
      tags: 'a,b,c',
      author: null,
      custom: { x: '1', y: 'true' },
    });
  },
);

test('several values of a list are all of it, and of anything else the last counts', async () => {
  const emulator = await startEmulator();
  const values = [
    ['tags', 'a'],
    ['tags', 'b,c'],
    ['title', 'A'],
    ['title', 'B'],
  ] as const;
  const form = queryOf(signedPairs(values));
  const { body } = await emulator.unauthenticated.post('/v1/videos/create').send(form).expect(200);
  const { video } = await okV1(emulator, 'videos/show', { video_key: body.video.key });
  expect(video).toMatchObject({ tags: 'a,b,c', title: 'B' });
  const path = signedPath('/v1/videos/list', [
    ['tags', 'a'],
    ['tags', 'x'],
  ]);
  expect((await emulator.unauthenticated.get(path)).body.total).toBe(0);
});

test('external content stays where it is, and has no link', async () => {
  const emulator = await startEmulator();
  const source = { sourcetype: 'url', sourceurl: 'https://a.test/x.mp4', sourceformat: 'mp4' };
  const made = await okV1(emulator, 'videos/create', source);
  const { key } = made.video as Fields;
  expect(made).toEqual({ status: 'ok', media: { type: 'video', key }, video: { key } });
  expect((await okV1(emulator, 'videos/show', { video_key: String(key) })).video).toMatchObject(source);
});

test('several videos are deleted with a call, or none', async () => {
  const emulator = await startEmulator();
  const [a, b] = [await createV1(emulator, 'video'), await createV1(emulator, 'video')];
  const refused = await refusedV1(emulator, 'videos/delete', { video_key: `${a},none0000,${b}` });
  expect(refused).toEqual([404, 'NotFound', 'This site has no media with this id.']);
  expect(emulator.context.state.media.all()).toHaveLength(2);
  expect(await okV1(emulator, 'videos/delete', { video_key: `${a}, ${b},${a}` })).toEqual({ status: 'ok' });
  expect(emulator.context.state.media.all()).toHaveLength(0);
});

test('a new file for a video is asked for by an update', async () => {
  const emulator = await startEmulator();
  const video_key = await readyVideo(emulator, { title: 'A' });
  const begun = await okV1(emulator, 'videos/update', { video_key, update_file: 'True', title: 'B' });
  expect(begun).toMatchObject({ media: { key: video_key }, link: { path: '/v1/videos/upload' } });
  await uploadForm(emulator, begun, 'another film');
  await emulator.advance(10);
  const { video } = await okV1(emulator, 'videos/show', { video_key });
  expect(video).toMatchObject({ title: 'B', size: '12' });
});

test('an update that asks for a new file and is wrong in one thing changes nothing', async () => {
  const emulator = await startEmulator();
  const video_key = await readyVideo(emulator, { title: 'A', 'custom.a': '1' });
  const media = emulator.context.state.media.find(video_key);
  const update = { video_key, update_file: 'true' };
  const wrong = [
    { ...update, title: 'x'.repeat(1001) },
    { ...update, title: 'B', trim_in_point: '5' },
    { ...update, title: 'B', trim_in_point: '00:00:09.000', trim_out_point: '00:00:01.000' },
    { ...update, title: 'B', 'custom.a': 'x'.repeat(4001) },
  ];
  for (const parameters of wrong) {
    expect((await callV1(emulator, 'videos/update', parameters)).status).toBe(400);
    const { title, custom_params } = media?.metadata ?? {};
    expect([title, custom_params, media?.upload]).toEqual(['A', { a: '1' }, undefined]);
  }
});
