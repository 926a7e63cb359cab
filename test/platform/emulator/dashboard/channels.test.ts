import { complaintsOf, rowsOf, textOf } from '../../../support/read-page';
import { startEmulator, type TestEmulator } from '../../../support/start-emulator';

const FORM = {
  title: 'News',
  site: 'demosite',
  publishing_mode: 'manual',
  tags: 'a\r\nb\r\n',
  dvr: 'off',
  reconnect_window: '30',
};

function channelOf({ context }: TestEmulator) {
  const [channel] = context.state.channels.all();
  if (!channel) throw new Error('There is no channel.');
  return channel;
}

/** A channel, and the event of an encoder that streams to it. */
async function startStreaming(mode: 'auto' | 'manual') {
  const emulator = await startEmulator();
  await emulator.unauthenticated
    .post('/dashboard/channels')
    .type('form')
    .send({ ...FORM, publishing_mode: mode });
  const channel = channelOf(emulator);
  const connected = emulator.context.broadcast.connect(channel.streamKey, () => undefined);
  if (!connected.ok) throw new Error(connected.reason);
  return {
    ...emulator,
    channel,
    eventId: connected.session.eventId,
    path: `/dashboard/channels/${channel.id}`,
  };
}

test('changes the settings of a channel, and shows no key of its simulcast targets', async () => {
  const emulator = await startEmulator();
  const target = { title: 'Elsewhere', stream_url: 'rtmp://elsewhere.test/live', stream_key: 'other-secret' };
  await emulator.createChannel({ title: 'News', simulcast_targets: [target] });
  const path = `/dashboard/channels/${channelOf(emulator).id}`;
  const { text } = await emulator.unauthenticated.get(path).expect(200);
  expect(textOf(text)).toContain('Elsewhere rtmp://elsewhere.test/live');
  expect(text).not.toContain('other-secret');
  const sent = {
    title: 'Late news',
    dvr: 'off',
    'custom_params.name': 'stream_id',
    'custom_params.value': 'news',
  };
  const answer = await emulator.unauthenticated.post(path).type('form').send(sent).expect(303);
  expect(answer.headers.location).toBe(`${path}?done=channel-saved`);
  expect(channelOf(emulator).metadata).toMatchObject({
    title: 'Late news',
    dvr: 'off',
    custom_params: { stream_id: 'news' },
    reconnect_window: 60,
    simulcast_targets: [target],
  });
});

test('creates a channel and shows its page', async () => {
  const emulator = await startEmulator();
  const answer = await emulator.unauthenticated
    .post('/dashboard/channels')
    .type('form')
    .send(FORM)
    .expect(303);
  const channel = channelOf(emulator);
  expect(answer.headers.location).toBe(`/dashboard/channels/${channel.id}?done=channel-created`);
  expect(channel.metadata).toEqual({
    title: 'News',
    tags: ['a', 'b'],
    custom_params: {},
    dvr: 'off',
    publishing_mode: 'manual',
    latency: 'default',
    reconnect_window: 30,
    simulcast_targets: [],
    text_tracks: [],
  });
  const page = textOf((await emulator.unauthenticated.get(answer.headers.location ?? '')).text);
  expect(page).toContain('The channel was created.');
  expect(page).toContain(`-f flv 'rtmp://127.0.0.1:1935/live/${channel.streamKey}'`);
  expect(page).toContain(`http://127.0.0.1:${emulator.port}/live/channels/${channel.id}.json`);
});

test('shows the form again, filled in, with everything that was wrong with it', async () => {
  const { unauthenticated, context } = await startEmulator();
  const sent = { ...FORM, title: 'x'.repeat(1001), reconnect_window: 'soon', publishing_mode: 'later' };
  const { text } = await unauthenticated.post('/dashboard/channels').type('form').send(sent).expect(400);
  expect(complaintsOf(text)).toEqual([
    'Title is longer than 1000 characters.',
    'Publishing mode must be auto or manual.',
    'Reconnect window must be a whole number of seconds.',
  ]);
  expect(text).toContain('value="soon"');
  expect(context.state.channels.all()).toEqual([]);
});

test('escapes a hostile title on every page that shows it', async () => {
  const hostile = '"><img src=x onerror=alert(1)><script>alert(2)</script>';
  const { admin, unauthenticated, context, siteId } = await startEmulator();
  const created = await admin.post(`/v2/sites/${siteId}/channels`).send({
    metadata: { title: hostile, tags: [hostile], custom_params: { [hostile]: hostile } },
  });
  context.broadcast.connect(created.body.stream_key, () => undefined);
  const metadata = {
    name: hostile,
    webhook_url: 'http://127.0.0.1:9',
    events: [],
    description: hostile,
    site_ids: [hostile],
  };
  const webhook = context.webhooks.create(metadata);
  for (const path of [
    'channels',
    `channels/${created.body.id}`,
    'events',
    'webhooks',
    `webhooks/${webhook.id}`,
  ]) {
    const { text } = await unauthenticated.get(`/dashboard/${path}`).expect(200);
    expect(textOf(text)).toContain(hostile);
    expect(text).not.toContain('<img src=x');
    expect(text).not.toContain('<script>alert');
  }
});

