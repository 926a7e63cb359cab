import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { networkOf } from '../../../http/app';
import { describeThrown, systemCode } from '../../../http/errors';
import type { Log } from '../../../http/log';
import { boundHost } from '../../../http/server';
import { type Broadcast, CONNECT_REFUSALS } from './broadcast';

export const RTMP_INGEST_SETTINGS = {
  /** How many connections may be open that have shown no stream key. */
  maxAsking: 256,
  keyWithinMs: 10_000,
  /** Of all streams together. */
  maxPlayers: 128,
  /** The largest group of pictures that a new player gets at once; less than the limit of waiting bytes. */
  maxGroupBytes: 12 * 1024 * 1024,
};
export type RtmpIngestSettings = Readonly<typeof RTMP_INGEST_SETTINGS>;

/** The most bytes that a peer may send before it has shown a stream key. */
const MAX_BYTES_BEFORE_KEY = 64 * 1024;
const MAX_BYTES_WAITING = 16 * 1024 * 1024;
/** Encoders use two to six. */
const MAX_CHUNK_STREAMS = 16;
/** No message is longer; the specification takes greater chunk sizes for this one. */
const MAX_CHUNK_SIZE = 0xffffff;
/**
 * In bytes: for a message, which has the length in its header, and for the longest ones of all chunk streams
 * together, whose memory is not freed. Players, and peers without a stream key, send commands only; the
 * longest message of an encoder is a key frame, some MB in the highest qualities.
 */
const COMMAND_LIMITS = { message: 16 * 1024, held: 64 * 1024 };
const ENCODER_LIMITS = { message: 4 * 1024 * 1024, held: 8 * 1024 * 1024 };
/** How long a peer may be silent; an encoder that vanished without closing its connection has gone, too. */
const SILENCE_MS = 30_000;
const ENDING_MS = 10_000;

/** The first byte of the handshake. */
const VERSION = 3;
/** The application part of the address; encoders differ in whether they end it with a slash. */
const APPLICATION = /^live\/?$/;
const VIDEO_CONFIGURATION = 2;
const KEY_FRAME = 3;
/** Of a user control message: the stream has no more to play (RTMP 1.0, 7.1.7). */
const STREAM_EOF = 1;

const REFUSALS = {
  ...CONNECT_REFUSALS,
  wrong_address: 'The address is rtmp://<host>/live/<stream key>, for one stream a connection.',
  nothing_to_play: 'No encoder streams with this stream key. Play it once one does.',
  too_many_players: 'As many players as possible are connected. Try again later.',
};

/** One chunk stream of node-media-server: its latest header, and the memory for its message, in bytes. */
interface ChunkStream {
  readonly header: { readonly length: number };
  readonly capacity: number;
}

interface Packet {
  readonly flags: number;
  readonly data: Buffer;
  readonly size: number;
}

declare class LibraryProtocol {
  readonly streamApp: unknown;
  /** The name that is published or played, without its query. */
  readonly streamName: unknown;
  readonly streamId: number;
  readonly inPackets: ReadonlyMap<number, ChunkStream>;
  readonly parserPacket: ChunkStream;
  inChunkSize: number;
  flv: unknown;
  onPacketCallback: (packet: Packet) => void;
  onOutputCallback: (data: Buffer) => void;
  /** @throws on a malformed message, or one over the limits. Answers a text when no more can be read. */
  parserData(data: Buffer): string | null;
  /** Reads the header of a chunk; the memory for its message is taken only afterwards. */
  packetParse(): void;
  controlHandler(): void;
  sendStatusMessage(streamId: number, level: 'status' | 'error', code: string, description: string): void;
  sendStreamStatus(type: number, streamId: number): void;
  respondPublish(): void;
  respondPlay(): void;
  onDeleteStream(): void;
}

/** Hands the packets of one stream to its players; a new one gets the headers and the current group of pictures. */
declare class LibraryRelay {
  constructor(streamPath: string);
  readonly subscribers: ReadonlyMap<string, RtmpConnection>;
  flvGopCache: unknown;
  rtmpGopCache: unknown;
  postPlay(player: RtmpConnection): void;
  donePlay(player: RtmpConnection): void;
  broadcastMessage(packet: Packet): void;
}

// Used of node-media-server: how RTMP is spoken, and how a stream is handed to its players. Its server isn't: that one
// writes files, ends the process when its port is taken or a message is malformed, and relays what a refused publisher
// sends. Required and not imported: the library comes without types, and its entry does not export these parts.
const Protocol: typeof LibraryProtocol = require('node-media-server/src/protocol/rtmp.js');
const Relay: typeof LibraryRelay = require('node-media-server/src/server/broadcast_server.js');
const libraryLog: { log: () => void } = require('node-media-server/src/core/logger.js');

// It would print to the standard output, in the middle of our log.
libraryLog.log = () => {};

interface RtmpParts {
  readonly broadcast: Broadcast;
  readonly log: Log;
  readonly newId: () => string;
}

