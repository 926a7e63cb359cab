import { once } from 'node:events';
import { Writable } from 'node:stream';
import { createLog } from '../../src/http/log';

/** A log as a program has it, at level `debug`, and what it has written. A line is written after its request is answered. */
export function writtenLog(clock: () => Date) {
  let written = '';
  const stream = new Writable({
    write(chunk, _encoding, done) {
      written += String(chunk);
      stream.emit('lines');
      done();
    },
  });
  return {
    log: createLog('debug', stream, clock),
    stream,
    text: () => written,
    /** The text, once it has this many lines. */
    async linesOf(lines: number): Promise<string> {
      while (written.split('\n').length - 1 < lines) await once(stream, 'lines');
      return written;
    },
  };
}
