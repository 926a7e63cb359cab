import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';

/** A client that has closed its side counts as gone when its answer takes longer than this. */
const HALF_CLOSED_MS = 250;
/** For a client to read its last answer before the connection is destroyed. */
export const LINGER_MS = 1000;

/**
 * Passes bytes to Node's HTTP parser in small pieces, one a turn of the event loop. Node makes objects of all
 * heads in 64 KiB at once: 512 clients that pipeline would take 400 MB before the first of them could be
 * destroyed. It costs about 12 µs a request.
 */
export class PiecewiseSocket extends Duplex {
  declare readonly remoteAddress: string | undefined;
  declare readonly remotePort: number | undefined;
  declare readonly localAddress: string | undefined;
  #rest: Buffer | undefined;
  #isDue = false;
  #hasEnded = false;

  /** `isAsked`: a request has arrived whole and is not answered. `pieceBytes`: at most, of the next piece. */
  constructor(
    readonly inner: Socket,
    private readonly isAsked: () => boolean,
    private readonly pieceBytes: () => number,
  ) {
    super({
      decodeStrings: false,
      read: () => this.#goOn(),
      write: (chunk, encoding, done) => void inner.write(chunk, encoding, done),
      writev: (chunks, done) => {
        inner.cork();
        chunks.forEach(({ chunk, encoding }, at) => {
          inner.write(chunk, encoding, at === chunks.length - 1 ? done : undefined);
        });
        inner.uncork();
      },
      final: (done) => void inner.end(done),
      destroy: (_error, done) => {
        this.#rest = undefined;
        inner.destroy();
        // Without the error: Node would report a lost client as one that sent no HTTP.
        done(null);
      },
    });
    const { remoteAddress, remotePort, localAddress, localPort } = inner;
    // Express reads it, for `request.protocol`.
    const encrypted = 'encrypted' in inner;
    Object.assign(this, { remoteAddress, remotePort, localAddress, localPort, encrypted });
    inner.on('data', (chunk: Buffer) => {
      if (chunk.length > pieceBytes()) {
        this.#rest = chunk;
        inner.pause();
        this.#goOn();
      } else if (!this.push(chunk)) inner.pause();
    });
    inner.on('end', () => {
      this.#hasEnded = true;
      this.#endSoon();
    });
    // The event `close` follows, and ends this side.
    inner.on('error', () => undefined);
    inner.on('close', () => this.destroy());
    inner.on('timeout', () => this.emit('timeout'));
  }

  /** When the client ends its side, Node ends its own at once, and an answer still to come is lost. */
  #endSoon(): void {
    setImmediate(() => {
      if (this.isAsked()) setTimeout(() => this.passOnEnd(), HALF_CLOSED_MS);
      else this.passOnEnd();
    });
  }

  /** Passes on that the client has closed its side, behind all that it sent. */
  passOnEnd(): void {
    if (this.#hasEnded && this.#rest === undefined) this.push(null);
  }

  #goOn(): void {
    if (this.#rest === undefined) this.inner.resume();
    else if (!this.#isDue) {
      this.#isDue = true;
      setImmediate(() => this.#passOn(this.#rest));
    }
  }

  #passOn(rest: Buffer | undefined): void {
    this.#isDue = false;
    if (rest === undefined) return;
    const length = this.pieceBytes();
    this.#rest = rest.length > length ? rest.subarray(length) : undefined;
    this.push(rest.subarray(0, length));
    if (this.#hasEnded) this.#endSoon();
  }

  /** Called by Node behind the last answer: a client that does not close must not hold the connection. */
  destroySoon(): void {
    // The system takes back the answer if the connection is closed with bytes unread.
    this.inner.removeAllListeners('data').resume();
    this.end(() => setTimeout(() => this.destroy(), LINGER_MS).unref());
  }

  setTimeout(ms: number): this {
    this.inner.setTimeout(ms);
    return this;
  }

  /** The emulator reads how many bytes leaving viewers got. */
  get bytesWritten() {
    return this.inner.bytesWritten;
  }
}
