/**
 * What is used of node-media-server: how RTMP is spoken, and how a stream is handed to its players. Its server isn't:
 * that one writes files, ends the process when its port is taken or a message is malformed, and relays what a refused
 * publisher sends.
 */

/** One message of sound, picture or metadata. */
interface RtmpPacket {
  readonly codec_type: number;
  readonly flags: number;
  /** Bytes. */
  readonly size: number;
}

/** Of a user control message: the stream has no more to play (RTMP 1.0, 7.1.7). */
export const STREAM_EOF = 1;

/** What a peer may make us keep, in bytes. A message is kept from its first chunk on, as long as its header says it is. */
interface RtmpLimits {
  readonly message: number;
  /** The longest messages of all chunk streams together: their memory is used again, and not given back. */
  readonly held: number;
}

/** Commands alone: what a peer has to say until it is known to hold a stream key, and what a player has to say. */
const COMMAND_LIMITS: RtmpLimits = { message: 16 * 1024, held: 64 * 1024 };

/** What an encoder needs. A picture that is coded by itself is the longest message: some MB in the best of qualities. */
export const ENCODER_LIMITS: RtmpLimits = { message: 4 * 1024 * 1024, held: 8 * 1024 * 1024 };

/** Encoders use two to six. */
const MAX_CHUNK_STREAMS = 16;

/** No message is longer; the specification takes greater chunk sizes for this one. */
const MAX_CHUNK_SIZE = 0xffffff;

export interface RtmpPlayer {
  readonly id: string;
  /** Empty for a player that the library is not to announce. */
  readonly ip: '';
  readonly protocol: 'rtmp';
  endTime: number;
  sendBuffer(data: Buffer): void;
  close(): void;
}

/** Hands the packets of one stream to its players; a new player gets the headers and the current group of pictures. */
export interface RtmpRelay {
  readonly subscribers: ReadonlyMap<string, RtmpPlayer>;
  postPlay(player: RtmpPlayer): void;
  donePlay(player: RtmpPlayer): void;
  broadcastMessage(packet: RtmpPacket): void;
}

/** One chunk stream: its latest header, and the memory for its message. */
interface ChunkStream {
  readonly header: { readonly length: number };
  /** Bytes. */
  readonly capacity: number;
}

/** One end of a connection. What is called when is replaced on the instance. */
interface LibraryProtocol {
  readonly streamApp: unknown;
  /** The name that is published or played, without its query. */
  readonly streamName: unknown;
  readonly streamId: number;
  readonly inPackets: ReadonlyMap<number, ChunkStream>;
  /** The one whose chunk is read. */
  readonly parserPacket: ChunkStream;
  inChunkSize: number;
  flv: unknown;
  /** @throws on a malformed message, or one over the limits. Answers a text when no more can be read. */
  parserData(data: Buffer): string | null;
  /** Reads the header of a chunk; the memory for its message is taken only afterwards. */
  packetParse(): void;
  /** Obeys a control message, such as one that sets the chunk size. */
  controlHandler(): void;
  sendStatusMessage(streamId: number, level: 'status' | 'error', code: string, description: string): void;
  /** Sends a user control message, such as `STREAM_EOF`. */
  sendStreamStatus(type: number, streamId: number): void;
  /** Asked to publish: answers the encoder that it may. */
  respondPublish(): void;
  /** Asked to play: answers the player that it begins. */
  respondPlay(): void;
  onDeleteStream(): void;
  onPacketCallback: (packet: RtmpPacket) => void;
  onOutputCallback: (data: Buffer) => void;
}

interface LibraryRelay extends RtmpRelay {
  flvGopCache: unknown;
  rtmpGopCache: unknown;
}

// Required and not imported: the library comes without types, and its entry does not export these parts.
const Protocol: new () => LibraryProtocol = require('node-media-server/src/protocol/rtmp.js');
const Relay: new (
  streamPath: string,
) => LibraryRelay = require('node-media-server/src/server/broadcast_server.js');
const libraryLog: { log: () => void } = require('node-media-server/src/core/logger.js');

// It would print to the standard output, in the middle of our log.
libraryLog.log = () => {};

/** The library believes every header: 16 MB for each of 65,536 chunk streams. */
export class RtmpProtocol extends Protocol {
  /** From the next message on. */
  limits = COMMAND_LIMITS;

  constructor() {
    super();
    // A reader of FLV files with a memory of 1 MiB, which RTMP has no use for.
    this.flv = undefined;
  }

  override packetParse(): void {
    super.packetParse();
    const { parserPacket, inPackets, limits } = this;
    const { length } = parserPacket.header;
    if (length > limits.message) throw new RangeError(`RTMP message longer than ${limits.message} bytes`);
    if (inPackets.size > MAX_CHUNK_STREAMS) throw new RangeError('too many RTMP chunk streams');
    if (length <= parserPacket.capacity) return;
    let held = length;
    for (const other of inPackets.values()) if (other !== parserPacket) held += other.capacity;
    if (held > limits.held) throw new RangeError(`RTMP messages hold more than ${limits.held} bytes`);
  }

  override controlHandler(): void {
    super.controlHandler();
    if (this.inChunkSize < 1 || this.inChunkSize > 0x7fffffff)
      throw new RangeError('RTMP chunk size not valid');
    this.inChunkSize = Math.min(this.inChunkSize, MAX_CHUNK_SIZE);
  }
}

const KEY_FRAME = 3;

/** @param maxGroupBytes the largest group of pictures that is kept for new players. */
export function createRtmpRelay(maxGroupBytes: number): RtmpRelay {
  const relay = new Relay('');
  const { subscribers, postPlay, donePlay } = relay;
  let pictures = 0;
  return {
    subscribers,
    postPlay,
    donePlay,
    broadcastMessage(packet) {
      relay.broadcastMessage(packet);
      pictures = packet.flags === KEY_FRAME ? packet.size : pictures + packet.size;
      // Without a memory for the group of pictures, the library begins one at the next key frame.
      if (pictures > maxGroupBytes) relay.rtmpGopCache = null;
      // No player takes FLV here.
      relay.flvGopCache = null;
    },
  };
}
