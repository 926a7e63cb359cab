import { setTimeout as pause } from 'node:timers/promises';
import { createLog } from '../../src/http/log';
import { runAsProcess } from '../../src/http/server';

/** A service whose stop waits for a timer that keeps no process alive. */
const log = createLog('info', process.stdout, () => new Date(), 0);
const start = async () => {
  const running = setInterval(() => undefined, 1000);
  log.info('listening', {});
  const stop = async () => {
    clearInterval(running);
    await pause(50, undefined, { ref: false });
  };
  return { stop };
};
void runAsProcess({ name: 'sidecar', page: '', log, start });
