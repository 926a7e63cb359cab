import { rowsOf, textOf } from '../../../support/read-page';
import { startEmulator, type TestEmulator } from '../../../support/start-emulator';
import { startWebhookReceiver } from '../../../support/webhook-receiver';

/** The first words of each row of the page at this address. */
async function namesAt({ unauthenticated }: TestEmulator, path: string): Promise<string[]> {
  const { text } = await unauthenticated.get(path).expect(200);
  return rowsOf(text).map(([name = '']) => name);
}

/** Four channels: one on the air, one after it, one disabled, and one without a title that nobody has used. */
async function startFourChannels() {
  const emulator = await startEmulator();
  const news = await emulator.createChannel({ title: 'Evening News', tags: ['studio', 'daily'] });
  const sports = await emulator.createChannel({
    title: 'Sports',
    publishing_mode: 'manual',
    reconnect_window: 0,
  });
  const radio = await emulator.createChannel({ title: 'Radio news' });
  const blank = await emulator.createChannel();
  await emulator.connect(news);
  await emulator.connect(sports);
  await emulator.disconnect(sports);
  await emulator.advance(1);
  await emulator.unauthenticated.post(`/dashboard/channels/${radio.id}/disable`).expect(303);
  return { emulator, news, sports, radio, blank };
}

test('finds channels by words of their title, their id and their tags, in any letter case', async () => {
  const { emulator, news, sports, radio } = await startFourChannels();
  const rows = {
    news: `Evening News ${news.id}`,
    sports: `Sports ${sports.id}`,
    radio: `Radio news ${radio.id}`,
  };
  expect(await namesAt(emulator, '/dashboard/channels?q=NEWS')).toEqual([rows.radio, rows.news]);
  expect(await namesAt(emulator, '/dashboard/channels?q=news+even')).toEqual([rows.news]);
  expect(await namesAt(emulator, '/dashboard/channels?q=studio')).toEqual([rows.news]);
  expect(await namesAt(emulator, `/dashboard/channels?q=${sports.id}`)).toEqual([rows.sports]);
});

test('does not find a channel by its stream key, which would stand in the address', async () => {
  const { emulator, news } = await startFourChannels();
  const { text } = await emulator.unauthenticated.get('/dashboard/channels').query({ q: news.stream_key });
  expect(rowsOf(text)).toEqual([]);
});

test.each([
  ['active', ['Evening News']],
  ['idle', ['Sports']],
  ['unused', ['Channel']],
  ['disabled', ['Radio news']],
  ['nonsense', ['Channel', 'Radio news', 'Sports', 'Evening News']],
])('shows the channels whose state is %s', async (state, titles) => {
  const { emulator } = await startFourChannels();
  const names = await namesAt(emulator, `/dashboard/channels?state=${state}`);
  expect(names.map((name) => name.replace(/(?: id\d+)+$/, ''))).toEqual(titles);
});

test('says how many of how many match, and leads back to all', async () => {
  const { emulator } = await startFourChannels();
  const all = textOf((await emulator.unauthenticated.get('/dashboard/channels')).text);
  expect(all).toContain('4 channels');
  const found = await emulator.unauthenticated.get('/dashboard/channels?q=news&state=active&mode=auto');
  expect(textOf(found.text)).toContain('1 of 4 channels');
  expect(found.text).toContain('<a href="/dashboard/channels">Show all</a>');
  expect(found.text).toContain('value="news"');
  expect(found.text).toContain('<option value="active" selected>');
});

test('says so when nothing matches, and leads back to all', async () => {
  const { emulator } = await startFourChannels();
  const { text } = await emulator.unauthenticated.get('/dashboard/channels?q=weather');
  expect(textOf(text)).toContain('None of the 4 channels matches. Show all');
  expect(textOf(text)).not.toContain('There is no channel yet');
});

