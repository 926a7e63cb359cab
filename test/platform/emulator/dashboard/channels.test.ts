import { createChannel } from '../../../../src/platform/emulator/resources/channels';
import { channelMetadata } from '../../../support/channel-metadata';
import { rowsOf, textOf } from '../../../support/read-page';
import { startPackaged } from '../../../support/start-delivery';
import { startEmulator, type TestEmulator } from '../../../support/start-emulator';
import { until } from '../../../support/until';
import { startWebhookReceiver } from '../../../support/webhook-receiver';

/** A channel, and the event of an encoder that streams to it. */
async function startStreaming(publishing_mode: 'auto' | 'manual') {
  const emulator = await startEmulator();
  const { channel: made, id: eventId } = await emulator.onAir({ title: 'News', publishing_mode });
  const channel = emulator.context.state.channels.find(made.id);
  return { ...emulator, channel, eventId, path: `/dashboard/channels/${made.id}` };
}

test('shows where the encoder and the viewers of a channel connect, and simulcast targets without their keys', async () => {
  const { createChannel, unauthenticated, port } = await startEmulator();
  const target = { title: 'Elsewhere', stream_url: 'rtmp://elsewhere.test/live', stream_key: 'other-secret' };
  const { id, stream_key } = await createChannel({ simulcast_targets: [target] });
  const { text } = await unauthenticated.get(`/dashboard/channels/${id}`).expect(200);
  const page = textOf(text);
  expect(page).toContain(`-f flv 'rtmp://127.0.0.1:1935/live/${stream_key}'`);
  expect(page).toContain(`http://127.0.0.1:${port}/live/channels/${id}.json`);
  expect(page).not.toContain('Packager');
  expect(page).toContain('Elsewhere rtmp://elsewhere.test/live');
  expect(text).not.toContain('other-secret');
});

test('disables and enables a channel, and drops its encoder', async () => {
  const { unauthenticated, path, channel } = await startStreaming('auto');
  const disabled = await unauthenticated.post(`${path}/disable`).expect(303);
  expect(disabled.headers.location).toBe(`${path}?done=channel-disabled`);
  expect(channel).toMatchObject({ enabled: false, status: 'idle' });
  const enabled = await unauthenticated.post(`${path}/enable?back=list`).expect(303);
  expect(enabled.headers.location).toBe('/dashboard/channels?done=channel-enabled');
  expect(channel?.enabled).toBe(true);
});

test('shows an event of a manual channel before it is published, and publishes it', async () => {
  const { unauthenticated, path, eventId, context } = await startStreaming('manual');
  const event = context.state.events.find(eventId);
  const before = await unauthenticated.get(path);
  expect(before.text).toContain(`href="/embed/media.html?preview=${event?.previewToken}"`);
  const events = (await unauthenticated.get('/dashboard/events')).text;
  expect(events).toContain(`href="${path}" dir="auto">News</a>`);
  expect(rowsOf(events)).toEqual([
    [`${eventId} News`, 'preview', '2030-01-01 00:00:00 UTC', '–', '–', expect.stringContaining('Publish')],
  ]);
  const published = await unauthenticated.post(`${path}/events/${eventId}/publish`).expect(303);
  expect(published.headers.location).toBe(`${path}?done=event-published`);
  expect(event?.state).toBe('live');
  const again = await unauthenticated.post(`${path}/events/${eventId}/publish`).expect(409);
  expect(textOf(again.text)).toContain('Nothing was published. This event is published already');
});

test('offers no publish button for an event of an auto channel', async () => {
  const { unauthenticated, path, eventId } = await startStreaming('auto');
  expect((await unauthenticated.get(path)).text).not.toContain('/publish"');
  await unauthenticated.post(`${path}/events/${eventId}/publish`).expect(409);
});

/** The first words of each row of the page at this address. */
async function namesAt({ unauthenticated }: TestEmulator, path: string): Promise<string[]> {
  const { text } = await unauthenticated.get(path).expect(200);
  return rowsOf(text).map(([name = '']) => name);
}

