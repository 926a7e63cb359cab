import type { Writable } from 'node:stream';
import { createLineQueue } from './line-queue';
import type { AuditTimes, LineSink } from './line-sink';

/** What may wait for a slow reader, in bytes; more would be memory without end. The log's lines don't count. */
const MAX_WAITING = 1024 * 1024;

/** Takes lines for a stream, standard output, and writes them in batches, each whole, so that they mix with the log's by lines. */
export function openAuditStream(stream: Writable, { batchMs }: Pick<AuditTimes, 'batchMs'>): LineSink {
  const queue = createLineQueue(MAX_WAITING);
  let underWay = 0;
  let lost = 0;
  // Every write has a callback that counts what is lost; an error that nobody listens to would end the process.
  stream.on('error', () => undefined);

  const flush = (done: () => void = () => undefined): void => {
    if (queue.count() === 0) {
      done();
      return;
    }
    const { text, count, done: makeRoom } = queue.take();
    if (!stream.writable) {
      makeRoom();
      lost += count;
      done();
      return;
    }
    underWay += count;
    stream.write(text, (error) => {
      makeRoom();
      underWay -= count;
      if (error) lost += count;
      done();
    });
  };

  return {
    write(line, whose) {
      const isFirst = queue.count() === 0;
      if (!queue.push(line, whose)) lost += 1;
      else if (isFirst) setTimeout(flush, batchMs);
    },
    waiting: () => queue.count() + underWay,
    lost: () => lost,
    flushNow: () => flush(),
    close: () => new Promise(flush),
  };
}
