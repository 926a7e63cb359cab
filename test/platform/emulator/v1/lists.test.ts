import { onceForAll } from '../../../support/after-test';
import { createV1, okV1 } from '../../../support/call-v1';
import { START } from '../../../support/sign-v1';
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
  [{ result_limit: '3', result_offset: '3' }, ['T3', 'T2', 'T1']],
  [{ result_limit: '3', result_offset: '2' }, ['T4', 'T3', 'T2']],
  [{ result_limit: '3', result_offset: '5' }, ['T1', 'T0']],
  [{ result_limit: '3', result_offset: '7' }, []],
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
  [{ search: 'fox' }, ['Blue', 'Red "fox" film']],
  [{ search: 'FOX' }, ['Blue', 'Red "fox" film']],
  [{ search: 'ilm' }, ['Red "fox" film']],
  [{ search: '"fox" f' }, ['Red "fox" film']],
  [{ search: 'ann' }, ['Red "fox" film']],
  [{ search: 'animals' }, ['Green', 'Blue']],
  [{ search: `${'"\\*'.repeat(60)}` }, []],
  [{ search: '' }, ['Green', 'Blue', 'Red "fox" film']],
  [{ 'search:*': 'fox' }, ['Green', 'Blue', 'Red "fox" film']],
  [{ 'search:title': 'fox' }, ['Red "fox" film']],
  [{ 'search:title,link': 'fox' }, ['Green', 'Red "fox" film']],
  [{ 'search:custom.topic': 'e' }, ['Blue', 'Red "fox" film']],
  [{ 'search:custom.topic': 'r*' }, ['Red "fox" film']],
  [{ 'search:custom.*': 'fox' }, ['Green']],
  [{ 'search:title,custom.*': 'fox' }, ['Green', 'Red "fox" film']],
  [{ 'search:*,custom.*': 'fox', tags: 'animals' }, ['Green', 'Blue']],
  [{ 'search:custom.*': '' }, ['Green', 'Blue', 'Red "fox" film']],
  [{ tags: 'animals,plants' }, ['Green']],
  [{ tags: 'plants,animals', tags_mode: 'all' }, ['Green']],
  [{ tags: 'plants,animals', tags_mode: 'any' }, ['Green', 'Blue']],
  [{ tags: 'nothing' }, []],
  [{ statuses_filter: 'created' }, ['Green', 'Blue', 'Red "fox" film']],
  [{ statuses_filter: 'ready,failed' }, []],
  [{ start_date: String(START + 1) }, ['Green', 'Blue']],
  [{ end_date: String(START) }, ['Red "fox" film']],
] as readonly (readonly [Parameters, readonly string[]])[])(
  'a list with %j finds %j',
  async (parameters, titles) => {
    const { titlesOf } = await searched();
    expect(await titlesOf(parameters)).toEqual(titles);
  },
);

test('a video is found by a part of its key', async () => {
  const { emulator, titlesOf } = await startVideos([{ title: 'A' }, { title: 'B' }]);
  const [first] = emulator.context.state.media.all();
  expect(await titlesOf({ search: first?.id ?? '' })).toEqual(['A']);
});
