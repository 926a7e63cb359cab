import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import type { Readable } from 'node:stream';
import type { ForwardReader } from '../drm/check/outline';

/** What is read ahead at a place: the boxes of a fragment rarely have more. */
const AHEAD = 8 * 1024;

/** Reads a file from its first byte to its last; what is skipped is not read. Close it when done. */
export class FileReader implements ForwardReader {
  readonly #file: number;
  readonly #size: number;
  #at = 0;
  #ahead: Buffer = Buffer.alloc(0);
  #aheadAt = 0;

  /** @throws the system's error when the file can't be opened. */
  constructor(path: string) {
    this.#file = openSync(path, 'r');
    this.#size = fstatSync(this.#file).size;
  }

  async read(length: number): Promise<Buffer> {
    const from = this.#at - this.#aheadAt;
    if (from < 0 || from + length > this.#ahead.length) {
      this.#ahead = this.#readAt(Math.max(length, AHEAD));
      this.#aheadAt = this.#at;
    }
    const start = this.#at - this.#aheadAt;
    const bytes = this.#ahead.subarray(start, start + length);
    this.#at += bytes.length;
    return bytes;
  }

  async skip(length: number): Promise<number> {
    const passed = Math.min(length, Math.max(0, this.#size - this.#at));
    this.#at += passed;
    return passed;
  }

  async close(): Promise<void> {
    closeSync(this.#file);
  }

  #readAt(length: number): Buffer {
    const bytes = Buffer.alloc(Math.min(length, Math.max(0, this.#size - this.#at)));
    let filled = 0;
    while (filled < bytes.length) {
      const count = readSync(this.#file, bytes, filled, bytes.length - filled, this.#at + filled);
      if (count === 0) break;
      filled += count;
    }
    return bytes.subarray(0, filled);
  }
}

/** Reads a stream, as standard input or a pipe; what is skipped is dropped as it comes. */
export class StreamReader implements ForwardReader {
  readonly #chunks: AsyncIterator<unknown>;
  #waiting: Buffer[] = [];
  #length = 0;

  constructor(stream: Readable) {
    this.#chunks = stream[Symbol.asyncIterator]();
  }

  async read(length: number): Promise<Buffer> {
    while (this.#length < length && (await this.#more())) {}
    const all = Buffer.concat(this.#waiting);
    const bytes = all.subarray(0, length);
    this.#setWaiting(all.subarray(bytes.length));
    return bytes;
  }

  async skip(length: number): Promise<number> {
    let left = length;
    while (left > 0) {
      const passed = Math.min(left, this.#length);
      this.#setWaiting(Buffer.concat(this.#waiting).subarray(passed));
      left -= passed;
      if (left > 0 && !(await this.#more())) break;
    }
    return length - left;
  }

  /** Ends the stream, which would else keep the program waiting for what nobody reads. */
  async close(): Promise<void> {
    await this.#chunks.return?.();
  }

  async #more(): Promise<boolean> {
    const { done, value } = await this.#chunks.next();
    if (done) return false;
    const chunk = Buffer.isBuffer(value) ? value : Buffer.from(String(value));
    this.#waiting.push(chunk);
    this.#length += chunk.length;
    return true;
  }

  #setWaiting(bytes: Buffer): void {
    this.#waiting = bytes.length > 0 ? [bytes] : [];
    this.#length = bytes.length;
  }
}

/** A reader after some of its bytes were read: these come first again. */
export function withHead(head: Buffer, rest: ForwardReader): ForwardReader {
  let left = head;
  const take = (length: number) => {
    const taken = left.subarray(0, length);
    left = left.subarray(taken.length);
    return taken;
  };
  return {
    read: async (length) => {
      const first = take(length);
      return first.length === length ? first : Buffer.concat([first, await rest.read(length - first.length)]);
    },
    skip: async (length) => {
      const first = take(Math.min(length, left.length)).length;
      return first + (length > first ? await rest.skip(length - first) : 0);
    },
  };
}
