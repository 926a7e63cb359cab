import { once } from 'node:events';
import { connect } from 'node:net';
import { afterTest } from './after-test';

/** One RTMP connection, just able enough to publish and to play. */
export type RtmpClient = Awaited<ReturnType<typeof connectRtmp>>;

const SIGNATURE_BYTES = 1536;
const CHUNK_BYTES = 128;
const COMMAND = 20;
const VIDEO = 9;

/**
 * Connects to an RTMP server of loopback and shakes hands; the connection is closed after the test.
 * @param from the client's own address, of loopback as well.
 */
export async function connectRtmp(port: number, from = '127.0.0.1') {
  const socket = connect({ port, host: '127.0.0.1', localAddress: from, noDelay: true });
  afterTest(() => socket.destroy());
  let text = '';
  const watchers = new Set<() => void>();
  const look = () => {
    for (const watcher of watchers) watcher();
  };
  socket.on('data', (data) => {
    text += data.toString('latin1');
    look();
  });
  // A refused client sends into a connection that is gone; that it has ended is what tests ask for.
  socket.on('error', () => {});
  const closed = new Promise<void>((resolve) => {
    socket.on('close', () => {
      resolve();
      look();
    });
  });

  function found<T>(find: () => T | undefined): Promise<T | undefined> {
    return new Promise((resolve) => {
      const watcher = () => {
        const result = find();
        if (result === undefined && !socket.closed) return;
        watchers.delete(watcher);
        resolve(result);
      };
      watchers.add(watcher);
      watcher();
    });
  }

  const send = (type: number, stream: number, payload: Buffer) =>
    socket.write(chunked(type, stream, payload));

  async function ask(command: string, streamKey: string, app: string): Promise<string> {
    const tcUrl = `rtmp://127.0.0.1:${port}/${app}`;
    send(COMMAND, 0, Buffer.concat([amf('connect'), amf(1), amf({ app, tcUrl, type: 'nonprivate' })]));
    send(COMMAND, 0, Buffer.concat([amf('createStream'), amf(2), amf(null)]));
    const type = command === 'publish' ? [amf('live')] : [];
    send(COMMAND, 1, Buffer.concat([amf(command), amf(3), amf(null), amf(streamKey), ...type]));
    const status = await found(() => /NetStream\.(?:Publish|Play)\.(?!Reset)[A-Za-z]+/.exec(text)?.[0]);
    return status ?? 'closed';
  }

  await once(socket, 'connect');
  const signature = Buffer.alloc(SIGNATURE_BYTES, 7);
  socket.write(Buffer.concat([Buffer.from([3]), signature]));
  await found(() => text.length >= 1 + 2 * SIGNATURE_BYTES || undefined);
  socket.write(signature);
  return {
    /** Asks to publish, and answers with the status that comes back, or `closed`. */
    publish: (streamKey: string, app = 'live') => ask('publish', streamKey, app),
    /** Asks to play, and answers with the status that comes back, or `closed`. */
    play: (streamKey: string) => ask('play', streamKey, 'live'),
    /** Sends one key frame whose content is this text. */
    sendFrame: (content: string) => send(VIDEO, 1, picture(0x17, content)),
    /** Sends one frame that needs the key frame before it, with this text as its content. */
    sendDependentFrame: (content: string) => send(VIDEO, 1, picture(0x27, content)),
    /** Sends a configuration of the decoder whose content is this text. */
    sendConfiguration: (content: string) => send(VIDEO, 1, Buffer.from(`\x17\0\0\0\0${content}`, 'latin1')),
    /** Sends bytes as they are. */
    sendRaw: (bytes: Buffer) => void socket.write(bytes),
    /** Resolves when this text has been received. Rejects when the connection ends before. */
    async until(wanted: string) {
      if (!(await found(() => text.includes(wanted) || undefined)))
        throw new Error(`closed before ${wanted}`);
    },
    /** All that was received so far. */
    received: () => text,
    /** Resolves when either side has ended the connection. */
    closed,
    close: () => void socket.destroy(),
  };
}

/** A picture of AVC. 0x17 begins a key frame, 0x27 another; then 1, as it is not the decoder's configuration. */
function picture(kind: number, content: string): Buffer {
  return Buffer.concat([Buffer.from([kind, 1, 0, 0, 0]), Buffer.from(content)]);
}

/** The full header of a message with time 0 on a chunk stream from 2 to 63. */
export function messageHeader(chunkStream: number, type: number, stream: number, length: number): Buffer {
  const header = Buffer.alloc(12);
  header[0] = chunkStream;
  header.writeUIntBE(length, 4, 3);
  header[7] = type;
  header.writeUInt32LE(stream, 8);
  return header;
}

/** A message with time 0, in chunks: a full header, then one byte of header for each further piece. */
function chunked(type: number, stream: number, payload: Buffer): Buffer {
  const pieces = [messageHeader(3, type, stream, payload.length), payload.subarray(0, CHUNK_BYTES)];
  for (let at = CHUNK_BYTES; at < payload.length; at += CHUNK_BYTES) {
    pieces.push(Buffer.from([0xc3]), payload.subarray(at, at + CHUNK_BYTES));
  }
  return Buffer.concat(pieces);
}

/** A value in AMF0. */
function amf(value: string | number | null | Record<string, string>): Buffer {
  if (value === null) return Buffer.from([5]);
  if (typeof value === 'number') {
    const bytes = Buffer.alloc(9);
    bytes.writeDoubleBE(value, 1);
    return bytes;
  }
  if (typeof value === 'string') return Buffer.concat([Buffer.from([2]), counted(value)]);
  const fields = Object.entries(value).flatMap(([name, field]) => [counted(name), amf(field)]);
  return Buffer.concat([Buffer.from([3]), ...fields, Buffer.from([0, 0, 9])]);
}

function counted(text: string): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(Buffer.byteLength(text));
  return Buffer.concat([bytes, Buffer.from(text)]);
}