/** Four channels: one on the air, one after it, one disabled, and an unused one without a title. */
async function startFourChannels() {
  const emulator = await startEmulator();
  const news = await emulator.createChannel({ title: 'Evening News', tags: ['studio', 'daily'] });
  const manual = { publishing_mode: 'manual', reconnect_window: 0 };
  const sports = await emulator.createChannel({ title: 'Sports', ...manual });
  const radio = await emulator.createChannel({ title: 'Radio news' });
  await emulator.createChannel();
  await emulator.connect(news);
  await emulator.connect(sports);
  await emulator.disconnect(sports);
  await emulator.advance(1);
  await emulator.unauthenticated.post(`/dashboard/channels/${radio.id}/disable`).expect(303);
  return { emulator, news, sports };
}

test('finds channels by words of title, id and tags, and by state, says how many, and leads back to all', async () => {
  const { emulator, news, sports } = await startFourChannels();
  const all = ['Channel', 'Radio news', 'Sports', 'Evening News'];
  for (const [query, titles] of [
    ['q=NEWS', ['Radio news', 'Evening News']],
    ['q=news+even', ['Evening News']],
    ['q=studio', ['Evening News']],
    [`q=${sports.id}`, ['Sports']],
    // It would be in the address.
    [`q=${news.stream_key}`, []],
    ['state=idle', ['Sports']],
    ['state=unused', ['Channel']],
    ['state=disabled', ['Radio news']],
    ['state=nonsense', all],
  ] as const) {
    const names = await namesAt(emulator, `/dashboard/channels?${query}`);
    expect([query, names.map((name) => name.replace(/(?: id\d+)+$/, ''))]).toEqual([query, titles]);
  }
  const found = await emulator.unauthenticated.get('/dashboard/channels?q=news&state=active&mode=auto');
  expect(textOf(found.text)).toContain('1 of 4 channels');
  expect(found.text).toContain('<a href="/dashboard/channels">Show all</a>');
  expect(found.text).toContain('value="news"');
  expect(found.text).toContain('<option value="active" selected>');
  const none = textOf((await emulator.unauthenticated.get('/dashboard/channels?q=weather')).text);
  expect(none).toContain('None of the 4 channels matches. Show all');
  expect(none).not.toContain('There is no channel yet');
});

test('keeps what was searched for on the other pages of the list', async () => {
  const emulator = await startEmulator();
  for (let number = 1; number <= 52; number += 1) {
    const title = number === 30 ? 'Other' : `Show & tell ${number}`;
    createChannel(emulator.context, emulator.siteId, channelMetadata({ title }));
  }
  const first = await emulator.unauthenticated.get('/dashboard/channels?q=show+%26+tell&state=unused');
  expect(rowsOf(first.text)).toHaveLength(50);
  expect(textOf(first.text)).toContain('51 of 52 channels');
  expect(textOf(first.text)).toContain('Page 1 of 2');
  const [, next = ''] = /href="([^"]*page=2)"/.exec(first.text) ?? [];
  expect(next).toBe('/dashboard/channels?q=show+%26+tell&#38;state=unused&#38;page=2');
  const [last, ...others] = await namesAt(emulator, next.replaceAll('&#38;', '&'));
  expect([last, others]).toEqual([expect.stringMatching(/^Show & tell 1 /), []]);
  const beyond = await emulator.unauthenticated.get('/dashboard/channels?page=99');
  expect(rowsOf(beyond.text)).toHaveLength(2);
});

