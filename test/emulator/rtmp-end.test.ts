import { type Channel, createChannel } from '../../src/emulator/live/channels';
import { type RtmpIngest, startRtmpIngest } from '../../src/emulator/live/rtmp-ingest';
import { channelMetadata } from '../support/channel-metadata';
import { connectRtmp } from '../support/rtmp-publisher';
import { startEmulator, type TestEmulator } from '../support/start-emulator';

let ingest: RtmpIngest;
let emulator: TestEmulator;
let channel: Channel;

beforeEach(async () => {
  emulator = await startEmulator();
  ingest = await startRtmpIngest(emulator.context, { host: '127.0.0.1', port: 0 });
  channel = createChannel(emulator.context, emulator.siteId, channelMetadata());
});

afterEach(() => ingest.stop());

/** A user control message that says that the stream 1 has no more to play. */
const STREAM_EOF = Buffer.from('020000000000060400000000000100000001', 'hex').toString('latin1');

test.each([
  ['goes', (encoder: { close(): void }) => encoder.close()],
  ['is dropped, as its channel is disabled', () => emulator.context.broadcast.stop(channel, 'disabled')],
])(
  'tells players that the stream is over when its encoder %s, and then ends their connections',
  async (_what, end) => {
    const encoder = await connectRtmp(ingest.port);
    await encoder.publish(channel.streamKey);
    const players = await Promise.all([connectRtmp(ingest.port), connectRtmp(ingest.port)]);
    for (const player of players) expect(await player.play(channel.streamKey)).toBe('NetStream.Play.Start');
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