test('keeps what was searched for on the other pages of the list', async () => {
  const emulator = await startEmulator();
  for (let number = 1; number <= 52; number += 1)
    await emulator.createChannel({ title: number === 30 ? 'Other' : `Show & tell ${number}` });
  const first = await emulator.unauthenticated.get('/dashboard/channels?q=show+%26+tell&state=unused');
  expect(rowsOf(first.text)).toHaveLength(50);
  expect(textOf(first.text)).toContain('51 of 52 channels');
  expect(textOf(first.text)).toContain('Page 1 of 2');
  const [, next = ''] = /href="([^"]*page=2)"/.exec(first.text) ?? [];
  expect(next).toBe('/dashboard/channels?q=show+%26+tell&#38;state=unused&#38;page=2');
  expect(await namesAt(emulator, next.replaceAll('&#38;', '&'))).toEqual([
    expect.stringMatching(/^Show & tell 1 /),
  ]);
});

test('comes back to what was searched for after a channel was disabled in the list', async () => {
  const { emulator, news } = await startFourChannels();
  const { text } = await emulator.unauthenticated.get('/dashboard/channels?q=evening&state=active');
  const [, action = ''] =
    new RegExp(`action="(/dashboard/channels/${news.id}/disable[^"]*)"`).exec(text) ?? [];
  const answer = await emulator.unauthenticated.post(action.replaceAll('&#38;', '&')).expect(303);
  expect(answer.headers.location).toBe('/dashboard/channels?q=evening&state=active&done=channel-disabled');
});

test('finds events by channel and by state', async () => {
  const { emulator, news, sports } = await startFourChannels();
  const [live, over] = emulator.context.state.events.all();
  const rows = { live: `${live?.id} Evening News`, over: `${over?.id} Sports` };
  expect(await namesAt(emulator, '/dashboard/events')).toEqual([rows.over, rows.live]);
  expect(await namesAt(emulator, '/dashboard/events?q=evening')).toEqual([rows.live]);
  expect(await namesAt(emulator, `/dashboard/events?q=${sports.id}`)).toEqual([rows.over]);
  expect(await namesAt(emulator, '/dashboard/events?state=live')).toEqual([rows.live]);
  expect(await namesAt(emulator, '/dashboard/events?state=ended_unpublished')).toEqual([rows.over]);
  const page = await emulator.unauthenticated.get(`/dashboard/channels/${news.id}`);
  expect(page.text).toContain(`href="/dashboard/events?q=${news.id}"`);
});

test('finds webhooks by name, address and event, and by their last try', async () => {
  const emulator = await startEmulator();
  const receiver = await startWebhookReceiver();
  receiver.answer(404);
  const metadata = { description: '', events: ['channel_created' as const], site_ids: [emulator.siteId] };
  const { id } = emulator.context.webhooks.create({
    ...metadata,
    name: 'Newsroom',
    webhook_url: receiver.url,
  });
  emulator.context.webhooks.create({
    ...metadata,
    name: 'Archive',
    webhook_url: 'http://127.0.0.1:9/store',
    events: ['media_available'],
  });
  await emulator.createChannel();
  await receiver.until(1);
  const names = async (query: string) =>
    (await namesAt(emulator, `/dashboard/webhooks?${query}`)).map((name) => name.split(' ')[0]);
  while ((await names('last_try=failed')).length === 0);
  expect(await names('last_try=none')).toEqual(['Archive']);
  expect(await names('q=store')).toEqual(['Archive']);
  expect(await names('q=channel_created')).toEqual(['Newsroom']);
  expect(await names('q=newsroom')).toEqual(['Newsroom']);
  const tries = async (query: string) =>
    rowsOf((await emulator.unauthenticated.get(`/dashboard/webhooks/${id}?${query}`)).text).length;
  expect([await tries('q=channel_created'), await tries('q=idle')]).toEqual([1, 0]);
  expect([await tries('outcome=failed'), await tries('outcome=delivered')]).toEqual([1, 0]);
});
