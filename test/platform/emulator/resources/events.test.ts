import { EVENT_REFUSALS } from '../../../../src/platform/emulator/live/live-event';
import { onceForAll } from '../../../support/after-test';
import { errorBody } from '../../../support/error-body';
import { answered } from '../../../support/resource-bodies';
import { startEmulator, type TestEmulator } from '../../../support/start-emulator';
import { tableRows } from '../../../support/table-rows';

const PATH = '/v2/sites/demosite/channels/';

const at = (seconds: number) =>
  `${new Date(Date.UTC(2030, 0, 1, 0, 0, seconds)).toISOString().slice(0, -1)}000+00:00`;

/** An emulator, and a channel of it with an event that its encoder has begun. */
async function startOnAir(metadata?: object) {
  const emulator = await startEmulator();
  return { emulator, ...(await onAir(emulator, metadata)) };
}

async function onAir(emulator: TestEmulator, metadata: object = {}) {
  const { channel, id: event } = await emulator.onAir(metadata);
  const path = `${PATH}${channel.id}/events/${event}/`;
  const read = async () => (await emulator.admin.get(path).expect(200)).body;
  const channelNow = async () => (await emulator.admin.get(`${PATH}${channel.id}/`).expect(200)).body;
  return { channel, event, path, read, channelNow };
}

test('an auto event is published and its channel active as soon as the encoder connects', async () => {
  const { emulator, channel, event, read, channelNow } = await startOnAir();
  const shown = await read();
  expect(shown).toEqual({
    ...answered('event', event),
    media_id: event,
    status: 'active',
    published_at: at(0),
    ended_at: null,
    master_access: { status: 'unavailable', expiration: null },
  });
  const { body: listed } = await emulator.admin.get(`${PATH}${channel.id}/events`).expect(200);
  expect(listed).toEqual({ page: 1, page_length: 10, total: 1, events: [shown] });
  const { status, recent_events } = await channelNow();
  expect([status, recent_events]).toEqual(['active', [{ media_id: event, status: 'active' }]]);
});

test('a manual event has a preview and is not published until the publish call', async () => {
  const { emulator, path, read, channelNow } = await startOnAir({ publishing_mode: 'manual' });
  const { preview_url } = await channelNow();
  const token = `secret-${'2'.padStart(33, '0')}`;
  expect(preview_url).toEqual([`${emulator.url}/live/previews/${token}.m3u8`]);
  expect((await read()).published_at).toBeNull();
  await emulator.advance(5);
  await emulator.admin.put(`${path}publish/`).expect(204, '');
  expect((await read()).published_at).toBe(at(5));
});

test('refuses to publish an event of an auto channel, one that is published and one that has ended', async () => {
  const emulator = await startEmulator();
  const auto = await onAir(emulator);
  const manual = await onAir(emulator, { publishing_mode: 'manual' });
  const refuses = async ({ path, read }: typeof auto, code: keyof typeof EVENT_REFUSALS) => {
    const before = await read();
    await emulator.admin.put(`${path}publish/`).expect(409, errorBody(code, EVENT_REFUSALS[code]));
    expect(await read()).toEqual(before);
  };
  await refuses(auto, 'event_published_by_channel');
  await emulator.admin.put(`${manual.path}publish/`).expect(204);
  await refuses(manual, 'event_already_published');
  await emulator.disconnect(manual.channel);
  await emulator.advance(61);
  await refuses(manual, 'event_ended');
});

test('a reconnect within the window continues the same event', async () => {
  const { emulator, channel, event, channelNow } = await startOnAir();
  await emulator.disconnect(channel);
  await emulator.advance(59.999);
  expect((await channelNow()).status).toBe('active');
  expect(await emulator.connect(channel)).toBe(event);
  expect(emulator.context.state.events.find(event)?.state).toBe('live');
  await emulator.advance(3600);
  expect((await channelNow()).recent_events).toEqual([{ media_id: event, status: 'active' }]);
});

test('an encoder that stays away for the whole window ends the event, and its next connect begins another', async () => {
  const { emulator, channel, event, channelNow, read } = await startOnAir({ reconnect_window: 10 });
  await emulator.advance(100);
  await emulator.disconnect(channel);
  await emulator.advance(10);
  const ended = await channelNow();
  expect([ended.status, ended.recent_events]).toEqual(['idle', [{ media_id: event, status: 'idle' }]]);
  expect([(await read()).status, (await read()).ended_at]).toEqual(['idle', at(110)]);
  const next = await emulator.connect(channel);
  const again = await channelNow();
  const events = [
    { media_id: next, status: 'active' },
    { media_id: event, status: 'idle' },
  ];
  expect([again.status, again.recent_events]).toEqual(['active', events]);
});

