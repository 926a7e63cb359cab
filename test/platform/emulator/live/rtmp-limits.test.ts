import { once } from 'node:events';
import { connect } from 'node:net';
import {
  RTMP_INGEST_SETTINGS,
  type RtmpIngest,
  type RtmpIngestSettings,
  startRtmpIngest,
} from '../../../../src/platform/emulator/live/rtmp-ingest';
import { createChannel } from '../../../../src/platform/emulator/resources/channels';
import { channelMetadata } from '../../../support/channel-metadata';
import { connectRtmp, messageHeader, type RtmpClient } from '../../../support/rtmp-publisher';
import { startEmulator } from '../../../support/start-emulator';

const VIDEO = 9;
const KIB = 1024;
const MIB = 1024 * KIB;

const running: RtmpIngest[] = [];

afterEach(async () => {
  for (const ingest of running.splice(0)) await ingest.stop();
});

async function startIngest(settings: Partial<RtmpIngestSettings> = {}) {
  const { context, siteId, logOf } = await startEmulator();
  const address = { host: '127.0.0.1', port: 0 };
  const ingest = await startRtmpIngest(context, address, { ...RTMP_INGEST_SETTINGS, ...settings });
  running.push(ingest);
  const { streamKey } = createChannel(context, siteId, channelMetadata());
  const { port } = ingest;
  const peer = (from?: string) => connectRtmp(port, from);
  return {
    port,
    logOf,
    peer,
    async publishing(): Promise<RtmpClient> {
      const encoder = await peer();
      expect(await encoder.publish(streamKey)).toBe('NetStream.Publish.Start');
      return encoder;
    },
    async playing(): Promise<RtmpClient> {
      const player = await peer();
      expect(await player.play(streamKey)).toBe('NetStream.Play.Start');
      return player;
    },
    play: async () => (await peer()).play(streamKey),
    publish: (encoder: RtmpClient) => encoder.publish(streamKey),
  };
}

/** A connection that has sent these bytes, with a promise of its end. */
async function connected(port: number, said: Buffer): Promise<{ closed: Promise<void> }> {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.on('error', () => {});
  socket.resume();
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  await once(socket, 'connect');
  if (said.length > 0) socket.write(said);
  return { closed };
}

const silent = (port: number) => connected(port, Buffer.alloc(0));

/** Messages of this length, each on a chunk stream of its own, of which the first chunk comes and no more. */
function begun(count: number, length: number): Buffer {
  const chunk = Buffer.alloc(Math.min(length, 128));
  const streams = Array.from({ length: count }, (_none, at) => 4 + at);
  return Buffer.concat(streams.flatMap((stream) => [messageHeader(stream, VIDEO, 1, length), chunk]));
}

function setChunkSize(size: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(size);
  return Buffer.concat([messageHeader(2, 1, 0, 4), bytes]);
}

const KEYLESS = 'a peer without a stream key';

test.each([
  [KEYLESS, 'a message of more than 16 KiB', messageHeader(4, VIDEO, 1, 16 * KIB + 1)],
  [KEYLESS, 'a message of 16 MiB', messageHeader(4, VIDEO, 1, 0xffffff)],
  [KEYLESS, 'more than 64 KiB on several chunk streams', begun(5, 16 * KIB)],
  [KEYLESS, 'messages on more than 16 chunk streams', begun(17, 256)],
  [KEYLESS, 'chunks of no bytes', setChunkSize(0)],
  [KEYLESS, 'chunks of a size that is out of range', setChunkSize(0x80000000)],
  ['an encoder', 'a message of more than 4 MiB', messageHeader(4, VIDEO, 1, 4 * MIB + 1)],
  ['an encoder', 'more than 8 MiB on several chunk streams', begun(3, 3 * MIB)],
  ['a player', 'a message of more than 16 KiB', messageHeader(4, VIDEO, 1, 16 * KIB + 1)],
])('cuts %s that announces %s, before it sends them', async (who, _what, bytes) => {
  const { peer, publishing, playing } = await startIngest();
  const encoder = await (who === KEYLESS ? undefined : publishing());
  const cut = await (who === 'a player' ? playing() : (encoder ?? peer()));
  cut.sendRaw(bytes);
  await cut.closed;
  if (!encoder) await publishing();
});

