import { createServer } from 'node:net';
import { type RtmpIngest, startRtmpIngest } from '../../../../src/platform/emulator/live/rtmp-ingest';
import { type Channel, createChannel } from '../../../../src/platform/emulator/resources/channels';
import { afterTest } from '../../../support/after-test';
import { channelMetadata } from '../../../support/channel-metadata';
import { ipv6Localhost } from '../../../support/ipv6-localhost';
import { listening } from '../../../support/listening';
import { connectRtmp, type RtmpClient } from '../../../support/rtmp-publisher';
import { startEmulator, type TestEmulator } from '../../../support/start-emulator';
import { until } from '../../../support/until';

const METADATA = channelMetadata({ reconnect_window: 60 });

let ingest: RtmpIngest;
let emulator: TestEmulator;
let channel: Channel;

beforeEach(async () => {
  emulator = await startEmulator();
  ingest = await startRtmpIngest(emulator.context, { host: '127.0.0.1', port: 0 });
  channel = createChannel(emulator.context, emulator.siteId, METADATA);
});

afterEach(() => ingest.stop());

async function publishing(): Promise<RtmpClient> {
  const encoder = await connectRtmp(ingest.port);
  expect(await encoder.publish(channel.streamKey)).toBe('NetStream.Publish.Start');
  return encoder;
}

async function playing(): Promise<RtmpClient> {
  const player = await connectRtmp(ingest.port);
  expect(await player.play(channel.streamKey)).toBe('NetStream.Play.Start');
  return player;
}

const path = () => `/v2/sites/${emulator.siteId}/channels/${channel.id}/`;
const change = (action: string) => emulator.admin.put(`${path()}${action}/`).expect(204);

test('makes the channel active when an encoder publishes, also to live/ and with a query after its key', async () => {
  const encoder = await connectRtmp(ingest.port);
  expect(await encoder.publish(`${channel.streamKey}?from=test`, 'live/')).toBe('NetStream.Publish.Start');
  expect((await emulator.admin.get(path())).body.status).toBe('active');
});

test.each([
  ['a wrong stream key', 'live', () => 'wrong'],
  ['no stream key', 'live', () => ''],
  ['another application than live', 'vod', () => channel.streamKey],
  ['a channel that is disabled', 'live', () => change('disable').then(() => channel.streamKey)],
])('refuses and cuts an encoder that has %s', async (_what, app, streamKey) => {
  const encoder = await connectRtmp(ingest.port);
  expect(await encoder.publish(await streamKey(), app)).toBe('NetStream.Publish.BadName');
  await encoder.closed;
  expect(encoder.received()).not.toContain('NetStream.Publish.Start');
  expect(emulator.context.broadcast.sessionOf(channel.id)).toBeUndefined();
});

describe('the pull token of an event', () => {
  const tokenOf = () => emulator.context.state.events.find(channel.currentEventId ?? '')?.pullToken ?? '';

  test('lets who holds it watch, across a reconnect of the encoder', async () => {
    const encoder = await publishing();
    const token = tokenOf();
    for (const each of [encoder, undefined]) {
      const source = each ?? (await publishing());
      const player = await connectRtmp(ingest.port);
      expect(await player.play(token)).toBe('NetStream.Play.Start');
      source.sendFrame('for the packager');
      await player.until('for the packager');
      source.close();
      await player.closed;
    }
  });

  test('lets nobody publish, neither next to the encoder nor in its place', async () => {
    const encoder = await publishing();
    const token = tokenOf();
    const beside = await connectRtmp(ingest.port);
    expect(await beside.publish(token)).toBe('NetStream.Publish.BadName');
    encoder.close();
    await until(() => emulator.context.broadcast.sessionOf(channel.id) === undefined);
    const instead = await connectRtmp(ingest.port);
    expect(await instead.publish(token)).toBe('NetStream.Publish.BadName');
  });

  test('is of no use while no encoder streams, and to no other event', async () => {
    const encoder = await publishing();
    const token = tokenOf();
    encoder.close();
    await until(() => emulator.context.broadcast.sessionOf(channel.id) === undefined);
    const early = await connectRtmp(ingest.port);
    expect(await early.play(token)).toBe('NetStream.Play.StreamNotFound');
    await emulator.advance(61);
    await publishing();
    expect(tokenOf()).not.toBe(token);
    const late = await connectRtmp(ingest.port);
    expect(await late.play(token)).toBe('NetStream.Play.StreamNotFound');
  });

  test('is in no answer and in no line of the log', async () => {
    await publishing();
    const answers = [
      await emulator.admin.get(path()),
      await emulator.admin.get(`${path()}events/`),
      await emulator.control.get('/state?reveal=true'),
      await emulator.unauthenticated.get(`/dashboard/channels/${channel.id}`),
    ];
    for (const { text } of answers) expect(text).not.toContain(tokenOf());
    expect(await emulator.logOf(1)).not.toContain(tokenOf());
  });
});

test('hands the current group of pictures to a player that comes later', async () => {
  const encoder = await publishing();
  const first = await playing();
  encoder.sendFrame('earlier frame');
  await first.until('earlier frame');
  const player = await playing();
  await player.until('earlier frame');
});

test('ends players when an encoder changes its picture, and gives later ones no frame of the former', async () => {
  const encoder = await publishing();
  const first = await playing();
  for (const content of ['small', 'small']) encoder.sendConfiguration(content);
  encoder.sendFrame('small frame');
  await first.until('small frame');
  encoder.sendConfiguration('large');
  await first.closed;
  expect(first.received()).toMatch(
    /NetStream\.Play\.UnpublishNotify.*The encoder has changed its picture\./s,
  );
  const second = await playing();
  encoder.sendFrame('large frame');
  await second.until('large frame');
  expect(second.received()).not.toContain('small');
});

