import type { Writable } from 'node:stream';
import type { AuditTimes, LineSink } from './line-sink';

/** What may wait for a slow reader, in bytes; more would be memory without end. */
const MOST_WAITING = 1024 * 1024;

/** Takes lines for a stream, standard output, and writes them in batches, each whole, so that they mix with the log's by lines. */
export function openAuditStream(stream: Writable, { batchMs }: Pick<AuditTimes, 'batchMs'>): LineSink {
  let queued: string[] = [];
  let underWay = 0;
  let lost = 0;
  // Every write has a callback that counts what is lost; an error that nobody listens to would end the process.
  stream.on('error', () => undefined);

  const flush = (done: () => void = () => undefined): void => {
    const count = queued.length;
    const text = queued.join('');
    queued = [];
    if (count === 0) {
      done();
    } else if (!stream.writable || stream.writableLength > MOST_WAITING) {
      lost += count;
      done();
    } else {
      underWay += count;
      stream.write(text, (error) => {
        underWay -= count;
        if (error) lost += count;
        done();
      });
    }
  };

  return {
    write(line) {
      if (queued.length === 0) setTimeout(flush, batchMs);
      queued.push(line);
    },
    waiting: () => queued.length + underWay,
    lost: () => lost,
    flushNow: () => flush(),
    close: () => new Promise(flush),
  };
}