test('without a reconnect window, an event ends with its encoder, not a moment later', async () => {
  const { emulator, channel } = await startOnAir({ reconnect_window: 0 });
  const { broadcast, state } = emulator.context;
  const session = broadcast.sessionOf(channel.id);
  if (session) broadcast.disconnect(session);
  expect(state.channels.find(channel.id)?.status).toBe('idle');
});

test('an event becomes a replay under its own id at once when it ends, as long as its encoders streamed', async () => {
  const { emulator, channel, event } = await startOnAir({
    title: 'Show',
    tags: ['a'],
    custom_params: { b: 'c' },
  });
  await emulator.advance(40);
  await emulator.disconnect(channel);
  await emulator.advance(30);
  await emulator.connect(channel);
  const { body: state } = await emulator.control.get('/state?reveal=true');
  await emulator.control.put('/state').send(state).expect(200);
  await emulator.advance(60);
  await emulator.disconnect(channel);
  await emulator.advance(60);
  const { body } = await emulator.admin.get(`/v2/sites/demosite/media/${event}`).expect(200);
  const metadata = { title: 'Show', tags: ['a'], custom_params: { b: 'c' }, publish_start_date: at(190) };
  expect(body).toMatchObject({ created: at(190), status: 'ready', duration: 100, metadata });
  const replays = emulator.context.state.media.all();
  expect(replays.map(({ hidden, eventId, clip }) => ({ hidden, eventId, clip }))).toEqual([
    { hidden: false, eventId: event },
  ]);
});

test('twelve hours end an event, counted from its own begin, and its encoder may begin the next', async () => {
  const { emulator, channel, channelNow } = await startOnAir();
  await emulator.disconnect(channel);
  await emulator.advance(3600);
  const event = await emulator.connect(channel);
  const read = async () => (await emulator.admin.get(`${PATH}${channel.id}/events/${event}/`)).body;
  const hours = 12 * 3600;
  await emulator.advance(hours - 1);
  expect((await channelNow()).recent_events[0]).toEqual({ media_id: event, status: 'active' });
  await emulator.advance(3600);
  expect(await read()).toMatchObject({ status: 'idle', ended_at: at(3600 + hours) });
  expect(await emulator.connect(channel)).not.toBe(event);
});

test('the mode of an event is the one that its channel had when it began', async () => {
  const { emulator, channel, path } = await startOnAir({ publishing_mode: 'manual' });
  const metadata = { publishing_mode: 'auto' };
  await emulator.admin.patch(`${PATH}${channel.id}/`).send({ metadata }).expect(200);
  await emulator.admin.put(`${path}publish/`).expect(204);
});

test('disable ends the current event, drops the encoder once and refuses the next, until enable', async () => {
  const { admin, context, connect, disconnect, advance, createChannel } = await startEmulator();
  const channel = await createChannel();
  const dropped: string[] = [];
  const connected = context.broadcast.connect(channel.stream_key, (why) => dropped.push(why));
  expect(connected).toMatchObject({ ok: true });
  await admin.put(`${PATH}${channel.id}/disable/`).expect(204);
  await admin.put(`${PATH}${channel.id}/disable/`).expect(204);
  expect(dropped).toEqual(['channel_disabled']);
  const { status, enabled } = (await admin.get(`${PATH}${channel.id}/`)).body;
  expect([status, enabled]).toEqual(['idle', false]);
  const refused = context.broadcast.connect(channel.stream_key, () => {});
  expect(refused).toEqual({ ok: false, reason: 'channel_disabled' });
  await admin.put(`${PATH}${channel.id}/enable/`).expect(204);
  const event = await connect(channel);
  await disconnect(channel);
  await admin.put(`${PATH}${channel.id}/disable/`).expect(204);
  await admin.put(`${PATH}${channel.id}/enable/`).expect(204);
  await connect(channel);
  await advance(3600);
  expect((await admin.get(`${PATH}${channel.id}/`)).body.status).toBe('active');
  await admin.put(`${PATH}${channel.id}/disable/`).expect(204);
  await advance(3600);
  const { media_id } = (await admin.get(`${PATH}${channel.id}/`)).body.recent_events[0];
  expect(media_id).not.toBe(event);
  const points = { trim_in_point: '00:00:00.000', trim_out_point: '01:00:01.000' };
  await admin.put(`${PATH}${channel.id}/events/${media_id}/clip/`).query(points).expect(409);
});

