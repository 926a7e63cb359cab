/**
 * What is used of node-media-server: how RTMP is spoken, and how a stream is handed to its players. Its server isn't:
 * that one writes files, ends the process when its port is taken or a message is malformed, and relays what a refused
 * publisher sends.
 */

/** One message of sound, picture or metadata. */
export interface RtmpPacket {
  readonly codec_type: number;
}

/** One end of a connection. What is called when is replaced on the instance. */
export interface RtmpProtocol {
  readonly streamApp: unknown;
  /** The name that is published or played, without its query. */
  readonly streamName: unknown;
  readonly streamId: number;
  /** @throws on a malformed message. Answers a text when the data can't be read any further. */
  parserData(data: Buffer): string | null;
  sendStatusMessage(streamId: number, level: 'status' | 'error', code: string, description: string): void;
  /** Asked to publish: tells the encoder that it may. */
  respondPublish(): void;
  /** Asked to play: tells the player that it begins. */
  respondPlay(): void;
  onDeleteStream(): void;
  onPacketCallback: (packet: RtmpPacket) => void;
  onOutputCallback: (data: Buffer) => void;
}

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

const Protocol: new () => RtmpProtocol = require('node-media-server/src/protocol/rtmp.js');
const Relay: new (
  streamPath: string,
) => RtmpRelay = require('node-media-server/src/server/broadcast_server.js');
const libraryLog: { log: () => void } = require('node-media-server/src/core/logger.js');

// It would print to the standard output, in the middle of our log.
libraryLog.log = () => {};

export function createRtmpProtocol(): RtmpProtocol {
  return new Protocol();
}

export function createRtmpRelay(): RtmpRelay {
  return new Relay('');
}