test('lets nothing reach the stream that comes before the publish, or from a refused encoder', async () => {
  const encoder = await connectRtmp(ingest.port);
  encoder.sendFrame('early frame');
  expect(await encoder.publish(channel.streamKey)).toBe('NetStream.Publish.Start');
  const player = await playing();
  const second = await connectRtmp(ingest.port);
  const refused = second.publish(channel.streamKey);
  second.sendFrame('forged frame');
  expect(await refused).toBe('NetStream.Publish.BadName');
  second.sendFrame('forged frame');
  await second.closed;
  encoder.sendFrame('true frame');
  await player.until('true frame');
  expect(player.received()).not.toMatch(/early frame|forged frame/);
});

test('cuts an encoder that publishes twice over one connection, and gives it no second channel', async () => {
  const other = createChannel(emulator.context, emulator.siteId, METADATA);
  const encoder = await publishing();
  await encoder.publish(other.streamKey);
  await encoder.closed;
  expect(emulator.context.broadcast.sessionOf(other.id)).toBeUndefined();
});

test.each([
  ['disabled', () => change('disable')],
  ['deleted', () => emulator.admin.delete(path()).expect(204)],
  ['on the air for twelve hours', async () => emulator.context.clock.advance(12 * 60 * 60 * 1000)],
  ['forgotten by a reset', async () => emulator.context.reset()],
  ['disconnected by the control port', () => emulator.disconnect({ stream_key: channel.streamKey })],
  ['on a server that is stopped', () => ingest.stop()],
])('cuts the encoder, and those who play its stream, of a channel that is %s', async (_what, end) => {
  const encoder = await publishing();
  const player = await playing();
  await end();
  await encoder.closed;
  await player.closed;
  expect(emulator.context.broadcast.sessionOf(channel.id)).toBeUndefined();
});

test('refuses a player when nothing streams under the key that it names', async () => {
  const player = await connectRtmp(ingest.port);
  expect(await player.play(channel.streamKey)).toBe('NetStream.Play.StreamNotFound');
  await player.closed;
});

test.each([
  ['a message that is no AMF', Buffer.from([3, 0, 0, 0, 0, 0, 2, 20, 0, 0, 0, 0, 2, 255])],
  ['a connect without an address', command('connect', [0, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 9])],
  ['more than a handshake and no stream key', Buffer.alloc(128 * 1024, 0xff)],
])('survives and cuts a peer that sends %s', async (_what, bytes) => {
  const peer = await connectRtmp(ingest.port);
  peer.sendRaw(bytes);
  await peer.closed;
  await publishing();
});

/** A message with the name of a command and values in AMF. */
function command(name: string, values: readonly number[] = []): Buffer {
  const bytes = [2, 0, name.length, ...Buffer.from(name), ...values];
  return Buffer.from([3, 0, 0, 0, 0, 0, bytes.length, 20, 0, 0, 0, 0, ...bytes]);
}

test('logs who comes and goes by channel, and never a stream key', async () => {
  const encoder = await publishing();
  const refused = await connectRtmp(ingest.port);
  await refused.publish(channel.streamKey);
  encoder.close();
  const log = await emulator.logOf(3);
  const lines = log.trim().split('\n');
  expect(lines.map((line) => JSON.parse(line)).map(({ level, message }) => `${level}: ${message}`)).toEqual([
    'info: encoder connected',
    'warn: rtmp connection refused',
    'info: encoder disconnected',
  ]);
  expect(log).not.toContain(channel.streamKey);
});

test('writes nothing to the standard output by itself', async () => {
  const print = jest.spyOn(console, 'log').mockImplementation(() => {});
  const peer = await connectRtmp(ingest.port);
  await peer.publish(channel.streamKey);
  peer.sendRaw(command('hello'));
  peer.sendFrame('frame');
  const player = await playing();
  await player.until('frame');
  expect(print).not.toHaveBeenCalled();
  print.mockRestore();
});

test('rejects with EADDRINUSE when the port is taken at 127.0.0.1, which localhost is, and the process goes on', async () => {
  const port = await listening(createServer());
  ipv6Localhost();
  for (const host of ['127.0.0.1', 'localhost']) {
    const starting = startRtmpIngest(emulator.context, { host, port });
    afterTest(() => starting.then(({ stop }) => stop()).catch(() => undefined));
    await expect(starting).rejects.toMatchObject({ code: 'EADDRINUSE' });
  }
});

/** A user control message that says that the stream 1 has no more to play. */
const STREAM_EOF = Buffer.from('020000000000060400000000000100000001', 'hex').toString('latin1');

test.each([
  ['goes', (encoder: { close(): void }) => encoder.close()],
  ['is dropped, as its channel is disabled', () => emulator.context.broadcast.stop(channel, 'disabled')],
])(
  'reports the end of the stream to players when its encoder %s, and then ends their connections',
  async (_what, end) => {
    const encoder = await publishing();
    const players = [await playing(), await playing()];
    encoder.sendFrame('last frame');
    for (const player of players) await player.until('last frame');
    end(encoder);
    for (const player of players) {
      await player.closed;
      const [, after = ''] = player.received().split('last frame');
      expect(after).toMatch(/NetStream\.Play\.UnpublishNotify.*The encoder has gone\./s);
      expect(after.endsWith(STREAM_EOF)).toBe(true);
      expect(after).not.toContain(channel.streamKey);
    }
  },
);
