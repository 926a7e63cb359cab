import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { networkOf } from '../../../http/connections';
import { describeThrown, systemCode } from '../../../http/errors';
import type { Log } from '../../../http/log';
import { type Broadcast, CONNECT_REFUSALS, type ConnectRefusal } from './broadcast';
import {
  createRtmpRelay,
  ENCODER_LIMITS,
  type RtmpPlayer,
  RtmpProtocol,
  type RtmpRelay,
  STREAM_EOF,
} from './rtmp-protocol';

export const RTMP_INGEST_SETTINGS = {
  /** How many connections may be open that have shown no stream key. */
  maxAsking: 256,
  /** How long a connection may take to show a stream key. */
  keyWithinMs: 10_000,
  /** How many may play at a time, of all streams together. */
  maxPlayers: 128,
  /** The largest group of pictures that a new player gets at once; less than what may wait for a player. */
  maxGroupBytes: 12 * 1024 * 1024,
};
export type RtmpIngestSettings = Readonly<typeof RTMP_INGEST_SETTINGS>;

export type RtmpIngest = Awaited<ReturnType<typeof startRtmpIngest>>;

/** The first byte of the handshake. */
const VERSION = 3;

/**
 * Takes encoders at `rtmp://<host>:<port>/live/<stream key>`, and lets who knows the key, or the event's pull token in
 * its place, watch while the encoder streams. Port 0 takes a free one. Rejects with the system's error (`EADDRINUSE`, `EACCES`).
 */