test.each([
  ['a message of 16 KB', messageHeader(4, VIDEO, 1, 16_000), Buffer.alloc(16_000)],
  ['chunks of the greatest size', Buffer.alloc(0), Buffer.alloc(0)],
])('takes a stream key after %s', async (_what, header, payload) => {
  const { peer, publish } = await startIngest();
  const encoder = await peer();
  encoder.sendRaw(Buffer.concat([setChunkSize(0x7fffffff), header, payload]));
  // The encoder's chunk size applies to all that it sends; its commands are shorter than 128 bytes.
  expect(await publish(encoder)).toBe('NetStream.Publish.Start');
});

test('takes a picture of some MB from an encoder that has shown a stream key', async () => {
  const { publishing, playing } = await startIngest();
  const encoder = await publishing();
  const player = await playing();
  encoder.sendFrame(`${'x'.repeat(3 * MIB)} the end`);
  await player.until('the end');
});

test('forgets a group of pictures that has grown beyond its limit', async () => {
  const { publishing, playing } = await startIngest({ maxGroupBytes: 12 * KIB });
  const encoder = await publishing();
  const first = await playing();
  encoder.sendFrame('earlier frame');
  for (let sent = 0; sent < 4; sent += 1) encoder.sendDependentFrame(`${'x'.repeat(3.5 * KIB)} part ${sent}`);
  await first.until('part 3');
  const player = await playing();
  encoder.sendFrame('later frame');
  await player.until('later frame');
  expect(player.received()).not.toContain('earlier frame');
});

test('cuts a peer that begins with anything but the handshake', async () => {
  const { port } = await startIngest();
  await (await connected(port, Buffer.from('GET / HTTP/1.1\r\n\r\n'))).closed;
});

test('cuts who shows no stream key in time, and no one else', async () => {
  const { port, peer, publishing, playing } = await startIngest({ keyWithinMs: 1000 });
  const encoder = await publishing();
  const player = await playing();
  const [unsaid, half, shaken] = [await silent(port), await connected(port, Buffer.from([3])), await peer()];
  await Promise.all([unsaid.closed, half.closed, shaken.closed]);
  encoder.sendFrame('true frame');
  await player.until('true frame');
});

test('ends the connection that has gone longest without a stream key when there are too many', async () => {
  const { port, peer, publish } = await startIngest({ maxAsking: 2 });
  const [first, second] = [await silent(port), await peer()];
  await peer();
  await first.closed;
  expect(await publish(second)).toBe('NetStream.Publish.Start');
});

test('ends connections of the address that has the most of them', async () => {
  const { peer, publish } = await startIngest({ maxAsking: 3 });
  const encoder = await peer('127.0.0.2');
  const [first, second] = [await peer(), await peer()];
  await peer();
  await first.closed;
  await peer();
  await second.closed;
  expect(await publish(encoder)).toBe('NetStream.Publish.Start');
});

test('lets encoders and players be when others come without a stream key', async () => {
  const { port, publishing, playing, peer } = await startIngest({ maxAsking: 1 });
  const encoder = await publishing();
  const player = await playing();
  for (let come = 0; come < 3; come += 1) {
    await peer();
    await silent(port);
  }
  encoder.sendFrame('true frame');
  await player.until('true frame');
});

test('lets as many play at a time as the limit says', async () => {
  const { publishing, playing, play } = await startIngest({ maxPlayers: 3 });
  await publishing();
  const players = await Promise.all(Array.from({ length: 3 }, () => playing()));
  expect(await play()).toBe('NetStream.Play.Failed');
  players[0]?.close();
  await players[0]?.closed;
  expect(await play()).toBe('NetStream.Play.Start');
});

test('warns of what an encoder does wrong, and not of what is sent without a stream key', async () => {
  const { peer, publishing, logOf } = await startIngest();
  const tooLong = messageHeader(4, VIDEO, 1, 0xffffff);
  for (const each of [await peer(), await publishing()]) {
    each.sendRaw(tooLong);
    await each.closed;
  }
  const lines = (await logOf(4)).trim().split('\n');
  const said = lines.map((line) => JSON.parse(line)).map(({ level, message }) => `${level}: ${message}`);
  expect(said.sort()).toEqual([
    'debug: rtmp message malformed',
    'info: encoder connected',
    'info: encoder disconnected',
    'warn: rtmp message malformed',
  ]);
});