test('comes back to what was searched for after a channel was disabled in the list', async () => {
  const { emulator, news } = await startFourChannels();
  const { text } = await emulator.unauthenticated.get('/dashboard/channels?q=evening&state=active&page=2');
  const [, action = ''] =
    new RegExp(`action="(/dashboard/channels/${news.id}/disable[^"]*)"`).exec(text) ?? [];
  const answer = await emulator.unauthenticated.post(action.replaceAll('&#38;', '&')).expect(303);
  const back = '/dashboard/channels?q=evening&state=active&page=2';
  expect(answer.headers.location).toBe(`${back}&done=channel-disabled`);
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
  const { id } = emulator.createWebhook(receiver.url, ['channel_created'], { name: 'Newsroom' });
  emulator.createWebhook('http://127.0.0.1:9/store', ['media_available'], { name: 'Archive' });
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

async function start(env: Record<string, string> = {}) {
  const delivery = await startPackaged(env);
  /** The text of a page, and its links to the stream tester. */
  const page = async (path: string) => {
    const { text } = await delivery.unauthenticated.get(`/dashboard${path}`).expect(200);
    const tests = [...text.matchAll(/href="(\/verify[^"]*)"/g)].map(([, target = '']) => target);
    return { text: textOf(text), tests };
  };
  return { ...delivery, page };
}

test('says on the page of a channel what the packager does with its event, and leads to the stream tester', async () => {
  const { onAir, context, page, url } = await start();
  const { channel, id } = await onAir({ custom_params: { stream_id: 'news' } });
  await until(() => context.packaging.deliverable(id) !== undefined);
  const { text, tests } = await page(`/channels/${channel.id}`);
  expect(text).toContain('Packager running with news.key , since 2030-01-01 00:00:00 UTC , 0:12 to play');
  const token = context.state.events.find(id)?.previewToken;
  const target = new URLSearchParams({ url: `${url}/live/previews/${token}.mpd` });
  expect(tests).toEqual([`/verify?${target}`]);
});

test('says why an event is not packaged, and what to do, and counts it as refused in all lists', async () => {
  const { onAir, context, page, packager } = await start();
  await onAir({ title: 'Packaged', custom_params: { stream_id: 'news' } });
  await until(() => packager.streams.size === 1);
  expect((await page('')).text).not.toContain('refused');
  const problem = { code: 'key_file_missing', description: 'There is no key file news.key. Provision it.' };
  const nothing = { started: null, seconds: 0, dash: null, hls: null };
  packager.onPut = (document) =>
    document.keyFile === 'news' ? document : { ...document, state: 'refused', problem, ...nothing };
  const { channel, id } = await onAir();
  await until(() => context.packaging.find(id)?.problem !== undefined);
  const refused = await page(`/channels/${channel.id}`);
  expect(refused.text).toContain(`Packager refused with ${channel.id}.key`);
  expect(refused.text).toContain('Problem There is no key file news.key. Provision it.');
  expect(refused.tests).toEqual([]);
  const overview = /1 stream is refused by the packager.* 2 channels 1 active now 2 events/;
  expect((await page('')).text).toMatch(overview);
  expect((await page('/channels?state=refused')).text).toMatch(/1 of 2 channels .*refused auto/);
  expect((await page('/events?state=refused')).text).toMatch(/1 of 2 events .*refused 2030-01-01/);
  await packager.leave();
  await until(() => context.packaging.find(id)?.problem?.code === 'packager_unreachable');
  expect((await page(`/channels/${channel.id}`)).text).toContain('Packager in trouble');
});

test('says so when no encoder can connect over RTMP, and the packager pull no stream', async () => {
  const { createChannel, connect, page, packager } = await start({ EMULATOR_RTMP_PORT: 'off' });
  const channel = await createChannel();
  await connect(channel);
  const { text } = await page(`/channels/${channel.id}`);
  expect(text).toContain('No encoder can connect: RTMP is off (EMULATOR_RTMP_PORT).');
  expect(text).not.toContain('ffmpeg');
  expect(text).toContain(
    'Packager cannot pull live streams: RTMP is off (EMULATOR_RTMP_PORT), and EMULATOR_PACKAGERRTMPURL is not set.',
  );
  expect(packager.calls).toEqual([]);
});

test('says on the page of a media what it is packaged with, and leads to the tester while viewers may watch', async () => {
  const { film, context, page, url, admin, site } = await start();
  const { media } = await film();
  await until(() => context.packaging.deliverable(media) !== undefined);
  const shown = await page(`/media/${media}`);
  const packaged = 'packaged in the clear, since 2030-01-01 00:00:00 UTC , 0:12 to play';
  expect(shown.text).toContain(`Packager ${packaged}`);
  const target = new URLSearchParams({ url: `${url}/manifests/${media}.mpd` });
  expect(shown.tests).toEqual([`/verify?${target}`]);
  const metadata = { publish_start_date: '2031-01-01T00:00:00Z' };
  await admin.patch(`${site}/media/${media}/`).send({ metadata }).expect(200);
  expect((await page(`/media/${media}`)).tests).toEqual([]);
});