export async function startRtmpIngest(
  parts: RtmpParts,
  { host, port }: { readonly host: string; readonly port: number },
  settings: RtmpIngestSettings = RTMP_INGEST_SETTINGS,
) {
  const sockets = new Set<Socket>();
  /** The network of each connection that has shown no stream key, oldest first. */
  const asking = new Map<Socket, string>();
  /** By stream key and by pull token, while the encoder is connected. */
  const relays = new Map<string, RtmpRelay>();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    asking.set(socket, networkOf(socket.remoteAddress));
    if (asking.size > settings.maxAsking) endOldest(asking);
    const deadline = setTimeout(() => socket.destroy(), settings.keyWithinMs);
    const onKeyShown = () => {
      asking.delete(socket);
      clearTimeout(deadline);
    };
    socket.on('error', (error) => parts.log.debug('rtmp connection broke', { code: systemCode(error) }));
    socket.on('close', () => {
      sockets.delete(socket);
      onKeyShown();
    });
    socket.once('data', (opening) => {
      if (opening[0] !== VERSION) socket.destroy();
      else new RtmpConnection(socket, opening, { ...parts, relays, onKeyShown, settings });
    });
  });
  await once(server.listen({ host, port }), 'listening');
  const address = server.address();
  return {
    port: typeof address === 'object' && address ? address.port : port,
    /** Takes no new connection and cuts those that are open. */
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

/**
 * Ends the oldest connection of the network with the most of them: a client that opens connections in masses ends its own, and
 * those that wait longest are the least likely to have a key.
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

interface RtmpParts {
  readonly broadcast: Broadcast;
  readonly log: Log;
  readonly newId: () => string;
}

/** The application part of the address; encoders differ in whether they end it with a slash. */
const APPLICATION = /^live\/?$/;

/** How long a peer may be silent; an encoder that vanished without closing its connection has gone, too. */
const SILENCE_MS = 30_000;

/** What a peer may send before it is known to hold a stream key. */
const MAX_BYTES_BEFORE_KEY = 64 * 1024;

/** What may wait for a player that reads too slowly. */
const MAX_BYTES_WAITING = 16 * 1024 * 1024;

/** How long a peer may take to read what it is sent at the end. */
const ENDING_MS = 10_000;

type Refusal = ConnectRefusal | 'wrong_address' | 'nothing_to_play' | 'too_many_players';

const REFUSALS: Readonly<Record<Refusal, string>> = {
  ...CONNECT_REFUSALS,
  wrong_address: 'The address is rtmp://<host>/live/<stream key>, for one stream a connection.',
  nothing_to_play: 'No encoder streams with this stream key. Play it once one does.',
  too_many_players: 'As many players as possible are connected. Try again later.',
};

interface RtmpConnectionParts extends RtmpParts {
  readonly relays: Map<string, RtmpRelay>;
  /** Called once, when the peer has shown a stream key with which it may publish or play. */
  readonly onKeyShown: () => void;
  readonly settings: RtmpIngestSettings;
}

/**
 * Speaks RTMP with one peer until its connection ends. A peer publishes one stream, or plays one. Its creator
 * listens for the socket's errors, and sets a time for the stream key.
 */
class RtmpConnection {
  readonly #socket: Socket;
  readonly #parts: RtmpConnectionParts;
  readonly #protocol = new RtmpProtocol();
  #streams = false;
  #over = false;
  #received = 0;

  /** @param opening what the peer has sent so far. */
  constructor(socket: Socket, opening: Buffer, parts: RtmpConnectionParts) {
    this.#socket = socket;
    this.#parts = parts;
    const protocol = this.#protocol;
    // The library answers a publish and a play before it asks anybody; here the answer waits for the decision.
    const acceptPublish = protocol.respondPublish.bind(protocol);
    protocol.respondPublish = () => this.#publish(acceptPublish);
    const acceptPlay = protocol.respondPlay.bind(protocol);
    protocol.respondPlay = () => this.#play(acceptPlay);
    protocol.onDeleteStream = () => this.#cut();
    protocol.onOutputCallback = (data) => this.#write(data);
    socket.setTimeout(SILENCE_MS, () => this.#cut());
    socket.on('data', (data) => this.#read(data));
    this.#read(opening);
  }

  #read(data: Buffer): void {
    if (this.#over) return;
    this.#received += data.length;
    if (!this.#streams && this.#received > MAX_BYTES_BEFORE_KEY) {
      this.#cut();
      return;
    }
    try {
      if (this.#protocol.parserData(data) !== null) this.#cut();
    } catch (thrown) {
      // Who has shown no stream key must not fill the log.
      const level = this.#streams ? 'warn' : 'debug';
      this.#parts.log[level]('rtmp message malformed', { cause: describeThrown(thrown) });
      this.#cut();
    }
  }

  #publish(accept: () => void): void {
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
    this.#protocol.limits = ENCODER_LIMITS;
    const { session } = connected;
    const { channelId, eventId } = session;
    const relay = createRtmpRelay(settings.maxGroupBytes);
    // A publisher that came with the token was refused above: no channel has it for its key.
    const names = [key, session.pullToken];
    for (const name of names) relays.set(name, relay);
    this.#protocol.onPacketCallback = (packet) => {
      if (!this.#over) relay.broadcastMessage(packet);
    };
    this.#socket.once('close', () => {
      log.info('encoder disconnected', { channelId, eventId });
      // The next encoder may have connected before this socket was closed.
      for (const name of names) if (relays.get(name) === relay) relays.delete(name);
      for (const player of relay.subscribers.values()) player.close();
      broadcast.disconnect(session);
    });
    log.info('encoder connected', { channelId, eventId });
    accept();
  }

  #play(accept: () => void): void {
    const { relays, newId, settings } = this.#parts;
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
    accept();
    const player: RtmpPlayer = {
      id: newId(),
      ip: '',
      protocol: 'rtmp',
      endTime: 0,
      sendBuffer: (data) => this.#write(data),
      close: () => this.#endPlaying(),
    };
    relay.postPlay(player);
    this.#socket.once('close', () => relay.donePlay(player));
  }

  #begin(): void {
    this.#streams = true;
    this.#parts.onKeyShown();
  }

  /** The stream key that the peer asks for, or undefined when it asks elsewhere or once too often. */
  #askedKey(): string | undefined {
    const { streamApp, streamName } = this.#protocol;
    const isRight = APPLICATION.test(String(streamApp)) && typeof streamName === 'string';
    return isRight && !this.#streams && !this.#over ? streamName : undefined;
  }

  #write(data: Buffer): void {
    if (this.#over) return;
    this.#socket.write(data);
    if (this.#socket.writableLength > MAX_BYTES_WAITING) this.#cut();
  }

  #refuse(code: string, reason: Refusal): void {
    this.#parts.log.warn('rtmp connection refused', { reason });
    this.#protocol.sendStatusMessage(this.#protocol.streamId, 'error', code, REFUSALS[reason]);
    this.#endSoon();
  }

  /** Reports the end of the stream to the player, as it would take a connection that breaks for a fault; then ends. */
  #endPlaying(): void {
    if (this.#over) return;
    const { streamId } = this.#protocol;
    this.#protocol.sendStatusMessage(
      streamId,
      'status',
      'NetStream.Play.UnpublishNotify',
      'The encoder has gone.',
    );
    this.#protocol.sendStreamStatus(STREAM_EOF, streamId);
    this.#over = true;
    // What the player still sends is read: unread, it would reset the connection before the player has read the end.
    this.#socket.end();
    this.#cutLate();
  }

  /** Ends the connection once the peer has been sent what was written; nothing more is read. */
  #endSoon(): void {
    this.#over = true;
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