test('an encoder that the platform has dropped ends nothing when it says that it is gone', async () => {
  const { admin, advance, context, createChannel } = await startEmulator();
  const channel = await createChannel();
  const first = context.broadcast.connect(channel.stream_key, () => {});
  await admin.put(`${PATH}${channel.id}/disable/`);
  await admin.put(`${PATH}${channel.id}/enable/`);
  const second = context.broadcast.connect(channel.stream_key, () => {});
  if (!first.ok || !second.ok) throw new Error('both should connect');
  context.broadcast.disconnect(first.session);
  await advance(100);
  expect(context.broadcast.sessionOf(channel.id)).toEqual(second.session);
});

test('makes the master of an ended event available for a day', async () => {
  const { emulator, channel, event, path, read } = await startOnAir();
  const early =
    'The master is made of an event that has ended, and this one runs. It ends 60 s after its encoder is disconnected; ' +
    'wait for the webhook channel_idle, or for the status idle.';
  await emulator.admin.put(`${path}request_master/`).expect(409, errorBody('event_not_ended', early));
  await emulator.disconnect(channel);
  await emulator.advance(60);
  const { body } = await emulator.admin.get(`${path}master/`).expect(404);
  expect(body.errors[0].code).toBe('master_unavailable');
  await emulator.admin.put(`${path}request_master/`).expect(204, '');
  const access = { status: 'available', expiration: at(60 + 24 * 3600) };
  await emulator.admin.get(`${path}master/`).expect(200, { id: event, type: 'master', ...access });
  expect((await read()).master_access).toEqual(access);
  await emulator.advance(24 * 3600);
  await emulator.admin.get(`${path}master/`).expect(404);
  expect((await read()).master_access).toEqual({ status: 'unavailable', expiration: null });
});

test('makes a media of a piece of an event, while it runs and after', async () => {
  const { emulator, channel, event, path } = await startOnAir({ title: 'Show' });
  await emulator.advance(100);
  const points = { trim_in_point: '00:00:10.500', trim_out_point: '00:01:40.000' };
  const { status, body } = await emulator.admin.put(`${path}clip/`).query(points);
  expect([status, body]).toEqual([200, { media_id: expect.stringMatching(/^id\d{6}$/) }]);
  expect(emulator.context.state.media.find(body.media_id)).toMatchObject({
    metadata: { title: 'Show' },
    duration: 89.5,
    hidden: false,
    eventId: event,
    clip: { from: 10.5, to: 100 },
  });
  const tooFar = errorBody(
    'beyond_recording',
    'trim_out_point is beyond the recording of this event, which is 00:01:40.000. Choose an earlier point; while the event runs, more is recorded.',
  );
  const clip = (trim_out_point: string) =>
    emulator.admin.put(`${path}clip/`).query({ ...points, trim_out_point });
  await clip('00:01:44.200').expect(409, tooFar);
  await emulator.disconnect(channel);
  await clip('00:01:44.200').expect(409, tooFar);
  await emulator.advance(60);
  await clip('00:01:40.000').expect(200);
  await clip('00:01:40.001').expect(409, tooFar);
});

/** The query of a clip and its faults, one a line. */
const WRONG_CLIPS = `
trim_in_point=1&trim_out_point=0:0:2 → trim_in_point: FORM → trim_out_point: FORM
trim_in_point=00:00:60&trim_out_point=00:60:00 → trim_in_point: FORM → trim_out_point: FORM
 → trim_in_point: is missing. → trim_out_point: is missing.
trim_in_point=00:00:01&trim_in_point=00:00:01&trim_out_point=00:00:02 → trim_in_point: is given twice.
trim_in_point=00:00:01&trim_out_point=00:00:01.000 → trim_out_point: must be after trim_in_point.
`.replaceAll('FORM', 'must be a time as HH:MM:SS.mmm.');
const recorded = onceForAll(async () => {
  const onAir = await startOnAir();
  await onAir.emulator.advance(100);
  return onAir;
});

test.each(tableRows(WRONG_CLIPS))('refuses the clip ?%s, and makes no media', async (query, ...faults) => {
  const { emulator, path } = await recorded();
  const refused = errorBody('invalid_parameter', ...faults);
  await emulator.admin.put(`${path}clip/?${query}`).expect(400, refused);
  expect(emulator.context.state.media.all()).toEqual([]);
});

test('answers 404 to an event that its channel does not have', async () => {
  const { emulator, event } = await startOnAir();
  const other = await emulator.createChannel();
  const missing = errorBody('not_found', 'This channel has no event with this id.');
  const path = `${PATH}${other.id}/events/${event}`;
  await emulator.admin.get(path).expect(404, missing);
  await emulator.admin.get(`${path}/master`).expect(404, missing);
  for (const act of ['publish', 'request_master', 'clip'])
    await emulator.admin.put(`${path}/${act}`).expect(404, missing);
});