test('lists the channels with their state, the newest first', async () => {
  const { unauthenticated, context, ...emulator } = await startStreaming('manual');
  const second = await emulator.admin
    .post(`/v2/sites/${emulator.siteId}/channels`)
    .send({ metadata: { title: 'Sports' } });
  await unauthenticated.post(`/dashboard/channels/${second.body.id}/disable`).expect(303);
  const { text } = await unauthenticated.get('/dashboard/channels');
  expect(rowsOf(text).map((cells) => cells.slice(0, 3))).toEqual([
    [`Sports ${second.body.id}`, 'disabled', 'auto'],
    [`News ${emulator.channel.id}`, 'active', 'manual'],
  ]);
});

test('says of a channel that nobody has streamed to yet that it has no encoder, not that it is being created', async () => {
  const { unauthenticated, createChannel } = await startEmulator();
  const { id } = await createChannel({ title: 'News' });
  for (const path of ['/dashboard/channels', `/dashboard/channels/${id}`]) {
    const { text } = await unauthenticated.get(path);
    expect(text).toContain('<span class="badge" data-variant="neutral">no encoder yet</span>');
    expect(textOf(text)).not.toContain('creating');
  }
});

test('shows fifty channels a page, and links to the others', async () => {
  const { admin, unauthenticated, siteId } = await startEmulator();
  for (let number = 1; number <= 51; number += 1) {
    await admin
      .post(`/v2/sites/${siteId}/channels`)
      .send({ metadata: { title: `Channel number ${number}` } });
  }
  const first = await unauthenticated.get('/dashboard/channels');
  expect(rowsOf(first.text)).toHaveLength(50);
  expect(first.text).toContain('href="/dashboard/channels?page=2"');
  const second = await unauthenticated.get('/dashboard/channels?page=2');
  expect(rowsOf(second.text).map(([name]) => name)).toEqual(['Channel number 1 id000001']);
  const beyond = await unauthenticated.get('/dashboard/channels?page=99');
  expect(beyond.text).toBe(second.text);
});

test('disables and enables a channel, and drops its encoder', async () => {
  const { unauthenticated, path, channel } = await startStreaming('auto');
  const disabled = await unauthenticated.post(`${path}/disable`).expect(303);
  expect(disabled.headers.location).toBe(`${path}?done=channel-disabled`);
  expect([channel.enabled, channel.status]).toEqual([false, 'idle']);
  const enabled = await unauthenticated.post(`${path}/enable?back=list`).expect(303);
  expect(enabled.headers.location).toBe('/dashboard/channels?done=channel-enabled');
  expect(channel.enabled).toBe(true);
});

test('deletes a channel', async () => {
  const { unauthenticated, path, context } = await startStreaming('auto');
  await unauthenticated.post(`${path}/delete`).expect(303);
  expect(context.state.channels.all()).toEqual([]);
  const gone = await unauthenticated.get(path).expect(404);
  expect(textOf(gone.text)).toContain('There is no channel with this id. It may have been deleted.');
});

test('shows an event of a manual channel before it is published, and publishes it', async () => {
  const { unauthenticated, path, eventId, context } = await startStreaming('manual');
  const event = context.state.events.find(eventId);
  const before = await unauthenticated.get(path);
  expect(before.text).toContain(`href="/embed/media.html?preview=${event?.previewToken}"`);
  expect(rowsOf((await unauthenticated.get('/dashboard/events')).text)).toEqual([
    [`${eventId} News`, 'preview', '2030-01-01 00:00:00 UTC', '–', '–', expect.stringContaining('Publish')],
  ]);
  const published = await unauthenticated.post(`${path}/events/${eventId}/publish`).expect(303);
  expect(published.headers.location).toBe(`${path}?done=event-published`);
  expect(event?.state).toBe('live');
  const again = await unauthenticated.post(`${path}/events/${eventId}/publish`).expect(409);
  expect(textOf(again.text)).toContain(
    'Nothing was published. This event is published already: viewers watch it.',
  );
});

test('offers no publish button for an event of an auto channel', async () => {
  const { unauthenticated, path, eventId } = await startStreaming('auto');
  expect((await unauthenticated.get(path)).text).not.toContain('/publish"');
  await unauthenticated.post(`${path}/events/${eventId}/publish`).expect(409);
});

test('says so when no encoder can connect over RTMP', async () => {
  const emulator = await startEmulator({ EMULATOR_RTMP_PORT: 'off' });
  await emulator.unauthenticated.post('/dashboard/channels').type('form').send(FORM);
  const page = await emulator.unauthenticated.get(`/dashboard/channels/${channelOf(emulator).id}`);
  expect(textOf(page.text)).toContain('No encoder can connect: RTMP is off (EMULATOR_RTMP_PORT).');
  expect(page.text).not.toContain('ffmpeg');
});

test('asks for the site when the account has several', async () => {
  const { unauthenticated, context } = await startEmulator({ EMULATOR_SITE_ID: 'siteAAAA,siteBBBB' });
  expect((await unauthenticated.get('/dashboard/channels')).text).toContain(
    '<option value="siteBBBB">siteBBBB</option>',
  );
  await unauthenticated
    .post('/dashboard/channels')
    .type('form')
    .send({ ...FORM, site: 'siteBBBB' })
    .expect(303);
  expect(context.state.channels.of('siteBBBB')).toHaveLength(1);
});
