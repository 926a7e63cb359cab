import type { Socket } from 'node:net';
import { describeThrown, systemCode } from '../../kernel/errors';
import type { Log } from '../../kernel/log';
import type { Broadcast, ConnectRefusal } from './broadcast';
import { createRtmpProtocol, createRtmpRelay, type RtmpPlayer, type RtmpRelay } from './rtmp-protocol';

export interface RtmpParts {
  readonly broadcast: Broadcast;
  readonly log: Log;
  readonly newId: () => string;
}

/** The application part of the address; encoders differ in whether they end it with a slash. */
const APPLICATION = /^live\/?$/;

/** How long a peer may be silent; an encoder that vanished without closing its connection has gone, too. */
const SILENCE_MS = 30_000;

/** What a peer may send before it is known to hold a stream key. */
const BYTES_BEFORE_KEY = 64 * 1024;

/** What may wait for a player that reads too slowly. */
const BYTES_WAITING = 16 * 1024 * 1024;

type Refusal = ConnectRefusal | 'wrong_address' | 'nothing_to_play';

const REFUSALS: Readonly<Record<Refusal, string>> = {
  wrong_address: 'The address is rtmp://<host>/live/<stream key>, for one stream a connection.',
  nothing_to_play: 'No encoder streams with this stream key.',
  unknown_stream_key: 'No channel has this stream key.',
  channel_disabled: 'The channel is disabled.',
  already_streaming: 'Another encoder streams to this channel.',
};

/** Speaks RTMP with one peer until its connection ends. A peer publishes one stream, or plays one. */
export class RtmpConnection {
  readonly #socket: Socket;
  /** By stream key: what is streamed now. */
  readonly #relays: Map<string, RtmpRelay>;
  readonly #parts: RtmpParts;
  readonly #protocol = createRtmpProtocol();
  #streams = false;
  #over = false;
  #received = 0;

  constructor(socket: Socket, relays: Map<string, RtmpRelay>, parts: RtmpParts) {
    this.#socket = socket;
    this.#relays = relays;
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
    socket.on('error', (error) => parts.log.debug('rtmp connection broke', { code: systemCode(error) }));
    socket.on('data', (data) => this.#read(data));
  }

  #read(data: Buffer): void {
    if (this.#over) return;
    this.#received += data.length;
    if (!this.#streams && this.#received > BYTES_BEFORE_KEY) {
      this.#cut();
      return;
    }
    try {
      if (this.#protocol.parserData(data) !== null) this.#cut();
    } catch (thrown) {
      this.#parts.log.warn('rtmp message malformed', { cause: describeThrown(thrown) });
      this.#cut();
    }
  }

  #publish(accept: () => void): void {
    const key = this.#askedKey();
    if (key === undefined) {
      this.#refuse('NetStream.Publish.BadName', 'wrong_address');
      return;
    }
    const { broadcast, log } = this.#parts;
    const connected = broadcast.connect(key, (why) => {
      log.info('encoder dropped', { why });
      this.#cut();
    });
    if (!connected.ok) {
      this.#refuse('NetStream.Publish.BadName', connected.reason);
      return;
    }
    this.#streams = true;
    const { session } = connected;
    const { channelId, eventId } = session;
    const relay = createRtmpRelay();
    this.#relays.set(key, relay);
    this.#protocol.onPacketCallback = (packet) => {
      if (!this.#over) relay.broadcastMessage(packet);
    };
    this.#socket.once('close', () => {
      log.info('encoder gone', { channelId, eventId });
      // The next encoder may have connected before this socket was closed.
      if (this.#relays.get(key) === relay) this.#relays.delete(key);
      for (const player of relay.subscribers.values()) player.close();
      broadcast.disconnect(session);
    });
    log.info('encoder connected', { channelId, eventId });
    accept();
  }

  #play(accept: () => void): void {
    const relay = this.#relays.get(this.#askedKey() ?? '');
    if (!relay) {
      this.#refuse('NetStream.Play.StreamNotFound', 'nothing_to_play');
      return;
    }
    this.#streams = true;
    accept();
    const player: RtmpPlayer = {
      id: this.#parts.newId(),
      ip: '',
      protocol: 'rtmp',
      endTime: 0,
      sendBuffer: (data) => this.#write(data),
      close: () => this.#endSoon(),
    };
    relay.postPlay(player);
    this.#socket.once('close', () => relay.donePlay(player));
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
    if (this.#socket.writableLength > BYTES_WAITING) this.#cut();
  }

  #refuse(code: string, reason: Refusal): void {
    this.#parts.log.warn('rtmp connection refused', { reason });
    this.#protocol.sendStatusMessage(this.#protocol.streamId, 'error', code, REFUSALS[reason]);
    this.#endSoon();
  }

  /** Ends the connection once the peer has been sent what was written; nothing more is read. */
  #endSoon(): void {
    this.#over = true;
    this.#socket.destroySoon();
  }

  #cut(): void {
    this.#over = true;
    this.#socket.destroy();
  }
}