export type RtmpIngest = Awaited<ReturnType<typeof startRtmpIngest>>;

/**
 * Takes encoders at `rtmp://<host>:<port>/live/<stream key>`, and players, with the key or the event's pull
 * token, while the encoder streams. Port 0 takes a free one. Rejects with the system's error (`EADDRINUSE`).
 */
export async function startRtmpIngest(
  { broadcast, log, newId }: RtmpParts,
  { host, port }: { readonly host: string; readonly port: number },
  settings: RtmpIngestSettings = RTMP_INGEST_SETTINGS,
) {
  const sockets = new Set<Socket>();
  /** The network of each connection that has shown no stream key, oldest first. */
  const asking = new Map<Socket, string>();
  /** By stream key and by pull token, while the encoder is connected. */
  const relays = new Map<string, LibraryRelay>();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    asking.set(socket, networkOf(socket.remoteAddress));
    if (asking.size > settings.maxAsking) endOldest(asking);
    const deadline = setTimeout(() => socket.destroy(), settings.keyWithinMs);
    const onKeyShown = () => {
      asking.delete(socket);
      clearTimeout(deadline);
    };
    socket.on('error', (error) => log.debug('rtmp connection broke', { code: systemCode(error) }));
    socket.on('close', () => {
      sockets.delete(socket);
      onKeyShown();
    });
    socket.once('data', (opening) => {
      if (opening[0] !== VERSION) {
        socket.destroy();
        return;
      }
      const parts = { broadcast, log, relays, settings, onKeyShown };
      const connection = new RtmpConnection(newId(), socket, parts);
      socket.on('data', (data) => connection.read(data));
      connection.read(opening);
    });
  });
  await once(server.listen({ host: boundHost(host), port }), 'listening');
  const address = server.address();
  return {
    port: typeof address === 'object' && address ? address.port : port,
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

/**
 * Ends the oldest connection of the network with the most of them. So a client that opens connections in
 * masses ends its own, and those that wait longest are the least likely to have a stream key.
 */
function endOldest(asking: Map<Socket, string>): void {
  const counts = new Map<string, number>();
  for (const network of asking.values()) counts.set(network, (counts.get(network) ?? 0) + 1);
  const most = Math.max(...counts.values());
  const [oldest] = [...asking].find(([, network]) => counts.get(network) === most) ?? [];
  if (!oldest) return;
  asking.delete(oldest);
  oldest.destroy();
}

interface RtmpConnectionParts extends Omit<RtmpParts, 'newId'> {
  readonly relays: Map<string, LibraryRelay>;
  readonly settings: RtmpIngestSettings;
  /** Called once, when the peer has shown a stream key with which it may publish or play. */
  readonly onKeyShown: () => void;
}

/**
 * Speaks RTMP with one peer, which publishes one stream or plays one, until its connection ends. The library
 * alone answers a publish and a play before it asks anybody, and believes every header: 16 MB for each of
 * 65,536 chunk streams. The creator listens for the socket's errors, and sets a time for the stream key.
 */
class RtmpConnection extends Protocol {
  readonly id: string;
  /** Empty for a player that the library is not to announce. */
  readonly ip = '';
  readonly protocol = 'rtmp';
  /** The library sets it. */
  endTime = 0;
  readonly #socket: Socket;
  readonly #parts: RtmpConnectionParts;
  #limits = COMMAND_LIMITS;
  #streams = false;
  #over = false;
  #received = 0;

  constructor(id: string, socket: Socket, parts: RtmpConnectionParts) {
    super();
    this.id = id;
    this.#socket = socket;
    this.#parts = parts;
    // A reader of FLV files with a memory of 1 MiB, which RTMP has no use for.
    this.flv = undefined;
    this.onOutputCallback = (data) => this.sendBuffer(data);
    socket.setTimeout(SILENCE_MS, () => this.#cut());
  }

  read(data: Buffer): void {
    if (this.#over) return;
    this.#received += data.length;
    if (!this.#streams && this.#received > MAX_BYTES_BEFORE_KEY) {
      this.#cut();
      return;
    }
    try {
      if (this.parserData(data) !== null) this.#cut();
    } catch (thrown) {
      // A peer without a stream key must not fill the log.
      const level = this.#streams ? 'warn' : 'debug';
      this.#parts.log[level]('rtmp message malformed', { cause: describeThrown(thrown) });
      this.#cut();
    }
  }

  override packetParse(): void {
    super.packetParse();
    const { parserPacket, inPackets } = this;
    const { length } = parserPacket.header;
    const { message, held } = this.#limits;
    if (length > message) throw new RangeError(`RTMP message longer than ${message} bytes`);
    if (inPackets.size > MAX_CHUNK_STREAMS) throw new RangeError('too many RTMP chunk streams');
    if (length <= parserPacket.capacity) return;
    let total = length;
    for (const other of inPackets.values()) if (other !== parserPacket) total += other.capacity;
    if (total > held) throw new RangeError(`RTMP messages hold more than ${held} bytes`);
  }

  override controlHandler(): void {
    super.controlHandler();
    if (this.inChunkSize < 1 || this.inChunkSize > 0x7fffffff)
      throw new RangeError('RTMP chunk size not valid');
    this.inChunkSize = Math.min(this.inChunkSize, MAX_CHUNK_SIZE);
  }

  override respondPublish(): void {
    const key = this.#askedKey();
    if (key === undefined) {
      this.#refuse('NetStream.Publish.BadName', 'wrong_address');
      return;
    }
    const { broadcast, log, relays, settings } = this.#parts;
    const connected = broadcast.connect(key, (why) => {
      log.info('encoder dropped', { why });
      this.#cut();
    });
    if (!connected.ok) {
      this.#refuse('NetStream.Publish.BadName', connected.reason);
      return;
    }
    this.#begin();
    this.#limits = ENCODER_LIMITS;
    const { session } = connected;
    const { channelId, eventId } = session;
    const relay = new Relay('');
    // A publisher with the token was refused above: it is not the key of a channel.
    const names = [key, session.pullToken];
    for (const name of names) relays.set(name, relay);
    const endPlayers = (why: string) => {
      for (const player of relay.subscribers.values()) player.close(why);
    };
    let pictures = 0;
    let configuration = Buffer.alloc(0);
    this.onPacketCallback = (packet) => {
      if (this.#over) return;
      relay.broadcastMessage(packet);
      if (packet.flags === VIDEO_CONFIGURATION) {
        const former = configuration;
        configuration = Buffer.from(packet.data.subarray(0, packet.size));
        // ffmpeg copies pictures with the first configuration that it got, so another resolution would be noise.
        if (former.length > 0 && !former.equals(configuration)) {
          relay.rtmpGopCache = null;
          endPlayers('The encoder has changed its picture. Play the stream again.');
        }
      }
      pictures = packet.flags === KEY_FRAME ? packet.size : pictures + packet.size;
      // Without a memory for the group of pictures, the library begins one at the next key frame.
      if (pictures > settings.maxGroupBytes) relay.rtmpGopCache = null;
      // No player takes FLV here.
      relay.flvGopCache = null;
    };
    this.#socket.once('close', () => {
      log.info('encoder disconnected', { channelId, eventId });
      // The next encoder may have connected before this socket was closed.
      for (const name of names) if (relays.get(name) === relay) relays.delete(name);
      endPlayers('The encoder has gone.');
      broadcast.disconnect(session);
    });
    log.info('encoder connected', { channelId, eventId });
    super.respondPublish();
  }

  override respondPlay(): void {
    const { relays, settings } = this.#parts;
    const relay = relays.get(this.#askedKey() ?? '');
    if (!relay) {
      this.#refuse('NetStream.Play.StreamNotFound', 'nothing_to_play');
      return;
    }
    let players = 0;
    for (const { subscribers } of new Set(relays.values())) players += subscribers.size;
    if (players >= settings.maxPlayers) {
      this.#refuse('NetStream.Play.Failed', 'too_many_players');
      return;
    }
    this.#begin();
    super.respondPlay();
    relay.postPlay(this);
    this.#socket.once('close', () => relay.donePlay(this));
  }

  override onDeleteStream(): void {
    this.#cut();
  }

  sendBuffer(data: Buffer): void {
    if (this.#over) return;
    this.#socket.write(data);
    if (this.#socket.writableLength > MAX_BYTES_WAITING) this.#cut();
  }

  /** Reports the end of the stream to the player, which would take a broken connection for a fault; then ends. */
  close(why: string): void {
    if (this.#over) return;
    this.sendStatusMessage(this.streamId, 'status', 'NetStream.Play.UnpublishNotify', why);
    this.sendStreamStatus(STREAM_EOF, this.streamId);
    this.#over = true;
    // Drains the player's data: unread, it would reset the connection before the player has read the end.
    this.#socket.end();
    this.#cutLate();
  }

  #begin(): void {
    this.#streams = true;
    this.#parts.onKeyShown();
  }

  #askedKey(): string | undefined {
    const { streamApp, streamName } = this;
    const isRight = APPLICATION.test(String(streamApp)) && typeof streamName === 'string';
    return isRight && !this.#streams && !this.#over ? streamName : undefined;
  }

  #refuse(code: string, reason: keyof typeof REFUSALS): void {
    this.#parts.log.warn('rtmp connection refused', { reason });
    this.sendStatusMessage(this.streamId, 'error', code, REFUSALS[reason]);
    this.#over = true;
    // The peer gets the written bytes; no more are read.
    this.#socket.destroySoon();
    this.#cutLate();
  }

  #cutLate(): void {
    const cut = setTimeout(() => this.#socket.destroy(), ENDING_MS);
    this.#socket.once('close', () => clearTimeout(cut));
  }

  #cut(): void {
    this.#over = true;
    this.#socket.destroy();
  }
}
